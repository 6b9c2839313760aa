"""The names other people's code calls: they stay."""

import inspect

import pytest

import epsilometer as em

FUNCTIONS = ["audit", "measure", "compare", "replay", "verify", "from_callable", "from_batch"]
CLAIMS = ["PureDP", "ApproxDP", "RenyiDP", "ZCDP", "GaussianDP", "TradeOffDP"]
TYPES = ["Pair", "Verdict", "AuditResult"]
ERRORS = [
    "EpsilometerError",
    "MechanismError",
    "InputError",
    "MissingExtraError",
    "PrivacyViolation",
]
ZOO = [
    *(
        "laplace",
        "gaussian",
        "geometric",
        "randomized_response",
        "exponential",
        "report_noisy_max",
        "noisy_histogram",
    ),
    *(
        "svt1",
        "svt2",
        "svt3",
        "svt4",
        "svt5",
        "svt6",
        "numerical_svt",
        "propose_test_release",
        "clamped_laplace",
    ),
    "dp_mean",
]


@pytest.mark.parametrize(
    "name", [*FUNCTIONS, *CLAIMS, *TYPES, *ERRORS, "zoo", "domains", "finders"]
)
def test_name_is_public(name):
    assert name in em.__all__
    assert name in dir(em)
    assert getattr(em, name) is not None


# What stands at the top, by kind; whatever else is public lives in one of the modules.
TOP = {
    "verbs": {"audit", "measure", "profile", "compare", "replay", "verify", "plan"},
    "scores": {"ScoreAudit", "ScoreStream", "from_scores", "from_one_run", "one_run"},
    "claims": {*CLAIMS},
    "factories": {
        *("from_batch", "from_callable", "from_command", "from_http", "from_opendp"),
        *("from_recording", "fitted", "repeated"),
    },
    "inputs": {"Pair", "around"},
    "progress": {"ProgressBar"},
    "results": {"AuditResult", "Finding", "OneRunAudit", "Profile", "Verdict", "Witness"},
    "errors": {*ERRORS, "BlindAudit", "EngineError"},
    "warnings": {"BlindAuditWarning", "EpsilometerWarning"},
    "modules": {"domains", "finders", "methods", "models", "zoo", "sequential"},
    "papers": {"local", "ldp", "renyi", "auditorium"},
}


def test_nothing_else_is_at_the_top():
    assert set(em.__all__) == set().union(*TOP.values())
    assert {name for name in dir(em) if not name.startswith("__")} == set(em.__all__)


def test_the_planner_of_audits_and_that_of_estimates_are_two():
    assert list(inspect.signature(em.plan).parameters)[:2] == ["claim", "truth"]
    assert "precision" in inspect.signature(em.ldp.plan).parameters


@pytest.mark.parametrize(
    ("name", "meant"), [("adit", "audit"), ("PurDP", "PureDP"), ("mmd", "auditorium.mmd")]
)
def test_a_misspelt_name_is_told_what_was_meant(name, meant):
    with pytest.raises(AttributeError, match=meant):
        getattr(em, name)


NAMESPACES = sorted(name for kind in ("modules", "papers") for name in TOP[kind])


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_namespace_shows_its_public_names_and_nothing_else(name):
    namespace = getattr(em, name)
    assert set(dir(namespace)) == set(namespace.__all__)
    assert [known for known in namespace.__all__ if not hasattr(namespace, known)] == []


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_name_misspelt_in_a_namespace_is_told_what_was_meant(name):
    namespace = getattr(em, name)
    longest = max(namespace.__all__, key=len)
    misspelt = longest[:-2] + longest[-1]
    with pytest.raises(AttributeError, match=f"{misspelt}.*did you mean '{longest}'"):
        getattr(namespace, misspelt)


def test_every_exported_name_exists_once():
    assert len(em.__all__) == len(set(em.__all__))
    assert [name for name in em.__all__ if not hasattr(em, name)] == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = em.no_such_name


def test_audit_has_the_promised_parameters():
    parameters = inspect.signature(em.audit).parameters
    assert list(parameters)[:3] == ["mechanism", "inputs", "claim"]
    promised = {"samples": 100_000, "confidence": 0.95, "seed": None, "method": "auto"}
    assert {name: parameters[name].default for name in promised} == promised


@pytest.mark.parametrize("name", ["measure", "compare"])
def test_relatives_of_audit_share_its_keywords(name):
    assert {"confidence", "seed", "method"} <= set(inspect.signature(getattr(em, name)).parameters)


def test_errors_can_be_caught_as_what_they_also_are():
    assert issubclass(em.InputError, ValueError)
    assert issubclass(em.MissingExtraError, ImportError)
    assert issubclass(em.PrivacyViolation, AssertionError)
    assert all(issubclass(getattr(em, name), em.EpsilometerError) for name in ERRORS)


def test_verdicts():
    assert {verdict.name for verdict in em.Verdict} == {"REFUTED", "NOT_REFUTED", "INCONCLUSIVE"}


@pytest.mark.parametrize("name", ["Number", "Integer", "Category", "Vector", "Queries", "Table"])
def test_domains_have(name):
    assert callable(getattr(em.domains, name))


@pytest.mark.parametrize("name", ["Random", "Grid", "Bayesian", "Patterns"])
def test_finders_have(name):
    assert callable(getattr(em.finders, name))


def test_a_finder_is_made_as_promised():
    domain = em.domains.Vector(4, low=0, high=1)
    finder = em.finders.Random(domain, relation="replace", trials=50, samples=20_000, seed=0)
    assert (finder.trials, finder.samples) == (50, 20_000)


@pytest.mark.parametrize("name", ZOO)
def test_zoo_has(name):
    assert callable(getattr(em.zoo, name))
