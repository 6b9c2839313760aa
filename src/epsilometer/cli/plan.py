"""`epsilometer plan`."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

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
      epsilometer plan --precision .5 --confidence .9 --lipschitz .667 --domain 0 1 epsilometer plan
      --precision .5 --lipschitz .3 --domain 0 1 --input-lipschitz .6 --input-domain 0 1 epsilometer
      plan "zoo:truncated_laplace?epsilon=.5" --precision .5 --order 2 epsilometer plan --epsilon 1
      --truth 1.2 --power .9
    """
    flags = dict(locals())
    from epsilometer.auditing.planning import plan as make_plan

    made = make_plan(**_keywords(flags))
    if json:
        import json as writer

        sys.stdout.write(writer.dumps(made.to_dict(), indent=2) + "\n")
        return 0
    from epsilometer.cli.listing import print_rows

    print_rows(("what", "plan"), list(_rows(made)))
    return 0


def _keywords(flags: dict[str, Any]) -> dict[str, Any]:
    """What `epsilometer.plan` takes, from the options."""
    from epsilometer.claims import from_parameters
    from epsilometer.cli.files import read_value
    from epsilometer.cli.targets import find_target

    keywords = {
        name: value
        for name, value in flags.items()
        if name not in ("target", "left", "batch", "json")
    }
    claimed = {name: keywords.pop(name) for name in ("epsilon", "delta", "mu", "rho")}
    if any(value is not None for value in claimed.values()):
        keywords["claim"] = from_parameters(**claimed, order=keywords.pop("order"))
    if flags["target"] is not None:
        keywords["mechanism"] = find_target(flags["target"], flags["batch"])
    if flags["left"] is not None:
        keywords["dataset"] = read_value(flags["left"], "--left")
    return keywords


def _rows(made: "HistogramPlan | EventsPlan") -> Iterator[tuple[str, str]]:
    from epsilometer.auditing.planning import EventsPlan
    from epsilometer.methods.published.ldp.plans import MOST_DRAWS

    if isinstance(made, EventsPlan):
        p, q = made.event
        yield "question", f"refute {made.claim.describe()} when the truth is {made.truth:g}"
        yield "power", f"about {made.power:g} at confidence {made.confidence:g}"
        yield "event", f"probability {p:.4g} against {q:.4g}, if the training draws find it"
        yield "draws per side", f"{made.samples:,}, training included"
    else:
        what = "ε" if made.order is None else f"the Rényi divergence of order {made.order:g}"
        yield "question", f"{what} within ± {made.precision:g} at confidence {made.confidence:g}"
        yield "assumption", made.assumption
        yield "least density τ", f"{made.floor:.6g}"
        yield "cells m", f"{made.cells:,} of width {made.width:.6g}"
        yield (
            "samples per input n",
            f"{made.samples:,}" + (" as published" if made.as_published else ""),
        )
        yield (
            "inputs",
            "2" if made.midpoints is None else f"{made.midpoints:,} mid-points, all pairs",
        )
    too_many = (
        f", above the limit of {MOST_DRAWS:,} that an estimate has"
        if made.draws > MOST_DRAWS
        else ""
    )
    yield "draws in all", f"{made.draws:,}{too_many}"
    if made.seconds is not None:
        from epsilometer.report.wording import duration

        yield "time", f"about {duration(made.seconds)}, from a few pilot draws"
