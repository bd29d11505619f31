"""The same examples in every run: a failure can be reproduced, and no run fails by chance."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None)
settings.load_profile("reproducible")

# Longest first, by processor time. The first compiles what most of the others need; the second needs nothing
# of it, so that two processes that find nothing compiled do not compile the same at the same time.
LONG = (
    "tests/integration/test_learning.py",
    "tests/integration/test_site.py",
    "tests/cli/test_campaign.py",
    "tests/cli/test_learn.py",
    "tests/experiments/test_campaign.py",
    "tests/experiments/test_dask.py",
    "tests/agents/test_golden.py",
    "tests/integration/test_best_possible.py",
    "tests/conformance/",
    "tests/agents/test_gp_rmax.py",
    "tests/cli/test_plan.py",
    "tests/cli/test_own_problem.py",
    "tests/integration/",
    "tests/compiled/test_sweeps.py",
    "tests/planning/test_rows.py",
    "tests/cli/",
    "tests/experiments/",
    "tests/runs/",
    "tests/views/",
    "tests/agents/",
    "tests/gp/",
    "tests/models/",
    "tests/paper/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first, so that no process is left alone with it in the end.

    `--no-loadscope-reorder` keeps it so: files with many tests are not those that take long.
    """

    def place(item: pytest.Item) -> int:
        starts = (number for number, start in enumerate(LONG) if item.nodeid.startswith(start))
        return next(starts, len(LONG))

    items.sort(key=place)
