"""What is put into a mechanism: pairs of neighbouring datasets."""

from epsilometer.inputs.pairs import Pair

__all__ = ["Pair"]
