"""DP-Auditorium's testers, made sound: what they prove, how long they take, how often they are wrong.

The bars on time are shares of what DP-Auditorium's testers take for 50 000 outputs per input on a quiet machine.
"""

from __future__ import annotations

import time
from typing import Any

import epsilometer as em
from epsilometer.claims import Claim
from epsilometer_experiments.experiment import (
    BAR,
    PROMISED,
    Case,
    Experiment,
    Numbers,
    Rate,
    Settings,
    Target,
)
from epsilometer_experiments.options import Option, words
from epsilometer_experiments.self.measuring import entry_of

BOUND, ABOVE, SECONDS = "mean certified bound", "share above the truth", "processor seconds"
_NOTIONS: dict[str, type[Claim]] = {"pure": em.PureDP, "approx": em.ApproxDP, "renyi": em.RenyiDP}
_ONLY = Option("method", "only methods that begin with one of these words", (), words)


def _case(
    method: str,
    entry: str,
    notion: str,
    samples: int,
    *,
    bars: dict[str, Target] | None = None,
    **rest: Any,
) -> Case:
    """One line: a method with options on a zoo entry, asked for one notion."""
    options = {
        name.removeprefix("option_"): value
        for name, value in rest.items()
        if name.startswith("option_")
    }
    fixed = {name: value for name, value in rest.items() if not name.startswith("option_")}
    told = " ".join(
        [*(f"{name}={value:g}" for name, value in fixed.items()), *map(str, options.values())]
    )
    parameters = {"method": method, "entry": entry, "notion": notion, "samples": samples}
    name = f"{method} {entry} {notion} {told} n={samples}".replace("  ", " ")
    return Case(name, {**parameters, "options": options, "fixed": fixed}, bars or {})


def _least(value: float) -> dict[str, Target]:
    return {BOUND: Target(value, "≥", source=BAR)}


def _at_most(seconds: float) -> dict[str, Target]:
    return {SECONDS: Target(seconds, "≤", source=BAR)}


def _power_cases(settings: Settings) -> list[Case]:
    laplace, gaussian = "laplace?epsilon=1", "gaussian?sigma=1"
    cases = [
        _case("renyi-variational", gaussian, "renyi", 100_000, order=1.5, bars=_least(0.68)),
        _case("renyi-variational", gaussian, "renyi", 100_000, order=2.0, bars=_least(0.88)),
        _case(
            "renyi-variational",
            gaussian,
            "renyi",
            100_000,
            order=2.0,
            option_family="network",
            bars=_least(0.88),
        ),
        _case(
            "renyi-variational",
            gaussian,
            "renyi",
            100_000,
            order=1.5,
            option_certificate="published",
        ),
        _case(
            "renyi-variational",
            gaussian,
            "renyi",
            100_000,
            order=2.0,
            option_certificate="published",
        ),
        _case("renyi-variational", laplace, "pure", 100_000),
        _case("renyi-variational", laplace, "pure", 100_000, option_threshold="published"),
        _case("hockey-stick", laplace, "approx", 100_000, epsilon=0.5, bars=_least(0.21)),
        _case(
            "hockey-stick", laplace, "approx", 100_000, epsilon=0.5, option_certificate="published"
        ),
        _case("poisson-histogram", laplace, "approx", 100_000, epsilon=0.5),
        _case("mmd", laplace, "pure", 100_000),
        _case("mmd", laplace, "pure", 100_000, option_threshold="total-variation"),
        _case("mmd", laplace, "pure", 100_000, option_certificate="published"),
        # A fifth of the peer's time, half of it for the network; compiling included.
        _case("hockey-stick", laplace, "approx", 50_000, epsilon=0.5, bars=_at_most(1.9)),
        _case("renyi-variational", gaussian, "renyi", 50_000, order=2.0, bars=_at_most(1.9)),
        _case(
            "renyi-variational",
            gaussian,
            "renyi",
            50_000,
            order=2.0,
            option_family="network",
            bars=_at_most(4.8),
        ),
        _case("mmd", laplace, "pure", 50_000, bars=_at_most(0.32)),
    ]
    return [case for case in cases if _wanted(case, settings)]


def _coverage_cases(settings: Settings) -> list[Case]:
    rate: dict[str, Target] = {ABOVE: Rate(0.05, "≤", source=PROMISED)}
    cases = []
    for entry in (
        "laplace?epsilon=.5",
        "randomized_response?epsilon=.5",
        "clamped_laplace?epsilon=.5",
    ):
        cases += [
            _case("hockey-stick", entry, "pure", 4000, bars=rate),
            _case("hockey-stick", entry, "pure", 4000, option_certificate="published", bars=rate),
            _case("poisson-histogram", entry, "pure", 4000, bars=rate),
            _case("renyi-variational", entry, "pure", 4000, bars=rate),
            _case("mmd", entry, "pure", 4000, bars=rate),
            _case("mmd", entry, "pure", 4000, option_threshold="total-variation", bars=rate),
            _case("mmd", entry, "pure", 4000, option_certificate="published", bars=rate),
        ]
    cases += [
        _case("renyi-variational", "gaussian?sigma=1", "renyi", 4000, order=2.0, bars=rate),
        _case(
            "renyi-variational",
            "randomized_response?epsilon=1",
            "renyi",
            4000,
            order=1.5,
            bars=rate,
        ),
        _case("hockey-stick", "gaussian?sigma=1", "approx", 4000, epsilon=0.5, bars=rate),
        _case("poisson-histogram", "gaussian?sigma=1", "approx", 4000, epsilon=0.5, bars=rate),
        _case("hockey-stick", "laplace_vector?epsilon=1&dimension=3", "pure", 6000, bars=rate),
    ]
    return [case for case in cases if _wanted(case, settings)]


def _wanted(case: Case, settings: Settings) -> bool:
    return not settings["method"] or any(case.name.startswith(word) for word in settings["method"])


def run_once(case: Case, seed: int, settings: Settings) -> Numbers:
    """One measurement: bound, processor time of the whole of it, and whether it is above the truth."""
    told = case.parameters
    entry, notion = entry_of(told["entry"]), _NOTIONS[told["notion"]]
    rooms = {
        "hockey-stick": em.auditorium.hockey_stick,
        "mmd": em.auditorium.mmd,
        "renyi-variational": em.auditorium.renyi_variational,
    }
    options = rooms[told["method"]].Options(**told["options"]) if told["options"] else None
    began = time.process_time()
    settings_of_run = {
        "samples": told["samples"],
        "seed": seed,
        "method": told["method"],
        "options": options,
    }
    result = em.measure(entry, None, notion, **settings_of_run, **told["fixed"])
    seconds = time.process_time() - began
    truth = entry.truth(notion, **told["fixed"])
    numbers = {BOUND: result.lower_bound, SECONDS: seconds}
    return numbers if truth is None else {**numbers, ABOVE: float(result.lower_bound > truth)}


EXPERIMENTS = (
    Experiment(
        name="beyond/testers",
        summary="DP-Auditorium's testers: bounds and time",
        runs=20,
        cases=_power_cases,
        run_once=run_once,
        options=(_ONLY,),
        parallel=False,
    ),
    Experiment(
        name="beyond/testers-coverage",
        summary="the same: how often a bound is above the truth",
        runs=400,
        cases=_coverage_cases,
        run_once=run_once,
        options=(_ONLY,),
    ),
)
