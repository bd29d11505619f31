"""Callbacks with the names and arguments people know from Stable-Baselines3.

`agent.learn(1500, callback=[EvalCallback(env, eval_freq=100), CheckpointCallback(500, "checkpoints")])`.
A plain function of an event is a callback, too (`optimist.runs.Event`). Callbacks of Stable-Baselines3 itself
are told the same, and most of them work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optimist.given import KindError, brief, real, whole
from optimist.runs import Event, Session, Stepped
from optimist.runs.given_environment import environment_of
from optimist.runs.listening import said_no
from optimist.runs.logs import Logger
from optimist.runs.loop import Environment
from optimist.runs.playing import play

EVALUATIONS = "evaluations.npz"
BEST = "best_model.optimist"


class BaseCallback:
    """Something that listens to a run. Override what is to be heard; `_on_step` must say whether to go on."""

    def __init__(self, verbose: int = 0) -> None:
        self.model: Any = None  # the learner
        self.parent: Any = None  # the callback that this one belongs to, if it does
        self.n_calls = 0  # steps that it has heard of
        self.num_timesteps = 0  # the learner's
        self.verbose = verbose
        self.locals: dict[str, Any] = {}
        self.globals: dict[str, Any] = {}

    @property
    def training_env(self) -> Any:
        """The environment that is learned in."""
        return self.model.get_env()

    @property
    def logger(self) -> Logger:
        """Where numbers are logged."""
        logger: Logger = self.model.logger
        return logger

    def init_callback(self, model: Session[Any]) -> None:
        """It belongs to this learner now."""
        self.model = model
        self._init_callback()

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        """Learning begins."""
        self.locals, self.globals = locals_, globals_
        self.num_timesteps = self.model.num_timesteps
        self._on_training_start()

    def update_locals(self, locals_: dict[str, Any]) -> None:
        """What the step brought."""
        self.locals.update(locals_)

    def on_step(self) -> bool:
        """A transition was made; False: enough."""
        self.n_calls += 1
        self.num_timesteps = self.model.num_timesteps
        return self._on_step()

    def on_event(self, event: Event) -> object:
        """Anything that happens, before `on_step`; False: enough."""
        return self._on_event(event)

    def on_training_end(self) -> None:
        """Learning ended; not called when it failed."""
        self._on_training_end()

    def _init_callback(self) -> None:
        """For what needs the learner."""

    def _on_training_start(self) -> None:
        """Before the first step."""

    def _on_step(self) -> bool:
        """After every step: whether to go on."""
        return True

    def _on_event(self, event: Event) -> object:
        """At every event: steps, plans, ends of episodes."""
        return None

    def _on_training_end(self) -> None:
        """After the last step."""


class CallbackList(BaseCallback):
    """Several callbacks as one. A plain list does the same."""

    def __init__(self, callbacks: list[Any]) -> None:
        super().__init__()
        for one in callbacks:
            if not hasattr(one, "init_callback"):
                raise KindError(
                    f"`callbacks` must be callbacks; got {brief(one)}. A plain list takes functions, too."
                )
        self.callbacks = callbacks

    def _init_callback(self) -> None:
        for one in self.callbacks:
            one.init_callback(self.model)
            one.parent = one.parent or self.parent

    def on_training_start(self, locals_: dict[str, Any], globals_: dict[str, Any]) -> None:
        """Learning begins, for all."""
        super().on_training_start(locals_, globals_)
        for one in self.callbacks:
            one.on_training_start(self.locals, self.globals)

    def update_locals(self, locals_: dict[str, Any]) -> None:
        """What the step brought, for all."""
        super().update_locals(locals_)
        for one in self.callbacks:
            one.update_locals(locals_)

    def _on_step(self) -> bool:
        heard = [one.on_step() for one in self.callbacks]  # all are asked
        return all(heard)

    def _on_event(self, event: Event) -> object:
        heard = [one.on_event(event) for one in self.callbacks if hasattr(one, "on_event")]
        return not any(said_no(answer) for answer in heard)

    def _on_training_end(self) -> None:
        for one in self.callbacks:
            one.on_training_end()


class CheckpointCallback(BaseCallback):
    """Saves the agent every `save_freq` steps, as `save_path/name_prefix_N_steps.optimist`.

    A run that is recorded (`GPRMax(..., run=DIR)`) survives anything without this.
    """

    def __init__(
        self, save_freq: int, save_path: str | Path, name_prefix: str = "rl_model", verbose: int = 0
    ) -> None:
        super().__init__(verbose)
        self.save_freq = whole("`save_freq`", save_freq, 1)
        self.save_path, self.name_prefix = Path(save_path), name_prefix

    def _init_callback(self) -> None:
        self.save_path.mkdir(parents=True, exist_ok=True)

    def _on_step(self) -> bool:
        if self.n_calls % self.save_freq == 0:
            file = self.save_path / f"{self.name_prefix}_{self.num_timesteps}_steps.optimist"
            self.model.save(file)
            if self.verbose > 1:
                print(f"  saved: {file}", flush=True)
        return True


class EvalCallback(BaseCallback):
    """Acts on the best that is known, every `eval_freq` steps, in an environment of its own; learns nothing.

    Before the first plan there is nothing to evaluate, and nothing is.

    Args:
        eval_env: where: an environment, its id, or a vector environment of one; not the one learned in.
        callback_on_new_best: told when the mean was the best so far, such as `StopTrainingOnRewardThreshold`.
        callback_after_eval: told after every evaluation.
        n_eval_episodes: episodes of one evaluation. They begin alike every time, as `seed` says.
        eval_freq: steps between evaluations.
        log_path: a folder for `evaluations.npz`: `timesteps` [n], `results` and `ep_lengths`
            [n, n_eval_episodes].
        best_model_save_path: a folder for `best_model.optimist`.
        deterministic: changes nothing; acting on a plan is.
        verbose: 0 says nothing, 1 says how evaluations went.
        seed: of where the episodes begin.

    """

    def __init__(
        self,
        eval_env: Environment | str | Any,
        callback_on_new_best: Any = None,
        callback_after_eval: Any = None,
        n_eval_episodes: int = 5,
        eval_freq: int = 100,
        log_path: str | Path | None = None,
        best_model_save_path: str | Path | None = None,
        deterministic: bool = True,
        verbose: int = 1,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(verbose)
        found = environment_of(eval_env)
        if found is None:
            raise ValueError("`eval_env` must be an environment; got None.")
        self.eval_env = found
        self.callback_on_new_best, self.callback_after_eval = callback_on_new_best, callback_after_eval
        self.n_eval_episodes = whole("`n_eval_episodes`", n_eval_episodes, 1)
        self.eval_freq = whole("`eval_freq`", eval_freq, 1)
        self.log_path = None if log_path is None else Path(log_path)
        self.best_model_save_path = None if best_model_save_path is None else Path(best_model_save_path)
        self.seed = whole("`seed`", seed, 0)
        self.best_mean_reward = self.last_mean_reward = -np.inf
        self.evaluations_timesteps: list[int] = []
        self.evaluations_results: list[list[float]] = []
        self.evaluations_length: list[list[int]] = []

    def _init_callback(self) -> None:
        if self.eval_env is self.model.env:
            raise ValueError(
                "`eval_env` must be an environment of its own; got the one that is learned in, whose episode "
                "would be disturbed."
            )
        for folder in (self.log_path, self.best_model_save_path):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        for child in self._children:
            child.init_callback(self.model)
            child.parent = self

    @property
    def _children(self) -> list[Any]:
        return [one for one in (self.callback_on_new_best, self.callback_after_eval) if one is not None]

    def _on_training_start(self) -> None:
        for child in self._children:
            child.on_training_start(self.locals, self.globals)

    def _on_step(self) -> bool:
        return self.n_calls % self.eval_freq != 0 or not self.model.has_planned or self._evaluate()

    def _evaluate(self) -> bool:
        """Whether to go on."""
        model = self.model
        played = play(self.eval_env, model.task, model.policy, self.n_eval_episodes, seed=self.seed)
        self._note(played.total_rewards.tolist(), played.steps.tolist())
        go_on = True
        if self.last_mean_reward > self.best_mean_reward:
            self.best_mean_reward = self.last_mean_reward
            if self.best_model_save_path is not None:
                model.save(self.best_model_save_path / BEST)
            if self.callback_on_new_best is not None:
                go_on = bool(self.callback_on_new_best.on_step())
        if self.callback_after_eval is not None:
            go_on = bool(self.callback_after_eval.on_step()) and go_on
        return go_on

    def _note(self, totals: list[float], lengths: list[int]) -> None:
        self.last_mean_reward, length = float(np.mean(totals)), float(np.mean(lengths))
        self.evaluations_timesteps.append(self.num_timesteps)
        self.evaluations_results.append(totals)
        self.evaluations_length.append(lengths)
        if self.log_path is not None:
            np.savez(
                self.log_path / EVALUATIONS,
                timesteps=self.evaluations_timesteps,
                results=self.evaluations_results,
                ep_lengths=self.evaluations_length,
            )
        if self.verbose:
            print(
                f"  evaluated after {self.num_timesteps} transitions: total reward "
                f"{self.last_mean_reward:.4g} +/- {np.std(totals):.2g} in {length:.4g} steps",
                flush=True,
            )
        self.logger.record("eval/mean_reward", self.last_mean_reward)
        self.logger.record("eval/mean_ep_length", length)
        self.logger.dump(self.num_timesteps)

    def _on_training_end(self) -> None:
        for child in self._children:
            child.on_training_end()


class StopTrainingOnRewardThreshold(BaseCallback):
    """Stops when it is good enough.

    As `EvalCallback(..., callback_on_new_best=...)`: when an evaluation earned at least `reward_threshold` on
    average. On its own: when an episode that was learned in did.
    """

    def __init__(self, reward_threshold: float, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.reward_threshold = real("`reward_threshold`", reward_threshold)
        if np.isnan(self.reward_threshold):
            raise ValueError("`reward_threshold` must be a number; got nan.")

    def _on_step(self) -> bool:
        if self.parent is None:
            return True
        if not hasattr(self.parent, "best_mean_reward"):
            raise ValueError(f"It must belong to an `EvalCallback`; got {brief(self.parent)}.")
        return self._below(float(self.parent.best_mean_reward))

    def _on_event(self, event: Event) -> object:
        ended = event.ended if isinstance(event, Stepped) else None
        return True if ended is None or self.parent is not None else self._below(ended.total_reward)

    def _below(self, reward: float) -> bool:
        enough = reward >= self.reward_threshold
        if enough and self.verbose:
            print(f"  stopped: {reward:.4g} is at least {self.reward_threshold:.4g}", flush=True)
        return not enough
