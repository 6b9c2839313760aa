"""A run of a suite as files and on standard output: JUnit XML, Markdown, JSON, pages, a summary."""

import json
from pathlib import Path

from epsilometer.cli.listing import print_outcomes
from epsilometer.cli.output import Answers
from epsilometer.cli.run_worker import write_page
from epsilometer.report import junit, markdown
from epsilometer.report.formatting import plain
from epsilometer.storage.writing import write_atomically
from epsilometer.suites import Family
from epsilometer.suites.index import SuiteRun, render_index

# Characters of the title of a suite.
_MAX_TITLE_CHARACTERS = 200


def render_suite_junit(run: SuiteRun) -> str:
    """Returns a test case per audit."""
    cases = []
    for entry in run.entries:
        outcome = run.outcomes[entry.name]
        if outcome.result is None:
            case = junit.junit_error(entry.name, outcome.error or "")
        else:
            case = junit.junit_case(
                outcome.result,
                entry.name,
                expected=entry.expected,
                more_properties=run.family_properties(entry),
                is_alone=_is_refuted_alone(run, entry.name),
                fail_blind=entry.fail_blind,
            )
        cases.append(case)
    return junit.junit_document(run.title, cases, run.family_properties())


def render_suite_markdown(run: SuiteRun) -> str:
    """Returns a table with a row per audit, and the whole text of those that need a look."""
    title = markdown.escape(plain(run.title, _MAX_TITLE_CHARACTERS))
    lines = [f"## {title}: {run.counts()}", ""]
    if run.family is not None:
        lines += [f"- {markdown.escape(sentence)}" for sentence in run.family.sentences()]
        lines.append("")
    lines += markdown.table_head(["change"] if run.family is None else ["family", "change"])
    folds: list[str] = []
    for entry in run.entries:
        outcome = run.outcomes[entry.name]
        is_alone = _is_refuted_alone(run, entry.name)
        more = [run.changes[entry.name].text]
        if run.family is not None:
            more.insert(0, run.family.remark(entry.name))
        if outcome.result is None:
            lines.append(markdown.error_row(entry.name, outcome.error or "", more))
            continue
        is_expected = entry.expected is not None and not is_alone and run.status(entry) == 0
        row = markdown.table_row(
            outcome.result, entry.name, more, is_expected=is_expected, is_alone=is_alone
        )
        lines.append(row)
        # Also what is refuted alone.
        if outcome.status(entry.expected, fail_blind=entry.fail_blind):
            folds += ["", *markdown.folded(outcome.result, entry.name)]
    return "\n".join([*lines, *folds]) + "\n"


def render_family(run: SuiteRun, family: Family) -> str:
    """Returns the claims that were judged together, as JSON."""
    data = {"title": run.title, "run": run.number, "began": run.began, **family.to_dict()}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def write_index(run: SuiteRun, folder: Path) -> None:
    """Writes the index, and missing pages of an interrupted earlier run."""
    for name, page in run.pages.items():
        result = run.outcomes[name].result
        if result is not None and not (folder / page).is_file():
            write_page(result, folder / page)
    write_atomically(folder / "index.html", render_index(run))


def print_summary(run: SuiteRun, folder: Path, answers: Answers) -> None:
    """Prints a row per audit, what changed, and where the report is."""
    answers.write("\n")
    print_outcomes(run.entries, run.outcomes, run.changes, run.family, answers.stream)
    n_changed = sum(change.is_news for change in run.changes.values())
    changed = "" if run.before is None else f"; {n_changed} changed since run {run.before}"
    answers.write(f"\nrun {run.number}: {run.counts()}{changed}\n")
    for change in run.changes.values():
        if change.kind == "gone":
            answers.write(f"{plain(change.name)}: {change.text}\n")
    if run.family is not None:
        for sentence in run.family.sentences():
            answers.write(sentence + "\n")
    answers.write(f"report: {folder / 'index.html'}\n")


def _is_refuted_alone(run: SuiteRun, name: str) -> bool:
    """Whether a refutation does not count among all claims of the family."""
    return run.family is not None and name in run.family.refuted_alone
