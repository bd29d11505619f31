"""A real notebook, run by a real kernel: things show themselves, and a bar shows how learning goes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = (
    """
import optimist
quick = {"grid": {"nodes": [9, 9]}, "first_plans": [5, 12], "planning": {"rehearse": False, "depth": 1}}
agent = optimist.GPRMax("optimist/MountainCar-v0", settings=quick, run="car")
_ = agent.learn(30, progress_bar=True)
""",
    "agent",
    "agent.task",
    "agent.plan",
    "optimist.runs.RunStore.open('car', writing=False)",
    "_ = agent.learn(5)",
)


@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
def test_a_notebook_shows_what_happens(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [cell["outputs"] for cell in notebook.cells]
    (bar,) = pages(outputs[0])
    assert bar.startswith("<progress value='30' max='30'></progress> episode 1, step 30, total reward -30, ")
    titles = [re.search(r"<strong>(.*?)</strong>", pages(cell)[0]) for cell in outputs[1:5]]
    assert [title and title[1] for title in titles] == [
        "GPRMax: gp-rmax-exp",
        "Task of 2 coordinates and 3 actions",
        "Plan",
        "A recorded run",
    ]
    assert outputs[5] == []  # nobody asked for a bar


def pages(outputs: list[Any]) -> list[str]:
    """What the outputs of a cell are as HTML; there is nothing else, no warnings among it."""
    assert {output["output_type"] for output in outputs} <= {"display_data", "execute_result"}
    return [output["data"]["text/html"] for output in outputs]
