"""The numbers of the paper's tables. A dash there is missing here."""

from __future__ import annotations

from epsilometer_experiments.auditorium.settings import EPSILONS, SIZES, TESTERS

# Table 1: detections in ten runs, by mechanism and ε, four testers at n = 50, 100 and 500 thousand.
_NEVER, _ALWAYS = (0, 0, 0), (10, 10, 10)
_AT_ONE_BY_HOCKEY_STICK = (_NEVER, _ALWAYS, _NEVER, _NEVER)
_NO_HISTOGRAM = (None, _NEVER, _NEVER, _NEVER)
_DETECTIONS = {
    "NonDPLaplace1": ((_NEVER, (9, 8, 9), _ALWAYS, (10, 9, 10)), _AT_ONE_BY_HOCKEY_STICK),
    "NonDPLaplace2": ((_ALWAYS, _ALWAYS, (10, 7, 5), (0, 1, 0)), (_NEVER,) * 4),
    "NonDPGaussian1": ((_NEVER, _NEVER, _ALWAYS, (10, 4, 10)), _AT_ONE_BY_HOCKEY_STICK),
    "NonDPGaussian2": ((_NEVER, (6, 5, 5), _ALWAYS, _NEVER), (_NEVER,) * 4),
    "SVT3": (_NO_HISTOGRAM, _NO_HISTOGRAM),
    "SVT4": ((None, _NEVER, _NEVER, (1, 2, 0)), (None, _ALWAYS, _NEVER, _NEVER)),
    "SVT5": (_NO_HISTOGRAM, (None, _ALWAYS, _NEVER, _NEVER)),
    "SVT6": (_NO_HISTOGRAM, (None, _ALWAYS, _NEVER, _NEVER)),
}

# Table 2: mean trials to a violation, 50 at most, n = 500 thousand and ε = .01; testers in the order above.
_TRIALS = {
    "Bayesian": {
        "NonDPLaplace1": (50.0, 1.2, 1.0, 1.0),
        "NonDPLaplace2": (8.3, 2.5, 9.5, 12.3),
        "NonDPGaussian1": (50.0, 50.0, 1.0, 1.0),
        "NonDPGaussian2": (50.0, 19.1, 3.6, 47.3),
    },
    "Random": {
        "NonDPLaplace1": (50.0, 1.3, 1.0, 1.0),
        "NonDPLaplace2": (10.1, 1.5, 3.6, 12.3),
        "NonDPGaussian1": (50.0, 50.0, 1.0, 1.0),
        "NonDPGaussian2": (50.0, 45.6, 1.2, 47.3),
    },
    "Grid": {
        "NonDPLaplace1": (50.0, 1.1, 1.0, 1.0),
        "NonDPLaplace2": (50.0, 30.2, 3.0, 12.3),
        "NonDPGaussian1": (50.0, 50.0, 1.0, 1.0),
        "NonDPGaussian2": (50.0, 50.0, 11.3, 47.3),
    },
}
# Every sparse vector technique took all 50 trials, with every finder and tester that applies.
_NEVER_FOUND = (None, 50.0, 50.0, 50.0)


def detection_rate(title: str, epsilon: float, tester: str, samples: int) -> float | None:
    """Table 1, as a share of the ten runs; None where the paper has no number."""
    if (
        title not in _DETECTIONS
        or epsilon not in EPSILONS
        or tester not in TESTERS
        or samples not in SIZES
    ):
        return None
    counts = _DETECTIONS[title][EPSILONS.index(epsilon)][TESTERS.index(tester)]
    return None if counts is None else counts[SIZES.index(samples)] / 10


def mean_trials(title: str, finder: str, tester: str) -> float | None:
    """Table 2; None where the paper has no number."""
    if tester not in TESTERS:
        return None
    row = _TRIALS[finder].get(
        title, _NEVER_FOUND if title.startswith("SVT") else (None,) * len(TESTERS)
    )
    return row[TESTERS.index(tester)]


def fewest_trials(title: str) -> float | None:
    """Table 2: the paper's best tester and finder together."""
    known = [mean_trials(title, finder, tester) for finder in _TRIALS for tester in TESTERS]
    return min((trials for trials in known if trials is not None), default=None)
