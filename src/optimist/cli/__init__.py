"""The command line: parse, build settings, call the library, print."""
