"""Slow and obvious twins: what the fast code is tested against. No code is shared with `src`."""
