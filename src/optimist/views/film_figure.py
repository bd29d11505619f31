"""The pictures of a film: the system, beside it the value function and what is not known, with the path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optimist.runs import Session
from optimist.views.knowledge import Episode, Maps
from optimist.views.path_figure import draw_coordinates, pen_lifted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Picture = NDArray[np.uint8]  # [height, width, 3]

HEIGHT, WIDTH, MAP_WIDTH = 3.2, 3.9, 3.5  # inches
DPI = 100
NOW, SEEN = "#d55e00", "#d55e00"


@dataclass(frozen=True, eq=False)
class Scene:
    """An episode, and what was known at the steps of it that are shown."""

    run: Session[Any]
    episode: Episode
    steps: list[int]  # one for every picture
    names: tuple[str, ...]  # [d]
    axes: tuple[int, int] | None  # of the maps
    maps: list[Maps]  # one for every picture; none without axes

    @property
    def panels(self) -> list[str]:
        """Which maps there are."""
        found = []
        if any(known.values is not None for known in self.maps):
            found.append("values")
        if any(known.unknown is not None for known in self.maps):
            found.append("unknown")
        return found

    @property
    def limits(self) -> tuple[float, float]:
        """Of the value function, through the whole film."""
        values = [known.values for known in self.maps if known.values is not None]
        low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
        return low, max(high, low + 1e-9)


class Stage:
    """Draws what stays once, and what moves for every picture."""

    def __init__(self, scene: Scene, pictures: Callable[[int], Picture] | None) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415

        self.scene, self.pictures = scene, pictures
        widths = [WIDTH, *(MAP_WIDTH for _ in scene.panels)]
        self.figure = Figure(figsize=(sum(widths), HEIGHT), dpi=DPI, layout="constrained")
        self.canvas = FigureCanvasAgg(self.figure)
        self.drawn: dict[str, Axes] = self.figure.subplot_mosaic(
            [["system", *scene.panels]], width_ratios=widths
        )
        self.figure.suptitle(self._title(), fontsize=10)
        self.moving: list[tuple[Axes, Artist]] = []
        self._set_system(self.drawn["system"])
        for name in scene.panels:
            self._set_map(name, self.drawn[name])
        self.canvas.draw()  # type: ignore[no-untyped-call]
        self.figure.set_layout_engine("none")  # from here on all stays where it is
        self.still = self.canvas.copy_from_bbox(self.figure.bbox)  # type: ignore[no-untyped-call]

    def _title(self) -> str:
        scene, row = self.scene, self.scene.episode.row
        said = f"{scene.run.problem}, episode {row.episode}, seed {scene.run.seed}"
        others = len(scene.names) > 2 and scene.panels
        return f"{said}; maps: the other axes as they are at this moment" if others else said

    def _moves(self, panel: Axes, artist: Artist) -> Any:
        artist.set_animated(True)
        artist.set_in_layout(False)
        self.moving.append((panel, artist))
        return artist

    def _set_system(self, panel: Axes) -> None:
        if self.pictures is None:
            path = self.scene.episode.states
            draw_coordinates(panel, self.scene.run.box, path, self.scene.names, " ")
            self.cursor = self._moves(panel, panel.axvline(0.0, color=NOW, linewidth=1.5))
        else:
            self.system = self._moves(panel, panel.imshow(self.pictures(0), interpolation="antialiased"))
            panel.set_axis_off()
            panel.set_title(" ", fontsize=10)
        told = panel.text(0.5, 1.03, "", transform=panel.transAxes, ha="center", fontsize=9)
        self.told = self._moves(panel, told)

    def _set_map(self, name: str, panel: Axes) -> None:
        scene, box = self.scene, self.scene.run.box
        assert scene.axes is not None
        first, second = scene.axes
        edges = (box.low[first], box.high[first], box.low[second], box.high[second])
        colours, limits = ("viridis", scene.limits) if name == "values" else ("gray", (0.0, 1.0))
        blank = np.zeros((2, 2))
        image = panel.imshow(
            blank, extent=edges, origin="lower", aspect="auto", cmap=colours, interpolation="nearest"
        )
        image.set_clim(*limits)
        self.figure.colorbar(image, ax=panel).ax.tick_params(labelsize=8)
        self._moves(panel, image)
        if name == "unknown":
            self._moves(panel, panel.plot([], [], ".", color=SEEN, markersize=2.5)[0])
        for colour, width in (("black", 2.2), ("white", 1.1)):
            self._moves(panel, panel.plot([], [], color=colour, linewidth=width)[0])
        for spine in panel.spines.values():
            self._moves(panel, spine)
        point = panel.plot([], [], "o", color=NOW, markeredgecolor="black", markersize=7, clip_on=False)[0]
        self._moves(panel, point)
        none = panel.text(0.5, 0.85, "", transform=panel.transAxes, ha="center", color="black")
        self._moves(panel, none)
        panel.set_xlim(*edges[:2])
        panel.set_ylim(*edges[2:])
        panel.set_xlabel(scene.names[first], fontsize=9)
        panel.set_ylabel(scene.names[second], fontsize=9)
        panel.tick_params(labelsize=8)
        title = "value function" if name == "values" else "what it does not know"
        panel.set_title(title, fontsize=9)

    def picture(self, k: int) -> Picture:
        """The k-th.  [height, width, 3]"""
        episode, step = self.scene.episode, self.scene.steps[k]
        earned = float(episode.rewards[:step].sum())
        self.told.set_text(f"step {step} of {len(episode.actions)}, total reward {earned:.4g}")
        if self.pictures is None:
            self.cursor.set_xdata([step, step])
        else:
            self.system.set_data(self.pictures(k))
        for name in self.scene.panels:
            self._move_map(name, k)
        self.canvas.restore_region(self.still)  # type: ignore[no-untyped-call]
        for panel, artist in self.moving:
            panel.draw_artist(artist)
        pixels: Any = self.canvas.buffer_rgba()  # type: ignore[no-untyped-call]
        return np.asarray(pixels)[..., :3].copy()

    def _move_map(self, name: str, k: int) -> None:
        scene, step, panel = self.scene, self.scene.steps[k], self.drawn[name]
        assert scene.axes is not None
        chosen = list(scene.axes)
        found = scene.maps[k].values if name == "values" else scene.maps[k].unknown
        (image,) = panel.images
        image.set_visible(found is not None)
        image.set_data(np.zeros((2, 2)) if found is None else found)
        panel.texts[0].set_text("no plan yet" if found is None else "")
        path = scene.episode.states[: step + 1][:, chosen]
        lifted = pen_lifted(path, 0.5 * scene.run.box.widths[chosen])
        *samples, below, above, point = panel.lines
        if samples:
            seen = scene.run.transitions.states[: scene.episode.first + step][:, chosen]
            samples[0].set_data(*seen.T)
        for line in (below, above):
            line.set_data(*lifted.T)
        point.set_data(path[-1:, 0], path[-1:, 1])
