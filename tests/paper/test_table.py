"""The table of best possible performances."""

from __future__ import annotations

from optimist.paper.table import BestRow, best_possible, best_total, table_as_markdown
from optimist.systems import SYSTEMS


def test_the_best_possible_of_mountain_car_is_the_papers() -> None:
    row = best_possible("mountain-car")
    assert (row.paper, row.paper_grid, row.ours) == (-103.0, -103.0, -103.0)
    assert -110.0 < row.nearby < -90.0
    assert best_total("mountain-car") == row.ours


def test_the_table_has_a_line_for_every_problem() -> None:
    rows = [
        BestRow("pendulum", SYSTEMS["pendulum"].paper_best, -17.9, -17.78, -17.94),
        BestRow("bicycle", SYSTEMS["bicycle"].paper_best, -3.0, -2.35, -2.93),
    ]
    text = table_as_markdown(rows)
    header, rule, *body = [line.strip("|").split("|") for line in text.splitlines()]
    assert len({len(line) for line in (header, rule, *body)}) == 1
    assert set("".join(rule)) == {"-"}
    cells = [[cell.strip() for cell in line] for line in body]
    assert cells == [
        ["pendulum", "-18.41", "-17.9", "-17.78", "-17.94"],
        ["bicycle", "-3.49", "-3", "-2.35", "-2.93"],
    ]
    assert text.endswith("\n")
