"""Ways to audit: each is a function that tells whether a true claim was refuted, or a bound is too high.

To add one, write a function of a `Setting` and put `@entry("its name")` above it. `claims=` and `kinds=` say where it
applies; a setting that the program refuses with an `InputError` counts as refused.
"""

from __future__ import annotations

import math
import tempfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer as em
from benchmarks.sound.boundaries import BOUNDARIES, RESPONSE, Boundary
from benchmarks.sound.outputs import KINDS, Show
from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.mechanisms import Mechanism
from epsilometer.testing import Coin

# Draws per side. Few, so that an event which only fits its own draws goes far beyond the truth.
SAMPLES = 200
# Draws per side to choose among several pairs: the fewest that the audit accepts for three.
PAIRS_SAMPLES = 1200
# Draws per side and pair of a search.
SEARCH_SAMPLES = 60
# Audits that are judged together.
FAMILY_SIZE = 5
PAIR = em.Pair(0, 1)
# Inputs come in two kinds, even and odd; all pairs of different kinds are exactly as bad as claimed.
PAIRS = [em.Pair(0, 1), em.Pair(3, 2), em.Pair(4, 5)]
RIGHT_INPUTS = (1, 3, 5)


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: what is drawn, what is claimed, and how surely it must be refuted.

    Attributes:
        coin: whose face every output shows, of probability p on even inputs and q on odd ones.
        claim: true, with nothing to spare.
        kind: of outputs, a name in `KINDS`.
        confidence: of the audit.
        seed: of the audit; draws that are no audit's get generators of their own from it.
        boundary: where claim and coin come from.
    """

    coin: Coin
    claim: Claim
    kind: str
    confidence: float
    seed: int
    boundary: Boundary

    @classmethod
    def at(cls, boundary: Boundary, kind: str, confidence: float, seed: int) -> Setting:
        """On the edge of the boundary's claim. Constants have no edge but 0."""
        claim = boundary.claim.with_value(0.0) if kind == "constant" else boundary.claim
        return cls(boundary.coin, claim, kind, confidence, seed, boundary)

    @property
    def how(self) -> dict[str, Any]:
        """The keywords that every entry point takes."""
        return {"confidence": self.confidence, "seed": self.seed}

    @property
    def mechanism(self) -> Mechanism:
        """Draws many outputs at a time."""
        return em.from_batch(self.draw)

    def draw(self, dataset: Any, n: int, rng: np.random.Generator) -> Any:
        """n outputs on an input."""
        show: Show = KINDS[self.kind]
        return show(self.faces(dataset, n, rng), rng)

    def faces(self, dataset: Any, n: int, rng: np.random.Generator) -> Any:
        """n faces of the coin on an input."""
        probability = self.coin.q if dataset in RIGHT_INPUTS else self.coin.p
        return rng.random(n) < probability

    def draw_one(self, dataset: Any, rng: np.random.Generator) -> Any:
        """One output as a plain value."""
        output = self.draw(dataset, 1, rng)[0]
        return output.tolist() if isinstance(output, np.ndarray | np.generic) else output

    def generator(self, purpose: int) -> np.random.Generator:
        """For draws that belong to no audit; every purpose has its own."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(77, purpose)))

    def is_above(self, bound: float, truth: float | None = None) -> bool:
        """Whether a bound is above the truth."""
        return bound > (self.claim.value if truth is None else truth)


Entry = Callable[[Setting], bool]


@dataclass(frozen=True, slots=True)
class Applicable:
    """An entry point and where it applies.

    Attributes:
        run: tells whether something went wrong.
        claims: names of boundaries.
        kinds: names of kinds of outputs.
        everywhere: whether every claim is run with every kind of output. Otherwise, to save time, claims other than
            the two of `_KEY_CLAIMS` are only run with the kinds of `_KEY_KINDS`.
    """

    run: Entry
    claims: Collection[str]
    kinds: Collection[str]
    everywhere: bool = False

    def applies(self, claim: str, kind: str) -> bool:
        """Whether this combination is a row of the table."""
        is_key = self.everywhere or claim in _KEY_CLAIMS or kind in _KEY_KINDS
        return is_key and claim in self.claims and kind in self.kinds


ENTRIES: dict[str, Applicable] = {}

_ALL_CLAIMS = tuple(boundary.name for boundary in BOUNDARIES)
_MEASURABLE = tuple(boundary.name for boundary in BOUNDARIES if boundary.is_measurable)
# Where over-fitting pays most: equal coins, where any event is on the boundary, and outputs with many values.
_KEY_CLAIMS = ("pure, equal", "pure")
_KEY_KINDS = ("texts", "numbers", "vectors")
# Published methods and searches are about pure and approximate claims, or cost too much for every combination.
_PURE_AND_APPROXIMATE = tuple(
    name for name in _ALL_CLAIMS if name.startswith(("pure", "approximate", "δ"))
)
_FEW_CLAIMS = ("pure, equal", "pure", "approximate, δ = .01", "Gaussian")
_FEW_KINDS = ("booleans", "texts", "numbers", "vectors", "None, NaN, infinity", "constant")


def entry(
    name: str,
    *,
    claims: Collection[str] = _ALL_CLAIMS,
    kinds: Collection[str] = tuple(KINDS),
    everywhere: bool = False,
) -> Callable[[Entry], Entry]:
    """Puts a function into the table."""

    def add(run: Entry) -> Entry:
        ENTRIES[name] = Applicable(run, claims, kinds, everywhere)
        return run

    return add


@entry("audit", everywhere=True)
def _audit(at: Setting) -> bool:
    return em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, **at.how).is_refuted


@entry("audit, one output at a time", claims=_FEW_CLAIMS)
def _audit_single(at: Setting) -> bool:
    mechanism = em.from_callable(lambda dataset, rng: at.draw_one(dataset, rng))
    return em.audit(mechanism, PAIR, at.claim, samples=SAMPLES, **at.how).is_refuted


@entry("audit, several pairs")
def _audit_pairs(at: Setting) -> bool:
    return em.audit(at.mechanism, PAIRS, at.claim, samples=PAIRS_SAMPLES, **at.how).is_refuted


@entry("audit, finder", claims=_FEW_CLAIMS, kinds=_FEW_KINDS)
def _audit_finder(at: Setting) -> bool:
    domain = em.domains.Category([*range(6)])
    finder = em.finders.Random(domain, trials=6, samples=SEARCH_SAMPLES, seed=at.seed)
    return em.audit(at.mechanism, finder, at.claim, samples=SAMPLES, **at.how).is_refuted


@entry("audit, domain", claims=_FEW_CLAIMS, kinds=_FEW_KINDS)
def _audit_domain(at: Setting) -> bool:
    search = em.finders.Search(
        em.domains.Integer(0, 5), trials=6, samples=SEARCH_SAMPLES, seed=at.seed
    )
    return em.audit(at.mechanism, search, at.claim, samples=SAMPLES, **at.how).is_refuted


@entry("audit, failures are outcomes", claims=_FEW_CLAIMS, kinds=("texts", "numbers", "lists"))
def _audit_failures(at: Setting) -> bool:
    def draw(dataset: Any, rng: np.random.Generator) -> Any:
        face = at.faces(dataset, 1, rng)
        if face[0] and rng.random() < 0.5:
            raise ValueError("out of range")
        return KINDS[at.kind](face, rng)[0]

    mechanism = em.from_callable(draw, on_error="outcome")
    return em.audit(mechanism, PAIR, at.claim, samples=SAMPLES, **at.how).is_refuted


@entry("audit, features")
def _audit_features(at: Setting) -> bool:
    mechanism = em.from_batch(at.draw, features=scattered)
    return em.audit(mechanism, PAIR, at.claim, samples=SAMPLES, **at.how).is_refuted


def scattered(output: Any) -> dict[str, float]:
    """Looks like chance, and is a function of the output: much room for over-fitting."""
    number = zlib.crc32(repr(np.asarray(output, dtype=object).tolist()).encode())
    return {"many": number % 97, "few": number % 3, "part": number / 2**32}


@entry("audit, distance 2")
def _audit_distance(at: Setting) -> bool:
    """The inputs are two steps apart, and the coin is on the edge of what the claim allows for two steps."""
    group = at.claim.scaled(2)
    q = at.coin.q
    apart = replace(at, coin=Coin(min(float(group.max_power(q)), 1.0 - 1e-9), q))
    return em.audit(
        apart.mechanism, PAIR, at.claim, samples=SAMPLES, distance=2, **at.how
    ).is_refuted


@entry("audit, bits")
def _audit_bits(at: Setting) -> bool:
    return em.audit(
        at.mechanism, PAIR, at.claim, samples=SAMPLES, representation="bits", **at.how
    ).is_refuted


@entry("audit, values and bits")
def _audit_all(at: Setting) -> bool:
    """Neither finding is above the claim, also the one that does not decide."""
    result = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, representation="all", **at.how)
    return any(at.is_above(finding.lower_bound) for finding in result.findings)


@entry("audit, early stop")
def _stop_early(at: Setting) -> bool:
    return em.audit(
        at.mechanism, PAIR, at.claim, samples=SAMPLES, stop_early=True, **at.how
    ).is_refuted


@entry("audit, early stop, resumed", claims=_KEY_CLAIMS, kinds=_KEY_KINDS)
def _stop_early_resumed(at: Setting) -> bool:
    """More and more draws are granted while the claim is not refuted."""
    with tempfile.TemporaryDirectory() as folder:
        for most in (40, 80, SAMPLES):
            path = Path(folder) / "checkpoint.npz"
            how = {"samples": most, "stop_early": True, "checkpoint": path, **at.how}
            if em.audit(at.mechanism, PAIR, at.claim, **how).is_refuted:
                return True
    return False


@entry("audit, recording", claims=_FEW_CLAIMS)
def _audit_recording(at: Setting) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = keep_draws(at, Path(folder), SAMPLES, purpose=0)
        recording = em.from_recording(path)
        return em.audit(recording, None, at.claim, samples=SAMPLES, **at.how).is_refuted


def keep_draws(at: Setting, folder: Path, n: int, *, purpose: int) -> Path:
    """A recording of n draws per side, made by an audit whose result nobody looks at."""
    path = folder / f"draws-{purpose}.jsonl"
    seed = int(at.generator(purpose).integers(2**62))
    em.audit(at.mechanism, PAIR, at.claim, samples=n, seed=seed, record=path)
    return path


@entry("p-value", kinds=_KEY_KINDS)
def _p_value(at: Setting) -> bool:
    """At most t with probability at most t."""
    return _p_value_of(at) <= 1.0 - at.confidence


@entry("p-values of a family", claims=_KEY_CLAIMS, kinds=_KEY_KINDS)
def _family(at: Setting) -> bool:
    """Holm's procedure calls one of several true claims refuted if the least p-value times their number is small."""
    seeds = at.generator(0).integers(2**62, size=FAMILY_SIZE)
    least = min(_p_value_of(replace(at, seed=int(seed))) for seed in seeds)
    return FAMILY_SIZE * least <= 1.0 - at.confidence


def _p_value_of(at: Setting) -> float:
    value = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, **at.how).p_value
    return 1.0 if value is None else value


@entry("measure", claims=_MEASURABLE, everywhere=True)
def _measure(at: Setting) -> bool:
    return at.is_above(_measured(at).lower_bound)


def _measured(at: Setting, **how: Any) -> em.AuditResult:
    return em.measure(
        at.mechanism,
        PAIR,
        at.boundary.notion,
        samples=SAMPLES,
        **at.boundary.fixed,
        **at.how,
        **how,
    )


@entry("measure, early stop", claims=_MEASURABLE)
def _measure_early(at: Setting) -> bool:
    return at.is_above(_measured(at, stop_early=True).lower_bound)


@entry("measure, bits", claims=_FEW_CLAIMS)
def _measure_bits(at: Setting) -> bool:
    return at.is_above(_measured(at, representation="bits").lower_bound)


@entry("compare", everywhere=True)
def _compare(at: Setting) -> bool:
    """Two samples of different sizes."""
    rng = at.generator(0)
    left, right = at.draw(0, 2 * SAMPLES, rng), at.draw(1, SAMPLES, rng)
    return em.compare(left, right, at.claim, **at.how).is_refuted


@entry("compare, measured", claims=_MEASURABLE)
def _compare_measured(at: Setting) -> bool:
    rng = at.generator(0)
    left, right = at.draw(0, SAMPLES, rng), at.draw(1, SAMPLES, rng)
    found = em.compare(left, right, at.boundary.notion, **at.boundary.fixed, **at.how)
    return at.is_above(found.lower_bound)


@entry("replay", everywhere=True)
def _replay(at: Setting) -> bool:
    """Of whatever the audit found, with the seed of the audit: it has a phase of its own."""
    found = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, **at.how)
    return em.replay(found, at.mechanism, samples=SAMPLES, seed=at.seed).is_refuted


@entry("replay of an early stop", claims=_FEW_CLAIMS)
def _replay_early(at: Setting) -> bool:
    found = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, stop_early=True, **at.how)
    return em.replay(found, at.mechanism, samples=SAMPLES, seed=at.seed).is_refuted


@entry("replay on another recording", claims=_FEW_CLAIMS)
def _replay_recording(at: Setting) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = keep_draws(at, Path(folder), SAMPLES, purpose=0)
        found = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, **at.how)
        return em.replay(found, em.from_recording(path), samples=SAMPLES, seed=at.seed).is_refuted


@entry("profile, checked")
def _profile(at: Setting) -> bool:
    return em.profile(at.mechanism, PAIR, samples=SAMPLES, **at.how).check(at.claim).is_refuted


@entry("profile, whole band", claims=("pure", "pure, equal", "pure, rare"))
def _profile_band(at: Setting) -> bool:
    """Nowhere above the best attack on the coin."""
    band = em.profile(at.mechanism, PAIR, samples=SAMPLES, **at.how).band
    q_upper = np.asarray(band.q_upper)
    power = q_upper if at.kind == "constant" else best_power(at.coin, q_upper)
    return bool(np.any(np.asarray(band.p_lower) > power + 1e-12))


def best_power(coin: Coin, false_alarms: Floats) -> Floats:
    """The largest P(E) of all events with the given Q(E), whichever side is called P; shape (n,).

    For either side it is a concave curve with one corner, at the face that this side shows more
    often. The larger of the two curves need not be concave.
    """
    p, q = max((coin.p, coin.q), (1.0 - coin.p, 1.0 - coin.q), key=lambda face: face[0] - face[1])
    from_left = np.interp(false_alarms, [0.0, q, 1.0], [0.0, p, 1.0])
    from_right = np.interp(false_alarms, [0.0, 1.0 - p, 1.0], [0.0, 1.0 - q, 1.0])
    return np.maximum(from_left, from_right)


@entry("from_scores", kinds=("booleans", "numbers"), everywhere=True)
def _scores(at: Setting) -> bool:
    """Canaries whose scores are the faces, with and without ties."""
    rng = at.generator(0)
    noise = 0.0 if at.kind == "booleans" else rng.random((2, SAMPLES))
    inside, outside = np.stack([at.faces(side, SAMPLES, rng) for side in (0, 1)]) + noise
    return em.from_scores(inside, outside, confidence=at.confidence).check(at.claim).is_refuted


@entry("ScoreStream", kinds=("booleans", "numbers"), claims=_FEW_CLAIMS)
def _score_stream(at: Setting) -> bool:
    """The same scores in batches of growing size, looked at after each."""
    rng = at.generator(0)
    noise = 0.0 if at.kind == "booleans" else rng.random((2, SAMPLES))
    inside, outside = np.stack([at.faces(side, SAMPLES, rng) for side in (0, 1)]) + noise
    audit = em.ScoreStream(at.claim, confidence=at.confidence)
    begin = 0
    while begin < SAMPLES:
        end = begin + max(8, begin // 4)
        audit.add(inside[begin:end], outside[begin:end])
        begin = end
    return audit.state.is_refuted


@entry("one_run", claims=("pure",), kinds=("booleans",), everywhere=True)
def _one_run(at: Setting) -> bool:
    """Randomized response on the membership of every canary, for which the theorem is sharp."""
    right = int(at.generator(0).binomial(SAMPLES, RESPONSE.p))
    return em.one_run(SAMPLES, SAMPLES, right, confidence=at.confidence).epsilon > at.claim.value


@entry("one_run, Gaussian", claims=("Gaussian",), kinds=("booleans",), everywhere=True)
def _one_run_gaussian(at: Setting) -> bool:
    """Scores N(±μ/2, 1): a guess by the sign is right with probability Φ(μ/2)."""
    mu = at.claim.value
    right = int(at.generator(0).binomial(SAMPLES, 0.5 * math.erfc(-0.5 * mu / math.sqrt(2.0))))
    return em.one_run(SAMPLES, SAMPLES, right, confidence=at.confidence).mu > mu


def _method(name: str, options: Any, claims: Collection[str]) -> None:
    """A published method, wherever it calls its bound exact."""

    @entry(f"method {name}", claims=claims, kinds=_FEW_KINDS)
    def run(at: Setting) -> bool:
        how = {"method": name.partition(",")[0], "options": options, **at.how}
        result = em.audit(at.mechanism, PAIR, at.claim, samples=SAMPLES, **how)
        return result.is_refuted and result.guarantee == "exact"


_method("hockey-stick", None, _PURE_AND_APPROXIMATE)
_method("hockey-stick, published", {"certificate": "published"}, _PURE_AND_APPROXIMATE)
_method("mmd", None, ("pure, equal", "pure", "approximate, δ = .01"))
_method("poisson-histogram", None, ("pure", "approximate, δ = .01"))
_method("renyi-variational", None, ("pure", "Rényi, order 2", "Rényi, equal"))
