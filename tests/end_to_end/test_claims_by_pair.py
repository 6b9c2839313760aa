"""A measurement that claims by its privacy map is judged, on every pair, by the map at that pair's own distance."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms import as_mechanism

dp = pytest.importorskip("opendp.prelude")
dpl = pytest.importorskip("diffprivlib.mechanisms")

# A true claim is refuted at most once in 1e9 runs.
SURE = 1.0 - 1e-9


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")


def reals():
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def integers():
    return dp.atom_domain(T=int), dp.absolute_distance(T=int)


def vectors(metric):
    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric


def bounded_sum(metric):
    rows = dp.vector_domain(
        dp.atom_domain((0, 5)), size=3 if metric == dp.change_one_distance() else None
    )
    return (rows, metric) >> dp.t.then_sum() >> dp.m.then_laplace(5.0)


def count():
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return rows >> dp.t.then_count() >> dp.m.then_laplace(1.0)


VECTOR = em.domains.Vector(2, low=0.0, high=4.0)
LIST = em.domains.Records(em.domains.Integer(0, 5), (1, 4))
# Correct measurements, with searches over pairs at many distances. Under a claim for the distance 1 most are accused.
CORRECT = {
    "Laplace, numbers": (
        lambda: dp.m.make_laplace(*reals(), scale=1.0),
        em.domains.Number(0, 10),
        None,
    ),
    "Gauss, numbers": (
        lambda: dp.m.make_gaussian(*reals(), scale=1.0),
        em.domains.Number(0, 4),
        None,
    ),
    "Laplace, integers": (
        lambda: dp.m.make_laplace(*integers(), scale=1.0),
        em.domains.Integer(0, 8),
        None,
    ),
    "geometric": (
        lambda: dp.m.make_geometric(*integers(), scale=1.0),
        em.domains.Integer(0, 8),
        None,
    ),
    "discrete Gauss": (
        lambda: dp.m.make_gaussian(*integers(), scale=1.0),
        em.domains.Integer(0, 4),
        None,
    ),
    "Laplace, vectors, linf": (
        lambda: dp.m.make_laplace(*vectors(dp.l1_distance(T=float)), scale=1.0),
        VECTOR,
        "linf",
    ),
    "Laplace, vectors, l1": (
        lambda: dp.m.make_laplace(*vectors(dp.l1_distance(T=float)), scale=1.0),
        VECTOR,
        "l1",
    ),
    "Gauss, vectors, linf": (
        lambda: dp.m.make_gaussian(*vectors(dp.l2_distance(T=float)), scale=1.0),
        VECTOR,
        "linf",
    ),
    "noisy maximum, linf": (
        lambda: dp.m.make_noisy_max(
            *vectors(dp.linf_distance(T=float)), dp.max_divergence(), scale=1.0
        ),
        VECTOR,
        "linf",
    ),
    "sum, replace": (lambda: bounded_sum(dp.symmetric_distance()), LIST, "replace"),
    "sum, add or remove": (lambda: bounded_sum(dp.symmetric_distance()), LIST, "add-remove"),
    "count, replace": (count, LIST, "replace"),
}


def search(domain, relation, **settings):
    return em.finders.Search(domain, relation, trials=24, samples=300, **settings)


@pytest.mark.parametrize("name", CORRECT)
def test_no_correct_measurement_is_accused_in_a_search(name):
    make, domain, relation = CORRECT[name]
    result = em.audit(make(), search(domain, relation), samples=1000, confidence=SURE, seed=0)
    assert not result.is_refuted
    pair = result.witness.pair
    assert result.claim == as_mechanism(make()).promise([pair])
    for finding in result.findings:
        assert finding.claim == as_mechanism(make()).promise([finding.witness.pair])


def half_noise(factor=2.0):
    """Laplace noise of scale 1/2, with the map of scale 1."""
    laplace = dp.m.make_laplace(*reals(), scale=1.0 / factor)
    return dp.m.make_user_measurement(
        *reals(), dp.max_divergence(), lambda x: laplace(x), lambda d: d
    )


def test_half_of_the_noise_is_refuted_with_the_claim_of_the_pair_that_was_found():
    measurement = half_noise()
    finder = em.finders.Search(em.domains.Number(0, 10), trials=32, samples=1000)
    result = em.audit(measurement, finder, samples=6000, confidence=0.99, seed=0)
    assert result.is_refuted
    pair = result.witness.pair
    apart = abs(pair.left - pair.right)
    assert result.claim == em.PureDP(apart)
    assert apart < result.lower_bound <= 2.0 * apart
    assert em.AuditResult.from_json(result.to_json()).claim == result.claim
    assert f"ε = {apart:.6g}" in str(result)


def test_a_list_of_pairs_at_different_distances():
    """The farther pair has the greater bound, and only the nearer one is too close to its claim."""
    pairs = [em.Pair(0.0, 0.5), em.Pair(0.0, 6.0)]
    laplace = dp.m.make_laplace(*reals(), scale=1.0)
    assert not em.audit(laplace, pairs, samples=2000, confidence=SURE, seed=0).is_refuted
    bad = em.audit(half_noise(), pairs, samples=4000, confidence=0.99, seed=0)
    assert bad.is_refuted
    assert bad.claim == as_mechanism(half_noise()).promise([bad.witness.pair])


def test_a_list_of_pairs_that_may_stop_early(tmp_path):
    pairs = [em.Pair(0.0, 6.0), em.Pair(0.0, 0.5)]
    laplace = dp.m.make_laplace(*reals(), scale=1.0)
    right = em.audit(laplace, pairs, samples=1000, confidence=SURE, seed=0, stop_early=True)
    assert not right.is_refuted
    bad = em.audit(half_noise(), pairs, samples=60_000, confidence=0.99, seed=0, stop_early=True)
    assert bad.is_refuted
    assert bad.claim == as_mechanism(half_noise()).promise([bad.witness.pair])


def test_other_finders_judge_pairs_by_their_own_claims():
    finder = em.finders.Random(em.domains.Number(0, 10), trials=6, samples=500)
    result = em.audit(
        dp.m.make_laplace(*reals(), scale=1.0), finder, samples=1000, confidence=SURE, seed=0
    )
    assert not result.is_refuted
    history = result.findings[0].details["search"]
    for trial in history:
        pair = trial["pair"]
        assert trial["claimed"] == pytest.approx(abs(pair["left"]["json"] - pair["right"]["json"]))


def test_what_lies_beyond_the_domain_and_has_no_distance_is_left_out_and_said():
    finder = search(em.domains.Number(0, 10), None)
    result = em.audit(
        dp.m.make_laplace(*reals(), scale=1.0), finder, samples=1000, confidence=SURE, seed=0
    )
    (report,) = [each for each in result.health if each.name == "unclaimed-inputs"]
    assert "pairs outside the domain were left out" in report.message
    assert not report.untrusted


def test_a_claim_of_ones_own_is_about_every_pair():
    finder = em.finders.Search(em.domains.Number(0, 10), trials=16, samples=500)
    result = em.audit(
        dp.m.make_laplace(*reals(), scale=1.0), finder, em.PureDP(1.0), samples=1500, seed=0
    )
    assert result.is_refuted
    assert result.claim == em.PureDP(1.0)


@pytest.mark.parametrize(
    ("metric", "left", "right", "distance"),
    [
        ("AbsoluteDistance(i64)", 2**60 + 1, 2**60, 1),
        ("L1Distance(f64)", [0.0, 1.0, 2.0], [0.5, 1.0, 1.0], 1.5),
        ("L2Distance(f64)", [0.0, 0.0], [3.0, 4.0], 5.0),
        ("L2Distance(f64)", np.zeros(2), np.array([3.0, 4.0]), 5.0),
        ("LInfDistance(T=f64)", [0.0, 0.0], [1.0, -2.0], 2.0),
        ("LInfDistance(monotonic, T=f64)", [0.0, 0.0], [1.0, 2.0], 2.0),
        ("SymmetricDistance()", [1, 1, 2], [1, 3], 3),
        ("SymmetricDistance()", [], ["a"], 1),
        ("ChangeOneDistance()", [1, 2, 3], [1, 5, 6], 2),
        ("DiscreteDistance()", "a", "b", 1),
    ],
)
def test_distances(metric, left, right, distance):
    from epsilometer.mechanisms.libraries import _distance

    assert _distance(metric, em.Pair(left, right)) == distance


@pytest.mark.parametrize(
    ("metric", "left", "right"),
    [
        ("AbsoluteDistance(f64)", 0.0, math.nan),
        ("AbsoluteDistance(f64)", 0.0, math.inf),
        ("AbsoluteDistance(f64)", 0.0, None),
        ("L1Distance(f64)", [0.0], [0.0, 1.0]),
        ("L1Distance(f64)", [[0.0]], [[1.0]]),
        ("LInfDistance(monotonic, T=f64)", [0.0, 0.0], [1.0, -2.0]),
        ("SymmetricDistance()", {"a": 1}, {"a": 2}),
        ("SymmetricDistance()", "ab", "abc"),
        ("SymmetricDistance()", [[1]], [[2]]),
        ("ChangeOneDistance()", [1], [1, 2]),
        ("InsertDeleteDistance()", [1], [1, 2]),
    ],
)
def test_distances_that_are_not_known_are_refused(metric, left, right):
    from epsilometer.mechanisms.libraries import _distance

    with pytest.raises(
        em.InputError,
        match=r"is not known; give em\.from_opendp\(measurement, distance=…\) or a claim",
    ):
        _distance(metric, em.Pair(left, right))


def test_tables_have_no_distance_that_their_columns_tell():
    """Rows of a data frame are not what iterating over it gives: two tables with the same columns were 0 apart."""
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame({"a": values}) for values in ([1, 2], [1, 2, 3])]
    with pytest.raises(em.InputError, match="is not known"):
        em.audit(bounded_sum(dp.symmetric_distance()), em.Pair(*frames), samples=100)


def test_a_given_distance_is_not_less_than_the_inputs_are_apart():
    laplace = dp.m.make_laplace(*reals(), scale=1.0)
    with pytest.raises(em.InputError, match=r"distance=1 is too small: 0\.0 and 3\.0 are 3 apart"):
        em.audit(em.from_opendp(laplace, distance=1), em.Pair(0.0, 3.0), samples=100)
    with pytest.raises(em.InputError, match="distance=1 is too small"):
        em.audit(em.from_opendp(laplace, distance=1), em.domains.Number(0, 10), samples=100)


def test_a_claim_that_depends_on_the_pair_is_not_made_of_nothing():
    with pytest.raises(em.InputError, match="depends on how far the two inputs are apart"):
        as_mechanism(dp.m.make_laplace(*reals(), scale=1.0)).promise([])


def test_diffprivlib_is_not_searched_beyond_its_sensitivity():
    laplace = dpl.Laplace(epsilon=1.0, sensitivity=np.int64(1))
    with pytest.raises(em.InputError, match="a domain with sensitivity=1, or your own claim"):
        em.audit(laplace, em.domains.Number(0, 10), samples=100)
    near = search(em.domains.Number(0, 10, sensitivity=1.0), None)
    result = em.audit(laplace, near, samples=1000, confidence=SURE, seed=0)
    assert (result.is_refuted, result.claim) == (False, em.PureDP(1.0))
    with pytest.raises(
        em.InputError, match=r"how far apart the inputs 0\.0 and nan are is not known"
    ):
        em.audit(laplace, em.Pair(0.0, math.nan), samples=100)
