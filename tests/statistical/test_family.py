"""A family of true claims at their boundary is rarely called refuted, in one run and over nights."""

import numpy as np

import epsilometer as em
from epsilometer.suites import Entry, Outcome, Terms, judge_family

# Randomised response whose ε is exactly the claimed 1: the hardest true claim.
MECHANISM = em.zoo.randomized_response()
N_CLAIMS = 20
# Low, so that errors are frequent enough to be counted.
CONFIDENCE = 0.5


def judge_true_claims(seed, terms, **how):
    """Audits true claims with few draws, and judges them as a family."""
    seeds = np.random.SeedSequence(seed).generate_state(N_CLAIMS)
    entries = [Entry(f"claim {number}", {"mechanism": "m:f"}, "d") for number in range(N_CLAIMS)]
    outcomes = {}
    for entry, its_seed in zip(entries, seeds, strict=True):
        result = em.audit(MECHANISM, samples=60, seed=int(its_seed), confidence=CONFIDENCE, **how)
        outcomes[entry.name] = Outcome(entry.name, "d", result, None, "")
    return judge_family(entries, outcomes, terms)


def test_a_true_claim_of_a_family_is_rarely_called_refuted(rarely):
    terms = Terms(confidence=CONFIDENCE, night=None, seed=0)
    refuted_some_alone = []

    def calls_some_refuted(seed):
        family = judge_true_claims(seed, terms)
        refuted_some_alone.append(bool(family.survivors or family.refuted_alone))
        return bool(family.survivors)

    runs = rarely(calls_some_refuted, rate=1.0 - CONFIDENCE, broken=0.9)
    assert sum(refuted_some_alone) == runs  # judged one by one, every run refutes a true claim


def test_nights_do_not_add_up(rarely):
    """Five nights together stay below the failure probability of the family; each alone would have it anew."""

    def calls_some_refuted_on_some_night(seed):
        for night in range(1, 6):
            terms = Terms(confidence=CONFIDENCE, night=night, seed=0)
            if judge_true_claims([seed, night], terms).survivors:
                return True
        return False

    rarely(calls_some_refuted_on_some_night, rate=1.0 - CONFIDENCE, broken=0.95)


def test_evidence_that_grows_until_it_suffices(rarely):
    """Audits that stop early, whose p-value is the inverse of their largest wealth."""
    terms = Terms(confidence=CONFIDENCE, night=None, seed=0)
    rarely(
        lambda seed: bool(judge_true_claims(seed, terms, stop_early=True).survivors),
        rate=1.0 - CONFIDENCE,
        broken=0.95,
    )


def test_what_an_audit_that_stops_early_refutes_survives(rng):
    """It would stop as soon as it is refuted alone, and hardly ever survive, if it did not know its share."""
    leak = em.zoo.laplace(epsilon=2.0)
    terms = Terms(confidence=0.95, night=3, seed=0)
    entry = Entry("leak", {"stop_early": True, "samples": 20_000}, "d")
    others = [Entry(f"claim {number}", {}, "d") for number in range(N_CLAIMS - 1)]
    for _ in range(5):
        settings = terms.settings_for(entry, N_CLAIMS) | {"seed": int(rng.integers(2**62))}
        result = em.audit(leak, leak.worst_pair, em.PureDP(1.0), **settings)
        outcomes = {each.name: Outcome(each.name, "d", None, "not done", "") for each in others}
        outcomes["leak"] = Outcome("leak", "d", result, None, "")
        family = judge_family([entry, *others], outcomes, terms)
        assert (result.is_refuted, family.size, family.survivors) == (True, N_CLAIMS, ("leak",))
