"""The additive score of outputs, and how columns may depend on one of them."""

import numpy as np

from epsilometer.methods.scores.by_shape import additive_score
from epsilometer.methods.scores.cells import blocks_of_both
from epsilometer.outputs import read_outputs


def test_rounded_numbers_depend_on_a_label_and_not_the_other_way_round(rng):
    """There are more values of the number, but those near each other are alike."""
    probabilities = np.array([0.1, 0.3, 0.6])

    def draw(shift, n=3000):
        place = rng.choice(3, n, p=probabilities)
        number = np.round(0.25 * rng.normal(size=n) + np.where(place == 0, shift, 0.0), 1)
        return list(
            zip(np.array(["lead", "ash", "tin"])[place].tolist(), number.tolist(), strict=True)
        )

    left, right = draw(0.15), draw(0.0)
    score = additive_score("additive", blocks_of_both(read_outputs(left), read_outputs(right)))
    (block, _) = score.shapes[0]
    assert [atoms is None for atoms in block.atoms] == [False, True]
    numbers = np.round(np.linspace(-0.4, 0.5, 10), 1)
    probe = read_outputs([("lead", x) for x in numbers.tolist()]).blocks[0]
    group = next(
        group for group in block.groups if block.atoms[0].labels[group.signature[0]] == "lead"
    )
    found = group.score.evaluate(probe.columns)
    assert np.corrcoef(found, numbers)[0, 1] > 0.85
