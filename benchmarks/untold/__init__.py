"""Environments of which nothing is told, learned with default settings."""
