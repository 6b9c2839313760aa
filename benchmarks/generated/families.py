"""Ten families outside the grammar, written without knowledge of the learner: kinds of leaks that no production makes.

`family_member(place)` gives the members in turn: place 0 is the first member of the first family, place 10 its second.
Each has the attributes of a generated mechanism, so that the same benchmark measures both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

import epsilometer as em
from epsilometer.arrays import Array, Floats
from epsilometer.claims import Claim
from epsilometer.mechanisms.callables import BatchMechanism

# Streams of the members, apart from those of the grammar.
_FAMILY_STREAM = 33
# Strengths, as in the grammar.
_WEAKEST = 0.2
_STRONGEST = 5.0

Sample = Callable[[int, int, np.random.Generator], Any]
LogRatio = Callable[[Any], Floats]


@dataclass(frozen=True)
class Family:
    """A member of a family: see `Generated` for the attributes that both have."""

    seed: int
    mechanism: BatchMechanism
    pair: em.Pair
    claim: Claim
    description: str
    leaks: tuple[str, ...]
    shown_as: str
    log_ratio_of: LogRatio

    def log_ratio(self, outputs: Sequence[Any]) -> Floats:
        """Returns exact log-likelihood ratios, left over right, of shape (n,)."""
        return self.log_ratio_of(outputs)

    def draw_log_ratios(self, side: int, n: int, rng: np.random.Generator) -> Floats:
        """Draws log-likelihood ratios of n outputs of a side, of shape (n,)."""
        return self.log_ratio(self.mechanism.function(side, n, rng))


@dataclass(frozen=True)
class Sketch:
    """What a family makes of a strength: how to draw, the exact ratio, and the words for it."""

    sample: Sample
    log_ratio: LogRatio
    words: str
    shown_as: str


def waves(rng: np.random.Generator, strength: float) -> Sketch:
    """A number in [0, 1] whose density goes up and down, with crests and troughs exchanged on the other side."""
    crests = int(rng.integers(2, 10))
    height = math.tanh(0.5 * strength)

    def sample(side: int, n: int, draws: np.random.Generator) -> Floats:
        x = draws.random(n)
        sign = -1.0 if side else 1.0
        stays = draws.random(n) < 0.5 * (1.0 + sign * height * np.sin(2.0 * np.pi * crests * x))
        # A point that does not stay moves by half a wave, where the density is as high as it was low.
        return np.where(stays, x, (x + 0.5 / crests) % 1.0)

    def log_ratio(outputs: Any) -> Floats:
        wave = height * np.sin(2.0 * np.pi * crests * np.asarray(outputs, dtype=float))
        return np.log1p(wave) - np.log1p(-wave)

    return Sketch(sample, log_ratio, f"{crests} waves of height {height:.4g}", "number")


def ring(rng: np.random.Generator, strength: float) -> Sketch:
    """Points near a circle, on opposite parts of it."""
    centres = float(rng.uniform(0.0, 2.0 * np.pi)) + np.array([0.0, np.pi])
    concentration = 0.5 * strength
    radius = float(np.round(rng.uniform(1.0, 20.0), 1))

    def sample(side: int, n: int, draws: np.random.Generator) -> Floats:
        angle = draws.vonmises(centres[side], concentration, size=n)
        distance = radius * (1.0 + 0.1 * draws.normal(size=n))
        return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])

    def log_ratio(outputs: Any) -> Floats:
        points = np.asarray(outputs, dtype=float)
        angle = np.arctan2(points[:, 1], points[:, 0])
        return concentration * (np.cos(angle - centres[0]) - np.cos(angle - centres[1]))

    words = f"angle of concentration {concentration:.4g} around {centres[0]:.3g}, radius {radius:g}"
    return Sketch(sample, log_ratio, words, "array")


def permutations(rng: np.random.Generator, strength: float) -> Sketch:
    """An order of some names that is nearer to the alphabetical one on one side (Mallows)."""
    size = int(rng.integers(4, 7))
    names = ("ann", "bob", "cat", "dan", "eve", "fay")[:size]
    orders = np.array(list(itertools.permutations(range(size))))
    inversions = sum(
        (orders[:, i] > orders[:, j]).astype(float)
        for i, j in itertools.combinations(range(size), 2)
    )
    slopes = 0.0, -2.0 * strength / size**1.5
    chances = []
    for slope in slopes:
        weights = np.exp(slope * inversions)
        chances.append(weights / weights.sum())
    shown = [tuple(names[place] for place in order) for order in orders.tolist()]
    ratio_of = dict(zip(shown, (np.log(chances[0]) - np.log(chances[1])).tolist(), strict=True))

    def sample(side: int, n: int, draws: np.random.Generator) -> list[list[str]]:
        return [list(shown[place]) for place in draws.choice(len(shown), size=n, p=chances[side])]

    def log_ratio(outputs: Any) -> Floats:
        return np.array([ratio_of[tuple(output)] for output in outputs])

    return Sketch(sample, log_ratio, f"{size} names, slope {slopes[1]:.4g} per inversion", "list")


def autoregression(rng: np.random.Generator, strength: float) -> Sketch:
    """A stationary series of numbers, each of them standard normal, with another memory."""
    length = int(rng.integers(6, 17))
    first = float(rng.uniform(-0.3, 0.5))
    memories = first, math.tanh(math.atanh(first) + strength / math.sqrt(2.0 * length))

    def sample(side: int, n: int, draws: np.random.Generator) -> Floats:
        memory = memories[side]
        noise = draws.normal(size=(n, length)) * math.sqrt(1.0 - memory**2)
        series = np.empty((n, length))
        series[:, 0] = draws.normal(size=n)
        for place in range(1, length):
            series[:, place] = memory * series[:, place - 1] + noise[:, place]
        return series

    def log_ratio(outputs: Any) -> Floats:
        series = np.asarray(outputs, dtype=float)
        total = np.zeros(len(series))
        for sign, memory in zip((1.0, -1.0), memories, strict=True):
            variance = 1.0 - memory**2
            steps = series[:, 1:] - memory * series[:, :-1]
            total -= sign * 0.5 * (steps**2).sum(axis=1) / variance
            total -= sign * 0.5 * (length - 1) * math.log(variance)
        return total

    words = (
        f"{length} numbers, correlation of neighbours {memories[0]:.4g} against {memories[1]:.4g}"
    )
    return Sketch(sample, log_ratio, words, "array")


def bursts(rng: np.random.Generator, strength: float) -> Sketch:
    """Counts over time with quiet and busy spells, which last longer on one side (a hidden Markov chain)."""
    length = int(rng.integers(6, 13))
    rates = np.array([0.5, float(np.round(rng.uniform(3.0, 8.0), 2))])
    lasting = 0.5, 1.0 / (1.0 + math.exp(-2.0 * strength / math.sqrt(length)))

    def sample(side: int, n: int, draws: np.random.Generator) -> list[list[int]]:
        state = draws.integers(2, size=n)
        counts = np.empty((n, length), dtype=np.int64)
        for place in range(length):
            if place:
                state = np.where(draws.random(n) < lasting[side], state, 1 - state)
            counts[:, place] = draws.poisson(rates[state])
        return counts.tolist()

    def log_density(counts: Floats, stays: float) -> Floats:
        logs = counts[:, :, None] * np.log(rates) - rates - gammaln(counts + 1.0)[:, :, None]
        forward = math.log(0.5) + logs[:, 0]
        with np.errstate(divide="ignore"):
            stay, move = np.log(stays), np.log1p(-stays)
        for place in range(1, length):
            kept, moved = forward + stay, forward[:, ::-1] + move
            forward = np.logaddexp(kept, moved) + logs[:, place]
        return np.logaddexp(forward[:, 0], forward[:, 1])

    def log_ratio(outputs: Any) -> Floats:
        counts = np.asarray(outputs, dtype=float)
        return log_density(counts, lasting[0]) - log_density(counts, lasting[1])

    words = f"{length} counts of rates {rates[0]:g} and {rates[1]:g}, spells last with {lasting[0]:g} against {lasting[1]:.4g}"
    return Sketch(sample, log_ratio, words, "list")


def bigrams(rng: np.random.Generator, strength: float) -> Sketch:
    """Words of random letters; after one of the letters another one is more likely on one side."""
    size = int(rng.integers(3, 9))
    length = int(rng.integers(6, 14))
    letters = np.array(list("etaoinsr")[:size])
    usual = rng.dirichlet(np.full(size, 5.0), size=size) + 0.01
    usual /= usual.sum(axis=1, keepdims=True)
    before, after = rng.choice(size, size=2, replace=False)
    tilted = usual.copy()
    tilted[before, after] *= math.exp(strength * math.sqrt(size / length))
    tilted /= tilted.sum(axis=1, keepdims=True)
    chains = usual, tilted
    ratios = np.log(usual) - np.log(tilted)

    def sample(side: int, n: int, draws: np.random.Generator) -> list[str]:
        steps = np.cumsum(chains[side], axis=1)
        places = np.empty((n, length), dtype=np.int64)
        places[:, 0] = draws.integers(size, size=n)
        for place in range(1, length):
            uniform = draws.random(n)[:, None]
            chosen = (steps[places[:, place - 1]] < uniform).sum(axis=1)
            places[:, place] = np.minimum(chosen, size - 1)
        return ["".join(word) for word in letters[places].tolist()]

    def log_ratio(outputs: Any) -> Floats:
        place_of = {letter: place for place, letter in enumerate(letters.tolist())}
        places = np.array([[place_of[letter] for letter in word] for word in outputs])
        return ratios[places[:, :-1], places[:, 1:]].sum(axis=1)

    words = (
        f"words of {length} letters of {size}, {letters[after]} after {letters[before]} "
        f"with {usual[before, after]:.4g} against {tilted[before, after]:.4g}"
    )
    return Sketch(sample, log_ratio, words, "text")


def sums_that_do_not_add_up(rng: np.random.Generator, strength: float) -> Sketch:
    """Items and their noisy total: only the difference between total and items leaks."""
    size = int(rng.integers(2, 5))
    names = ("rent", "food", "fuel", "other")[:size]
    spread = float(np.round(rng.uniform(20.0, 500.0), 1))
    by = float(f"{strength:.4g}")

    def sample(side: int, n: int, draws: np.random.Generator) -> list[dict[str, float]]:
        items = 1000.0 + spread * draws.normal(size=(n, size))
        total = items.sum(axis=1) + draws.laplace(size=n) + by * side
        columns = np.column_stack([items, total]).tolist()
        return [dict(zip((*names, "total"), row, strict=True)) for row in columns]

    def log_ratio(outputs: Any) -> Floats:
        noise = np.array(
            [output["total"] - sum(output[name] for name in names) for output in outputs]
        )
        return np.abs(noise - by) - np.abs(noise)

    words = f"{size} items of spread {spread:g}, total moved by {by:g} scales of Laplace noise"
    return Sketch(sample, log_ratio, words, "dict")


def bright_patch(rng: np.random.Generator, strength: float) -> Sketch:
    """Pictures of noise; on one side a square somewhere is brighter."""
    width = int(rng.integers(3, 6))
    brightness = 0.5 * strength + 0.3
    patches = []
    for row, column in itertools.product(range(width - 1), repeat=2):
        patch = np.zeros((width, width))
        patch[row : row + 2, column : column + 2] = brightness
        patches.append(patch.ravel())
    stack = np.array(patches)

    def sample(side: int, n: int, draws: np.random.Generator) -> Floats:
        pictures = draws.normal(size=(n, width * width))
        if side == 0:
            pictures += stack[draws.integers(len(stack), size=n)]
        return pictures.reshape(n, width, width)

    def log_ratio(outputs: Any) -> Floats:
        pictures = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
        evidence = pictures @ stack.T - 0.5 * (stack**2).sum(axis=1)
        return np.logaddexp.reduce(evidence, axis=1) - math.log(len(stack))

    words = f"{width} × {width} pixels, 2 × 2 of them brighter by {brightness:.4g}"
    return Sketch(sample, log_ratio, words, "array")


def heaped_prices(rng: np.random.Generator, strength: float) -> Sketch:
    """Prices as texts, which end in .99 more often on one side."""
    share = float(np.round(rng.uniform(0.02, 0.3), 3))
    shares = share, 1.0 / (1.0 + (1.0 / share - 1.0) * math.exp(-strength))
    size = float(np.round(rng.uniform(1.0, 5.0), 2))
    sign = ("$", "EUR ", "")[int(rng.integers(3))]

    def sample(side: int, n: int, draws: np.random.Generator) -> list[str]:
        whole = np.exp(draws.normal(size, 1.0, size=n)).astype(np.int64)
        cents = np.where(draws.random(n) < shares[side], 99, draws.integers(99, size=n))
        return [
            f"{sign}{dollars}.{rest:02d}"
            for dollars, rest in zip(whole.tolist(), cents.tolist(), strict=True)
        ]

    def log_ratio(outputs: Any) -> Floats:
        ends = np.array([output.endswith(".99") for output in outputs])
        heaped = math.log(shares[0] / shares[1])
        others = math.log((1.0 - shares[0]) / (1.0 - shares[1]))
        return np.where(ends, heaped, others)

    words = f"{sign}prices around e^{size:g} that end in .99 with {shares[0]:.4g} against {shares[1]:.4g}"
    return Sketch(sample, log_ratio, words, "text")


def shares_of_a_whole(rng: np.random.Generator, strength: float) -> Sketch:
    """Shares that add up to 1 and are more even on one side (Dirichlet)."""
    size = int(rng.integers(3, 7))
    base = np.round(rng.uniform(0.5, 3.0, size=size), 2)
    factor = math.exp(0.5 * strength / math.sqrt(0.5 * size))
    names = [f"part{place}" for place in range(size)]
    laws = base, base * factor

    def sample(side: int, n: int, draws: np.random.Generator) -> list[dict[str, float]]:
        rows: Array = draws.dirichlet(laws[side], size=n)
        return [dict(zip(names, row, strict=True)) for row in rows.tolist()]

    def log_ratio(outputs: Any) -> Floats:
        values = np.array([[output[name] for name in names] for output in outputs])
        constant = [gammaln(law.sum()) - gammaln(law).sum() for law in laws]
        logs = np.log(np.maximum(values, np.finfo(float).tiny))
        return constant[0] - constant[1] + logs @ (laws[0] - laws[1])

    words = f"{size} shares of Dirichlet({', '.join(f'{x:g}' for x in base)}), more even by {factor:.4g}"
    return Sketch(sample, log_ratio, words, "dict")


FAMILIES: dict[str, Callable[[np.random.Generator, float], Sketch]] = {
    family.__name__: family
    for family in (
        waves,
        ring,
        permutations,
        autoregression,
        bursts,
        bigrams,
        sums_that_do_not_add_up,
        bright_patch,
        heaped_prices,
        shares_of_a_whole,
    )
}


def family_member(seed: int) -> Family:
    """Returns a member of the families, which take turns by seed."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_FAMILY_STREAM,)))
    name = list(FAMILIES)[seed % len(FAMILIES)]
    strength = math.exp(rng.uniform(math.log(_WEAKEST), math.log(_STRONGEST)))
    sketch = FAMILIES[name](rng, strength)
    return Family(
        seed=seed,
        mechanism=em.from_batch(sketch.sample, name=f"family {seed}"),
        pair=em.Pair(0, 1),
        claim=em.PureDP(1.0),
        description=f"{name.replace('_', ' ')}: {sketch.words}",
        leaks=(name,),
        shown_as=sketch.shown_as,
        log_ratio_of=sketch.log_ratio,
    )
