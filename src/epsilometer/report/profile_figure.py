"""Pictures of a privacy profile: its data as plain arrays, and a thin layer that draws them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDP, Claim
from epsilometer.environment import package_version
from epsilometer.errors import InputError
from epsilometer.report import figures
from epsilometer.report.html import TONES, page_environment
from epsilometer.report.wording import (
    bound_against,
    figure_down,
    percent,
    plain,
    recorded_rows,
    reservations,
)
from epsilometer.storage.writing import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from epsilometer.auditing.profile import Profile

_KINDS = (".svg", ".png", ".pdf")
_CERTIFIED, _EXACT = "#0b6b69", "#59616b"
# Claims differ in colour and dashes, so that a print in grey tells them apart, too.
_DASHES: dict[str, Any] = {
    "#b3261e": "--",
    "#7a4fb5": "-.",
    "#9a6700": (0, (1, 1)),
    "#1f5fa8": (0, (5, 1, 1, 1, 1, 1)),
}
_STYLES = tuple({"color": color, "linestyle": dashes} for color, dashes in _DASHES.items())


@dataclass(frozen=True, slots=True)
class ProfileCurves:
    """What the two pictures show.

    Attributes:
        deltas: shape (k,), where ε is drawn.
        epsilons: certified lower bounds.
        claimed_epsilons: for every claim the least ε that it still allows at each δ.
        exact_epsilons: the truth; None if it was not given.
        errors: shape (j,), type-I errors.
        powers: certified lower bounds on the power.
        claimed_powers: for every claim what it allows.
    """

    deltas: Floats
    epsilons: Floats
    claimed_epsilons: tuple[Floats, ...]
    exact_epsilons: Floats | None
    errors: Floats
    powers: Floats
    claimed_powers: tuple[Floats, ...]


def profile_curves(
    profile: "Profile", claims: Sequence[Claim] = (), exact: Any = None
) -> ProfileCurves:
    """The data of both pictures."""
    deltas = np.geomspace(1e-8, 0.9, 160)
    errors = np.linspace(0.0, 1.0, 201)
    truth = _as_function(exact)
    epsilons = np.array([profile.epsilon(float(delta)) for delta in deltas])
    claimed = tuple(_claimed_epsilons(claim, deltas) for claim in claims)
    known = None if truth is None else np.array([truth(float(delta)) for delta in deltas])
    powers = np.array([profile.power(float(error)) for error in errors])
    allowed = tuple(np.asarray(claim.max_power(errors)) for claim in claims)
    return ProfileCurves(deltas, epsilons, claimed, known, errors, powers, allowed)


def _claimed_epsilons(claim: Claim, deltas: Floats) -> Floats:
    """The ε that the claim's own curve implies at each δ: the largest over its points."""
    errors = np.concatenate([np.geomspace(1e-12, 1e-2, 120), np.linspace(0.01, 0.99, 99)])
    power = np.asarray(claim.max_power(errors))
    # rows are values of δ, columns points and their complements
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.log(np.maximum(power - deltas[:, None], 0.0) / errors)
        back = np.log(np.maximum(1.0 - errors - deltas[:, None], 0.0) / (1.0 - power))
    return np.asarray(
        np.maximum(np.nanmax(np.hstack([there, back]), axis=1), 0.0), dtype=np.float64
    )


def _as_function(exact: Any) -> Callable[[float], float] | None:
    if exact is None:
        return None
    if hasattr(exact, "get_epsilon_for_delta"):  # a privacy-loss distribution of dp-accounting
        return lambda delta: float(exact.get_epsilon_for_delta(delta))
    if hasattr(exact, "truth"):  # an entry of the zoo; None is unknown
        return lambda delta: float(np.array(exact.truth(ApproxDP, delta=delta), dtype=np.float64))
    if callable(exact):
        return lambda delta: float(exact(delta))
    raise InputError(
        f"exact={exact!r:.100} must be a function from δ to ε, a zoo entry or a privacy-loss distribution"
    )


def draw_profile(profile: "Profile", claims: Sequence[Claim] = (), exact: Any = None) -> "Figure":
    """ε over δ on the left, power over type-I error on the right."""
    from matplotlib.figure import Figure

    data = profile_curves(profile, claims, exact)
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    curve, tests = figure.subplots(1, 2)
    certified = f"certified, {percent(profile.confidence)} for all points together"
    curve.fill_between(data.deltas, data.epsilons, color=_CERTIFIED, alpha=0.15, linewidth=0)
    curve.plot(data.deltas, data.epsilons, color=_CERTIFIED, label=certified)
    if data.exact_epsilons is not None:
        curve.plot(data.deltas, data.exact_epsilons, color=_EXACT, linestyle=":", label="exact")
    styles = list(zip(claims, cycle(_STYLES)))
    for (claim, style), epsilons in zip(styles, data.claimed_epsilons, strict=True):
        curve.plot(data.deltas, epsilons, label=claim.describe(), **style)
    curve.set(xscale="log", xlabel="δ", ylabel="ε at least", ylim=(0.0, None))
    curve.legend(frameon=False, fontsize="small")
    tests.plot(data.errors, data.powers, color=_CERTIFIED)
    for (_, style), powers in zip(styles, data.claimed_powers, strict=True):
        tests.plot(data.errors, powers, **style)
    tests.plot([0, 1], [0, 1], color=_EXACT, linewidth=0.7)
    tests.set(xlabel="type-I error", ylabel="power at least", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return figure


def render_profile(profile: "Profile", claims: Sequence[Claim]) -> str:
    """A page that needs nothing else: the claims, the figures and the curves, and the profile itself as data."""
    from markupsafe import Markup

    from epsilometer.auditing.profile import SHOWN_DELTAS

    checks = [profile.check(claim) for claim in claims]
    with figures.styled():
        drawn = draw_profile(profile, [check.claim for check in checks])
    picture = figures.page_svg(drawn, "ε over δ, and power over type-I error", "profile")
    readings = [(f"ε at δ = {delta:g}", profile.epsilon(delta)) for delta in SHOWN_DELTAS] + [
        ("μ", profile.mu)
    ]
    shown = {
        "plain": plain,
        "down": figure_down,
        "against": bound_against,
        "percent": percent,
        "tones": TONES,
    }
    stored = json.dumps(profile.to_dict(), indent=1)
    settings = dict(profile.settings)
    if (rows := recorded_rows(settings)) is not None:  # the whole is in the JSON below
        settings["recording"] = rows
    shown |= {"weakened": reservations(profile.settings), "settings": settings}
    shown |= {
        "profile": profile,
        "checks": checks,
        "readings": readings,
        "picture": Markup(picture),
        "json": stored,
    }
    return (
        page_environment().get_template("profile.html.j2").render(shown, version=package_version())
    )


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes the picture, the same bytes every time."""
    if path.suffix.lower() not in _KINDS:
        raise InputError(f"path={str(path)!r} must end in {', '.join(_KINDS)}")
    import matplotlib

    kind = path.suffix.lower()
    with (
        writing(path) as file,
        matplotlib.rc_context({"svg.hashsalt": "epsilometer", "svg.fonttype": "path"}),
    ):
        figure.savefig(file, format=kind[1:], metadata={"Date": None} if kind == ".svg" else None)
