"""Order: what is to be made of the paper's results, and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optimist.experiments.campaign import run_campaign
from optimist.experiments.specs import Experiment
from optimist.runs import RunError
from optimist.views.plan_figure import check_target, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")


def _silent(_: str) -> None: ...


@dataclass(frozen=True)
class Order:
    """Which results, from which recorded runs: `optimist.paper.table(Order(Path("out")))`."""

    out: Path  # where tables and figures go
    results: Path = Path("results")  # where runs are recorded
    quick: bool = False  # fewer seeds and episodes: some minutes
    seed: int = 0  # the run that figure 5 shows
    run: Callable[[Experiment, Path], None] | None = None  # how to run what is missing; None: on this machine
    say: Callable[[str], None] = _silent  # hears what is being done

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out))
        if self.seed < 0:
            raise ValueError(f"`seed` must not be negative; got {self.seed}.")
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"`out` must be a directory; got {self.out}: {error.strerror}.") from error

    def run_missing(self, experiment: Experiment) -> None:
        """Run what is not recorded yet."""
        (self.run or _run_here)(experiment, self.results)

    def written(self, name: str, text: str) -> Path:
        """A table, as Markdown."""
        file = (self.out / name).with_suffix(".md")
        file.write_text(text, encoding="utf-8")
        return file

    def saved(self, name: str, figure: Figure) -> list[Path]:
        """A figure, in every format."""
        files = [(self.out / name).with_suffix(f".{suffix}") for suffix in FORMATS]
        for file in files:
            save_figure(figure, file)
        return files

    def require_plots(self) -> None:
        """Raise ValueError now rather than after the work when there can be no figures."""
        check_target(self.out / "figure.png")

    def named(self, name: str) -> str:
        """What a quick result is called beside a full one."""
        return f"{name}-quick" if self.quick else name


def _run_here(experiment: Experiment, results: Path) -> None:
    failed = [outcome for outcome in run_campaign(experiment.specs(), results) if outcome.status == "failed"]
    if failed:
        raise RunError(f"{len(failed)} runs failed, the first of them {failed[0].id}: {failed[0].error}")
