"""Pairs to try, built from the records of a domain: by family, by variation, and ever simpler.

Every attempt is a base of records that both datasets have, and the records in which they differ.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from epsilometer.inputs.coordinates import Point, Special, near
from epsilometer.inputs.domains.numbers import Integer
from epsilometer.inputs.domains.records import Seen, with_value
from epsilometer.inputs.domains.tables import Datasets

Family = Callable[[np.random.Generator], Iterator["Attempt"]]

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
        family: of which kind it is.
        note: why it is tried.
        base: the records of both datasets.
        place: where in the base the differing ones are inserted.
        left: the records that only the left dataset has.
        right: those that only the right one has.
        point: instead of records, for a domain that only makes pairs of points.
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
            for each in domain.specials:
                (self._inside if domain.contains(each.value) else self._outside)[name].append(each)

    @property
    def fewest(self) -> int:
        """Records that both datasets must have."""
        may_lack_one = self.space.relation == "add-remove" and self.space.least < self.space.most
        return max(0, self.space.least - 1 + may_lack_one)

    def families(self) -> dict[str, Family]:
        """Those that the domain has, each an endless stream."""
        found: dict[str, Family] = {TYPICAL: self.typical}
        inside = [(name, each) for name, several in self._inside.items() for each in several]
        outside = [(name, each) for name, several in self._outside.items() for each in several]
        if inside:
            found[EDGES] = partial(self.special, EDGES, inside)
        if self.space.most > 1 and not self.space.examples:
            found |= {SIZES: self.sizes, ALIKE: self.alike}
        if len(self.space.columns) > 1 and inside:
            found[COLUMNS] = self.meeting
        if self.space.user is not None and not self.space.examples:
            found[USERS] = self.heavy
        by_note: dict[str, list[tuple[Any, Special]]] = {}
        for name, each in outside:  # what is in brackets is one of several
            by_note.setdefault(each.note.partition(" (")[0], []).append((name, each))
        for note, same in by_note.items():
            found[BEYOND + note] = partial(self.special, BEYOND + note, same)
        return found

    def record(self, rng: np.random.Generator) -> Any:
        """A typical record."""
        return self.space.record.record(rng.random(len(self.space.record.coordinates)).tolist())

    def records(self, rng: np.random.Generator, count: int) -> list[Any]:
        """Typical records."""
        return [self.record(rng) for _ in range(count)]

    def either(self, rng: np.random.Generator, extreme: float = 0.5) -> Any:
        """A record at the edges, with this probability, or a typical one."""
        return self.extreme(rng) if rng.random() < extreme else self.record(rng)

    def pair(
        self, rng: np.random.Generator, family: str, note: str, base: list[Any], one: Any, two: Any
    ) -> Attempt:
        """The attempt in which a record differs as the relation says, in a random place.

        Args:
            one: what the left dataset has.
            two: what replaces it, where it is replaced.
        """
        space = self.space
        if space.examples:
            base = list(space.examples[int(rng.integers(len(space.examples)))])
            if base and (
                space.relation in ("replace", "substitute-column", "user") or rng.random() < 0.5
            ):
                place = int(rng.integers(len(base)))
                if space.relation == "user":
                    return self._user_gone(family, note, base, base[place][space.user])
                mine = base.pop(place)
                if space.relation == "add-remove":
                    return Attempt(
                        family, "a record of the data is missing", base, place, [mine], []
                    )
                return self._placed(family, note, base, place, mine, two if one is None else one)
        base = base[: space.most - 1]
        place = 0 if rng.random() < 0.25 else len(base)
        if space.relation == "add-remove":
            return Attempt(family, note, base, place, [one], [])
        if space.relation == "user":
            return self._user_gone(family, note, [*base, one], one[space.user])
        return self._placed(family, note, base, place, two, one)

    def _placed(
        self, family: str, note: str, base: list[Any], place: int, one: Any, two: Any
    ) -> Attempt:
        """A replaced record: in one column only, or no farther than neighbours may be."""
        space = self.space
        if space.relation == "substitute-column":
            differing = [name for name in two if repr(one[name]) != repr(two[name])]
            if differing:
                name = differing[-1] if note.endswith("at once") else differing[0]
                two = {**one, name: two[name]}
        elif space.sensitivity is not None and space.container.kind == "one":
            one, two = near(one, two, space.sensitivity) or (one, one)
        return Attempt(family, note, base, place, [one], [two])

    def _user_gone(self, family: str, note: str, rows: list[Any], user: Any) -> Attempt:
        gone = [row for row in rows if repr(row[self.space.user]) == repr(user)]
        base = [row for row in rows if repr(row[self.space.user]) != repr(user)]
        return Attempt(family, note, base, len(base), gone, [])

    def typical(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Random records, and a random neighbour."""
        while True:
            count = int(rng.integers(self.fewest, self.space.most))
            count = max(self.fewest, min(count, 2)) if rng.random() < 0.3 else count
            yield self.pair(
                rng, TYPICAL, TYPICAL, self.records(rng, count), self.record(rng), self.record(rng)
            )

    def bases(self, rng: np.random.Generator) -> Iterator[list[Any]]:
        """Yields bases in random order: empty, small, large, typical, constant, at both bounds."""
        most = self.space.most - 1
        while True:
            count = max(
                self.fewest, min(int(rng.choice([0, 0, 1, 1, 2, 3, most // 2, most, most])), most)
            )
            kind = rng.integers(4)
            if kind == 0 or count == 0:
                yield self.records(rng, count)
            elif kind == 1:
                yield [self.extreme(rng)] * count
            elif kind == 2:
                yield [self.extreme(rng)] * (count // 2) + [self.extreme(rng)] * (
                    count - count // 2
                )
            else:
                yield [self.record(rng)] * count

    def extreme(self, rng: np.random.Generator) -> Any:
        """A record with every value at an edge of its range."""
        row: Any = self.record(rng)
        for name, domain in self.space.columns.items():
            if self._inside[name] and not isinstance(domain, Seen):
                row = with_value(row, name, _any_of(self._inside[name], rng).value)
        return row

    def special(self, family: str, tried: list[Any], rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields a special value in one record, against typical and special ones."""
        bases = self.bases(rng)
        while True:
            for number in rng.permutation(len(tried)).tolist():
                name, special = tried[number]
                row = self.record(rng) if rng.random() < 0.5 else self.extreme(rng)
                one = with_value(row, name, special.value)
                others = self._inside[name]
                is_special = others and rng.random() < 0.7
                two = (
                    with_value(row, name, _any_of(others, rng).value)
                    if is_special
                    else self.record(rng)
                )
                base = next(bases)
                if base and family.startswith(BEYOND) and rng.random() < 0.2:
                    # on both sides, while another record differs
                    base = [*base[:-1], one]
                    one = self.extreme(rng)
                yield self.pair(rng, family, self._note(special.note, name), base, one, two)

    def _note(self, note: str, name: Any) -> str:
        if self.space.container.kind == "one":
            return note
        return f"{note} in one record" if name is None else f"{note} in the {name} of one record"

    def sizes(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Empty and full datasets, and those of one and two records."""
        most = self.space.most - 1
        while True:
            for count in dict.fromkeys((0, most, 1, most - 1)):
                if self.fewest <= count <= most:
                    note = f"a dataset of {count} to {count + 1} records"
                    base = (
                        self.records(rng, count)
                        if rng.random() < 0.5
                        else [self.extreme(rng)] * count
                    )
                    one = self.record(rng) if rng.random() < 0.5 else self.extreme(rng)
                    yield self.pair(rng, SIZES, note, base, one, self.extreme(rng))

    def alike(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yields equal records, duplicates of the differing one, and sorted or reversed records."""
        while True:
            count = int(rng.integers(max(1, self.fewest), self.space.most))
            one = self.extreme(rng)
            two = self.extreme(rng)
            yield self.pair(rng, ALIKE, "all records equal", [one] * count, one, two)
            yield self.pair(rng, ALIKE, "all other records equal", [one] * count, two, one)
            row = self.record(rng)
            yield self.pair(rng, ALIKE, "a typical record many times", [row] * count, row, two)
            for reverse in (False, True):
                base = sorted(self.records(rng, count), key=repr, reverse=reverse)
                yield self.pair(
                    rng, ALIKE, "reversed records" if reverse else "sorted records", base, one, two
                )

    def meeting(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Special values in two columns of one record."""
        bases = self.bases(rng)
        while True:
            row = two = self.record(rng)
            names = rng.permutation(len(self.space.columns))[:2].tolist()
            for name in (list(self.space.columns)[number] for number in names):
                if self._inside[name]:
                    row = with_value(row, name, _any_of(self._inside[name], rng).value)
            two = self.extreme(rng) if rng.random() < 0.5 else two
            yield self.pair(
                rng, COLUMNS, "special values in two columns at once", next(bases), row, two
            )

    def heavy(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """One user with many rows, alone or among others."""
        user = self.space.user
        while True:
            row = self.either(rng, 0.7)
            count = int(rng.integers(1, self.space.most))
            same = rng.random() < 0.7
            rows = (
                [row] * count
                if same
                else [{**each, user: row[user]} for each in self.records(rng, count)]
            )
            others = self.records(rng, int(rng.integers(0, self.space.most - count + 1)))
            others = [each for each in others if repr(each[user]) != repr(row[user])]
            yield self.pair(
                rng,
                USERS,
                f"one user with {count + 1} rows",
                [*others, *rows],
                row,
                self.record(rng),
            )

    def moved(self, rng: np.random.Generator, edges: bool) -> Iterator[Attempt]:
        """All numbers moved by at most the sensitivity, each or in total."""
        space = self.space
        reach = self.space.sensitivity or 1.0
        while True:
            base = (
                [self.extreme(rng)] * space.most
                if edges and rng.random() < 0.5
                else self.records(rng, space.most)
            )
            if edges and rng.random() < 0.5:
                base = [self.extreme(rng) for _ in range(space.most)]
            steps = (
                rng.choice([-1.0, 0.0, 1.0], size=space.most)
                if rng.random() < 0.5
                else np.full(space.most, 1.0)
            )
            if space.relation == "l1":
                steps = np.zeros(space.most)
                steps[int(rng.integers(space.most))] = rng.choice([-1.0, 1.0])
            record: Any = space.record
            moves = steps * (math.floor(reach) if isinstance(record, Integer) else reach)
            moved = (value + move for value, move in zip(base, moves, strict=True))
            right = [type(base[0])(min(max(value, record.low), record.high)) for value in moved]
            told = (EDGES, "numbers at the edges, moved") if edges else (TYPICAL, "numbers moved")
            yield Attempt(*told, [], 0, base, right)

    def changed(self, attempt: Attempt, rng: np.random.Generator) -> Attempt | None:
        """One thing about an attempt is another one; None if that cannot be."""
        if self.space.relation in ("l1", "linf"):
            return None
        base = list(attempt.base)
        kind = rng.integers(4)
        if kind == 0 and base and not self.space.examples:
            base[int(rng.integers(len(base)))] = self.either(rng)
        elif kind == 1 and len(base) + 1 < self.space.most and not self.space.examples:
            base.append(self.either(rng))
        elif attempt.left and self.space.relation != "user" and not self.space.examples:
            one = self.either(rng)
            two = attempt.right[0] if attempt.right else None
            records = (
                (one if two is None else two, one)
                if kind == 2 or two is None
                else (one, attempt.left[0])
            )
            return self.pair(rng, AROUND, AROUND, base, *records)
        else:
            return None
        return replace(attempt, family=AROUND, base=base, place=min(attempt.place, len(base)))

    def simpler(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts with fewer records, fewer differing values, or simpler ones."""
        space = self.space
        base = attempt.base
        if attempt.point is not None or space.relation in ("l1", "linf"):
            return
        if not space.examples:
            without_one = (base[:place] + base[place + 1 :] for place in range(len(base)))
            for kept in ([], base[: len(base) // 2], base[len(base) // 2 :], *without_one):
                yield self._with_base(attempt, kept)
            for simple in self._simple():
                same_user = [
                    {} if space.user is None else {space.user: row[space.user]} for row in base
                ]
                yield self._with_base(
                    attempt, [simple if not user else {**simple, **user} for user in same_user]
                )
            for place, row in enumerate(base):
                for other in self._simpler_records(row):
                    yield self._with_base(attempt, [*base[:place], other, *base[place + 1 :]])
        if space.relation == "user" and len(attempt.left) > 1 and not space.examples:
            yield replace(attempt, left=attempt.left[: len(attempt.left) // 2])
            yield replace(attempt, left=attempt.left[:-1])
            yield replace(attempt, left=[attempt.left[0]] * len(attempt.left))
        if attempt.left and attempt.right and isinstance(attempt.left[0], dict):
            for name in attempt.left[0]:
                yield replace(attempt, right=[{**attempt.right[0], name: attempt.left[0][name]}])
        if space.container.kind == "one" and space.sensitivity is not None:
            return
        own = [] if space.examples else attempt.left
        for place, row in enumerate(own):
            for other in self._simpler_records(row):
                if space.user is None or other[space.user] == row[space.user]:
                    yield replace(attempt, left=[*own[:place], other, *own[place + 1 :]])
        for row in attempt.right:
            yield from (replace(attempt, right=[other]) for other in self._simpler_records(row))
        for row in own if attempt.right and isinstance(attempt.right[0], dict) else ():
            for name in row:  # the same simpler value on both sides
                for value in self._simple_values(name)[:2]:
                    yield replace(
                        attempt,
                        left=[{**row, name: value}],
                        right=[{**attempt.right[0], name: value}],
                    )

    def without_two(self, attempt: Attempt) -> Iterator[Attempt]:
        """Yields attempts without two records of the base: some leaks need an even number."""
        if attempt.point is None and not self.space.examples:
            for places in combinations(range(len(attempt.base)), 2):
                yield self._with_base(
                    attempt, [row for place, row in enumerate(attempt.base) if place not in places]
                )

    def _with_base(self, attempt: Attempt, base: list[Any]) -> Attempt:
        place = 0 if attempt.place == 0 else len(base)
        return replace(attempt, base=base, place=place) if len(base) >= self.fewest else attempt

    def _simple_values(self, name: Any) -> list[Any]:
        return [each.value for each in self._inside[name][:4]]

    def _simple(self) -> list[Any]:
        """Records of the simplest values alone."""
        values = {name: self._simple_values(name) for name in self.space.columns}
        if not all(values.values()):
            return []
        if None in values:
            return list(values[None])
        return [
            {name: several[min(place, len(several) - 1)] for name, several in values.items()}
            for place in (0, 1)
        ]

    def _simpler_records(self, record: Any) -> Iterator[Any]:
        for name in self.space.columns:
            mine = record if name is None else record[name]
            for value in self._simple_values(name):
                if repr(value) == repr(mine):
                    break
                yield with_value(record, name, value)

    def complexity(self, attempt: Attempt) -> tuple[int, int, int]:
        """How much there is to read: records, differing values, and how strange the values are."""
        strange = 0
        rows = (*attempt.base, *attempt.left, *attempt.right)
        for name in self.space.columns:
            simple = [repr(value) for value in self._simple_values(name)]
            shown = (repr(row if name is None else row[name]) for row in rows)
            strange += sum(simple.index(text) if text in simple else 10 for text in shown)
        differing = len(attempt.left) + len(attempt.right)
        if attempt.left and attempt.right and isinstance(attempt.left[0], dict):
            differing = sum(
                repr(mine) != repr(attempt.right[0][name]) for name, mine in attempt.left[0].items()
            )
        return attempt.size, differing, strange

    def are_neighbours(self, attempt: Attempt) -> bool:
        """Returns whether the relation holds.

        Any other pair could refute what was never promised.
        """
        space = self.space
        left = attempt.left
        right = attempt.right
        if space.relation == "user":
            users = {repr(row[space.user]) for row in (*left, *right)}
            alone = not any(repr(row[space.user]) in users for row in attempt.base)
            return len(users) == 1 and alone and not (left and right)
        if space.relation == "add-remove":
            return len(left) + len(right) == 1
        if space.sensitivity is not None and (
            space.relation in ("l1", "linf") or space.container.kind == "one"
        ):
            moves = [
                abs(one - two)
                for one, two in zip(left, right, strict=True)
                if repr(one) != repr(two)
            ]
            moved = sum(moves) if space.relation == "l1" else max(moves, default=0.0)
            return bool(moved <= space.sensitivity * (1.0 + 1e-9))
        if space.relation == "substitute-column":
            names = [name for name in left[0] if repr(left[0][name]) != repr(right[0][name])]
            return len(left) == len(right) == len(names) == 1
        return len(left) == len(right) == 1

    def describe(self, attempt: Attempt) -> str:
        """Returns what is special about a pair.

        That is a value beyond the domain, else an empty dataset, else its family.
        """
        for row in [*attempt.left, *attempt.right, *attempt.base]:
            for name, domain in self.space.columns.items():
                mine = row if name is None else row[name]
                if not domain.contains(mine):
                    notes = (
                        each.note for each in self._outside[name] if repr(each.value) == repr(mine)
                    )
                    return self._note(next(notes, "a value outside the domain"), name)
        if self.space.relation == "user" and len(attempt.left) > 1:
            return f"one user with {len(attempt.left)} rows"
        if not (attempt.base or attempt.right):
            return "an empty dataset"
        return "a single record" if attempt.size == 1 and self.space.most > 1 else attempt.family


def _any_of(several: list[Special], rng: np.random.Generator) -> Special:
    return several[int(rng.integers(len(several)))]
