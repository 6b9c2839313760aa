"""Mechanisms that fight back: whatever they do to the process around them, there is a clear answer or a clear error."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and signals"),
    pytest.mark.time_limit(150),
]

# Before each: `x` is the input, `noise` a fresh draw, `n` counts the calls in this process.
HEAD = """
import os, signal, sys, threading, time, warnings
import numpy as np
n = 0

class Odd:
    def __init__(self, value): self.value = value

def f(x, rng):
    global n
    n += 1
    noise = rng.laplace()
"""
ANSWER, ERROR = "an answer", "an error"
# What they do: what must come of it, and what an error says.
FIGHTS = {
    "sets the clock back": ("time.time = lambda: -1e9; return x + noise", ANSWER),
    "stops the clocks": (
        "time.monotonic = time.perf_counter = lambda: 0.0; return x + noise",
        ANSWER,
    ),
    "seeds all generators": (
        "np.random.seed(0); import random; random.seed(0); return x + noise",
        ANSWER,
    ),
    "draws the same again and again": ("np.random.seed(0); return x + np.random.laplace()", ANSWER),
    "ignores interrupts": (
        "signal.signal(signal.SIGINT, signal.SIG_IGN); return x + noise",
        ANSWER,
    ),
    "takes our alarm": (
        "signal.signal(signal.SIGALRM, lambda *_: None)\n    if n == 200: time.sleep(600)\n    return x + noise",
        "max_seconds",
    ),
    "blocks our alarm": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    if n == 200: time.sleep(600)\n    return x + noise",
        "max_seconds",
    ),
    "catches everything": (
        "while n == 200:\n        try: time.sleep(600)\n        except BaseException: pass\n    return x + noise",
        "max_seconds",
    ),
    "replaces numpy": (
        "np.sort = np.count_nonzero = lambda *_, **__: 0; return x + noise",
        "replaced numpy.count_nonzero",
    ),
    "replaces generators": (
        "np.random.default_rng = lambda *_: rng; return x + noise",
        "replaced numpy.random.default_rng",
    ),
    "deletes from numpy": ("del np.unique; return x + noise", "replaced numpy.unique"),
    "makes numpy raise": ("np.seterr(all='raise'); return x + noise", ANSWER),
    "exits": ("sys.exit(0)", "SystemExit"),
    "exits later": ("if n > 200: sys.exit(1)\n    return x + noise", "SystemExit"),
    "exits at once": ("os._exit(0)", "on the input"),
    # Lost work runs again, in new workers that have not counted so far.
    "exits at once, later": ("if n > 200: os._exit(1)\n    return x + noise", "either"),
    "kills itself": ("if n > 200: raise KeyboardInterrupt\n    return x + noise", "interrupted"),
    "raises beyond exceptions": (
        "raise type('Worse', (BaseException,), {})('no')",
        "the mechanism raised Worse: no",
    ),
    "raises a generator's end": ("raise GeneratorExit", "the mechanism raised GeneratorExit"),
    "recurses": ("return f(x, rng)", "RecursionError"),
    "lets nobody recurse": ("sys.setrecursionlimit(90); return x + noise", ANSWER),
    "leaves threads behind": (
        "threading.Thread(target=time.sleep, args=(3,), daemon=True).start(); return x + noise",
        ANSWER,
    ),
    "forks": ("if n % 50 == 0 and os.fork() == 0: os._exit(0)\n    return x + noise", ANSWER),
    "forks and comes back": ("if n % 50 == 0: os.fork()\n    return x + noise", ANSWER),
    "forks and raises": (
        "if n % 50 == 0 and os.fork() == 0: raise ValueError('in the child')\n    return x + noise",
        ANSWER,
    ),
    "warns": ("warnings.warn('odd'); return x + noise", ANSWER),
    "makes errors of warnings": ("warnings.simplefilter('error'); return x + noise", ANSWER),
    "closes the streams": (
        "sys.stdin.close(); sys.stdout.close(); sys.stderr.close(); return x + noise",
        ANSWER,
    ),
    "loses the streams": ("sys.stdin = sys.stdout = sys.stderr = None; return x + noise", ANSWER),
    "closes standard input for good": ("if n == 1: os.close(0)\n    return x + noise", ANSWER),
    "empties the environment": ("os.environ.clear(); return x + noise", ANSWER),
    "empties the path": ("sys.path.clear(); return x + noise", ANSWER),
    "moves": ("os.chdir('/'); return x + noise", ANSWER),
    "returns itself inside itself": ("a = []; a.append(a); return a", ERROR),
    "returns deep lists": ("a = noise\n    for _ in range(100_000): a = [a]\n    return a", ERROR),
    "returns itself, a function": ("return f", ERROR),
    "returns an endless iterator": ("import itertools; return itertools.count()", ERROR),
    "gives the same buffer": (
        "global b\n    b = globals().get('b', np.zeros(2)); b[:] = x + noise; return b",
        ANSWER,
    ),
}


# With workers, the rest of the program is out of their reach: there a measurement will do, which is quicker.
HOW = {"1": ("audit", ["--epsilon", "0.1"]), "2": ("measure", [])}
# What reaches the program's own arithmetic: they also meet the rehearsals that follow an audit without a refutation.
LASTING = {
    "stops the clocks",
    "seeds all generators",
    "makes numpy raise",
    "lets nobody recurse",
    "makes errors of warnings",
}


# What a worker answers to just as the program itself: the same code runs the mechanism and reads what it returns.
SAME_IN_WORKERS = {
    *(
        "sets the clock back",
        "stops the clocks",
        "seeds all generators",
        "draws the same again and again",
        "warns",
    ),
    *("makes numpy raise", "exits later", "raises a generator's end", "gives the same buffer"),
    *("returns itself inside itself", "returns itself, a function", "returns an endless iterator"),
}


@pytest.mark.parametrize(
    ("fight", "jobs"),
    [
        (fight, jobs)
        for fight in FIGHTS
        for jobs in HOW
        if jobs == "1" or fight not in SAME_IN_WORKERS
    ],
)
def test_a_clear_end(fight, jobs, tmp_path, warm_python):
    body, expected = FIGHTS[fight]
    (tmp_path / "m.py").write_text(HEAD + "    " + textwrap.dedent(body) + "\n")
    command, claim = (
        ("audit", ["--epsilon", "3"]) if jobs == "1" and fight in LASTING else HOW[jobs]
    )
    inputs = ["--left", "0", "--right", "1", *claim, "--samples", "600", "--seed", "0"]
    limits = [
        "--max-seconds",
        "2" if expected == "max_seconds" else "40",
        "--jobs",
        jobs,
        "--json",
        "result.json",
    ]
    run = warm_python.run("-m", "epsilometer", command, "m:f", *inputs, *limits, cwd=tmp_path)
    said = f"status {run.returncode}\n{run.stdout}\n{run.stderr}"
    assert "Traceback" not in run.stderr.partition("in the child")[0], said
    assert "unexpected" not in run.stderr, said
    is_answer = run.returncode in (0, 1, 3)
    assert (tmp_path / "result.json").exists() == is_answer, said
    assert run.stdout.count("confidence") <= 2, said  # once, not by every fork
    if expected == ANSWER:
        assert is_answer, said
    elif expected != "either":
        assert run.returncode in (2, 130), said
        assert expected in (ERROR, *([] if expected not in run.stderr else [expected])), said


THROW = "(_ for _ in ()).throw({})"
WAYS = {
    "raises": THROW.format("ValueError()"),
    "exits": THROW.format("SystemExit(0)"),
    "lies": "-1",
}
ALL_OF_THEM = """
import json, sys
from epsilometer.cli import main
ends = {}
for name in json.load(open("names.json")):
    try:
        ends[name] = main([sys.argv[1], f"{name}:f", *sys.argv[2:], "--json", f"{name}.json"])
    except BaseException as error:
        ends[name] = repr(error)
    json.dump(ends, open("ends.json", "w"))
"""


@pytest.mark.parametrize("jobs", HOW)
@pytest.mark.parametrize(
    "special", ["eq", "hash", "array", "len", "bool", "repr", "iter", "float", "getattr"]
)
def test_objects_that_fight(special, jobs, tmp_path, warm_python):
    """An answer or an error each, one after the other in one program."""
    for way, said in WAYS.items():
        body = f"    Odd.__{special}__ = lambda *_, **__: {said}; return Odd(x + noise)\n"
        (tmp_path / f"{special}_{way}.py").write_text(HEAD + body)
    names = [f"{special}_{way}" for way in WAYS]
    (tmp_path / "names.json").write_text(json.dumps(names))
    command, claim = HOW[jobs]
    inputs = ["--left", "0", "--right", "1", *claim, "--samples", "600", "--seed", "0"]
    run = warm_python.run(
        "-c", ALL_OF_THEM, command, *inputs, "--max-seconds", "40", "--jobs", jobs, cwd=tmp_path
    )
    said = f"status {run.returncode}\n{run.stdout}\n{run.stderr}"
    ends = json.loads((tmp_path / "ends.json").read_text())
    assert list(ends) == names, said
    for name, status in ends.items():
        assert status in (0, 1, 2, 3), f"{name}: {said}"
        assert (tmp_path / f"{name}.json").exists() == (status != 2), f"{name}: {said}"
    assert "Traceback" not in run.stderr, said
    assert "unexpected" not in run.stderr, said


@pytest.mark.parametrize(
    ("epsilon", "extra"),
    [
        (3, []),
        (0.1, ["--jobs", "2"]),
        (0.1, ["--stop-early"]),
        (0.1, ["--stop-early", "--max-seconds", "60", "--jobs", "2"]),
        (0.1, ["--max-seconds", "60"]),
    ],
)
def test_warnings_as_errors(epsilon, extra, tmp_path):
    """In a process that starts as a user starts it: imports warn, too."""
    argv = [sys.executable, "-W", "error", "-m", "epsilometer", "audit", "zoo:laplace"]
    argv += ["--epsilon", str(epsilon), "--samples", "600", "--seed", "0"]
    run = subprocess.run([*argv, *extra], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == (epsilon < 1), run.stderr
    assert "Warning" not in run.stderr
