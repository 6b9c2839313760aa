"""Secrets in the forms in which they may come back."""

from epsilometer.redaction import secrets_of


def test_a_basic_credential_is_decoded():
    secrets = secrets_of(named={"Authorization": "Basic bmFtZTpwYXNzd29yZA=="})
    assert {"bmFtZTpwYXNzd29yZA==", "name:password", "password"} <= secrets


def test_a_basic_credential_that_is_not_base64_is_a_secret_as_it_is():
    for value in ("pässword", "not*base64", "//79"):  # not ASCII, not in the alphabet, not UTF-8
        assert f"Basic {value}" in secrets_of(named={"Authorization": f"Basic {value}"})
