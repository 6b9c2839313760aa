"""All kinds of scores, by their name in files."""

from __future__ import annotations

from typing import Any

from epsilometer.outputs.kernels import KernelScore
from epsilometer.outputs.networks import NetworkScore
from epsilometer.outputs.scores import AdditiveScore
from epsilometer.outputs.trees import TreeScore

Score = AdditiveScore | TreeScore | NetworkScore | KernelScore

_KINDS: dict[str, type[Score]] = {
    "additive": AdditiveScore,
    "trees": TreeScore,
    "network": NetworkScore,
    "kernel": KernelScore,
}


def score_from_dict(data: dict[str, Any]) -> Score:
    """The inverse of a score's `to_dict`; what names no kind is additive."""
    kind = data.get("kind", "additive")
    if kind not in _KINDS:
        raise ValueError(f"a score of the unknown kind {kind!r:.40}")
    return _KINDS[kind].from_dict(data)
