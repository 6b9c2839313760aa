"""How the log-ratio runs along a score: simple curves, averaged by their marginal likelihoods.

The best event is often rarer than what a few thousand draws can count: a shift by 3 of normal noise
is certified best by an event with q = 4e-5, when 3000 training draws show none of it. What it is
worth follows from the form of the log-ratio where there are draws. It may end in plateaus (Laplace
noise), go on in a straight line (normal noise), bend (noise of another width), steepen with the
depth in the tail, or jump (at an edge of the support). No single form suits all, so each is fitted
by logistic regression of the side on the score, and their forecasts are averaged with weights
proportional to the marginal likelihoods.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, xlogy

from epsilometer.arrays import Floats, Integers
from epsilometer.outputs.placing import places

# Cuts whose distance from either end, in draws, grows geometrically up to the median.
_N_TAIL_CUTS = 32
# Cuts evenly spaced between the ends, so that the middle is resolved as well.
_N_EVEN_CUTS = 17
# Smallest number of draws beyond the outermost cut.
_FEWEST_BEYOND_CUT = 4.0
# Cuts around the last draw of a side, in draws before and after it: each twice as far. Where one
# side ends early (an edge of its support), the best tail begins there or a few draws beyond.
_EDGE_STEPS = np.append(0, 2 ** np.arange(1, 8))
# Fewest draws beyond the last one of a side that make an edge: nearer to the end, the cuts of the
# tails are as close.
_FEWEST_BEYOND_EDGE = 32
# Draws per side that are sorted to place cuts: more would hardly move them, and all draws are
# counted between the cuts.
_SORTED_ROWS = 1 << 16
# Fractions of the draws below the knots at which plateaus begin and end.
_PLATEAU_KNOTS = (
    0.01,
    0.04,
    0.09,
    0.16,
    0.25,
    0.37,
    0.5,
    0.63,
    0.75,
    0.84,
    0.91,
    0.96,
    0.99,
)
# Fractions of the draws below the knots at which a line changes its slope.
_BEND_KNOTS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
# Fractions of the draws beyond a jump at either end: an eighth more from one to the next.
_JUMP_FRACTIONS = np.geomspace(0.01, 0.45, 33)
# Fractions of the draws in the tails within which the log-ratio may steepen.
_STEEP_TAILS = (0.0005, 0.002, 0.01, 0.05)
# How sharply a line turns into a plateau, per unit of the scaled score: about as for normal noise
# on a subsample, whose log-ratio is ln(1 − r + r·e^x) (0.90 of the oracle; 0.87 with a sharp bend).
_PLATEAU_SHARPNESS = 2.0
# Grid of prior variances of a curve's coefficient, in squared units of the log-ratio.
_VARIANCES = np.geomspace(1e-4, 4.0, 12)
# The prior variance of all coefficients is this multiple of the one that suits the simplest curves
# best. It caps what few draws in a tail can make a curve do there.
_VARIANCE_FACTOR = 4.0
# Prior variance of the constant is the inverse of this: the sizes of the sides are known.
_PRECISION_OF_CONSTANT = 1e-2
# Prior log-odds for a curve against one with one more coefficient: most noise is plain (truncated
# Laplace noise at 1e4 draws, the worst of 16 seeds: 0.37 of the oracle at even odds, 0.95 at
# these).
_LOG_ODDS_PER_COEFFICIENT = 2.0
# Curves are fitted if their score statistic is at least this fraction of the largest one, less
# `_LESS_THAN_LARGEST`: a difference of 24 is a weight of e^-12.
_LEAST_RELATIVE_STATISTIC = 0.7
_LESS_THAN_LARGEST = 24.0
# Most steps of Newton's method.
_NEWTON_STEPS = 12
# Longest step in any coefficient; longer ones are shortened.
_LONGEST_STEP = 2.0
# The iteration ends when every coefficient moves by less than this.
_CONVERGED_STEP = 0.03
# Curves with a smaller weight, relative to the best one, are dropped.
_LEAST_WEIGHT = 1e-3
# Log-ratios are clipped to ± this: no number of draws distinguishes larger ones.
_MAX_ABS_LOG_RATIO = 30.0
# The share of the draws below the median of the score.
_MEDIAN = 0.5
# A feature with a smaller standard deviation is constant up to rounding.
_NO_DEVIATION = 1e-9


@dataclass(frozen=True, slots=True)
class Sliced:
    """Training draws in the order of their scores, cut between ties into slices.

    Attributes:
        at: shape (slices + 1,), draws of both sides below each cut.
        lefts: shape (slices + 1,), left draws below each cut.
        middle: shape (slices,), a typical score of each slice.
        hits: shape (slices,), left draws in each slice.
        sizes: shape (slices,), draws of both sides in each slice.
        shares: shape (slices - 1,), the fraction below each inner cut of the draws that placed it.
    """

    at: Integers
    lefts: Integers
    middle: Floats
    hits: Floats
    sizes: Floats
    shares: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, ordered: Floats | None = None) -> "Sliced":
        """Slices the scores of both sides.

        Args:
            left: shape (n,), scores of the left draws.
            right: shape (m,), scores of the right draws.
            ordered: the sorted scores that place the cuts; None takes some of both sides.
        """
        if ordered is None:
            thinned_left = left[:: max(1, len(left) // _SORTED_ROWS)]
            thinned_right = right[:: max(1, len(right) // _SORTED_ROWS)]
            ordered = np.sort(np.concatenate([thinned_left, thinned_right]))
        total = len(ordered)
        tail_sizes = np.geomspace(_FEWEST_BEYOND_CUT, 0.5 * total, _N_TAIL_CUTS)
        even_sizes = np.linspace(0.04, 0.96, _N_EVEN_CUTS) * total
        sizes = np.concatenate([tail_sizes, even_sizes])
        ranks = np.concatenate([sizes, total - sizes, *_ranks_near_edges(ordered, left, right)])
        ranks = np.unique(ranks.astype(np.int64).clip(0, total - 1))
        # A cut lies before the first of equal scores.
        first_of_ties = np.unique(np.searchsorted(ordered, ordered[ranks]))
        cuts = first_of_ties[first_of_ties > 0]
        slice_starts = np.append(0, cuts)
        slice_stops = np.append(cuts, total)
        middle = ordered[(slice_stops + slice_starts) // 2]
        thresholds = ordered[cuts]
        left_counts = np.bincount(places(thresholds, left), minlength=len(cuts) + 1)
        right_counts = np.bincount(places(thresholds, right), minlength=len(cuts) + 1)
        counts = left_counts + right_counts
        return cls(
            at=np.append(0, np.cumsum(counts)),
            lefts=np.append(0, np.cumsum(left_counts)),
            middle=middle,
            hits=left_counts.astype(np.float64),
            sizes=counts.astype(np.float64),
            shares=cuts / total,
        )


def _ranks_near_edges(ordered: Floats, left: Floats, right: Floats) -> list[Integers]:
    """Ranks before and after the first and the last draw of either side, where the other goes on.

    Args:
        ordered: shape (k,), the sorted scores that place the cuts.
        left: shape (n,), scores of the left draws.
        right: shape (m,), scores of the right draws.
    """
    total = len(ordered)
    ranks = []
    for side in (left, right):
        if not len(side):
            continue
        first = int(np.searchsorted(ordered, side.min()))
        last = int(np.searchsorted(ordered, side.max(), side="right"))
        for edge, n_beyond in ((first, first), (last, total - last)):
            if n_beyond >= _FEWEST_BEYOND_EDGE:
                # At most halfway to the end of the other side.
                steps = _EDGE_STEPS[n_beyond // 2 >= _EDGE_STEPS]
                ranks += [edge - steps, edge + steps]
    return ranks


@dataclass(frozen=True, slots=True)
class Curves:
    """What the curves forecast, each in several variants that represent its uncertainty.

    Attributes:
        weights: shape (variants,), of sum 1.
        lefts: shape (variants, slices + 1), left draws to expect below each cut.
    """

    weights: Floats
    lefts: Floats


def fit_curves(sliced: Sliced, straight: float = 0.0) -> Curves:
    """Fits every curve and weighs it by its marginal likelihood.

    Args:
        sliced: the training draws.
        straight: is added to the prior log-odds of a straight line.
    """
    hits = sliced.hits
    sizes = sliced.sizes
    families = _families(sliced)
    variance = _VARIANCE_FACTOR * _evidence_at_null(families[0], hits, sizes).variance
    families = _promising(families, hits, sizes)
    fits = [_Fit.of(basis, hits, sizes, variance) for basis in families]
    # The straight line is the first curve of the first family.
    fits[0].evidence[0] += straight
    best_evidence = max(float(fit.evidence.max()) for fit in fits)
    misfit = _misfit(fits, hits, sizes)
    weights = []
    lefts = []
    for fit in fits:
        weight = np.exp((fit.evidence - best_evidence) / misfit)
        is_kept = weight > _LEAST_WEIGHT
        # The posterior of the coefficients is represented by points that have its mean and
        # covariance: two for each coefficient, on either side of the mode.
        mode = fit.coefficients[is_kept]
        n_coefficients = mode.shape[1]
        root = np.linalg.cholesky(np.linalg.inv(fit.information[is_kept]))
        deviations = np.sqrt(misfit * n_coefficients) * np.swapaxes(root, 1, 2)
        points = mode[:, None] + np.concatenate([deviations, -deviations], axis=1)
        logits = points @ np.swapaxes(fit.basis[is_kept], 1, 2) + fit.offset
        probability_of_left = expit(logits)
        n_points = points.shape[1]
        weights.append(np.repeat(weight[is_kept], n_points) / n_points)
        lefts.append(np.cumsum(probability_of_left * sizes, axis=2).reshape(-1, len(sizes)))
    all_weights = np.concatenate(weights)
    return Curves(
        weights=all_weights / all_weights.sum(),
        lefts=np.pad(np.concatenate(lefts), ((0, 0), (1, 0))),
    )


def _promising(families: list[Floats], hits: Floats, sizes: Floats) -> list[Floats]:
    """The curves that may explain the counts; the straight line stays the first one.

    The score statistic of a curve is about twice what it adds to the log-likelihood. Far below the
    largest one it cannot have any weight, and fitting is what takes the time.
    """
    share = hits.sum() / sizes.sum()
    residual = hits - sizes * share
    weight = sizes * share * (1.0 - share)
    statistics = []
    for basis in families:
        gradient = (residual @ basis)[..., None]
        information = np.swapaxes(basis * weight[:, None], 1, 2) @ basis
        information += 1e-6 * weight.sum() * np.eye(basis.shape[2])
        step = np.linalg.solve(information, gradient)
        statistics.append((gradient * step).sum(axis=(1, 2)))
    largest = max(float(statistic.max()) for statistic in statistics)
    required = _LEAST_RELATIVE_STATISTIC * largest - _LESS_THAN_LARGEST
    promising = []
    for number, (basis, statistic) in enumerate(zip(families, statistics, strict=True)):
        is_kept = statistic >= required
        is_kept[0] |= number == 0
        if is_kept.any():
            promising.append(basis[is_kept])
    return promising


def _misfit(fits: list["_Fit"], hits: Floats, sizes: Floats) -> float:
    """Deviance of the best curve per degree of freedom, at least 1.

    Where no curve explains the counts, it tempers the weights and widens the posteriors.
    """
    saturated = float((xlogy(hits, hits / sizes) + xlogy(sizes - hits, 1.0 - hits / sizes)).sum())
    best_likelihood = max(float(fit.likelihood.max()) for fit in fits)
    deviance = 2.0 * (saturated - best_likelihood)
    return max(deviance / max(len(hits) - 3, 1), 1.0)


def _families(sliced: Sliced, only_first: bool = False) -> list[Floats]:
    """The bases of the curves, each family of shape (curves, slices, coefficients).

    The first coefficient is that of a constant. The others belong to features with mean 0 and
    variance 1 over the draws; curves of the first family have one.
    """
    total = float(sliced.at[-1])
    share: Floats = np.asarray(0.5 * (sliced.at[1:] + sliced.at[:-1]) / total, np.float64)
    low, centre, high = np.interp([0.15, _MEDIAN, 0.85], share, sliced.middle)
    # x is the score around its median, in units of its 15–85 % range. The depth is minus the
    # logarithm of the mass of the tail, positive above the median and negative below it.
    x = np.clip((sliced.middle - centre) / (high - low or 1.0), -1e3, 1e3)
    depth = np.where(share < _MEDIAN, np.log(2.0 * share), -np.log(2.0 * (1.0 - share)))
    families = [_lines_and_plateaus(share, x, depth)]
    if not only_first:
        families.append(_bends(share, x, depth))
        families.append(_steep_tails_and_parabolas(share, x, depth))
    weight = sliced.sizes / sliced.sizes.sum()
    return [_standardised(features, weight) for features in families]


def _lines_and_plateaus(share: Floats, x: Floats, depth: Floats) -> Floats:
    """The straight line, sharp plateaus at both ends, smooth ones at one end, and jumps."""
    depth_knots = np.interp(_PLATEAU_KNOTS, share, depth)
    x_knots = np.interp(_PLATEAU_KNOTS, share, x)[:, None]
    first, last = np.triu_indices(len(_PLATEAU_KNOTS), 1)
    curves = [
        x[None],
        np.clip(depth, depth_knots[first, None], depth_knots[last, None]),
        np.logaddexp(-_PLATEAU_SHARPNESS * x, -_PLATEAU_SHARPNESS * x_knots),
        np.logaddexp(_PLATEAU_SHARPNESS * x, _PLATEAU_SHARPNESS * x_knots),
        # A jump at every third cut: the edge of a support.
        np.tri(len(x), dtype=np.float64)[1::3],
    ]
    return np.concatenate(curves)[..., None]


def _bends(share: Floats, x: Floats, depth: Floats) -> Floats:
    """Lines with different slopes below and above a knot, and jumps at both ends."""
    curves = []
    for coordinate in (x, depth):
        for knot in np.interp(_BEND_KNOTS, share, coordinate):
            distance = coordinate - knot
            curves.append([np.maximum(distance, 0.0), np.minimum(distance, 0.0)])
    # Supports that overlap: a jump at either end, with as many draws below as above.
    curves += [
        [np.where(share > 1.0 - fraction, 1.0, 0.0), np.where(share < fraction, -1.0, 0.0)]
        for fraction in _JUMP_FRACTIONS
    ]
    return np.array(curves).transpose(0, 2, 1)


def _steep_tails_and_parabolas(share: Floats, x: Floats, depth: Floats) -> Floats:
    """Lines that steepen within the tails, and parabolas with a curvature for either half."""
    curves = []
    for fraction in _STEEP_TAILS:
        low, high = np.interp([fraction, 1.0 - fraction], share, depth)
        curves.append([x, np.minimum(depth - low, 0.0), np.maximum(depth - high, 0.0)])
    for coordinate in (x, depth):
        above = np.maximum(coordinate, 0.0) ** 2
        below = np.minimum(coordinate, 0.0) ** 2
        curves.append([coordinate, above, below])
    return np.array(curves).transpose(0, 2, 1)


def _standardised(features: Floats, weight: Floats) -> Floats:
    """A constant, and the features with mean 0 and variance 1; a constant feature becomes 0."""
    centred = features - (weight @ features)[:, None]
    deviation = np.sqrt(weight @ centred**2)[:, None]
    constant = np.ones((*features.shape[:2], 1))
    scaled = centred / np.where(deviation > _NO_DEVIATION, deviation, np.inf)
    return np.concatenate([constant, scaled], axis=2)


class _NullEvidence(NamedTuple):
    """Evidence for a difference, and the prior variance of the coefficient that suits it best."""

    log_evidence: float
    variance: float


def _evidence_at_null(basis: Floats, hits: Floats, sizes: Floats) -> _NullEvidence:
    """Evidence of curves with one feature against no difference, expanded around the latter.

    The log-likelihood is taken to second order, so that the evidence has a closed form for every
    prior variance; it is summed over the curves.
    """
    share = hits.sum() / sizes.sum()
    information = sizes.sum() * share * (1.0 - share)
    z = ((hits - sizes * share) @ basis)[:, 1] / np.sqrt(information)
    shrinkage = 1.0 + _VARIANCES[:, None] * information
    per_curve = 0.5 * (z**2 * (1.0 - 1.0 / shrinkage) - np.log(shrinkage))
    evidence = np.logaddexp.reduce(per_curve, axis=1)
    return _NullEvidence(
        log_evidence=float(evidence.max()),
        variance=float(_VARIANCES[np.argmax(evidence)]),
    )


def separation_evidence(sliced: Sliced) -> float:
    """Log-evidence that the scores of the left and of the right draws are distributed differently.

    It is about 0 or below where they are not.

    Args:
        sliced: the training draws along a score.
    """
    if len(sliced.hits) < 2:
        return -np.inf
    basis = _families(sliced, only_first=True)[0]
    evidence = _evidence_at_null(basis, sliced.hits, sliced.sizes).log_evidence
    # The evidence was summed over the curves, and is compared with their mean.
    return evidence - float(np.log(len(basis)))


@dataclass(frozen=True, slots=True)
class _Fit:
    """The curves of one family at their most probable coefficients.

    Attributes:
        basis: shape (curves, slices, coefficients).
        coefficients: shape (curves, coefficients).
        information: shape (curves, coefficients, coefficients), of the posterior.
        likelihood: shape (curves,), its logarithm.
        evidence: shape (curves,), logarithm of the marginal likelihood by Laplace's approximation,
            plus the prior log-odds of curves with so many coefficients.
        offset: log-odds of a draw being a left one.
    """

    basis: Floats
    coefficients: Floats
    information: Floats
    likelihood: Floats
    evidence: Floats
    offset: float

    @classmethod
    def of(cls, basis: Floats, hits: Floats, sizes: Floats, variance: float) -> "_Fit":
        """Fits all curves of a family by Newton's method with a Gaussian prior.

        Args:
            basis: shape (curves, slices, coefficients).
            hits: shape (slices,), left draws.
            sizes: shape (slices,), all draws.
            variance: prior variance of all coefficients but the constant's.
        """
        n_coefficients = basis.shape[2]
        precision = np.array([_PRECISION_OF_CONSTANT, *(n_coefficients - 1) * [1.0 / variance]])
        n_left = hits.sum()
        n_right = (sizes - hits).sum()
        offset = float(np.log(n_left / n_right))
        coefficients = np.zeros((len(basis), n_coefficients))
        logits = np.full(basis.shape[:2], offset)
        for _ in range(_NEWTON_STEPS):
            probability = 1.0 / (1.0 + np.exp(-logits))
            residual = (hits - sizes * probability)[:, None]
            gradient = (residual @ basis)[:, 0] - precision * coefficients
            weighted_basis = basis * (sizes * probability * (1.0 - probability))[..., None]
            information = np.swapaxes(weighted_basis, 1, 2) @ basis + np.diag(precision)
            step = np.linalg.solve(information, gradient[..., None])[..., 0]
            length = np.abs(step).max(axis=1, keepdims=True)
            coefficients = coefficients + step * np.minimum(1.0, _LONGEST_STEP / length.clip(1e-9))
            log_ratios = (basis @ coefficients[..., None])[..., 0]
            logits = np.clip(log_ratios, -_MAX_ABS_LOG_RATIO, _MAX_ABS_LOG_RATIO) + offset
            if length.max() < _CONVERGED_STEP:
                break
        likelihood = -(np.logaddexp(0.0, -logits) @ sizes + logits @ (sizes - hits))
        log_prior = 0.5 * (np.log(precision) - precision * coefficients**2).sum(axis=1)
        evidence = (
            likelihood
            + log_prior
            - 0.5 * np.linalg.slogdet(information)[1]
            - _LOG_ODDS_PER_COEFFICIENT * n_coefficients
        )
        return cls(
            basis=basis,
            coefficients=coefficients,
            information=information,
            likelihood=likelihood,
            evidence=evidence,
            offset=offset,
        )
