"""Views: pictures and pages. They compute nothing that others rely on."""
