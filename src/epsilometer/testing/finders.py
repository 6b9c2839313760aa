"""What every finder must satisfy."""

from __future__ import annotations

import copy
import json
import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.finders import Finder
from epsilometer.inputs.storing import pair_digest


class FinderConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `make_finder`.

    The fixture returns a function without arguments that makes a new finder, always with the same settings, of at
    least three trials.
    """

    def test_it_is_a_finder(self, make_finder: Callable[[], Finder]) -> None:
        """It has everything that a search asks of it."""
        finder = make_finder()
        assert isinstance(finder, Finder), f"{finder!r} lacks something of epsilometer.finders.Finder"
        assert finder.trials >= 3, f"trials={finder.trials}"
        assert finder.samples >= 1, f"samples={finder.samples}"
        assert json.loads(json.dumps(finder.describe())) == finder.describe(), "describe() is not plain data"

    def test_a_pair_stays_until_it_is_told_about(self, make_finder: Callable[[], Finder]) -> None:
        """Asking twice is asking once."""
        finder = make_finder()
        assert _asked(finder) == _asked(finder), "ask() without tell() gave two pairs"

    def test_it_ends(self, make_finder: Callable[[], Finder]) -> None:
        """No more pairs than trials, all of them two different datasets."""
        finder = make_finder()
        pairs = _search(finder, finder.trials + 1)
        assert 1 <= len(pairs) <= finder.trials, f"{len(pairs)} pairs in {finder.trials} trials"
        assert finder.ask() is None, "ask() goes on after the last trial"
        assert all(pair.left != pair.right for pair in pairs), "a pair of equal datasets"

    def test_same_scores_same_pairs(self, make_finder: Callable[[], Finder]) -> None:
        """A search can be repeated."""
        first, again = make_finder(), make_finder()
        assert _search(first, first.trials) == _search(again, again.trials), "two equal searches differ"

    def test_any_number_is_a_score(self, make_finder: Callable[[], Finder]) -> None:
        """0.0 and negative numbers are scores, and None is for trials that have none."""
        for scores in ((None,), (0.0,), (-1.0, None), (0.0, 0.0, 1e6)):
            finder = make_finder()
            for number in range(finder.trials):
                if finder.ask() is None:
                    break
                finder.tell(scores[number % len(scores)])

    def test_what_is_no_number_is_no_score(self, make_finder: Callable[[], Finder]) -> None:
        """NaN would win or lose every comparison."""
        for score in (math.nan, math.inf, -math.inf):
            finder = make_finder()
            finder.ask()
            _expect_refusal(partial(finder.tell, score), f"tell({score})")
        _expect_refusal(lambda: make_finder().tell(1.0), "tell() without ask()")

    def test_it_goes_on_from_its_state(self, make_finder: Callable[[], Finder]) -> None:
        """A search that was interrupted asks for what it would have asked for."""
        whole = make_finder()
        expected = _search(whole, whole.trials)
        first = make_finder()
        begun = _search(first, 2)
        first.ask()  # interrupted in a trial
        stored = json.dumps(first.state(), allow_nan=False)
        later = make_finder()
        later.restore(json.loads(stored))
        assert begun + _search(later, later.trials) == expected, "a restored search goes another way"

    def test_a_state_that_is_none_is_refused(self, make_finder: Callable[[], Finder]) -> None:
        """Files are never trusted."""
        states: tuple[dict[str, Any], ...] = ({}, {"told": 3}, {"finder": {}, "told": []})
        for state in states:
            _expect_refusal(partial(make_finder().restore, state), f"restore({state})")

    def test_a_copy_is_independent(self, make_finder: Callable[[], Finder]) -> None:
        """An audit searches with a copy, so that a finder can be used again."""
        finder = make_finder()
        other = copy.deepcopy(finder)
        _search(other, 2)
        assert _asked(finder) == _asked(make_finder()), "searching with a copy changed the original"


def _search(finder: Finder, most: int) -> list[Pair]:
    """Tells a score made of the pair itself, so that equal searches are told the same."""
    pairs: list[Pair] = []
    while len(pairs) < most and (pair := finder.ask()) is not None:
        pairs.append(pair)
        finder.tell(zlib.crc32(pair_digest(pair).encode()) / 2**32)
    return pairs


def _asked(finder: Finder) -> Pair:
    pair = finder.ask()
    assert pair is not None, "ask() gave no pair"
    return pair


def _expect_refusal(action: Callable[[], Any], what: str) -> None:
    try:
        action()
    except InputError:
        return
    raise AssertionError(f"{what} was not refused")
