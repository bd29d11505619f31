"""Cart-pole swing-up (Deisenroth & Rasmussen 2011, PILCO): push a cart so that its pole swings up and stays.

    J       = 4 (M + m) - 3 m cos^2 a
    x''     = (2 m l w^2 sin a + 3 m g sin a cos a + 4 u - 4 b x') / J
    angle'' = (-3 m l w^2 sin a cos a - 6 (M + m) g sin a - 6 (u - b x') cos a) / (l J)

State (x, x', angle, angle'), a = angle, w = angle'; angle 0 is hanging, pi upright. The force u is held for
0.1 s (20 Runge-Kutta steps). Nothing is clipped, and there is no end. A step costs 1 - exp(-d^2 / (2 0.25^2))
at the state after it, d the distance of the pole's tip from upright above x = 0. Published starts are normal
with standard deviation 0.1; those nearby are uniform within 0.1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from optimist.arrays import FloatArray
from optimist.box import Box
from optimist.compiled.dynamics import wrapped
from optimist.systems.drawing import BODY, GOAL, GROUND, INK, Area, Disc, Drawing, Line, Shape, arrow
from optimist.systems.system import System
from optimist.task import Task

POLE_LENGTH = 0.5  # l
POLE_MASS = 0.5  # m
CART_MASS = 0.5  # M
BOTH_MASSES = CART_MASS + POLE_MASS
FRICTION = 0.1  # b, between cart and ground
GRAVITY = 9.82
WIDTH = 0.25  # of the cost: tips nearer than this cost less than 0.4
SUBSTEP = 0.005
N_SUBSTEPS = 20


@njit(nogil=True, cache=True)
def accelerations(speed, angle, rate, force, friction):
    """Of the cart and of the angle; of numbers, or of arrays [n]."""
    sine, cosine = np.sin(angle), np.cos(angle)
    pull = POLE_MASS * POLE_LENGTH * rate**2 * sine
    push = force - friction * speed
    inertia = 4.0 * BOTH_MASSES - 3.0 * POLE_MASS * cosine**2
    of_cart = 2.0 * pull + 3.0 * POLE_MASS * GRAVITY * sine * cosine + 4.0 * push
    of_angle = -3.0 * pull * cosine - 6.0 * BOTH_MASSES * GRAVITY * sine - 6.0 * push * cosine
    return of_cart / inertia, of_angle / (POLE_LENGTH * inertia)


@njit(nogil=True, cache=True)
def advance(state, force, friction, next_state):
    """The classical Runge-Kutta method of fourth order.  [4] -> out [4]"""
    position, speed, angle, rate = state[0], state[1], state[2], state[3]
    half = 0.5 * SUBSTEP
    for _ in range(N_SUBSTEPS):
        v1, w1 = speed, rate
        a1, r1 = accelerations(v1, angle, w1, force, friction)
        v2, w2 = speed + half * a1, rate + half * r1
        a2, r2 = accelerations(v2, angle + half * w1, w2, force, friction)
        v3, w3 = speed + half * a2, rate + half * r2
        a3, r3 = accelerations(v3, angle + half * w2, w3, force, friction)
        v4, w4 = speed + SUBSTEP * a3, rate + SUBSTEP * r3
        a4, r4 = accelerations(v4, angle + SUBSTEP * w3, w4, force, friction)
        position += SUBSTEP / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
        speed += SUBSTEP / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        angle += SUBSTEP / 6.0 * (w1 + 2.0 * w2 + 2.0 * w3 + w4)
        rate += SUBSTEP / 6.0 * (r1 + 2.0 * r2 + 2.0 * r3 + r4)
    next_state[0] = position
    next_state[1] = speed
    next_state[2] = wrapped(angle, -np.pi, np.pi)
    next_state[3] = rate


@njit(nogil=True, cache=True)
def step(state, control, next_state):
    """[4], [1] -> out [4]"""
    advance(state, control[0], FRICTION, next_state)


@njit(nogil=True, cache=True)
def tip_reward(position, angle):
    """0 where the tip is upright above x = 0, almost -1 far away; of numbers."""
    across = position + POLE_LENGTH * np.sin(angle)
    below = POLE_LENGTH * (np.cos(angle) + 1.0)
    return np.expm1(-(across**2 + below**2) / (2.0 * WIDTH**2))


@njit(nogil=True, cache=True)
def outcome(state, control, next_state):
    """Distance of the tip from upright, after the step; there is no end."""
    return tip_reward(next_state[0], next_state[2]), False


BOX = Box([-3.0, -6.0, -np.pi, -15.0], [3.0, 6.0, np.pi, 15.0], periodic=[False, False, True, False])

# nothing is limited; 10 N against the friction never drive the cart faster than 100 m/s for long
OBSERVATION_BOX = Box(
    [-1e4, -300.0, -np.pi, -300.0], [1e4, 300.0, np.pi, 300.0], periodic=[False, False, True, False]
)


def reward(states: FloatArray, controls: FloatArray, next_states: FloatArray) -> FloatArray:
    """Distance of the tip from upright, after the step.  [n]"""
    position, angle = next_states[:, 0], next_states[:, 2]
    across = position + POLE_LENGTH * np.sin(angle)
    below = POLE_LENGTH * (np.cos(angle) + 1.0)
    found: FloatArray = np.expm1(-(across**2 + below**2) / (2.0 * WIDTH**2))
    return found


SIGHT = 1.2  # m: beyond this the picture moves along with the cart
CORNERS = ((-1.6, -1.2), (1.6, 1.2))  # of the picture


def shapes(state: FloatArray, control: FloatArray | None) -> list[Shape]:
    """The cart and its pole, marks every half metre, where the tip shall be, the push."""
    position, angle = float(state[0]), float(state[2])
    camera = position - float(np.clip(position, -SIGHT, SIGHT))
    at = position - camera
    tip = (at + POLE_LENGTH * float(np.sin(angle)), -POLE_LENGTH * float(np.cos(angle)))
    first = 0.5 * np.ceil((camera - 1.7) / 0.5)
    marks = [float(first + 0.5 * k - camera) for k in range(8)]
    force = 0.0 if control is None else 0.04 * float(control[0])
    side = 0.15 if force > 0.0 else -0.15
    return [
        Line([(-1.7, -0.12), (1.7, -0.12)], 0.015, GROUND),
        *(Line([(x, -0.12), (x, -0.17)], 0.012, GROUND) for x in marks),
        Disc((-camera, POLE_LENGTH), 0.06, GOAL),
        Area([(at - 0.15, -0.08), (at + 0.15, -0.08), (at + 0.15, 0.06), (at - 0.15, 0.06)], INK),
        *(Disc((at + x, -0.08), 0.04, GROUND) for x in (-0.1, 0.1)),
        Line([(at, 0.0), tip], 0.045, BODY),
        Disc((at, 0.0), 0.03, GROUND),
        *arrow((at + side, 0.0), (at + side + force, 0.0), 0.03),
    ]


FORCES = np.array([-10.0, -5.0, 0.0, 5.0, 10.0])
STARTS = np.zeros((1, 4))
START_SPREAD = np.full(4, 0.1)
AXIS_NAMES = ("position [m]", "speed [m/s]", "angle [rad]", "rate [rad/s]")

SYSTEM = System(
    name="cart-pole",
    summary="swing up and balance a pole on a cart",
    task=Task(
        box=BOX,
        controls=FORCES,
        reward=reward,
        discount=0.98,
        optimistic_value=0.0,
        max_steps=40,
    ),
    step=step,
    outcome=outcome,
    observation_box=OBSERVATION_BOX,
    starts=STARTS,
    start_spread=START_SPREAD,
    axis_names=AXIS_NAMES,
    drawing=Drawing(shapes, *CORNERS, fps=10),
)
