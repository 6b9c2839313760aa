"""Contracts: what audits promise in form, whatever they learn from the draws.

A case runs audits and returns plain data. What is stored of it is exact: keys, verdicts, texts of events, settings,
guarantees, health codes, messages. Figures that depend on what was learned (counts, bounds, edges) are replaced by
the names of their types; how large they are is the business of the power table (`power_cases`).

The mechanisms below have two different outputs, or outputs of which one side is impossible: the event that separates
them is the same for every sensible learner. Audits are made and read by public names only, so that the cases outlive
any redesign behind them.
"""

import dataclasses
import difflib
import io
import json
import math
import re
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

import epsilometer as em
from epsilometer import testing
from epsilometer.cli import main
from epsilometer.result import OnRequest

# Workers cannot import this file; the mechanisms below travel to them whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

STORED = Path(__file__).parent / "contracts"

# The keywords that choose an engine: {} or {"jobs": 2}.
Engine = dict[str, Any]
# A case: a function of a folder to write in and of the engine, which returns plain data.
Case = Callable[[Path, Engine], Any]

CASES: dict[str, Case] = {}
# Audits whose figures must be the same on workers, digit by digit.
ON_WORKERS: dict[str, Case] = {}

PAIR = em.Pair(0, 1)
CLAIM = em.PureDP(0.5)
# Enough to refute: the coin below has ε = ln(0.7 / 0.2) = 1.25.
SAMPLES = 1000
SEED = 7


# --- mechanisms with one possible event -------------------------------------------------------------------------------
def coins(x, n, rng):
    """Shows True with probability .3 on the left and .8 on the right; False separates the sides best."""
    return rng.random(n) < (0.8 if x else 0.3)


def coin(x, rng):
    return bool(coins(x, 1, rng)[0])


def number(x, n, rng):
    """Exponential noise: below x there is nothing, so that only the left side has outputs below 1."""
    return x + rng.exponential(size=n)


def whole(x, n, rng):
    return np.where(coins(x, n, rng), 4, 3)


def word(x, n, rng):
    return np.where(coins(x, n, rng), "yes", "no")


def vector(x, n, rng):
    outputs = np.tile([1.0, 2.0, 3.0], (n, 1))
    outputs[:, 1] += coins(x, n, rng)
    return outputs


def record(x, n, rng):
    return {"total": np.full(n, 4.5), "city": np.where(coins(x, n, rng), "A", "B")}


def text(x, rng):
    return f"rows={3 if coin(x, rng) else 4} total=10"


def varying(x, rng):
    return [1.0] * (2 if coin(x, rng) else 1)


def missing(x, rng):
    return None if coin(x, rng) else 2.5


def nested(x, rng):
    return {"counts": [3, 5 if coin(x, rng) else 4], "note": None}


def keyed(x, rng):
    return {"a": 1, "b": 1} if coin(x, rng) else {"a": 1}


def failing(x, rng):
    if coin(x, rng):
        raise ValueError("out of range")
    return 1.5


def sticky(x, n, rng):
    """The words again, but four draws at a time are one and the same."""
    tossed = coins(x, math.ceil(n / 4), rng)
    return np.where(np.repeat(tossed, 4)[:n], "yes", "no")


def gaussian(x, n, rng):
    return x + rng.normal(size=n)


# --- what is stored of a result ---------------------------------------------------------------------------------------
# What differs from run to run or from machine to machine, and says nothing about the answer.
PASSING = {"seconds", "p_value", "environment", "date", "identity", "recipe", "code_digest"} | {
    *("engine", "jobs", "recorded_to"),
}
# Parts of a result that are what the caller gave, or what every learner must say.
GIVEN = {"claim", "confidence", "pair", "samples_used", "schema_version", "settings"}
# A fraction such as 0.25 or 1.5e-07, and any number, with commas or without, that is no part of a name.
FRACTION = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def full(result: em.AuditResult) -> dict[str, Any]:
    """The result as plain data, without what it would have to rehearse."""
    return dataclasses.replace(result, on_request=OnRequest(identity=result.identity)).to_dict()


def outline(result: em.AuditResult) -> dict[str, Any]:
    """The result in form: the witness once, its event as text, figures as types, details by their keys.

    Fields without a value are left out; `output-word` has them all.
    """
    data = full(result)
    first, *others = data["findings"]
    for name in ("witness", "lower_bound", "guarantee"):
        assert data.pop(name) == first[name], f"{name} is that of the first finding"
    data["findings"] = [outline_of_finding(finding) for finding in (first, *others)]
    settings = data["settings"]
    # These hold rows that chose or certified, a bound, and counts of failed calls.
    for name in ("recording", "replay_of", "failed"):
        if name in settings:
            settings[name] = types_of(settings[name])
    return {
        key: value if key in GIVEN | {"findings", "verdict"} else types_of(value)
        for key, value in data.items()
        if value is not None or key == "verdict"
    }


def without_event(stored: dict[str, Any]) -> dict[str, Any]:
    """An outline without the event and its side."""
    for finding in stored["findings"]:
        del finding["witness"]["event"]
        del finding["witness"]["likelier_under"]
    return stored


def outline_of_finding(finding: dict[str, Any]) -> dict[str, Any]:
    witness = finding["witness"]
    if witness is not None:
        event = {"kind": witness["event"]["kind"], "text": types_of(witness["event"]["text"])}
        witness = {
            key: value if key in GIVEN else types_of(value) for key, value in witness.items()
        } | {"event": event}
    return {
        "claim": finding["claim"],
        "confidence": finding["confidence"],
        "details": sorted(finding["details"]),
        "guarantee": types_of(finding["guarantee"]),
        "lower_bound": types_of(finding["lower_bound"]),
        "method": finding["method"],
        "witness": witness,
    }


def types_of(data: Any) -> Any:
    """Plain data with types instead of figures; of a list whose items look alike only one."""
    if isinstance(data, dict):
        return {key: types_of(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        items = [types_of(value) for value in data]
        return items[:1] if all(item == items[0] for item in items) else items
    if isinstance(data, str):
        return FRACTION.sub("#", data)
    if data is None or isinstance(data, bool):
        return data
    return type(data).__name__


def lasting(data: Any) -> Any:
    """Plain data that JSON can hold, without what is different every time."""
    if isinstance(data, dict):
        if "mark_rows" in data:  # digests of recorded rows: another machine may round otherwise
            data = {key: value for key, value in data.items() if key not in ("digest", "marks")}
        return {str(key): lasting(value) for key, value in data.items() if key not in PASSING}
    if isinstance(data, list | tuple):
        return [lasting(value) for value in data]
    if isinstance(data, np.generic):
        return lasting(data.item())
    if isinstance(data, float) and not math.isfinite(data):
        return repr(data)
    return data


def sentences(report: str) -> list[str]:
    """The lines of a report, unwrapped and without figures, dates and digests."""
    unwrapped = re.sub(r"\n {19}(?=\S)", " ", report)
    lines = [" ".join(line.split()) for line in unwrapped.splitlines()]
    passing = ("date ", "code ")
    return [NUMBER.sub("#", line) for line in lines if line and not line.startswith(passing)]


def run(case: Case, folder: Path, engine: Engine | None = None) -> Any:
    """What a case gives, as it is stored."""
    as_text = json.dumps(lasting(case(folder, engine or {})), ensure_ascii=False)
    return json.loads(as_text.replace(str(folder), "FOLDER"))


def differences(known: Any, found: Any, place: str = "") -> list[str]:
    """Where two stored cases differ: exactly, but for the ninth digit of fractions."""
    if isinstance(known, dict) and isinstance(found, dict):
        places = []
        for key in sorted(known.keys() | found.keys()):
            if key not in found:
                places.append(f"{place}/{key} is gone; it was {known[key]!r}")
            elif key not in known:
                places.append(f"{place}/{key} is new: {found[key]!r}")
            else:
                places += differences(known[key], found[key], f"{place}/{key}")
        return places
    if isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        pairs = enumerate(zip(known, found, strict=True))
        return [text for i, (old, new) in pairs for text in differences(old, new, f"{place}[{i}]")]
    if isinstance(known, list) and isinstance(found, list):
        return changed_items(known, found, place)
    if isinstance(known, float) and isinstance(found, float):
        same = math.isclose(known, found, rel_tol=1e-9, abs_tol=1e-9)
    else:
        same = type(known) is type(found) and known == found
    return [] if same else [f"{place}: {known!r} -> {found!r}"]


def changed_items(known: list[Any], found: list[Any], place: str) -> list[str]:
    """Which items of a list are gone and which are new."""
    old = [json.dumps(item, ensure_ascii=False, sort_keys=True) for item in known]
    new = [json.dumps(item, ensure_ascii=False, sort_keys=True) for item in found]
    places = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            places += [f"{place}[{i}] is gone; it was {old[i]}" for i in range(start, end)]
            places += [f"{place}[{i}] is new: {new[i]}" for i in range(new_start, new_end)]
    return places


# --- how a case is written --------------------------------------------------------------------------------------------
def case(function: Case) -> Case:
    """Adds a function as a case of its name."""
    name = function.__name__.replace("_", "-")
    assert name not in CASES, name
    CASES[name] = function
    return function


def audits(
    name: str,
    *arguments: Any,
    on_workers: bool = False,
    forced: bool = True,
    **keywords: Any,
) -> None:
    """Adds one audit as a case; the event is left out where its complement would do as well."""
    keywords = {"samples": SAMPLES, "seed": SEED} | keywords
    assert name not in CASES, name

    def run_case(folder: Path, engine: Engine) -> Any:
        stored = outline(em.audit(*arguments, **keywords, **engine))
        return stored if forced else without_event(stored)

    CASES[name] = run_case
    if on_workers:
        ON_WORKERS[name] = lambda folder, engine: full(em.audit(*arguments, **keywords, **engine))


def on_workers(function: Case) -> Case:
    """Adds a function whose figures are the same on workers."""
    ON_WORKERS[function.__name__.replace("_", "-")] = function
    return function


# --- kinds of output --------------------------------------------------------------------------------------------------
BATCHES = {
    "number": number,
    "whole-number": whole,
    "boolean": coins,
    "vector": vector,
    "record": record,
}
SINGLES = {
    "text": text,
    "list-of-any-length": varying,
    "missing-value": missing,
    "nested": nested,
    "optional-key": keyed,
}
for name, batch in BATCHES.items():
    audits(f"output-{name}", em.from_batch(batch), PAIR, CLAIM, on_workers=batch is vector)
for name, single in SINGLES.items():
    audits(f"output-{name}", single, PAIR, CLAIM, on_workers=single is varying)
audits("output-failure", em.from_callable(failing, on_error="outcome"), PAIR, CLAIM)


@case
def output_word(folder, engine):
    """The one case with all figures: seeds, division of the draws, and exact bounds of a known event."""
    return full(em.audit(em.from_batch(word), PAIR, CLAIM, samples=SAMPLES, seed=SEED, **engine))


# --- notions and measures ---------------------------------------------------------------------------------------------
NOTIONS = {
    "approx": em.ApproxDP(0.5, 0.01),
    "renyi": em.RenyiDP(2.0, 0.2),
    "zcdp": em.ZCDP(0.1),
    "gaussian": em.GaussianDP(0.5),
    "tradeoff": em.TradeOffDP(([0.0, 0.8, 1.0], [0.8, 0.0, 0.0])),
}
for notion, claim in NOTIONS.items():
    audits(
        f"claim-{notion}",
        em.from_batch(word),
        PAIR,
        claim,
        on_workers=notion == "renyi",
        forced=notion == "approx",  # of two outcomes, each has the whole divergence
    )


@case
def measures(folder, engine):
    """What can be asked instead of claimed, in the parameter that was left open."""
    asked = {
        "epsilon": (em.PureDP, {}),
        "epsilon at delta": (em.ApproxDP, {"delta": 0.01}),
        "delta at epsilon": (em.ApproxDP, {"epsilon": 0.5}),
        "divergence of an order": (em.RenyiDP, {"order": 3.0}),
        "rho": (em.ZCDP, {}),
        "mu": (em.GaussianDP, {}),
    }
    stored = {}
    for name, (notion, fixed) in asked.items():
        keywords = {"samples": SAMPLES, "seed": SEED, **fixed, **engine}
        answer = brief(em.measure(em.from_batch(word), PAIR, notion, **keywords))
        del answer["event"]
        stored[name] = answer
    return stored


def brief(result: em.AuditResult) -> dict[str, Any]:
    """The answer and its witness in form, for cases that hold many of them."""
    data = outline(result)
    finding = data["findings"][0]
    return {
        "claim": finding["claim"],
        "event": None if finding["witness"] is None else finding["witness"]["event"],
        "guarantee": finding["guarantee"],
        "health": checks(result),
        "method": finding["method"],
        "verdict": data["verdict"],
    }


def checks(result: em.AuditResult) -> list[str]:
    """The health checks that spoke, and whether they left the draws any trust."""
    spoken = {(report.name, report.untrusted) for report in result.health}
    return [f"{name}: untrusted" if untrusted else name for name, untrusted in sorted(spoken)]


# --- methods ----------------------------------------------------------------------------------------------------------
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "events": (CLAIM, {}),
    "bits": (CLAIM, {}),
    "hockey-stick": (em.ApproxDP(0.2, 0.05), {}),
    "hockey-stick as published": (em.ApproxDP(0.2, 0.05), {"certificate": "published"}),
    "mmd": (em.ApproxDP(0.2, 0.05), {}),
    "poisson-histogram": (em.ApproxDP(0.2, 0.05), {}),
    "local": (CLAIM, {}),
    "renyi-bet": (em.RenyiDP(2.0, 0.2), {}),
    "renyi-floored": (em.RenyiDP(2.0, 0.2), {}),
    "renyi-variational": (em.RenyiDP(2.0, 0.2), {}),
}


@case
def methods(folder, engine):
    """What each method stores: its details, its guarantee, and the structure of its event."""
    stored = {}
    for name, (claim, options) in METHODS.items():
        result = em.audit(
            em.from_batch(gaussian),
            em.Pair(0, 2),
            claim,
            samples=SAMPLES,
            seed=SEED,
            method=name.removesuffix(" as published"),
            options=options or None,
            **engine,
        )
        data = full(result)
        stored[name] = {
            "details": sorted(data["findings"][0]["details"]),
            "guarantee": types_of(data["guarantee"]),
            "event": None if data["witness"] is None else paths_of(data["witness"]["event"]),
        }
    return stored


def paths_of(data: Any, place: str = "") -> list[str]:
    """The keys of stored data, level by level: `partition[].groups[].edges`."""
    if isinstance(data, dict):
        return [
            path
            for key in sorted(data)
            for path in paths_of(data[key], f"{place}.{key}" if place else key)
        ]
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return paths_of(data[0], f"{place}[]")
    return [place]


@case
def method_ldp_histogram(folder, engine):
    return outline(
        em.audit(
            em.zoo.truncated_laplace(epsilon=1.0),
            method="ldp-histogram",
            options={"domain": [0.0, 1.0], "lipschitz": 0.7, "precision": 0.5},
            samples=20_000,
            seed=SEED,
            **engine,
        )
    )


# --- ways to run ------------------------------------------------------------------------------------------------------
audits(
    "several-pairs",
    em.from_batch(word),
    [(0, 0.0), (0, 1), (1, 2)],
    em.PureDP(0.25),
    distance=2,
    samples=2000,
    on_workers=True,
)
audits("bits-as-well", em.from_batch(number), PAIR, CLAIM, representation="all")


@case
def stop_early(folder, engine):
    """Refuted long before the draws are used up, and never: how many draws that takes is a figure."""
    stored = {}
    for name, claimed in {"refuted": 0.25, "not refuted": 3.0}.items():
        result = em.audit(
            em.from_batch(word), PAIR, em.PureDP(claimed), stop_early=True, samples=2000, seed=SEED
        )
        stored[name] = {
            "stopped": result.findings[0].details["stopped"],
            "verdict": result.verdict.value,
        }
    stored["result"] = outline(result) | {"samples_used": types_of(list(result.samples_used))}
    return stored


def threshold(x, n, rng):
    """Leaks whether the first number is above 0.9, and nothing else; raises if it is missing."""
    return float(x[0] > 0.9) + rng.exponential(size=n)


@case
def finder(folder, engine):
    pairs = em.finders.Grid(em.domains.Number(0.0, 1.0), trials=4, samples=200)
    return outline(
        em.audit(em.from_batch(number), pairs, CLAIM, samples=SAMPLES, seed=SEED, **engine)
    )


@case
def search(folder, engine):
    """The default search of a domain: screened, certified, made smaller."""
    domain = em.domains.Vector(2, low=0.0, high=1.0)
    result = em.audit(em.from_batch(threshold), domain, CLAIM, samples=SAMPLES, seed=SEED, **engine)
    stored = outline(result)
    witness = stored["findings"][0]["witness"]
    witness["pair"] = sorted(witness["pair"])
    del witness["likelier_under"]  # which of the inputs is called the left one is chance
    stored["health"] = checks(result)
    return stored | {"samples_used": types_of(stored["samples_used"])}


@case
def recording(folder, engine):
    """An audit that records, and one of what it recorded."""
    path = folder / "draws.jsonl"
    keywords = {"samples": SAMPLES, "seed": SEED}
    first = em.audit(em.from_batch(record), PAIR, CLAIM, record=path, **keywords, **engine)
    again = em.audit(em.from_recording(path), PAIR, CLAIM, **keywords)
    assert again.lower_bound == first.lower_bound
    return {"recorded": brief(first), "audited": outline(again)}


@case
def checkpoint(folder, engine):
    """An audit with a checkpoint, and one that finds it."""
    keywords = {"samples": SAMPLES, "seed": SEED, "checkpoint": folder / "draws", **engine}
    first = em.audit(em.from_batch(vector), PAIR, CLAIM, **keywords)
    again = em.audit(em.from_batch(vector), PAIR, CLAIM, **keywords)
    assert again.lower_bound == first.lower_bound
    return outline(again)


@case
def replay(folder, engine):
    mechanism = em.from_batch(word)
    first = em.audit(mechanism, PAIR, CLAIM, samples=SAMPLES, seed=SEED, **engine)
    stored = em.AuditResult.from_json(first.to_json())
    return outline(em.replay(stored, mechanism, samples=SAMPLES, seed=SEED + 1, **engine))


# --- other entry points -----------------------------------------------------------------------------------------------
def both_sides(mechanism: Callable[..., Any], n: int = SAMPLES) -> tuple[Any, Any]:
    left = mechanism(0, n, np.random.default_rng(1))
    right = mechanism(1, n, np.random.default_rng(2))
    return left, right


@case
def compare(folder, engine):
    """Recorded samples of different sizes."""
    left, right = both_sides(word)
    return outline(em.compare(left[:700], right, CLAIM, seed=SEED))


@case
def profile(folder, engine):
    found = em.profile(em.from_batch(word), PAIR, samples=SAMPLES, seed=SEED, **engine)
    data = found.to_dict()
    return {
        key: value if key in GIVEN else types_of(value)
        for key, value in data.items()
        if key not in PASSING
    }


@case
def exact_figures(folder, engine):
    """Figures of formulas: scores, one training run, plans. Nothing is learned for them."""
    outsiders, members = both_sides(gaussian, 500)
    scores = em.from_scores(members, outsiders)
    events = em.plan(em.PureDP(1.0), truth=1.5)
    histogram = em.ldp.plan(precision=0.5, confidence=0.9, lipschitz=2 / 3, domain=(0.0, 1.0))
    return {
        "scores": [scores.epsilon(0.01), scores.mu, scores.tpr(0.1), scores.auroc],
        "one run": [
            em.one_run(canaries, guesses, right, 1e-5)
            for canaries, guesses, right in ((100, 60, 50), (1000, 600, 600), (1000, 500, 300))
        ],
        "plan of a histogram": [histogram.cells, histogram.samples],
        "plan of an audit": types_of([events.samples, events.event_probability]),
    }


@case
def published_procedures(folder, engine):
    """Procedures of the papers as functions: formulas on given draws, without our learner."""
    laplace = em.from_batch(lambda x, n, rng: x + rng.laplace(size=n))
    local = em.local.mpl(
        laplace,
        [(0.0, 0.5), (0.0, 1.0)],
        n=2000,
        N=5000,
        region=(-1, 1),
        floor=1e-3,
        confidence=0.95,
        seed=SEED,
    )
    stored: dict[str, Any] = {"local.mpl": [local.lower_bound, local.estimate, repr(local.pair)]}
    for mechanism in (gaussian, word):
        bound = em.renyi.lower_bound(*both_sides(mechanism), 2.0, floor=1e-2, confidence=0.95)
        stored[f"renyi.lower_bound of {mechanism.__name__}"] = [bound.lower_bound, bound.estimate]
    return stored


# --- endings ----------------------------------------------------------------------------------------------------------
audits("not-refuted", em.from_batch(word), PAIR, em.PureDP(3.0))


@case
def health(folder, engine):
    """Which checks speak of which draws; those that cannot be trusted decide nothing."""
    fakes = {
        "constant on both sides": testing.constant(1.0),
        "constant on each side": em.from_batch(lambda x, n, rng: np.full(n, float(x))),
        "drift": testing.drifting(),
        "frozen seed": testing.frozen_seed(),
        "serial correlation": testing.serially_correlated(),
    }
    stored = {}
    for name, mechanism in fakes.items():
        result = em.audit(mechanism, em.Pair(0, 3), CLAIM, samples=4000, seed=SEED, **engine)
        stored[name] = {"verdict": result.verdict.value, "health": checks(result)}
    return stored


def never_answers(x, n, rng):
    time.sleep(3600)


@case
def refusals(folder, engine):
    """Audits without a result, in the words of their errors."""
    keywords = {"samples": SAMPLES, "seed": SEED}
    mechanism = em.from_batch(word)
    wrong: dict[str, Callable[[], Any]] = {
        "no inputs": lambda: em.audit(mechanism, None, CLAIM, **keywords),
        "no claim": lambda: em.audit(mechanism, PAIR, **keywords),
        "equal inputs": lambda: em.audit(mechanism, em.Pair(1, 1), CLAIM, **keywords),
        "too few draws": lambda: em.audit(mechanism, PAIR, CLAIM, samples=3, seed=SEED),
        "an unknown method": lambda: em.audit(mechanism, PAIR, CLAIM, method="event", **keywords),
        "an unknown setting": lambda: em.audit(mechanism, PAIR, CLAIM, sample=100),
        "a mechanism that raises": lambda: em.audit(failing, PAIR, CLAIM, **keywords),
        "no answer in time": lambda: em.audit(
            em.from_batch(never_answers), PAIR, CLAIM, max_seconds=1, **keywords
        ),
    }
    stored = {}
    for name, attempt in wrong.items():
        try:
            attempt()
        except (em.EpsilometerError, TypeError) as error:
            # An audit that is out of time says how far it came, which is the machine's business.
            message, _, _ = FRACTION.sub("#", str(error)).partition(" were over")
            stored[name] = [type(error).__name__, message]
    assert stored.keys() == wrong.keys()
    return stored


@case
def reports(folder, engine):
    """What is printed for each verdict, figures left out."""
    shown = {
        "refuted": em.audit(em.from_batch(word), PAIR, CLAIM, samples=SAMPLES, seed=SEED),
        "not refuted": em.audit(em.from_batch(word), PAIR, em.PureDP(2.0), samples=500, seed=SEED),
        "inconclusive": em.audit(em.from_batch(sticky), PAIR, CLAIM, samples=SAMPLES, seed=SEED),
    }
    return {verdict: sentences(str(result)) for verdict, result in shown.items()}


@case
def command_line(folder, engine):
    """Exit statuses and the first lines of the commands."""
    written = folder / "result.json"
    given = ["--samples", "1000", "--seed", "7"]
    commands = {
        "not refuted": ["audit", "zoo:randomized_response", "--epsilon", "3", *given],
        "refuted": ["audit", "zoo:dp_mean", *given, "--json", str(written)],
        "verify": ["verify", str(written)],
        "replay": ["replay", str(written), "zoo:dp_mean", *given],
        "measure": ["measure", "zoo:randomized_response", *given],
        "usage": ["audit", "zoo:laplace", "--epsilon", "-1"],
    }
    stored = {}
    for name, arguments in commands.items():
        printed = io.StringIO()
        errors = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(errors):
            status = main(arguments)
        text = printed.getvalue() or errors.getvalue()
        stored[name] = {"status": status, "first line": sentences(text)[0]}
    return stored


# --- figures that workers must not change -----------------------------------------------------------------------------
ON_WORKERS["output-word"] = output_word


@on_workers
def laplace(folder, engine):
    """A learned event of an awkward size, in chunks that workers share."""
    return full(em.audit(em.zoo.laplace(), samples=4001, seed=SEED, **engine))


@on_workers
def sparse_vector(folder, engine):
    return full(em.audit(em.zoo.svt3(), samples=4000, seed=SEED, **engine))


@on_workers
def measure(folder, engine):
    return em.measure(
        em.from_batch(gaussian), PAIR, em.PureDP, samples=4000, seed=SEED, **engine
    ).to_dict()


@on_workers
def early(folder, engine):
    keywords = {"stop_early": True, "samples": 4000, "seed": SEED, **engine}
    return full(em.audit(em.from_batch(gaussian), PAIR, CLAIM, **keywords))


@on_workers
def one_call_per_draw(folder, engine):
    keywords = {"stop_early": True, "samples": 1500, "seed": SEED, **engine}
    return full(em.audit(lambda x, rng: float(x + rng.laplace()), PAIR, CLAIM, **keywords))


@on_workers
def random_finder(folder, engine):
    domain = em.domains.Vector(2, low=0.0, high=1.0)
    pairs = em.finders.Random(domain, relation="replace", trials=6, samples=500, seed=3)
    return full(
        em.audit(em.from_batch(threshold), pairs, em.PureDP(1.0), samples=3000, seed=SEED, **engine)
    )


@on_workers
def recorded(folder, engine):
    path = folder / "draws.jsonl"
    keywords = {"samples": 2000, "seed": SEED, "record": path, **engine}
    first = em.audit(em.from_batch(record), PAIR, CLAIM, **keywords)
    again = em.audit(em.from_recording(path), PAIR, CLAIM, samples=2000, seed=SEED)
    return {"first": full(first), "again": full(again)}


@on_workers
def resumed(folder, engine):
    keywords = {"samples": 3000, "seed": SEED, "checkpoint": folder / "draws", **engine}
    first = em.audit(em.from_batch(gaussian), PAIR, CLAIM, **keywords)
    again = em.audit(em.from_batch(gaussian), PAIR, CLAIM, **keywords)
    return {"first": full(first), "again": full(again)}


@on_workers
def replayed(folder, engine):
    mechanism = em.from_batch(gaussian)
    result = em.audit(mechanism, PAIR, CLAIM, samples=4000, seed=SEED, **engine)
    stored = em.AuditResult.from_json(result.to_json())
    return full(em.replay(stored, mechanism, samples=3000, seed=SEED + 1, **engine))


@on_workers
def profiled(folder, engine):
    found = em.profile(em.from_batch(gaussian), PAIR, samples=4000, seed=SEED, **engine)
    return found.to_dict()
