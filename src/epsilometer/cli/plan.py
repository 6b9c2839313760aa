"""`epsilometer plan`."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epsilometer.auditing.planning import EventsPlan
    from epsilometer.methods.published.ldp import HistogramPlan


_Interval = tuple[float, float] | None


def plan(
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="A mechanism to time: as for audit.")
    ] = None,
    notion: Annotated[
        str | None, typer.Option(help="pure or renyi.  [default: what --order says]")
    ] = None,
    precision: Annotated[float | None, typer.Option(help="Half length γ of the interval.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the interval, or of the audit.")] = 0.95,
    lipschitz: Annotated[float | None, typer.Option(help="C of the output densities.")] = None,
    domain: Annotated[_Interval, typer.Option(metavar="A B", help="Of the outputs.")] = None,
    input_lipschitz: Annotated[
        float | None, typer.Option(help="D of the densities in the input.")
    ] = None,
    input_domain: Annotated[
        _Interval, typer.Option(metavar="C D", help="Of the inputs: plans for all pairs.")
    ] = None,
    order: Annotated[float | None, typer.Option(help="Of a Rényi divergence or claim.")] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="The paper's n, without union bounds.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="Claimed ε, to be refuted by an audit.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="With --epsilon: (ε, δ).")] = None,
    mu: Annotated[float | None, typer.Option(help="Claimed μ.")] = None,
    rho: Annotated[float | None, typer.Option(help="Claimed ρ.")] = None,
    truth: Annotated[float | None, typer.Option(help="The true value of what is claimed.")] = None,
    power: Annotated[
        float, typer.Option(help="Probability with which the claim should be refuted.")
    ] = 0.9,
    event_probability: Annotated[
        float, typer.Option(help="Of the event that the audit is assumed to find.")
    ] = 0.5,
    left: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE", help="Input to time TARGET on.")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="TARGET is f(dataset, n, rng) and returns n outputs.")
    ] = False,
    most_draws: Annotated[float | None, typer.Option(help="Refuse a plan with more draws.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say how many draws a question takes, before they are drawn.

    With --precision: a two-sided estimate of local privacy by histograms (method ldp-histogram).
    With a claim and --truth: an audit by events that should refute the claim.

    Examples:
      epsilometer plan --precision .5 --confidence .9 --lipschitz .667 --domain 0 1
      epsilometer plan --precision .5 --lipschitz .3 --domain 0 1 --input-lipschitz .6 --input-domain 0 1
      epsilometer plan "zoo:truncated_laplace?epsilon=.5" --precision .5 --order 2
      epsilometer plan --epsilon 1 --truth 1.2 --power .9
    """  # noqa: E501  # examples are printed as they stand
    from epsilometer.auditing.planning import plan as make_plan
    from epsilometer.claims import from_parameters
    from epsilometer.cli.files import read_value
    from epsilometer.cli.targets import find_target

    claim = None
    is_claimed = any(value is not None for value in (epsilon, delta, mu, rho))
    if is_claimed:
        claim = from_parameters(epsilon=epsilon, delta=delta, mu=mu, rho=rho, order=order)
    planned = make_plan(
        notion,
        precision=precision,
        confidence=confidence,
        lipschitz=lipschitz,
        domain=domain,
        input_lipschitz=input_lipschitz,
        input_domain=input_domain,
        # With a claim, the order is that of the claim.
        order=None if is_claimed else order,
        as_published=as_published,
        claim=claim,
        truth=truth,
        power=power,
        event_probability=event_probability,
        mechanism=None if target is None else find_target(target, batch),
        dataset=None if left is None else read_value(left, "--left"),
        most_draws=most_draws,
    )
    if json:
        import json as writer

        sys.stdout.write(writer.dumps(planned.to_dict(), indent=2) + "\n")
        return 0
    from epsilometer.cli.listing import print_rows

    print_rows(("what", "plan"), list(_rows(planned)))
    return 0


def _rows(planned: "HistogramPlan | EventsPlan") -> Iterator[tuple[str, str]]:
    """The plan as labels and texts."""
    from epsilometer.auditing.planning import EventsPlan
    from epsilometer.methods.published.ldp.plans import MOST_DRAWS
    from epsilometer.report.formatting import duration

    if isinstance(planned, EventsPlan):
        yield from _events_rows(planned)
    else:
        yield from _histogram_rows(planned)
    draws = f"{planned.draws:,}"
    if planned.draws > MOST_DRAWS:
        draws += f", above the limit of {MOST_DRAWS:,} that an estimate has"
    yield "draws in all", draws
    if planned.seconds is not None:
        yield "time", f"about {duration(planned.seconds)}, from a few pilot draws"


def _events_rows(planned: "EventsPlan") -> Iterator[tuple[str, str]]:
    p, q = planned.event
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
