"""Sample efficiency: after how many transitions does the model plan nearly as well as the truth?

At every number of transitions at which a recorded run planned, the model it then had is planned with again,
without any bonus, and rolled out on the true system; the same way of planning and acting, fed with the true
dynamics, says what is best. Totals are means over the paper's starts and seeded starts nearby: from a
single start they scatter too much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimist.agents import AgentSettings, GPRMaxAgent
from optimist.agents.settings import parse_settings
from optimist.experiments.statistics import Near, transitions_until_near
from optimist.planning import Policy, plan, roll_out
from optimist.runs import RunStore
from optimist.systems.system import System

N_NEARBY = 20
NEARBY_SEED = 0


@dataclass(frozen=True, eq=False)
class Efficiency:
    """How a run's model grew."""

    best: float  # mean total of the plan with the true dynamics
    n_transitions: list[int]  # when the run planned
    totals: list[float]  # mean total of the plan without bonus then

    @property
    def near(self) -> Near:
        """From how many transitions on plans are within 5 % of the best."""
        return transitions_until_near(np.array(self.totals), np.array(self.n_transitions), self.best)


def measure_efficiency(store: RunStore, system: System) -> Efficiency:
    """Plan again with every model of a recorded run."""
    header = store.header
    settings = parse_settings(header["settings"] | {"knownness": "none"})
    agent = GPRMaxAgent(system.task, settings, seed=header["seed"])
    transitions = store.transitions()
    counts = [row["n_transitions"] for row in store.plans()]
    totals = []
    for count in counts:
        agent.transitions = transitions[:count]
        agent.update()
        totals.append(mean_total(system, agent.policy))
    return Efficiency(total_with_truth(system, settings), counts, totals)


def total_with_truth(system: System, settings: AgentSettings, *, n_nearby: int = N_NEARBY) -> float:
    """The mean total of the same way of planning and acting, fed with the true dynamics."""
    starts = system.starts if settings.planning.rehearse else None
    made = plan(system.task, system.dynamics, settings.grid, starts=starts, depth=settings.planning.depth)
    return mean_total(system, made.sights, n_nearby=n_nearby)


def mean_total(system: System, policy: Policy, *, n_nearby: int = N_NEARBY) -> float:
    """From the paper's starts and so many starts nearby."""
    nearby = system.nearby_starts(n_nearby, seed=NEARBY_SEED) if n_nearby else system.starts[:0]
    starts = np.vstack([system.starts, nearby])
    return float(roll_out(system.task, system.dynamics, policy, starts).total_rewards.mean())
