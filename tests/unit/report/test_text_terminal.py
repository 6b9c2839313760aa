"""The panel holds the same words as the plain text."""

import io

from rich.console import Console

from epsilometer.inputs import Pair
from epsilometer.report.text import show_result


def shown(result, width=90):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    show_result(result, console)
    return console.file.getvalue()


def test_panel_shows_the_verdict(make_result):
    text = shown(make_result())
    assert "REFUTED" in text
    assert "1.987" in text
    assert max(map(len, text.splitlines())) <= 90


def test_values_are_not_markup(make_result):
    assert "[bold red]x[/]" in shown(make_result(pair=Pair("[bold red]x[/]", 0)))


def test_without_a_terminal_it_is_the_plain_text(make_result, capsys):
    show_result(make_result())
    assert capsys.readouterr().out == f"{make_result()}\n"
