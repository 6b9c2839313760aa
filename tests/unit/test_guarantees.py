"""The kind of a guarantee, from the text that results store."""

import pytest

from epsilometer.guarantees import Guarantee, GuaranteeKind, parse_guarantee


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("exact", GuaranteeKind.EXACT, ""),
        ("asymptotic", GuaranteeKind.ASYMPTOTIC, ""),
        (
            "conditional: f is C-Lipschitz: C = 2",
            GuaranteeKind.CONDITIONAL,
            "f is C-Lipschitz: C = 2",
        ),
        ("none: practical n", GuaranteeKind.NONE, "practical n"),
        ("none", GuaranteeKind.NONE, ""),
    ],
)
def test_a_text_is_a_kind_and_a_detail_and_back(text, kind, detail):
    guarantee = parse_guarantee(text)
    assert guarantee == Guarantee(kind, detail)
    assert str(guarantee) == text
    assert guarantee.is_proved is (kind is not GuaranteeKind.NONE)


@pytest.mark.parametrize(
    "text", ["", "exactly", "nonetheless exact", "Exact", "a promise: of mine"]
)
def test_an_unknown_kind_promises_nothing(text):
    guarantee = parse_guarantee(text)
    assert not guarantee.is_proved
    assert guarantee.detail == text
