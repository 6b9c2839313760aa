"""Which recorded draws an audit has used: to choose what to certify, and to certify it.

Draws that chose never certify. A result of recorded draws therefore notes the rows that it used
(never their values), so that a replay can leave them out, whatever the file is called by then,
however it is stored, and whoever appended to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epsilometer.errors import InputError
from epsilometer.outputs import Outputs
from epsilometer.storage.row_marks import Marks, Trail, merged
from epsilometer.storage.row_samples import RowSample, RowSampler

# The name of these facts in the settings of a result.
NOTED_AS = "recording"
# What `compare` is called there, as a mechanism.
COMPARED = "two recorded samples"


@dataclass(slots=True)
class UsedDraws:
    """The recorded draws that one audit uses, noted while it draws.

    Attributes:
        names: what inputs are called, by their keys; an input without a name is noted by its key.
        seeds: of the audits that drew them, where they are known: the same seed gives the same
            draws again.
        proves: whether what is drawn now certifies; else it chooses.
        trails: the rows of each input.
        samplers: take samples of the values of each input.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    proves: bool = False
    trails: dict[str, Trail] = field(default_factory=dict)
    samplers: dict[str, RowSampler] = field(default_factory=dict)

    def add(self, key: str, outputs: Outputs, start: int | None = None) -> None:
        """Notes more outputs of an input.

        Args:
            key: of the input.
            outputs: in the order of the recording.
            start: the row of the first one; None for the row behind those before.
        """
        trail = self.trails.setdefault(key, Trail())
        trail.add(trail.stop if start is None else start, outputs, self.proves)
        self.samplers.setdefault(key, RowSampler()).add(outputs)

    def choose(self) -> None:
        """Notes that everything drawn so far takes part in choosing what is certified next.

        That holds even for draws that have certified already.
        """
        for trail in self.trails.values():
            trail.chose = merged([*trail.chose, *trail.proved])

    def facts(self) -> dict[str, Any]:
        """Returns what the result notes; `EarlierDraws` reads it."""
        draws = []
        for key, trail in self.trails.items():
            entry: dict[str, Any] = {
                "input": self.names.get(key, key),
                "digest": trail.digest(),
                "chose": [list(row_range) for row_range in trail.chose],
                "proved": [list(row_range) for row_range in trail.proved],
            }
            entry |= trail.marks().to_dict()
            # Rows that are much alike have none.
            samples = [sample.to_dict() for sample in self.samplers[key].samples()]
            if samples:
                entry["samples"] = samples
            draws.append(entry)
        facts: dict[str, Any] = {}
        if self.seeds:
            facts["seeds"] = list(self.seeds)
        facts["draws"] = draws
        return facts


def compared_facts(
    outputs: Sequence[Outputs], n_chose: Sequence[int], seeds: Sequence[int]
) -> dict[str, Any]:
    """Returns what a comparison of two samples notes.

    It uses all rows, in an order that its seed decides.

    Args:
        outputs: of the left and of the right side, in the order of the recording.
        n_chose: how many of each side chose; the others certified.
        seeds: of the audits that drew them, where they are known.
    """
    used = UsedDraws(names={"left": "left", "right": "right"}, seeds=tuple(seeds))
    for side, side_outputs in zip(("left", "right"), outputs, strict=True):
        used.add(side, side_outputs)
    facts = used.facts()
    for entry, chose, side_outputs in zip(facts["draws"], n_chose, outputs, strict=True):
        # Counted in the shuffled order: "rows" says which rows of the recording these are.
        entry["shuffled"] = True
        entry["chose"] = [[0, chose]]
        entry["proved"] = [[chose, len(side_outputs)]]
    return facts


@dataclass(frozen=True, slots=True)
class EarlierDraws:
    """The draws that a result, and those that it replays, have used.

    Attributes:
        facts: what they note about recorded draws, one entry per input.
        marks: by which these are recognised again.
        samples: of their values, by which rows in another order are recognised.
        mark_seeds: for each of the marks, the seeds of the audits that drew them.
        seeds: of all audits whose draws were used, recorded or not.
    """

    facts: tuple[Mapping[str, Any], ...] = ()
    marks: tuple[Marks, ...] = ()
    samples: tuple[RowSample, ...] = ()
    mark_seeds: tuple[tuple[int, ...], ...] = ()
    seeds: frozenset[int] = frozenset()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "EarlierDraws":
        """Returns the draws that the result with these settings has used.

        Raises:
            InputError: what it notes cannot be read.
        """
        noted = settings.get(NOTED_AS, {})
        try:
            entries = [*noted.get("draws", ()), *noted.get("earlier", ())]
            shared_seeds = _whole_numbers(noted.get("seeds", ()))
            defaults = {"seeds": list(shared_seeds)} if shared_seeds else {}
            facts = tuple({**defaults, **entry} for entry in entries)
            mark_seeds = tuple(_whole_numbers(entry.get("seeds", ())) for entry in facts)
            replayed = settings.get("replay_of") or {}
            replayed_seeds = _whole_numbers(replayed.get("seeds", [replayed.get("seed")]))
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(
                f"what the result notes about its recorded draws cannot be read: {error!r}"
            ) from error
        seeds = {*shared_seeds, *replayed_seeds}
        for entry_seeds in mark_seeds:
            seeds.update(entry_seeds)
        is_seeded = settings.get("seeded_mechanism", True) is not False
        is_comparison = settings.get("mechanism") == COMPARED
        # The draws of a replay have streams of their own.
        if is_seeded and not is_comparison and not replayed:
            seeds.update(_whole_numbers([settings.get("seed")]))
        return cls(
            facts=facts,
            marks=tuple(Marks.from_dict(entry) for entry in facts),
            samples=tuple(
                RowSample.from_dict(sample)
                for entry in facts
                for sample in _listed(entry.get("samples", ()))
            ),
            mark_seeds=mark_seeds,
            seeds=frozenset(seeds),
        )

    def matching(self, seeds: Sequence[int]) -> list[int]:
        """Returns the numbers of the marks to look for in a recording of these seeds.

        Outputs that are nearly all alike cannot be recognised; if they are known to come from
        another seed, they are other ones.
        """
        matching = []
        for number, (marks, marked_seeds) in enumerate(
            zip(self.marks, self.mark_seeds, strict=True)
        ):
            are_seeds_known = bool(seeds) and bool(marked_seeds)
            have_other_seeds = are_seeds_known and not set(seeds) & set(marked_seeds)
            if marks.are_distinct or not have_other_seeds:
                matching.append(number)
        return matching

    def noted(self, facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Returns what a replay notes about recorded draws: its own, and the earlier ones.

        None if there are neither.
        """
        if facts is None and not self.facts:
            return None
        noted = dict(facts or {})
        if self.facts:
            noted["earlier"] = [dict(entry) for entry in self.facts]
        return noted


def check_noted(settings: Mapping[str, Any]) -> None:
    """Refuses to replay a result of recorded draws that does not say which ones it used.

    Such a result was stored by an early version.
    """
    is_recorded = settings.get("mechanism") == COMPARED or "recorded_to" in settings
    if is_recorded and NOTED_AS not in settings:
        raise InputError(
            "this result of recorded draws does not say which of them it used, so that they cannot "
            "be left out; audit again with this version, and replay that result"
        )


def _listed(samples: Any) -> Sequence[Any]:
    """Returns what a result notes as a list, as it is."""
    if not isinstance(samples, list | tuple):
        raise InputError(
            "what the result notes about its recorded draws cannot be read: "
            f"samples={samples!r:.60}"
        )
    return samples


def _whole_numbers(values: Any) -> tuple[int, ...]:
    """Returns those of the values that are whole numbers."""
    return tuple(
        value for value in values if isinstance(value, int) and not isinstance(value, bool)
    )
