"""Results as JUnit XML, which continuous integration reads as test cases."""

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from epsilometer.one_line import clean, cut
from epsilometer.report import wording
from epsilometer.report.formatting import figure, figure_down, plain
from epsilometer.report.reservations import reservations
from epsilometer.report.text import render_text
from epsilometer.result import AuditResult, Verdict

# Characters of a text: a witness in words is a few thousand, and services cut longer ones.
_MAX_TEXT_CHARACTERS = 20_000
# Characters of a message, a name, and a property.
_MAX_MESSAGE_CHARACTERS = 400
_MAX_NAME_CHARACTERS = 200
_MAX_PROPERTY_CHARACTERS = 2000
# Characters of what weakens a reading.
_MAX_RESERVATIONS_CHARACTERS = 400


def render_junit(
    results: Sequence[AuditResult], suite: str = "epsilometer", *, fail_blind: bool = False
) -> str:
    """Returns one test case per result: refuted is a failure, inconclusive an error.

    With `fail_blind`, so is an audit that could not have refuted anything.
    """
    cases = [
        junit_case(result, wording.mechanism_name(result), fail_blind=fail_blind)
        for result in results
    ]
    return junit_document(suite, cases)


def junit_document(
    suite: str, cases: Sequence[Element], properties: Mapping[str, str] | None = None
) -> str:
    """Returns test cases in their suite, as text.

    Args:
        suite: its name.
        cases: its test cases.
        properties: of the suite as a whole.
    """
    seconds = sum(float(case.get("time", 0)) for case in cases)
    numbers = {
        "tests": f"{len(cases)}",
        "failures": f"{_n_cases_with(cases, 'failure')}",
        "errors": f"{_n_cases_with(cases, 'error')}",
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }
    root = Element("testsuites", {"name": "epsilometer", **numbers})
    only_suite = SubElement(
        root, "testsuite", {"name": plain(suite, _MAX_NAME_CHARACTERS), **numbers}
    )
    if properties:
        _add_properties(only_suite, properties)
    only_suite.extend(cases)
    indent(root)
    # Only ASCII: characters that XML 1.0 lacks, such as lone surrogates, are spelled out already.
    text: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _n_cases_with(cases: Sequence[Element], element: str) -> int:
    return sum(case.find(element) is not None for case in cases)


def junit_error(name: str, message: str) -> Element:
    """Returns the test case of an audit that could not be done."""
    case = _new_case(name, seconds=0.0)
    attributes = {"type": "error", "message": plain(message, _MAX_MESSAGE_CHARACTERS)}
    SubElement(case, "error", attributes).text = _clean_text(message)
    return case


def junit_case(
    result: AuditResult,
    name: str,
    *,
    expected: Verdict | None = None,
    more_properties: Mapping[str, str] | None = None,
    is_alone: bool = False,
    fail_blind: bool = False,
) -> Element:
    """Returns the test case of one result.

    Args:
        result: what was found.
        name: of the case.
        expected: the only verdict that does not fail; None fails only on refutations.
        more_properties: what the suite says about it.
        is_alone: whether it is a refutation that does not count among many audits, and so does not
            fail.
        fail_blind: whether an audit that could not have refuted anything is an error.
    """
    case = _new_case(name, result.seconds)
    _add_properties(case, {**_properties(result), **(more_properties or {})})
    text = _clean_text(render_text(result))
    element = _element_of(result, expected, is_alone)
    if fail_blind and wording.is_blind(result) and element == "system-out" and expected is None:
        element = "error"
    if element == "system-out":
        SubElement(case, element).text = text
        return case
    verdict = wording.verdict_sentence(result)
    sentences = [
        f"{wording.headline(result)}: {verdict}" if wording.is_blind(result) else verdict,
        wording.reservation_sentence(result),
        wording.bound_sentence(result),
    ]
    message = " ".join(sentence for sentence in sentences if sentence)
    verdict_type = str(result.verdict or Verdict.INCONCLUSIVE)
    attributes = {
        "type": "blind" if wording.is_blind(result) else verdict_type,
        "message": plain(message, _MAX_MESSAGE_CHARACTERS),
    }
    SubElement(case, element, attributes).text = text
    return case


def _element_of(result: AuditResult, expected: Verdict | None, is_alone: bool) -> str:
    """The element under which the text of a result stands, which decides whether the case fails."""
    if wording.is_untrusted_measurement(result):
        return "error"
    fine = Verdict.NOT_REFUTED if expected is None else expected
    if is_alone or result.verdict is None or result.verdict is fine:
        return "system-out"
    return "error" if result.verdict is Verdict.INCONCLUSIVE else "failure"


def _new_case(name: str, seconds: float) -> Element:
    attributes = {
        "classname": "epsilometer",
        "name": plain(name, _MAX_NAME_CHARACTERS),
        "time": f"{seconds:.3f}",
    }
    return Element("testcase", attributes)


def _add_properties(parent: Element, properties: Mapping[str, str]) -> None:
    element = SubElement(parent, "properties")
    for name, value in properties.items():
        attributes = {"name": name, "value": plain(value, _MAX_PROPERTY_CHARACTERS)}
        SubElement(element, "property", attributes)


def _properties(result: AuditResult) -> dict[str, str]:
    left, right = result.samples_used
    properties = {
        "verdict": "measured" if result.verdict is None else str(result.verdict),
        "notion": result.claim.notion,
        "claimed": figure(result.claim.value),
        "lower_bound": figure_down(result.lower_bound, 6),
        "confidence": figure(result.confidence),
        # How often a run like this one fails even though the claim is true.
        "false_alarm_rate": figure(1.0 - result.confidence),
        "guarantee": plain(result.guarantee, _MAX_NAME_CHARACTERS),
        "samples": f"{left} {right}",
    }
    if result.blind is not None:
        properties = {"blind": result.blind, **properties}
    weakened = reservations(result.settings)
    if weakened:
        properties["with"] = plain(weakened, _MAX_RESERVATIONS_CHARACTERS)
    properties["seed"] = plain(result.settings.get("seed"), 60)
    return properties


def _clean_text(text: str) -> str:
    lines = [clean(line) for line in text.splitlines()]
    return cut("\n".join(lines), _MAX_TEXT_CHARACTERS)
