"""Claims from accountants: never tighter than these, recognised by their methods."""

import json
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em
from epsilometer.claims import GaussianDP, TradeOffDP, from_dict

Q = np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 200), np.linspace(0.01, 1.0, 500)])


class PrivacyLossDistribution:
    """The methods of dp-accounting's class, for Gaussian noise."""

    def __init__(self, mu):
        self.mu = mu

    def get_delta_for_epsilon(self, epsilon):
        return GaussianDP(self.mu).delta(epsilon)

    def get_epsilon_for_delta(self, delta):
        return GaussianDP(self.mu).epsilon(delta)


class LossMasses:
    """The parts of dp-accounting's dense masses: losses of Gaussian noise, rounded up."""

    def __init__(self, mu, step=1e-3):
        self._discretization = step
        self._lower_loss = math.floor((mu * mu / 2 - 9 * mu) / step)
        upper_loss = math.ceil((mu * mu / 2 + 9 * mu) / step)
        losses = np.arange(self._lower_loss, upper_loss + 1) * step
        # The loss is N(mu²/2, mu²) on the likelier side; each mass goes to the next loss above.
        below = ndtr((losses - mu * mu / 2) / mu)
        self._probs = np.diff(below, prepend=0.0)
        self._infinity_mass = float(1.0 - below[-1])

    def to_dense_pmf(self):
        return self


class DiscretizedLosses:
    """A privacy-loss distribution with such masses."""

    def __init__(self, mu):
        self._pmf_remove = self._pmf_add = LossMasses(mu)
        self.calls = 0

    def get_delta_for_epsilon(self, epsilon):
        self.calls += 1
        masses = self._pmf_remove
        losses = (np.arange(len(masses._probs)) + masses._lower_loss) * masses._discretization
        above = losses > epsilon
        finite = np.sum(-np.expm1(epsilon - losses[above]) * masses._probs[above])
        return float(masses._infinity_mass + finite)


class GaussianDpEvent:
    """An event of dp-accounting."""


class NoOpDpEvent:
    """What the ledger of dp-accounting is before anything is composed."""


class PLDAccountant:
    """The methods of dp-accounting's class."""

    def __init__(self, mu):
        self.mu = mu

    @property
    def ledger(self):
        return GaussianDpEvent() if self.mu else NoOpDpEvent()

    def get_epsilon(self, target_delta):
        return GaussianDP(self.mu).epsilon(target_delta)

    def get_delta(self, target_epsilon):
        return GaussianDP(self.mu).delta(target_epsilon)


class PRVAccountant:
    """The methods of Opacus' class: it fails at some δ, and maps δ to ε."""

    kind = "prv"

    def __init__(self, history=((1.0, 1.0, 1),), mu=1.0):
        self.history = list(history)
        self.mu = mu

    @classmethod
    def mechanism(cls):
        return cls.kind

    def get_epsilon(self, delta, *, eps_error=0.01, delta_error=None):
        if delta < 1e-11:
            warnings.warn("delta is too small for the grid", UserWarning, stacklevel=2)
            raise ValueError("delta is too small for the grid")
        return GaussianDP(self.mu).epsilon(delta) + eps_error


class GaussianAccountant(PRVAccountant):
    """Opacus' approximation."""

    kind = "gdp"


class RisingAccountant(PRVAccountant):
    """One that gives a larger ε for a larger δ."""

    def get_epsilon(self, delta, *, eps_error=0.01, delta_error=None):
        return delta


def exact(mu):
    return ndtr(ndtri(Q) + mu)


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("accountant", [PrivacyLossDistribution, PLDAccountant, DiscretizedLosses])
def test_distributions_of_gaussian_noise(accountant, mu):
    power = TradeOffDP.from_accountant(accountant(mu)).max_power(Q)
    assert np.min(power - exact(mu)) >= -1e-9
    # Losses that are rounded up by 1e-3 cost a little more than the lines.
    assert np.max(power - exact(mu)) <= (1e-3 if accountant is DiscretizedLosses else 1e-4)


def test_masses_are_read_at_once_if_they_agree_with_the_method():
    distribution = DiscretizedLosses(1.0)
    at_once = TradeOffDP.from_accountant(distribution)
    assert distribution.calls < 10
    other = DiscretizedLosses(1.0)
    other._pmf_add = SimpleNamespace()
    one_by_one = TradeOffDP.from_accountant(other)
    assert other.calls > 100
    difference = one_by_one.max_power(Q) - at_once.max_power(Q)
    assert difference.min() >= -1e-6
    assert difference.max() <= 1e-4


def test_masses_that_disagree_with_the_method_are_not_trusted():
    distribution = DiscretizedLosses(2.0)
    distribution._pmf_remove = distribution._pmf_add = LossMasses(1.0)
    distribution.get_delta_for_epsilon = GaussianDP(2.0).delta
    power = TradeOffDP.from_accountant(distribution).max_power(Q)
    assert np.min(power - exact(2.0)) >= -1e-9


def test_losses_that_are_rounded_down_are_no_bound():
    distribution = DiscretizedLosses(1.0)
    distribution._pmf_add._pessimistic_estimate = True
    TradeOffDP.from_accountant(distribution)
    distribution._pmf_add._pessimistic_estimate = False
    with pytest.raises(em.InputError, match="pessimistic_estimate=True"):
        TradeOffDP.from_accountant(distribution)


def test_other_accountants_are_looser_but_never_tighter():
    of_function = TradeOffDP.from_accountant(GaussianDP(1.0).delta).max_power(Q)
    assert np.min(of_function - exact(1.0)) >= -1e-9
    assert np.max(of_function - exact(1.0)) <= 1e-4
    pairs = [(epsilon, GaussianDP(1.0).delta(epsilon)) for epsilon in (3.0, 0.0, 1.0)]
    of_pairs = TradeOffDP.from_accountant([*pairs, (math.inf, 0.0)]).max_power(Q)
    assert np.min(of_pairs - exact(1.0)) >= -1e-9


@pytest.mark.parametrize("mu", [0.3, 1.0, 1 / 0.35])
def test_accountants_of_opacus_lose_little_in_the_middle_of_the_curve(mu):
    power = TradeOffDP.from_accountant(PRVAccountant(mu=mu)).max_power(Q)
    assert np.min(power - exact(mu)) >= -1e-9
    # .004 of it because every ε is rounded up by .01.
    assert np.max(power - exact(mu)) <= 0.01


@pytest.mark.parametrize("mu", [8.0, 20.0, 30.0])
def test_curves_of_hardly_any_privacy(mu):
    claim = TradeOffDP.from_accountant(GaussianDP(mu).delta)
    q = np.geomspace(1e-300, 1e-3, 300)
    difference = claim.max_power(q) - ndtr(ndtri(q) + mu)
    assert np.min(difference) >= -1e-9
    assert np.max(difference) <= 0.1


def test_a_second_pair_with_the_same_epsilon_adds_nothing():
    twice = TradeOffDP.from_accountant([(0.0, 0.9), (0.0, 0.4), (1.0, 0.1), (1.0, 0.3)])
    once = TradeOffDP.from_accountant([(0.0, 0.4), (1.0, 0.1)])
    np.testing.assert_array_equal(twice.max_power(Q), once.max_power(Q))


def test_pairs_are_their_lines_exactly():
    pairs = [(0.0, 0.4), (0.7, 0.2), (1.5, 0.05), (4.0, 1e-4), (9.0, 0.0)]
    lines = [(math.exp(e), d) for e, d in pairs]
    lines += [(math.exp(-e), 1.0 - (1.0 - d) * math.exp(-e)) for e, d in pairs]
    least = np.min([slope * Q + shift for slope, shift in lines] + [np.ones_like(Q)], axis=0)
    difference = TradeOffDP.from_accountant(pairs).max_power(Q) - least
    assert np.all(difference >= 0.0)
    # Lines that change nothing to speak of are left out.
    assert np.all(difference <= 1e-6)


def test_the_claim_survives_json_exactly():
    claim = TradeOffDP.from_accountant(PrivacyLossDistribution(1.0))
    restored = from_dict(json.loads(json.dumps(claim.to_dict())))
    assert restored == claim
    np.testing.assert_array_equal(restored.max_power(Q), claim.max_power(Q))


@pytest.mark.parametrize(
    ("accountant", "message"),
    [
        (lambda epsilon: 1.5, "δ=1.5 at ε=0.5: δ must lie between 0 and 1"),
        (lambda epsilon: -0.1, "δ=-0.1 at ε=0.5"),
        (lambda epsilon: math.nan, "δ=nan"),
        (lambda epsilon: "much", "which is not a number"),
        (lambda epsilon: [][1], "gives no δ at ε=0.5: IndexError"),
        (lambda epsilon: min(0.1 * epsilon, 1.0), "δ grows with ε"),
        (lambda epsilon: 1.0, "δ = 1 for every ε"),
        ([(1.0, 1e-5), (2.0, 1e-3)], "δ grows with ε: δ=1e-05 at ε=1, but δ=0.001 at ε=2"),
        ([(1.0, 1.2)], "δ=1.2"),
        ([(-1.0, 0.2)], "ε=-1 of a pair"),
        ([(math.inf, 0.2)], "no finite pair"),
        ([], "must be a privacy-loss distribution"),
        ([1.0, 2.0], "must be a privacy-loss distribution"),
        ("accountant", "must be a privacy-loss distribution"),
        (None, "must be a privacy-loss distribution"),
        (PLDAccountant(0.0), "PLDAccountant has no steps"),
        (PRVAccountant([]), "PRVAccountant has no steps"),
        (RisingAccountant(), "ε grows with δ"),
        (
            [(800.0, 1e-5)],
            "every ε that the accountant reports is above 700: that promises nothing",
        ),
        (GaussianAccountant(), "GaussianAccountant approximates by a central limit theorem"),
    ],
)
def test_mistakes_are_named(accountant, message):
    with pytest.raises(em.InputError) as caught:
        TradeOffDP.from_accountant(accountant)
    assert message in str(caught.value)


def test_rounding_is_no_mistake():
    claim = TradeOffDP.from_accountant([(0.0, 0.1), (1.0, 0.1 + 1e-12), (2.0, -1e-15)])
    assert claim.max_power(0.0) == pytest.approx(0.0, abs=1e-12)
    # Accountants that round up exceed 1 where hardly anything is private.
    claim = TradeOffDP.from_accountant([(0.0, 1.0 + 2e-7), (9.0, 0.3)])
    assert claim.max_power(0.0) == pytest.approx(0.3, abs=1e-12)


def test_dp_accounting_itself():
    accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting.pld import PLDAccountant as RealAccountant
    from dp_accounting.pld import privacy_loss_distribution

    for mu in (0.5, 1.0, 2.0):
        real = privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu, value_discretization_interval=1e-3
        )
        power = TradeOffDP.from_accountant(real).max_power(Q)
        assert np.min(power - exact(mu)) >= -1e-9
        assert np.max(power - exact(mu)) <= 1e-4
    with pytest.raises(em.InputError, match="has no steps"):
        TradeOffDP.from_accountant(RealAccountant())
    optimistic = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False
    )
    with pytest.raises(em.InputError, match="pessimistic_estimate=True"):
        TradeOffDP.from_accountant(optimistic)
    composed = RealAccountant()
    composed.compose(accounting.GaussianDpEvent(1.0), 4)
    power = TradeOffDP.from_accountant(composed).max_power(Q)
    assert np.min(power - exact(2.0)) >= -1e-9
    assert np.max(power - exact(2.0)) <= 1e-4
    renyi = accounting.rdp.RdpAccountant()
    renyi.compose(accounting.GaussianDpEvent(1.0), 4)
    assert np.min(TradeOffDP.from_accountant(renyi).max_power(Q) - power) >= -1e-6


@pytest.mark.filterwarnings("ignore:GDP accounting is experimental")
def test_opacus_itself():
    accountants = pytest.importorskip("opacus.accountants", reason="opacus is not installed")
    for kind in (accountants.PRVAccountant, accountants.RDPAccountant):
        with pytest.raises(em.InputError, match="has no steps"):
            TradeOffDP.from_accountant(kind())
        accountant = kind()
        accountant.history = [(1.0, 1.0, 1)]
        power = TradeOffDP.from_accountant(accountant).max_power(Q)
        assert np.min(power - exact(1.0)) >= -1e-6
    approximate = accountants.GaussianAccountant()
    approximate.step(noise_multiplier=1.0, sample_rate=0.1)
    with pytest.raises(em.InputError, match="approximates"):
        TradeOffDP.from_accountant(approximate)
