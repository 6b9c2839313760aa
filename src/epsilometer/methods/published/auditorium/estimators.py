"""The paper's four divergence estimators D̂(P ‖ Q), one direction each, for Algorithm 1.

An estimator draws what it needs: `p(n)` and `q(n)` return n fresh outputs of each distribution. The
one that is compared with a threshold is always evaluated on draws that did not fit it.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Algorithms 2, 3, 5 and 7.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from epsilometer.bounds.bernstein import bernstein_lower
from epsilometer.claims import ApproxDeltaDP
from epsilometer.claims.base import check_at_least, check_choice
from epsilometer.claims.renyi import check_order
from epsilometer.engine.streams import Stream
from epsilometer.environment import one_thread
from epsilometer.errors import InputError
from epsilometer.methods.base import Task
from epsilometer.methods.published.auditorium import (
    bounded_functions,
    families,
    hockey_stick,
    kernel_space,
    mmd,
    poisson_histogram,
    variational_error,
)
from epsilometer.methods.published.auditorium.proportions import ProportionBound, find_proportion
from epsilometer.methods.published.auditorium.renyi_variational import published_divergence
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Outputs
from epsilometer.outputs.scores import KernelOfPoints

# Draws n fresh outputs.
Draw = Callable[[int], Outputs]

# Points that decide the bandwidth of a kernel.
_BANDWIDTH_DRAWS = 2000
# e^700 is near the largest float.
_LARGEST_EXPONENT = 700.0
# More draws than this fill the memory.
_MOST_DRAWS = 1e8
# h = k(x, x') − 2k(x, y) + k(y, y') lies between −2 and 2.
_LARGEST_TERM = 2.0


class Estimator(Protocol):
    """Estimates D̂(P ‖ Q) from fresh draws.

    Any function with these parameters will do. One with an attribute `guarantee` says what its
    estimate promises.
    """

    def __call__(self, p: Draw, q: Draw, n: int, failure: float, rng: np.random.Generator) -> float:
        """Returns the estimate.

        Args:
            p: draws fresh outputs of P.
            q: draws fresh outputs of Q.
            n: the sample size.
            failure: β.
            rng: for random numbers of its own.
        """


@dataclass(frozen=True, slots=True)
class HockeyStick:
    """A classifier on the mixture weighted by e^ε, and a bound on its accuracy; compare with δ.

    Attributes:
        epsilon: ε.
        proportion: p̂: "hoeffding", "chernoff", "clopper-pearson", or a function of hits, trials and
            the failure probability.
        classifier: "auto", "cells" or "boosting".

    Guarantee: exact: the estimate is above the divergence with probability at most β.

    Reference: Kong et al. (2023), Algorithm 5.
    """

    epsilon: float
    proportion: str | ProportionBound = "hoeffding"
    classifier: str = "auto"

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_at_least("epsilon", self.epsilon, 0.0)
        check_choice("classifier", self.classifier, hockey_stick.CLASSIFIERS)
        find_proportion(self.proportion)

    @property
    def guarantee(self) -> str:
        """What one estimate promises."""
        if callable(self.proportion):
            return "conditional: the given function is a lower bound on a proportion"
        return "exact"

    def __call__(self, p: Draw, q: Draw, n: int, failure: float, rng: np.random.Generator) -> float:
        """Returns (1 + e^ε)·p̂ − e^ε from n draws of the mixture; n others train the classifier."""
        weight_p = 1.0 / (1.0 + math.exp(min(self.epsilon, _LARGEST_EXPONENT)))
        n_p = int(rng.binomial(n, weight_p))
        # A classifier needs at least one draw of each side.
        train_p, train_q = p(max(n_p, 1)), q(max(n - n_p, 1))
        claim = ApproxDeltaDP(self.epsilon, 0.0)
        task = Task(claim, (max(n_p, 1), max(n - n_p, 1)), failure, _stream(rng))
        classifiers = hockey_stick.learn_classifiers(train_p, train_q, self.classifier)
        mixture = np.array([self.epsilon])
        chosen = hockey_stick.choose_excess(classifiers, task, mixture, directions=(False,))
        event = chosen.candidate.event
        n_p = int(rng.binomial(n, weight_p))
        correct = 0
        if n_p:
            correct += int(np.count_nonzero(event.contains(p(n_p))))
        if n > n_p:
            correct += n - n_p - int(np.count_nonzero(event.contains(q(n - n_p))))
        accuracy_lower = find_proportion(self.proportion)(correct, n, failure)
        return hockey_stick.excess_of_accuracy(accuracy_lower, self.epsilon)


@dataclass(frozen=True, slots=True)
class Renyi:
    """A bounded function h fitted on n draws and evaluated on n others; compare with ε.

    For pure privacy compare with min(ε, 2αε²).

    Attributes:
        order: α.
        family: "auto", "bins", "chebyshev" or "network".
        degree: of polynomials; None tries a few.
        bound: C; None chooses it on the draws that fit h.

    Guarantee: none: the published error bound has gaps.

    Reference: Kong et al. (2023), Algorithm 2.
    """

    order: float
    family: str = "auto"
    degree: int | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        check_order(self.order)
        self._options()

    def _options(self) -> families.Options:
        return families.Options(family=self.family, degree=self.degree, bound=self.bound)

    @property
    def guarantee(self) -> str:
        """What one estimate promises."""
        return variational_error.GUARANTEE

    def __call__(self, p: Draw, q: Draw, n: int, failure: float, rng: np.random.Generator) -> float:
        """Returns R of the fitted h on fresh draws, less the published error."""
        with one_thread():
            function = bounded_functions.learn_bounded(
                p(n),
                q(n),
                self.order,
                self._options(),
                directions=(False,),
                n_fresh=n,
                failure_probability=failure,
                rng=rng,
            )
        left = function.moments(p(n), 0)
        right = function.moments(q(n), 1)
        return published_divergence(function, left, right, failure)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Σ max(0, (x_j − e^ε·y_j)/r) − η over the cells of a histogram; compare with δ.

    The number of draws r is Poisson with a mean that follows from the cells, ε, β and η; the sample
    size n only places the cells, where no bounds are given.

    Attributes:
        epsilon: ε.
        cells: m.
        margin: η.
        bounds: (low, high) of a known output space, which is cut into cells of equal width.

    Guarantee: none: the bias of the estimate is not subtracted.

    Reference: Kong et al. (2023), Algorithm 3.
    """

    epsilon: float
    cells: int = 100
    margin: float = 0.05
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_at_least("epsilon", self.epsilon, 0.0)
        self._options()

    def _options(self) -> poisson_histogram.Options:
        return poisson_histogram.Options(cells=self.cells, margin=self.margin, bounds=self.bounds)

    @property
    def guarantee(self) -> str:
        """What one estimate promises."""
        return "none: Algorithm 3 does not subtract the bias of its estimate"

    def __call__(self, p: Draw, q: Draw, n: int, failure: float, rng: np.random.Generator) -> float:
        """Returns the estimate from r ~ Poisson(λ) draws of each side."""
        n_to_cut = n if self.bounds is None else 1
        partition = poisson_histogram.cut(p(n_to_cut), q(n_to_cut), self._options()).partition
        n_cells = self.cells if self.bounds is not None else partition.n_cells
        mean = poisson_histogram.poisson_mean(n_cells, self.epsilon, failure, self.margin)
        if mean > _MOST_DRAWS:
            raise InputError(
                f"Algorithm 3 asks for {mean:.2g} draws of each side with epsilon={self.epsilon!r},"
                f" cells={n_cells!r}, margin={self.margin!r} and failure={failure!r}; take fewer "
                "cells, a smaller epsilon or a larger margin"
            )
        r = int(rng.poisson(mean))
        if r < 1:
            return -self.margin
        x = partition.count(p(r))
        y = partition.count(q(r))
        return poisson_histogram.positive_excess(x, y, self.epsilon) - self.margin


@dataclass(frozen=True, slots=True)
class Mmd:
    """δ by the maximum mean discrepancy of n quadruples of draws; compare with δ.

    Above ε = ln(1 + √2) ≈ .88 it is 0 whatever the draws are: a test with it passes everything.

    Attributes:
        epsilon: ε.
        kernel: as for the method `mmd`.
        bandwidth: as for the method `mmd`.

    Guarantee: exact: the estimate is above the least δ at this ε with probability at most β. The
        variance is the unbiased one, the square root covers it alone, and the estimate of δ inverts
        the threshold itself, where the paper prints otherwise.

    Reference: Kong et al. (2023), Algorithm 7.
    """

    epsilon: float
    kernel: KernelOfPoints = "gaussian"
    bandwidth: kernel_space.BandwidthOfPoints = None

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_at_least("epsilon", self.epsilon, 0.0)
        kernel_space.check_kernel(self.kernel, self.bandwidth)

    @property
    def guarantee(self) -> str:
        """What one estimate promises."""
        if callable(self.kernel):
            return "conditional: the kernel is positive definite and at most 1"
        return "exact"

    def __call__(self, p: Draw, q: Draw, n: int, failure: float, rng: np.random.Generator) -> float:
        """Returns the bound on δ from n terms, each of two draws of P and two of Q."""
        few = min(n, _BANDWIDTH_DRAWS)
        with one_thread():
            shapes = kernel_space.learn_shapes(p(few), q(few), self.kernel, self.bandwidth, rng=rng)
            left = mmd.points_of(p(2 * n), shapes)
            right = mmd.points_of(q(2 * n), shapes)
            terms = mmd.pair_terms(left, right, self.kernel)
        squared = bernstein_lower(terms, -_LARGEST_TERM, _LARGEST_TERM, failure)
        discrepancy = math.sqrt(max(squared, 0.0))
        claim = ApproxDeltaDP(self.epsilon, 0.0)
        return mmd.value_of_discrepancy(claim, discrepancy, "published")


def _stream(rng: np.random.Generator) -> Stream:
    """Returns a stream of random numbers for a task, drawn from those of the audit."""
    return Stream(int(rng.integers(2**62)))
