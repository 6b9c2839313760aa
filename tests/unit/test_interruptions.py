"""Who raises what: the caller's exceptions leave an audit unchanged, the mechanism's own are its refusals.

No clock decides: the mechanism itself sends the signal, at a call that the test chooses.
"""

import contextlib
import signal
import sys
import time

import numpy as np
import pytest

import epsilometer as em
from epsilometer.interruptions import callers_handlers_relayed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Ended(BaseException):
    """What a test runner raises to end a test: no Exception."""


@pytest.fixture
def ring():
    """Installs a handler of the caller for SIGUSR1 that raises the given error; gives its relays back afterwards."""
    before = signal.getsignal(signal.SIGUSR1)

    def install(error):
        def handler(number, frame):
            raise error

        signal.signal(signal.SIGUSR1, handler)
        return handler

    yield install
    signal.signal(signal.SIGUSR1, before)


def ringing(at, answer=lambda x, rng: x + rng.laplace()):
    """A mechanism during whose call number `at` the caller's signal comes."""
    calls = []

    def mechanism(x, rng):
        calls.append(x)
        if len(calls) == at:
            signal.raise_signal(signal.SIGUSR1)
        return answer(x, rng)

    mechanism.calls = calls
    return mechanism


ERRORS = [
    TimeoutError("the caller's limit"),
    ValueError("the caller's"),
    Ended("enough"),
    SystemExit(3),
]
DOMAIN = em.domains.Number(0, 1)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", [1, 20, 700])
@pytest.mark.parametrize("on_error", ["raise", "outcome"])
def test_a_plain_audit_passes_on_what_the_callers_handler_raised(ring, error, at, on_error):
    handler = ring(error)
    mechanism = ringing(at)
    with pytest.raises(type(error)) as caught:
        em.audit(
            em.from_callable(mechanism, on_error=on_error),
            (0, 1),
            em.PureDP(1.0),
            samples=600,
            seed=0,
        )
    assert caught.value is error
    assert len(mechanism.calls) == at
    assert signal.getsignal(signal.SIGUSR1) is handler


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", [1, 5, 100, 1000])
def test_a_search_passes_it_on(ring, error, at):
    ring(error)
    mechanism = ringing(at)
    with pytest.raises(type(error)) as caught:
        em.audit(mechanism, DOMAIN, em.PureDP(1.0), samples=2000, seed=0)
    assert caught.value is error
    assert len(mechanism.calls) == at


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", [1, 60, 150])
def test_a_sequential_audit_passes_it_on(ring, error, at):
    ring(error)
    mechanism = ringing(at)
    with pytest.raises(type(error)) as caught:
        em.audit(mechanism, (0, 1), em.PureDP(1.0), samples=600, seed=0, stop_early=True)
    assert caught.value is error
    assert len(mechanism.calls) == at


def test_a_batch_function_a_replay_and_a_limit_of_our_own_pass_it_on(ring):
    error = TimeoutError("the caller's limit")
    found = em.audit(lambda x, rng: x + rng.laplace(), (0, 1), em.PureDP(0.1), samples=2000, seed=0)
    ring(error)

    def batch(x, n, rng):
        signal.raise_signal(signal.SIGUSR1)
        return rng.laplace(x, size=n)

    for run in (
        lambda: em.audit(em.from_batch(batch), (0, 1), em.PureDP(1.0), samples=600),
        lambda: em.audit(
            em.from_batch(batch), (0, 1), em.PureDP(1.0), samples=600, max_seconds=1000.0
        ),
        lambda: em.replay(found, em.from_batch(batch), samples=600),
        lambda: em.measure(em.from_batch(batch), (0, 1), samples=600),
    ):
        with pytest.raises(TimeoutError) as caught:
            run()
        assert caught.value is error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at", [1, 250])
def test_features_of_recorded_outputs_pass_it_on(ring, rng, tmp_path, error, at):
    """They are computed by `compare`, and while a recording is read."""
    np.savez(tmp_path / "draws.npz", left=rng.normal(size=300), right=rng.normal(size=300))
    calls = []

    def feature(output):
        calls.append(output)
        if len(calls) == at:
            signal.raise_signal(signal.SIGUSR1)
        return output

    recording = em.from_recording(tmp_path / "draws.npz", features=feature)
    ring(error)
    for run in (
        lambda: em.compare(recording.left, recording.right, em.PureDP(1.0), seed=0),
        lambda: em.audit(recording, None, em.PureDP(1.0), samples=300, seed=0),
    ):
        calls.clear()
        with pytest.raises(type(error)) as caught:
            run()
        assert caught.value is error
        assert len(calls) == at


def test_an_error_that_the_mechanism_makes_of_it_is_still_the_callers(ring):
    error = TimeoutError("the caller's limit")
    ring(error)

    def translating(x, rng):
        try:
            signal.raise_signal(signal.SIGUSR1)
        except TimeoutError as late:
            raise RuntimeError("a library's own words") from late

    with pytest.raises(TimeoutError) as caught:
        em.audit(translating, DOMAIN, em.PureDP(1.0), samples=2000)
    assert caught.value is error


def test_the_alarm_of_a_test_runner(ring):
    """As pytest-timeout does it: SIGALRM, while an audit has a limit of its own that uses the same signal."""

    def handler(number, frame):
        raise Ended("the test took too long")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(Ended):
            em.audit(_waits_for_ever, DOMAIN, em.PureDP(1.0), samples=2000, max_seconds=10_000.0)
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _waits_for_ever(x, rng):
    while True:
        time.sleep(0.01)


class TestTheMechanismsOwn:
    def test_its_own_time_out_is_its_refusal(self):
        def impatient(x, rng):
            raise TimeoutError("the database did not answer")

        with pytest.raises(em.MechanismError, match="TimeoutError on the input"):
            em.audit(impatient, (0, 1), em.PureDP(1.0), samples=600)
        with pytest.raises(em.MechanismError, match="failed on all of"):
            em.audit(impatient, DOMAIN, em.PureDP(1.0), samples=2000)

    @pytest.mark.parametrize("puts_back", [True, False])
    @pytest.mark.parametrize("once", [True, False])
    def test_so_is_what_its_own_handler_raises(self, ring, puts_back, once):
        """The caller has a handler for the same signal, which the mechanism replaces, for good or for a while."""
        ring(AssertionError("this is the caller's handler"))
        installed = []

        def mine(number, frame):
            raise TimeoutError("my own limit")

        def mechanism(x, rng):
            before = None
            if not (once and installed):
                before = signal.signal(signal.SIGUSR1, mine)
                installed.append(before)
            try:
                if x > 0.5 and not (once and puts_back and len(installed) > 1):
                    signal.raise_signal(signal.SIGUSR1)
            finally:
                if puts_back and not once:
                    signal.signal(signal.SIGUSR1, before)
            return x + rng.laplace()

        counted = em.from_callable(mechanism, on_error="outcome")
        result = em.audit(counted, (0, 1), em.PureDP(1.0), samples=600, seed=0)
        assert result.is_refuted  # the failed runs are outcomes
        with pytest.raises(em.MechanismError, match="TimeoutError on the input 1: 'my own limit'"):
            em.replay(result, mechanism, samples=600, seed=1)

    def test_what_it_catches_itself_is_its_business(self, ring):
        ring(TimeoutError("the caller's limit"))

        def careful(x, rng):
            with contextlib.suppress(TimeoutError):
                signal.raise_signal(signal.SIGUSR1)
            return x + rng.laplace()

        assert em.audit(careful, (0, 1), em.PureDP(0.1), samples=2000, seed=0).is_refuted

    def test_ending_the_program_is_a_failure(self):
        def leaving(x):
            sys.exit(0)

        with pytest.raises(em.MechanismError, match="SystemExit"):
            em.audit(leaving, (0, 1), em.PureDP(1.0), samples=600)

    @pytest.mark.parametrize("inputs", [(0, 1), DOMAIN], ids=["pair", "search"])
    @pytest.mark.parametrize("on_error", ["raise", "outcome"])
    def test_what_is_no_exception_passes_unchanged(self, inputs, on_error):
        error = Ended("from within")

        def mechanism(x, rng):
            raise error

        with pytest.raises(Ended) as caught:
            em.audit(
                em.from_callable(mechanism, on_error=on_error), inputs, em.PureDP(1.0), samples=2000
            )
        assert caught.value is error


class TestTheCheckpoint:
    @pytest.mark.parametrize("stop_early", [False, True])
    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
    def test_is_written_before(self, ring, tmp_path, error, stop_early):
        calls = []
        is_over = False

        def mechanism(x, n, rng):
            calls.append((x, n))
            if len(calls) == 12 and not is_over:
                signal.raise_signal(signal.SIGUSR1)
            return rng.laplace(x, size=n)

        ring(error)
        how = {"samples": 3000, "seed": 3, "checkpoint": tmp_path / "c", "stop_early": stop_early}
        # A list and a truth value of the test are part of the mechanism, and change: its code is what counts here.
        source = em.from_batch(mechanism)
        type(source).digest, digest = lambda self: "the same", type(source).digest
        try:
            with pytest.raises(type(error)) as caught:
                em.audit(source, (0, 1), em.PureDP(5.0), **how)
            assert caught.value is error
            is_over = True
            first = list(calls)
            calls.clear()
            resumed = em.audit(source, (0, 1), em.PureDP(5.0), **how)
        finally:
            type(source).digest = digest
        whole = em.audit(
            em.from_batch(lambda x, n, rng: rng.laplace(x, size=n)),
            (0, 1),
            em.PureDP(5.0),
            **{**how, "checkpoint": None},
        )
        assert resumed.lower_bound == whole.lower_bound
        assert len(first) == 12
        assert sum(n for _, n in calls) < sum(
            resumed.samples_used
        )  # what was drawn before is not drawn again

    def test_a_signal_while_it_is_written(self, ring, tmp_path, monkeypatch):
        """A TimeoutError is an OSError, which code about files explains in its own way."""
        error = TimeoutError("the caller's limit")
        ring(error)
        from epsilometer.storage.journal import JournalFile

        put, seen = JournalFile.put, []

        def slow_put(file, table, *row):
            if table == "outputs" and not seen:
                seen.append(row)
                signal.raise_signal(signal.SIGUSR1)
            put(file, table, *row)

        monkeypatch.setattr(JournalFile, "put", slow_put)
        with pytest.raises(TimeoutError) as caught:
            em.audit(em.zoo.laplace(), samples=2000, seed=0, checkpoint=tmp_path / "c")
        assert caught.value is error


def test_workers_are_not_to_blame(ring, monkeypatch):
    """The parent waits for them when the signal comes: no work is sent again."""
    from epsilometer.engine import local_worker

    error = TimeoutError("the caller's limit")
    ring(error)
    exchange, calls = local_worker.exchange, []

    def interrupted(workers, seconds):
        calls.append(seconds)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGUSR1)
        return exchange(workers, seconds)

    monkeypatch.setattr(local_worker, "exchange", interrupted)
    with pytest.raises(TimeoutError) as caught:
        em.audit(em.zoo.laplace(), samples=20_000, seed=0, jobs=2)
    assert caught.value is error


def test_an_engine_that_catches_everything_does_not_swallow_it(ring):
    error = TimeoutError("the caller's limit")
    ring(error)
    with (
        pytest.raises(TimeoutError) as caught,
        callers_handlers_relayed(),
        contextlib.suppress(Exception),
    ):
        signal.raise_signal(signal.SIGUSR1)
    assert caught.value is error


def test_handlers_are_back_after_the_audit(ring):
    handler = ring(ValueError())
    em.audit(
        em.from_batch(lambda x, n, rng: rng.laplace(x, size=n)),
        (0, 1),
        em.PureDP(0.1),
        samples=2000,
        seed=0,
    )
    assert signal.getsignal(signal.SIGUSR1) is handler
