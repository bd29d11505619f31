"""`optimist plan`: results, pictures, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Say, SayJson, require_refused, run
from tests.quick import short_episodes

CONTRACT = {
    "problem", "nodes", "n_nodes", "sweeps", "converged", "residual", "total_reward", "steps", "seconds",
    "rollouts", "layout", "tried", "expected", "hold", "until_crossed", "mean_hold", "lookahead",
}  # fmt: skip


def test_mountain_car_takes_103_steps_and_json_has_the_contract_keys(say_json: SayJson) -> None:
    result = say_json("plan", "mountain-car", "--nodes", "100,100")
    assert set(result) >= CONTRACT
    assert "spacing" not in result  # the nodes lie where they were placed
    assert result["nodes"] == [100, 100]
    assert result["n_nodes"] == 10_000
    assert result["converged"]
    assert result["residual"] <= 1e-4
    assert (result["steps"], result["total_reward"]) == (103, -103.0)
    assert result["rollouts"][0]["terminated"]


def test_what_is_not_fixed_is_tried_out_and_the_best_is_kept(say_json: SayJson) -> None:
    result = say_json("plan", "mountain-car")
    assert set(result) >= CONTRACT
    assert result["n_nodes"] <= 3 * 101**2
    tried = result["tried"]
    assert len(tried) > 5
    assert tried[0][0] == "uniform"
    assert [result["layout"], result["expected"]] in tried
    totals = [total for _, total in tried]
    assert totals[0] <= result["expected"] <= max(totals)
    assert (result["steps"], result["total_reward"]) == (103, -103.0)


def test_what_was_tried_out_is_told(say: Say) -> None:
    with short_episodes(60):
        code, out, err = say("plan", "pendulum", "--budget", "200", "--lookahead", "1")
    assert (code, err) == (0, "")
    assert "  tried out: uniform, looking 1 ahead -" in out
    assert ", closely placed, looking 1 ahead -" in out


def test_a_budget_bounds_the_nodes(say_json: SayJson) -> None:
    result = say_json("plan", "bicycle", "--budget", "700", "--hold", "1", "--lookahead", "0")
    assert max(result["nodes"]) <= 101
    assert result["n_nodes"] <= 3 * 700 * 1.3  # for a last polish, and counts are whole
    assert result["tried"][-1][0].endswith(", polished")
    assert (result["hold"], result["lookahead"]) == (1, 0)


def test_the_headline_is_the_worst_of_the_starts(say_json: SayJson) -> None:
    result = say_json("plan", "bicycle", "--nodes", "6,6,6,6", "--hold", "1", "--lookahead", "0")
    assert len(result["rollouts"]) == 2
    assert result["total_reward"] == min(episode["total_reward"] for episode in result["rollouts"])


def test_certificate_nearby_starts_and_options_are_reported(say_json: SayJson) -> None:
    result = say_json(
        "plan", "pendulum", "--nodes", "21,21", "--spacing", "1,1.5", "--backup", "eq7-exact",
        "--tolerance", "1e-3", "--max-sweeps", "5000", "--certify", "--nearby", "3", "--hold", "2",
        "--lookahead", "1",
    )  # fmt: skip
    assert result["tried"] == [["spaced, 2 steps held, looking 1 ahead", result["expected"]]]
    assert result["layout"] == result["tried"][0][0]
    assert (result["until_crossed"], result["mean_hold"]) == (False, 2.0)
    assert (result["backup"], result["hold"], result["lookahead"]) == ("eq7-exact", 2, 1)
    certificate = result["certificate"]
    assert 0.0 < certificate["lower"] <= certificate["residual"] < certificate["upper"]
    assert len(result["nearby"]["rollouts"]) == 3
    rewards = [episode["total_reward"] for episode in result["nearby"]["rollouts"]]
    assert result["nearby"]["worst"] == min(rewards)


def test_no_upper_bound_is_null_with_discount_1(say_json: SayJson) -> None:
    result = say_json("plan", "acrobot", "--nodes", "7,7,7,7", "--lookahead", "0", "--hold", "1", "--certify")
    assert result["certificate"]["upper"] is None


def test_uniform_spacing_and_the_papers_recipe_agree(say_json: SayJson) -> None:
    ours = say_json("plan", "bicycle", "--nodes", "5,5,5,5", "--spacing", "uniform", "--hold", "1",
                    "--lookahead", "0")  # fmt: skip
    paper = say_json("plan", "bicycle", "--recipe", "paper", "--nodes", "5,5,5,5")
    assert ours["total_reward"] == paper["total_reward"]
    assert ours["layout"] == paper["layout"] == "uniform, single steps, looking 0 ahead"


def test_not_converging_is_told_not_failed(say: Say) -> None:
    code, out, err = say("plan", "mountain-car", "--nodes", "20,20", "--max-sweeps", "3", "--lookahead", "1")
    assert (code, err) == (0, "")
    assert "NOT converged" in out


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_picture_is_written_whole(tmp_path: Path, suffix: str, say_json: SayJson) -> None:
    file = tmp_path / f"plan.{suffix}"
    result = say_json("plan", "mountain-car", "--nodes", "20,20", "--lookahead", "0", "--plot", str(file))
    assert result["plot"] == str(file)
    magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert file.read_bytes().startswith(magic)
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_slice_of_a_4d_system_is_drawn(tmp_path: Path, say_json: SayJson) -> None:
    file = tmp_path / "slice.png"
    say_json(
        "plan", "acrobot", "--nodes", "5,5,5,5", "--lookahead", "0", "--plot", str(file), "--axes", "0,2"
    )
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["plan", "moon-lander"],
            "must be one of mountain-car, pendulum, bicycle, acrobot, cart-pole, cart-pole-rail, "
            "pendulum-continuous, cart-pole-continuous, an id that Gymnasium knows, or your own as "
            "FILE.py:FUNCTION; got 'moon-lander'",
        ),
        (["plan", "mountain-car", "--nodes", "100"], "--nodes must be one whole number per axis (2)"),
        (["plan", "mountain-car", "--nodes", "100,1"], "--nodes must be at least 2 on every axis; got 100,1"),
        (
            ["plan", "acrobot", "--budget", "20"],
            "`grid.budget` must be at least 81, three nodes",
        ),
        (["plan", "mountain-car", "--budget", "8"], "`grid.budget` must be at least 9"),
        (["plan", "mountain-car", "--budget", "0"], "--budget must be at least 1; got 0"),
        (["plan", "mountain-car", "--nodes", "a,b"], "--nodes must be one whole number per axis (2)"),
        (["plan", "mountain-car", "--nodes", "10.5,10"], "--nodes must be one whole number per axis (2)"),
        (["plan", "bicycle", "--spacing", "1,2"], "--spacing must be one number per axis (4)"),
        (["plan", "bicycle", "--spacing", "1,2,0,1"], "--spacing must be positive"),
        (["plan", "bicycle", "--spacing", "1,2,nan,1"], "--spacing must be one number per axis (4)"),
        (["plan", "mountain-car", "--backup", "eq8"], "--backup must be one of v-exact"),
        (["plan", "mountain-car", "--tolerance", "0"], "`tolerance` must be positive; got 0.0"),
        (["plan", "mountain-car", "--max-sweeps", "0"], "`max_sweeps` must be at least 1; got 0"),
        (["plan", "mountain-car", "--recipe", "fine"], "--recipe must be one of ours, paper"),
        (["plan", "mountain-car", "--hold", "0"], "--hold must be at least 1; got 0"),
        (["plan", "mountain-car", "--lookahead", "-1"], "--lookahead must be at least 0; got -1"),
        (["plan", "mountain-car", "--nearby", "-2"], "--nearby must be at least 0; got -2"),
        (["plan", "mountain-car", "--axes", "0,2"], "--axes must be two different axes from 0 to 1"),
        (["plan", "mountain-car", "--plot", "plan.bmp"], "must end in .png, .pdf, .svg; got 'plan.bmp'"),
        (["plan", "mountain-car", "--plot", "nowhere/plan.png"], "directory that exists; got nowhere"),
        (["plan", "acrobot", "--nodes", "200,200,200,200"], "must fit in memory"),
        (["plan", "acrobot", "--nodes", "900,900,900,900"], "must fit in memory"),
        (["plan", "mountain-car", "--nodes", "1000000000,2"], "must fit in memory"),
        (["plan", "mountain-car", "--nodes", "500000000,2"], "must fit in memory"),
        (["plan", "mountain-car", "--nodes", "9" * 400 + ",2"], "--nodes must be one whole number per axis"),
        (["plan", "acrobot", "--lookahead", "24"], "from 1 to 18 steps with 2 actions"),
        (
            ["plan", "mountain-car", "--hold", "100000"],
            "`hold` must be a whole number from 1 to 500; got",
        ),
        (["plan", "mountain-car", "--tolerance", "inf"], "`tolerance` must be positive; got inf"),
        (["plan", "mountain-car", "--spacing", "2000,1"], "must be increasing"),
    ],
)
def test_bad_input_gets_one_clear_sentence_and_exit_code_2(
    arguments: list[str], says: str, tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = say(*arguments)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_no_traceback_in_a_process_of_its_own_either(tmp_path: Path) -> None:
    ran = run("plan", "mountain-car", "--nodes", "100", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("optimist: --nodes must be one whole number per axis (2)")
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_grid_too_large_is_told_the_size_that_fits(say: Say) -> None:
    _, _, err = say("plan", "acrobot", "--nodes", "200,200,200,200")
    fitting = err.rsplit("available. ", 1)[1].split(" nodes would fit")[0]
    counts = [int(count) for count in fitting.split(",")]
    assert len(counts) == 4
    assert all(2 <= count < 200 for count in counts)


def test_a_problem_of_one_axis_is_planned(tmp_path: Path) -> None:
    (tmp_path / "line.py").write_text(
        "import gymnasium, numpy as np, optimist\n"
        "print('hello from the file')\n"
        "class Line(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)\n"
        "    action_space = gymnasium.spaces.Discrete(3)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        self.x = self.np_random.uniform(-1.0, 1.0, 1)\n"
        "        return self.x.copy(), {}\n"
        "    def step(self, action):\n"
        "        paid, self.x = -float(self.x[0] ** 2), np.clip(self.x + 0.1 * (action - 1), -1.0, 1.0)\n"
        "        return self.x.copy(), paid, False, False, {}\n"
        "def make():\n"
        "    return optimist.adapt(\n"
        "        Line(), controls=[-1, 0, 1], reward=lambda s, u, n: -s[:, 0] ** 2, max_steps=20,\n"
        "        dynamics=lambda s, u: np.clip(s + 0.1 * u, -1.0, 1.0),\n"
        "    )\n"
    )
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "optimist", "plan", f"{tmp_path / 'line.py'}:make", "--json"),
            *("--plot", str(tmp_path / "line.png")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    planned = json.loads(ran.stdout)  # what the file prints goes to standard error
    assert "hello from the file" in ran.stderr
    assert planned["converged"]
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")  # a curve: there is but one axis
    assert planned["lookahead"] >= 1


def test_noise_is_planned_for_and_played_with(say_json: SayJson) -> None:
    how = "--nodes", "41,41", "--spacing", "uniform", "--hold", "1", "--lookahead", "0"
    result = say_json("plan", "pendulum", *how, "--noise", "0.05")
    noisy = result["noise"]
    assert noisy["episodes"] == 200
    assert len(noisy["deviations"]) == 2
    assert noisy["spread"] > 0.0
    assert -30.0 < noisy["total_reward"] < -15.0


def test_noise_of_zero_is_no_noise(say_json: SayJson) -> None:
    how = "plan", "mountain-car", "--nodes", "31,31", "--hold", "1", "--lookahead", "0"
    clean, zero, hardly = (say_json(*how, *noise) for noise in ([], ["--noise", "0"], ["--noise", "1e-12"]))
    for unlike in (clean, zero, hardly):
        unlike.pop("seconds")
    assert clean == zero == hardly


@pytest.mark.parametrize("noise", ["-0.1", "much", "0.1,0.1,0.1", "nan"])
def test_noise_that_is_none_is_refused(noise: str, say: Say) -> None:
    assert "--noise must" in require_refused(say("plan", "pendulum", "--noise", noise))


def test_noise_that_cannot_be_is_said_as_it_was_typed(say: Say) -> None:
    assert "(2); got 'inf'" in require_refused(say("plan", "pendulum", "--noise", "inf"))


def test_a_number_of_threads_that_is_none_is_refused() -> None:
    ran = run("plan", "pendulum", "--nodes", "9,9", env={"OPTIMIST_THREADS": "two"})
    told = require_refused((ran.returncode, ran.stdout, ran.stderr))
    assert "OPTIMIST_THREADS must be a whole number above 0, or be left out; got 'two'" in told
