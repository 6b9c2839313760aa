"""Scores of the user's features alone, without the rest of each output.

A feature is given because the draws could not show it; beside it the rest is often noise, such as
the seed of a hash function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from epsilometer.arrays import Floats
from epsilometer.methods.scores.learned import LearnedScore, ScoredCells
from epsilometer.outputs import Event, Outputs, Partition
from epsilometer.outputs.shapes import FEATURED, n_of_features


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureScore(LearnedScore):
    """A score that was learned from the first columns of each shape.

    Attributes:
        narrow: the same score as one of these columns only.
        n_columns: how many columns each shape has.
    """

    narrow: LearnedScore
    n_columns: Mapping[str, int]

    @classmethod
    def of(cls, narrow: LearnedScore, n_columns: Mapping[str, int]) -> "FeatureScore":
        """Makes a score of whole outputs from one of their features."""
        return cls(
            name=f"features: {narrow.name}",
            left=narrow.left,
            right=narrow.right,
            ordered=narrow.ordered,
            is_line=narrow.is_line,
            is_fitted=narrow.is_fitted,
            outside=narrow.outside,
            n_rivals=narrow.n_rivals,
            narrow=narrow,
            n_columns=n_columns,
        )

    @property
    def diversity(self) -> float:
        """How many columns matter."""
        return self.narrow.diversity

    @property
    def n_tails(self) -> int:
        """Tails that can be told apart."""
        return self.narrow.n_tails

    def cells(self, cuts: Floats) -> ScoredCells:
        """Cuts outputs along the score."""
        narrow = self.narrow.cells(cuts)
        return ScoredCells(_widened(narrow.partition, self.n_columns), narrow.level)

    def tail_event(self, mass: float, upper: bool) -> Event:
        """The outputs at one end of the score."""
        event = self.narrow.tail_event(mass, upper)
        return replace(event, partition=_widened(event.partition, self.n_columns))


def has_features(outputs: Sequence[Outputs]) -> bool:
    """Whether some outputs come with features and with something else."""
    return any(
        block.shape.startswith(FEATURED) and n_of_features(block.shape) < len(block.columns)
        for side in outputs
        for block in side.blocks
    )


def features_only(side: Outputs) -> Outputs:
    """The outputs without the columns that are no features; those without features unchanged."""
    blocks = []
    for block in side.blocks:
        n_features = n_of_features(block.shape) or None
        blocks.append(replace(block, columns=block.columns[:n_features]))
    return Outputs(tuple(blocks), side.size)


def _widened(partition: Partition, n_columns: Mapping[str, int]) -> Partition:
    """Turns cells of the first columns of each shape into cells of all of them."""
    blocks = []
    for block in partition.blocks:
        n_missing = n_columns[block.shape] - len(block.atoms)
        groups = tuple(
            replace(group, signature=(*group.signature, *(-1,) * n_missing))
            for group in block.groups
        )
        atoms = (*block.atoms, *(None,) * n_missing)
        blocks.append(replace(block, atoms=atoms, groups=groups))
    return replace(partition, blocks=tuple(blocks))
