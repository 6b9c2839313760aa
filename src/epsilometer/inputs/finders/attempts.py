"""Pairs to try, built from the records of a domain.

Every attempt is a base of records that both datasets have, and the records in which they differ.
A `Builder` makes attempts in three ways: families of pairs that often show a leak, variations of
attempts with high scores, and simpler versions of an attempt that is worth reporting.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.inputs.coordinates import Point, Special, near
from epsilometer.inputs.domains.numbers import Integer
from epsilometer.inputs.domains.records import ObservedCategory, with_value
from epsilometer.inputs.domains.tables import Datasets

Family = Callable[[np.random.Generator], Iterator["Attempt"]]

# Relations between vectors of numbers, all of which may move at once.
_VECTOR_RELATIONS = ("l1", "linf")
# Special values per column, at most, that count as simple.
_MOST_SIMPLE_VALUES = 4
# How strange a value is that is none of these, in the order of attempts by complexity.
_STRANGENESS_OF_OTHERS = 10

# Relative error that rounding may add to a distance.
_ROUNDING = 1e-9

# How often the differing record is put in front of the others, instead of behind them.
_IN_FRONT = 0.25
# How often a typical dataset has two records at most: small ones show most.
_FEW_RECORDS = 0.3
# How often the neighbour of a special value is another special value of the domain.
_SPECIAL_NEIGHBOUR = 0.7
# How often a value beyond the domain stands on both sides, while another record differs.
_SPECIAL_ON_BOTH_SIDES = 0.2
# How often all rows of a heavy user are equal.
_EQUAL_ROWS = 0.7

# The names of the families.
TYPICAL = "typical data"
EDGES = "edges of the range"
SIZES = "smallest and largest sizes"
ALIKE = "equal and ordered records"
COLUMNS = "columns that meet"
USERS = "one heavy user"
# Variations of pairs with high scores.
AROUND = "around what showed most"
# Before the names of families that lie outside the domain.
BEYOND = "beyond: "


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pair to try.

    Attributes:
        family: the name of the family that it belongs to.
        note: why it is tried.
        base: the records that both datasets have.
        place: where in the base the differing records are inserted.
        left: the records that only the left dataset has.
        right: the records that only the right dataset has.
        point: used instead of records, for a domain that only makes pairs of points.
    """

    family: str
    note: str
    base: list[Any]
    place: int
    left: list[Any]
    right: list[Any]
    point: Point | None = None

    def sides(self) -> tuple[list[Any], list[Any]]:
        """The records of left and right."""
        before = self.base[: self.place]
        after = self.base[self.place :]
        return [*before, *self.left, *after], [*before, *self.right, *after]

    @property
    def size(self) -> int:
        """The records of the larger dataset."""
        return len(self.base) + max(len(self.left), len(self.right))


class Builder:
    """Builds attempts from the datasets of a domain."""

    def __init__(self, space: Datasets) -> None:
        self.space = space
        self._inside: dict[Any, list[Special]] = {name: [] for name in space.columns}
        self._outside: dict[Any, list[Special]] = {name: [] for name in space.columns}
        for name, domain in space.columns.items():
            for special in domain.specials:
                specials = self._inside if domain.contains(special.value) else self._outside
                specials[name].append(special)

    @property
    def fewest(self) -> int:
        """The least number of records that both datasets must have."""
        may_lack_one = self.space.relation == "add-remove" and self.space.least < self.space.most
        fewest = self.space.least if may_lack_one else self.space.least - 1
        return max(0, fewest)

    def families(self) -> dict[str, Family]:
        """Returns the families that the domain has, by name; each is an endless stream."""
        families: dict[str, Family] = {TYPICAL: self.typical}
        inside = _with_columns(self._inside)
        if inside:
            families[EDGES] = partial(self.special, EDGES, inside)
        if self.space.most > 1 and not self.space.examples:
            families[SIZES] = self.sizes
            families[ALIKE] = self.alike
        if len(self.space.columns) > 1 and inside:
            families[COLUMNS] = self.meeting
        if self.space.user is not None and not self.space.examples:
            families[USERS] = self.heavy
        # Values whose notes differ only in what is in brackets are one family.
        outside_by_note: dict[str, list[tuple[Any, Special]]] = {}
        for name, special in _with_columns(self._outside):
            note = special.note.partition(" (")[0]
            outside_by_note.setdefault(note, []).append((name, special))
        for note, specials in outside_by_note.items():
            families[BEYOND + note] = partial(self.special, BEYOND + note, specials)
        return families

    def record(self, rng: np.random.Generator) -> Any:
        """A typical record."""
        coordinates = rng.random(len(self.space.record.coordinates)).tolist()
        return self.space.record.record(coordinates)

    def records(self, rng: np.random.Generator, count: int) -> list[Any]:
        """Typical records."""
        return [self.record(rng) for _ in range(count)]

    def either(self, rng: np.random.Generator, extreme: float = 0.5) -> Any:
        """A record at the edges with probability `extreme`, else a typical one."""
        return self.extreme(rng) if rng.random() < extreme else self.record(rng)

    def pair(
        self,
        rng: np.random.Generator,
        *,
        family: str,
        note: str,
        base: list[Any],
        record: Any,
        replaced: Any,
    ) -> Attempt:
        """The attempt in which a record differs as the relation says, at the start or the end.

        If the domain has examples, one of them takes the place of the base.

        Args:
            rng: for the place, and the example.
            family: of the attempt.
            note: why it is tried.
            base: the records of both datasets.
            record: what only one dataset has.
            replaced: what the left dataset has in place of the record, if the relation replaces.
        """
        space = self.space
        if space.examples:
            base = list(space.examples[int(rng.integers(len(space.examples)))])
            must_exist = space.relation in ("replace", "substitute-column", "user")
            if base and (must_exist or _fair_coin(rng)):
                return self._pair_of_example(
                    rng,
                    family=family,
                    note=note,
                    example=base,
                    replacement=replaced if record is None else record,
                )
        base = base[: space.most - 1]
        place = 0 if rng.random() < _IN_FRONT else len(base)
        if space.relation == "add-remove":
            return Attempt(
                family=family, note=note, base=base, place=place, left=[record], right=[]
            )
        if space.relation == "user":
            return self._without_user(family, note, rows=[*base, record], user=record[space.user])
        return self._replacement(
            family=family, note=note, base=base, place=place, left=replaced, right=record
        )

    def _pair_of_example(
        self,
        rng: np.random.Generator,
        *,
        family: str,
        note: str,
        example: list[Any],
        replacement: Any,
    ) -> Attempt:
        """The attempt in which a random record of an example is missing or replaced."""
        relation = self.space.relation
        place = int(rng.integers(len(example)))
        record = example[place]
        if relation == "user":
            return self._without_user(family, note, rows=example, user=record[self.space.user])
        base = [*example[:place], *example[place + 1 :]]
        if relation == "add-remove":
            return Attempt(
                family=family,
                note="a record of the data is missing",
                base=base,
                place=place,
                left=[record],
                right=[],
            )
        return self._replacement(
            family=family, note=note, base=base, place=place, left=record, right=replacement
        )

    def _replacement(
        self, *, family: str, note: str, base: list[Any], place: int, left: Any, right: Any
    ) -> Attempt:
        """A replaced record: in one column only, or no farther than neighbours may be."""
        space = self.space
        if space.relation == "substitute-column":
            differing = [name for name in right if repr(left[name]) != repr(right[name])]
            if differing:
                name = differing[-1] if note.endswith("at once") else differing[0]
                right = {**left, name: right[name]}
        elif space.sensitivity is not None and space.container.kind == "one":
            left, right = near(left, right, space.sensitivity) or (left, left)
        return Attempt(family=family, note=note, base=base, place=place, left=[left], right=[right])

    def _without_user(self, family: str, note: str, rows: list[Any], user: Any) -> Attempt:
        """The attempt in which the right dataset lacks all rows of one user."""
        column = self.space.user
        rows_of_user = [row for row in rows if repr(row[column]) == repr(user)]
        other_rows = [row for row in rows if repr(row[column]) != repr(user)]
        return Attempt(
            family=family,
            note=note,
            base=other_rows,
            place=len(other_rows),
            left=rows_of_user,
            right=[],
        )

    def typical(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields random records, and a random neighbour."""
        while True:
            count = int(rng.integers(self.fewest, self.space.most))
            if rng.random() < _FEW_RECORDS:
                count = max(self.fewest, min(count, 2))
            yield self.pair(
                rng,
                family=TYPICAL,
                note=TYPICAL,
                base=self.records(rng, count),
                record=self.record(rng),
                replaced=self.record(rng),
            )

    def bases(self, rng: np.random.Generator) -> Iterator[list[Any]]:
        """Yields bases in random order: empty, small, large, typical, constant, at both bounds."""
        most = self.space.most - 1
        while True:
            count = int(rng.choice([0, 0, 1, 1, 2, 3, most // 2, most, most]))
            count = max(self.fewest, min(count, most))
            kind = rng.integers(4)
            if kind == 0 or count == 0:
                yield self.records(rng, count)
            elif kind == 1:
                yield [self.extreme(rng)] * count
            elif kind == 2:
                half = count // 2
                first = self.extreme(rng)
                second = self.extreme(rng)
                yield [first] * half + [second] * (count - half)
            else:
                yield [self.record(rng)] * count

    def extreme(self, rng: np.random.Generator) -> Any:
        """A record with every value at an edge of its range."""
        row: Any = self.record(rng)
        for name, domain in self.space.columns.items():
            if self._inside[name] and not isinstance(domain, ObservedCategory):
                row = with_value(row, name, _any_of(self._inside[name], rng).value)
        return row

    def special(
        self, family: str, specials: list[tuple[Any, Special]], rng: np.random.Generator
    ) -> Iterator[Attempt]:
        """Yields a special value in one record, against typical and special ones."""
        bases = self.bases(rng)
        while True:
            for number in rng.permutation(len(specials)).tolist():
                name, special = specials[number]
                row = self.record(rng) if _fair_coin(rng) else self.extreme(rng)
                record = with_value(row, name, special.value)
                others = self._inside[name]
                if others and rng.random() < _SPECIAL_NEIGHBOUR:
                    replaced = with_value(row, name, _any_of(others, rng).value)
                else:
                    replaced = self.record(rng)
                base = next(bases)
                if base and family.startswith(BEYOND) and rng.random() < _SPECIAL_ON_BOTH_SIDES:
                    # The special value is on both sides, while another record differs.
                    base = [*base[:-1], record]
                    record = self.extreme(rng)
                yield self.pair(
                    rng,
                    family=family,
                    note=self._note(special.note, name),
                    base=base,
                    record=record,
                    replaced=replaced,
                )

    def _note(self, note: str, name: Any) -> str:
        """Adds to the note about a value where it is: in one record, in which column."""
        if self.space.container.kind == "one":
            return note
        return f"{note} in one record" if name is None else f"{note} in the {name} of one record"

    def sizes(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields empty and full datasets, and those of one and two records."""
        most = self.space.most - 1
        while True:
            for count in dict.fromkeys((0, most, 1, most - 1)):
                if not self.fewest <= count <= most:
                    continue
                if _fair_coin(rng):
                    base = self.records(rng, count)
                else:
                    base = [self.extreme(rng)] * count
                yield self.pair(
                    rng,
                    family=SIZES,
                    note=f"a dataset of {count} to {count + 1} records",
                    base=base,
                    record=self.record(rng) if _fair_coin(rng) else self.extreme(rng),
                    replaced=self.extreme(rng),
                )

    def alike(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields equal records, duplicates of the differing one, and sorted or reversed records."""
        while True:
            count = int(rng.integers(max(1, self.fewest), self.space.most))
            one = self.extreme(rng)
            other = self.extreme(rng)
            for note, record, replaced in (
                ("all records equal", one, other),
                ("all other records equal", other, one),
            ):
                yield self.pair(
                    rng,
                    family=ALIKE,
                    note=note,
                    base=[one] * count,
                    record=record,
                    replaced=replaced,
                )
            typical = self.record(rng)
            yield self.pair(
                rng,
                family=ALIKE,
                note="a typical record many times",
                base=[typical] * count,
                record=typical,
                replaced=other,
            )
            for is_reversed in (False, True):
                yield self.pair(
                    rng,
                    family=ALIKE,
                    note="reversed records" if is_reversed else "sorted records",
                    base=sorted(self.records(rng, count), key=repr, reverse=is_reversed),
                    record=one,
                    replaced=other,
                )

    def meeting(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields special values in two columns of one record."""
        bases = self.bases(rng)
        names = list(self.space.columns)
        while True:
            typical = self.record(rng)
            record = typical
            for number in rng.permutation(len(names))[:2].tolist():
                specials = self._inside[names[number]]
                if specials:
                    record = with_value(record, names[number], _any_of(specials, rng).value)
            replaced = self.extreme(rng) if _fair_coin(rng) else typical
            yield self.pair(
                rng,
                family=COLUMNS,
                note="special values in two columns at once",
                base=next(bases),
                record=record,
                replaced=replaced,
            )

    def heavy(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields one user with many rows, alone or among others."""
        user = self.space.user
        while True:
            row = self.either(rng, extreme=0.7)
            count = int(rng.integers(1, self.space.most))
            if rng.random() < _EQUAL_ROWS:
                more_rows = [row] * count
            else:
                more_rows = [{**record, user: row[user]} for record in self.records(rng, count)]
            n_others = int(rng.integers(0, self.space.most - count + 1))
            others = self.records(rng, n_others)
            others = [record for record in others if repr(record[user]) != repr(row[user])]
            yield self.pair(
                rng,
                family=USERS,
                note=f"one user with {count + 1} rows",
                base=[*others, *more_rows],
                record=row,
                replaced=self.record(rng),
            )

    def moved(self, rng: np.random.Generator, edges: bool) -> Iterator[Attempt]:
        """Yields vectors in which numbers move by at most the sensitivity, each or in total.

        Args:
            rng: for the numbers and their moves.
            edges: whether numbers may all be at the edges of their range.
        """
        space = self.space
        domain: Any = space.record
        reach = space.sensitivity or 1.0
        if isinstance(domain, Integer):
            reach = math.floor(reach)
        while True:
            if edges and _fair_coin(rng):
                left = [self.extreme(rng)] * space.most
            else:
                left = self.records(rng, space.most)
            if edges and _fair_coin(rng):
                left = [self.extreme(rng) for _ in range(space.most)]
            moves = reach * self._steps(rng)
            number_type = type(left[0])
            right = []
            for value, move in zip(left, moves, strict=True):
                within_range = min(max(value + move, domain.low), domain.high)
                right.append(number_type(within_range))
            yield Attempt(
                family=EDGES if edges else TYPICAL,
                note="numbers at the edges, moved" if edges else "numbers moved",
                base=[],
                place=0,
                left=left,
                right=right,
            )

    def _steps(self, rng: np.random.Generator) -> Floats:
        """By how many times the sensitivity each number moves, shape (most,): −1, 0 or 1."""
        size = self.space.most
        if _fair_coin(rng):
            steps = rng.choice([-1.0, 0.0, 1.0], size=size)
        else:
            steps = np.full(size, 1.0)
        if self.space.relation == "l1":
            # Only one number moves. The steps above are drawn nevertheless: without that draw, a
            # seed would lead to other pairs.
            steps = np.zeros(size)
            step = rng.choice([-1.0, 1.0])
            steps[int(rng.integers(size))] = step
        return steps

    def changed(self, attempt: Attempt, rng: np.random.Generator) -> Attempt | None:
        """Returns the attempt with one record changed or added; None if that is impossible."""
        space = self.space
        if space.relation in _VECTOR_RELATIONS:
            return None
        base = list(attempt.base)
        kind = rng.integers(4)
        if space.examples:
            return None
        if kind == 0 and base:
            record = self.either(rng)
            base[int(rng.integers(len(base)))] = record
        elif kind == 1 and len(base) + 1 < space.most:
            base.append(self.either(rng))
        elif attempt.left and space.relation != "user":
            return self._with_other_difference(attempt, rng, changes_left=bool(kind == 2))
        else:
            return None
        return replace(attempt, family=AROUND, base=base, place=min(attempt.place, len(base)))

    def _with_other_difference(
        self, attempt: Attempt, rng: np.random.Generator, changes_left: bool
    ) -> Attempt:
        """The attempt with another differing record, on the left or on the right."""
        new = self.either(rng)
        right = attempt.right[0] if attempt.right else None
        if right is None:
            record = new
            replaced = new
        elif changes_left:
            record = right
            replaced = new
        else:
            record = new
            replaced = attempt.left[0]
        return self.pair(
            rng,
            family=AROUND,
            note=AROUND,
            base=list(attempt.base),
            record=record,
            replaced=replaced,
        )

    def simpler(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts with fewer records, fewer differing values, or simpler ones."""
        space = self.space
        if attempt.point is not None or space.relation in _VECTOR_RELATIONS:
            return
        if not space.examples:
            yield from self._with_simpler_base(attempt)
            if space.relation == "user" and len(attempt.left) > 1:
                yield from self._with_simpler_user(attempt)
        if attempt.left and attempt.right and isinstance(attempt.left[0], dict):
            left_row = attempt.left[0]
            right_row = attempt.right[0]
            for name in left_row:
                yield replace(attempt, right=[{**right_row, name: left_row[name]}])
        has_bounded_difference = space.container.kind == "one" and space.sensitivity is not None
        if not has_bounded_difference:
            yield from self._with_simpler_difference(attempt)

    def _with_simpler_base(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts whose bases have fewer or simpler records."""
        base = attempt.base
        user = self.space.user
        half = len(base) // 2
        yield self._with_base(attempt, [])
        yield self._with_base(attempt, base[:half])
        yield self._with_base(attempt, base[half:])
        for place in range(len(base)):
            yield self._with_base(attempt, base[:place] + base[place + 1 :])
        for simple in self._simple():
            if user is None:
                simple_base = [simple] * len(base)
            else:
                simple_base = [{**simple, user: row[user]} for row in base]
            yield self._with_base(attempt, simple_base)
        for place, row in enumerate(base):
            for simpler_row in self._simpler_records(row):
                yield self._with_base(attempt, [*base[:place], simpler_row, *base[place + 1 :]])

    def _with_simpler_user(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts in which the user that only one dataset has has fewer or equal rows."""
        rows = attempt.left
        yield replace(attempt, left=rows[: len(rows) // 2])
        yield replace(attempt, left=rows[:-1])
        yield replace(attempt, left=[rows[0]] * len(rows))

    def _with_simpler_difference(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts in which the records that differ have simpler values."""
        user = self.space.user
        # Records of examples stay as they are.
        left = [] if self.space.examples else attempt.left
        for place, row in enumerate(left):
            for simpler_row in self._simpler_records(row):
                if user is None or simpler_row[user] == row[user]:
                    yield replace(attempt, left=[*left[:place], simpler_row, *left[place + 1 :]])
        for row in attempt.right:
            for simpler_row in self._simpler_records(row):
                yield replace(attempt, right=[simpler_row])
        if not attempt.right or not isinstance(attempt.right[0], dict):
            return
        # The same simpler value on both sides.
        for row in left:
            for name in row:
                for value in self._simple_values(name)[:2]:
                    yield replace(
                        attempt,
                        left=[{**row, name: value}],
                        right=[{**attempt.right[0], name: value}],
                    )

    def without_two(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts without two records of the base: some leaks need an even number."""
        if attempt.point is not None or self.space.examples:
            return
        base = attempt.base
        for first, second in combinations(range(len(base)), 2):
            yield self._with_base(
                attempt, base[:first] + base[first + 1 : second] + base[second + 1 :]
            )

    def _with_base(self, attempt: Attempt, base: list[Any]) -> Attempt:
        """The attempt with another base; unchanged if that has too few records."""
        if len(base) < self.fewest:
            return attempt
        place = 0 if attempt.place == 0 else len(base)
        return replace(attempt, base=base, place=place)

    def _simple_values(self, name: Any) -> list[Any]:
        """The simplest values of a column, the simplest first."""
        return [special.value for special in self._inside[name][:_MOST_SIMPLE_VALUES]]

    def _simple(self) -> list[Any]:
        """The records that consist of the simplest values alone, or of the second simplest."""
        values = {name: self._simple_values(name) for name in self.space.columns}
        if not all(values.values()):
            return []
        if None in values:
            return list(values[None])
        simplest = {name: column[0] for name, column in values.items()}
        second_simplest = {name: column[:2][-1] for name, column in values.items()}
        return [simplest, second_simplest]

    def _simpler_records(self, record: Any) -> Iterator[Any]:
        """Yields the record with one value replaced by each simpler one."""
        for name in self.space.columns:
            value = _value_of(record, name)
            for simple_value in self._simple_values(name):
                if repr(simple_value) == repr(value):
                    break
                yield with_value(record, name, simple_value)

    def complexity(self, attempt: Attempt) -> tuple[int, int, int]:
        """How much there is to read: records, differing values, and how strange the values are."""
        strangeness = 0
        for name in self.space.columns:
            simple_texts = [repr(value) for value in self._simple_values(name)]
            for row in (*attempt.base, *attempt.left, *attempt.right):
                text = repr(_value_of(row, name))
                if text in simple_texts:
                    strangeness += simple_texts.index(text)
                else:
                    strangeness += _STRANGENESS_OF_OTHERS
        if attempt.left and attempt.right and isinstance(attempt.left[0], dict):
            n_differing = len(_differing_columns(attempt.left[0], attempt.right[0]))
        else:
            n_differing = len(attempt.left) + len(attempt.right)
        return attempt.size, n_differing, strangeness

    def are_neighbours(self, attempt: Attempt) -> bool:
        """Returns whether the relation holds.

        Any other pair could refute what was never promised.
        """
        space = self.space
        left = attempt.left
        right = attempt.right
        if space.relation == "user":
            users = {repr(row[space.user]) for row in (*left, *right)}
            is_in_base = any(repr(row[space.user]) in users for row in attempt.base)
            return len(users) == 1 and not is_in_base and not (left and right)
        if space.relation == "add-remove":
            return len(left) + len(right) == 1
        is_number = space.relation in _VECTOR_RELATIONS or space.container.kind == "one"
        if space.sensitivity is not None and is_number:
            # Equal numbers are left out because infinities have no difference.
            moves = [
                abs(left_value - right_value)
                for left_value, right_value in zip(left, right, strict=True)
                if repr(left_value) != repr(right_value)
            ]
            distance = sum(moves) if space.relation == "l1" else max(moves, default=0.0)
            return bool(distance <= space.sensitivity * (1.0 + _ROUNDING))
        if space.relation == "substitute-column":
            n_differing = len(_differing_columns(left[0], right[0]))
            return len(left) == 1 and len(right) == 1 and n_differing == 1
        return len(left) == 1 and len(right) == 1

    def describe(self, attempt: Attempt) -> str:
        """Returns what is special about a pair.

        That is a value beyond the domain, else an empty dataset, else its family.
        """
        for row in [*attempt.left, *attempt.right, *attempt.base]:
            for name, domain in self.space.columns.items():
                value = _value_of(row, name)
                if not domain.contains(value):
                    note = "a value outside the domain"
                    for special in self._outside[name]:
                        if repr(special.value) == repr(value):
                            note = special.note
                            break
                    return self._note(note, name)
        if self.space.relation == "user" and len(attempt.left) > 1:
            return f"one user with {len(attempt.left)} rows"
        if not (attempt.base or attempt.right):
            return "an empty dataset"
        if attempt.size == 1 and self.space.most > 1:
            return "a single record"
        return attempt.family


def _fair_coin(rng: np.random.Generator) -> bool:
    """Returns True half of the time."""
    return bool(rng.random() < 0.5)  # noqa: PLR2004  # this is what makes it fair


def _any_of(specials: list[Special], rng: np.random.Generator) -> Special:
    """A special value at random."""
    return specials[int(rng.integers(len(specials)))]


def _with_columns(specials: dict[Any, list[Special]]) -> list[tuple[Any, Special]]:
    """All special values, each with the name of its column."""
    return [(name, special) for name, of_column in specials.items() for special in of_column]


def _value_of(record: Any, name: Any) -> Any:
    """The value of a record in a column; the record itself if the name is None."""
    return record if name is None else record[name]


def _differing_columns(left: dict[Any, Any], right: dict[Any, Any]) -> list[Any]:
    """The names of the columns in which two records differ."""
    return [name for name in left if repr(left[name]) != repr(right[name])]
