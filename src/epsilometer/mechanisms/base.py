"""What a mechanism is to us: something that draws outputs for a dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from epsilometer.outputs import Outputs

# How much of a dataset or of a text is shown in messages.
_SHOWN = 120


class Mechanism(ABC):
    """Draws outputs.

    Attributes:
        name: how the mechanism is called in results and reports.
        is_seeded: whether equal generators give equal outputs.
        chunk_size: how many outputs are drawn with one generator. Part of the seed scheme: chunks, not workers,
            own their random streams.
    """

    name: str
    is_seeded: bool
    chunk_size: int

    @abstractmethod
    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws n independent outputs.

        Raises:
            MechanismError: if the mechanism fails or returns something that cannot be read.
        """


def shown(value: object) -> str:
    """A short text for a value, safe against hostile `__repr__`."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
