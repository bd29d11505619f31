"""Sarsa(lambda) with tile coding, as in the book: dictionaries, one number at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from optimist.agents.sarsa import SarsaSettings
from optimist.arrays import FloatArray
from optimist.box import Box

State = tuple[float, ...]
Tile = tuple[object, ...]  # group, tiling, cell on each of its axes
World = Callable[[State, int], tuple[State, float, bool]]  # next state, reward, terminated

MASK = 2**64 - 1


def active_tiles(box: Box, settings: SarsaSettings, offsets: FloatArray, state: State) -> list[Tile]:
    """One tile of every tiling, named by where it lies. `offsets` [n_tilings, d] are in intervals."""
    tiles: list[Tile] = []
    for number, group in enumerate(settings.tilings):
        for t in range(group.tilings):
            cells = []
            for place, axis in enumerate(group.axes):
                low, high = float(box.low[axis]), float(box.high[axis])
                intervals = group.intervals[place]
                x = state[axis]
                if not box.periodic[axis]:
                    x = max(low, min(high, x))
                offset = float(offsets[len(tiles), axis])
                cell = math.floor((x - low) * (intervals / (high - low)) + offset)
                cells.append(cell % intervals if box.periodic[axis] else cell)
            tiles.append((number, t, *cells))
    return tiles


def uniform(key: int, counter: int) -> float:
    """SplitMix64, with Python's integers."""
    z = (key + counter * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


@dataclass
class NaiveSarsa:
    """The agent; its weights by tile and action."""

    box: Box
    settings: SarsaSettings
    offsets: FloatArray
    n_actions: int
    discount: float
    max_steps: int
    weights: dict[tuple[Tile, int], float] = field(default_factory=lambda: defaultdict(float))
    seen: dict[State, list[Tile]] = field(default_factory=dict)  # states with their tiles

    def q_value(self, tiles: Sequence[Tile], action: int) -> float:
        total = 0.0
        for tile in tiles:  # one after another: `sum` rounds less often, from Python 3.12 on
            total += self.weights[tile, action]
        return total

    def choose(self, tiles: Sequence[Tile], key: int, moment: int) -> int:
        first, second = uniform(key, 2 * moment), uniform(key, 2 * moment + 1)
        if first < self.settings.epsilon:
            return int(second * self.n_actions)
        q_values = [self.q_value(tiles, a) for a in range(self.n_actions)]
        best = [a for a in range(self.n_actions) if q_values[a] == max(q_values)]
        return best[int(second * len(best))]

    def episode(self, world: World, start: State, key: int) -> tuple[int, float, bool]:
        """Steps, total reward, and whether it terminated."""
        settings = self.settings
        traces: dict[tuple[Tile, int], float] = {}
        state, total = start, 0.0
        tiles = active_tiles(self.box, settings, self.offsets, state)
        action = self.choose(tiles, key, 0)
        for step in range(1, self.max_steps + 1):
            self.seen[state] = tiles
            next_state, reward, terminated = world(state, action)
            total += reward
            error = reward - self.q_value(tiles, action)
            next_action, next_tiles = 0, tiles
            if not terminated:
                next_tiles = active_tiles(self.box, settings, self.offsets, next_state)
                next_action = self.choose(next_tiles, key, step)
                error += self.discount * self.q_value(next_tiles, next_action)
            self._mark(traces, tiles, action)
            for pair, trace in traces.items():
                self.weights[pair] += settings.step_size / len(tiles) * error * trace
            faded = {pair: self.discount * settings.trace_decay * trace for pair, trace in traces.items()}
            traces = {pair: trace for pair, trace in faded.items() if trace > settings.trace_cutoff}
            if terminated:
                return step, total, True
            state, action, tiles = next_state, next_action, next_tiles
        return self.max_steps, total, False

    def _mark(self, traces: dict[tuple[Tile, int], float], tiles: Sequence[Tile], action: int) -> None:
        for tile in tiles:
            if self.settings.traces == "accumulating":
                traces[tile, action] = traces.get((tile, action), 0.0) + 1.0
                continue
            traces[tile, action] = 1.0
            if self.settings.traces == "clearing":
                for other in set(range(self.n_actions)) - {action}:
                    traces.pop((tile, other), None)
