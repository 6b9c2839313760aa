"""The canaries of one training run as the caller hands them over: scores and coins, joined by id.

Libraries are recognised by their methods, so that none of them is imported.
"""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc

from epsilometer.arrays import Booleans, Floats
from epsilometer.auditing.score_values import (
    WrongWayWarning,
    as_array,
    read_scores,
    wrong_way,
)
from epsilometer.errors import EpsilometerWarning, InputError, short_repr
from epsilometer.models.ids import check_ids, named_ids, read_ids

# Fewer canaries refute next to nothing: ten right guesses of ten have probability 0.001 by chance.
FEWEST_CANARIES = 10
# A number of included canaries that fair coins give more rarely than this is remarked upon.
_SUSPICIOUS = 1e-6
# Values that are no coins which a message names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Canaries:
    """The canaries of one run, in an order of no meaning.

    Attributes:
        scores: shape (m,); larger means "was in the data".
        coins: shape (m,), whether each was in the data.
    """

    scores: Floats
    coins: Booleans


def read_canaries(scores: Any, included: Any, ids: Any, included_ids: Any) -> Canaries:
    """Returns checked canaries; the arguments are those of `from_one_run`.

    Raises:
        InputError: ids are missing, unknown or repeated, lengths differ, a coin is not 0 or 1, a
            score is no number, there are fewer than ten canaries, or all coins are equal.
    """
    score_values, coin_values = _joined(scores, included, ids, included_ids)
    score_array = read_scores("scores", score_values, FEWEST_CANARIES)
    coins = _as_coins(coin_values)
    if len(score_array) != len(coins):
        raise InputError(
            f"scores has {len(score_array)} entries and included {len(coins)}: give one of each "
            "per canary, or give both by id"
        )
    _check_coins(coins)
    _warn_of_wrong_way(score_array, coins)
    return Canaries(scores=score_array, coins=coins)


def _joined(scores: Any, included: Any, ids: Any, included_ids: Any) -> tuple[Any, Any]:
    """The scores and the coins in one order: by id where ids are given, else as they come."""
    score_ids, score_values = _split_ids(scores, ids, "scores", "ids")
    coin_ids, coin_values = _split_ids(included, included_ids, "included", "included_ids")
    if score_ids is None and coin_ids is None:
        return score_values, coin_values
    if score_ids is None or coin_ids is None:
        has_ids, lacks_ids = ("included", "scores") if score_ids is None else ("scores", "included")
        option = "ids" if lacks_ids == "scores" else "included_ids"
        if ids is None and included_ids is None and not _any_mapping(scores, included):
            # A Series beside a plain array: rows belong together by position.
            return score_values, coin_values
        raise InputError(
            f"{has_ids} comes with ids and {lacks_ids} does not: give those of {lacks_ids} too, "
            f"as a dict, a Series or {option}="
        )
    position_of_score = _positions(score_ids, "scores")
    position_of_coin = _positions(coin_ids, "included")
    _check_same(position_of_score, position_of_coin)
    ordered_coins = [coin_values[position_of_coin[identifier]] for identifier in score_ids]
    return list(score_values), ordered_coins


def _any_mapping(*values: Any) -> bool:
    return any(isinstance(value, Mapping) for value in values)


def _split_ids(values: Any, ids: Any, name: str, option: str) -> tuple[list[Hashable] | None, Any]:
    """The ids of values, None if they have none, and the values themselves in that order."""
    own_ids: list[Hashable] | None = None
    if isinstance(values, Mapping):
        own_ids = list(values.keys())
        values = list(values.values())
    elif _is_series(values):
        if ids is None:
            own_ids = values.index.tolist()
        values = values.to_numpy()
    if ids is None:
        return own_ids, values
    if own_ids is not None:
        raise InputError(f"{name} comes with ids of its own: leave out {option}=")
    given = read_ids(option, ids)
    values = as_array(name, values)
    if values.ndim != 1 or len(given) != len(values):
        raise InputError(f"{option} has {len(given)} entries and {name} {len(values)}")
    return given, values


def _is_series(values: Any) -> bool:
    """Whether values are labelled, as those of a pandas Series (which is not imported)."""
    index = getattr(values, "index", None)
    return hasattr(index, "tolist") and hasattr(values, "to_numpy")


def _positions(ids: Sequence[Hashable], name: str) -> dict[Hashable, int]:
    """Where each id stands; raises if one is missing or repeated."""
    check_ids(name, ids)
    return {identifier: position for position, identifier in enumerate(ids)}


def _check_same(scored: Mapping[Hashable, int], flipped: Mapping[Hashable, int]) -> None:
    """Raises unless the same ids have scores and coins."""
    without_score = [identifier for identifier in flipped if identifier not in scored]
    without_coin = [identifier for identifier in scored if identifier not in flipped]
    if not without_score and not without_coin:
        return
    if len(without_coin) == len(scored) > 0 and flipped:
        # None in common: the ids are of different types, or not the same thing.
        raise InputError(
            f"no canary has both a score and a coin: ids of scores are like "
            f"{short_repr(next(iter(scored)))}, those of included like "
            f"{short_repr(next(iter(flipped)))}; give both the same ids"
        )
    lacking = (
        f"no score for {named_ids(without_score)}"
        if without_score
        else f"no coin in `included` for {named_ids(without_coin)}"
    )
    raise InputError(
        f"{lacking}: give every canary a score and its coin; leaving some out voids the guarantee"
    )


def _as_coins(values: Any) -> Booleans:
    """Returns the coins as booleans of shape (m,), or raises an InputError."""
    array = as_array("included", values)
    if array.ndim == 0:
        raise InputError(
            f"included is of type {type(values).__name__}: it must be a list, an array, a series "
            "or a tensor of booleans or 0/1, one per canary"
        )
    if array.ndim != 1:
        raise InputError(f"included has shape {array.shape}: it must be one-dimensional")
    if array.dtype.kind == "b":
        return array
    coins = [_as_coin(value) for value in array.tolist()]
    others = list(
        dict.fromkeys(
            short_repr(value)
            for value, coin in zip(array.tolist(), coins, strict=True)
            if coin is None
        )
    )
    if others:
        shown = ", ".join(others[:_NAMED]) + (", …" if len(others) > _NAMED else "")
        raise InputError(f"included holds {shown}: it must be booleans or 0/1, 1 for included")
    return np.array(coins, dtype=np.bool_)


def _as_coin(value: Any) -> bool | None:
    """The truth value of a single coin, None if it is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    return None


def _check_coins(coins: Booleans) -> None:
    """Raises if no coin differs, and warns if the coins do not look like independent fair ones."""
    m = len(coins)
    n_included = int(coins.sum())
    if n_included in (0, m):
        which = "included" if n_included else "left out"
        raise InputError(f"all {m} canaries are {which}: each one needs a fair coin of its own")
    fewer = min(n_included, m - n_included)
    # Twice P(Binomial(m, ½) ≤ fewer).
    chance = 2.0 * float(betainc(m - fewer, fewer + 1, 0.5))
    if chance < _SUSPICIOUS:
        warnings.warn(
            f"{n_included} of {m} canaries are included, which fair coins give with probability "
            f"{chance:.1g}: the proof needs a fair coin for each canary",
            EpsilometerWarning,
            stacklevel=4,
        )
    elif 2 * n_included == m:
        warnings.warn(
            f"exactly half of the {m} canaries are included: drawn by a permutation? "
            "The proof needs independent coins",
            EpsilometerWarning,
            stacklevel=4,
        )


def _warn_of_wrong_way(scores: Floats, coins: Booleans) -> None:
    """Warns if included canaries have the smaller scores: then all guesses are the wrong ones."""
    problem = wrong_way(np.sort(scores[coins]), np.sort(scores[~coins]))
    if problem is not None:
        warnings.warn(
            f"{problem}, if that is what small ones mean. As they are, nothing can be refuted. "
            "Choose by what a score means, not by what it brings",
            WrongWayWarning,
            stacklevel=4,
        )
