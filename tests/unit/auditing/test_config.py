"""The keywords that type checkers know are those that the verbs take."""

import inspect
from typing import get_type_hints

import pytest

import epsilometer as em
from epsilometer.auditing.config import (
    AuditConfig,
    AuditKeywords,
    CompareKeywords,
    MeasureKeywords,
    ProfileKeywords,
)

FIXED = {"epsilon", "delta", "order"}


def keywords_of(verb):
    parameters = inspect.signature(verb).parameters.values()
    return {
        parameter.name
        for parameter in parameters
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


@pytest.mark.parametrize(
    ("verb", "keywords", "fixed"),
    [
        (em.audit, AuditKeywords, set()),
        (em.measure, MeasureKeywords, FIXED),
        (em.profile, ProfileKeywords, set()),
        (em.compare, CompareKeywords, set()),
    ],
)
def test_type_checkers_know_the_keywords(verb, keywords, fixed):
    assert keywords_of(verb) == set(get_type_hints(keywords)) - fixed


def test_the_settings_of_audit_are_the_configuration():
    assert set(get_type_hints(AuditKeywords)) == {*AuditConfig.__dataclass_fields__}
