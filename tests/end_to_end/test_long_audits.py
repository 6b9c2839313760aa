"""Audits of many draws: bounded memory, and a progress that people can read."""

import os
import pty
import re
import subprocess
import sys

import pytest

PEAK = """
import epsilometer as em


def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)


def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def audit(samples, **keywords):
    return em.audit(em.from_batch(noisy), PAIRS, em.PureDP(1.0), samples=samples, seed=0, **keywords)


PAIRS = {pairs}
audit(2000)
before = peak()
result = audit({samples}, **{keywords})
assert result.samples_used == ({samples}, {samples}), result.samples_used
print(peak() - before)
"""
SLOW = """
import time


def slow(dataset, rng):
    time.sleep(0.001)
    return dataset + rng.laplace()
"""


def megabytes_of(samples, pairs="(0.0, 1.0)", **keywords):
    code = PEAK.format(samples=samples, pairs=pairs, keywords=keywords)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("pairs", "keywords", "samples", "most"),
    [
        ("(0.0, 1.0)", {}, 25_000_000, 120.0),
        ("[(0.0, 0.5), (0.0, 1.0)]", {}, 50_000_000, 330.0),
        ("(0.0, 1.0)", {"method": "profile"}, 25_000_000, 120.0),
    ],
)
def test_memory_does_not_grow_with_the_draws(pairs, keywords, samples, most):
    """One side of the draws alone is 200 or 400 MB; what is kept are two million of each for learning, and copies."""
    assert megabytes_of(samples, pairs, **keywords) < most


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from /proc")
def test_a_checkpoint_takes_no_memory_either(tmp_path):
    keywords = {"stop_early": False, "checkpoint": str(tmp_path / "audit.checkpoint")}
    assert megabytes_of(25_000_000, **keywords) < 120.0
    assert (tmp_path / "audit.checkpoint").stat().st_size < 36e6


def test_the_terminal_shows_rate_and_time_left(tmp_path):
    (tmp_path / "slowly.py").write_text(SLOW, encoding="utf-8")
    arguments = [
        "audit",
        "slowly:slow",
        "--left",
        "0",
        "--right",
        "1",
        "--epsilon",
        "0.1",
        "--samples",
        "2000",
    ]
    reading, writing = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "epsilometer", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "120", "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=writing,
    )
    os.close(writing)
    shown = b""
    try:
        while piece := os.read(reading, 4096):
            shown += piece
    except OSError:  # Linux says so when the other end is gone
        pass
    os.close(reading)
    assert process.wait() == 1  # refuted: rehearsals would take longer than the audit
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"drawing .* \d+ % of 4 k draws, \d+/s, \d.* s left", plain)
