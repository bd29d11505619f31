"""Benchmarks: us and the peers in one run. `make bench` runs them all."""
