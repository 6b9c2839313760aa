"""The one line that a failed test is known by."""

from epsilometer.report.headline import headline
from epsilometer.result import Verdict


def test_a_refuted_claim_shows_both_numbers(make_result):
    assert headline(make_result()).startswith("noisy_count: ε ≥ ")


def test_a_blind_audit_shows_function_claim_and_draws(make_result):
    result = make_result(Verdict.NOT_REFUTED, bound=0.0, blind="too few draws")
    name, numbers = headline(result).split(": ")
    assert name == "noisy_count"
    assert numbers == f"{max(result.samples_used):,} draws cannot refute ε = 1"


def test_an_inconclusive_audit_names_the_claim(make_result):
    assert "inconclusive" in headline(make_result(Verdict.INCONCLUSIVE))
