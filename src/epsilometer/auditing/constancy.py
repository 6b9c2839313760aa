"""What it means that an input always gets one and the same answer.

Draws alone cannot tell a leak without noise from noise that is drawn once and kept: a cache, or a
generator that is made anew with the same seed. Whoever refutes on such draws counts one draw many
times. So the audit finds out what it can: whether the answer stays with a fresh generator, in a new
process per run, or in a fresh process.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from epsilometer.engine import Deadline
from epsilometer.engine.fingerprints import Hashes, row_hashes
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Numbers, Outputs
from epsilometer.result import HealthReport

# What `constant=` may say: that the audit is to find out, or that there is no noise.
ASK = "ask"
LEAK = "leak"
# How a constant answer was tested, as results record it.
BY_GENERATOR = "fresh generators"
BY_RUNS = "a new process per run"
BY_PROCESS = "a fresh process"
CHANGED = "changed in a fresh process"
UNTESTED = "untested"
# Rows compared at first: a few are enough for almost all mechanisms.
_FIRST_ROWS = 32
# More rows, compared if the first ones are all equal.
_MAX_ROWS = 100_000
# Seconds that a fresh process may take: it imports what the mechanism imports.
_FRESH_SECONDS = 30.0
_SIDES = ("left", "right")
_CHECK = "constant"
# Why two recorded samples cannot be tested, as a clause.
_RECORDED = "recorded outputs cannot be drawn again"


def check_constant_setting(constant: Any) -> str:
    """Returns what `constant=` says.

    Raises:
        InputError: if it is neither "ask" nor "leak".
    """
    if constant not in (ASK, LEAK):
        raise InputError(f"constant={constant!r} must be 'ask' or 'leak'")
    return str(constant)


@dataclass(frozen=True, slots=True)
class SideAnswers:
    """What is known of the answers to one input.

    Attributes:
        outputs: draws, in any order; there may be none.
        heads: hashes of further draws, as fingerprints keep them.
    """

    outputs: Outputs
    heads: Sequence[Hashes] = ()

    def only_hash(self) -> int | None:
        """Returns the hash of the only answer; None if there are several, or fewer than two."""
        first: int | None = None
        n_compared = 0
        for hashes in self._pieces():
            if not len(hashes):
                continue
            if first is None:
                first = int(hashes[0])
            if np.any(hashes != np.uint64(first)):
                return None
            n_compared += len(hashes)
        return first if n_compared > 1 else None

    def _pieces(self) -> Iterator[Hashes]:
        """Yields the hashes of all draws, a few at first."""
        for rows in (slice(0, _FIRST_ROWS), slice(_FIRST_ROWS, _MAX_ROWS)):
            yield row_hashes(self.outputs.take(rows))
        yield from self.heads

    def gives(self, answer: int) -> bool:
        """Returns whether an answer of this hash is among the draws."""
        return bool(np.any(row_hashes(self.outputs) == np.uint64(answer)))


@dataclass(frozen=True, slots=True)
class Constancy:
    """What was found out about constant answers.

    Attributes:
        reports: what to say about them; none if there are no constant answers.
        tested_by: how they were tested, for the record; None if they needed no test.
    """

    reports: tuple[HealthReport, ...] = ()
    tested_by: str | None = None


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The outcome of a test of constant answers.

    Attributes:
        tested_by: see `Constancy`.
        clause: what follows "always got one and the same answer".
    """

    tested_by: str
    clause: str

    @property
    def is_trusted(self) -> bool:
        return self.tested_by not in (CHANGED, UNTESTED)


def examine_constancy(
    answers: tuple[SideAnswers, SideAnswers],
    *,
    mechanism: Mechanism | None,
    pair: Pair,
    constant: str,
    is_above_claim: bool,
    seed: int,
    deadline: Deadline | None = None,
    is_suppressed: bool = False,
) -> Constancy:
    """Examines whether an input always gets the same answer, and why.

    Args:
        answers: of the left and of the right input.
        mechanism: what was drawn from; None for two recorded samples.
        pair: the inputs.
        constant: "ask", or "leak" if the caller says that there is no noise.
        is_above_claim: whether the draws would refute the claim. If only one input has a constant
            answer, it matters for a refutation alone.
        seed: of the audit.
        deadline: when the audit must be over.
        is_suppressed: whether the check is switched off; then nothing is tested.
    """
    hashes = [side.only_hash() for side in answers]
    left, right = hashes
    if left is None and right is None:
        return Constancy()
    if left == right:
        text = "every output of both inputs is the same value"
        return Constancy((HealthReport(_CHECK, text, untrusted=False),))
    doubt = _Doubt.GRAVE
    if left is not None and right is not None:
        subject = "each input always got one and the same answer"
    else:
        side = 0 if right is None else 1
        is_natural = mechanism is not None and mechanism.is_seeded
        if not is_above_claim or is_natural:
            return Constancy()
        doubt = _doubt_about(answers, side, hashes[side])
        if doubt is _Doubt.NONE or (doubt is _Doubt.SLIGHT and constant == LEAK):
            return Constancy()
        subject = f"the {_SIDES[side]} input always got one and the same answer"
    if constant == LEAK:
        text = f"{subject}, and you said that there is no noise in it (constant='leak')"
        return Constancy((HealthReport(_CHECK, text, untrusted=False),))
    if is_suppressed:
        return Constancy((HealthReport(_CHECK, subject, untrusted=False),))
    evidence = _test(mechanism, pair, hashes, seed, deadline)
    if doubt is _Doubt.SLIGHT and evidence.tested_by == UNTESTED:
        return Constancy()
    text = f"{subject}{evidence.clause}"
    report = HealthReport(_CHECK, text, untrusted=not evidence.is_trusted)
    return Constancy((report,), evidence.tested_by)


class _Doubt(Enum):
    """Whether a constant answer may be noise that is kept, if the other input's answers vary."""

    # It is of a kind that the other input never gets: a refusal, None, NaN, another shape or type.
    NONE = "none"
    # The other input gets it, too, and it is no number. Rare keys look like that: one input never
    # gives them. So it counts unless a test shows that it is noise.
    SLIGHT = "slight"
    # It is a number, or a value that the other input never gets: nothing else would be expected of
    # noise. It counts only if a test shows that it is none.
    GRAVE = "grave"


def _doubt_about(answers: tuple[SideAnswers, SideAnswers], side: int, answer: int | None) -> _Doubt:
    """Returns how likely a constant answer of one input is noise that is kept."""
    constant = answers[side].outputs
    other = answers[1 - side]
    if not len(constant) or not len(other.outputs):  # nothing but hashes is known of them
        return _Doubt.NONE
    block = constant.take(slice(0, 1)).blocks[0]
    numbers = [column.values for column in block.columns if isinstance(column, Numbers)]
    finite = [bool(np.isfinite(values[0])) for values in numbers]
    is_of_kind = False
    for other_block in other.outputs.blocks:
        if _without_int(other_block.shape) == _without_int(block.shape):
            others = [column for column in other_block.columns if isinstance(column, Numbers)]
            same = np.ones(other_block.size, dtype=np.bool_)
            for column, is_finite in zip(others, finite, strict=True):
                same &= np.isfinite(column.values) == is_finite
            is_of_kind = is_of_kind or bool(same.any())
    if not is_of_kind:
        return _Doubt.NONE
    is_number = any(values.dtype != np.bool_ for values in numbers) and all(finite)
    is_shared = answer is None or other.gives(answer)
    return _Doubt.SLIGHT if is_shared and not is_number else _Doubt.GRAVE


def _without_int(shape: str) -> str:
    """Returns a shape in which whole numbers are numbers like any other.

    Many services and files write 5.0 as 5, so that a number is of one kind with any other number.
    """
    return re.sub(r"\bint\b", "float", shape)


def _test(
    mechanism: Mechanism | None,
    pair: Pair,
    hashes: Sequence[int | None],
    seed: int,
    deadline: Deadline | None,
) -> _Evidence:
    """Finds out whether constant answers are noise that is kept."""
    drawing = mechanism
    while isinstance(getattr(drawing, "mechanism", None), Mechanism):  # one that records, say
        drawing = drawing.mechanism  # type: ignore[union-attr]  # it has one
    if drawing is not None and drawing.runs_afresh:
        return _Evidence(
            BY_RUNS,
            ", though a new process ran each time: there is no noise in it, or a seed that is "
            "fixed inside draws it, or the program keeps its answers in a file",
        )
    tested = None
    if mechanism is not None:
        tested = _test_in_fresh_process(mechanism, pair, hashes, seed, deadline)
    if tested is not None:
        return tested
    if mechanism is not None and mechanism.is_seeded:
        return _Evidence(
            BY_GENERATOR,
            ", whichever fresh generator was passed as rng: there is no noise in it, or a seed "
            "that is fixed inside draws it, or it was kept (memoised)",
        )
    reason = _RECORDED if drawing is None else drawing.why_not_afresh
    return _Evidence(
        UNTESTED,
        ": a leak without noise cannot be told from noise that is drawn once and kept (memoised, "
        f"or from a frozen seed); {reason}. Switch the cache off, "
        "or take a parameter rng; if there is no noise, say constant='leak' (--constant leak)",
    )


def _test_in_fresh_process(
    mechanism: Mechanism,
    pair: Pair,
    hashes: Sequence[int | None],
    seed: int,
    deadline: Deadline | None,
) -> _Evidence | None:
    """Compares constant answers with those of a fresh process; None if it could not give any."""
    # Only needed for constant answers.
    from epsilometer.engine.fresh_process import can_be_renewed, fresh_answers

    if not can_be_renewed(mechanism):
        return None
    # In both orders: a generator with a fixed seed may give the same first numbers again, but to
    # whichever input is asked about first.
    for order in ((0, 1), (1, 0)):
        seconds = _FRESH_SECONDS
        if deadline is not None:
            seconds = min(seconds, deadline.left)
        if seconds <= 0.0:
            return None
        answers = fresh_answers(mechanism, [pair.side(side) for side in order], seconds, seed)
        if answers is None:
            return None
        for side, side_answers in zip(order, answers, strict=True):
            known = hashes[side]
            if known is not None and any(answer != known for answer in side_answers):
                return _Evidence(
                    CHANGED,
                    ", but a fresh process gave another one: its noise is drawn once and kept "
                    "(memoised), so that all these draws are one. Switch the cache off, or "
                    "draw anew in every call",
                )
    if mechanism.is_seeded:
        clause = ", whichever fresh generator was passed as rng, and so it is in a fresh process"
    else:
        clause = ", and so it is in a fresh process"
    return _Evidence(
        BY_PROCESS, f"{clause}: there is no noise in it, or a seed that is fixed inside draws it"
    )
