"""Everything ends: calls that hang, programs that run, workers and files, when the time is up or a signal comes."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine import Phase

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="sends signals"),
    pytest.mark.time_limit(150),
]
PAIR, CLAIM = (17, 18), em.PureDP(3.0)


def mechanisms():
    """Defined inside, so that they reach workers by value: those cannot import this file."""

    def hanging(dataset, rng):
        """Hangs now and then, but only where something is certified."""
        if rng.bit_generator.seed_seq.spawn_key[0] == Phase.CERTIFY and rng.random() < 0.02:
            time.sleep(600)
        return dataset + rng.laplace()

    def stubborn(dataset):
        """Catches whatever an ordinary function catches, and goes on."""
        while True:
            try:
                time.sleep(600)
            except Exception:
                continue

    def in_c(dataset):
        """Code that never comes back to Python, and so never hears a signal."""
        while True:
            ctypes.CDLL(None).sleep(600)

    return hanging, stubborn, in_c


hanging, stubborn, in_c = mechanisms()
WHERE = {"here": {}, "workers": {"jobs": 2}}


@pytest.fixture(params=WHERE.values(), ids=list(WHERE))
def where(request):
    return request.param


def with_time_enough(audit):
    """The result of an audit whose time limit is doubled until it suffices for what comes before the call that hangs.

    On a busy machine workers take seconds to start; nothing is certified by then.
    """
    for seconds in (2.0, 4.0, 8.0):
        with suppress(em.MechanismError):
            return audit(seconds)
    return audit(16.0)


class TestHungCalls:
    def test_a_fixed_number_of_draws_has_no_bound(self, where):
        said = r"max_seconds=2 were over while running .*hanging on the input 1[78].*draws of 2000.*certify nothing"
        with pytest.raises(em.MechanismError, match=said):
            em.audit(hanging, PAIR, CLAIM, samples=2000, seed=0, max_seconds=2.0, **where)

    def test_what_was_proved_by_then_stays_proved(self, where):
        wishes = {"samples": 2000, "seed": 0, "stop_early": True, **where}
        result = with_time_enough(
            lambda seconds: em.audit(hanging, PAIR, CLAIM, max_seconds=seconds, **wishes)
        )
        assert result.findings[0].details["stopped"] == "seconds"
        assert result.verdict is em.Verdict.NOT_REFUTED
        assert re.search(
            r"hanging on the input 1[78]", str([report.message for report in result.health])
        )

    def test_it_is_the_audit_that_knows_how_long(self, where):
        def audit(seconds):
            options = em.sequential.Options(max_seconds=seconds)
            return em.audit(
                hanging,
                PAIR,
                CLAIM,
                samples=2000,
                seed=0,
                method="sequential",
                options=options,
                **where,
            )

        result = with_time_enough(audit)
        assert result.findings[0].details["stopped"] == "seconds"

    def test_measurements_and_profiles(self, where):
        wishes = {"samples": 2000, "seed": 0, "max_seconds": 2.0, **where}
        with pytest.raises(em.MechanismError, match="max_seconds=2"):
            em.measure(hanging, PAIR, em.PureDP, **wishes)
        with pytest.raises(em.MechanismError, match="max_seconds=2"):
            em.profile(hanging, PAIR, **wishes)

    def test_the_pilot(self, where):
        with pytest.raises(
            em.MechanismError, match=r"stubborn on the input 1[78].*nothing is certified"
        ):
            em.audit(stubborn, PAIR, CLAIM, samples=2000, max_seconds=1.0, stop_early=True, **where)

    def test_code_that_hears_no_signal_ends_with_its_worker(self):
        with pytest.raises(em.MechanismError, match=r"in_c on the input 1[78]"):
            em.audit(in_c, PAIR, CLAIM, samples=2000, max_seconds=1.0, jobs=2)

    def test_another_thread_has_a_worker_do_it(self):
        said = []

        def work():
            try:
                em.audit(stubborn, PAIR, CLAIM, samples=2000, max_seconds=1.0)
            except em.MechanismError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert "stubborn on the input 1" in said[0]

    def test_what_was_drawn_is_kept(self, where, tmp_path):
        wishes = {"samples": 2000, "seed": 0, "checkpoint": tmp_path / "audit.checkpoint"}
        gate = tmp_path / "gate"

        def gated(dataset, rng):
            if (
                rng.bit_generator.seed_seq.spawn_key == (Phase.CERTIFY, 0, 1, 3)
                and not gate.exists()
            ):
                time.sleep(600)
            return dataset + rng.laplace()

        with pytest.raises(em.MechanismError, match="kept in the checkpoint"):
            em.audit(gated, PAIR, CLAIM, max_seconds=3.0, **wishes, **where)
        gate.touch()
        seen = []
        progress = type("Seen", (), {"advance": lambda self, n: seen.append(n)})()
        again = em.audit(gated, PAIR, CLAIM, **wishes, progress=progress)
        whole = em.audit(gated, PAIR, CLAIM, samples=2000, seed=0)
        assert [each.to_dict() for each in again.findings] == [
            each.to_dict() for each in whole.findings
        ]
        assert seen[0] > 64 or len(seen) > 2  # what was known is told first

    def test_it_no_longer_means_stopping_early(self, where):
        result = em.audit(em.zoo.laplace(), samples=2000, seed=0, max_seconds=600.0, **where)
        assert result.findings[0].method != "sequential"
        assert result.lower_bound == em.audit(em.zoo.laplace(), samples=2000, seed=0).lower_bound
        assert result.settings["max_seconds"] == 600.0

    @pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), "3", True])
    def test_limits_that_make_no_sense(self, wrong):
        with pytest.raises(em.InputError, match="max_seconds"):
            em.audit(em.zoo.laplace(), samples=2000, max_seconds=wrong)


class TestSearches:
    FINDER = em.finders.Random(em.domains.Number(0.0, 4.0), trials=50, samples=200)

    def test_the_best_so_far_is_certified(self, where, tmp_path):
        here = tmp_path / "hangs"

        def hangs_later(dataset, rng):
            if rng.bit_generator.seed_seq.spawn_key[1] == 3:  # the fourth trial
                here.touch()
                time.sleep(600)
            return dataset + rng.laplace()

        found = []
        for seconds in (
            3.0,
            6.0,
            12.0,
            24.0,
        ):  # on a busy machine, it may take longer to come to the call that hangs
            with suppress(em.MechanismError):
                settings = {"samples": 400, "seed": 0, "max_seconds": seconds}
                found.append(
                    em.audit(hangs_later, self.FINDER, em.PureDP(50.0), **settings, **where)
                )
            if found and here.exists():
                break
        result = found[-1]
        assert result.lower_bound > 0.0
        assert any("hangs_later on the input" in report.message for report in result.health)

    def test_nothing_certified_is_said(self, where):
        with pytest.raises(
            em.MechanismError, match=r"stubborn on the input.*Nothing was certified: 0 of 50 trials"
        ):
            em.audit(stubborn, self.FINDER, CLAIM, samples=400, seed=0, max_seconds=1.0, **where)


class TestOtherTimers:
    def test_handler_and_timer_of_the_program_come_back(self):
        rung = []
        before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        left, _ = signal.setitimer(signal.ITIMER_REAL, 30.0)
        try:
            em.audit(em.zoo.laplace(), samples=2000, seed=0, max_seconds=60.0)
            assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30.0
            assert signal.getsignal(signal.SIGALRM) is not before
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(em.MechanismError, match="max_seconds=2"):
                em.audit(stubborn, PAIR, CLAIM, samples=2000, max_seconds=2.0)
            assert len(rung) == 1  # in the middle of the hung call, when it was due
        finally:
            signal.signal(signal.SIGALRM, before)
            signal.setitimer(signal.ITIMER_REAL, left)


def left_of(mark):
    """The processes whose environment has a mark."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (
                mark.encode() in (place / "environ").read_bytes()
                and (place / "stat").read_text().split()[2] != "Z"
            ):
                found.append(int(place.name))
        except OSError:
            continue
    return found


MODULE = """
import os, pathlib, time

def mark():
    pathlib.Path("begun").touch()

def slow(x, rng):
    mark()
    time.sleep(0.002)
    return x + rng.laplace()

def forking(x, rng):
    mark()
    if rng.random() < 0.01 and os.fork() == 0:
        time.sleep(600)
    time.sleep(0.001)
    return x + rng.laplace()
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
class TestSignals:
    @pytest.mark.parametrize(
        "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=str
    )
    @pytest.mark.parametrize("what", ["m:slow", "m:forking", "program"])
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_neither_processes_nor_files_stay(self, tmp_path, number, what, jobs, warm_python):
        if what == "m:forking" and jobs == "1":
            pytest.skip("what a mechanism forks in our own process is its own")
        if signal.getsignal(number) is signal.SIG_IGN:
            pytest.skip(
                "whoever started the tests has this signal ignored, and so will every program"
            )
        (tmp_path / "m.py").write_text(MODULE)
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        inputs = [
            "--left",
            "0",
            "--right",
            "1",
            "--epsilon",
            "1",
            "--samples",
            "100000",
            "--jobs",
            jobs,
        ]
        mechanism = (
            "command:sh -c 'touch begun; sleep 600' {dataset}" if what == "program" else what
        )
        environment = {**os.environ, "TMPDIR": str(temporary)}
        process = warm_python.start(
            "-m", "epsilometer", "audit", mechanism, *inputs, cwd=tmp_path, env=environment
        )
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(number)
        process.communicate()
        assert process.returncode not in (0, 1)
        while left_of(str(temporary)):  # the time limit of the test ends this wait
            time.sleep(0.05)
        assert not list(temporary.rglob("*"))


def test_code_that_hears_no_signal_ends_with_our_own_program(tmp_path):
    (tmp_path / "m.py").write_text(
        "import ctypes\ndef f(x):\n    while True: ctypes.PyDLL(None).sleep(600)\n"
    )
    inputs = ["--left", "0", "--right", "1", "--epsilon", "1", "--max-seconds", "1"]
    argv = [sys.executable, "-m", "epsilometer", "audit", "m:f", *inputs]
    run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "f on the input 0" in run.stderr or "f on the input 1" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_batch_names_its_input():
    def batch(dataset, n, rng):
        if dataset:
            time.sleep(600)
        return rng.laplace(size=n)

    with pytest.raises(em.MechanismError, match="on the input 1,"):
        em.audit(
            em.from_batch(batch, name="batch"), (0, 1), CLAIM, samples=100_000, max_seconds=1.0
        )
    assert np.random.default_rng(0).random()  # and the process goes on
