"""How far a function moves between neighbouring inputs, before any noise is added."""

from epsilometer.stability.movement import Movement, movement

__all__ = ["Movement", "movement"]
