"""Which recorded draws an audit has used: those that chose what to certify, and those that certified it.

Draws that chose never prove. A result of recorded draws therefore notes the rows that it used
(never their values), so that a replay can leave them out, whatever the file is called by then,
however it is stored, and whoever appended to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epsilometer.errors import InputError
from epsilometer.outputs import Outputs
from epsilometer.storage.row_marks import Marks, Trail, merged

# The name in the settings of a result, and what `compare` is called there.
NOTED_AS = "recording"
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
    """

    names: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    proves: bool = False
    trails: dict[str, Trail] = field(default_factory=dict)

    def add(self, key: str, outputs: Outputs, start: int | None = None) -> None:
        """More outputs of an input.

        Args:
            key: of the input.
            outputs: in the order of the recording.
            start: the row of the first one; None for the row behind those before.
        """
        trail = self.trails.setdefault(key, Trail())
        trail.add(trail.stop if start is None else start, outputs, self.proves)

    def choose(self) -> None:
        """Notes that everything drawn so far has a say in what is certified next, even what has certified already."""
        for trail in self.trails.values():
            trail.chose = merged([*trail.chose, *trail.proved])

    def facts(self) -> dict[str, Any]:
        """What the result notes; `EarlierDraws` reads it."""
        draws = []
        for key, trail in self.trails.items():
            ranges = {"chose": trail.chose, "proved": trail.proved}
            rows = {name: [list(each) for each in some] for name, some in ranges.items()}
            name = {"input": self.names.get(key, key), "digest": trail.digest()}
            draws.append({**name, **rows, **trail.marks().to_dict()})
        seeds = {"seeds": list(self.seeds)} if self.seeds else {}
        return {**seeds, "draws": draws}


def compared_facts(
    outputs: Sequence[Outputs], n_chose: Sequence[int], seeds: Sequence[int]
) -> dict[str, Any]:
    """What a comparison of two samples notes: it uses all rows, in an order that its seed decides.

    Args:
        outputs: of the left and of the right side, in the order of the recording.
        n_chose: how many of each side chose; the others proved.
        seeds: of the audits that drew them, where they are known.
    """
    used = UsedDraws({"left": "left", "right": "right"}, tuple(seeds))
    for side, some in zip(("left", "right"), outputs, strict=True):
        used.add(side, some)
    facts = used.facts()
    for entry, chose, some in zip(facts["draws"], n_chose, outputs, strict=True):
        # Counted in the shuffled order: "rows" says which rows of the recording these are.
        entry |= {"shuffled": True, "chose": [[0, chose]], "proved": [[chose, len(some)]]}
    return facts


@dataclass(frozen=True, slots=True)
class EarlierDraws:
    """The draws that a result, and those that it replays, have used.

    Attributes:
        facts: what they note about recorded draws, one entry per input.
        marks: by which these are recognised again.
        mark_seeds: for each of these, the seeds of the audits that drew them.
        seeds: of all audits whose draws were used, recorded or not.
    """

    facts: tuple[Mapping[str, Any], ...] = ()
    marks: tuple[Marks, ...] = ()
    mark_seeds: tuple[tuple[int, ...], ...] = ()
    seeds: frozenset[int] = frozenset()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "EarlierDraws":
        """Those of the result with these settings.

        Raises:
            InputError: what it notes cannot be read.
        """
        noted = settings.get(NOTED_AS, {})
        try:
            entries = [*noted.get("draws", ()), *noted.get("earlier", ())]
            shared = _seeds(noted.get("seeds", ()))
            noted_seeds = {"seeds": list(shared)} if shared else {}
            facts = tuple({**noted_seeds, **entry} for entry in entries)
            mark_seeds = tuple(_seeds(entry.get("seeds", ())) for entry in facts)
            replayed = settings.get("replay_of") or {}
            seeds = {*shared, *_seeds(replayed.get("seeds", [replayed.get("seed")]))}
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(
                f"what the result notes about its recorded draws cannot be read: {error!r}"
            ) from error
        seeds |= {seed for some in mark_seeds for seed in some}
        is_own = (
            settings.get("seeded_mechanism", True) is not False
            and settings.get("mechanism") != COMPARED
        )
        if is_own and not replayed:  # the draws of a replay have streams of their own
            seeds |= set(_seeds([settings.get("seed")]))
        return cls(facts, tuple(map(Marks.from_dict, facts)), mark_seeds, frozenset(seeds))

    def matching(self, seeds: Sequence[int]) -> list[int]:
        """The numbers of the marks that are worth looking for in a recording of these seeds.

        Outputs that are nearly all alike cannot be recognised; if they are known to come from
        another seed, they are other ones.
        """
        found = []
        for number, (marks, theirs) in enumerate(zip(self.marks, self.mark_seeds, strict=True)):
            come_from_others = bool(seeds) and bool(theirs) and not set(seeds) & set(theirs)
            if marks.are_distinct or not come_from_others:
                found.append(number)
        return found

    def noted(self, facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What a replay notes about recorded draws: its own, and the earlier ones; None if there are neither."""
        if facts is None and not self.facts:
            return None
        return {
            **(facts or {}),
            **({"earlier": [dict(each) for each in self.facts]} if self.facts else {}),
        }


def check_noted(settings: Mapping[str, Any]) -> None:
    """Refuses to replay a result of recorded draws that does not say which ones: an early version stored it."""
    is_recorded = settings.get("mechanism") == COMPARED or "recorded_to" in settings
    if is_recorded and NOTED_AS not in settings:
        what = "this result of recorded draws does not say which of them it used, so that they cannot be left out"
        raise InputError(f"{what}; audit again with this version, and replay that result")


def _seeds(given: Any) -> tuple[int, ...]:
    return tuple(each for each in given if isinstance(each, int) and not isinstance(each, bool))
