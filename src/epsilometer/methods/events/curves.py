"""How the log-ratio runs along a number: many simple curves, weighed by how well they explain the training draws.

The best event is often rarer than what a few thousand draws can count: a shift by 3 of normal noise
is proved best by an event with q = 4e-5, when 3000 training draws show none of it. What it is worth
follows from the form of the log-ratio where there are draws. It may end in plateaus (Laplace
noise), go on in a straight line (normal noise), bend (noise of another width), or steepen with the
depth in the tail (at an edge of the support). No single form suits all, so each is fitted by
logistic regression, and they vote by their marginal likelihoods.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from epsilometer.arrays import Floats, Integers
from epsilometer.outputs.lines import places

# Slices in which draws are counted: by size from either end, and evenly between.
_BY_SIZE = 56
_EVEN = 33
# Shares of the draws below the knots of plateaus, of bends, and beyond those of tails that steepen.
_KNOTS = (0.01, 0.04, 0.09, 0.16, 0.25, 0.37, 0.5, 0.63, 0.75, 0.84, 0.91, 0.96, 0.99)
_BENDS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
_STEEPENS = (0.0005, 0.002, 0.01, 0.05)
# How sharply a line turns into a plateau, per spread: about as for normal noise on a subsample,
# whose log-ratio is ln(1 − r + r·e^x) (.90 of the oracle, with a sharp bend .87).
_BLUNT = 2.0
# Variances of the log-ratio that may be usual, and by how much that of a coefficient may be larger:
# a tail that is told by few draws must not be believed to differ more than anything else does.
_VARIANCES = np.geomspace(1e-4, 4.0, 12)
_WIDER = 4.0
# Logarithm of the odds, before any draw, of a curve against one with a coefficient more: most noise
# is plain (truncated Laplace noise at 1e4 draws, the worst of 16 seeds: .37 of the oracle at even
# odds, .95 at these).
_SIMPLER = 2.0
# Newton's steps, their length at most, and how short the last one is.
_NEWTON = 12
_LONGEST = 2.0
_SHORT = 0.03
# Weights of curves below which they are left out.
_LEAST_WEIGHT = 1e-3
# Log-ratios beyond this are not told apart.
_FAR = 30.0


@dataclass(frozen=True, slots=True)
class Sliced:
    """Training draws in the order of their scores, cut between ties into slices.

    Attributes:
        at: shape (slices + 1,), draws below each cut.
        lefts: shape (slices + 1,), left draws below each cut.
        middle: shape (slices,), a typical score of each slice.
        hits: shape (slices,), left draws in each slice.
        sizes: shape (slices,), all draws in each slice.
        shares: shape (slices - 1,), the share below each inner cut of the draws that placed it.
    """

    at: Integers
    lefts: Integers
    middle: Floats
    hits: Floats
    sizes: Floats
    shares: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, ordered: Floats | None = None) -> "Sliced":
        """Slices of the scores of both sides; `ordered`, all or some of them sorted, place the cuts."""
        ordered = np.sort(np.concatenate([left, right])) if ordered is None else ordered
        total = len(ordered)
        sizes = np.concatenate(
            [np.geomspace(4.0, 0.5 * total, _BY_SIZE), np.linspace(0.04, 0.96, _EVEN) * total]
        )
        ranks = np.unique(
            np.concatenate([sizes, total - sizes]).astype(np.int64).clip(0, total - 1)
        )
        ends = np.unique(np.searchsorted(ordered, ordered[ranks]))
        cuts = ends[ends > 0]
        middle = ordered[(np.append(cuts, total) + np.append(0, cuts)) // 2]
        hits, others = (
            np.bincount(places(ordered[cuts], side), minlength=len(cuts) + 1)
            for side in (left, right)
        )
        at, lefts = (np.append(0, np.cumsum(each)) for each in (hits + others, hits))
        return cls(
            at,
            lefts,
            middle,
            hits.astype(np.float64),
            (hits + others).astype(np.float64),
            cuts / total,
        )


@dataclass(frozen=True, slots=True)
class Curves:
    """What the curves expect, each in some variants that stand for its uncertainty.

    Attributes:
        weights: shape (variants,), of sum 1.
        lefts: shape (variants, slices + 1), left draws to expect below each cut.
    """

    weights: Floats
    lefts: Floats


def fit_curves(sliced: Sliced, straight: float = 0.0) -> Curves:
    """Every curve that the draws leave possible; `straight` is added to the log-odds of a straight line."""
    hits = sliced.hits
    sizes = sliced.sizes
    families = _families(sliced)
    usual = _WIDER * _around_none(families[0], hits, sizes)[1]
    fits = [_Fit.of(basis, hits, sizes, usual) for basis in families]
    fits[0].evidence[0] += straight
    best = max(float(fit.evidence.max()) for fit in fits)
    # Where no curve explains the counts, all of them are believed less.
    exact = float((xlogy(hits, hits / sizes) + xlogy(sizes - hits, 1.0 - hits / sizes)).sum())
    deviance = 2.0 * (exact - max(float(fit.likelihood.max()) for fit in fits))
    misfit = max(deviance / max(len(hits) - 3, 1), 1.0)
    weights = []
    lefts = []
    for fit in fits:
        weight = np.exp((fit.evidence - best) / misfit)
        which = weight > _LEAST_WEIGHT
        # Each curve at points around its coefficients that have their mean and covariance.
        found = fit.coefficients[which]
        root = np.linalg.cholesky(np.linalg.inv(fit.information[which]))
        away = np.sqrt(misfit * found.shape[1]) * np.swapaxes(root, 1, 2)
        points = found[:, None] + np.concatenate([away, -away], axis=1)
        share = expit(points @ np.swapaxes(fit.basis[which], 1, 2) + fit.offset)
        weights.append(np.repeat(weight[which], points.shape[1]) / points.shape[1])
        lefts.append(np.cumsum(share * sizes, axis=2).reshape(-1, len(sizes)))
    every = np.concatenate(weights)
    return Curves(every / every.sum(), np.pad(np.concatenate(lefts), ((0, 0), (1, 0))))


def _families(sliced: Sliced, only_first: bool = False) -> list[Floats]:
    """The bases of the curves, each family of shape (curves, slices, coefficients).

    A constant, then features with mean 0 and variance 1 over the draws; the curves of the first
    family have one.
    """
    total = float(sliced.at[-1])
    share = 0.5 * (sliced.at[1:] + sliced.at[:-1]) / total
    low, centre, high = np.interp([0.15, 0.5, 0.85], share, sliced.middle)
    # Around the middle in units of the spread; how deep in a tail: minus the logarithm of its mass.
    x = np.clip((sliced.middle - centre) / (high - low or 1.0), -1e3, 1e3)
    depth = np.where(share < 0.5, np.log(2.0 * share), -np.log(2.0 * (1.0 - share)))
    knots, (first, last) = np.interp(_KNOTS, share, depth), np.triu_indices(len(_KNOTS), 1)
    ends = np.interp(_KNOTS, share, x)[:, None]
    # the straight line first
    plateaus = [x[None], np.clip(depth, knots[first, None], knots[last, None])]
    plateaus += [np.logaddexp(_BLUNT * sign * x, _BLUNT * sign * ends) for sign in (-1.0, 1.0)]
    families = [np.concatenate(plateaus)[..., None]]
    if not only_first:
        away = [t - knot for t in (x, depth) for knot in np.interp(_BENDS, share, t)]
        bends = [[np.maximum(t, 0.0), np.minimum(t, 0.0)] for t in away]
        tails = [np.interp([share_of, 1.0 - share_of], share, depth) for share_of in _STEEPENS]
        steep = [
            [x, np.minimum(depth - low, 0.0), np.maximum(depth - high, 0.0)] for low, high in tails
        ]
        curved = [[t, np.maximum(t, 0.0) ** 2, np.minimum(t, 0.0) ** 2] for t in (x, depth)]
        families += [np.array(each).transpose(0, 2, 1) for each in (bends, steep + curved)]
    bases = []
    weight = sliced.sizes / sliced.sizes.sum()
    for features in families:
        centred = features - (weight @ features)[:, None]
        spread = np.sqrt(weight @ centred**2)[:, None]
        ones = np.ones((*features.shape[:2], 1))
        bases.append(
            np.concatenate([ones, centred / np.where(spread > 1e-9, spread, np.inf)], axis=2)
        )
    return bases


def _around_none(basis: Floats, hits: Floats, sizes: Floats) -> tuple[float, float]:
    """The evidence of curves with one feature against no difference, to second order, and their usual variance."""
    share = hits.sum() / sizes.sum()
    information = sizes.sum() * share * (1.0 - share)
    z = ((hits - sizes * share) @ basis)[:, 1] / np.sqrt(information)
    shrunk = 1.0 + _VARIANCES[:, None] * information
    evidence = np.logaddexp.reduce(0.5 * (z**2 * (1.0 - 1.0 / shrunk) - np.log(shrunk)), axis=1)
    return float(evidence.max()), float(_VARIANCES[np.argmax(evidence)])


def tells_sides(left: Floats, right: Floats) -> float:
    """The evidence that a score of some draws tells the sides apart."""
    sliced = Sliced.of(left, right)
    return _around_none(_families(sliced, only_first=True)[0], sliced.hits, sliced.sizes)[0]


@dataclass(frozen=True, slots=True)
class _Fit:
    """The curves of one family at their most likely coefficients.

    Attributes:
        basis: shape (curves, slices, coefficients).
        coefficients: shape (curves, coefficients).
        information: shape (curves, coefficients, coefficients).
        likelihood: shape (curves,), its logarithms.
        evidence: shape (curves,), logarithms of the marginal likelihoods, by Laplace's
            approximation.
        offset: the log-odds of a draw being a left one.
    """

    basis: Floats
    coefficients: Floats
    information: Floats
    likelihood: Floats
    evidence: Floats
    offset: float

    @classmethod
    def of(cls, basis: Floats, hits: Floats, sizes: Floats, usual: float) -> "_Fit":
        precision = np.array([1e-2, *(basis.shape[2] - 1) * [1.0 / usual]])
        n = hits.sum()
        m = (sizes - hits).sum()
        offset = float(np.log(n / m))
        found = np.zeros((len(basis), basis.shape[2]))
        expected = np.full(basis.shape[:2], offset)
        for _ in range(_NEWTON):
            share = 1.0 / (1.0 + np.exp(-expected))
            slope = ((hits - sizes * share)[:, None] @ basis)[:, 0] - precision * found
            scaled = basis * (sizes * share * (1.0 - share))[..., None]
            information = np.swapaxes(scaled, 1, 2) @ basis + np.diag(precision)
            step = np.linalg.solve(information, slope[..., None])[..., 0]
            size = np.abs(step).max(axis=1, keepdims=True)
            found = found + step * np.minimum(1.0, _LONGEST / size.clip(1e-9))
            expected = np.clip((basis @ found[..., None])[..., 0], -_FAR, _FAR) + offset
            if size.max() < _SHORT:
                break
        likelihood = -(np.logaddexp(0.0, -expected) @ sizes + expected @ (sizes - hits))
        prior = 0.5 * (np.log(precision) - precision * found**2).sum(axis=1)
        evidence = (
            likelihood + prior - 0.5 * np.linalg.slogdet(information)[1] - _SIMPLER * basis.shape[2]
        )
        return cls(basis, found, information, likelihood, evidence, offset)
