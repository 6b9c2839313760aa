"""The profile object, its file, its picture, and the method behind it."""

import json

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.profile import profile_of
from epsilometer.bounds.bands import Band
from epsilometer.report.profile_figure import profile_curves
from epsilometer.result import HealthReport


@pytest.fixture(scope="module")
def gaussian():
    return em.profile(em.zoo.gaussian(), samples=30_000, seed=5)


def test_readings_stay_below_the_truth_and_near_it(gaussian):
    truth = em.GaussianDP(1.0)
    for delta in (1e-4, 1e-2, 0.1):
        assert 0.5 * truth.epsilon(delta) < gaussian.epsilon(delta) <= truth.epsilon(delta)
    assert 0.93 < gaussian.mu <= 1.0
    assert 0.1 < gaussian.delta(1.0) <= truth.delta(1.0)
    assert 0.2 < gaussian.power(0.05) <= truth.max_power(0.05)


def test_claims_of_every_notion_are_checked_at_once(gaussian):
    refuted = ["eps=1", "eps=1,delta=1e-3", "mu=.9", "rho=.2", "eps=.4,order=2"]
    kept = ["eps=4.4,delta=1e-5", "mu=1", "rho=.5", "eps=1,order=2"]
    assert [gaussian.check(claim).is_refuted for claim in refuted] == [True] * len(refuted)
    assert [gaussian.check(claim).is_refuted for claim in kept] == [False] * len(kept)
    curve = em.TradeOffDP(lambda error: 1.0 - em.GaussianDP(0.8).max_power(error))
    assert gaussian.check(curve).is_refuted
    assert gaussian.check("mu=.9").lower_bound == gaussian.mu == gaussian.lower_bound("mu=0")


def test_draws_that_cannot_be_trusted_decide_nothing():
    profile = em.Profile(Band((0.9,), (0.1,)), 0.95, health=(HealthReport("drift", "moves", True),))
    assert profile.check("eps=1").verdict is em.Verdict.INCONCLUSIVE
    assert "moves" in str(profile)


def test_file_and_back(gaussian):
    text = gaussian.to_json()
    again = em.Profile.from_json(text)
    assert again.to_dict() == gaussian.to_dict()
    assert json.loads(text)["epsilon"]["0.01"] == gaussian.epsilon(0.01)
    for wrong in (
        "[]",
        "{}",
        '{"kind": "profile"}',
        '{"kind": "profile", "schema_version": 1}',
        "no json",
    ):
        with pytest.raises(em.InputError):
            em.Profile.from_json(wrong)


def test_same_seed_same_profile(gaussian):
    assert em.profile(em.zoo.gaussian(), samples=30_000, seed=5).band == gaussian.band


@pytest.mark.parametrize(
    "name", ["svt5", "svt3", "report_noisy_max", "clamped_laplace", "laplace_vector"]
)
def test_outputs_of_every_kind(name):
    entry = em.zoo.find(name)
    profile = em.profile(entry, samples=8000, seed=1)
    assert profile.epsilon(0.0) > 0.05
    truth = entry.truth(em.ApproxDP, delta=0.01)
    assert truth is None or profile.epsilon(0.01) <= truth


def test_both_directions_are_seen():
    """An event that is rare under the left input only shows in one direction."""

    def leaks(dataset, n, rng):
        return (rng.random(n) < (0.001, 0.2)[dataset]).astype(float)

    for pair in ((0, 1), (1, 0)):
        assert em.profile(em.from_batch(leaks), pair, samples=5000, seed=0).epsilon(0.0) > 3.0


def test_picture(gaussian, tmp_path):
    data = profile_curves(gaussian, [em.GaussianDP(1.0)], em.zoo.gaussian())
    assert np.all(data.epsilons <= data.exact_epsilons + 1e-9)
    assert np.all(data.powers <= data.claimed_powers[0] + 1e-9)
    # The claim's own curve at each δ is the exact one, here.
    assert data.claimed_epsilons[0] == pytest.approx(data.exact_epsilons, abs=0.03)
    path = tmp_path / "profile.svg"
    gaussian.plot(path, claim="mu=1", exact=em.GaussianDP(1.0).epsilon)
    assert path.read_text(encoding="utf-8").startswith("<?xml")

    class Distribution:  # as dp-accounting has it
        def get_epsilon_for_delta(self, delta):
            return em.GaussianDP(1.0).epsilon(delta)

    assert profile_curves(gaussian, (), Distribution()).exact_epsilons == pytest.approx(
        data.exact_epsilons, abs=1e-6
    )
    with pytest.raises(em.InputError, match="must end in"):
        gaussian.plot(tmp_path / "profile.doc")
    with pytest.raises(em.InputError, match="exact="):
        gaussian.plot(exact=3)


def test_other_results_hold_no_band():
    with pytest.raises(em.InputError, match="holds no band"):
        profile_of(em.measure(em.zoo.laplace(), None, em.PureDP, samples=1000, seed=0))


def test_a_profile_has_no_truth_value():
    found = em.profile(em.zoo.laplace(epsilon=1.0), samples=500, seed=0)
    with pytest.raises(TypeError, match=r"profile\.mu"):
        bool(found)


BLIND_CLAIMS = ["eps=9", "eps=9,delta=1e-3", "mu=9", "rho=60", "order=2,eps=20"]


@pytest.mark.parametrize("claim", BLIND_CLAIMS)
def test_a_claim_that_could_not_have_been_refuted_says_so(claim, tmp_path):
    few = em.profile(em.zoo.laplace(), samples=300, seed=0)
    check = few.check(claim)
    assert check.verdict is em.Verdict.NOT_REFUTED
    assert check.blind.startswith("So few draws could not have refuted it: even an event that")
    assert em.Profile.from_json(few.to_json()).check(claim) == check
    page = few.save_html(tmp_path / "few.html", claim).read_text()
    row = page[page.index('<table class="plain">') :]
    assert '<tr class="inconclusive">' in row
    assert "Not refuted, and could not have been" in row


def test_a_claim_that_could_have_been_refuted_is_not_blind():
    found = em.profile(em.zoo.laplace(), samples=3000, seed=0)
    for claim in ("eps=1", "eps=.1", "mu=2"):
        assert found.check(claim).blind is None
