"""The inputs of a mechanism: pairs of neighbouring datasets."""

from epsilometer.inputs.pairs import RECORDED, Inputs, Pair, Pairs, as_pair, as_pairs, is_recorded

__all__ = [
    "RECORDED",
    "Inputs",
    "Pair",
    "Pairs",
    "as_pair",
    "as_pairs",
    "is_recorded",
]
