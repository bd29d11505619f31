"""A policy as one file of plain C: tables, and a function from a state to an action. It needs C99, no more.

The action is the best of the interpolated Q-values of the best plan, as `QFunction.greedy` takes it. Here an
agent looks ahead through its model where that is affordable, and may decide otherwise near a boundary.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optimist.arrays import FloatArray, IntArray
from optimist.learner import GPRMax
from optimist.planning import QFunction

CODE = """
/* Q-values of all actions in a state, interpolated between the nodes; outside of the box as at its edge. */
void optimist_q_values(const double state[OPTIMIST_DIMS], double q_values[OPTIMIST_ACTIONS])
{
    double fractions[OPTIMIST_DIMS];
    long cell = 0;
    for (int axis = 0; axis < OPTIMIST_DIMS; axis++) {
        const double *axis_nodes = nodes + starts[axis];
        int index = 0, above = starts[axis + 1] - starts[axis] - 1;
        double first = axis_nodes[0], last = axis_nodes[above], x = state[axis];
        if (periods[axis] > 0.0)
            x -= floor((x - first) / periods[axis]) * periods[axis];
        x = x < first ? first : (x > last ? last : x);
        while (above - index > 1) {
            int middle = (index + above) / 2;
            if (axis_nodes[middle] <= x)
                index = middle;
            else
                above = middle;
        }
        fractions[axis] = (x - axis_nodes[index]) / (axis_nodes[index + 1] - axis_nodes[index]);
        cell += index * strides[axis];
    }
    for (int action = 0; action < OPTIMIST_ACTIONS; action++)
        q_values[action] = 0.0;
    for (int corner = 0; corner < (1 << OPTIMIST_DIMS); corner++) {
        double weight = 1.0;
        long place = cell;
        for (int axis = 0; axis < OPTIMIST_DIMS; axis++) {
            int up = (corner >> axis) & 1;
            weight *= up ? fractions[axis] : 1.0 - fractions[axis];
            place += up * strides[axis];
        }
        for (int action = 0; action < OPTIMIST_ACTIONS; action++)
            q_values[action] += weight * values[place * OPTIMIST_ACTIONS + action];
    }
}

/* The number of the best action, from 0; the first of equals. */
int optimist_action(const double state[OPTIMIST_DIMS])
{
    double q_values[OPTIMIST_ACTIONS];
    int best = 0;
    optimist_q_values(state, q_values);
    for (int action = 1; action < OPTIMIST_ACTIONS; action++)
        if (q_values[action] > q_values[best])
            best = action;
    return best;
}

/* The control that an action applies: OPTIMIST_CONTROLS numbers. */
const double *optimist_control(int action)
{
    return controls + action * OPTIMIST_CONTROLS;
}
"""


def export_policy(agent: GPRMax, file: str | Path) -> Path:
    """Write what an agent has learned as C code; where it was written."""
    place = Path(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(c_code(agent.q_function, agent.task.controls), "utf-8")
    return place


def c_code(q_function: QFunction, controls: FloatArray) -> str:
    """A policy as C; `controls` [n_actions, k]."""
    grid = q_function.grid
    nodes, starts, periods, _, strides = grid.lookup
    sizes = {"DIMS": grid.n_dims, "ACTIONS": len(controls), "CONTROLS": controls.shape[1]}
    lines = [
        "/* A policy learned by Optimist: from a state to the number of an action. C99; link with -lm. */",
        "#include <math.h>",
        "",
        *(f"#define OPTIMIST_{name} {size}" for name, size in sizes.items()),
        "",
        _table("int", "starts", starts),
        _table("long", "strides", strides),
        _table("double", "periods", periods),
        _table("double", "nodes", nodes),
        _table("double", "controls", controls),
        _table("double", "values", grid.pad(q_function.q_values)),
    ]
    return "\n".join(lines) + "\n" + CODE


def _table(kind: str, name: str, numbers: FloatArray | IntArray) -> str:
    flat = np.asarray(numbers).ravel().tolist()
    rows = [", ".join(map(repr, flat[k : k + 8])) for k in range(0, len(flat), 8)]
    return f"static const {kind} {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"
