"""The productions of the grammar: each adds one leak, or one field that says nothing, to a draft.

To add a leak, write a function of a draft and a strength, and put it into `LEAKS`. A strength of about s is meant to give
log-likelihood ratios of about s; the oracle measures what it really is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.generated.drafting import Draft
from benchmarks.generated.factors import (
    ByCategory,
    ByThreshold,
    Chain,
    Copied,
    Coupled,
    Irrelevant,
    List,
    Number,
    OnlyWhere,
    Remainder,
    Rows,
    SameSign,
    Switched,
    Vector,
)
from benchmarks.generated.joints import (
    Affine,
    Clusters,
    Independent,
    Joint,
    SometimesSorted,
    Spherical,
)
from benchmarks.generated.laws import (
    BOUNDED,
    FAMILIES,
    UNBOUNDED,
    Binomial,
    Choice,
    Clamped,
    EvenWhole,
    Geometric,
    Law,
    LawPair,
    Mixture,
    Noise,
    Poisson,
    TwoSidedGeometric,
    WithAtoms,
)
from benchmarks.generated.layouts import Field
from benchmarks.generated.leaves import (
    IDENTIFIER_BITS,
    Category,
    Date,
    Histogram,
    Identifier,
    Leaf,
    Letters,
    Node,
    Ragged,
    RaggedRecords,
    Real,
    Sequenced,
    Truth,
    Whole,
)
from epsilometer.arrays import Floats

Leak = Callable[[Draft, float], None]
Companion = Callable[[Draft], None]

# Days since 1970 of the dates: 2015 to 2024.
_FIRST_DAY = 16_436
_LAST_DAY = 20_088
_SECONDS_PER_DAY = 86_400
_ALPHABET = tuple("abcdefghijklmnopqrstuvwxyz")
# Families that are symmetric around 0.
_SYMMETRIC = ("normal", "Laplace", "logistic", "Cauchy", "Student", "uniform", "triangular")


# Parts of laws


def _place(draft: Draft) -> tuple[float, float]:
    """A location and a scale for noise."""
    scale = draft.spread(0.05, 30.0)
    location = draft.pick("origin", "near", "far")
    if location == "origin":
        return 0.0, scale
    size = scale * (draft.spread(1.0, 10.0) if location == "near" else draft.spread(10.0, 1e4))
    return draft.tidy(draft.sign() * size, scale), scale


def _noise(draft: Draft) -> Noise:
    location, scale = _place(draft)
    return Noise(draft.pick(*FAMILIES), location, scale)


def _moved(noise: Noise, by: float) -> Noise:
    """The noise with its location moved by so many scales."""
    return Noise(noise.family, noise.location + by * noise.scale, noise.scale)


def _tilted(chance: float, strength: float) -> float:
    """The chance with its log-odds moved."""
    return 1.0 / (1.0 + (1.0 / chance - 1.0) * math.exp(-strength))


def _chances(draft: Draft, strength: float, low: float, high: float) -> tuple[float, float]:
    """Two chances whose log-odds differ by the strength, in random order; the middle lies between two limits."""
    middle = draft.spread(low, high)
    ends = _tilted(middle, -0.5 * strength), _tilted(middle, 0.5 * strength)
    return ends if draft.chance(0.5) else (ends[1], ends[0])


def _either_way(draft: Draft, first: Law, second: Law) -> LawPair:
    return LawPair(first, second) if draft.chance(0.5) else LawPair(second, first)


def _normalised(weights: Floats) -> tuple[float, ...]:
    return tuple((weights / weights.sum()).tolist())


def _tilted_choice(draft: Draft, size: int, strength: float) -> tuple[LawPair, str]:
    """Two laws of categories: one category is more likely, all differ a little, or one is impossible on one side."""
    kind = draft.pick("even", "skewed", "Zipf")
    base = {
        "even": np.ones(size),
        "skewed": draft.rng.dirichlet(np.full(size, 2.0)) + 0.02 / size,
        "Zipf": 1.0 / (1.0 + np.arange(size)),
    }[kind]
    tilt = np.zeros(size)
    way = draft.pick("one", "one", "all", "half")
    if way == "one":
        tilt[draft.whole(0, size - 1)] = strength
    elif way == "all":
        tilt = draft.rng.normal(size=size) * strength / math.sqrt(2.0)
    else:
        tilt[: size // 2] = strength
    laws = _either_way(draft, Choice(_normalised(base)), Choice(_normalised(base * np.exp(tilt))))
    return laws, f"{kind} probabilities of {size}, log-odds of {way} moved by {strength:.3g}"


# Leaks in one number


def location(draft: Draft, strength: float) -> None:
    """Unbounded noise is moved."""
    location_, scale = _place(draft)
    noise = Noise(draft.pick(*UNBOUNDED), location_, scale)
    laws = LawPair(noise, _moved(noise, draft.sign() * strength))
    draft.leaks.append(f"location: {draft.add_number(laws, noise.scale)}")


def bounded_location(draft: Draft, strength: float) -> None:
    """Bounded noise is moved: some outputs are impossible on one side."""
    location_, scale = _place(draft)
    noise = Noise(draft.pick(*BOUNDED), location_, scale)
    laws = LawPair(noise, _moved(noise, 0.5 * draft.sign() * strength))
    draft.leaks.append(f"location of bounded noise: {draft.add_number(laws, noise.scale)}")


def scale(draft: Draft, strength: float) -> None:
    """Noise has another scale."""
    noise = _noise(draft)
    factor = math.exp(0.5 * strength)
    wider = Noise(noise.family, noise.location, noise.scale * factor)
    laws = _either_way(draft, noise, wider)
    draft.leaks.append(f"scale: {draft.add_number(laws, noise.scale)}")


def shape(draft: Draft, strength: float) -> None:
    """A part of the noise is of another family."""
    location_, scale_ = _place(draft)
    first = draft.pick(*FAMILIES)
    second = draft.pick(*(family for family in FAMILIES if family != first))
    part = min(1.0, strength / 2.0)
    other = Mixture(
        (1.0 - part, part), (Noise(first, location_, scale_), Noise(second, location_, scale_))
    )
    laws = _either_way(draft, Noise(first, location_, scale_), other)
    draft.leaks.append(f"shape: {draft.add_number(laws, scale_)}")


def mixture_weights(draft: Draft, strength: float) -> None:
    """The weights of a mixture differ."""
    location_, scale_ = _place(draft)
    size = draft.whole(2, 4)
    gap = draft.spread(1.5, 8.0)
    family = draft.pick(*FAMILIES)
    laws = tuple(
        Noise(family, location_ + place * gap * scale_, scale_ * draft.spread(0.3, 1.0))
        for place in range(size)
    )
    choice, words = _tilted_choice(draft, size, strength)
    pair = LawPair(
        Mixture(choice.left.probabilities, laws),  # type: ignore[attr-defined]
        Mixture(choice.right.probabilities, laws),  # type: ignore[attr-defined]
    )
    draft.leaks.append(f"weights of a mixture ({words}): {draft.add_number(pair, scale_)}")


def far_group(draft: Draft, strength: float) -> None:
    """Some outputs lie far away, on one side only or more often there."""
    noise = _noise(draft)
    weight = draft.spread(0.002, 0.1)
    other = 0.0 if draft.chance(0.35) else weight * math.exp(-strength)
    distance = draft.sign() * draft.spread(30.0, 1e6)
    far = Noise(noise.family, noise.location + distance * noise.scale, noise.scale)
    laws = _either_way(
        draft,
        Mixture((1.0 - weight, weight), (noise, far)),
        Mixture((1.0 - other, other), (noise, far)),
    )
    draft.leaks.append(f"a far group: {draft.add_number(laws, noise.scale)}")


def exact_release(draft: Draft, strength: float) -> None:
    """The true value itself comes now and then, inside noise that hides it."""
    noise = _noise(draft)
    weight = draft.spread(0.005, 0.4)
    step = draft.spread(0.1, 1.0)
    truths = noise.location, draft.tidy(noise.location + step * noise.scale, noise.scale)
    moved = _moved(noise, step if draft.chance(0.5) else 0.0)
    laws = LawPair(WithAtoms(noise, truths, (weight, 0.0)), WithAtoms(moved, truths, (0.0, weight)))
    draft.leaks.append(f"exact release: {draft.add_number(laws, noise.scale)}")


def atom_weight(draft: Draft, strength: float) -> None:
    """An exact value, such as 0 for "none", is more likely on one side."""
    noise = _noise(draft)
    atom = draft.tidy(noise.location + draft.between(-2.0, 2.0) * noise.scale, noise.scale)
    weights = _chances(draft, strength, 0.01, 0.4)
    laws = LawPair(*(WithAtoms(noise, (atom,), (weight,)) for weight in weights))
    draft.leaks.append(f"weight of an exact value: {draft.add_number(laws, noise.scale)}")


def clamped(draft: Draft, strength: float) -> None:
    """Noise is moved and clamped, so that its limits are exact values."""
    location_, scale_ = _place(draft)
    family = draft.pick(*UNBOUNDED)
    by = draft.sign() * strength
    low = draft.tidy(location_ - draft.between(0.2, 2.0) * scale_, scale_)
    high = draft.tidy(low + draft.between(1.5, 5.0) * scale_, scale_)
    noise = Noise(family, location_, scale_)
    laws = LawPair(Clamped(noise, low, high), Clamped(_moved(noise, by), low, high))
    draft.leaks.append(f"clamped noise: {draft.add_number(laws, scale_)}")


def counts(draft: Draft, strength: float) -> None:
    """Integers: two-sided geometric, Poisson, binomial, geometric."""
    kind = draft.pick("location", "spread", "Poisson", "binomial", "geometric")
    width = None
    if kind == "location":
        start = draft.whole(0, 10_000)
        step = draft.whole(1, 10)
        ratio = math.exp(-strength / step)
        laws = LawPair(TwoSidedGeometric(start, ratio), TwoSidedGeometric(start + step, ratio))
    elif kind == "spread":
        start = draft.whole(-50, 50)
        slow = draft.spread(0.05, 0.7)
        fast = slow * math.exp(0.6 * strength)
        laws = _either_way(
            draft,
            TwoSidedGeometric(start, math.exp(-slow)),
            TwoSidedGeometric(start, math.exp(-fast)),
        )
    elif kind == "Poisson":
        rate = draft.spread(0.3, 60.0)
        laws = _either_way(
            draft, Poisson(rate), Poisson(rate * math.exp(0.8 * strength / math.sqrt(1.0 + rate)))
        )
    elif kind == "binomial":
        trials = draft.whole(5, 99)
        chance = draft.between(0.1, 0.7)
        tilt = strength / (0.3 * math.sqrt(trials))
        laws = _either_way(draft, Binomial(trials, chance), Binomial(trials, _tilted(chance, tilt)))
        width = 2
    else:
        ratio = draft.between(0.2, 0.97)
        other = ratio * math.exp(-strength * (1.0 - ratio))
        laws = _either_way(draft, Geometric(0, ratio), Geometric(0, other))
    column = draft.new_column()
    name = draft.add(Whole(column), Number(column, laws), width=width)
    draft.leaks.append(f"integers: {name} ~ {laws.describe()}")


# Leaks in categories


def categories(draft: Draft, strength: float) -> None:
    """Probabilities of categories differ."""
    size = (
        draft.whole(2, 12)
        if draft.chance(0.7)
        else draft.whole(13, 60)
        if draft.chance(0.65)
        else draft.whole(200, 1000)
    )
    laws, words = _tilted_choice(draft, size, strength)
    name = _add_category(draft, laws, size)
    draft.leaks.append(f"categories: {name} with {words}")


def _add_category(draft: Draft, laws: LawPair, size: int) -> str:
    column = draft.new_column()
    labels = draft.labels(size)
    width = max(map(len, labels))
    return draft.add(Category(column, labels), Number(column, laws), width=width)


def rare_category(draft: Draft, strength: float) -> None:
    """A rare label comes on one side only, or more often there."""
    size = draft.whole(3, 30)
    weight = draft.spread(0.002, 0.05)
    other = 0.0 if draft.chance(0.4) else weight * math.exp(-strength)
    base = draft.rng.dirichlet(np.full(size - 1, 2.0))
    laws = _either_way(
        draft,
        Choice((*((1.0 - weight) * base).tolist(), weight)),
        Choice((*((1.0 - other) * base).tolist(), other)),
    )
    name = _add_category(draft, laws, size)
    draft.leaks.append(f"a rare label: {name}, 1 of {size}, {weight:.3g} against {other:.3g}")


def bits(draft: Draft, strength: float) -> None:
    """Truth values, some of which are more likely on one side."""
    size = draft.whole(2, 12)
    leaking = draft.whole(1, size)
    columns = draft.new_columns(size)
    base = draft.rng.uniform(0.1, 0.9, size=size)
    tilts = strength / math.sqrt(leaking) * draft.rng.choice([-1.0, 1.0], size=size)
    tilts[leaking:] = 0.0
    tilts = draft.rng.permutation(tilts)
    factors = []
    for column, chance, tilt in zip(columns, base.tolist(), tilts.tolist(), strict=True):
        other = _tilted(chance, tilt)
        factors.append(
            Number(column, LawPair(Choice((1.0 - chance, chance)), Choice((1.0 - other, other))))
        )
    leaves: list[Leaf] = [Whole(column) for column in columns]
    if draft.chance(0.5):
        leaves = [Truth(column, ("0", "1")) for column in columns]
    separator = "" if draft.chance(0.5) else "|"
    name = draft.add(_vector(leaves, separator), *factors)
    draft.leaks.append(
        f"bits: {leaking} of {size} in {name}, log-odds moved by {np.abs(tilts).max():.4g}"
    )


def _vector(leaves: Sequence[Leaf], separator: str = "|") -> Sequenced:
    return Sequenced(tuple(leaves), separator)


def chain(draft: Draft, strength: float) -> None:
    """Categories in a row that repeat more often on one side: each alone says nothing."""
    size = draft.whole(3, 10)
    kinds = draft.whole(2, 4)
    columns = draft.new_columns(size)
    chances = _chances(draft, strength / math.sqrt(size - 1), 0.3, 0.6)
    is_short = draft.is_text and draft.chance(0.5)
    labels = tuple("ABCD"[:kinds]) if is_short else draft.labels(kinds)
    leaves: list[Leaf] = [Category(column, labels) for column in columns]
    node = _vector(leaves, "" if is_short else "|")
    name = draft.add(node, Chain(columns, kinds, chances), width=size if is_short else None)
    draft.leaks.append(
        f"order: {size} categories of {kinds} in {name} that repeat with {chances[0]:.3g} against {chances[1]:.3g}"
    )


# Leaks in vectors


def _add_vector(draft: Draft, left: Joint, right: Joint, size: int) -> str:
    """Adds a vector, as one field or as one field per coordinate; returns the names."""
    columns = draft.new_columns(size)
    factor = Vector(columns, left, right)
    if draft.chance(0.25):
        names = [draft.new_name() for _ in columns]
        draft.add(Real(columns[0]), factor, name=names[0])
        for column, name in zip(columns[1:], names[1:], strict=True):
            draft.add(Real(column), name=name)
        return ", ".join(names)
    return draft.add(_vector([Real(column) for column in columns]), factor)


def _direction(draft: Draft, size: int) -> tuple[Floats, str]:
    """A unit vector: one coordinate, all of them alike, or a random one."""
    kind = draft.pick("one coordinate", "all coordinates", "a random direction")
    direction = np.zeros(size)
    if kind == "one coordinate":
        direction[draft.whole(0, size - 1)] = draft.sign()
    elif kind == "all coordinates":
        direction = draft.rng.choice([-1.0, 1.0], size=size)
    else:
        direction = draft.rng.normal(size=size)
    return direction / np.linalg.norm(direction), kind


def vector_location(draft: Draft, strength: float) -> None:
    """Independent noise in several columns is moved."""
    size = draft.whole(2, 10)
    family = draft.pick(*FAMILIES)
    scales = [draft.spread(0.3, 3.0) for _ in range(size)]
    direction, kind = _direction(draft, size)
    left = Independent(tuple(Noise(family, 0.0, scale_) for scale_ in scales))
    right = Independent(
        tuple(
            Noise(family, float(strength * part * scale_), scale_)
            for part, scale_ in zip(direction, scales, strict=True)
        )
    )
    name = _add_vector(draft, left, right, size)
    draft.leaks.append(
        f"location of a vector: {size} × {family} in {name}, {kind} by {strength:.3g}"
    )


def correlated(draft: Draft, strength: float) -> None:
    """Correlated normal noise is moved, often where it is narrow."""
    size = draft.whole(2, 6)
    rotation = _rotation(draft, size)
    scales = np.array([draft.spread(0.1, 3.0) for _ in range(size)])
    matrix = rotation * scales
    direction, kind = _direction(draft, size)
    noise = Independent((Noise("normal"),) * size)
    shift = matrix @ direction * strength
    name = _add_vector(
        draft, Affine(noise, matrix, np.zeros(size)), Affine(noise, matrix, shift), size
    )
    draft.leaks.append(
        f"correlated normal noise: {size} in {name}, widths {scales.min():.3g} to {scales.max():.3g}, "
        f"moved along {kind} of the axes by {strength:.3g}"
    )


def _rotation(draft: Draft, size: int) -> Floats:
    matrix, _ = np.linalg.qr(draft.rng.normal(size=(size, size)))
    return np.asarray(matrix)


def rotated(draft: Draft, strength: float) -> None:
    """Independent noise that is not normal, rotated and moved, or with another scale along one axis."""
    size = draft.whole(2, 6)
    family = draft.pick("Laplace", "uniform", "Student", "logistic", "exponential")
    rotation = _rotation(draft, size)
    scale_ = draft.spread(0.2, 5.0)
    noise = Independent((Noise(family, 0.0, scale_),) * size)
    if draft.chance(0.7):
        direction, kind = _direction(draft, size)
        shift = rotation @ direction * strength * scale_
        if family in BOUNDED:
            shift = 0.4 * shift
        right = Affine(noise, rotation, shift)
        words = f"moved along {kind} of the axes by {strength:.3g}"
    else:
        wider = (
            Noise(family, 0.0, scale_ * math.exp(0.5 * strength)),
            *((Noise(family, 0.0, scale_),) * (size - 1)),
        )
        right = Affine(Independent(wider), rotation, np.zeros(size))
        words = f"one axis wider by exp({0.5 * strength:.3g})"
    name = _add_vector(draft, Affine(noise, rotation, np.zeros(size)), right, size)
    draft.leaks.append(f"rotated noise: {size} × {family} of scale {scale_:.3g} in {name}, {words}")


def spherical(draft: Draft, strength: float) -> None:
    """Noise that depends on the distance from a centre is moved or widened."""
    size = draft.whole(2, 8)
    radial = draft.pick("gamma", "gamma", "normal", "student", "ball")
    scale_ = draft.spread(0.2, 5.0)
    centre = np.zeros(size)
    if draft.chance(0.6):
        direction, kind = _direction(draft, size)
        reach = 0.4 * strength if radial == "ball" else strength
        right = Spherical(radial, centre + reach * scale_ * direction, scale_)
        words = f"moved along {kind} by {reach:.3g}"
    else:
        factor = math.exp(0.5 * strength / math.sqrt(size))
        right = Spherical(radial, centre, scale_ * factor)
        words = f"wider by {factor:.3g}"
    name = _add_vector(draft, Spherical(radial, centre, scale_), right, size)
    draft.leaks.append(
        f"spherical noise: {radial} of scale {scale_:.3g}, {size} in {name}, {words}"
    )


def correlation(draft: Draft, strength: float) -> None:
    """Normal columns, each of them the same on both sides, whose correlation differs."""
    size = draft.whole(2, 4)
    first = draft.between(-0.6, 0.6)
    second = math.tanh(math.atanh(first) + draft.sign() * 0.5 * strength)

    def joint(rho: float) -> Affine:
        covariance = np.eye(size)
        covariance[0, 1] = covariance[1, 0] = rho
        noise = Independent((Noise("normal"),) * size)
        return Affine(noise, np.linalg.cholesky(covariance), np.zeros(size))

    name = _add_vector(draft, joint(first), joint(second), size)
    draft.leaks.append(f"correlation: {size} normal in {name}, {first:.3g} against {second:.3g}")


def sums(draft: Draft, strength: float) -> None:
    """Running sums or a tree of sums with noise; one input is moved, and so are all sums that have it."""
    family = draft.pick("Laplace", "normal", "logistic")
    if draft.chance(0.5):
        size = draft.whole(3, 12)
        start = draft.whole(0, size - 1)
        matrix = np.tril(np.ones((size, size)))
        shift = matrix @ np.eye(size)[start] * strength
        noise = Independent((Noise(family),) * size)
        left, right = Affine(noise, matrix, np.zeros(size)), Affine(noise, matrix, shift)
        words = f"running sums with running noise, moved from place {start} on"
    else:
        levels = draft.whole(2, 3)
        size = 2 ** (levels + 1) - 1
        place = draft.whole(2**levels - 1, size - 1)
        shift = np.zeros(size)
        while place >= 0:
            shift[place] = strength / math.sqrt(levels + 1)
            place = (place - 1) // 2
        noise = Independent((Noise(family),) * size)
        left, right = (
            Affine(noise, np.eye(size), np.zeros(size)),
            Affine(noise, np.eye(size), shift),
        )
        words = f"a tree of sums of {2**levels} inputs"
    name = _add_vector(draft, left, right, size)
    draft.leaks.append(f"sums: {size} × {family} in {name}, {words}, by {strength:.3g}")


def clusters(draft: Draft, strength: float) -> None:
    """Clusters at the corners of a square; those on one diagonal are more likely on one side."""
    gap = draft.spread(1.0, 4.0)
    family = draft.pick("normal", "Laplace", "uniform")
    corners = tuple(
        Independent((Noise(family, x * gap), Noise(family, y * gap)))
        for x, y in ((-1, -1), (1, 1), (-1, 1), (1, -1))
    )
    chances = _chances(draft, strength, 0.3, 0.7)
    left, right = (
        Clusters((0.5 * chance, 0.5 * chance, 0.5 - 0.5 * chance, 0.5 - 0.5 * chance), corners)
        for chance in chances
    )
    name = _add_vector(draft, left, right, 2)
    draft.leaks.append(
        f"interaction: {family} clusters at corners ±{gap:.3g} in {name}, diagonal {chances[0]:.3g} against {chances[1]:.3g}"
    )


def sorted_order(draft: Draft, strength: float) -> None:
    """Numbers that come sorted more often on one side."""
    size = draft.whole(2, 6)
    law = Noise(draft.pick(*FAMILIES))
    low = draft.between(0.0, 0.3)
    chances = [low, min(0.9, low + 0.25 * strength)]
    if draft.chance(0.5):
        chances.reverse()
    left, right = (SometimesSorted(law, size, chance) for chance in chances)
    name = _add_vector(draft, left, right, size)
    draft.leaks.append(
        f"order: {size} × {law.family} in {name}, sorted with {chances[0]:.3g} against {chances[1]:.3g}"
    )


# Leaks where two columns meet


def coupled(draft: Draft, strength: float) -> None:
    """Two categories, each of them even, that agree (up to a shift) more often on one side."""
    size = draft.whole(2, 8)
    laws, words = _tilted_choice(draft, size, strength)
    first, second = draft.new_columns(2)
    labels = draft.labels(size)
    width = max(map(len, labels))
    one = draft.add(Category(first, labels), Coupled(first, second, laws, size), width=width)
    other = draft.add(Category(second, labels), width=width)
    draft.leaks.append(f"interaction: the difference of categories {one} and {other}: {words}")


def same_sign(draft: Draft, strength: float) -> None:
    """Two numbers that have the same sign more often on one side."""
    first, second = draft.new_columns(2)
    noise = Noise(draft.pick(*_SYMMETRIC), 0.0, draft.spread(0.1, 10.0))
    chances = _chances(draft, strength, 0.35, 0.65)
    one = draft.add(Real(first), SameSign(first, second, noise, chances))
    other = draft.add(Real(second))
    draft.leaks.append(
        f"interaction: signs of {one} and {other} ~ {noise.describe()} agree with "
        f"{chances[0]:.3g} against {chances[1]:.3g}"
    )


def copied(draft: Draft, strength: float) -> None:
    """Two numbers that are equal more often on one side, or on one side only."""
    first, second = draft.new_columns(2)
    law = _noise(draft)
    chances = _chances(draft, strength, 0.02, 0.5)
    if draft.chance(0.25):
        chances = (chances[0], 0.0) if draft.chance(0.5) else (0.0, chances[1])
    one = draft.add(Real(first), Copied(first, second, law, chances))
    other = draft.add(Real(second))
    draft.leaks.append(
        f"interaction: {other} is a copy of {one} ~ {law.describe()} with {chances[0]:.3g} against {chances[1]:.3g}"
    )


def location_in_category(draft: Draft, strength: float) -> None:
    """A number is moved only where a category has some value, or in all of them around different locations."""
    size = draft.whole(2, 8)
    category, column = draft.new_columns(2)
    chances = _normalised(draft.rng.dirichlet(np.full(size, 3.0)) + 0.02)
    noise = _noise(draft)
    moved = _moved(noise, draft.sign() * strength)
    elsewhere = _moved(noise, 0.0 if draft.chance(0.6) else 3.0)
    is_everywhere = draft.chance(0.3)
    other = _moved(elsewhere, (moved.location - noise.location) / noise.scale)
    pairs = LawPair(elsewhere, other if is_everywhere else elsewhere), LawPair(noise, moved)
    shown, leaf = draft.numbers(column, pairs, noise.scale)
    labels = draft.labels(size)
    value = draft.whole(0, size - 1)
    one = draft.add(
        Category(category, labels),
        Irrelevant(category, Choice(chances)),
        Switched(column, ByCategory(category, (value,)), shown),
        width=max(map(len, labels)),
    )
    other_name = draft.add(leaf)
    draft.leaks.append(
        f"interaction: where {one} = {labels[value]} ({chances[value]:.2g} of {size}) {other_name} ~ "
        f"{shown[1].describe()}, else {shown[0].describe()}"
    )


def location_beyond(draft: Draft, strength: float) -> None:
    """A number is moved only where another number is above a threshold."""
    first, second = draft.new_columns(2)
    gate = _noise(draft)
    threshold = gate.location + draft.between(-0.5, 1.2) * gate.scale
    noise = _noise(draft)
    laws = LawPair(noise, noise), LawPair(noise, _moved(noise, draft.sign() * strength))
    one = draft.add(
        Real(first),
        Irrelevant(first, gate),
        Switched(second, ByThreshold(first, threshold), laws),
    )
    other = draft.add(Real(second))
    draft.leaks.append(
        f"interaction: where {one} ~ {gate.describe()} > {threshold:.4g}, {other} ~ {laws[1].describe()}"
    )


# Leaks in what is there


def _irrelevant_content(draft: Draft, column: str) -> tuple[Node, Law]:
    """A value that says nothing."""
    kind = draft.pick("number", "integer", "category")
    if kind == "number":
        noise = _noise(draft)
        laws, leaf = draft.number(column, LawPair(noise, noise), noise.scale)
        return leaf, laws.left
    if kind == "integer":
        return Whole(column), Poisson(draft.spread(0.5, 500.0))
    size = draft.whole(2, 20)
    return Category(column, draft.labels(size)), Choice((1.0 / size,) * size)


def presence(draft: Draft, strength: float) -> None:
    """A field is there more often on one side; on the other outputs it is absent, None, or a word for a failure."""
    shown, column = draft.new_columns(2)
    node, law = _irrelevant_content(draft, column)
    chances = _chances(draft, strength, 0.03, 0.9)
    laws = LawPair(*(Choice((1.0 - chance, chance)) for chance in chances))
    name = draft.new_name()
    field = Field(name, node, shown)
    if draft.chance(0.3):
        field = Field(name, node, shown, absent=None)
    elif draft.chance(0.3):
        field = Field(name, node, shown, absent="error")
    draft.fields.append(field)
    draft.factors += [Number(shown, laws), OnlyWhere(Irrelevant(column, law), shown)]
    draft.leaks.append(
        f"presence of {name} ~ {law.describe()}: {chances[0]:.3g} against {chances[1]:.3g}"
    )


def presence_in_category(draft: Draft, strength: float) -> None:
    """A field is there more often on one side, only where a category has some value."""
    category, shown, column = draft.new_columns(3)
    size = draft.whole(2, 6)
    weights = _normalised(draft.rng.dirichlet(np.full(size, 3.0)) + 0.02)
    node, law = _irrelevant_content(draft, column)
    left, right = _chances(draft, strength, 0.1, 0.8)
    usual = Choice((1.0 - left, left))
    pairs = LawPair(usual, usual), LawPair(usual, Choice((1.0 - right, right)))
    labels = draft.labels(size)
    value = draft.whole(0, size - 1)
    one = draft.add(Category(category, labels), Irrelevant(category, Choice(weights)))
    name = draft.new_name()
    draft.fields.append(Field(name, node, shown))
    draft.factors += [
        Switched(shown, ByCategory(category, (value,)), pairs),
        OnlyWhere(Irrelevant(column, law), shown),
    ]
    draft.leaks.append(
        f"presence of {name} ~ {law.describe()} where {one} = {labels[value]} "
        f"({weights[value]:.2g} of {size}): {left:.3g} against {right:.3g}"
    )


def _lengths(draft: Draft, longest: int) -> Floats:
    """Probabilities of lengths 0 to the longest."""
    mean = draft.between(0.2, 0.8) * longest
    return np.exp(Poisson(mean).log_density(np.arange(longest + 1))) + 1e-3


def list_length(draft: Draft, strength: float) -> None:
    """Lists of values that say nothing, longer on one side."""
    longest = draft.whole(2, 12)
    weights = _lengths(draft, longest)
    tilt = np.exp(strength * 2.0 * np.arange(longest + 1) / longest)
    lengths = _either_way(draft, Choice(_normalised(weights)), Choice(_normalised(weights * tilt)))
    column, length = draft.new_columns(2)
    leaf, law = _irrelevant_content(draft, column)
    assert isinstance(leaf, Leaf)
    factor = List(column, length, lengths, LawPair(law, law), law, "none", longest)
    name = draft.add(Ragged(leaf, length, longest), factor)
    draft.leaks.append(
        f"length of list {name} of {law.describe()}: 0 to {longest}, {lengths.describe()}"
    )


def list_elements(draft: Draft, strength: float) -> None:
    """Lists of random length whose elements, or the first or last one, are moved."""
    longest = draft.whole(2, 10)
    lengths = Choice(_normalised(_lengths(draft, longest)))
    column, length = draft.new_columns(2)
    leaking = draft.pick("all", "all", "first", "last")
    part = strength / math.sqrt(0.5 * longest) if leaking == "all" else strength
    if draft.chance(0.6):
        noise = _noise(draft)
        elements = LawPair(noise, _moved(noise, draft.sign() * part))
        elements, leaf = draft.number(column, elements, noise.scale)
        words = elements.describe()
    else:
        size = draft.whole(2, 8)
        elements, words = _tilted_choice(draft, size, part)
        leaf = Category(column, draft.labels(size))
    factor = List(
        column, length, LawPair(lengths, lengths), elements, elements.left, leaking, longest
    )
    name = draft.add(Ragged(leaf, length, longest), factor)
    draft.leaks.append(f"list {name} of 0 to {longest}, {leaking} elements: {words}")


def letters(draft: Draft, strength: float) -> None:
    """A text of letters that is longer on one side, or has other letters."""
    longest = draft.whole(3, 16)
    weights = _lengths(draft, longest)
    column, length = draft.new_columns(2)
    size = draft.whole(2, 26)
    even = Choice((1.0 / size,) * size)
    if draft.chance(0.5):
        tilt = np.exp(strength * 2.0 * np.arange(longest + 1) / longest)
        lengths = _either_way(
            draft, Choice(_normalised(weights)), Choice(_normalised(weights * tilt))
        )
        factor = List(column, length, lengths, LawPair(even, even), even, "none", longest)
        words = f"length {lengths.describe()}"
    else:
        laws, words = _tilted_choice(draft, size, strength / math.sqrt(0.5 * longest))
        usual = Choice(_normalised(weights))
        factor = List(column, length, LawPair(usual, usual), laws, even, "all", longest)
    name = draft.add(Letters(Category(column, _ALPHABET[:size]), length, longest), factor)
    draft.leaks.append(f"letters of {name}, 0 to {longest} of {size}: {words}")


def rows(draft: Draft, strength: float) -> None:
    """Lists of records with a label and a number, which is moved in records with one of the labels."""
    longest = draft.whole(2, 8)
    size = draft.whole(2, 5)
    names = draft.new_name(), draft.new_name()
    label, value, length = draft.new_columns(3)
    labels = draft.labels(size)
    chances = _normalised(draft.rng.dirichlet(np.full(size, 3.0)) + 0.02)
    noise = _noise(draft)
    laws = LawPair(noise, _moved(noise, draft.sign() * strength / math.sqrt(0.25 * longest)))
    laws, leaf = draft.number(value, laws, noise.scale)
    lengths = Choice(_normalised(_lengths(draft, longest)))
    leaking = draft.whole(0, size - 1)
    factor = Rows(label, value, length, lengths, Choice(chances), leaking, laws, longest)
    container = dict if draft.chance(0.6) else tuple
    node = RaggedRecords(names, (Category(label, labels), leaf), length, longest, container)
    name = draft.add(node, factor)
    draft.leaks.append(
        f"list {name} of 0 to {longest} records, {names[1]} where {names[0]} = {labels[leaking]} "
        f"({chances[leaking]:.2g} of {size}): {laws.describe()}"
    )


def histogram(draft: Draft, strength: float) -> None:
    """Noisy numbers by label, which are shown above a threshold only; one of them, or some, are moved."""
    size = draft.whole(2, 10)
    family = draft.pick("Laplace", "normal", "logistic")
    scale_ = draft.spread(0.3, 5.0)
    least = draft.tidy(draft.between(0.0, 6.0) * scale_, scale_)
    centres = np.round(draft.rng.uniform(-1.0, 8.0, size=size) * scale_, 3)
    moved = np.zeros(size)
    moved[: draft.whole(1, 2)] = strength / math.sqrt(2.0)
    moved = draft.rng.permutation(moved) * scale_
    columns = draft.new_columns(size)
    factors = []
    for column, centre, by in zip(columns, centres.tolist(), moved.tolist(), strict=True):
        laws = LawPair(
            *(Clamped(Noise(family, centre + x, scale_), least, math.inf) for x in (0.0, by))
        )
        factors.append(Number(column, laws))
    node = Histogram(draft.labels(size), tuple(Real(column) for column in columns), least)
    name = draft.add(node, *factors)
    draft.leaks.append(
        f"histogram {name} of {size}, {family} noise of {scale_:.3g}, shown above {least:.4g}, "
        f"{np.count_nonzero(moved)} moved by {moved.max():.3g} from {', '.join(f'{x:.4g}' for x in centres[moved > 0])}"
    )


def last_digit(draft: Draft, strength: float) -> None:
    """The last digits of integers differ, as where people round."""
    column = draft.new_column()
    modulus = draft.whole(2, 10)
    laws, words = _tilted_choice(draft, modulus, strength)
    is_even = draft.chance(0.5)
    quotient = EvenWhole(0, draft.whole(50, 900)) if is_even else Poisson(draft.spread(2.0, 300.0))
    factor = Remainder(column, modulus, quotient, laws)
    name = draft.add(Whole(column), factor, width=4 if is_even else None)
    draft.leaks.append(f"remainder modulo {modulus} of {name} ~ {quotient.describe()}: {words}")


# Leaks in dates


def date(draft: Draft, strength: float) -> None:
    """A date is later on one side, or another day of the week."""
    column = draft.new_column()
    style, unit = _date_style(draft), "D"
    if draft.chance(0.5):
        start = draft.whole(_FIRST_DAY, _LAST_DAY)
        ratio = draft.between(0.5, 0.98)
        step = max(1, round(strength / -math.log(ratio)))
        laws = LawPair(TwoSidedGeometric(start, ratio), TwoSidedGeometric(start + step, ratio))
        factor: Number | Remainder = Number(column, laws)
        words = f"{laws.describe()} days"
    else:
        laws, words = _tilted_choice(draft, 7, strength)
        weeks = draft.whole(20, 300)
        factor = Remainder(column, 7, EvenWhole(_FIRST_DAY // 7, weeks), laws)
        words = f"weekday over {weeks} weeks: {words}"
    name = draft.add(Date(column, style, unit), factor, width=8 if style == "compact" else None)
    draft.leaks.append(f"date {name} ({style}), {words}")


def _date_style(draft: Draft) -> str:
    return draft.pick("iso", "compact", "dotted") if draft.is_text else draft.pick("object", "iso")


def moment(draft: Draft, strength: float) -> None:
    """A time stamp is later on one side."""
    column = draft.new_column()
    start = _SECONDS_PER_DAY * draft.whole(_FIRST_DAY, _LAST_DAY) + draft.whole(0, 80_000)
    scale_ = draft.spread(5.0, 20_000.0)
    step = max(1, round(strength * scale_))
    ratio = math.exp(-1.0 / scale_)
    laws = LawPair(TwoSidedGeometric(start, ratio), TwoSidedGeometric(start + step, ratio))
    style = _date_style(draft)
    width = 15 if style == "compact" else None
    name = draft.add(Date(column, style, "s"), Number(column, laws), width=width)
    draft.leaks.append(f"moment {name} ({style}), later by {step} s, noise of {scale_:.3g} s")


LEAKS: dict[str, Leak] = {
    leak.__name__: leak
    for leak in (
        location,
        bounded_location,
        scale,
        shape,
        mixture_weights,
        far_group,
        exact_release,
        atom_weight,
        clamped,
        counts,
        categories,
        rare_category,
        bits,
        chain,
        vector_location,
        correlated,
        rotated,
        spherical,
        correlation,
        sums,
        clusters,
        sorted_order,
        coupled,
        same_sign,
        copied,
        location_in_category,
        location_beyond,
        presence,
        presence_in_category,
        list_length,
        list_elements,
        letters,
        rows,
        histogram,
        last_digit,
        date,
        moment,
    )
}


# Fields that say nothing


def other_number(draft: Draft) -> None:
    """Noise."""
    column = draft.new_column()
    noise = _noise(draft)
    laws, leaf = draft.number(column, LawPair(noise, noise), noise.scale)
    draft.add(leaf, Irrelevant(column, laws.left))
    draft.companions.append(f"noise {noise.describe()}")


def other_integer(draft: Draft) -> None:
    """A count."""
    column = draft.new_column()
    law = Binomial(draft.whole(3, 99), draft.between(0.1, 0.9))
    draft.add(Whole(column), Irrelevant(column, law), width=2)
    draft.companions.append(f"count {law.describe()}")


def other_category(draft: Draft) -> None:
    """A label."""
    column = draft.new_column()
    size = draft.whole(2, 40)
    labels = draft.labels(size)
    law = Choice(_normalised(draft.rng.dirichlet(np.ones(size)) + 1e-3))
    draft.add(Category(column, labels), Irrelevant(column, law), width=max(map(len, labels)))
    draft.companions.append(f"{size} labels")


def other_date(draft: Draft) -> None:
    """A date."""
    column = draft.new_column()
    style = _date_style(draft)
    law = TwoSidedGeometric(draft.whole(_FIRST_DAY, _LAST_DAY), draft.between(0.3, 0.99))
    draft.add(Date(column, style), Irrelevant(column, law), width=8 if style == "compact" else None)
    draft.companions.append(f"a date ({style})")


def identifier(draft: Draft) -> None:
    """A unique identifier."""
    column = draft.new_column()
    style = draft.pick("hex", "dashed", "number", "user")
    width = 16 if style in ("hex", "number") else None
    draft.add(
        Identifier(column, style),
        Irrelevant(column, EvenWhole(0, 2**IDENTIFIER_BITS)),
        width=width,
    )
    draft.companions.append(f"a unique id ({style})")


def constant(draft: Draft) -> None:
    """A word that never changes."""
    column = draft.new_column()
    labels = draft.labels(1)
    draft.add(Category(column, labels), Irrelevant(column, Choice((1.0,))), width=len(labels[0]))
    draft.companions.append("a constant")


COMPANIONS: tuple[Companion, ...] = (
    other_number,
    other_integer,
    other_category,
    other_date,
    identifier,
    constant,
)
