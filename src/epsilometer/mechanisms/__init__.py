"""What is run: anything that draws outputs for a dataset."""

from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.functions import as_mechanism, from_batch, from_callable

__all__ = ["Mechanism", "as_mechanism", "from_batch", "from_callable"]
