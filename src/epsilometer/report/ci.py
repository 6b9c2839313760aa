"""Results for continuous integration: JUnit XML, Markdown for a job's summary or a comment, and regression tests."""

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from scipy.special import ndtri

from epsilometer.environment import package_version
from epsilometer.errors import InputError
from epsilometer.report import wording
from epsilometer.report.text import render_text
from epsilometer.report.wording import (
    bound_against,
    clean,
    cut,
    figure,
    figure_down,
    percent,
    plain,
)
from epsilometer.result import AuditResult, Verdict

# A witness in words is a few thousand characters; services cut longer ones.
_MOST_TEXT = 20_000
# What weakens a reading, in a cell of a table.
_MOST_RESERVATIONS = 400


def render_junit(results: Sequence[AuditResult], suite: str = "epsilometer") -> str:
    """One test case per result: refuted is a failure, inconclusive an error."""
    return junit_document(
        suite, [junit_case(result, wording.mechanism_name(result)) for result in results]
    )


def junit_document(
    suite: str, cases: Sequence[Element], properties: Mapping[str, str] | None = None
) -> str:
    """Test cases in their suite, as text.

    Args:
        suite: its name.
        cases: its test cases.
        properties: of the suite as a whole.
    """
    failures, errors = (
        sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error")
    )
    numbers = {
        "tests": f"{len(cases)}",
        "failures": f"{failures}",
        "errors": f"{errors}",
        "skipped": "0",
    }
    numbers["time"] = f"{sum(float(case.get('time', 0)) for case in cases):.3f}"
    root = Element("testsuites", {"name": "epsilometer", **numbers})
    only_suite = SubElement(root, "testsuite", {"name": plain(suite, 200), **numbers})
    if properties:
        _add_properties(only_suite, properties)
    only_suite.extend(cases)
    indent(root)
    # Only ASCII: characters that XML 1.0 lacks, such as lone surrogates, are spelled out already.
    text: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def junit_error(name: str, message: str) -> Element:
    """The test case of an audit that could not be done."""
    case = Element(
        "testcase", {"classname": "epsilometer", "name": plain(name, 200), "time": "0.000"}
    )
    SubElement(case, "error", {"type": "error", "message": plain(message, 400)}).text = _text(
        message
    )
    return case


def junit_case(
    result: AuditResult,
    name: str,
    expected: Verdict | None = None,
    more_properties: Mapping[str, str] | None = None,
    is_alone: bool = False,
) -> Element:
    """The test case of one result.

    Args:
        result: what was found.
        name: of the case.
        expected: the only verdict that does not fail; None fails only on refutations.
        more_properties: what the suite says about it.
        is_alone: whether it is a refutation that does not count among many audits, and so does not
            fail.
    """
    case = Element(
        "testcase",
        {"classname": "epsilometer", "name": plain(name, 200), "time": f"{result.seconds:.3f}"},
    )
    _add_properties(case, {**_properties(result), **(more_properties or {})})
    is_fine = is_alone or result.verdict in (None, expected or Verdict.NOT_REFUTED)
    kind = None if is_fine else "error" if result.verdict is Verdict.INCONCLUSIVE else "failure"
    words = _text(render_text(result))
    if kind is None:
        SubElement(case, "system-out").text = words
    else:
        sentences = [wording.verdict_sentence(result), wording.reservation_sentence(result)]
        message = " ".join([*filter(None, sentences), wording.bound_sentence(result)])
        SubElement(
            case, kind, {"type": str(result.verdict), "message": plain(message, 400)}
        ).text = words
    return case


def _add_properties(parent: Element, properties: Mapping[str, str]) -> None:
    element = SubElement(parent, "properties")
    for key, value in properties.items():
        SubElement(element, "property", {"name": key, "value": plain(value, 2000)})


def _properties(result: AuditResult) -> dict[str, str]:
    said = {
        "verdict": "measured" if result.verdict is None else str(result.verdict),
        "notion": result.claim.notion,
    }
    said |= {
        "claimed": figure(result.claim.value),
        "lower_bound": figure_down(result.lower_bound, 6),
    }
    # How often a run like this one fails even though the claim is true: the false alarms.
    said |= {
        "confidence": figure(result.confidence),
        "false_alarm_rate": figure(1.0 - result.confidence),
    }
    said |= {
        "guarantee": plain(result.guarantee, 200),
        "samples": "{} {}".format(*result.samples_used),
    }
    if weakened := wording.reservations(result.settings):
        said["with"] = plain(weakened, _MOST_RESERVATIONS)
    return {**said, "seed": plain(result.settings.get("seed"), 60)}


def _text(text: str) -> str:
    return cut("\n".join(clean(line) for line in text.splitlines()), _MOST_TEXT)


_MARKS = {Verdict.REFUTED: "❌", Verdict.NOT_REFUTED: "✅", Verdict.INCONCLUSIVE: "⚠️", None: "📏"}
# Everything that Markdown, or HTML in it, could read as more than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~&@:$])")


def render_markdown(results: Sequence[AuditResult], title: str = "Privacy audit") -> str:
    """A table with a row per result, and the whole text of each behind a fold."""
    lines = [f"## {escape(plain(title, 200))}", "", *table_head(), *map(table_row, results)]
    lines += [line for result in results for line in ("", *folded(result))]
    return "\n".join(lines) + "\n"


def table_head(more: Sequence[str] = ()) -> list[str]:
    """The first two lines of a table of results."""
    names = ["", "audit", "verdict", "certified", "claimed", "confidence", *more]
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def table_row(
    result: AuditResult,
    name: str | None = None,
    more: Sequence[str] = (),
    is_expected: bool = False,
    is_alone: bool = False,
) -> str:
    """A result as a row of a table.

    Args:
        result: what was found.
        name: of the audit.
        more: further cells.
        is_expected: whether a refutation is expected.
        is_alone: whether it is a refutation that does not count among many audits.
    """
    claim = result.claim
    verdict = wording.headline(result).lower()
    if is_expected:
        verdict += " (as expected)"
    elif is_alone:
        verdict += " alone"
    weakened = wording.reservations(result.settings)
    if weakened:
        verdict += f", with {plain(weakened, _MOST_RESERVATIONS)}"
    bound = f"{wording.parameter(claim)} ≥ {bound_against(result.lower_bound, claim.value)}"
    claimed = "" if result.verdict is None else f"≤ {figure(claim.value)}"
    cells = [
        plain(name or wording.mechanism_name(result)),
        verdict,
        bound,
        claimed,
        percent(result.confidence),
        *more,
    ]
    mark = _MARKS[result.verdict]
    if is_expected:
        mark = _MARKS[Verdict.NOT_REFUTED]
    elif is_alone:
        mark = _MARKS[Verdict.INCONCLUSIVE]
    return f"| {mark} | " + " | ".join(escape(cell) for cell in cells) + " |"


def error_row(name: str, message: str, more: Sequence[str] = ()) -> str:
    """A row for an audit that could not be done."""
    return (
        "| 💥 | "
        + " | ".join(map(escape, [plain(name), "error", plain(message, 200), "", "", *more]))
        + " |"
    )


def folded(result: AuditResult, name: str | None = None) -> list[str]:
    """The whole text of a result, behind a fold."""
    summary = escape_html(
        f"{plain(name or wording.mechanism_name(result))}: {wording.headline(result).lower()}"
    )
    # A block of HTML, not a fenced one: no run of backticks in an output can end it.
    # An empty line would end the block of HTML; one with a character in it does not.
    text = "\n".join(escape_html(line) or "&#8203;" for line in render_text(result).splitlines())
    return [f"<details><summary>{summary}</summary>", "", f"<pre>{text}</pre>", "</details>"]


def escape(text: str) -> str:
    """Foreign text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))


def escape_html(text: str) -> str:
    """Foreign text inside HTML inside Markdown."""
    return re.sub(r"[^\w .,;/=+()…≥≤ε-]", lambda found: f"&#{ord(found.group())};", text)


# A true claim fails a regression test at most once in a million runs with fresh draws.
_FALSE_ALARM = 1e-6
# More draws than these, or than the audit took itself, make a test slow.
_MOST_DRAWS = 200_000
_MODULES = {
    "np": "numpy",
    "pd": "pandas",
    "pl": "polars",
    "datetime": "datetime",
    "importlib": "importlib",
}


def render_test(result: AuditResult) -> str:
    """A file for pytest that audits the mechanism on the pair of the result's witness, and on nothing else.

    It takes as many more draws than the audit as its greater confidence costs. What stands in it
    comes from the result, which may be a stranger's: names are checked, texts are comments, and
    values are written by us.

    Raises:
        InputError: if there is no pair, or one that cannot be written as Python.
    """
    witness = result.witness
    if witness is None or result.verdict is None or wording.is_recorded(result):
        raise InputError("to_test: only an audit with a pair of inputs and a claim makes a test")
    mechanism, imports = _mechanism_source(result)
    sides = [
        f"    {name} = {literal(witness.pair.side(i))}" for i, name in enumerate(("left", "right"))
    ]
    claim = f"    claim = importlib.import_module('epsilometer.claims').from_dict({literal(result.claim.to_dict())})"
    if type(result.claim).__name__ in ("PureDP", "ApproxDP", "RenyiDP", "ZCDP", "GaussianDP"):
        claim = f"    claim = epsilometer.{result.claim!r}"
    used = [name for name in _MODULES if re.search(rf"\b{name}\.", "".join((*sides, claim)))]
    imports += [
        f"import {_MODULES[name]}" + (f" as {name}" if name != _MODULES[name] else "")
        for name in used
    ]
    name = re.sub(r"\W+", "_", wording.mechanism_name(result).rpartition(":")[2]).strip("_").lower()
    head = [
        wording.verdict_sentence(result),
        wording.bound_sentence(result),
        *filter(None, [witness.pair.note]),
    ]
    notes = [
        f"# {plain(line, 300)}" for line in (f"Written by Epsilometer {package_version()}.", *head)
    ]
    lines = [
        *notes,
        *sorted(imports),
        "",
        "",
        f"def test_{name or 'mechanism'}_keeps_its_claim():",
        *sides,
        claim,
    ]
    lines.append(
        "    # A true claim fails this test at most once in a million runs with other seeds."
    )
    lines.append(f"    settings = {literal(_test_settings(result))}")
    lines.append(
        f"    epsilometer.audit({mechanism}, (left, right), claim, **settings).raise_if_refuted()"
    )
    return "\n".join([*lines, ""])


def _mechanism_source(result: AuditResult) -> tuple[str, list[str]]:
    """An expression that makes the mechanism, and the imports that it and the test need."""
    settings = result.settings
    made = settings.get("recipe") or {}
    features = settings.get("features") or {}
    places = [
        str(made.get("function", "")),
        *([str(features.get("place", ""))] if features else []),
    ]
    names = [place.replace(":", ".", 1) for place in places]
    if all(part.isidentifier() for name in names for part in name.split(".")):
        kind = "from_batch" if made.get("batch") is True else "from_callable"
        options = (
            ['on_error="outcome"']
            if kind == "from_callable" and made.get("on_error") == "outcome"
            else []
        )
        options += [f"features={name}" for name in names[1:]]
        is_plain = kind == "from_callable" and not options
        function = (
            names[0] if is_plain else f"epsilometer.{kind}({', '.join([names[0], *options])})"
        )
        return function, [
            "import epsilometer",
            *{f"import {place.partition(':')[0]}" for place in places},
        ]
    if "target" not in settings:
        hint = "(a lambda, an inner function, an object): write it as a function of a module and audit that"
        raise InputError(
            f"to_test: no test could import the mechanism{' or its features' if features else ''} {hint}"
        )
    # A target may bring its own features, like an entry of the zoo; they have no place.
    more = "".join(f", features={place!r}" for place in places[1:] if place)
    source = (
        f"open_target({str(settings['target'])!r}, batch={settings.get('batch') is True}{more})"
    )
    return source, ["import epsilometer", "from epsilometer.cli.targets import open_target"]


def _test_settings(result: AuditResult) -> dict[str, Any]:
    """As certain as a test must be, with draws that make up for it: errors of bounds shrink with their root."""
    failure = min(1.0 - result.confidence, 0.4)
    samples = max(int(result.settings.get("samples", 0)), 1000)
    needed = math.ceil(samples * max(1.0, float(ndtri(_FALSE_ALARM) / ndtri(failure)) ** 2))
    chosen = {
        "samples": min(needed, max(samples, _MOST_DRAWS)),
        "confidence": 1.0 - _FALSE_ALARM,
        "seed": 1,
    }
    view = result.settings.get("representation", "value")
    return {**chosen, "representation": view} if view in ("bits", "all") else chosen


def literal(value: Any) -> str:
    """Python source that makes an equal value of the same type; `np`, `pd`, `pl` and `datetime` are imported.

    Raises:
        InputError: if we know no such source.
    """
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    name = kind.__name__
    if kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if kind in (type(None), bool, int, str, bytes, datetime.date, datetime.datetime):
        return repr(value)
    if kind in (list, tuple, set, frozenset):
        items = ", ".join(map(literal, value))
        return f"[{items}]" if kind is list else f"{name}([{items}])"
    if kind is dict:
        return (
            "{" + ", ".join(f"{literal(key)}: {literal(each)}" for key, each in value.items()) + "}"
        )
    if library == "numpy" and name == "ndarray":
        shape = f".reshape({value.shape})" if value.size == 0 and value.ndim > 1 else ""
        return f"np.array({literal(value.tolist())}, dtype={str(value.dtype)!r}){shape}"
    if library == "numpy" and name != "datetime64" and hasattr(value, "dtype"):
        return f"np.dtype({str(value.dtype)!r}).type({literal(value.item())})"
    if library == "pandas" and name == "DataFrame":
        columns = ", ".join(f"{literal(column)}: {literal(value[column])}" for column in value)
        return f"pd.DataFrame({{{columns}}})"
    if library == "pandas" and name == "Series":
        return f"pd.Series({literal(value.tolist())}, dtype={str(value.dtype)!r}, name={literal(value.name)})"
    if library == "polars" and name == "DataFrame":
        return f"pl.DataFrame([{', '.join(literal(column) for column in value)}])"
    if library == "polars" and name == "Series":
        return f"pl.Series({value.name!r}, {literal(value.to_list())}, dtype=pl.{value.dtype})"
    raise InputError(
        f"to_test: an input of type {name} cannot be written into a test; write the pair yourself"
    )
