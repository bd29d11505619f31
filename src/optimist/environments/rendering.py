"""Pixels of a drawing, and a window to show them in. Pillow and pygame are loaded when asked for."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.arrays import FloatArray
from optimist.systems.drawing import Disc, Drawing, Line, Shape

Picture = NDArray[np.uint8]  # [height, width, 3]

WIDTH = 480  # pixels
FINER = 3  # drawn so many times larger, then reduced: edges are smooth
PAPER = "#ffffff"


@cache
def pillow() -> ModuleType:
    """PIL, with what is drawn with; a ValueError that says what to do without it."""
    try:
        import PIL.Image  # noqa: PLC0415
        import PIL.ImageDraw  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "Rendering must have Pillow; got none. `pip install 'optimist[plots]'` installs it."
        ) from None
    return PIL


def picture_of(drawing: Drawing, place: FloatArray, push: FloatArray | None = None) -> Picture:
    """A system at a place [d], with a control [k] acting on it or none.  [height, width, 3]"""
    pil = pillow()
    low, high = np.array(drawing.low), np.array(drawing.high)
    scale = FINER * WIDTH / (high - low)[0]
    size = (FINER * WIDTH, FINER * round((high - low)[1] * scale / FINER))
    canvas = pil.Image.new("RGB", size, PAPER)
    pencil = pil.ImageDraw.Draw(canvas)
    for shape in drawing.shapes(place, push):
        _draw(pencil, shape, scale, (low[0], high[1]))
    small = canvas.resize((size[0] // FINER, size[1] // FINER), pil.Image.Resampling.BOX)
    return np.asarray(small, dtype=np.uint8).copy()


def _draw(pencil: Any, shape: Shape, scale: float, corner: tuple[float, float]) -> None:
    def pixel(point: tuple[float, float]) -> tuple[float, float]:
        return float((point[0] - corner[0]) * scale), float((corner[1] - point[1]) * scale)

    if isinstance(shape, Disc):
        _dot(pencil, pixel(shape.centre), shape.radius * scale, shape.colour)
    elif isinstance(shape, Line):
        points, width = [pixel(point) for point in shape.points], shape.width * scale
        pencil.line(points, fill=shape.colour, width=max(round(width), 1), joint="curve")
        for end in (points[0], points[-1]):
            _dot(pencil, end, 0.5 * width, shape.colour)
    else:
        pencil.polygon([pixel(point) for point in shape.points], fill=shape.colour)


def _dot(pencil: Any, centre: tuple[float, float], radius: float, colour: str) -> None:
    x, y = centre
    pencil.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


class Window:
    """A window on the screen; a ValueError when there is nothing to make one with, or no screen."""

    def __init__(self, title: str) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # standard output is not its own
        try:
            import pygame  # noqa: PLC0415
        except ImportError:
            raise ValueError(
                "`render_mode` 'human' must have pygame; got none. `pip install 'optimist[window]'` installs "
                "it; 'rgb_array' does without."
            ) from None
        self._pygame, self._title = pygame, title
        self._surface: Any = None  # until the first picture
        self._clock = pygame.time.Clock()

    def show(self, picture: Picture, fps: float) -> None:
        """Show a picture, and wait until it is time for the next."""
        pygame = self._pygame
        if self._surface is None:
            self._surface = self._opened((picture.shape[1], picture.shape[0]))
        surface = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._surface.blit(surface, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(fps)

    def _opened(self, size: tuple[int, int]) -> Any:
        pygame = self._pygame
        try:
            pygame.display.init()
            wanted = os.environ.get("SDL_VIDEODRIVER", os.environ.get("SDL_VIDEO_DRIVER"))
            if pygame.display.get_driver() in ("offscreen", "dummy") and not wanted:
                raise pygame.error("no screen was found")
            surface = pygame.display.set_mode(size)
        except pygame.error as error:
            pygame.display.quit()
            raise ValueError(
                f"`render_mode` 'human' must have a screen; got none: {error}. 'rgb_array' does without."
            ) from None
        pygame.display.set_caption(self._title)
        return surface

    def close(self) -> None:
        """Close it; once is enough, more does no harm."""
        if self._surface is not None:
            self._pygame.display.quit()
            self._surface = None
