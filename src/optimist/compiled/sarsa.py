"""Sarsa(lambda) with tile coding, whole episodes at a time.

A weight belongs to a tile and an action; Q(s, a) is the sum of the weights of the active tiles. Traces that
are not zero stand in a list, `traced` and `traces`; `places` says where in it a weight stands, -1: nowhere.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit, types, uint64, void

from optimist.compiled.dynamics import OUTCOME_FUNCTION, READ, READ_ROWS, STEP_FUNCTION

REPLACING, CLEARING, ACCUMULATING = 0, 1, 2  # kinds of traces

GEOMETRY = types.Tuple((READ, READ, READ_ROWS, READ_ROWS, int64[:, ::1], int64[:, ::1], int64[::1]))

# of `tiles_of_rows` and `run_episodes`; see `optimist.compiled.dynamics.compiled_for`
TILES_OF_ROWS = void(READ_ROWS, GEOMETRY, int64[:, ::1])
RUN_EPISODES = void(
    STEP_FUNCTION,
    OUTCOME_FUNCTION,
    GEOMETRY,
    READ_ROWS,
    READ_ROWS,
    uint64[::1],
    int64,
    types.UniTuple(float64, 5),
    int64,
    float64[:, ::1],
    int64[::1],
    float64[::1],
    boolean[::1],
)


@njit(nogil=True, cache=True)
def tiles_of(state, geometry, tiles):
    """The active tile of every tiling.  state [d], `TileCoding.geometry` -> tiles out [n_tilings]"""
    low, high, scales, shifts, cells, strides, firsts = geometry
    n_tilings, n_dims = scales.shape
    for t in range(n_tilings):
        tile = firsts[t]
        for q in range(n_dims):
            if strides[t, q] == 0:
                continue
            if cells[t, q] > 0:
                cell = int(np.floor((state[q] - low[q]) * scales[t, q] + shifts[t, q])) % cells[t, q]
            else:
                inside = min(max(state[q], low[q]), high[q])
                cell = int((inside - low[q]) * scales[t, q] + shifts[t, q])
            tile += cell * strides[t, q]
        tiles[t] = tile


@njit(nogil=True, cache=True)
def tiles_of_rows(states, geometry, tiles):
    """The same for many.  states [n, d] -> tiles out [n, n_tilings]"""
    for k in range(states.shape[0]):
        tiles_of(states[k], geometry, tiles[k])


@njit(nogil=True, cache=True)
def uniform(key, counter):
    """The `counter`-th number in [0, 1) of the stream `key`: SplitMix64 (Steele et al. 2014), no state."""
    z = key + uint64(counter) * uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return float((z ^ (z >> uint64(31))) >> uint64(11)) * 2.0**-53


@njit(nogil=True, cache=True)
def q_values_of(tiles, weights, q_values):
    """Sums over the active tiles.  [n_tilings], [n_tiles, n_actions] -> out [n_actions]"""
    q_values[:] = 0.0
    for tile in tiles:
        for a in range(q_values.size):
            q_values[a] += weights[tile, a]


@njit(nogil=True, cache=True)
def choose(q_values, epsilon, key, counter):
    """The best action, any of equals; or any at all, with probability `epsilon`. Takes two numbers."""
    n_actions = q_values.size
    draw = uniform(key, counter + 1)
    if uniform(key, counter) < epsilon:
        return int(draw * n_actions)
    best, n_best = q_values[0], 1
    for a in range(1, n_actions):
        if q_values[a] > best:
            best, n_best = q_values[a], 1
        elif q_values[a] == best:
            n_best += 1
    skip = int(draw * n_best)
    for a in range(n_actions):
        if q_values[a] == best:
            if skip == 0:
                return a
            skip -= 1
    return n_actions - 1


@njit(nogil=True, cache=True)
def forget(k, n_traces, traced, traces, places):
    """Take the k-th trace out of the list; the last takes its place. Returns how many are left."""
    places[traced[k]] = -1
    last = n_traces - 1
    if k != last:
        traced[k], traces[k] = traced[last], traces[last]
        places[traced[k]] = k
    return last


@njit(nogil=True, cache=True)
def mark(tiles, action, n_actions, kind, n_traces, traced, traces, places):
    """Traces of the step just made: those of its tiles and action. Returns how many there are."""
    for tile in tiles:
        for a in range(n_actions):
            weight = tile * n_actions + a
            k = places[weight]
            if a != action:
                if kind == CLEARING and k >= 0:
                    n_traces = forget(k, n_traces, traced, traces, places)
            elif k < 0:
                traced[n_traces], traces[n_traces], places[weight] = weight, 1.0, n_traces
                n_traces += 1
            else:
                traces[k] = traces[k] + 1.0 if kind == ACCUMULATING else 1.0
    return n_traces


@njit(nogil=True, cache=True)
def learn(change, decay, cutoff, weights, n_traces, traced, traces, places):
    """Change every traced weight in proportion, then let the traces fade. Returns how many are left."""
    k = 0
    while k < n_traces:
        weights[traced[k] // weights.shape[1], traced[k] % weights.shape[1]] += change * traces[k]
        traces[k] *= decay
        if traces[k] > cutoff:
            k += 1
        else:  # the last takes its place, and has its turn next
            n_traces = forget(k, n_traces, traced, traces, places)
    return n_traces


@njit(nogil=True, cache=True)
def run_episodes(
    step,
    outcome,  # as in `optimist.compiled.dynamics`
    geometry,  # as in `TileCoding`
    controls,  # [n_actions, k]
    starts,  # [n, d]
    keys,  # [n], one stream of random numbers per episode
    max_steps,
    numbers,  # discount, step size of one weight, decay of traces (discount x lambda), cutoff, epsilon
    kind,  # of traces
    weights,  # in and out [n_tiles, n_actions]
    steps,  # out [n]
    totals,  # out [n]
    ended,  # out [n], by a terminal state
):
    """Learn through `n` episodes, one after another."""
    discount, step_size, decay, cutoff, epsilon = numbers
    n_tilings, n_actions = geometry[2].shape[0], controls.shape[0]
    most = min(weights.size, max_steps * n_tilings)
    traced, traces = np.empty(most, np.int64), np.empty(most)
    places = np.full(weights.size, -1, np.int32)
    tiles, next_tiles = np.empty(n_tilings, np.int64), np.empty(n_tilings, np.int64)
    q_values, next_q_values = np.empty(n_actions), np.empty(n_actions)
    state, next_state = np.empty(starts.shape[1]), np.empty(starts.shape[1])
    for k in range(starts.shape[0]):
        n_traces, steps[k], totals[k], ended[k] = 0, 0, 0.0, False
        state[:] = starts[k]
        tiles_of(state, geometry, tiles)
        q_values_of(tiles, weights, q_values)
        action = choose(q_values, epsilon, keys[k], 0)
        next_action = action
        while steps[k] < max_steps and not ended[k]:
            step(state, controls[action], next_state)
            reward, ended[k] = outcome(state, controls[action], next_state)
            steps[k] += 1
            totals[k] += reward
            error = reward - q_values[action]
            if not ended[k]:
                tiles_of(next_state, geometry, next_tiles)
                q_values_of(next_tiles, weights, next_q_values)
                next_action = choose(next_q_values, epsilon, keys[k], 2 * steps[k])
                error += discount * next_q_values[next_action]
            n_traces = mark(tiles, action, n_actions, kind, n_traces, traced, traces, places)
            n_traces = learn(step_size * error, decay, cutoff, weights, n_traces, traced, traces, places)
            if not ended[k]:
                state[:], tiles[:], action = next_state, next_tiles, next_action
                q_values_of(tiles, weights, q_values)
        for trace in range(n_traces):
            places[traced[trace]] = -1
