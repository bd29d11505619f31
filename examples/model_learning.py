"""What a Gaussian process knows of mountain car after 40 and after 120 transitions (the paper's Fig. 5).

    python examples/model_learning.py model.png

The uncertainty is nearly constant along velocity: acceleration depends on the position only, the processes
find that out, and so they know states nobody has visited.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from optimist.experiments.exploring import random_transitions
from optimist.models import fit_dynamics
from optimist.systems import SYSTEMS
from optimist.views.model_figure import Snapshot, draw_models, lattice
from optimist.views.plan_figure import check_target, save_figure

FORWARD = 2


def main() -> None:
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "model.png")
    check_target(file)
    system = SYSTEMS["mountain-car"]
    task = system.task
    snapshots = []
    for count in (40, 120):
        transitions = random_transitions(system, count, seed=1)
        model = fit_dynamics(transitions, task.box, task.controls, fit_seed=0)
        snapshots.append(Snapshot(f"after {count} transitions", model))
    _, _, states = lattice(task.box.low, task.box.high)
    control = task.controls[FORWARD : FORWARD + 1]
    # the acceleration itself, without wall and speed limit
    truth = 0.001 * control[0, 0] - 0.0025 * np.cos(3.0 * states[:, 0])
    figure = draw_models(
        snapshots,
        action=FORWARD,
        coordinate=1,
        truth=truth,
        names=("position", "velocity"),
        what="acceleration",
    )
    figure.suptitle(
        "mountain car, full throttle: one Gaussian process per action and coordinate", fontsize=12
    )
    save_figure(figure, file)
    for snapshot in snapshots:
        _, uncertainty = snapshot.model.predict_with_uncertainty(states, control)
        print(f"{snapshot.title}: mean uncertainty over the box {uncertainty.mean():.4f}")
    print(f"picture: {file}")


if __name__ == "__main__":
    main()
