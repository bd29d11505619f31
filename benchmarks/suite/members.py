"""The members of the suite: each environment, and what its owner says of it. Nothing else is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import optimist
from benchmarks.suite import (
    air_table,
    ball_and_beam,
    double_integrator,
    dubins_car,
    furuta_pendulum,
    magnetic_levitation,
    parking_car,
    planar_quadrotor,
    reaction_wheel,
    stirred_tank,
)

Env = gymnasium.Env[Any, Any]


def make_double_integrator() -> Env:
    return optimist.adapt(
        double_integrator.DoubleIntegrator(),
        low=[-5.0, -3.0],
        high=[5.0, 3.0],
        controls=double_integrator.CONTROLS,
        reward=double_integrator.reward,
        is_terminal=double_integrator.is_terminal,
        discount=1.0,
        max_steps=100,
        dynamics=double_integrator.dynamics,
    )


def make_magnetic_levitation() -> Env:
    return optimist.adapt(
        magnetic_levitation.MagneticLevitation(),
        low=[0.004, -1.0],
        high=[0.02, 1.0],
        controls=magnetic_levitation.CONTROLS,
        reward=magnetic_levitation.reward,
        discount=0.97,
        max_steps=100,
        dynamics=magnetic_levitation.dynamics,
    )


def make_dubins_car() -> Env:
    return optimist.adapt(
        dubins_car.DubinsCar(),
        low=[-5.3, -5.3, -np.pi],
        high=[5.3, 5.3, np.pi],
        periodic=[False, False, True],
        controls=dubins_car.CONTROLS,
        reward=dubins_car.reward,
        is_terminal=dubins_car.is_terminal,
        discount=1.0,
        max_steps=150,
        dynamics=dubins_car.dynamics,
    )


def make_stirred_tank() -> Env:
    return optimist.adapt(
        stirred_tank.StirredTank(),
        low=[0.0, 300.0, 270.0],
        high=[1.0, 480.0, 330.0],
        controls=stirred_tank.CONTROLS,
        reward=stirred_tank.reward,
        discount=0.97,
        max_steps=80,
        dynamics=stirred_tank.dynamics,
    )


def make_reaction_wheel() -> Env:
    return optimist.adapt(
        reaction_wheel.ReactionWheel(),
        low=[-np.pi, -15.0, -500.0],
        high=[np.pi, 15.0, 500.0],
        periodic=[True, False, False],
        controls=reaction_wheel.CONTROLS,
        reward=reaction_wheel.reward,
        discount=0.99,
        max_steps=150,
        dynamics=reaction_wheel.dynamics,
    )


def make_furuta_pendulum() -> Env:
    return optimist.adapt(
        furuta_pendulum.FurutaPendulum(),
        low=[-np.pi, -15.0, -np.pi, -20.0],
        high=[np.pi, 15.0, np.pi, 20.0],
        periodic=[True, False, True, False],
        controls=furuta_pendulum.CONTROLS,
        reward=furuta_pendulum.reward,
        discount=0.98,
        max_steps=100,
        dynamics=furuta_pendulum.dynamics,
    )


def make_ball_and_beam() -> Env:
    return optimist.adapt(
        ball_and_beam.BallAndBeam(),
        low=[-0.6, -2.0, -1.0, -6.0],
        high=[0.6, 2.0, 1.0, 6.0],
        controls=ball_and_beam.CONTROLS,
        reward=ball_and_beam.reward,
        is_terminal=ball_and_beam.is_terminal,
        discount=0.98,
        max_steps=100,
        dynamics=ball_and_beam.dynamics,
    )


def make_air_table() -> Env:
    return optimist.adapt(
        air_table.AirTable(),
        low=[-1.2, -1.2, -2.5, -2.5],
        high=[1.2, 1.2, 2.5, 2.5],
        controls=air_table.CONTROLS,
        reward=air_table.reward,
        is_terminal=air_table.is_terminal,
        discount=1.0,
        max_steps=80,
        dynamics=air_table.dynamics,
    )


def make_parking_car() -> Env:
    return optimist.adapt(
        parking_car.ParkingCar(),
        low=[-5.0, -3.0, -np.pi, -1.5, -0.6],
        high=[5.0, 3.0, np.pi, 1.5, 0.6],
        periodic=[False, False, True, False, False],
        controls=parking_car.CONTROLS,
        reward=parking_car.reward,
        discount=0.97,
        max_steps=60,
        dynamics=parking_car.dynamics,
    )


def make_planar_quadrotor() -> Env:
    return optimist.adapt(
        planar_quadrotor.PlanarQuadrotor(),
        low=[-2.0, -2.0, -1.0, -3.0, -3.0, -5.0],
        high=[2.0, 2.0, 1.0, 3.0, 3.0, 5.0],
        controls=planar_quadrotor.CONTROLS,
        reward=planar_quadrotor.reward,
        is_terminal=planar_quadrotor.is_terminal,
        discount=0.97,
        max_steps=60,
        dynamics=planar_quadrotor.dynamics,
    )


MEMBERS: dict[str, Callable[[], Env]] = {
    "double-integrator": make_double_integrator,
    "magnetic-levitation": make_magnetic_levitation,
    "dubins-car": make_dubins_car,
    "stirred-tank": make_stirred_tank,
    "reaction-wheel": make_reaction_wheel,
    "furuta-pendulum": make_furuta_pendulum,
    "ball-and-beam": make_ball_and_beam,
    "air-table": make_air_table,
    "parking-car": make_parking_car,
    "planar-quadrotor": make_planar_quadrotor,
}
