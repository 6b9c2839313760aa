"""Both sides of something: what belongs to the left input, and what belongs to the right one."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Sides(NamedTuple, Generic[T]):
    """A left and a right thing; it unpacks and indexes like a tuple of two.

    Attributes:
        left: what belongs to the left input.
        right: what belongs to the right input.
    """

    left: T
    right: T

    def map(self, function: Callable[[T], R]) -> "Sides[R]":
        """The results of a function on both sides."""
        return Sides(function(self.left), function(self.right))

    def oriented(self, flipped: bool) -> "Sides[T]":
        """The sides in this order, or exchanged if `flipped`."""
        return Sides(self.right, self.left) if flipped else self
