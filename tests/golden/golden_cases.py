"""The audits whose results are kept: every method, notion, kind of output and mode, at fixed seeds.

A case is a function of a folder to write in and of the keywords that choose an engine; it returns plain data. Only
public names are used here, so that the cases outlive any redesign behind them.
"""

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

import epsilometer as em
from epsilometer.result import OnRequest

# Workers cannot import this file; the mechanisms below travel to them whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

Engine = dict[str, Any]
Case = Callable[[Path, Engine], Any]

CASES: dict[str, Case] = {}
# Cases that draw through the engine and are worth the time on each of them.
ON_EVERY_ENGINE: list[str] = []


# --- mechanisms, one per kind of output -------------------------------------------------------------------------------
def number(x, n, rng):
    return x + rng.laplace(0.0, 0.7, n)


def gaussian(x, n, rng):
    return x + rng.normal(size=n)


def whole(x, n, rng):
    return int(x) + rng.geometric(0.5, n) - rng.geometric(0.5, n)


def word(x, n, rng):
    return np.where(rng.random(n) < (0.8 if x else 0.3), "yes", "no")


def truth(x, n, rng):
    return rng.random(n) < (0.75 if x else 0.25)


def vector(x, n, rng):
    noise = rng.laplace(size=(n, 4))
    noise[:, 1] += x
    return noise


def correlated(x, n, rng):
    first = rng.normal(size=n)
    second = (0.9 if x else -0.9) * first + 0.45 * rng.normal(size=n)
    return np.stack([first, second], axis=1)


def record(x, n, rng):
    return {
        "total": x + rng.laplace(size=n),
        "city": np.where(rng.random(n) < 0.4 + 0.2 * x, "A", "B"),
    }


def clamped(x, n, rng):
    return np.clip(x + rng.laplace(size=n), 0.0, 1.0)


def one_number(x, rng):
    return float(x + rng.laplace(0.0, 0.5))


def varying(x, rng):
    return [float(rng.normal()) for _ in range(1 + int(rng.random() < 0.3 + 0.4 * x))]


def missing(x, rng):
    return None if rng.random() < 0.1 + 0.3 * x else round(float(rng.normal()), 1)


def nested(x, rng):
    return {
        "counts": [int(rng.poisson(3 + x)), int(rng.poisson(2))],
        "note": "high" if rng.random() < 0.5 else None,
    }


def keyed(x, rng):
    return {
        key: float(rng.laplace())
        for key in ("a", "b", "c")
        if rng.random() < 0.5 + 0.2 * x * (key == "b")
    }


def failing(x, rng):
    if rng.random() < 0.05 + 0.25 * x:
        raise ValueError("out of range")
    return float(rng.normal())


BATCHES = [number, whole, word, truth, vector, correlated, record, clamped]
SINGLES = [one_number, varying, missing, nested, keyed]
PAIR = em.Pair(0, 1)


# --- how a case is written --------------------------------------------------------------------------------------------
def case(name: str, *, everywhere: bool = False) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        assert name not in CASES, name
        CASES[name] = function
        if everywhere:
            ON_EVERY_ENGINE.append(name)
        return function

    return add


def plain(result: em.AuditResult) -> dict[str, Any]:
    """A result as plain data, without what it would have to rehearse: a few cases ask for that themselves."""
    return dataclasses.replace(result, on_request=OnRequest(identity=result.identity)).to_dict()


def audits(name: str, *arguments: Any, everywhere: bool = False, **keywords: Any) -> None:
    """One audit as a case."""
    keywords = {"samples": 4000, "seed": 7} | keywords
    case(name, everywhere=everywhere)(
        lambda folder, engine: plain(em.audit(*arguments, **keywords, **engine))
    )


def measures(name: str, *arguments: Any, everywhere: bool = False, **keywords: Any) -> None:
    """One measurement as a case."""
    keywords = {"samples": 4000, "seed": 7} | keywords
    case(name, everywhere=everywhere)(
        lambda folder, engine: em.measure(*arguments, **keywords, **engine).to_dict()
    )


# --- kinds of output --------------------------------------------------------------------------------------------------
for function in BATCHES:
    audits(
        f"kind-{function.__name__}",
        em.from_batch(function),
        PAIR,
        em.PureDP(1.0),
        everywhere=function is vector,
    )
for function in SINGLES:
    audits(
        f"kind-{function.__name__}",
        function,
        PAIR,
        em.PureDP(0.5),
        samples=2000,
        everywhere=function is varying,
    )
audits(
    "kind-failures",
    em.from_callable(failing, on_error="outcome"),
    PAIR,
    em.PureDP(0.5),
    samples=2000,
)
audits(
    "kind-constant",
    em.from_batch(lambda x, n, rng: np.full(n, float(x))),
    PAIR,
    em.PureDP(1.0),
    samples=500,
)
audits("kind-equal-law", em.from_batch(lambda x, n, rng: rng.normal(size=n)), PAIR, em.PureDP(0.1))
for size in (20, 60, 200, 1000):
    audits(
        f"few-draws-{size}",
        em.from_batch(lambda x, n, rng: 3 * x + rng.normal(size=n)),
        PAIR,
        em.PureDP(1.0),
        samples=size,
    )
audits("few-draws-vector", em.from_batch(vector), em.Pair(0, 6), em.PureDP(1.0), samples=300)

# --- notions ----------------------------------------------------------------------------------------------------------
NOTIONS = {
    "pure": em.PureDP(0.5),
    "approx": em.ApproxDP(0.5, 0.01),
    "renyi": em.RenyiDP(2.0, 0.2),
    "zcdp": em.ZCDP(0.1),
    "gaussian": em.GaussianDP(0.5),
    "tradeoff": em.TradeOffDP(([0.0, 0.8, 1.0], [0.8, 0.0, 0.0])),
}
for notion, claim in NOTIONS.items():
    audits(f"notion-{notion}", em.from_batch(gaussian), PAIR, claim, everywhere=notion == "renyi")
    audits(f"notion-{notion}-words", em.from_batch(word), PAIR, claim)
measures("measure-pure", em.from_batch(gaussian), PAIR, em.PureDP, everywhere=True)
measures("measure-epsilon-at-delta", em.from_batch(gaussian), PAIR, em.ApproxDP, delta=0.01)
measures("measure-delta-at-epsilon", em.from_batch(gaussian), PAIR, em.ApproxDP, epsilon=0.5)
measures("measure-renyi", em.from_batch(gaussian), PAIR, em.RenyiDP, order=3.0)
measures("measure-gaussian", em.from_batch(gaussian), PAIR, em.GaussianDP)
audits("group-of-two", em.from_batch(number), em.Pair(0, 2), em.PureDP(1.0), distance=2)


@case("detectable")
def _(folder, engine):
    audited = {
        make.__name__: em.audit(em.from_batch(make), PAIR, em.PureDP(2.0), samples=500, seed=7)
        for make in (number, word, vector)
    }
    return {name: result.detectable for name, result in audited.items()}


# --- methods ----------------------------------------------------------------------------------------------------------
for method in (
    "events",
    "hockey-stick",
    "mmd",
    "poisson-histogram",
    "local",
    "renyi-variational",
    "bits",
):
    audits(f"method-{method}", em.from_batch(gaussian), PAIR, em.PureDP(0.5), method=method)
for method in ("hockey-stick", "mmd", "poisson-histogram"):
    audits(
        f"method-{method}-delta",
        em.from_batch(gaussian),
        PAIR,
        em.ApproxDP(0.2, 0.05),
        method=method,
    )
    audits(
        f"method-{method}-published",
        em.from_batch(gaussian),
        PAIR,
        em.ApproxDP(0.2, 0.05),
        method=method,
        options={"certificate": "published"},
    )
for method in ("renyi-bet", "renyi-variational", "renyi-floored"):
    audits(
        f"method-{method}-order-2",
        em.from_batch(gaussian),
        PAIR,
        em.RenyiDP(2.0, 0.5),
        method=method,
    )
audits("method-local-words", em.from_batch(word), PAIR, em.PureDP(0.5), method="local")
audits(
    "method-renyi-floored-words",
    em.from_batch(word),
    PAIR,
    em.RenyiDP(2.0, 0.5),
    method="renyi-floored",
)
audits(
    "method-hockey-stick-vector", em.from_batch(vector), PAIR, em.PureDP(0.3), method="hockey-stick"
)
audits("method-mmd-vector", em.from_batch(vector), PAIR, em.PureDP(0.3), method="mmd")
audits(
    "method-ldp-histogram",
    em.zoo.truncated_laplace(epsilon=1.0),
    method="ldp-histogram",
    options={"domain": [0.0, 1.0], "lipschitz": 0.7, "precision": 0.5},
    samples=20_000,
)

# --- the zoo ----------------------------------------------------------------------------------------------------------
for entry in (
    "laplace",
    "gaussian",
    "geometric",
    "svt1",
    "svt3",
    "svt5",
    "svt6",
    "numerical_svt",
    "report_noisy_max",
):
    audits(f"zoo-{entry}", getattr(em.zoo, entry)(), everywhere=entry == "svt3")
for entry in (
    "noisy_histogram",
    "rappor",
    "shuffled_responses",
    "propose_test_release",
    "dp_mean",
    "scaled_gd",
):
    audits(f"zoo-{entry}", getattr(em.zoo, entry)())

# --- modes ------------------------------------------------------------------------------------------------------------
audits(
    "early-number", em.from_batch(number), PAIR, em.PureDP(0.5), stop_early=True, everywhere=True
)
audits(
    "early-single", one_number, PAIR, em.PureDP(1.0), stop_early=True, samples=1500, everywhere=True
)
audits("early-not-refuted", em.from_batch(number), PAIR, em.PureDP(2.0), stop_early=True)
audits("early-gaussian-claim", em.from_batch(gaussian), PAIR, em.GaussianDP(0.5), stop_early=True)
audits("early-delta", em.from_batch(gaussian), PAIR, em.ApproxDP(0.5, 0.01), stop_early=True)
audits(
    "early-words-two-pairs", em.from_batch(word), [(0, 1), (1, 0)], em.PureDP(0.5), stop_early=True
)
audits(
    "pairs", em.from_batch(number), [(0, 0.2), (0, 1), (0, 0.5)], em.PureDP(1.0), everywhere=True
)
audits("bits", em.from_batch(number), PAIR, em.PureDP(1.0), representation="bits")
audits("bits-beside", em.from_batch(number), PAIR, em.PureDP(1.0), representation="all")

VECTORS = em.domains.Vector(2, low=0.0, high=1.0)


def sum_of(x, n, rng):
    return float(np.sum(x)) + rng.laplace(0.0, 0.4, n)


@case("finder-random", everywhere=True)
def _(folder, engine):
    finder = em.finders.Random(VECTORS, relation="replace", trials=6, samples=500, seed=3)
    return plain(
        em.audit(em.from_batch(sum_of), finder, em.PureDP(1.0), samples=3000, seed=7, **engine)
    )


@case("finder-grid")
def _(folder, engine):
    finder = em.finders.Grid(em.domains.Number(0.0, 1.0), trials=6, samples=500)
    return plain(
        em.audit(em.from_batch(number), finder, em.PureDP(1.0), samples=3000, seed=7, **engine)
    )


@case("finder-bayesian")
def _(folder, engine):
    finder = em.finders.Bayesian(VECTORS, relation="replace", trials=6, samples=500, seed=3)
    return plain(
        em.audit(em.from_batch(sum_of), finder, em.PureDP(1.0), samples=3000, seed=7, **engine)
    )


@case("finder-patterns")
def _(folder, engine):
    entry = em.zoo.report_noisy_max()
    finder = em.finders.Patterns(em.domains.Queries(6), samples=500)
    return plain(em.audit(entry.mechanism, finder, em.PureDP(0.5), samples=3000, seed=7, **engine))


@case("recording-jsonl", everywhere=True)
def _(folder, engine):
    kept = folder / "draws.jsonl"
    first = em.audit(
        em.from_batch(record), PAIR, em.PureDP(0.5), samples=2000, seed=7, record=kept, **engine
    )
    again = em.audit(em.from_recording(kept), PAIR, em.PureDP(0.5), samples=2000, seed=7)
    return {"first": plain(first), "again": plain(again)}


@case("recording-npz")
def _(folder, engine):
    kept = folder / "draws.npz"
    first = em.audit(
        em.from_batch(vector), PAIR, em.PureDP(0.5), samples=2000, seed=7, record=kept, **engine
    )
    again = em.audit(em.from_recording(kept), PAIR, em.PureDP(0.5), samples=2000, seed=7)
    return {"first": plain(first), "again": plain(again)}


@case("checkpoint-whole", everywhere=True)
def _(folder, engine):
    keywords = {
        "samples": 3000,
        "seed": 7,
        "checkpoint": folder / "whole",
        "stop_early": False,
        **engine,
    }
    first = em.audit(em.from_batch(vector), PAIR, em.PureDP(0.5), **keywords)
    again = em.audit(em.from_batch(vector), PAIR, em.PureDP(0.5), **keywords)
    return {"first": plain(first), "again": plain(again)}


@case("checkpoint-early")
def _(folder, engine):
    keywords = {
        "samples": 3000,
        "seed": 7,
        "checkpoint": folder / "early",
        "stop_early": True,
        **engine,
    }
    first = em.audit(em.from_batch(number), PAIR, em.PureDP(2.0), **keywords)
    again = em.audit(em.from_batch(number), PAIR, em.PureDP(2.0), **keywords)
    return {"first": plain(first), "again": plain(again)}


@case("replay", everywhere=True)
def _(folder, engine):
    mechanism = em.from_batch(number)
    result = em.audit(mechanism, PAIR, em.PureDP(1.0), samples=4000, seed=7, **engine)
    stored = em.AuditResult.from_json(result.to_json())
    return plain(em.replay(stored, mechanism, samples=3000, seed=8, **engine))


# --- comparing what was recorded, and the researchers' pieces ---------------------------------------------------------
def sides(make: Callable[..., Any], n: int = 3000) -> tuple[Any, Any]:
    return make(0, n, np.random.default_rng(1)), make(1, n, np.random.default_rng(2))


for function in (gaussian, word, vector, record):
    case(f"compare-{function.__name__}")(
        lambda folder, engine, function=function: plain(
            em.compare(*sides(function), em.PureDP(0.5), seed=7)
        )
    )


@case("compare-unequal-sizes")
def _(folder, engine):
    left, right = sides(gaussian)
    return plain(em.compare(left[:700], right, em.ApproxDP(0.5, 0.01), seed=7))


@case("compare-scores")
def _(folder, engine):
    left, right = sides(gaussian, 500)
    found = em.from_scores(right, left)
    return [found.epsilon(0.01), found.mu, found.tpr(0.1), found.auroc]


@case("profile", everywhere=True)
def _(folder, engine):
    found = em.profile(em.from_batch(gaussian), PAIR, samples=4000, seed=7, **engine)
    return found.to_dict() | {"delta at .5": found.delta(0.5), "power at .1": found.power(0.1)}


@case("profile-words")
def _(folder, engine):
    return em.profile(em.from_batch(word), PAIR, samples=4000, seed=7, **engine).to_dict()


@case("one-run")
def _(folder, engine):
    return [
        em.one_run(m, r, v, 1e-5) for m, r, v in ((100, 60, 50), (1000, 600, 600), (1000, 500, 300))
    ]


@case("local-mpl")
def _(folder, engine):
    pairs = [(0.0, 0.5), (0.0, 1.0)]
    mechanism = em.from_batch(lambda x, n, rng: x + rng.laplace(size=n))
    found = em.local.mpl(
        mechanism, pairs, n=2000, N=5000, region=(-1, 1), floor=1e-3, confidence=0.95, seed=7
    )
    return [found.lower_bound, found.estimate, found.location, repr(found.pair)]


@case("renyi-lower-bound")
def _(folder, engine):
    found = [
        em.renyi.lower_bound(*sides(make), 2.0, floor=1e-2, confidence=0.95)
        for make in (gaussian, word)
    ]
    return [[each.lower_bound, each.estimate, each.variance] for each in found]


@case("plan")
def _(folder, engine):
    histogram = em.plan(precision=0.5, confidence=0.9, lipschitz=2 / 3, domain=(0.0, 1.0))
    events = em.plan(claim=em.PureDP(1.0), truth=1.5)
    return [histogram.cells, histogram.samples, events.samples, list(events.event)]


# --- what is compared -------------------------------------------------------------------------------------------------
# What differs from run to run or from machine to machine, and says nothing about the answer.
_PASSING = {"seconds", "p_value", "environment", "date", "identity", "recipe", "code_digest"} | {
    *("engine", "jobs", "recorded_to"),
}


def lasting(data: Any) -> Any:
    """Plain data without what is different every time."""
    if isinstance(data, dict):
        if (
            "mark_rows" in data
        ):  # digests of recorded rows, whose last bits another machine may compute otherwise
            data = {key: value for key, value in data.items() if key not in ("digest", "marks")}
        return {str(key): lasting(value) for key, value in data.items() if key not in _PASSING}
    if isinstance(data, list | tuple):
        return [lasting(value) for value in data]
    if isinstance(data, np.generic):
        return lasting(data.item())
    if isinstance(data, float) and not math.isfinite(data):
        return repr(data)
    return data


def run(name: str, folder: Path, engine: Engine | None = None) -> Any:
    """A case as it is stored."""
    text = json.dumps(lasting(CASES[name](folder, engine or {})))
    return json.loads(text.replace(str(folder), "FOLDER"))


def differences(known: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two stored results differ: whole numbers, words and verdicts exactly, other numbers by more than 1e-9."""
    if isinstance(known, dict) and isinstance(found, dict):
        for key in known.keys() | found.keys():
            if key not in known or key not in found:
                yield f"{place}/{key}: {'new' if key in found else 'gone'}"
            else:
                yield from differences(known[key], found[key], f"{place}/{key}")
    elif isinstance(known, list) and isinstance(found, list):
        if len(known) != len(found):
            yield f"{place}: {len(known)} items became {len(found)}"
        for number, (one, other) in enumerate(zip(known, found, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif _is_float(known) and _is_float(found):
        if abs(known - found) > 1e-9 * max(1.0, abs(known)):
            yield f"{place}: {known!r} became {found!r}"
    elif type(known) is not type(found) or known != found:
        yield f"{place}: {known!r} became {found!r}"


def _is_float(value: Any) -> bool:
    return isinstance(value, float)
