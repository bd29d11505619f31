"""`optimist report`: what a run learned, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optimist.cli.check import named
from optimist.cli.output import print_json, progress
from optimist.cli.problems import AsJson

DIRECTORY = "The directory of a run, or of many (a sweep's)."
OUT = "Where to write it (.html); by default the name of the directory, here."
PICTURE = "Also write what was learned as a picture to FILE."


def report(
    run: Annotated[str, typer.Argument(metavar="DIR", help=DIRECTORY)],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT, show_default=False)] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help=PICTURE)] = None,
    pdf: Annotated[Path | None, typer.Option(metavar="FILE", help=PICTURE)] = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML file that shows what happened: the page of `optimist watch`, without network."""
    from optimist.views.page.report import require_target, write_report  # noqa: PLC0415
    from optimist.views.plan_figure import check_target, save_figure  # noqa: PLC0415

    directory = named(run, "DIR")
    file = out if out is not None else Path(f"{directory.resolve().name}.html")
    require_target(file)
    pictures = {suffix: chosen for suffix, chosen in (("png", png), ("pdf", pdf)) if chosen is not None}
    for suffix, chosen in pictures.items():
        check_target(chosen)
        if chosen.suffix.lower() != f".{suffix}":
            raise ValueError(f"--{suffix} must end in .{suffix}; got {chosen.name!r}.")
    with progress(f"reporting {run}"):
        data = write_report(directory, file)
        if pictures:
            from optimist.views.report_figure import draw_report  # noqa: PLC0415

            figure = draw_report(data)
            for chosen in pictures.values():
                save_figure(figure, chosen)
    if as_json:
        print_json({"file": str(file)} | {suffix: str(chosen) for suffix, chosen in pictures.items()})
        return
    print(f"{run}: {file} ({file.stat().st_size / 1e6:.1f} MB)")
    for chosen in pictures.values():
        print(f"  picture: {chosen}")
