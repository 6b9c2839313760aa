"""Markdown whose foreign parts stay text."""

from epsilometer.report.markdown import error_row, escape, render_markdown, table_row
from epsilometer.result import Verdict

ATTACK = "a|b`c`<img src=x onerror=alert(1)>[x](javascript:1)\n\n# h ![i](//x) @team \x1b \u202e"


def test_a_row_per_result_and_a_fold_each(make_result):
    text = render_markdown([make_result(), make_result(Verdict.NOT_REFUTED, bound=0.5)], "Audit")
    lines = text.splitlines()
    assert lines[0] == "## Audit"
    assert lines[4].startswith("| ❌ | noisy\\_count | refuted | ε ≥ 1.987 | ≤ 1 | 95% |")
    assert lines[5].startswith("| ✅ |")
    assert text.count("<details>") == text.count("</details>") == 2


def test_hostile_values_are_text(make_result):
    result = make_result(event=ATTACK, settings={"mechanism": ATTACK, "seed": 1})
    text = render_markdown([result], ATTACK)
    assert "<img" not in text.replace("\\<img", "")
    assert not {"\x1b", "\u202e"} & set(text)
    row = table_row(result)
    assert "\n" not in row
    assert row.replace("\\|", "").count("|") == 7
    assert "](" not in row
    assert error_row("x", ATTACK).replace("\\|", "").count("|") == 7


def test_a_fold_has_no_empty_line(make_result):
    """An empty line would end the block of HTML, and Markdown would read the rest."""
    text = render_markdown([make_result()])
    block = text[text.index("<pre>") : text.index("</pre>")]
    assert "\n\n" not in block
    assert "`" not in block


def test_escape():
    assert escape("a*b_c|d") == "a\\*b\\_c\\|d"
