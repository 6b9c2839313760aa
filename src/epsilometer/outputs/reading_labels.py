"""Values that are told apart by a text of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from epsilometer.outputs.columns import Labels


def label_to_data(label: str) -> str | list[str]:
    """A label as JSON can hold it: half characters (surrogates) have no text of their own there, but bytes do."""
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        return [label.encode("utf-8", "surrogatepass").hex()]
    return label


def label_from_data(data: Any) -> str:
    """The inverse of `label_to_data`."""
    return bytes.fromhex(data[0]).decode("utf-8", "surrogatepass") if isinstance(data, list) else str(data)


def factorise(values: Sequence[Hashable], text: Callable[[Any], str]) -> Labels:
    """Values as labels; `text` is called once per distinct value and must keep them distinct."""
    table: defaultdict[Hashable, int] = defaultdict(count().__next__)  # a new value gets the next number
    codes = np.fromiter(map(table.__getitem__, values), np.int32, len(values))
    return Labels(codes, tuple(map(text, table)))
