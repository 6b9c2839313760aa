"""The audits of one run of pytest as a family: an equal share for each, and none for a look that is not paid for."""

import re

import pytest

import epsilometer as em
from epsilometer.testing import frozen_seed

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    import epsilometer as em

    def noisy(dataset, n, rng):
        return rng.laplace(dataset, 1.0, n)

    def audit(epsilometer, **settings):
        settings = {"samples": 400, **settings}
        return epsilometer.assert_private(em.from_batch(noisy), em.Pair(0, 1), em.PureDP(2.0), **settings).confidence

    @pytest.mark.parametrize("number", [1, 2])
    def test_default(epsilometer, number):
        print(f"default={audit(epsilometer)!r}")

    def test_strict(epsilometer):
        print(f"strict={audit(epsilometer, confidence=0.9999)!r}")

    @pytest.mark.epsilometer(confidence=0.6)
    def test_lenient(epsilometer):
        print(f"lenient={audit(epsilometer)!r}")

    @pytest.mark.epsilometer(audits=2)
    def test_two(epsilometer):
        print(f"first={audit(epsilometer)!r}")
        print(f"second={audit(epsilometer)!r}")

    @pytest.fixture
    def auditor(epsilometer):
        return epsilometer

    def test_through_a_fixture(auditor):
        print(f"through={audit(auditor)!r}")

    def test_without():
        pass
"""
CONFIDENCE = ("-o", "epsilometer_family_confidence=0.93")


@pytest.fixture(scope="module")
def loaded():
    """Everything that an audit needs: a run in this process forgets what it loads, and NumPy cannot be loaded twice."""
    str(em.audit(frozen_seed(), em.Pair(0, 1), em.PureDP(1.0), samples=1000))


@pytest.fixture
def run(pytester, loaded):
    """Runs pytest in this process, which has paid for loading everything."""
    return pytester.runpytest_inprocess


def confidences(outcome):
    return {
        name: float(value)
        for name, value in re.findall(r"(\w+)=(0\.\d+)$", outcome.stdout.str(), re.MULTILINE)
    }


def test_every_audit_gets_an_equal_share(pytester, run):
    pytester.makepyfile(TESTS)
    outcome = run("-s", *CONFIDENCE)
    outcome.assert_outcomes(passed=7)
    found = confidences(outcome)
    share = 1.0 - 0.07 / 7  # seven audits in six tests
    strict = found.pop("strict")
    assert strict == 0.9999
    assert set(found) == {"default", "lenient", "first", "second", "through"}
    assert all(confidence == pytest.approx(share, abs=1e-12) for confidence in found.values())
    outcome.stdout.fnmatch_lines(
        [
            "family: with probability at least 93 % no true claim is called refuted in this run (7 shares of 0.07)"
        ]
    )


def test_the_family_is_what_was_selected_unless_its_size_is_given(pytester, run):
    pytester.makepyfile(TESTS)
    alone = confidences(run("-s", "-k", "test_lenient", *CONFIDENCE))
    assert alone["lenient"] == pytest.approx(0.93)
    fixed = confidences(
        run("-s", "-k", "test_lenient", *CONFIDENCE, "-o", "epsilometer_family_size=70")
    )
    assert fixed["lenient"] == pytest.approx(0.999)


def test_without_a_family_nothing_changes(pytester, run):
    pytester.makepyfile(TESTS)
    outcome = run("-s")
    outcome.assert_outcomes(passed=7)
    assert confidences(outcome)["first"] == 1 - 1e-6
    assert "family:" not in outcome.stdout.str()


def test_an_audit_that_was_not_counted_is_refused(pytester, run):
    pytester.makepyfile(
        TESTS
        + """
    def test_one_too_many(epsilometer):
        audit(epsilometer)
        audit(epsilometer)

    def test_hidden(request):
        audit(request.getfixturevalue("epsilometer"))
    """
    )
    outcome = run("-k", "too_many or hidden", *CONFIDENCE)
    outcome.assert_outcomes(failed=2)
    outcome.stdout.fnmatch_lines(
        [
            "*test_one_too_many has spent its share*",
            "*test_hidden was not counted as a test with an audit*",
        ],
    )


RUN_AGAIN = """
    from _pytest.runner import runtestprotocol

    def pytest_runtest_protocol(item, nextitem):
        runtestprotocol(item, nextitem=nextitem, log=False)
        item._initrequest()
        runtestprotocol(item, nextitem=nextitem, log=True)
        return True
"""


def test_a_test_that_is_run_again_is_refused(pytester, run):
    """As pytest-rerunfailures does it; a rerun may not wash a refutation away, nor look twice for one."""
    pytester.makeconftest(RUN_AGAIN)
    pytester.makepyfile(TESTS)
    run("-k", "test_strict").assert_outcomes(passed=1)
    outcome = run("-k", "test_strict", *CONFIDENCE)
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*an audit of a test that is run again, is a new look*"])


def test_the_line_for_the_same_draws_keeps_the_share(pytester, run):
    pytester.makepyfile(
        TESTS
        + """
    def test_leaks(epsilometer):
        leaky = em.from_batch(lambda dataset, n, rng: rng.laplace(dataset, 0.2, n))
        epsilometer.assert_private(leaky, em.Pair(0, 1), em.PureDP(1.0), samples=4000)
    """
    )
    text = run(*CONFIDENCE).stdout.str()
    line = re.search(r"The same draws again: pytest (.*)", text)[1]
    assert "-o epsilometer_family_size=8" in line
    again = run(*(part.strip('"') for part in line.split()), *CONFIDENCE).stdout.str()
    bound = r"ε is at least ([0-9.]+)"
    assert re.search(bound, again)[1] == re.search(bound, text)[1]


def test_processes_of_xdist_need_the_size(pytester, run):
    pytester.makepyfile(TESTS)
    refused = run("-n", "1", *CONFIDENCE)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*needs epsilometer_family_size*"])
    outcome = run("-n", "1", *CONFIDENCE, "-o", "epsilometer_family_size=70")
    outcome.assert_outcomes(passed=7)
    outcome.stdout.fnmatch_lines(["family: *(70 shares of 0.07)"])
    outcome.stdout.re_match_lines([r".*::test_two .* 0\.001$"])
    small = run("-n", "1", *CONFIDENCE, "-o", "epsilometer_family_size=3")
    small.stdout.fnmatch_lines(
        ["*epsilometer_family_size=3, but the collected tests run 7 audits*"]
    )
    small.assert_outcomes(passed=1, failed=6)
    each = run("--dist=each", "--tx=popen", *CONFIDENCE, "-o", "epsilometer_family_size=70")
    each.stderr.fnmatch_lines(["*--dist=each runs every audit several times*"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ("-o", "epsilometer_family_confidence=95"),
            "epsilometer_family_confidence=95 must be a number above 0",
        ),
        (
            ("-o", "epsilometer_family_confidence=high"),
            "epsilometer_family_confidence=high must be a number above 0",
        ),
        (
            (*CONFIDENCE, "-o", "epsilometer_family_size=0"),
            "epsilometer_family_size=0 must be a whole number",
        ),
        ((*CONFIDENCE, "-o", "epsilometer_family_size=6"), "the collected tests run 7 audits"),
        ((*CONFIDENCE, "--epsilometer-night=0"), "--epsilometer-night=0 must be at least 1"),
        (("--epsilometer-night=3",), "--epsilometer-night needs epsilometer_family_confidence"),
    ],
)
def test_mistakes_are_named(pytester, run, arguments, reason):
    pytester.makepyfile(TESTS)
    outcome = run(*arguments)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert reason in outcome.stderr.str() + outcome.stdout.str()


def test_a_night_pays_its_share_and_a_fixed_seed_is_named(pytester, run):
    pytester.makepyfile(TESTS)
    selected = ("-s", "-k", "test_lenient", *CONFIDENCE, "--epsilometer-night=3")
    fixed = run(*selected)
    share = 0.07 * 6 / (9 * 9.869604401089358)
    assert confidences(fixed)["lenient"] == pytest.approx(1.0 - share, abs=1e-12)
    fixed.stdout.fnmatch_lines(["*warning: with a fixed seed every night sees the same draws*"])
    fixed.stdout.fnmatch_lines(["family: *over all nights, of which this is number 3*"])
    fresh = run(*selected, "--epsilometer-profile=nightly")
    assert "warning: with a fixed seed" not in fresh.stdout.str()


def test_an_approximate_guarantee_is_listed_apart(pytester, run):
    pytester.makepyfile(
        TESTS
        + """
    def test_rough(epsilometer):
        claim = em.RenyiDP(2.0, 9.0)
        epsilometer.assert_private(em.from_batch(noisy), em.Pair(0, 1), claim, samples=2000, method="renyi-floored")
    """
    )
    outcome = run("-k", "test_rough", *CONFIDENCE)
    outcome.assert_outcomes(passed=1)
    outcome.stdout.fnmatch_lines(
        ["not covered by that: *::test_rough, whose guarantee is asymptotic"]
    )
