"""What is put into a mechanism: pairs of neighbouring datasets."""

from epsilometer.inputs.pairs import Inputs, Pair, as_pair, as_pairs

__all__ = ["Inputs", "Pair", "as_pair", "as_pairs"]
