"""What noise does to learning and planning: python -m benchmarks.noise."""
