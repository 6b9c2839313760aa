"""Logistic regression of the side on features of the outputs, with a prior that the draws choose.

Groups of features have a prior variance each, which is estimated as in `additive` (empirical
Bayes): a group that says nothing about the side gets the variance 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from epsilometer.arrays import Floats, Integers
from epsilometer.methods.scores.additive import Posterior, PriorPart
from epsilometer.methods.scores.folds import FOLDS

# Steps of Newton's method, after which the weights hardly move.
_NEWTON_STEPS = 8
# Steps from there to the mode without a fold.
_STEPS_WITHOUT_FOLD = 3
# Relative to the mean curvature: what keeps a Hessian invertible in double precision.
_ROUNDING = 1e-12
# The iteration ends when no logit can move by more than this.
_CONVERGED = 0.01
# A step moves the logits by at most about this: further away the curvature is another one.
_LONGEST_STEP = 4.0
# Logits are clipped to ± this: no number of draws distinguishes larger ones.
_MAX_ABS_LOGIT = 30.0


@dataclass(frozen=True, slots=True)
class Regression:
    """Fitted weights.

    Attributes:
        weights: shape (features,), fitted to all draws.
        left: shape (n,), scores of the left draws by weights that were fitted without their fold.
        right: shape (m,), of the right draws.
        final: shape (n + m,), scores of all draws by `weights`.
    """

    weights: Floats
    left: Floats
    right: Floats
    final: Floats


def fit_regression(
    left: Floats,
    right: Floats,
    left_folds: Integers,
    right_folds: Integers,
    parts: Sequence[PriorPart],
) -> Regression:
    """Fits the mode of the posterior, with all draws and without each fold.

    Args:
        left: shape (n, features), of the left draws.
        right: shape (m, features), of the right draws.
        left_folds: shape (n,), their folds.
        right_folds: shape (m,), their folds.
        parts: of the prior's covariance.
    """
    rows = np.concatenate([left, right])
    centre = rows.mean(axis=0)
    rows = rows - centre
    n_left = len(left)
    n_right = len(right)
    is_left = np.repeat([1.0, 0.0], [n_left, n_right])
    gram = rows.T @ rows / len(rows)
    difference = rows[:n_left].mean(axis=0) - rows[n_left:].mean(axis=0)
    posterior = Posterior(
        gram,
        column_parts=list(parts),
        shared_parts=[],
        difference=difference,
        noise=1.0 / n_left + 1.0 / n_right,
    )
    prior = posterior.prior
    n_features = rows.shape[1]
    ridge = 1e-10 * np.trace(prior) / n_features + 1e-14
    root = np.linalg.cholesky(prior + ridge * np.eye(n_features))
    # In the coordinates v, with weights = root·v, the prior is a standard normal distribution.
    turned = rows @ root
    offset = float(np.log(n_left / n_right))
    v = _mode(turned, is_left, offset, np.zeros(n_features), _NEWTON_STEPS)
    folds = np.concatenate([left_folds, right_folds])
    scores = np.empty(len(rows))
    for fold in range(FOLDS):
        is_out = folds == fold
        # The mode without a fold is close to the mode with it.
        without = _mode(turned[~is_out], is_left[~is_out], offset, v, _STEPS_WITHOUT_FOLD)
        scores[is_out] = turned[is_out] @ without
    return Regression(
        weights=root @ v,
        left=scores[:n_left],
        right=scores[n_left:],
        final=(turned @ v),
    )


def _mode(turned: Floats, is_left: Floats, offset: float, start: Floats, n_steps: int) -> Floats:
    """The mode of the posterior by Newton's method, shape (features,).

    Args:
        turned: shape (n, features), in coordinates in which the prior is a standard normal one.
        is_left: shape (n,), 1 for left draws and 0 for right ones.
        offset: log-odds of a draw being a left one.
        start: shape (features,), where to start.
        n_steps: how many steps, at most.
    """
    v = start
    identity = np.eye(turned.shape[1])
    for _ in range(n_steps):
        logits = np.clip(turned @ v + offset, -_MAX_ABS_LOGIT, _MAX_ABS_LOGIT)
        probability = expit(logits)
        curvature = probability * (1.0 - probability)
        information = (turned * curvature[:, None]).T @ turned
        # Beside huge features, the prior's identity would be lost to rounding.
        rounding = _ROUNDING * float(np.trace(information)) / len(identity)
        hessian = information + (1.0 + rounding) * identity
        step = np.linalg.solve(hessian, turned.T @ (is_left - probability) - v)
        # A typical size of the change of a logit: its root mean square.
        length = float(np.sqrt(np.mean((turned @ step) ** 2)))
        v = v + step * min(1.0, _LONGEST_STEP / max(length, 1e-9))
        if length < _CONVERGED:
            break
    return v
