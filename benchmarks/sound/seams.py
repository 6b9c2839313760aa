"""Where parts meet: draws that chose an event, or that were lost and drawn again, must never prove anything.

Each scenario is a true claim and something that happens to its draws. A program that refuses by name is sound; the
table counts its refusals. To add a scenario, write a function of the seed and put `@seam(...)` above it.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer as em
from benchmarks.sound.cases import Rate, Run
from epsilometer.testing import Coin
from epsilometer_experiments.self import unlucky

PAIR = em.Pair(0, 1)
# The confidence of most scenarios, and the rate that it allows.
CONFIDENCE = 0.8
ALLOWED = 0.2

_SCENARIOS: list[Rate] = []


def seam(name: str, allowed: float = ALLOWED) -> Callable[[Run], Run]:
    """Puts a scenario into the table."""

    def add(run: Run) -> Run:
        _SCENARIOS.append(Rate("seams", name, allowed, run))
        return run

    return add


def cases() -> Iterator[Rate]:
    """All scenarios, and the awkward draws of `epsilometer reproduce self/unlucky`."""
    yield from _SCENARIOS
    experiment = unlucky.EXPERIMENT
    settings = {"samples": (1000,)}
    for case in experiment.cases(settings):
        run = partial(_is_unlucky, case, settings)
        yield Rate("seams", f"self/unlucky: {case.name}", round(unlucky.LEVEL, 9), run)


def _is_unlucky(case: Any, settings: dict[str, Any], seed: int) -> bool:
    return bool(unlucky.run_once(case, seed, settings)[unlucky.REFUTED])


# Different texts: so many that a few dozen training draws show differences where there are none, and so few that an
# event is chosen all the same. Replays on training draws are refuted in nearly every run.
_TEXTS = 25


def _equal_texts(n: int, rng: np.random.Generator) -> list[str]:
    """The same distribution on either side."""
    return [f"text {code}" for code in rng.integers(_TEXTS, size=n)]


# --- recordings: the draws that chose an event are in the file, too ---------------------------------------------------


@seam("replay on the recording that the audit made")
def _own_recording(seed: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.jsonl"
        how: dict[str, Any] = {
            "samples": 200,
            "seed": seed,
            "confidence": CONFIDENCE,
            "record": path,
        }
        mechanism = em.from_batch(lambda dataset, n, rng: _equal_texts(n, rng))
        found = em.audit(mechanism, PAIR, em.PureDP(0.0), **how)
        return em.replay(found, em.from_recording(path), samples=60, seed=seed + 1).is_refuted


@seam("replay on the recording that was audited")
def _same_recording(seed: int) -> bool:
    """The file holds more than the audit used."""
    with tempfile.TemporaryDirectory() as folder:
        left, right = _write_sides(Path(folder), 300, seed)
        recording = em.from_recording(left, right, pair=PAIR)
        found = em.audit(
            recording, None, em.PureDP(0.0), samples=200, seed=seed, confidence=CONFIDENCE
        )
        again = em.from_recording(left, right, pair=PAIR)
        return em.replay(found, again, samples=60, seed=seed + 1).is_refuted


@seam("replay of a comparison on the files that were compared")
def _compared_files(seed: int) -> bool:
    """A comparison shuffles its files: any of their rows may have chosen the event."""
    with tempfile.TemporaryDirectory() as folder:
        left, right = _write_sides(Path(folder), 200, seed)
        recording = em.from_recording(left, right, pair=PAIR)
        found = em.compare(
            recording.left, recording.right, em.PureDP(0.0), seed=seed, confidence=CONFIDENCE
        )
        again = em.from_recording(left, right, pair=PAIR)
        return em.replay(found, again, samples=200, seed=seed + 1, pair=PAIR).is_refuted


def _write_sides(folder: Path, n: int, seed: int) -> tuple[Path, Path]:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(78,)))
    paths = folder / "left.jsonl", folder / "right.jsonl"
    for path in paths:
        lines = (json.dumps(text) for text in _equal_texts(n, rng))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


# --- retried requests: a lost answer is replaced by another one -------------------------------------------------------


class _Gateway(BaseHTTPRequestHandler):
    """Tosses a fair coin for either input, and loses some of its answers."""

    def do_POST(self) -> None:
        """One output, or the status of a failure."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        with server.lock:
            output = int(server.rng.random() < 0.5)
            status = server.behave(request["dataset"], output, server.rng)
        body = json.dumps(output).encode() if status == 200 else b"{}"
        self.send_response(status)
        if status in (429, 503):
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


Behaviour = Callable[[int, int, np.random.Generator], int]


@contextmanager
def _serving(behave: Behaviour, seed: int) -> Iterator[str]:
    """A service on loopback, and its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Gateway)
    server.daemon_threads = True
    server.rng = np.random.default_rng(seed)  # type: ignore[attr-defined]
    server.lock = threading.Lock()  # type: ignore[attr-defined]
    server.behave = behave  # type: ignore[attr-defined]
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _loses_after_the_work(status: int, dataset: int, output: int, rng: np.random.Generator) -> int:
    """The gateway gives up on half of the 1s of one input and of the 0s of the other."""
    is_slow = output == 1 - dataset
    return status if is_slow and rng.random() < 0.5 else 200


def _turns_away_before_the_work(dataset: int, output: int, rng: np.random.Generator) -> int:
    """Busy at times, more often for one input: no output depends on it."""
    return 503 if rng.random() < (0.2 if dataset else 0.05) else 200


def _audit_service(behave: Behaviour, seed: int) -> bool | None:
    with _serving(behave, seed) as address:
        mechanism = em.from_http(address, pause=0.001, timeout=10.0)
        try:
            how: dict[str, Any] = {"samples": 200, "seed": seed, "confidence": CONFIDENCE}
            return em.audit(mechanism, PAIR, em.PureDP(0.1), **how).is_refuted
        except (
            em.MechanismError
        ):  # an answer was lost: it must not be drawn again, so there is no bound
            return None


for _status in (502, 504, 500):
    seam(f"answers lost with status {_status}, by their value")(
        partial(_audit_service, partial(_loses_after_the_work, _status))
    )
seam("requests turned away with status 503, whatever the output")(
    partial(_audit_service, _turns_away_before_the_work)
)


# --- resumptions: an interrupted batch is drawn again -----------------------------------------------------------------


class _Interrupted:
    """A fair coin without a seed, whose user interrupts the audit when too many outputs in a row are unwelcome.

    Nothing is ever lost inside a call: an interruption comes before the next output is drawn, and depends on earlier
    outputs only. A program that keeps what it has drawn is sound. One that draws an unfinished batch again ends with
    batches in which unwelcome outputs never led.
    """

    def __init__(self, seed: int, lead_at_interruption: int) -> None:
        self.rng = np.random.default_rng(seed)
        # By how many outputs the unwelcome ones must lead.
        self.lead_at_interruption = lead_at_interruption
        self.dataset = 0
        self.lead = 0

    def __getstate__(self) -> dict[str, Any]:
        """What it has drawn is no part of its code, by which a checkpoint recognises it."""
        return {}

    def draw(self, dataset: int) -> int:
        """One output; 0 is unwelcome on the left, 1 on the right."""
        if dataset != self.dataset:
            self.dataset, self.lead = dataset, 0
        if self.lead >= self.lead_at_interruption:
            self.lead = 0
            raise KeyboardInterrupt
        output = int(self.rng.random() < 0.5)
        self.lead += 1 if output == dataset else -1
        return output


def _resume_until_done(seed: int, *, lead_at_interruption: int, **how: Any) -> bool | None:
    """Calls the audit again after every interruption; None if it never comes to its end."""
    coin = _Interrupted(seed, lead_at_interruption)

    def toss(dataset: int) -> int:
        return coin.draw(dataset)

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        for _ in range(_MOST_RESUMPTIONS):
            keywords = {"seed": seed, "confidence": CONFIDENCE, "checkpoint": checkpoint, **how}
            try:
                return em.audit(em.from_callable(toss), PAIR, em.PureDP(0.0), **keywords).is_refuted
            except KeyboardInterrupt:
                continue
    return None


# After so many interruptions a run is given up.
_MOST_RESUMPTIONS = 400


@seam("early stop resumed after interruptions, unseeded", allowed=0.5)
def _resumed_early_stop(seed: int) -> bool | None:
    """With few and large batches: the larger, the more is drawn again."""
    how: dict[str, Any] = {"samples": 60, "stop_early": True, "confidence": 0.5}
    how["options"] = em.sequential.Options(pilot=20, growth=0.5)
    return _resume_until_done(seed, lead_at_interruption=2, **how)


@seam("audit resumed after interruptions, unseeded")
def _resumed_audit(seed: int) -> bool | None:
    return _resume_until_done(seed, lead_at_interruption=2, samples=100)


# --- published procedures: chance that is not of the audit's seed -----------------------------------------------------

# Draws per side at which the constant seed that the certificate had in 2026 made a mixture with a lucky composition:
# 90 % of true claims were refuted at a confidence of 2/3.
_LUCKY_SAMPLES = 3574
_UNLUCKY_COIN = Coin(0.06 * math.exp(0.8), 0.06)


def _published_hockey_stick(samples: int, confidence: float, seed: int) -> bool:
    claim = em.PureDP(_UNLUCKY_COIN.truth(em.PureDP(0.0)))
    how: dict[str, Any] = {"samples": samples, "seed": seed, "confidence": confidence}
    how |= {"method": "hockey-stick", "options": {"certificate": "published"}}
    return em.audit(_UNLUCKY_COIN, None, claim, **how).is_refuted


for _confidence in (2 / 3, 0.8):
    for _samples in (_LUCKY_SAMPLES, _LUCKY_SAMPLES + 1000):
        seam(
            f"published hockey-stick, {_samples} draws at {_confidence:.0%}",
            round(1.0 - _confidence, 9),
        )(partial(_published_hockey_stick, _samples, _confidence))


# --- numbers: orders next to 1 ----------------------------------------------------------------------------------------


def _order_next_to_one(step: float, stop_early: bool, seed: int) -> bool:
    """The divergence is half of the claimed one."""
    claim = em.RenyiDP(1.0 + step, 0.01)
    how: dict[str, Any] = {
        "samples": 1000,
        "seed": seed,
        "confidence": CONFIDENCE,
        "stop_early": stop_early,
    }
    return em.audit(Coin(0.5, 0.55), None, claim, **how).is_refuted


for _step in (1e-6, 1e-14, 3e-16):
    for _stop_early in (False, True):
        seam(f"Rényi of order 1 + {_step:g}{', early stop' if _stop_early else ''}")(
            partial(_order_next_to_one, _step, _stop_early)
        )


# --- other libraries: the claim of the pair that was found ------------------------------------------------------------


def _measurement(kind: str) -> Any:
    import opendp.prelude as opendp

    opendp.enable_features("contrib", "floating-point")
    if kind == "number":
        domain = opendp.atom_domain(T=float, nan=False)
        return opendp.m.make_laplace(domain, opendp.absolute_distance(T=float), scale=1.0)
    domain = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=3)
    return opendp.m.make_laplace(domain, opendp.l1_distance(T=float), scale=1.0)


def _searched_measurement(kind: str, relation: str, seed: int) -> bool | None:
    """A right measurement without a claim: its own map is the claim, at the distance of the pair that is found."""
    try:
        measurement = _measurement(kind)
    except ImportError:
        return None
    domain: Any = (
        em.domains.Number(0, 10) if kind == "number" else em.domains.Vector(3, low=0, high=4)
    )
    finder = em.finders.Random(domain, relation, trials=4, samples=100, seed=seed)
    how: dict[str, Any] = {"samples": 300, "seed": seed, "confidence": CONFIDENCE}
    return em.audit(measurement, finder, **how).is_refuted


seam("OpenDP number, searched, its own map")(partial(_searched_measurement, "number", "replace"))
seam("OpenDP vector, searched, its own map, linf")(partial(_searched_measurement, "vector", "linf"))
seam("OpenDP vector, searched, its own map, replace")(
    partial(_searched_measurement, "vector", "replace")
)
