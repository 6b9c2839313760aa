"""The fair coins that decide which canaries are trained on, kept until the scores are there."""

import json
import secrets
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats
from epsilometer.claims.base import check_whole
from epsilometer.errors import InputError
from epsilometer.models.ids import check_ids, named_ids, read_ids
from epsilometer.stability.vectors import as_vector
from epsilometer.storage.writing import write_atomically


class JoinedScores(NamedTuple):
    """Scores and coins in one order, for `epsilometer.from_one_run(*joined)`.

    Attributes:
        scores: shape (m,).
        included: shape (m,), whether each canary was trained on.
    """

    scores: Floats
    included: Booleans

    def __repr__(self) -> str:
        return f"<JoinedScores: {len(self.scores)} scores, {int(self.included.sum())} of them in>"


@dataclass(frozen=True, eq=False)
class Coins:
    """Which canaries are trained on, each by its own fair coin.

    Attributes:
        ids: the names of the canaries.
        included: shape (m,), whether each is trained on.
        seed: of the coins.
    """

    ids: tuple[Hashable, ...]
    included: Booleans
    seed: int

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Coins: {int(self.included.sum())} of {len(self)} canaries included>"

    def save(self, path: str | Path) -> Path:
        """Writes the coins as JSON, whole or not at all; `Coins.load` is the inverse.

        Keep them from whoever makes the scores until these are fixed.
        """
        for name in self.ids:
            if not isinstance(name, str | int):
                raise InputError(f"id {name!r:.80} cannot be stored; take texts or whole numbers")
        data = {"ids": list(self.ids), "included": self.included.tolist(), "seed": self.seed}
        return write_atomically(path, json.dumps(data))

    @classmethod
    def load(cls, path: str | Path) -> "Coins":
        """Reads what `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            ids = data["ids"]
            included = data["included"]
            seed = int(data["seed"])
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(f"{path} holds no coins of `Coins.save`") from error
        is_whole = isinstance(ids, list) and isinstance(included, list)
        if not is_whole or len(ids) != len(included):
            raise InputError(f"{path} holds no coins of `Coins.save`: one truth value per id")
        if not all(isinstance(coin, bool) for coin in included):
            raise InputError(f"{path}: included must be true or false for every id")
        return cls(_checked_ids(ids), np.array(included, dtype=np.bool_), seed)

    def join(self, scores: Any) -> JoinedScores:
        """Puts scores and coins into one order.

        Args:
            scores: by id, as a dict or a series with the ids as its index; or one per canary in the
                order of `ids`.

        Raises:
            InputError: an id is missing, unknown or repeated, or the numbers of scores and canaries
                differ.
        """
        by_id = _by_id(scores)
        if by_id is None:
            shape = getattr(scores, "shape", (len(self.ids),))
            if len(shape) != 1:
                raise InputError(
                    f"scores has shape {tuple(shape)}: it must be one-dimensional, one per canary"
                )
            values = as_vector("scores", scores).numbers
            if len(values) != len(self.ids):
                raise InputError(
                    f"{len(values)} scores for {len(self.ids)} canaries; give one per canary in "
                    "the order of `ids`, or a dict by id"
                )
            return JoinedScores(values, self.included)
        missing = [name for name in self.ids if name not in by_id]
        if missing:
            raise InputError(f"{len(missing)} canaries have no score: {named_ids(missing)}")
        known = set(self.ids)
        unknown = [name for name in by_id if name not in known]
        if unknown:
            raise InputError(f"{len(unknown)} scores belong to no canary: {named_ids(unknown)}")
        values = as_vector("scores", [by_id[name] for name in self.ids]).numbers
        if len(values) != len(self.ids):
            raise InputError("scores must be one number per id")
        return JoinedScores(values, self.included)


def coin_flips(ids: Iterable[Hashable], seed: int | None = None) -> Coins:
    """Flips a fair coin for each canary: heads is trained on, tails is left out.

    Args:
        ids: the names of the canaries.
        seed: of the coins; None takes a fresh one, which the result has. Nothing that trains or
            scores may depend on it.

    Guarantee: the coins are independent of each other and fair, as audits of one run need. Choosing
        exactly half of the canaries would not do.

    Example:
        >>> from epsilometer import models
        >>> coins = models.coin_flips(["a", "b", "c"], seed=1)
        >>> scores, included = coins.join({"c": 0.3, "a": 0.1, "b": 0.2})
        >>> scores.tolist(), len(included)
        ([0.1, 0.2, 0.3], 3)
    """
    names = _checked_ids(ids)
    seed = secrets.randbits(63) if seed is None else check_whole("seed", seed, least=0)
    included = np.random.default_rng(seed).random(len(names)) < 1 / 2
    return Coins(names, included, seed)


def _checked_ids(ids: Any) -> tuple[Hashable, ...]:
    """The ids, or an InputError if there are none, or one is missing or repeated."""
    names = read_ids("ids", ids)
    if not names:
        raise InputError("ids is empty; give a name for each canary")
    check_ids("ids", names)
    return tuple(names)


def _by_id(scores: Any) -> dict[Hashable, Any] | None:
    """The scores by id; None if they have none."""
    if isinstance(scores, Mapping):
        return dict(scores)
    # A series of pandas: its index has the ids.
    if hasattr(scores, "index") and hasattr(scores, "items"):
        names = list(scores.index)
        values = list(scores)
        check_ids("scores", names)
        return dict(zip(names, values, strict=True))
    return None
