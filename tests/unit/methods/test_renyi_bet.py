"""`renyi-bet` and `auto`: what they propose, store and replay."""

import pickle

import numpy as np
import pytest

import epsilometer as em
from epsilometer.errors import InputError
from epsilometer.methods import Task
from epsilometer.methods.auto import AutoMethod
from epsilometer.methods.events import EventProposal
from epsilometer.methods.renyi_bet import BetProposal, RenyiBetMethod, predict
from epsilometer.outputs.events import LogRatio


def measured(entry, samples=20_000, order=2.0, **keywords):
    return em.measure(entry, None, em.RenyiDP, order=order, samples=samples, seed=1, **keywords)


def proposed(method, claim, entry, n=5000):
    rng = np.random.default_rng(1)
    left, right = (entry.mechanism.sample(entry.worst_pair.side(side), n, rng) for side in (0, 1))
    return method.propose(left, right, Task(claim, (2 * n, 2 * n), 0.05))


def test_auto_bets_on_scores_for_renyi_and_on_events_for_the_rest():
    entry = em.zoo.gaussian(sigma=1.0)
    assert isinstance(proposed(AutoMethod(), em.RenyiDP(2.0, 0.5), entry), BetProposal)
    assert isinstance(proposed(AutoMethod(), em.ZCDP(0.5), entry), BetProposal)
    assert isinstance(proposed(AutoMethod(), em.PureDP(0.5), entry), EventProposal)


@pytest.mark.parametrize(
    ("entry", "least"),
    [
        (em.zoo.gaussian(sigma=1.0), 0.8),
        (em.zoo.clamped_laplace(1.0), 0.54),
        (em.zoo.randomized_response(1.0), 0.55),
        (em.zoo.svt3(1.5), 0.3),
        (em.zoo.laplace_vector(1.5, dimension=3), 0.4),
        (em.zoo.randomized_responses(1.5), 1.15),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_every_kind_of_output_gets_a_score(entry, least):
    result = measured(entry, method="renyi-bet")
    assert result.guarantee == "exact"
    assert least < result.lower_bound < (entry.truth(em.RenyiDP, order=2.0) or np.inf)


def test_both_directions_are_found():
    entry = em.zoo.shuffled_responses(1.5, output="counts")
    backward = entry.truth(em.RenyiDP, order=5.0)  # the larger one is right ‖ left
    for pair in (entry.worst_pair, em.Pair(entry.worst_pair.right, entry.worst_pair.left)):
        found = em.measure(entry, pair, em.RenyiDP, order=5.0, samples=50_000, seed=2).lower_bound
        assert 0.6 * backward < found < backward


def test_a_result_is_stored_and_replayed():
    entry = em.zoo.scaled_gd(scale=0.5)
    result = em.audit(entry, samples=20_000, seed=1)
    assert result.verdict is em.Verdict.REFUTED
    assert isinstance(result.witness.event, LogRatio)
    again = em.AuditResult.from_json(result.to_json())
    assert again.to_dict() == result.to_dict()
    for stored in (result, again):
        replayed = em.replay(stored, entry, samples=10_000, seed=2)
        assert replayed.verdict is em.Verdict.REFUTED
        assert replayed.findings[0].method == "renyi-bet"
    assert "score" in str(result)


@pytest.mark.rehearses
def test_not_refuted_says_what_would_have_been():
    result = em.audit(em.zoo.scaled_gd(scale=1.0), samples=20_000, seed=1)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.claim.value < result.detectable < 1.6 * result.claim.value


@pytest.mark.parametrize("order", [2.0, 200.0])
def test_forecasts_do_not_overflow(order):
    """A cell with a large score that the larger distribution never showed: its powers have no finite squares."""
    scores, p, q = np.array([[0.0, 6.0]]), np.array([1000, 0]), np.array([999, 1])
    with np.errstate(all="raise", under="ignore"):
        bounds, stakes = predict(
            scores, order, p, q, n_fresh=(1000, 1000), failure=0.05, stakes=np.array([0.5, 1.0])
        )
    assert np.isfinite(bounds).all()
    assert np.isfinite(stakes).all()


def test_no_warnings_at_a_high_order():
    entry = em.zoo.nondp_laplace1(epsilon=0.01)
    for seed in range(2):
        claim = em.RenyiDP(200.0, 0.01)
        em.audit(
            entry, entry.worst_pair, claim, samples=4_000, seed=seed, method="renyi-variational"
        )


def test_equal_laws_promise_nothing():
    result = em.measure(
        lambda dataset, rng: rng.normal(), (0, 1), em.RenyiDP, order=2.0, samples=2000, seed=1
    )
    assert result.lower_bound == 0.0


def test_one_single_output_is_no_accident():
    assert (
        em.measure(
            lambda dataset: 1, (0, 1), em.RenyiDP, order=2.0, samples=100, seed=1
        ).lower_bound
        == 0.0
    )


def test_a_proposal_survives_pickling():
    proposal = proposed(RenyiBetMethod(), em.RenyiDP(2.0, 0.5), em.zoo.laplace(1.0))
    copy = pickle.loads(pickle.dumps(proposal))
    assert copy.score.to_dict() == proposal.score.to_dict()
    assert copy.stake == proposal.stake


def test_the_prediction_is_the_bound_at_expected_counts():
    """Counts exactly as expected give what was predicted, but for the draws that training may have missed."""
    proposal = proposed(RenyiBetMethod(), em.RenyiDP(2.0, 0.5), em.zoo.laplace(1.0))
    score = proposal.score
    above, below = (np.round(share * 10_000).astype(np.int64) for share in (score.p, score.q))
    tallies = (below, above) if proposal.flipped else (above, below)
    bound = proposal.certify(*tallies, em.Pair(0, 1), 0.05).lower_bound
    predicted = predict(
        score.scores[None, :],
        2.0,
        above,
        below,
        n_fresh=(10_000, 10_000),
        failure=0.05,
        stakes=np.ones(1),
    )[0][0]
    assert bound == pytest.approx(predicted, abs=0.01)


@pytest.mark.parametrize("name", ["auto", "renyi-bet"])
def test_there_are_no_options(name):
    with pytest.raises(InputError, match="options"):
        measured(em.zoo.laplace(1.0), method=name, options=3)
