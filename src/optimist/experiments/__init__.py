"""Experiments: what the paper ran, as data and functions of it."""
