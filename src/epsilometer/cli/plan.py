"""`epsilometer plan`: `em.plan` for audits, `em.ldp.plan` for estimates of local privacy."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli import options
from epsilometer.errors import InputError

if TYPE_CHECKING:
    from epsilometer.auditing.planning import AuditPlan
    from epsilometer.methods.published.ldp import HistogramPlan

# The two groups of options, of which a call uses one.
_AUDIT = "Plan an audit that should refute a claim"
_ESTIMATE = "Plan an estimate of local privacy by histograms"

_Interval = tuple[float, float] | None


def plan(
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="A mechanism to time: as for audit.")
    ] = None,
    *,
    epsilon: Annotated[
        float | None, typer.Option(help="Claimed ε.", rich_help_panel=_AUDIT)
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="With --epsilon: (ε, δ).", rich_help_panel=_AUDIT)
    ] = None,
    mu: Annotated[float | None, typer.Option(help="Claimed μ.", rich_help_panel=_AUDIT)] = None,
    rho: Annotated[float | None, typer.Option(help="Claimed ρ.", rich_help_panel=_AUDIT)] = None,
    accountant: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Claimed: what an accountant says; --truth is then the excess of power.",
            rich_help_panel=_AUDIT,
        ),
    ] = None,
    truth: Annotated[
        float | None,
        typer.Option(help="The true value of what is claimed.", rich_help_panel=_AUDIT),
    ] = None,
    power: Annotated[
        float,
        typer.Option(
            help="Probability with which the claim should be refuted.", rich_help_panel=_AUDIT
        ),
    ] = 0.9,
    event_probability: Annotated[
        float,
        typer.Option(
            help="Of the event that the audit is assumed to find.", rich_help_panel=_AUDIT
        ),
    ] = 0.5,
    precision: Annotated[
        float | None,
        typer.Option(help="Half length γ of the interval.", rich_help_panel=_ESTIMATE),
    ] = None,
    lipschitz: Annotated[
        float | None, typer.Option(help="C of the output densities.", rich_help_panel=_ESTIMATE)
    ] = None,
    domain: Annotated[
        _Interval, typer.Option(metavar="A B", help="Of the outputs.", rich_help_panel=_ESTIMATE)
    ] = None,
    input_lipschitz: Annotated[
        float | None,
        typer.Option(help="D of the densities in the input.", rich_help_panel=_ESTIMATE),
    ] = None,
    input_domain: Annotated[
        _Interval,
        typer.Option(
            metavar="C D", help="Of the inputs: plans for all pairs.", rich_help_panel=_ESTIMATE
        ),
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            help="pure or renyi.  [default: what --order says]", rich_help_panel=_ESTIMATE
        ),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="The paper's n, without union bounds.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = False,
    order: Annotated[float | None, typer.Option(help="Of a Rényi claim or divergence.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the audit, or of the interval.")] = 0.95,
    left: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE", help="Input to time TARGET on.")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="TARGET is f(dataset, n, rng) and returns n outputs.")
    ] = False,
    param: options.Params = None,
    dataset_format: options.DatasetFormat = None,
    http_header: options.HttpHeaders = None,
    http_method: options.HttpMethod = None,
    http_timeout: options.HttpTimeout = None,
    http_body: options.HttpBody = None,
    http_answer: options.HttpAnswer = None,
    most_draws: Annotated[float | None, typer.Option(help="Refuse a plan with more draws.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say how many draws a question takes, before they are drawn.

    With a claim and --truth: an audit by events that should refute the claim (em.plan).
    With --precision: a two-sided estimate of local privacy by histograms (em.ldp.plan).

    Examples:
      epsilometer plan --epsilon 1 --truth 1.2 --power .9
      epsilometer plan --precision .5 --confidence .9 --lipschitz .667 --domain 0 1
      epsilometer plan --precision .5 --lipschitz .3 --domain 0 1 --input-lipschitz .6 --input-domain 0 1
      epsilometer plan "zoo:truncated_laplace?epsilon=.5" --precision .5 --order 2
    """  # noqa: E501  # examples are printed as they stand
    from epsilometer.auditing.planning import plan as plan_audit
    from epsilometer.claims import from_parameters
    from epsilometer.cli.files import read_value
    from epsilometer.cli.request import given_settings, read_accountant, read_call_options
    from epsilometer.cli.targets import CallOptions, find_target
    from epsilometer.methods.published.ldp import plan as plan_estimate

    is_claimed = any(value is not None for value in (epsilon, delta, mu, rho, accountant, truth))
    if is_claimed is (precision is not None):
        raise InputError(
            "give a claim (--epsilon, --mu, --rho or --accountant) with --truth to plan an audit, "
            "or --precision to plan an estimate of local privacy, not both"
        )
    call_settings = read_call_options(
        given_settings(
            param=param,
            dataset_format=dataset_format,
            http_header=http_header,
            http_method=http_method,
            http_timeout=http_timeout,
            http_body=http_body,
            http_answer=http_answer,
        )
    )
    call_options = CallOptions(**call_settings)
    mechanism = None if target is None else find_target(target, batch, options=call_options)
    dataset = None if left is None else read_value(left, "--left")
    planned: AuditPlan | HistogramPlan
    if precision is not None:
        planned = plan_estimate(
            notion,
            precision=precision,
            confidence=confidence,
            lipschitz=lipschitz,
            domain=domain,
            input_lipschitz=input_lipschitz,
            input_domain=input_domain,
            order=order,
            as_published=as_published,
            mechanism=mechanism,
            dataset=dataset,
            most_draws=most_draws,
        )
    else:
        if truth is None:
            raise InputError("--truth is needed: how large may the true value be?")
        parameters = given_settings(epsilon=epsilon, delta=delta, mu=mu, rho=rho, order=order)
        planned = plan_audit(
            read_accountant(accountant, parameters) or from_parameters(**parameters),
            truth=truth,
            power=power,
            confidence=confidence,
            event_probability=event_probability,
            mechanism=mechanism,
            dataset=dataset,
            most_draws=most_draws,
        )
    if json:
        import json as writer

        sys.stdout.write(writer.dumps(planned.to_dict(), indent=2) + "\n")
        return 0
    from epsilometer.cli.listing import print_rows

    print_rows(("what", "plan"), list(_rows(planned)))
    return 0


def _rows(planned: "HistogramPlan | AuditPlan") -> Iterator[tuple[str, str]]:
    """The plan as labels and texts."""
    from epsilometer.auditing.planning import AuditPlan
    from epsilometer.methods.published.ldp.plans import MOST_DRAWS
    from epsilometer.report.formatting import duration

    draws = f"{planned.draws:,}"
    if isinstance(planned, AuditPlan):
        yield from _audit_rows(planned)
    else:
        yield from _histogram_rows(planned)
        if planned.draws > MOST_DRAWS:
            draws += f", above the limit of {MOST_DRAWS:,} that an estimate has"
    yield "draws in all", draws
    if planned.seconds is not None:
        yield "time", f"about {duration(planned.seconds)}, from a few pilot draws"


def _audit_rows(planned: "AuditPlan") -> Iterator[tuple[str, str]]:
    p = planned.event_probability
    q = planned.other_probability
    yield "question", f"refute {planned.claim.describe()} when the truth is {planned.truth:g}"
    yield "power", f"about {planned.power:g} at confidence {planned.confidence:g}"
    yield "event", f"probability {p:.4g} against {q:.4g}, if the training draws find it"
    yield "draws per side", f"{planned.samples:,}, training included"


def _histogram_rows(planned: "HistogramPlan") -> Iterator[tuple[str, str]]:
    estimated = "ε"
    if planned.order is not None:
        estimated = f"the Rényi divergence of order {planned.order:g}"
    precision = f"± {planned.precision:g} at confidence {planned.confidence:g}"
    yield "question", f"{estimated} within {precision}"
    yield "assumption", planned.assumption
    yield "least density τ", f"{planned.floor:.6g}"
    yield "cells m", f"{planned.cells:,} of width {planned.width:.6g}"
    published = " as published" if planned.as_published else ""
    yield "samples per input n", f"{planned.samples:,}{published}"
    if planned.midpoints is None:
        yield "inputs", "2"
    else:
        yield "inputs", f"{planned.midpoints:,} mid-points, all pairs"
