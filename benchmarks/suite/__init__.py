"""Strangers: ten small systems as other people would write them, and what is told of each."""
