"""The pytest plugin, in runs of pytest of its own."""

import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

import pytest

import epsilometer as em
from epsilometer.testing import frozen_seed

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    import epsilometer as em

    def noisy(dataset, n, rng):
        return rng.laplace(dataset, 1.0, n)

    def leaky(dataset, n, rng):
        return rng.laplace(dataset, 0.4, n)

    def test_keeps(epsilometer):
        result = epsilometer.assert_private(em.from_batch(noisy), em.Pair(0, 1), em.PureDP(1.0), samples=5000)
        assert result.confidence == 1 - 1e-6

    def test_leaks(epsilometer):
        epsilometer.assert_private(em.from_batch(leaky), em.Pair(0, 1), "eps=1", samples=20_000)

    @pytest.mark.epsilometer(samples=2000, confidence=0.999)
    def test_marked(epsilometer):
        first = epsilometer.assert_private(em.from_batch(noisy), (0, 1), em.PureDP(2.0))
        second = epsilometer.assert_private(em.from_batch(noisy), (0, 1), em.PureDP(2.0), confidence=0.99)
        assert (first.settings["samples"], first.confidence, second.confidence) == (2000, 0.999, 0.99)
        assert first.settings["seed"] != second.settings["seed"]

    def test_without():
        pass
"""
LEAKY = """
    import epsilometer as em

    def draw(dataset, n, rng):
        return rng.laplace(dataset, 0.4, n)

    def test_leaks(epsilometer):
        epsilometer.assert_private(em.from_batch(draw), em.Pair(0, 1), em.PureDP(1.0), samples=20_000)
"""


@pytest.fixture(scope="module")
def loaded():
    """Everything that an audit needs: a run in this process forgets what it loads, and NumPy cannot be loaded twice."""
    str(em.audit(frozen_seed(), em.Pair(0, 1), em.PureDP(1.0), samples=1000))


@pytest.fixture
def run(pytester, loaded, monkeypatch):
    """Runs pytest in this process, which has paid for loading everything, in a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")
    return pytester.runpytest_inprocess


@pytest.fixture
def run_apart(pytester):
    """Runs pytest in a process of its own, as a user does."""
    return pytester.runpytest_subprocess


def failure(outcome):
    return "\n".join(
        line.removeprefix("E").strip() for line in outcome.outlines if line.startswith("E")
    )


def test_verdicts_become_outcomes(pytester, run_apart):
    pytester.makepyfile(TESTS)
    outcome = run_apart("--strict-markers")
    outcome.assert_outcomes(passed=3, failed=1)
    text = failure(outcome)
    assert "REFUTED" in text
    assert "fails at most once in 1,000,000 runs; exact guarantee" in text
    assert re.search(r"event +output [<≥≤>]", text)
    assert 'pytest "test_verdicts_become_outcomes.py::test_leaks"' in text
    assert (
        "_epsilometer_pytest.py" not in outcome.stdout.str()
    )  # our own lines stay out of the traceback


FAILING = """
    import pytest
    import epsilometer as em
    from epsilometer.testing import Auditor

    def dp_median(x, rng):
        return x + rng.laplace(scale=0.4)

    def raising(x, rng):
        raise ValueError("no data")

    def test_leaks(epsilometer: Auditor):
        epsilometer.assert_private(dp_median, em.Pair(0, 1), em.PureDP(1.0), samples=2000)

    def test_raises(epsilometer):
        epsilometer.assert_private(raising, em.Pair(0, 1), em.PureDP(1.0), samples=2000)

    def test_misspelt(epsilometer):
        epsilometer.assert_private(dp_median, em.Pair(0, 1), em.PureDP(1.0), sampels=2000)
"""


def test_a_failure_begins_with_its_own_message(pytester, run):
    pytester.makepyfile(FAILING)
    lines = run("-k", "leaks").outlines
    title = next(i for i, line in enumerate(lines) if re.fullmatch("_+ test_leaks _+", line))
    message = lines[title + 1]
    assert re.fullmatch(r"dp_median: ε ≥ \d\.\d+ > 1", message)
    assert f"FAILED test_a_failure_begins_with_its_own_message.py::test_leaks - {message}" in lines
    text = "\n".join(lines)
    assert f"E       {message}\n" in text
    assert "epsilometer = " not in text
    assert "errors.PrivacyViolation" not in text


@pytest.mark.parametrize("style", ["short", "long", "line", "native", "no"])
def test_the_message_survives_every_style(pytester, run, style):
    pytester.makepyfile(FAILING)
    outcome = run("-k", "leaks", f"--tb={style}")
    outcome.assert_outcomes(failed=1)
    assert any(re.search(r"::test_leaks - dp_median: ε ≥", line) for line in outcome.outlines)


def test_frames_of_the_engine_are_hidden(pytester, run):
    pytester.makepyfile(FAILING)
    text = run("-k", "raises or misspelt").stdout.str()
    assert "src/epsilometer/" not in text
    assert "contextlib.py" not in text  # by which the engine calls itself
    assert 'raise ValueError("no data")' in text
    assert "::test_raises - raising raised ValueError" in text
    assert "epsilometer = <epsilometer of test_raises>" in text
    full = run("-k", "raises", "--full-trace").stdout.str()
    assert "audit_with_config" in full


WITHOUT_THE_FIXTURE = """
    import epsilometer as em

    def noisy(x, rng):
        return x + rng.laplace(scale=0.3)

    def test_refuted():
        em.audit(noisy, em.Pair(0, 1), em.PureDP(1.0), samples=2000, seed=0).raise_if_refuted()

    def test_blind():
        result = em.audit(noisy, em.Pair(0, 1), em.PureDP(9.0), samples=400, seed=0)
        result.raise_if_refuted(fail_blind=True)
"""


def test_without_the_fixture_a_failure_begins_with_its_own_message_too(pytester, run):
    pytester.makepyfile(WITHOUT_THE_FIXTURE)
    outcome = run()
    outcome.assert_outcomes(failed=2)
    text = outcome.stdout.str()
    assert "src/epsilometer/" not in text
    assert "def raise_if_refuted" not in text
    assert re.search(r"_ test_refuted _+\nnoisy: ε ≥ \d\.\d+ > 1\n", text)
    assert re.search(r"FAILED .*::test_refuted - noisy: ε ≥ \d\.\d+ > 1\n", text)
    assert re.search(r"FAILED .*::test_blind - noisy: 400 draws cannot refute ε = 9\n", text)


def test_one_audit_for_a_module(pytester, run):
    pytester.makepyfile(
        """
        import pytest
        import epsilometer as em
        from epsilometer.testing import Auditor

        pytestmark = pytest.mark.epsilometer(samples=1000)

        def noisy(x, rng):
            return x + rng.laplace()

        @pytest.fixture(scope="module")
        def result(epsilometer_module: Auditor):
            assert isinstance(epsilometer_module, Auditor)
            return epsilometer_module.assert_private(noisy, em.Pair(0, 1), em.PureDP(3.0))

        def test_first(result):
            assert result.settings["samples"] == 1000

        def test_second(result, epsilometer):
            assert epsilometer.assert_private(noisy, em.Pair(0, 1), em.PureDP(3.0)) is not result

        @pytest.fixture(scope="module")
        def leak(epsilometer_module):
            return epsilometer_module.assert_private(noisy, em.Pair(0, 9), em.PureDP(1.0))

        def test_third(leak):
            pass
        """
    )
    outcome = run("-o", "epsilometer_family_confidence=0.95")
    outcome.assert_outcomes(passed=2, errors=1)
    rows = [line for line in outcome.outlines if "PureDP" in line and "::" in line]
    assert [row.split()[0].partition("::")[2] for row in rows] == [
        "test_first",
        "test_second",
        "test_third",
    ]


def test_the_summary_has_a_line_per_audit(pytester, run):
    pytester.makepyfile(TESTS)
    lines = run().outlines
    start = next(i for i, line in enumerate(lines) if re.fullmatch("=+ epsilometer =+", line))
    table = lines[start + 1 : start + 7]
    assert table[0].split()[:3] == ["test", "verdict", "claim"]
    assert sum("::test_marked" in line for line in table) == 2
    assert any("::test_leaks" in line and " refuted" in line for line in table)
    # 2 tests at 1e-6, one audit at 1e-3, one at 1e-2
    assert table[5] == "4 audits; the chance that any true claim fails in this run is at most 0.011"


def test_the_summary_says_what_was_switched_off(pytester, run):
    pytester.makepyfile("""
        import epsilometer as em

        def test_keeps(epsilometer):
            noisy = em.from_batch(lambda dataset, n, rng: rng.laplace(dataset, 1.0, n))
            epsilometer.assert_private(noisy, em.Pair(0, 1), em.PureDP(1.0), samples=1000, suppress=["drift"])
    """)
    outcome = run("--junit-xml=r.xml")
    assert any(
        "not refuted, with the drift check switched off" in line for line in outcome.outlines
    )
    properties = ElementTree.parse(pytester.path / "r.xml").iter("property")
    assert ("epsilometer.with", "the drift check switched off") in [
        (p.get("name"), p.get("value")) for p in properties
    ]


def test_the_replay_line_gives_the_same_figures(pytester, run):
    pytester.makepyfile(LEAKY)
    first = failure(run())
    again = re.search(r"The same draws again: pytest (.*)", first)[1]
    fresh = re.search(r"Fresh draws: +pytest (.*)", first)[1]

    def bound(text):
        return re.search(r"ε is at least ([0-9.]+)", text)[1]

    def rerun(line):
        return failure(run(*(each.strip('"') for each in line.split())))

    assert bound(rerun(again)) == bound(first)
    assert bound(rerun(fresh)) != bound(first)


def test_the_stored_result_can_be_replayed(pytester, run):
    pytester.makepyfile(LEAKY)
    stored = re.search(r"epsilometer replay (\S+) module:function", failure(run()))[1]
    done = subprocess.run(
        [sys.executable, "-m", "epsilometer", "replay", stored, f"{pytester.path.name[:-1]}:draw", "--batch"],
        cwd=pytester.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr


def test_without_a_cache_nothing_is_stored(pytester, run):
    pytester.makepyfile(LEAKY)
    outcome = run("-p", "no:cacheprovider")
    outcome.assert_outcomes(failed=1)
    assert "epsilometer replay" not in failure(outcome).partition("False alarm")[2]


def test_order_and_selection_change_no_seed(pytester, run):
    pytester.makepyfile(TESTS)

    def seeds(*arguments):
        run("--junit-xml=j.xml", *arguments)
        cases = ElementTree.parse(pytester.path / "j.xml").iter("testcase")
        return {
            case.get("name"): [
                each.get("value")
                for each in case.iter("property")
                if each.get("name").endswith("seed")
            ]
            for case in cases
        }

    whole = seeds()
    assert len({seed for each in whole.values() for seed in each}) == 4
    assert seeds("-k", "test_leaks")["test_leaks"] == whole["test_leaks"]
    assert seeds("-n", "1") == whole  # in a process of xdist's
    assert seeds("--epsilometer-seed=1")["test_leaks"] != whole["test_leaks"]


def test_junit_properties(pytester, run):
    pytester.makepyfile(TESTS)
    run("--junit-xml=j.xml")
    cases = {
        case.get("name"): case
        for case in ElementTree.parse(pytester.path / "j.xml").iter("testcase")
    }
    noted = {each.get("name"): each.get("value") for each in cases["test_leaks"].iter("property")}
    assert noted["epsilometer.verdict"] == "refuted"
    assert noted["epsilometer.samples"] == "20000"
    assert noted["epsilometer.false_alarm"] == "1e-06"
    assert float(noted["epsilometer.lower_bound"]) > 1
    marked = {each.get("name") for each in cases["test_marked"].iter("property")}
    assert {"epsilometer.verdict", "epsilometer.2.verdict"} <= marked
    assert not list(cases["test_without"].iter("property"))


def test_workers_of_xdist_report_to_the_summary(pytester, run_apart):
    pytester.makepyfile(TESTS)
    outcome = run_apart("-n", "2", "--epsilometer-profile=nightly", "--epsilometer-samples=1000")
    outcome.stdout.fnmatch_lines(["4 audits; *"])
    outcome.stdout.re_match_lines([r"epsilometer: profile nightly, --epsilometer-seed=\d+"])


def test_profiles_and_samples(pytester, run):
    pytester.makepyfile(
        """
        import epsilometer as em

        def draw(dataset, n, rng):
            return rng.laplace(dataset, 1.0, n)

        def test_it(epsilometer):
            result = epsilometer.assert_private(em.from_batch(draw), em.Pair(0, 1), em.PureDP(1.0), samples=3000)
            print("used", result.settings["samples"])
        """
    )
    assert "used 3000" in run("-s").stdout.str()
    assert "used 30000" in run("-s", "--epsilometer-profile=nightly").stdout.str()
    assert (
        "used 500"
        in run("-s", "--epsilometer-profile=nightly", "--epsilometer-samples=500").stdout.str()
    )
    assert run("--epsilometer-profile=weekly").ret == 4


def test_draws_that_cannot_be_trusted_fail(pytester, run):
    pytester.makepyfile(
        """
        import epsilometer as em
        from epsilometer.testing import frozen_seed

        def test_it(epsilometer):
            epsilometer.assert_private(frozen_seed(), em.Pair(0, 0.1), em.PureDP(9.0), samples=400_000)
        """
    )
    outcome = run()
    outcome.assert_outcomes(failed=1)
    assert "INCONCLUSIVE" in failure(outcome)


def test_an_inconclusive_audit_fails_unless_that_is_allowed(pytester, run):
    pytester.makepyfile(
        """
        import pytest
        import epsilometer as em

        def exact(x):
            return float(x)

        exact.__qualname__ = "nowhere"  # nothing could test it

        def audited(epsilometer, **settings):
            return epsilometer.assert_private(exact, em.Pair(0, 1), em.PureDP(1.0), samples=300, **settings)

        def test_fails(epsilometer):
            audited(epsilometer)

        def test_allowed(epsilometer):
            assert audited(epsilometer, allow_inconclusive=True).verdict is em.Verdict.INCONCLUSIVE

        @pytest.mark.epsilometer(allow_inconclusive=True)
        def test_marked(epsilometer):
            audited(epsilometer)

        def test_refuted_is_not_allowed(epsilometer):
            audited(epsilometer, allow_inconclusive=True, constant="leak")
        """
    )
    outcome = run()
    outcome.assert_outcomes(passed=2, failed=2)
    # What is inconclusive fails however true the claim is: only a refutation has a false alarm.
    assert outcome.stdout.str().count("False alarm") == 1
    assert "This failure says nothing about the claim" in outcome.stdout.str()


def test_an_unseeded_mechanism_promises_no_repetition(pytester, run):
    pytester.makepyfile(
        """
        import random
        import epsilometer as em

        def test_it(epsilometer):
            epsilometer.assert_private(lambda x: x + random.random() / 2, em.Pair(0, 1), em.PureDP(1.0), samples=500)
        """
    )
    text = failure(run())
    assert "The same draws again" not in text
    assert "Fresh draws (the mechanism takes no seed): pytest" in text


def test_nothing_is_imported_when_it_is_not_used(pytester, run_apart):
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert not [name for name in sys.modules if name.partition(".")[0] in ("epsilometer", "numpy", "scipy")]
        """
    )
    outcome = run_apart()
    outcome.assert_outcomes(passed=1)
    assert "epsilometer" not in "".join(line for line in outcome.outlines if line.startswith("="))


LIBRARY = """
    def noisy_sum(values, rng):
        return sum(min(max(value, 0.0), 1.0) for value in values) + rng.laplace(scale={scale})
"""
GIVEN = """
    import epsilometer as em
    from epsilometer.testing import audited
    from hypothesis import strategies as st
    from library import noisy_sum

    @audited(st.lists(st.floats(0, 1), max_size=4), em.PureDP(1.0), relation="add-remove", trials=12, samples=1500)
    def test_given(data, rng):
        return noisy_sum(data, rng)

    def test_domain(epsilometer):
        data = em.domains.Records(em.domains.Number(0, 1))
        epsilometer.assert_private(noisy_sum, data, em.PureDP(1.0), relation="add-remove", trials=12, samples=1500)
"""


def test_strategies_and_domains_drive_audits_and_leaks_become_tests(pytester):
    """What a search found is written as tests, which fail as long as the bug is there and pass when it is mended."""

    def outcomes(*arguments, scale):
        # Another process each time, because the library changes under the same name.
        pytester.makepyfile(library=textwrap.dedent(LIBRARY).format(scale=scale))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)

    pytester.makepyfile(test_given=GIVEN)
    found = outcomes("--epsilometer-write-tests=.", "test_given.py", scale=0.3)
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines(
        ["*Regression test:*test_leak_given.py*", "*Regression test:*test_leak_domain.py*"]
    )
    written = sorted(path.name for path in pytester.path.glob("test_leak_*.py"))
    assert written == ["test_leak_domain.py", "test_leak_given.py"]
    outcomes(*written, scale=0.3).assert_outcomes(failed=2)
    outcomes("test_given.py", *written, scale=1.0).assert_outcomes(passed=4)


BLIND = """
    import pytest
    import epsilometer as em

    def noisy(dataset, n, rng):
        return rng.laplace(dataset, 1.0, n)

    def test_blind(epsilometer):
        epsilometer.assert_private(em.from_batch(noisy), (0, 1), em.PureDP(9.0), samples=400)

    def test_sharp(epsilometer):
        epsilometer.assert_private(em.from_batch(noisy), (0, 1), em.PureDP(1.5), samples=2000)

    @pytest.mark.epsilometer(fail_blind=True)
    def test_marked(epsilometer):
        epsilometer.assert_private(em.from_batch(noisy), (0, 1), em.PureDP(9.0), samples=400)

    def test_given(epsilometer):
        pair = (0, 1)
        epsilometer.assert_private(
            em.from_batch(noisy), pair, em.PureDP(9.0), samples=400, fail_blind=True
        )
"""


def test_blind_audits_warn_or_fail(pytester, loaded):
    pytester.makepyfile(test_audits=BLIND)
    run = pytester.runpytest("-W", "default", "-k", "test_blind or test_sharp")
    run.assert_outcomes(passed=2, warnings=1, deselected=2)
    text = run.stdout.str()
    assert "BlindAuditWarning: test_blind: NOT REFUTED, and could not have been: even an" in text
    head = next(line for line in text.splitlines() if "false alarm ≤" in line)
    assert "refutes from" in head
    rows = {
        line.split()[0].split("::")[-1]: line for line in text.splitlines() if "::test_" in line
    }
    assert " nothing " in rows["test_blind"]
    assert re.search(r" (1\.[5-9]|[2-9])\S* +2000 ", rows["test_sharp"])
    run = pytester.runpytest("-W", "default")
    run.assert_outcomes(passed=2, failed=2, warnings=1)
    assert "BlindAudit" in run.stdout.str()
    assert re.search(
        r"FAILED .*test_given - noisy: 400 draws cannot refute ε = 9", run.stdout.str()
    )
    pytester.makeini("[pytest]\nepsilometer_fail_blind = true\n")
    run = pytester.runpytest("-W", "default", "-k", "test_blind or test_sharp")
    run.assert_outcomes(passed=1, failed=1, deselected=2)


@pytest.mark.parametrize("name", ["audit", "check"])
def test_a_method_that_is_not_there_names_the_one_that_is(epsilometer, name):
    with pytest.raises(AttributeError, match=r"epsilometer\.assert_private\(mechanism, inputs"):
        getattr(epsilometer, name)
