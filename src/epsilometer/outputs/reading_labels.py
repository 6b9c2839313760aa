"""Values that are told apart by a text of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from epsilometer.outputs.columns import Labels


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Values as labels; `text` is called once per distinct value and must keep them distinct."""
    table: defaultdict[Hashable, int] = defaultdict(count().__next__)  # a new value gets the next number
    codes = np.fromiter(map(table.__getitem__, values), np.int32, len(values))
    return Labels(codes, tuple(map(text, table)))
