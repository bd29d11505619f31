"""Films: pictures one after another, as GIF (Pillow writes it) or MP4 (where there is an encoder, ffmpeg)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.views.plan_figure import check_target

FORMATS = ("gif", "mp4")
SAMPLES = 12  # pictures that the colours of a GIF are chosen by
ALMOST_WHITE = 246
PAUSE = 1500  # thousandths of a second: the last picture of a GIF stays, before it begins again
SHORTEST = 2  # hundredths of a second: of a GIF's picture that is shown shorter programs make ten

Picture = NDArray[np.uint8]  # [height, width, 3]
Told = Callable[[int, int], None]  # pictures done, and in all


def check_film(file: Path) -> None:
    """Raise ValueError now rather than after the work when a film cannot be written there."""
    check_target(file, FORMATS, "film")
    if file.suffix.lower() == ".mp4":
        encoder()


def encoder() -> str:
    """The program that encodes MP4: the system's, or the one in a package."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        import imageio_ffmpeg  # noqa: PLC0415

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        raise ValueError(
            "An .mp4 must have an encoder, ffmpeg; got none. `pip install 'optimist[video]'` brings one; "
            "a .gif does without."
        ) from None


def write_film(
    file: Path, picture: Callable[[int], Picture], count: int, *, seconds: float, told: Told
) -> None:
    """Pictures 0 to `count` - 1, each shown for so many seconds; written beside and renamed."""
    beside = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    write = _write_mp4 if file.suffix.lower() == ".mp4" else _write_gif
    try:
        write(beside, picture, count, seconds, told)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _write_gif(file: Path, picture: Callable[[int], Picture], count: int, seconds: float, told: Told) -> None:
    from PIL import Image  # noqa: PLC0415

    # one table of colours for all, no dither: what does not move stays the same, and costs nothing
    some = sorted({round(k) for k in np.linspace(0, count - 1, min(SAMPLES, count))})
    sampled = Image.fromarray(np.concatenate([picture(k)[::2, ::2] for k in some]))
    colours = sampled.quantize(250, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    table = np.array(colours.getpalette(), dtype=np.uint8).reshape(-1, 3)
    table[(table >= ALMOST_WHITE).all(axis=1)] = 255  # paper is white
    colours = Image.new("P", (1, 1))
    colours.putpalette(table.tobytes())

    def reduced() -> Iterator[Any]:
        for k in range(count):
            told(k, count)
            yield Image.fromarray(picture(k)).quantize(palette=colours, dither=Image.Dither.NONE)

    frames = reduced()
    shown = 10 * max(round(100.0 * seconds), SHORTEST)  # in thousandths
    shown_for = [shown] * (count - 1) + [max(shown, PAUSE)]
    next(frames).save(
        file, format="GIF", save_all=True, append_images=frames, duration=shown_for, loop=0, optimize=True
    )


def _write_mp4(file: Path, picture: Callable[[int], Picture], count: int, seconds: float, told: Told) -> None:
    height, width = picture(0).shape[:2]
    width, height = width - width % 2, height - height % 2  # as the format wants it
    command = [encoder(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", f"{1.0 / seconds:.6f}", "-i", "-", "-an"]
    command += ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for k in range(count):
                told(k, count)
                process.stdin.write(np.ascontiguousarray(picture(k)[:height, :width]).tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # it says why
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode != 0:
        raise OSError(f"ffmpeg could not write {file.name}: {said or process.returncode}")
