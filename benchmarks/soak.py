"""`make soak MINUTES=10`: random audits in random modes with random faults, each compared with the undisturbed one.

Every case is a command that runs in a folder of its own. First it runs without a fault; then again elsewhere, where it
is killed, interrupted, starved of disk, hung up on or lied to about the time, and started again until it comes to its
end. The two results must be equal, files that were there before must be whole, and neither processes nor temporary
files may stay. Stops by itself after the given time; the exit status is 0 if nothing was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The mechanisms look for files in their folder: `hang` makes one call hang once, `jump` makes clocks jump.
MECHANISMS = """
import os, time

_draws = 0

def _disturb():
    global _draws
    _draws += 1
    if _draws % 50 == 0:
        if os.path.exists("jump"):
            time.time, _old = (lambda: _old() + 1e6 * (-1) ** _draws), time.time
        if os.path.exists("hang"):
            os.remove("hang")
            time.sleep(600)

def single(x, rng):
    _disturb()
    time.sleep(0.0002)
    return x + rng.laplace()

def word(x, rng):
    _disturb()
    return "ab"[int(rng.random() < 0.4 + 0.2 * x)]

def row(x, rng):
    _disturb()
    return {"count": x + rng.laplace(), "city": "xyz"[int(rng.integers(3))], "missing": None}

def batch(x, n, rng):
    _disturb()
    time.sleep(0.01)
    return rng.laplace(x, 1.0, (n, 2))
"""
PLAIN = ["--left", "0", "--right", "1"]
SINGLE = [("single", 2000), ("word", 3000), ("row", 2000)]
SIGNALS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "interrupt": signal.SIGINT,
    "hang up": signal.SIGHUP,
}
# One fault per case: what is done to a running command, or how it is started.
FAULTS = (*SIGNALS, "kill a worker", "full disk", "closed pipe", "hang", "clock jump")
# What may differ between two runs of one audit.
PASSING = ("seconds", "date", "environment", "identity")
# A command that takes longer is stuck. Restarts after a fault, and seconds after which one strikes at the latest.
STUCK, MOST_STARTS, LATEST = 120.0, 6, 2.5
MARK = "EPSILOMETER_SOAK"


@dataclass(frozen=True)
class Case:
    """One audit and what is done to it."""

    number: int
    arguments: tuple[str, ...]
    fault: str

    @classmethod
    def draw(cls, number: int, rng: random.Random) -> Case:
        """A random audit with a random fault."""
        fault = rng.choice(FAULTS)
        name, samples = rng.choice([*SINGLE, ("batch", 400_000)])
        mode = rng.choice(["fixed", "fixed", "early", "finder", "bits"])
        arguments = ["audit", f"soak_mechanisms:{name}", "--epsilon", "1.5", "--seed", str(number)]
        arguments += ["--batch"] if name == "batch" else []
        if mode == "finder":
            arguments += ["--finder", "random", "--domain", "number:0:1", "--trials", "4"]
            arguments += [
                "--trial-samples",
                str(max(samples // 20, 100)),
                "--samples",
                str(samples // 2),
            ]
        else:
            arguments += [*PLAIN, "--samples", str(samples)]
        arguments += {"early": ["--stop-early"], "bits": ["--representation", "all"]}.get(mode, [])
        arguments += ["--jobs", "2"] if fault == "kill a worker" or rng.random() < 0.4 else []
        return cls(number, tuple(arguments), fault)


@contextmanager
def workplace(case: Case, kind: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder for one case, with a folder for temporary files, and the environment that goes with them."""
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{case.number}-{kind}-"))
    (folder / "tmp").mkdir()
    (folder / "soak_mechanisms.py").write_text(MECHANISMS, encoding="utf-8")
    mark = f"{os.getpid()}-{case.number}-{kind}"
    own = {
        "TMPDIR": str(folder / "tmp"),
        MARK: mark,
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLCONFIGDIR": str(folder),
    }
    try:
        yield folder, {**os.environ, **own}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command_of(case: Case) -> list[str]:
    """The command of a case; it resumes from its checkpoint."""
    return [
        sys.executable,
        "-m",
        "epsilometer",
        *case.arguments,
        "--json",
        "r.json",
        "--checkpoint",
        "checkpoint",
    ]


def run_once(
    case: Case,
    folder: Path,
    environment: dict[str, str],
    strike: Callable[[subprocess.Popen[bytes]], None] | None,
) -> int:
    """Starts the command, lets a fault strike, and waits for its end. 124 stands for a command that is stuck."""
    command = command_of(case)
    keywords: dict[str, Any] = {}
    if strike is not None and case.fault == "full disk":
        size = random.Random(case.number).choice([0, 512, 4096])
        keywords["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if strike is not None and case.fault == "hang":
        command += ["--max-seconds", "8"]
    log = (folder / "log").open("ab")
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, **keywords
    ) as run:
        assert run.stdout is not None
        try:
            if strike is not None:
                strike(run)
            if not run.stdout.closed:
                run.communicate(timeout=STUCK)
            return run.wait(STUCK)
        except subprocess.TimeoutExpired:
            run.kill()
            return 124
        finally:
            log.close()


def striker(
    case: Case, folder: Path, rng: random.Random
) -> Callable[[subprocess.Popen[bytes]], None]:
    """What is done to the running command."""

    def strike(run: subprocess.Popen[bytes]) -> None:
        if case.fault in SIGNALS:
            time.sleep(rng.uniform(0.2, LATEST))
            run.send_signal(SIGNALS[case.fault])
        elif case.fault == "kill a worker":
            time.sleep(rng.uniform(0.5, LATEST))
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
            pids = children.read_text().split() if children.exists() else []
            if pids:
                os.kill(int(rng.choice(pids)), signal.SIGKILL)
        elif case.fault == "closed pipe":
            assert run.stdout is not None
            run.stdout.close()

    if case.fault in ("hang", "clock jump"):
        (folder / case.fault.split()[-1]).touch()
    return strike


def stored(folder: Path) -> dict[str, Any] | None:
    """The stored result, without what may differ; None if there is none."""
    path = folder / "r.json"
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8").replace(str(folder), "")  # names of files are whole
    result: dict[str, Any] = json.loads(text)
    for name in PASSING:
        result.pop(name, None)
    return result


def leftovers(folder: Path, environment: dict[str, str]) -> list[str]:
    """Temporary files and processes that outlived the command."""
    # A killed SQLite leaves the journal by which the next one takes back what was half written.
    known = {
        "soak_mechanisms.py",
        "tmp",
        "r.json",
        "checkpoint",
        "checkpoint-journal",
        "log",
        "hang",
        "jump",
    }
    known |= {path.name for path in folder.glob("fontlist*")} | {
        path.name for path in folder.glob("*.matplotlib-lock")
    }
    found = [path.name for path in folder.iterdir() if path.name not in known]
    found += [f"tmp/{path.name}" for path in (folder / "tmp").iterdir()]
    mark = f"{MARK}={environment[MARK]}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [f"process {place.parent.name}"] if mark in place.read_bytes() else []
        except OSError:  # gone, or somebody else's
            continue
    return found


def try_case(case: Case, rng: random.Random) -> list[str]:
    """What went wrong; nothing if the disturbed audit came to the result of the undisturbed one."""
    with workplace(case, "whole") as (folder, environment):
        status, expected = run_once(case, folder, environment, None), stored(folder)
        if status not in (0, 1, 3) or expected is None:
            return [
                f"undisturbed: status {status}: {(folder / 'log').read_text(errors='replace')[-300:]}"
            ]
    wrong: list[str] = []
    with workplace(case, "disturbed") as (folder, environment):
        disturbed = run_once(case, folder, environment, striker(case, folder, rng))
        if disturbed == 124:
            wrong.append("stuck after the fault")
        time.sleep(1.0)
        left = leftovers(folder, environment)
        if case.fault == "kill":  # nobody can clean up after SIGKILL, but workers must notice it
            left = [each for each in left if each.startswith("process")]
        wrong += [f"left behind: {each}" for each in left]
        for name in ("hang", "jump"):
            (folder / name).unlink(missing_ok=True)
        for _ in range(MOST_STARTS):
            if run_once(case, folder, environment, None) in (0, 1, 3):
                break
        else:
            text = (folder / "log").read_text(errors="replace")[-300:]
            return [*wrong, f"does not come to its end any more after status {disturbed}: {text}"]
        if "Traceback" in (folder / "log").read_text(errors="replace"):
            wrong.append("a traceback: " + (folder / "log").read_text(errors="replace")[-300:])
        result = stored(folder)
        if result != expected:
            names = [
                name for name in expected if result is None or result.get(name) != expected[name]
            ]
            wrong.append(f"another result, in {', '.join(names)}")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Runs cases until the time is over, and prints what came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--seed", type=int, default=None, help="makes the cases repeatable [default: fresh]"
    )
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 31) if chosen.seed is None else chosen.seed
    rng, ends = random.Random(seed), time.monotonic() + 60.0 * chosen.minutes
    print(f"soak: seed {seed}, {chosen.minutes:g} minutes", flush=True)
    audits, faults, problems = 0, Counter[str](), 0
    while time.monotonic() < ends:
        case = Case.draw(audits, rng)
        wrong = try_case(case, rng)
        audits, faults[case.fault] = audits + 1, faults[case.fault] + 1
        for each in wrong:
            problems += 1
            print(f"soak: {case.fault}: {' '.join(case.arguments)}: {each}", flush=True)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))
    print(
        f"soak: {audits} audits, each undisturbed and with a fault ({counts}); {problems} problems",
        flush=True,
    )
    return min(problems, 1)


if __name__ == "__main__":
    sys.exit(main())
