"""The same examples in every run: a failure can be reproduced, and no run fails by chance."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")

LONG = ("tests/integration/", "tests/cli/", "tests/experiments/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first, so that no process is left alone with it in the end.

    `--no-loadscope-reorder` keeps it so: files with many tests are not those that take long.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
