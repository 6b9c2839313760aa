"""Honest results of every kind that Epsilometer stores: all of them must pass `epsilometer verify`.

A kind is an entry point with a method, a claim, a kind of output and a way to end. Its `make` runs a
small audit with a given seed. Exact kinds must hold; kinds whose guarantee no count can prove must be
answered with "cannot be checked", and never with "does not hold".
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer.errors import MechanismError
from epsilometer.mechanisms import Mechanism
from epsilometer.result import AuditResult, OnRequest

Document = dict[str, Any]

PAIR = em.Pair(0, 1)
# A trade-off curve given by some of its points: type-I errors and type-II errors.
CURVE = ([0.0, 0.1, 0.4, 1.0], [0.8, 0.6, 0.3, 0.0])
CLAIMS: dict[str, Claim] = {
    "pure": em.PureDP(1.0),
    "pure at 0": em.PureDP(0.0),
    "approx": em.ApproxDP(1.0, 1e-3),
    "approx with a large delta": em.ApproxDP(0.2, 0.6),
    "gaussian": em.GaussianDP(0.5),
    "gaussian from approx": em.GaussianDP.from_approx(1.0, 1e-3),
    "renyi": em.RenyiDP(2.0, 0.5),
    "zcdp": em.ZCDP(0.2),
    "trade-off function": em.TradeOffDP(lambda error: (1.0 - error) ** 2),
    "trade-off points": em.TradeOffDP(CURVE),
}


@dataclass(frozen=True)
class Kind:
    """A kind of honest result.

    Attributes:
        name: what it is, unique.
        make: runs it with a seed.
        holds: what `verify` must answer: True, or None where no count proves the guarantee.
    """

    name: str
    make: Callable[[int], AuditResult]
    holds: bool | None = True


def laplace(scale: float = 0.4) -> Mechanism:
    """A number plus Laplace noise: ε = 1/scale on the pair."""
    return em.from_batch(
        lambda x, n, rng: x + rng.laplace(0.0, scale, n), name=f"laplace {scale:g}"
    )


def _names(x: int, n: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(n) < (0.9 if x else 0.3), "a", "b")


def _mixed(x: int, n: int, rng: np.random.Generator) -> list[Any]:
    return [None if rng.random() < 0.2 + 0.5 * x else float(rng.normal()) for _ in range(n)]


def _vectors(x: int, n: int, rng: np.random.Generator) -> Any:
    drawn = rng.laplace(0.0, 0.3, (n, 3))
    drawn[:, 1] += x
    return drawn


def _with_nan(x: int, n: int, rng: np.random.Generator) -> Any:
    drawn = rng.normal(size=n)
    drawn[rng.random(n) < (0.4 if x else 0.1)] = np.nan
    return drawn


def _without_noise(x: int, n: int, rng: np.random.Generator) -> Any:
    return np.full(n, float(x))


def _dependent(x: int, n: int, rng: np.random.Generator) -> Any:
    return np.sort(rng.normal(size=n)) + 1000.0 * x


def _equal(x: int, n: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=n)


def _sloped(x: int, n: int, rng: np.random.Generator) -> Any:
    """Numbers between 0 and 1 with a density of slope 0, or of slope 1."""
    drawn = rng.random(n)
    return np.sqrt(0.25 + 2.0 * drawn) - 0.5 if x else drawn


def _failing(x: int, rng: np.random.Generator) -> float:
    if rng.random() < (0.4 if x else 0.1):
        raise ValueError("no answer")
    return float(rng.normal())


OUTPUTS: dict[str, Any] = {
    "numbers": laplace(),
    "names": em.from_batch(_names),
    "mixed": em.from_batch(_mixed),
    "vectors": em.from_batch(_vectors),
    "nan": em.from_batch(_with_nan),
    "no noise": em.from_batch(_without_noise),
    "dependent": em.from_batch(_dependent),
    "equal distributions": em.from_batch(_equal),
    "failures": em.from_callable(_failing, on_error="outcome"),
    "features": em.from_batch(_names, features=lambda word: [len(word), word == "a"]),
}


def _audit(
    mechanism: Any, claim: Claim, seed: int, samples: int = 1500, **options: Any
) -> AuditResult:
    return em.audit(mechanism, PAIR, claim, samples=samples, seed=seed, **options)


def _kinds_by_claim() -> Iterator[Kind]:
    """Every notion with every exact method that can certify it, leaky and private."""
    scales = {"leaky": 0.4, "private": 2.5}
    for claim_name, claim in CLAIMS.items():
        for scale_name, scale in scales.items():
            for method in ("auto", "events", "profile", "sequential"):
                if method == "sequential" and claim_name.startswith(("renyi", "zcdp", "trade-off")):
                    holds: bool | None = None  # bets against whole curves are not checked
                else:
                    holds = True
                name = f"{method}, {claim_name}, {scale_name}"
                yield Kind(name, _Audit(laplace(scale), claim, {"method": method}), holds)
    for claim_name in ("renyi", "zcdp"):
        yield Kind(
            f"renyi-bet, {claim_name}",
            _Audit(laplace(), CLAIMS[claim_name], {"method": "renyi-bet"}),
        )


@dataclass(frozen=True)
class _Audit:
    """Runs an audit of the standard pair."""

    mechanism: Any
    claim: Claim
    options: dict[str, Any]

    def __call__(self, seed: int) -> AuditResult:
        return _audit(self.mechanism, self.claim, seed, **self.options)


def _kinds_by_output() -> Iterator[Kind]:
    """Every kind of output, fixed and stopping early, by value and by bits."""
    for name, mechanism in OUTPUTS.items():
        yield Kind(f"outputs: {name}", _Audit(mechanism, em.PureDP(1.0), {}))
        yield Kind(
            f"outputs: {name}, stop_early", _Audit(mechanism, em.PureDP(1.0), {"stop_early": True})
        )
        yield Kind(f"outputs: {name}, rényi", _Audit(mechanism, CLAIMS["renyi"], {}))
        yield Kind(
            f"outputs: {name}, profile",
            _Audit(mechanism, CLAIMS["gaussian"], {"method": "profile"}),
        )
    for representation in ("bits", "all"):
        for method in ("auto", "profile"):
            for claim_name in ("pure", "approx", "gaussian from approx"):
                options = {"representation": representation, "method": method}
                name = f"representation {representation}, {method}, {claim_name}"
                yield Kind(name, _Audit(laplace(), CLAIMS[claim_name], options))


def _kinds_by_method() -> Iterator[Kind]:
    """The published methods: with an exact certificate they hold, otherwise they cannot be checked."""
    pure = em.PureDP(0.5)
    for method in ("hockey-stick", "poisson-histogram", "renyi-variational"):
        yield Kind(f"{method}", _Audit(laplace(), pure, {"method": method}))
        options = {"method": method, "options": {"certificate": "published"}}
        yield Kind(f"{method}, published", _Audit(laplace(), pure, options), holds=None)
    options = {"method": "renyi-variational", "options": {"threshold": "published"}}
    yield Kind("renyi-variational, published threshold", _Audit(laplace(), pure, options))
    yield Kind(
        "hockey-stick, approx", _Audit(laplace(), CLAIMS["approx"], {"method": "hockey-stick"})
    )
    yield Kind("mmd", _Audit(laplace(), pure, {"method": "mmd"}), holds=None)
    yield Kind("local", _Audit(laplace(), pure, {"method": "local"}), holds=None)
    yield Kind(
        "renyi-floored", _Audit(laplace(), CLAIMS["renyi"], {"method": "renyi-floored"}), holds=None
    )
    ldp = {"domain": (0.0, 1.0), "lipschitz": 1.0, "precision": 0.5}
    options = {"method": "ldp-histogram", "options": ldp}
    yield Kind("ldp-histogram", _Audit(em.from_batch(_sloped), pure, options), holds=None)


def _kinds_by_setting() -> Iterator[Kind]:
    """Everything that is written down because it weakens a reading, and other confidences."""
    suppressed = {"suppress": ["serial-correlation", "drift"]}
    yield Kind("suppress", _Audit(OUTPUTS["dependent"], em.PureDP(1.0), suppressed))
    for distance in (2, 5):
        yield Kind(
            f"distance {distance}", _Audit(laplace(), em.PureDP(0.4), {"distance": distance})
        )
        options = {"distance": distance, "stop_early": True}
        yield Kind(f"distance {distance}, stop_early", _Audit(laplace(), em.PureDP(0.4), options))
    for confidence in (0.2, 0.5, 0.8, 0.999, 1.0 - 1e-6):
        for method in ({}, {"stop_early": True}, {"method": "profile"}):
            name = f"confidence {confidence:.6g}, {next(iter(method), 'auto')}"
            options = {**method, "confidence": confidence}
            yield Kind(name, _Audit(laplace(), em.PureDP(1.0), options))
    for samples in (20, 60, 300):
        for early in (False, True):
            options = {"samples": samples, "stop_early": early}
            yield Kind(
                f"{samples} samples, stop_early {early}", _Audit(laplace(), em.PureDP(0.5), options)
            )
    yield Kind(
        "growth 1",
        _Audit(laplace(), em.PureDP(2.4), {"stop_early": True, "options": {"growth": 1.0}}),
    )
    yield Kind(
        "pilot 5", _Audit(laplace(), em.PureDP(2.4), {"stop_early": True, "options": {"pilot": 5}})
    )


def _measured(seed: int, notion: Any, options: dict[str, Any]) -> AuditResult:
    return em.measure(laplace(), PAIR, notion, samples=1500, seed=seed, **options)


def _kinds_of_measurements() -> Iterator[Kind]:
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "pure": (em.PureDP, {}),
        "approx, epsilon": (em.ApproxDP, {"delta": 1e-2}),
        "approx, delta": (em.ApproxDP, {"epsilon": 0.5}),
        "gaussian": (em.GaussianDP, {}),
        "renyi": (em.RenyiDP, {"order": 3.0}),
        "zcdp": (em.ZCDP, {}),
    }
    for name, (notion, fixed) in asked.items():
        yield Kind(f"measure {name}", lambda seed, a=notion, b=fixed: _measured(seed, a, b))
        holds = None if name in ("renyi", "zcdp") else True
        early = {**fixed, "stop_early": True}
        yield Kind(
            f"measure {name}, stop_early",
            lambda seed, a=notion, b=early: _measured(seed, a, b),
            holds,
        )
        banded = {**fixed, "method": "profile"}
        yield Kind(
            f"measure {name}, profile", lambda seed, a=notion, b=banded: _measured(seed, a, b)
        )


def _compared(seed: int, claim: Any, **options: Any) -> AuditResult:
    rng = np.random.default_rng([seed, 5])
    return em.compare(
        rng.laplace(1.0, 0.5, 900), rng.laplace(0.0, 0.5, 700), claim, seed=seed, **options
    )


def _replayed(seed: int, claim: Claim, **options: Any) -> AuditResult:
    found = _audit(laplace(), claim, seed, **options)
    return em.replay(found, laplace(), samples=800, seed=seed + 1)


def _kinds_of_entries() -> Iterator[Kind]:
    for name, claim in CLAIMS.items():
        yield Kind(f"compare {name}", lambda seed, claim=claim: _compared(seed, claim))
        yield Kind(f"replay {name}", lambda seed, claim=claim: _replayed(seed, claim))
    yield Kind("compare, measured", lambda seed: _compared(seed, em.PureDP))
    yield Kind("compare, distance", lambda seed: _compared(seed, em.PureDP(0.7), distance=3))
    yield Kind(
        "compare, all views", lambda seed: _compared(seed, em.PureDP(0.7), representation="all")
    )
    yield Kind("compare, profile", lambda seed: _compared(seed, em.PureDP(0.7), method="profile"))
    yield Kind(
        "replay of a profile", lambda seed: _replayed(seed, em.PureDP(1.0), method="profile")
    )
    yield Kind(
        "replay of an early stop", lambda seed: _replayed(seed, em.PureDP(1.0), stop_early=True)
    )
    yield Kind("replay of a measurement", _replayed_measurement)
    yield Kind("replay without noise", _replayed_without_noise)


def _replayed_measurement(seed: int) -> AuditResult:
    return em.replay(
        em.measure(laplace(), PAIR, samples=1000, seed=seed), laplace(), samples=700, seed=seed + 1
    )


def _replayed_without_noise(seed: int) -> AuditResult:
    mechanism = OUTPUTS["no noise"]
    return em.replay(_audit(mechanism, em.PureDP(1.0), seed), mechanism, samples=300, seed=seed + 1)


def _pairs(seed: int, scale: float = 0.8, **options: Any) -> AuditResult:
    pairs = [em.Pair(0.0, 0.3), em.Pair(0.0, 1.0), em.Pair(0.5, 0.9)]
    claim = options.pop("claim", em.PureDP(1.0))
    return em.audit(laplace(scale), pairs, claim, samples=2500, seed=seed, **options)


def _searched(seed: int, scale: float = 1.1, **options: Any) -> AuditResult:
    finder = em.finders.Random(em.domains.Number(0, 1), trials=4, samples=500, seed=seed)
    claim = options.pop("claim", em.PureDP(1.0))
    return em.audit(laplace(scale), finder, claim, samples=1500, seed=seed, **options)


def _hunted(seed: int, scale: float = 1.1, **options: Any) -> AuditResult:
    finder = em.finders.Search(em.domains.Number(0, 1), trials=32, samples=500, seed=seed)
    claim = options.pop("claim", em.PureDP(1.0))
    return em.audit(laplace(scale), finder, claim, samples=1500, seed=seed, **options)


def _beyond(seed: int) -> AuditResult:
    """A search that sees a leak outside its domain (NaN) and certifies it with a share of its own."""
    domain = em.domains.Records(em.domains.Number(0, 1), size=(1, 4), container="numpy")
    mechanism = em.from_batch(lambda x, n, rng: np.sum(x) + rng.laplace(0.0, 1.0, n))
    finder = em.finders.Search(domain, trials=64, samples=400, seed=seed)
    return em.audit(mechanism, finder, em.PureDP(1.5), samples=800, seed=seed)


def _kinds_of_searches() -> Iterator[Kind]:
    for name, claim in CLAIMS.items():
        yield Kind(f"several pairs, {name}", lambda seed, claim=claim: _pairs(seed, claim=claim))
        yield Kind(f"random search, {name}", lambda seed, claim=claim: _searched(seed, claim=claim))
    yield Kind("several pairs, stop_early", lambda seed: _pairs(seed, stop_early=True))
    yield Kind("several pairs, profile", lambda seed: _pairs(seed, method="profile"))
    yield Kind("random search, refuted", lambda seed: _searched(seed, 0.4))
    yield Kind("random search, near the claim", lambda seed: _searched(seed, 0.95))
    yield Kind("random search, all views", lambda seed: _searched(seed, 0.9, representation="all"))
    yield Kind("random search, profile", lambda seed: _searched(seed, 0.9, method="profile"))
    yield Kind("random search, measured", _search_measured)
    yield Kind("search with looks", lambda seed: _hunted(seed))
    yield Kind("search with looks, refuted", lambda seed: _hunted(seed, 0.4))
    yield Kind("search with looks, near the claim", lambda seed: _hunted(seed, 0.9))
    yield Kind(
        "search with looks, μ",
        lambda seed: _hunted(seed, 0.4, claim=CLAIMS["gaussian from approx"]),
    )
    yield Kind("search beyond the domain", _beyond)


def _search_measured(seed: int) -> AuditResult:
    finder = em.finders.Random(em.domains.Number(0, 1), trials=3, samples=400, seed=seed)
    return em.measure(laplace(), finder, samples=1000, seed=seed)


class _Hanging:
    """Laplace noise that hangs after so many draws of both sides together."""

    def __init__(self, most: int, scale: float) -> None:
        self.drawn = 0
        self.most = most
        self.scale = scale

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> Any:
        self.drawn += n
        if self.drawn > self.most:
            time.sleep(_HANGS)
        return x + rng.laplace(0.0, self.scale, n)


# Seconds that a call hangs, and the first time limit that is tried; a busy machine is given more.
_HANGS = 60.0
_FIRST_LIMIT = 0.4


def _early_out_of_time(seed: int, most: int) -> AuditResult:
    """An audit that stops early because its time is over after so many draws of both sides together."""
    limit = _FIRST_LIMIT
    claim = em.PureDP(2.0)
    while True:
        mechanism = em.from_batch(_Hanging(most, scale=0.8), name="hangs")
        try:
            return em.audit(
                mechanism, PAIR, claim, samples=1000, seed=seed, stop_early=True, max_seconds=limit
            )
        except MechanismError:  # the machine was too busy to finish the pilot
            limit *= 2.0


def _search_cut_off(seed: int, hangs: bool) -> AuditResult:
    """A search that has a certificate which did not refute when the next one hangs, or fails.

    Every trial is the same pair, whose leak is just above the claim.
    """
    limit = 2.0 * _FIRST_LIMIT
    while limit < 60.0:
        seed += 1000  # not every seed makes two certificates
        domain = em.domains.Category([0.0, 1.0])
        finder = em.finders.Random(domain, trials=6, samples=600, seed=seed)
        noise = _Hanging(5800, scale=0.85) if hangs else _Failing(5800, scale=0.85)
        mechanism = em.from_batch(noise, name="cut off")
        options = {"max_seconds": limit} if hangs else {}
        try:
            result = em.audit(
                mechanism, finder, em.PureDP(1.05), samples=1500, seed=seed, **options
            )
        except MechanismError:
            limit *= 1.2
            continue
        details = result.findings[0].details
        if len(result.findings) < len(details["paid"]):
            return result
    raise RuntimeError("no search was cut off after its first certificate")


class _Failing:
    """Laplace noise that fails once, after so many draws of both sides together."""

    def __init__(self, most: int, scale: float) -> None:
        self.drawn = 0
        self.most = most
        self.scale = scale
        self.has_failed = False

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> Any:
        self.drawn += n
        if self.drawn > self.most and not self.has_failed:
            self.has_failed = True
            raise ValueError("out of order")
        return x + rng.laplace(0.0, self.scale, n)


def _resumed(seed: int, **options: Any) -> AuditResult:
    """An audit that was interrupted and resumed from its checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        # The calls are counted in a file: a mechanism that changes is not the one of the checkpoint.
        counter = Path(folder) / "calls"
        counter.write_text("0")

        def noise(x: float, n: int, rng: np.random.Generator) -> Any:
            calls = int(counter.read_text()) + 1
            counter.write_text(str(calls))
            if calls in (7, 12):
                raise KeyboardInterrupt
            return x + rng.laplace(0.0, 0.8, n)

        while True:
            mechanism = em.from_batch(noise, name="interrupted")
            mechanism.chunk_size = 200
            try:
                claim = em.PureDP(1.1)
                return em.audit(
                    mechanism, PAIR, claim, samples=1500, seed=seed, checkpoint=path, **options
                )
            except KeyboardInterrupt:
                continue


def _recorded(seed: int) -> AuditResult:
    """An audit of recorded draws."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.jsonl"
        _audit(laplace(), em.PureDP(1.0), seed, record=path)
        recording = em.from_recording(path)
        return em.audit(recording, PAIR, em.PureDP(1.0), samples=1500, seed=seed)


def _kinds_of_endings() -> Iterator[Kind]:
    yield Kind("out of time after the pilot", lambda seed: _early_out_of_time(seed, most=80))
    yield Kind("out of time between bets", lambda seed: _early_out_of_time(seed, most=130))
    yield Kind("search out of time", lambda seed: _search_cut_off(seed, hangs=True))
    yield Kind("search with a failed certificate", lambda seed: _search_cut_off(seed, hangs=False))
    yield Kind("resumed", _resumed)
    yield Kind("resumed, stop_early", lambda seed: _resumed(seed, stop_early=True))
    yield Kind("resumed, profile", lambda seed: _resumed(seed, method="profile"))
    yield Kind("recorded draws", _recorded)


def _unread_texts(x: int, n: int, rng: np.random.Generator) -> Any:
    letters = rng.choice(list("abcdefghij"), (n, 24))
    return ["".join(text) for text in letters]


def _replayed_on_recording(seed: int) -> AuditResult:
    """The rows behind those that the audit used."""
    rng = np.random.default_rng([seed, 9])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npz"
        np.savez(path, left=rng.laplace(0.0, 0.4, 1500), right=rng.laplace(1.0, 0.4, 1500))
        recording = em.from_recording(path, pair=PAIR)
        found = em.audit(recording, None, em.PureDP(1.0), samples=800, seed=seed)
        return em.replay(found, recording, samples=600, seed=seed + 1)


def _kinds_that_say_little() -> Iterator[Kind]:
    """Audits that could not have refuted anything, and answers that never change."""
    texts = em.from_batch(_unread_texts, name="texts that never repeat")
    constant = em.from_batch(lambda x, n, rng: np.zeros(n), name="constant")
    for early in (False, True):
        options = {"stop_early": early}
        ending = ", stop_early" if early else ""
        yield Kind(f"texts that never repeat{ending}", _Audit(texts, em.PureDP(1.0), options))
        few = {**options, "samples": 20}
        yield Kind(f"too few draws for the claim{ending}", _Audit(laplace(), em.PureDP(3.0), few))
        yield Kind(f"constant{ending}", _Audit(constant, em.PureDP(0.5), options))
    yield Kind("replay on a recording", _replayed_on_recording)


def kinds() -> list[Kind]:
    """All kinds of honest results."""
    found = [
        *_kinds_by_claim(),
        *_kinds_by_output(),
        *_kinds_by_method(),
        *_kinds_by_setting(),
        *_kinds_of_measurements(),
        *_kinds_of_entries(),
        *_kinds_of_searches(),
        *_kinds_of_endings(),
        *_kinds_that_say_little(),
    ]
    assert len({kind.name for kind in found}) == len(found)
    return found


def stored(result: AuditResult, rehearsed: bool = False) -> Document:
    """The result as its file holds it.

    Args:
        rehearsed: whether to find out what the audit could have detected, which takes as long as many
            audits; otherwise that figure is left unknown.
    """
    kept = result
    if not rehearsed:  # what it could have found takes long
        on_request = OnRequest(p_value=result.p_value, identity=result.identity)
        kept = replace(result, on_request=on_request)
    document: Document = json.loads(kept.to_json())
    return document


def honest_results(n: int, first_seed: int = 0) -> Iterator[tuple[Kind, Document]]:
    """Runs n honest audits, kind after kind, each round with other seeds; every tenth is rehearsed."""
    every = kinds()
    for number in range(n):
        kind = every[number % len(every)]
        result = kind.make(first_seed + number)
        yield kind, stored(result, rehearsed=number % 10 == 0)
