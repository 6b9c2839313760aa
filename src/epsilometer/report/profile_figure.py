"""A privacy profile in pictures and as a page: its curves as plain arrays, and what draws them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import ApproxDP, Claim
from epsilometer.errors import InputError
from epsilometer.report import figures
from epsilometer.report.formatting import figure_down, percent, plain
from epsilometer.report.html import page_environment, shown_settings
from epsilometer.report.reservations import reservations
from epsilometer.report.wording import ReportRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from epsilometer.auditing.profile import Profile

# Inches.
_SIZE = (9.0, 3.8)
_CERTIFIED_COLOUR = "#0b6b69"
_EXACT_COLOUR = "#59616b"
# Claims differ in colour and dashes, so that they differ in a print in grey, too.
_CLAIM_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#b3261e", "linestyle": "--"},
    {"color": "#7a4fb5", "linestyle": "-."},
    {"color": "#9a6700", "linestyle": (0, (1, 1))},
    {"color": "#1f5fa8", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCurves:
    """What the two pictures show.

    Attributes:
        deltas: shape (k,), where ε is drawn.
        epsilons: shape (k,), certified lower bounds.
        claimed_epsilons: for every claim, shape (k,), the least ε that it still allows at each δ.
        exact_epsilons: shape (k,), the truth; None if it was not given.
        errors: shape (j,), type-I errors.
        powers: shape (j,), certified lower bounds on the power.
        claimed_powers: for every claim, shape (j,), what it allows.
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
    """Returns the data of both pictures.

    Args:
        profile: what was certified.
        claims: to compare with.
        exact: the true curve, see `Profile.plot`.
    """
    deltas = np.geomspace(1e-8, 0.9, 160)
    errors = np.linspace(0.0, 1.0, 201)
    exact_epsilon = _as_function(exact)
    exact_epsilons = None
    if exact_epsilon is not None:
        exact_epsilons = np.array([exact_epsilon(float(delta)) for delta in deltas])
    return ProfileCurves(
        deltas=deltas,
        epsilons=np.array([profile.epsilon(float(delta)) for delta in deltas]),
        claimed_epsilons=tuple(_claimed_epsilons(claim, deltas) for claim in claims),
        exact_epsilons=exact_epsilons,
        errors=errors,
        powers=np.array([profile.power(float(error)) for error in errors]),
        claimed_powers=tuple(np.asarray(claim.max_power(errors)) for claim in claims),
    )


def _claimed_epsilons(claim: Claim, deltas: Floats) -> Floats:
    """The ε that the claim's own curve implies at each δ: the largest over its points."""
    errors = np.concatenate([np.geomspace(1e-12, 1e-2, 120), np.linspace(0.01, 0.99, 99)])
    power = np.asarray(claim.max_power(errors))
    # Rows are values of δ, columns points of the curve and their complements.
    with np.errstate(divide="ignore", invalid="ignore"):
        of_points = np.log(np.maximum(power - deltas[:, None], 0.0) / errors)
        of_complements = np.log(np.maximum(1.0 - errors - deltas[:, None], 0.0) / (1.0 - power))
    largest = np.nanmax(np.hstack([of_points, of_complements]), axis=1)
    return np.asarray(np.maximum(largest, 0.0), dtype=np.float64)


def _as_function(exact: Any) -> Callable[[float], float] | None:
    """The true curve as a function from δ to ε."""
    if exact is None:
        return None
    if hasattr(exact, "get_epsilon_for_delta"):  # a privacy-loss distribution of dp-accounting
        return lambda delta: float(exact.get_epsilon_for_delta(delta))
    if hasattr(exact, "truth"):  # an entry of the zoo; None is unknown and becomes nan
        return lambda delta: float(np.array(exact.truth(ApproxDP, delta=delta), dtype=np.float64))
    if callable(exact):
        return lambda delta: float(exact(delta))
    raise InputError(
        f"exact={exact!r:.100} must be a function from δ to ε, a zoo entry "
        "or a privacy-loss distribution"
    )


def draw_profile(profile: "Profile", claims: Sequence[Claim] = (), exact: Any = None) -> "Figure":
    """Returns a figure with ε over δ on the left, power over type-I error on the right."""
    from matplotlib.figure import Figure

    curves = profile_curves(profile, claims, exact)
    figure = Figure(figsize=_SIZE, layout="constrained")
    epsilon_axes, power_axes = figure.subplots(1, 2)
    styles = [style for style, _ in zip(cycle(_CLAIM_STYLES), claims)]

    label = f"certified, {percent(profile.confidence)} for all points together"
    epsilon_axes.fill_between(
        curves.deltas, curves.epsilons, color=_CERTIFIED_COLOUR, alpha=0.15, linewidth=0
    )
    epsilon_axes.plot(curves.deltas, curves.epsilons, color=_CERTIFIED_COLOUR, label=label)
    if curves.exact_epsilons is not None:
        epsilon_axes.plot(
            curves.deltas, curves.exact_epsilons, color=_EXACT_COLOUR, linestyle=":", label="exact"
        )
    for claim, style, epsilons in zip(claims, styles, curves.claimed_epsilons, strict=True):
        epsilon_axes.plot(curves.deltas, epsilons, label=claim.describe(), **style)
    epsilon_axes.set(xscale="log", xlabel="δ", ylabel="ε at least", ylim=(0.0, None))
    epsilon_axes.legend(frameon=False, fontsize="small")

    power_axes.plot(curves.errors, curves.powers, color=_CERTIFIED_COLOUR)
    for style, powers in zip(styles, curves.claimed_powers, strict=True):
        power_axes.plot(curves.errors, powers, **style)
    power_axes.plot([0, 1], [0, 1], color=_EXACT_COLOUR, linewidth=0.7)
    power_axes.set(xlabel="type-I error", ylabel="power at least")
    power_axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return figure


def render_profile(profile: "Profile", claims: Sequence[Claim]) -> str:
    """Returns a page that needs nothing else.

    It shows the claims, the figures and the curves, and the profile itself as data.
    """
    from markupsafe import Markup

    from epsilometer.auditing.profile import SHOWN_DELTAS

    checks = [profile.check(claim) for claim in claims]
    with figures.styled():
        drawn = draw_profile(profile, [check.claim for check in checks])
    picture = figures.page_svg(drawn, "ε over δ, and power over type-I error", "profile")
    readings = [
        ReportRow(f"ε at δ = {delta:g} is at least", figure_down(profile.epsilon(delta)))
        for delta in SHOWN_DELTAS
    ]
    readings.append(ReportRow("μ is at least", figure_down(profile.mu)))
    page = page_environment().get_template("profile.html.j2")
    return page.render(
        profile=profile,
        name=plain(profile.settings.get("target") or profile.settings.get("mechanism", "")),
        reservations=reservations(profile.settings),
        picture=Markup(picture),
        checks=checks,
        readings=readings,
        settings=shown_settings(profile.settings),
        json=json.dumps(profile.to_dict(), indent=1),
    )
