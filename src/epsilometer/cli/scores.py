"""`epsilometer scores`."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli import options
from epsilometer.cli.exit_status import ExitStatus
from epsilometer.cli.output import Answers, OutputFiles, write_all
from epsilometer.cli.request import given_settings, read_accountant
from epsilometer.errors import EpsilometerWarning

if TYPE_CHECKING:
    from epsilometer.auditing.claim_check import ClaimCheck
    from epsilometer.auditing.one_run_audit import OneRunAudit
    from epsilometer.auditing.score_audit import ScoreAudit
    from epsilometer.claims import Claim
    from epsilometer.storage.score_tables import ScoreTable


def scores(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="One row per canary: csv with a header, jsonl, parquet or npz."
        ),
    ],
    *,
    score: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="The scores: large for members.", rich_help_panel=options.INPUTS
        ),
    ],
    member: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Whether it was in the training set: 0/1, true/false or in/out.",
            rich_help_panel=options.INPUTS,
        ),
    ],
    smaller_means_member: Annotated[
        bool,
        typer.Option(
            "--smaller-means-member",
            help="Small scores mean members, as losses do.",
            rich_help_panel=options.INPUTS,
        ),
    ] = False,
    one_run: Annotated[
        bool,
        typer.Option(
            "--one-run",
            help="All rows are canaries of one training run, each in by its own fair coin.",
            rich_help_panel=options.INPUTS,
        ),
    ] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="What rows are called; each may occur once.",
            rich_help_panel=options.INPUTS,
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    order: options.Order = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    accountant: options.Accountant = None,
    confidence: options.Confidence = None,
    json: options.Json = None,
    html: options.Html = None,
    fail_blind: options.FailBlind = None,
) -> int:
    """Audit a model by the membership scores of its canaries.

    Without --one-run every row is from a training run of its own, so that scores are independent.
    Without a claim it measures ε at --delta.

    Examples:
      epsilometer scores runs.csv --score loss --member in_training --smaller-means-member --mu 1
      epsilometer scores runs.parquet --score score --member member --epsilon 8 --delta 1e-5
      epsilometer scores canaries.jsonl --score score --member in --one-run --id canary --delta 1e-5
    """
    from epsilometer.auditing.score_values import WrongWayWarning
    from epsilometer.storage.score_tables import read_score_table

    answers: Answers = context.obj
    files = OutputFiles(json=json, html=html).checked(answers)
    parameters = given_settings(epsilon=epsilon, delta=delta, order=order, mu=mu, rho=rho)
    question = _Question.of(parameters, accountant)
    table = read_score_table(file, score=score, member=member, id_column=id_column)
    if smaller_means_member:
        table = replace(table, scores=-table.scores)
    audit_table: Callable[[ScoreTable, str, float], ScoreAudit | OneRunAudit]
    audit_table = _audit_one_run if one_run else _audit_runs
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EpsilometerWarning)
        audit = audit_table(table, file, 0.95 if confidence is None else confidence)
    for warning in caught:
        hint = ""
        if issubclass(warning.category, WrongWayWarning):
            remedy = "leave out " if smaller_means_member else ""
            hint = f" (here: {remedy}--smaller-means-member)"
        sys.stderr.write(f"epsilometer: {warning.message}{hint}\n")
    answer = _Answer.of(audit, question)
    problem = write_all(_writers(answer, files))
    if files.json == "-":
        answers.write(answer.to_json())
    else:
        answers.write(answer.to_text())
    if problem is not None:
        raise problem
    return answer.exit_status(fail_blind=bool(fail_blind))


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the scores.

    Attributes:
        claim: to be judged; None measures.
        delta: at which ε is measured; None asks for the curve alone.
    """

    claim: "Claim | None"
    delta: float | None

    @classmethod
    def of(cls, parameters: dict[str, float], accountant: str | None) -> "_Question":
        """What the options of a claim ask: --delta alone is no claim."""
        from epsilometer.claims import ApproxDP, from_parameters

        accountant_claim = read_accountant(accountant, parameters)
        if accountant_claim is not None:
            return cls(claim=accountant_claim, delta=None)
        if set(parameters) <= {"delta"}:
            delta = parameters.get("delta")
            # Checks it before the file is read.
            return cls(claim=None, delta=None if delta is None else ApproxDP(0.0, delta).delta)
        return cls(claim=from_parameters(**parameters), delta=None)


def _audit_runs(table: "ScoreTable", file: str, confidence: float) -> "ScoreAudit":
    """Audits rows from many runs."""
    from epsilometer.auditing.score_audit import from_scores

    audit = from_scores(
        table.scores[table.included], table.scores[~table.included], confidence=confidence
    )
    settings = {**audit.profile.settings, "target": file}
    return replace(audit, profile=replace(audit.profile, settings=settings))


def _audit_one_run(table: "ScoreTable", file: str, confidence: float) -> "OneRunAudit":
    """Audits the canaries of one run; each row has both score and coin, so nothing is joined."""
    from epsilometer.auditing.one_run_audit import from_one_run

    return from_one_run(table.scores, table.included, confidence=confidence)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the scores say to the question.

    Attributes:
        audit: of many runs, or of one run, which answers the same questions.
        question: what was asked.
        check: of the claim; None without one.
        p_value: of the claim; None without one.
        epsilon: the bound at the δ that was asked for; None if none was.
        greatest: the largest value of the claim that so many scores can refute; None without one.
        blind: one sentence if so few scores could not have refuted the claim; else None.
    """

    audit: "ScoreAudit | OneRunAudit"
    question: _Question
    check: "ClaimCheck | None"
    p_value: float | None
    epsilon: float | None
    greatest: float | None
    blind: str | None

    @classmethod
    def of(cls, audit: "ScoreAudit | OneRunAudit", question: _Question) -> "_Answer":
        """Asks the audit: one reading, of the claim or of ε at δ."""
        claim = question.claim
        epsilon = None if question.delta is None else float(audit.epsilon(question.delta))
        if claim is None:
            return cls(
                audit=audit,
                question=question,
                check=None,
                p_value=None,
                epsilon=epsilon,
                greatest=None,
                blind=None,
            )
        return cls(
            audit=audit,
            question=question,
            check=audit.check(claim),
            p_value=audit.p_value(claim),
            epsilon=epsilon,
            greatest=audit.greatest_bound(claim),
            blind=audit.blind(claim),
        )

    def to_text(self) -> str:
        """The audit, and the answer in a further line; first of all that it was blind, if so."""
        from epsilometer.report.formatting import bound_against, figure_down, figure_up

        lines = [] if self.blind is None else [self.blind]
        lines.append(str(self.audit))
        if self.epsilon is not None:
            lines.append(
                f"ε at δ = {self.question.delta:g} is at least {figure_down(self.epsilon)}"
            )
        if self.check is not None and self.p_value is not None:
            claim = self.check.claim
            bound = bound_against(self.check.lower_bound, claim.value)
            lines.append(
                f"{claim.describe()}: {self.check.verdict}; {claim.symbol} is at least {bound}, "
                f"p-value at most {figure_up(self.p_value)}"
            )
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The audit's data, with the answer."""
        data: dict[str, Any] = self.audit.to_dict()
        if self.epsilon is not None:
            data |= {"delta": self.question.delta, "epsilon": self.epsilon}
        if self.check is not None:
            data |= {
                "claim": self.check.claim.to_dict(),
                "verdict": str(self.check.verdict),
                "lower_bound": self.check.lower_bound,
                "p_value": self.p_value,
                "greatest_bound": self.greatest,
                "blind": self.blind is not None,
            }
        return dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def exit_status(self, *, fail_blind: bool) -> ExitStatus:
        """The status with which the command ends."""
        if self.check is not None and self.check.is_refuted:
            return ExitStatus.REFUTED
        if fail_blind and self.blind is not None:
            return ExitStatus.INCONCLUSIVE
        return ExitStatus.NOT_REFUTED


def _writers(answer: _Answer, files: OutputFiles) -> list[Callable[[], object]]:
    from epsilometer.storage.writing import write_atomically

    writers: list[Callable[[], object]] = []
    if files.json not in (None, "-"):
        writers.append(partial(write_atomically, files.json, answer.to_json()))
    if files.html is not None:
        question = answer.question
        writers.append(partial(answer.audit.save_html, files.html, question.claim, question.delta))
    return writers
