"""Equal distributions, replayed on recordings: draws that chose the event must not prove it.

The confidence is 80 %, so that a true claim may be refuted in 20 % of the runs. A replay that counts the draws that
chose its event refutes it in half of them.
"""

import numpy as np
import pytest

import epsilometer as em

EQUAL = em.from_batch(lambda x, n, rng: rng.normal(size=n))
PAIR = em.Pair(0, 1)
NO_LOSS = em.PureDP(0.0)
RATE = 0.2
BROKEN = 0.5


def refutes(result, recording, seed):
    """Whether a replay on a recording refutes; one that is refused does not."""
    try:
        return em.replay(result, recording, samples=60, seed=seed).is_refuted
    except em.InputError:
        return False


def test_replaying_what_an_audit_recorded(rarely, tmp_path):
    def happens(seed):
        kept = tmp_path / "draws.jsonl"
        found = em.audit(EQUAL, PAIR, NO_LOSS, samples=200, seed=seed, confidence=0.8, record=kept)
        return refutes(found, em.from_recording(kept), seed + 1)

    rarely(happens, RATE, BROKEN)


@pytest.mark.parametrize("swapped", [False, True])
def test_replaying_a_recording_that_was_audited(swapped, rarely, rng, tmp_path):
    def happens(seed):
        rows = [rng.normal(size=400) for _ in range(2)]
        np.savez(tmp_path / "rows.npz", left=rows[0], right=rows[1])
        for name, some in zip(("left", "right"), rows[::-1] if swapped else rows, strict=True):
            np.savetxt(tmp_path / f"{name}.csv", some, fmt="%.17g")
        audited = em.from_recording(tmp_path / "rows.npz", pair=PAIR)
        found = em.audit(audited, claim=NO_LOSS, samples=200, seed=seed, confidence=0.8)
        replayed = em.from_recording(tmp_path / "left.csv", tmp_path / "right.csv", pair=PAIR)
        return refutes(found, replayed, seed + 1)

    rarely(happens, RATE, BROKEN)


def test_a_recording_that_holds_its_draws_several_times(rarely, rng):
    """Copies of rows that chose would prove, and every row would count five times."""

    def happens(seed):
        rows = [np.tile(rng.normal(size=80), 5) for _ in range(2)]
        return em.compare(*rows, NO_LOSS, seed=seed, confidence=0.8).is_refuted

    rarely(happens, RATE, BROKEN)


@pytest.mark.parametrize("n_copies", [2, 8])
def test_a_recording_that_holds_copies_in_any_order(n_copies, rarely, rng):
    def happens(seed):
        n_rows = 400 // n_copies
        rows = [rng.permutation(np.repeat(rng.normal(size=n_rows), n_copies)) for _ in range(2)]
        return em.compare(*rows, NO_LOSS, seed=seed, confidence=0.8).is_refuted

    rarely(happens, RATE, BROKEN)


def test_replaying_what_was_compared(rarely, rng, tmp_path):
    def happens(seed):
        rows = [rng.normal(size=200) for _ in range(2)]
        more = [np.append(some, rng.normal(size=60)) for some in rows]
        np.savez(tmp_path / "rows.npz", left=more[0], right=more[1])
        found = em.compare(*rows, NO_LOSS, seed=seed, confidence=0.8)
        recording = em.from_recording(tmp_path / "rows.npz", pair=PAIR)
        return em.replay(found, recording, samples=60, seed=seed, pair=PAIR).is_refuted

    rarely(happens, RATE, BROKEN)
