"""Films, read back by other programs: every picture is there, in order, for as long as it shall be shown."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from optimist.views.film import PAUSE, Picture, check_film, encoder, write_film

COLOURS = np.array([[255, 255, 255], [213, 94, 0], [0, 114, 178], [0, 158, 115], [0, 0, 0]], dtype=np.uint8)


def picture(k: int) -> Picture:
    """A square that moves to the right on white paper, and changes its colour."""
    made = np.full((41, 61, 3), 255, dtype=np.uint8)
    made[10:20, 4 * k : 4 * k + 8] = COLOURS[1 + k % 4]
    return made


def write(file: Path, count: int = 9, seconds: float = 0.1) -> list[tuple[int, int]]:
    heard: list[tuple[int, int]] = []
    write_film(file, picture, count, seconds=seconds, told=lambda done, total: heard.append((done, total)))
    return heard


def test_a_gif_shows_every_picture_and_tells_how_far_it_is(tmp_path: Path) -> None:
    heard = write(tmp_path / "film.gif")
    assert heard == [(k, 9) for k in range(9)]
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 9  # type: ignore[attr-defined]
        assert film.info["loop"] == 0  # for ever
        for k in range(9):
            film.seek(k)
            shown = np.asarray(film.convert("RGB"), dtype=int)
            np.testing.assert_array_equal(shown, picture(k))  # few colours: all of them are kept
            assert film.info["duration"] == (100 if k < 8 else PAUSE)
    assert [file.name for file in tmp_path.iterdir()] == ["film.gif"]


def test_what_does_not_move_costs_nothing(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    noise = stream.integers(0, 256, (120, 160, 3), dtype=np.uint8)
    moved = [noise.copy() for _ in range(20)]
    for k, one in enumerate(moved):
        one[0, k] = 255 - one[0, k]
    write_film(tmp_path / "one.gif", lambda k: noise, 1, seconds=0.1, told=lambda done, total: None)
    write_film(tmp_path / "many.gif", moved.__getitem__, 20, seconds=0.1, told=lambda done, total: None)
    size_of_one, size_of_many = ((tmp_path / name).stat().st_size for name in ("one.gif", "many.gif"))
    assert size_of_many < 2.0 * size_of_one  # each has a table of colours


def test_an_mp4_shows_every_picture(tmp_path: Path) -> None:
    try:
        program = encoder()
    except ValueError:
        pytest.skip("no ffmpeg")
    write(tmp_path / "film.mp4", seconds=0.05)
    read = [program, "-loglevel", "error", "-i", str(tmp_path / "film.mp4"), "-f", "rawvideo"]
    ran = subprocess.run([*read, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    shown = np.frombuffer(ran.stdout, dtype=np.uint8).reshape(-1, 40, 60, 3).astype(int)  # even sizes
    assert len(shown) == 9
    for k in range(9):
        middle = shown[k, 15, 4 * k + 4]
        assert np.abs(middle - COLOURS[1 + k % 4]).max() < 60  # colours are stored coarsely
        assert shown[k, 35, 30].min() > 245
    told = subprocess.run([program, "-i", str(tmp_path / "film.mp4")], capture_output=True, text=True)  # noqa: PLW1510
    assert re.search(r"\b20 fps\b", told.stderr)


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_a_film_that_fails_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"before")

    def fails(k: int) -> Picture:
        if k > 3:
            raise KeyError(k)
        return picture(k)

    with pytest.raises(KeyError):
        write_film(tmp_path / name, fails, 5, seconds=0.1, told=lambda done, total: None)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"before"


def test_without_an_encoder_an_mp4_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ValueError, match=r"must have an encoder, ffmpeg; got none.*optimist\[video\]"):
        check_film(tmp_path / "film.mp4")
    check_film(tmp_path / "film.gif")


def test_places_that_cannot_be_written_to_are_refused(tmp_path: Path) -> None:
    (tmp_path / "film.gif").mkdir()
    for name, said in (
        ("film.avi", r"must end in \.gif, \.mp4; got 'film\.avi'"),
        ("film.gif", "is a directory"),
        ("nowhere/film.gif", "directory that exists"),
    ):
        with pytest.raises(ValueError, match=said):
            check_film(tmp_path / name)
