"""Real objects of OpenDP and diffprivlib, as they are."""

import subprocess
import sys

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms import as_mechanism

dp = pytest.importorskip("opendp.prelude")
dpl = pytest.importorskip("diffprivlib.mechanisms")

# A true claim is refuted at most once in 1e9 runs.
SURE = 1.0 - 1e-9


@pytest.fixture(autouse=True)
def contrib():
    dp.enable_features("contrib")


def scalar(make, **settings):
    return make(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), **settings)


def make_laplace():
    import opendp.prelude as own

    own.enable_features("contrib")
    return own.m.make_laplace(
        own.atom_domain(T=float, nan=False), own.absolute_distance(T=float), scale=1.0
    )


def test_a_measurement_claims_by_its_privacy_map():
    laplace = scalar(dp.m.make_laplace, scale=1.0)
    result = em.audit(laplace, em.Pair(0.0, 2.0), samples=3000, confidence=SURE, seed=0)
    assert result.claim == em.PureDP(2.0)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.lower_bound > 1.0
    assert result.settings["seeded_mechanism"] is False


def test_a_wrong_claim_about_a_measurement_is_refuted():
    laplace = scalar(dp.m.make_laplace, scale=0.5)  # ε = 2
    assert em.audit(laplace, em.Pair(0.0, 1.0), em.PureDP(1.0), samples=4000, seed=0).is_refuted


def test_all_kinds_of_privacy_maps():
    gaussian = scalar(dp.m.make_gaussian, scale=1.0)
    profile = dp.c.make_zCDP_to_approxDP(gaussian)
    pair = [em.Pair(0.0, 1.0)]
    assert as_mechanism(gaussian).promise(pair) == em.ZCDP(0.5)
    assert as_mechanism(dp.c.make_fix_delta(profile, 1e-6)).promise(pair) == em.ApproxDP(
        profile.map(1.0).epsilon(1e-6), 1e-6
    )
    assert em.from_opendp(profile, delta=1e-5).promise(pair) == em.ApproxDP(
        profile.map(1.0).epsilon(1e-5), 1e-5
    )
    with pytest.raises(
        em.InputError,
        match=r"SmoothedMaxDivergence, which is not a claim by itself; give em\.from_opendp",
    ):
        as_mechanism(profile).promise(pair)
    assert (
        em.audit(gaussian, pair[0], samples=2000, confidence=SURE, seed=0).verdict
        is em.Verdict.NOT_REFUTED
    )


def test_all_kinds_of_metrics():
    vector = dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float), scale=1.0
    )
    assert as_mechanism(vector).promise([em.Pair([0.0, 0.0], [1.0, -0.5])]) == em.PureDP(1.5)
    coin = dp.m.make_randomized_response_bool(prob=0.75)
    assert as_mechanism(coin).promise([em.Pair(True, False)]).epsilon == pytest.approx(np.log(3))
    total = (
        (dp.vector_domain(dp.atom_domain((0, 10))), dp.symmetric_distance())
        >> dp.t.then_sum()
        >> dp.m.then_laplace(10.0)
    )
    assert as_mechanism(total).promise([em.Pair([1, 2], [1, 2, 3])]) == em.PureDP(1.0)
    assert as_mechanism(total).promise([em.Pair([1, 2], [1, 5])]) == em.PureDP(2.0)
    assert em.from_opendp(total, distance=3).promise([]) == em.PureDP(3.0)
    with pytest.raises(em.InputError, match=r"give em\.from_opendp"):
        as_mechanism(total).promise([em.Pair(1, 2)])


def test_measurements_with_workers():
    with pytest.raises(em.InputError, match=r"give em\.from_opendp a function that makes it"):
        em.audit(make_laplace(), em.Pair(0.0, 1.0), samples=1000, jobs=2)
    # In a program of its own: a worker cannot import this module.
    program = (
        "import epsilometer as em\n"
        "def make():\n"
        "    import opendp.prelude as dp\n"
        "    dp.enable_features('contrib')\n"
        "    return dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)\n"
        "r = em.audit(em.from_opendp(make), em.Pair(0.0, 1.0), samples=1000, confidence=1 - 1e-9, jobs=2)\n"
        "print(r.verdict, r.claim)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "not refuted PureDP(epsilon=1.0)\n", done.stderr


def test_an_input_that_a_measurement_refuses():
    with pytest.raises(
        em.MechanismError, match=r"OpenDP measurement .* raised .* on the input '[xy]'"
    ):
        em.audit(make_laplace(), em.Pair("x", "y"), em.PureDP(1.0), samples=100)


# jobs=2 shows that the objects survive the way to a worker.
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_diffprivlib_mechanism_claims_by_its_epsilon(jobs):
    laplace = dpl.Laplace(epsilon=1.0, sensitivity=0.1)
    result = em.audit(laplace, em.Pair(0.2, 0.3), samples=3000, confidence=SURE, seed=0, jobs=jobs)
    assert result.claim == em.PureDP(1.0)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.settings["mechanism"] == "diffprivlib Laplace"


def test_other_diffprivlib_mechanisms():
    for owner, pair, claim in [
        (
            dpl.GaussianAnalytic(epsilon=1.0, delta=1e-3, sensitivity=1),
            em.Pair(0, 1),
            em.ApproxDP(1.0, 1e-3),
        ),
        (dpl.Geometric(epsilon=1.0), em.Pair(0, 1), em.PureDP(1.0)),
        (dpl.Binary(epsilon=1.0, value0="no", value1="yes"), em.Pair("no", "yes"), em.PureDP(1.0)),
    ]:
        result = em.audit(owner, pair, samples=1000, confidence=SURE, seed=0)
        assert (result.claim, result.verdict) == (claim, em.Verdict.NOT_REFUTED)


def test_a_wrong_claim_about_diffprivlib_is_refuted():
    laplace = dpl.Laplace(epsilon=3.0, sensitivity=1)
    assert em.audit(laplace, em.Pair(0, 1), em.PureDP(1.0), samples=4000, seed=0).is_refuted


def test_inputs_beyond_the_sensitivity_are_not_blamed_on_the_mechanism():
    with pytest.raises(
        em.InputError,
        match="2 apart, but diffprivlib Laplace only makes a promise up to sensitivity=1",
    ):
        em.audit(dpl.Laplace(epsilon=1.0, sensitivity=1), em.Pair(0, 2), samples=100)


def test_mechanisms_with_the_dataset_inside_are_refused():
    owner = dpl.Exponential(epsilon=1.0, sensitivity=1, utility=[0.0, 1.0])
    with pytest.raises(
        em.InputError, match=r"give a function of it instead: lambda utility: Exponential"
    ):
        em.audit(owner, em.Pair([0, 1], [1, 0]), em.PureDP(1.0))


def test_a_fixed_random_state_is_not_copied_to_workers():
    owner = dpl.Laplace(epsilon=1.0, sensitivity=1, random_state=3)
    with pytest.raises(em.InputError, match="every worker would draw the same"):
        em.audit(owner, em.Pair(0, 1), samples=1000, jobs=2)


def test_neither_package_is_imported_by_us():
    code = (
        "import sys, epsilometer as em\n"
        "em.audit(em.zoo.laplace(), samples=100)\n"
        "print(sorted({'opendp', 'diffprivlib', 'pyarrow', 'ssl', 'http.client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
