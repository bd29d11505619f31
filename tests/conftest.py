"""The same examples in every run: a failure can be reproduced, and no run fails by chance."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")
