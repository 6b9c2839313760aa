"""Loss functions, locations, intervals and proposals on hand-made samples."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

import epsilometer as em
from epsilometer.methods.base import Task
from epsilometer.methods.published.local import LocalMethod
from epsilometer.outputs import read_outputs


def laplace_quantiles(centre, scale, n=20_000):
    u = (np.arange(n) + 0.5) / n
    return centre + scale * np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))


@pytest.mark.paper("A11", "equal")
@pytest.mark.paper("A12", "equal")
@pytest.mark.paper("A3", "equal")
def test_discrete_loss_and_location():
    left = [0] * 60 + [1] * 30 + [2] * 10
    right = [0] * 20 + [1] * 30 + [2] * 50
    loss = em.local.loss_function(left, right, floor=0.01)
    assert loss.location == 2
    assert loss.estimate == pytest.approx(math.log(5))
    assert loss(0) == pytest.approx(math.log(3))
    assert loss(77) == 0.0
    assert em.local.loss_function(left, right, floor=0.2).estimate == pytest.approx(math.log(3))
    assert em.local.loss_function(left, right, floor=0.01, region=(0, 1)).location == 0


def test_outcomes_of_any_shape():
    left = [(True, False)] * 30 + [(True, True)] * 10 + [None] * 60
    right = [(True, False)] * 10 + [(True, True)] * 30 + [None] * 60
    loss = em.local.loss_function(left, right, floor=0.01)
    assert loss.estimate == pytest.approx(math.log(3))
    assert loss.location in ([True, False], [True, True])


@pytest.mark.paper("A12", "equal")
@pytest.mark.paper("A3", "equal")
def test_continuous_loss_of_laplace_is_flat_outside():
    left, right = laplace_quantiles(0, 1), laplace_quantiles(1, 1)
    loss = em.local.loss_function(left, right, region=(-2, 3), floor=1e-3)
    assert loss(np.array([-1.0, 0.5, 2.0])) == pytest.approx([1, 0, 1], abs=0.03)
    assert loss.estimate == pytest.approx(1.0, abs=0.05)
    assert np.interp(-1.0, loss.points, loss.loss) == pytest.approx(float(loss(-1.0)), abs=1e-3)


@pytest.mark.paper("A6", "equal")
def test_interval_is_the_formula():
    left = [0] * 600 + [1] * 400
    right = [0] * 200 + [1] * 800
    found = em.local.interval(left, right, 0, confidence=0.9, floor=1e-3)
    sigma = math.sqrt(1 / 0.6 + 1 / 0.2 - 2)
    assert found.estimate == pytest.approx(math.log(3))
    assert found.lower == pytest.approx(math.log(3) - ndtri(0.9) * sigma / math.sqrt(1000))
    left, right = laplace_quantiles(0, 1, 5000), laplace_quantiles(1, 1, 5000)
    found = em.local.interval(left, right, -0.5, floor=1e-3, proof_bandwidth=0.2)
    f, g = (em.local.tkde(side, -0.5, bandwidth=0.2, floor=1e-3) for side in (left, right))
    sigma = math.sqrt((1 / f + 1 / g) / (2 * math.sqrt(math.pi)))
    assert found.lower == pytest.approx(
        math.log(f / g) - ndtri(0.95) * sigma / math.sqrt(5000 * 0.2)
    )
    plane = np.stack([left, right], axis=1)
    found = em.local.interval(plane, plane + 1, [0.0, 0.5], floor=1e-6)
    assert found.estimate > 0
    for bad in (0, 1, 2):
        with pytest.raises(em.InputError, match="confidence"):
            em.local.interval([1, 2], [1, 2], 1, confidence=bad)


def mpl_literally(left, right, fresh_left, fresh_right, region, floor, alpha):
    """Algorithms 3 and 4 on given draws, one dimension, as they are printed."""

    def nrd0(x):
        low, high = np.quantile(x, [0.25, 0.75])
        return 0.9 * min(np.std(x, ddof=1), (high - low) / 1.34) * len(x) ** -0.2

    def density(x, t, h):
        return max(
            np.exp(-0.5 * ((t - x) / h) ** 2).sum() / (math.sqrt(2 * math.pi) * len(x) * h), floor
        )

    places = np.linspace(*region, 801)
    losses = [
        abs(math.log(density(left, t, nrd0(left)) / density(right, t, nrd0(right)))) for t in places
    ]
    t = places[int(np.argmax(losses))]
    h = min(nrd0(fresh_left), nrd0(fresh_right))
    f, g = density(fresh_left, t, h), density(fresh_right, t, h)
    sigma = math.sqrt((1 / f + 1 / g) / (2 * math.sqrt(math.pi)))
    return t, abs(math.log(f / g)) + ndtri(alpha) * sigma / math.sqrt(len(fresh_left) * h)


@pytest.mark.paper("A4", "equal")
@pytest.mark.paper("A17", "corrected")
def test_mpl_is_algorithm_4():
    entry, pair = em.zoo.laplace(0.7), em.Pair(0.0, 1.0)
    found = em.local.mpl(entry, pair, n=1000, N=2000, region=(-1, 1), floor=1e-3, seed=5)
    from epsilometer.engine import Phase, Sampler

    sampler = Sampler(entry.mechanism, 5)
    draws = [
        side.blocks[0].columns[0].values
        for phase, n in ((Phase.TRAIN, 1000), (Phase.CERTIFY, 2000))
        for side in sampler.both(phase, 0, pair, n)
    ]
    location, bound = mpl_literally(*draws, (-1, 1), 1e-3, 0.05)
    assert found.location == pytest.approx(location, abs=0.02)
    assert found.unclipped == pytest.approx(bound, abs=0.01)
    assert found.lower_bound == max(found.unclipped, 0)


def test_the_audit_with_sizes_is_mpl():
    pairs = [em.Pair([1] * 6, [0] + [2] * 5), em.Pair([1] * 6, [2] * 6)]
    entry = em.zoo.report_noisy_max(1.5)
    options = em.local.Options(n=2000, N=5000, floor=1e-3, select="loss")
    result = em.measure(
        entry, pairs, em.PureDP, samples=9000, method="local", options=options, seed=3
    )
    found = em.local.mpl(entry, pairs, n=2000, N=5000, floor=1e-3, seed=3)
    assert result.lower_bound == found.lower_bound
    assert result.samples_used == (9000, 9000)
    assert result.guarantee == "asymptotic"
    assert result.witness.event.contains([found.location, 77]).tolist() == [True, False]
    assert found.pair == pairs[0]


def test_every_choice_is_in_the_details():
    result = em.measure(em.zoo.laplace(1.0), None, em.PureDP, samples=5000, method="local", seed=0)
    details = result.findings[0].details
    assert {
        "kind",
        "floor",
        "region",
        "bandwidth",
        "proof_bandwidth",
        "kernel",
        "location",
    } <= details.keys()
    assert details["chosen_from_draws"] == [
        "floor",
        "region",
        "bandwidth",
        "proof_bandwidth",
        "kind",
    ]
    again = em.AuditResult.from_json(result.to_json())
    assert again.findings[0].details["location"] == details["location"]
    assert em.replay(result, em.zoo.laplace(1.0), samples=2000, seed=1).guarantee == "exact"


def test_chunks_of_a_continuous_tally_add_up_exactly():
    left, right = (read_outputs(laplace_quantiles(c, 1, 5000)) for c in (0, 1))
    proposal = LocalMethod().propose(left, right, Task(em.PureDP(0.0), (5000, 5000), 0.05))
    whole = proposal.tally(left, 0)
    parts = [proposal.tally(left.take(slice(a, a + 617)), 0) for a in range(0, 5000, 617)]
    assert sum(parts[1:], parts[0]) == whole
    assert proposal.tally(read_outputs([None, "x", (1.0, 2.0), float("nan")]), 0).hits == 0


@pytest.mark.paper("A5", "equal")
def test_data_centric_takes_one_dataset():
    neighbours = [[0, 0], [1, 0], [1, 1]]
    entry = em.zoo.report_noisy_max(1.0, queries=2)
    found = em.local.data_centric(entry, [0, 0], neighbours, n=1000, N=1000, seed=0)
    # (5): the greatest level over the pairs of x with each of its neighbours.
    pairs = [em.Pair([0, 0], other, equal=True) for other in neighbours]
    same = em.local.mpl(entry, pairs, n=1000, N=1000, seed=0)
    assert (found.lower_bound, found.location) == (same.lower_bound, same.location)
    from epsilometer.engine import Phase

    estimates = [
        em.local.loss_function(*draws_of(entry, 0, Phase.TRAIN, number, pair, 1000)).estimate
        for number, pair in enumerate(pairs)
    ]
    assert found.explored == pytest.approx(max(estimates))
    assert found.pair == pairs[int(np.argmax(estimates))]
    with pytest.raises(em.InputError, match="neighbours"):
        em.local.data_centric(entry, [0, 0], [])


def test_jobs_do_not_change_the_bound():
    entry = em.zoo.laplace(1.0)
    one, two = (
        em.local.mpl(entry, entry.worst_pair, n=70_000, N=70_000, seed=1, jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.unclipped == two.unclipped


@pytest.mark.paper("A16", "equal")
def test_step_2_has_a_floor_of_its_own_or_none():
    """MPL as `mpl_literally` has it, with τ in step 1 and another one, or 0, in step 2."""
    entry, pair = em.zoo.laplace(0.7), em.Pair(0.0, 1.0)
    given = {"n": 1000, "N": 2000, "region": (-1, 1), "seed": 5}
    high = em.local.mpl(entry, pair, floor=0.2, proof_floor=0.3, **given)
    assert min(high.finding.details["left_density"], high.finding.details["right_density"]) == 0.3
    assert high.finding.details["floor"] == 0.2
    assert high.finding.details["proof_floor"] == 0.3
    none = em.local.mpl(entry, pair, floor=1e-3, proof_floor=0.0, **given)
    same = em.local.mpl(entry, pair, floor=1e-3, **given)
    assert none.unclipped == same.unclipped
    # A floor above both densities leaves nothing; without one in step 2 the same place is bounded.
    hidden = em.local.mpl(entry, pair, floor=0.19, proof_floor=0.9, **given)
    shown = em.local.mpl(entry, pair, floor=0.19, proof_floor=0.0, **given)
    assert hidden.location == shown.location
    assert hidden.lower_bound == 0.0
    assert shown.lower_bound > 0.3


def test_without_a_floor_a_side_that_was_not_seen_bounds_nothing():
    found = em.local.interval([0] * 90 + [1] * 10, [0] * 100, 1, proof_floor=0.0)
    assert found.estimate == math.inf
    assert found.lower == -math.inf
    neither = em.local.interval([0] * 90, [0] * 100, 7, proof_floor=0.0)
    assert neither.estimate == 0.0


@pytest.mark.paper("A14", "corrected")
@pytest.mark.paper("A15", "corrected")
def test_undersmoothing_of_both_steps_meets_the_conditions_c3_and_c4():
    """For β = 1 and d = 1: h of step 1 of order n^(−1/3), that of step 2 smaller by a power of N; not by default."""

    def exponents(**chosen):
        widths = []
        for n in (1000, 64_000):
            found = em.local.mpl(
                em.zoo.laplace(1.0),
                [em.Pair(0.0, 1.0)],
                n=n,
                N=n,
                region=(-1, 1),
                floor=1e-6,
                seed=0,
                **chosen,
            )
            details = found.finding.details
            widths.append((details["bandwidth"][0], details["proof_bandwidth"]))
        (first, second), (first_later, second_later) = widths
        return (
            math.log(first_later / first) / math.log(64),
            math.log(second_later / second) / math.log(64),
        )

    step_1, step_2 = exponents()
    assert step_1 == pytest.approx(-1 / 5, abs=0.03)
    assert step_2 == pytest.approx(-1 / 5, abs=0.03)
    step_1, step_2 = exponents(undersmoothing=0.15)
    assert step_1 == pytest.approx(-1 / 5, abs=0.03)
    step_1, step_2 = exponents(search_undersmoothing=2 / 15, undersmoothing=0.15)
    assert step_1 == pytest.approx(-1 / 3, abs=0.03)
    assert step_2 == pytest.approx(-0.35, abs=0.03)


def draws_of(entry, seed, phase, number, pair, n):
    """What `mpl` and `dpl` draw: two arrays."""
    from epsilometer.engine import Sampler

    sides = Sampler(entry.mechanism, seed).both(phase, number, pair, n)
    return [side.blocks[0].columns[0].values for side in sides]


@pytest.mark.paper("A12", "equal")
def test_dpl_is_algorithm_3():
    """(22), (23) from the same draws, term by term, for a density and for frequencies."""
    from epsilometer.engine import Phase

    entry, pair = em.zoo.laplace(0.7), em.Pair(0.0, 1.0)
    found = em.local.dpl(entry, pair, n=1000, region=(-1, 1), floor=1e-3, seed=5)
    left, right = draws_of(entry, 5, Phase.TRAIN, 0, pair, 1000)
    widths = [
        0.9 * min(np.std(x, ddof=1), np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.34) * 1000**-0.2
        for x in (left, right)
    ]
    places = np.linspace(-1, 1, 801)
    p, q = (
        [
            max(np.exp(-0.5 * ((t - x) / h) ** 2).mean() / (math.sqrt(2 * math.pi) * h), 1e-3)
            for t in places
        ]
        for x, h in zip((left, right), widths, strict=True)
    )
    losses = np.abs(np.log(np.array(p) / np.array(q)))
    assert found.estimate == pytest.approx(losses.max(), abs=2e-3)
    assert found.location == pytest.approx(places[losses.argmax()], abs=0.02)

    entry, pair = em.zoo.geometric(0.7), em.Pair(0, 1)
    found = em.local.dpl(entry, pair, n=1000, floor=1e-2, seed=5)
    left, right = draws_of(entry, 5, Phase.TRAIN, 0, pair, 1000)
    losses = {
        k: abs(math.log(max((left == k).mean(), 1e-2) / max((right == k).mean(), 1e-2)))
        for k in {*left.tolist(), *right.tolist()}
    }
    assert found.estimate == pytest.approx(max(losses.values()), abs=1e-12)
    assert losses[found.location] == max(losses.values())


@pytest.mark.paper("A4", "equal")
def test_mpl_keeps_the_pair_with_the_greatest_estimate():
    """(19): the largest ε̂ of B pairs, each from draws of its own."""
    from epsilometer.engine import Phase

    entry = em.zoo.geometric(1.0)
    pairs = [em.Pair(0, 0, equal=True), em.Pair(0, 1), em.Pair(1, 1, equal=True)]
    found = em.local.mpl(entry, pairs, n=2000, N=2000, floor=1e-2, seed=1)
    estimates = [
        em.local.loss_function(
            *draws_of(entry, 1, Phase.TRAIN, number, pair, 2000), floor=1e-2
        ).estimate
        for number, pair in enumerate(pairs)
    ]
    assert found.number == int(np.argmax(estimates)) == 1
    assert found.explored == pytest.approx(max(estimates))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"n": None}, "n=None"), ({"N": None}, "N=None"), ({"n": 9}, "n=9"), ({"N": 2.5}, r"N=2\.5")],
)
def test_both_steps_need_their_number_of_draws(given, message):
    """`Options` may leave n and N to an audit, which divides its draws; `mpl` has nothing to divide."""
    with pytest.raises(em.InputError, match=message):
        em.local.mpl(em.zoo.laplace(), em.Pair(0.0, 1.0), **{"n": 100, "N": 200, **given})
    if "n" in given:
        with pytest.raises(em.InputError, match=message):
            em.local.dpl(em.zoo.laplace(), em.Pair(0.0, 1.0), **given)


def test_pairs_are_named_as_the_argument_is():
    with pytest.raises(em.InputError, match=r"^pairs=\[\] is empty"):
        em.local.mpl(em.zoo.laplace(), [])
