"""The power table: how much of what can be certified audits do certify, by mechanism.

A row is a mechanism, audited with the seeds below; its share is the mean certified bound divided by a reference:

- *oracle*: the mean bound of someone who knows the best event in advance and certifies it on all draws. Nobody who
  must learn reaches it but by luck.
- *truth*: the exact value of the parameter, where the best event says too little (divergences, whole curves, searches).

The table is stored in `power.md`. A row that falls below what the table allows is a regression; a learner that
certifies more is welcome to. Audits are made by public names only, so that the rows outlive any redesign behind them.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import chi2

import epsilometer as em
from epsilometer_experiments.sniper.oracle import expected_bound, oracle_bound, promise

STORED = Path(__file__).parent / "power.md"

SEEDS = range(4)
DRAWS = 10_000
FAILURE_PROBABILITY = 0.05
# A share may fall by so many standard errors of its mean over the seeds (two means of equal learners differ by less
# than 2 in 84 of 100 cases if they are independent, which those of equal draws are not), and always by LEAST_TOLERANCE.
TOLERATED_ERRORS = 2.0
LEAST_TOLERANCE = 0.05
# Draws per side that stand for the distribution of a log-ratio, where an oracle has no formula.
ORACLE_DRAWS = 1_000_000
# The least probability of an oracle's event: smaller ones have too few of those draws to be judged by.
LEAST_EVENT = 1e-3
PAIR = em.Pair(0, 1)


@dataclass(frozen=True)
class Row:
    """One row: how to audit with a seed, and what there is to certify."""

    name: str
    kind: str
    bound: Callable[[int], float]
    reference: Callable[[], float]


@dataclass(frozen=True)
class Share:
    """What is stored of a row.

    Attributes:
        kind: of the reference, "oracle" or "truth".
        reference: the value that is a share of 1.
        share: the mean over the seeds.
        standard_error: of that mean.
    """

    kind: str
    reference: float
    share: float
    standard_error: float

    @property
    def tolerance(self) -> float:
        """How far the share may fall."""
        return max(LEAST_TOLERANCE, TOLERATED_ERRORS * self.standard_error)

    @property
    def floor(self) -> float:
        """The least share that is no regression."""
        return max(self.share - self.tolerance, 0.0)


ROWS: dict[str, Row] = {}


def row(
    name: str, kind: str, bound: Callable[[int], float], reference: Callable[[], float]
) -> None:
    """Adds a row of the table."""
    assert name not in ROWS, name
    ROWS[name] = Row(name, kind, bound, reference)


def mean_share(case: Row, reference: float) -> tuple[float, float]:
    """The share of a reference, mean over the seeds, and its standard error."""
    shares = [case.bound(seed) / reference for seed in SEEDS]
    return fmean(shares), stdev(shares) / math.sqrt(len(shares))


def measured(case: Row) -> Share:
    """The row as it is stored, rounded as the table is."""
    reference = float(f"{case.reference():.4g}")
    share, standard_error = mean_share(case, reference)
    return Share(case.kind, reference, round(share, 3), round(standard_error, 3))


# --- the table as a file ----------------------------------------------------------------------------------------------
_TITLE = """# Power

Certified bounds as shares of what could be certified, means over {seeds} seeds. `make golden` writes this table and prints
it as before -> after; `tests/README.md` says when a row may change.

"""
_COLUMNS = ("mechanism", "reference", "value", "share", "s.e.", "may fall to")
_WIDTHS = (34, 9, 7, 6, 6, 11)


def as_text(shares: dict[str, Share]) -> str:
    """The table as a page, in the order of the rows."""
    lines = [_COLUMNS, tuple("-" * width for width in _WIDTHS)]
    for name, share in sorted(shares.items(), key=lambda item: list(ROWS).index(item[0])):
        figures = (f"{share.reference:.4g}", f"{share.share:.3f}", f"{share.standard_error:.3f}")
        lines.append((name, share.kind, *figures, f"{share.floor:.3f}"))
    rows = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, _WIDTHS, strict=True)]
        rows.append(f"| {' | '.join(cells)} |\n")
    return _TITLE.format(seeds=len(SEEDS)) + "".join(rows)


def read() -> dict[str, Share]:
    """The stored table; empty if there is none."""
    if not STORED.exists():
        return {}
    shares = {}
    for line in STORED.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not line.startswith(("| mechanism", "| ---")):
            name, kind, *figures = (cell.strip() for cell in line.strip("|").split("|"))
            reference, share, standard_error, _floor = map(float, figures)
            shares[name] = Share(kind, reference, share, standard_error)
    return shares


# --- how rows are written ---------------------------------------------------------------------------------------------
def measures(*arguments: Any, **keywords: Any) -> Callable[[int], float]:
    """A bound by `em.measure`, of ε if no notion is given."""
    keywords = {"samples": DRAWS} | keywords
    if len(arguments) < 3:
        mechanism, inputs = arguments
        arguments = (mechanism, inputs, em.PureDP)
    return lambda seed: em.measure(*arguments, seed=seed, **keywords).lower_bound


def event_oracle(p: float, q: float, n: int = DRAWS) -> Callable[[], float]:
    """The reference of a mechanism whose best event has these probabilities."""
    return lambda: expected_bound(p, q, n, FAILURE_PROBABILITY)


def simulated_oracle(
    draw: Callable[..., Any], log_ratio: Callable[[Any], np.ndarray], n: int = DRAWS
) -> Callable[[], float]:
    """The reference of a mechanism whose log-ratio (left over right) is known, from many draws of it.

    An event {log-ratio ≥ t} has on the other side the probability E[exp(−log-ratio); event], so that draws of one
    side are enough, and rare events of the other side are no matter of luck.
    """

    def bound() -> float:
        best = 0.0
        for x, sign in ((0, 1.0), (1, -1.0)):
            outputs = draw(x, ORACLE_DRAWS, np.random.default_rng([x, 1]))
            scores = np.sort(sign * log_ratio(outputs))[::-1]
            p = np.arange(1, ORACLE_DRAWS + 1) / ORACLE_DRAWS
            q = np.cumsum(np.exp(-scores)) / ORACLE_DRAWS
            sizes = np.unique(np.geomspace(LEAST_EVENT, 0.999, 2000) * ORACLE_DRAWS).astype(int)
            chosen = sizes[np.argmax(promise(p[sizes], q[sizes], n, FAILURE_PROBABILITY))]
            best = max(best, event_oracle(float(p[chosen]), float(q[chosen]), n)())
        return best

    return bound


def entry_oracle(name: str, n: int = DRAWS, **parameters: float) -> Callable[[], float]:
    """The reference of an entry of the zoo."""
    return lambda: oracle_bound(
        em.zoo.find(name, **parameters).distributions, n, FAILURE_PROBABILITY
    )


# --- the zoo ----------------------------------------------------------------------------------------------------------
# Left out because they have the outputs of another entry: laplace_sum, gaussian_sum, svt2. noisy_gradient_descent
# loses too little to be seen at these sizes.
SAME_AS_OTHERS = {"sniper", "laplace_sum", "gaussian_sum", "svt2", "noisy_gradient_descent"}
for entry in em.zoo.names():
    if entry not in SAME_AS_OTHERS:
        row(f"zoo {entry}", "oracle", measures(em.zoo.find(entry), None), entry_oracle(entry))


# --- outputs of other kinds -------------------------------------------------------------------------------------------
def laplace_ratio(values: np.ndarray) -> np.ndarray:
    """The log-ratio of Laplace noise of scale 1 around 0 to that around 1."""
    return np.abs(values - 1.0) - np.abs(values)


def exact_release(x, n, rng):
    """Now and then the true value itself, among continuous noise."""
    return np.where(rng.random(n) < 0.03, float(x), x + rng.laplace(size=n))


def rare_mark(x, n, rng):
    """Noise that does not depend on x, and far away a rare mark on the right only."""
    return np.where(rng.random(n) < 0.0044 * x, 1e6, rng.laplace(size=n))


def interaction(x, n, rng):
    """Two columns, each the same on both sides; their product is positive more often on the left."""
    first = rng.normal(size=n)
    agrees = rng.random(n) < (0.25 if x else 0.75)
    return np.stack([first, np.where(agrees, 1.0, -1.0) * np.sign(first) * rng.random(n)], axis=1)


def correlated(x, n, rng):
    first = rng.normal(size=n)
    second = (0.9 if x else -0.9) * first + 0.45 * rng.normal(size=n)
    return np.stack([first, second], axis=1)


def correlated_ratio(outputs):
    first, second = outputs.T
    return -4.0 * 0.9 * first * second / (2.0 * 0.45**2)


AXIS = np.array([math.cos(0.5), math.sin(0.5)])
OTHER_AXIS = np.array([-math.sin(0.5), math.cos(0.5)])


def rotated(x, n, rng):
    """Laplace noise along two axes that are no columns."""
    return np.outer(x + rng.laplace(size=n), AXIS) + np.outer(rng.laplace(size=n), OTHER_AXIS)


def spherical(x, n, rng):
    """Only the distance from the origin differs."""
    return (1.5 if x else 1.0) * rng.normal(size=(n, 3))


def spherical_ratio(outputs):
    return 3.0 * math.log(1.5) - 0.5 * (1.0 - 1.0 / 1.5**2) * np.sum(outputs**2, axis=1)


def scale(x, n, rng):
    return (1.5 if x else 1.0) * rng.normal(size=n)


def scale_ratio(values):
    return math.log(1.5) - 0.5 * (1.0 - 1.0 / 1.5**2) * values**2


def vector(x, n, rng):
    noise = rng.laplace(size=(n, 4))
    noise[:, 1] += x
    return noise


def mixed_record(x, n, rng):
    return {
        "total": x + rng.laplace(size=n),
        "city": np.where(rng.random(n) < 0.4 + 0.2 * x, "A", "B"),
    }


def mixed_record_ratio(outputs):
    return laplace_ratio(outputs["total"]) + np.where(outputs["city"] == "A", 1, -1) * math.log(
        4 / 6
    )


def unique_id(x, n, rng):
    return {"id": rng.permutation(10**6)[:n], "value": x + rng.laplace(size=n)}


def list_lengths(x, n, rng):
    """One value or two; how many is the leak."""
    counts = 1 + (rng.random(n) < 0.3 + 0.4 * x)
    return [list(rng.normal(size=count)) for count in counts]


def list_sums(x, n, rng):
    """One to five values, each of which leaks a little."""
    return [list(0.5 * x + rng.normal(size=count)) for count in rng.integers(1, 6, n)]


def list_sums_ratio(outputs):
    return np.array([sum(0.125 - 0.5 * value for value in output) for output in outputs])


def optional_key(x, n, rng):
    """The key b is there more often on the right."""
    present = rng.random((n, 3)) < 0.5 + 0.2 * x * np.array([0, 1, 0])
    return [
        {key: float(rng.laplace()) for key, there in zip("abc", flags, strict=True) if there}
        for flags in present
    ]


def missing_value(x, n, rng):
    values = np.round(rng.normal(size=n), 1)
    return [
        None if gone else float(value)
        for gone, value in zip(rng.random(n) < 0.1 + 0.3 * x, values, strict=True)
    ]


def nested(x, n, rng):
    first, second = rng.poisson(3 + x, n), rng.poisson(2, n)
    noted = rng.random(n) < 0.5
    return [
        {"counts": [int(a), int(b)], "note": "high" if note else None}
        for a, b, note in zip(first, second, noted, strict=True)
    ]


def nested_ratio(outputs):
    counts = np.array([output["counts"][0] for output in outputs])
    return 1.0 + counts * math.log(3 / 4)


def rows_of(x, n, rng):
    """How many rows there are: the leak of the texts below."""
    return np.where(rng.random(n) < (0.2 if x else 0.8), 3, 4)


def text_with_numbers(x, n, rng):
    totals = rng.laplace(104.0, 1.0, n)
    return [f"rows={r} total={t:.3f}" for r, t in zip(rows_of(x, n, rng), totals, strict=True)]


def text_of_json(x, n, rng):
    ids = rng.integers(10**9, size=n)
    return [
        json.dumps({"id": int(i), "rows": int(r)})
        for i, r in zip(ids, rows_of(x, n, rng), strict=True)
    ]


def text_of_parts(x, n, rng):
    codes = rng.integers(1000, 10_000, (n, 2))
    return [
        f"{first}-{'XY'[r - 3]}-{second}"
        for (first, second), r in zip(codes, rows_of(x, n, rng), strict=True)
    ]


def outputs_row(
    draw: Callable[..., Any], reference: Callable[[], float], n: int = DRAWS, name: str = ""
) -> None:
    row(
        f"outputs {name or draw.__name__}",
        "oracle",
        measures(em.from_batch(draw), PAIR, samples=n),
        reference,
    )


outputs_row(exact_release, event_oracle(0.03, 0.0))
outputs_row(rare_mark, event_oracle(0.0044, 0.0))
outputs_row(scale, simulated_oracle(scale, scale_ratio))
outputs_row(vector, entry_oracle("laplace"))
outputs_row(interaction, event_oracle(0.75, 0.25))
outputs_row(correlated, simulated_oracle(correlated, correlated_ratio))
outputs_row(rotated, entry_oracle("laplace"))
outputs_row(spherical, simulated_oracle(spherical, spherical_ratio))
outputs_row(mixed_record, simulated_oracle(mixed_record, mixed_record_ratio))
outputs_row(unique_id, entry_oracle("laplace", 1000), 1000)
outputs_row(list_lengths, event_oracle(0.7, 0.3))
outputs_row(list_sums, simulated_oracle(list_sums, list_sums_ratio))
outputs_row(optional_key, event_oracle(0.5, 0.3))
outputs_row(missing_value, event_oracle(0.4, 0.1))
outputs_row(nested, simulated_oracle(nested, nested_ratio))
outputs_row(text_with_numbers, event_oracle(0.8, 0.2))
outputs_row(text_of_json, event_oracle(0.8, 0.2))
outputs_row(text_of_parts, event_oracle(0.8, 0.2))


# --- few draws --------------------------------------------------------------------------------------------------------
def far_apart(x, n, rng):
    return 3 * x + rng.normal(size=n)


def far_apart_ratio(values):
    return 4.5 - 3.0 * values


for few in (60, 200, 1000):
    outputs_row(
        far_apart, simulated_oracle(far_apart, far_apart_ratio, few), few, f"far_apart, {few} draws"
    )
# Long vectors of which there are few: what leaks is no column, and nothing that so few draws could learn.
LONG = 200
FEW = 60


def normalised(x, n, rng):
    """All numbers are divided by something private."""
    return rng.normal(size=(n, LONG)) / (1.125 if x else 1.0)


def normalised_oracle() -> float:
    """The best event on the sum of squares."""
    below = np.linspace(0.7, 1.3, 200) * LONG
    p, q = chi2.cdf(below * 1.125**2, LONG), chi2.cdf(below, LONG)
    return max(
        expected_bound(float(first), float(second), FEW, FAILURE_PROBABILITY)
        for one, other in ((p, q), (1.0 - q, 1.0 - p))
        for first, second in zip(one[::10], other[::10], strict=True)
    )


def planted(value: float) -> Callable[..., np.ndarray]:
    """Now one number, now another has an unusual value, in nine of ten left outputs."""

    def draw(x, n, rng):
        numbers = rng.normal(size=(n, LONG))
        leaks = rng.random(n) < (0.0 if x else 0.9)
        numbers[leaks, rng.integers(LONG, size=n)[leaks]] = value
        return numbers

    return draw


outputs_row(normalised, normalised_oracle, FEW, f"normalised, {FEW} of {LONG}")
for unusual in (math.nan, 0.0, 30.0):
    name = f"one is {unusual:g}, {FEW} of {LONG}"
    outputs_row(planted(unusual), event_oracle(0.9, 0.0, FEW), FEW, name)
for few in (200, 1000):
    row(
        f"zoo laplace, {few} draws",
        "oracle",
        measures(em.zoo.laplace(), None, samples=few),
        entry_oracle("laplace", few),
    )


# --- notions, methods and ways to run ---------------------------------------------------------------------------------
def truth(entry: em.zoo.ZooEntry, notion: Any, **fixed: float) -> Callable[[], float]:
    """The exact value of a notion's parameter."""
    return lambda: float(entry.truth(notion, **fixed) or math.nan)


def notion_row(name: str, entry: em.zoo.ZooEntry, notion: Any, **fixed: float) -> None:
    bound = measures(entry, None, notion, **fixed)
    row(f"notion {name}, {entry.name}", "truth", bound, truth(entry, notion, **fixed))


GAUSSIAN = em.zoo.gaussian()
RESPONSE = em.zoo.randomized_response()
notion_row("epsilon at delta", GAUSSIAN, em.ApproxDP, delta=0.01)
notion_row("delta at epsilon", GAUSSIAN, em.ApproxDP, epsilon=0.5)
notion_row("mu", GAUSSIAN, em.GaussianDP)
notion_row("renyi", GAUSSIAN, em.RenyiDP, order=2.0)
notion_row("renyi", RESPONSE, em.RenyiDP, order=2.0)
notion_row("zcdp", GAUSSIAN, em.ZCDP)


def method_row(method: str, entry: em.zoo.ZooEntry, notion: Any, **fixed: float) -> None:
    bound = measures(entry, None, notion, method=method, **fixed)
    row(f"method {method}", "truth", bound, truth(entry, notion, **fixed))


method_row("hockey-stick", GAUSSIAN, em.ApproxDP, epsilon=0.5)
method_row("mmd", GAUSSIAN, em.ApproxDP, epsilon=0.1)
method_row("poisson-histogram", GAUSSIAN, em.ApproxDP, epsilon=0.5)
method_row("renyi-bet", GAUSSIAN, em.RenyiDP, order=2.0)
method_row("renyi-floored", GAUSSIAN, em.RenyiDP, order=2.0)
method_row("renyi-variational", GAUSSIAN, em.RenyiDP, order=2.0)
method_row("local", em.zoo.laplace(), em.PureDP)

EARLY_DRAWS = 1000
for early in ("laplace", "svt5"):
    row(
        f"early {early}",
        "oracle",
        measures(em.zoo.find(early), None, stop_early=True, samples=EARLY_DRAWS),
        entry_oracle(early, EARLY_DRAWS),
    )
row(
    "profile mu, gaussian",
    "truth",
    lambda seed: em.profile(GAUSSIAN, samples=DRAWS, seed=seed).mu,
    truth(GAUSSIAN, em.GaussianDP),
)
row(
    "profile epsilon, svt6",
    "truth",
    lambda seed: em.profile(em.zoo.svt6(), samples=DRAWS, seed=seed).epsilon(0.01),
    truth(em.zoo.svt6(), em.ApproxDP, delta=0.01),
)


def noisy_sum(x, n, rng):
    """The sum of two numbers of [0, 1] with noise for ε = 2.5."""
    return float(np.sum(x)) + rng.laplace(0.0, 0.4, n)


UNIT_SQUARE = em.domains.Vector(2, low=0.0, high=1.0)
FINDERS: dict[str, Callable[[], Any]] = {
    "default": lambda: em.finders.Search(UNIT_SQUARE, trials=100, samples=1000),
    "random": lambda: em.finders.Random(UNIT_SQUARE, relation="replace", trials=6, samples=500),
    "bayesian": lambda: em.finders.Bayesian(UNIT_SQUARE, relation="replace", trials=6, samples=500),
}
for name, finder in FINDERS.items():
    row(
        f"search {name}",
        "truth",
        lambda seed, finder=finder: (
            em.measure(
                em.from_batch(noisy_sum), finder(), em.PureDP, samples=3000, seed=seed
            ).lower_bound
        ),
        lambda: 2.5,
    )


# --- before and after -------------------------------------------------------------------------------------------------
def comparison(before: dict[str, Share], after: dict[str, Share]) -> Iterator[str]:
    """The table as before -> after, one line per row, then the mean of the rows that both have."""
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            yield f"{name:34}    new -> {new.share:.3f}"
            continue
        remark = ""
        if new.share < old.floor:
            remark = "  WORSE"
        elif new.share > old.share + old.tolerance:
            remark = "  better"
        yield f"{name:34}  {old.share:.3f} -> {new.share:.3f}  {new.share - old.share:+.3f}{remark}"
    for name in before.keys() - after.keys() - ROWS.keys():
        yield f"{name:34}  {before[name].share:.3f} -> gone"
    both = [name for name in after if name in before]
    if both:
        old_mean = fmean(before[name].share for name in both)
        new_mean = fmean(after[name].share for name in both)
        title = f"mean of {len(both)}"
        yield f"{title:34}  {old_mean:.3f} -> {new_mean:.3f}  {new_mean - old_mean:+.3f}"
