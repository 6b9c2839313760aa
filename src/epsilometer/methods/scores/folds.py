"""Folds of the training draws, for cross-fitting: every fifth draw, whatever its shape."""

import numpy as np

from epsilometer.arrays import Integers

# Folds of the training draws: a score is fitted to four fifths of them when it scores the others.
FOLDS = 5


def fold_of_rows(places: Integers) -> Integers:
    """The fold of each draw.

    Args:
        places: shape (n,), positions among all draws of a side.
    """
    return np.asarray(places % FOLDS)
