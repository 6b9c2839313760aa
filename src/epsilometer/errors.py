"""Everything that Epsilometer raises on purpose.

```
Exception
└── EpsilometerError            the root: catch this to catch all of them
    ├── MechanismError          the mechanism raised, hung, or returned something unusable
    ├── InputError              a parameter, file or claim is invalid (also a ValueError)
    ├── EngineError             workers died again and again, or there are none
    ├── MissingExtraError       an optional package is not installed (also an ImportError)
    ├── BudgetError             a bug in Epsilometer: too much failure probability was spent
    ├── PrivacyViolation        raised by `AuditResult.raise_if_refuted` (also an AssertionError)
    └── BlindAudit              raised by `raise_if_refuted(fail_blind=True)` (likewise)
Warning
└── EpsilometerWarning          something a user should know, but that does not change the answer
    └── BlindAuditWarning       an audit of a test could not have refuted anything
```
"""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from epsilometer.redaction import (
    public,
    without,
)

if TYPE_CHECKING:  # the result is only carried, never inspected
    from epsilometer.result import AuditResult

__all__ = [
    "BlindAudit",
    "BlindAuditWarning",
    "BudgetError",
    "EngineError",
    "EpsilometerError",
    "EpsilometerWarning",
    "InputError",
    "MechanismError",
    "MissingExtraError",
    "PrivacyViolation",
    "blamed",
    "did_you_mean",
    "discreet",
    "install_command",
    "meant_number",
    "meant_or_known",
    "safe_repr",
    "short_repr",
]


_LINE_BREAK = re.compile(r"\s*\n\s*")
# A number with a comma after the thousands, or else one with three decimals.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+%?")


class EpsilometerError(Exception):
    """The root of all our exceptions. Its text never shows what looks like a secret, see `public`.

    Example:
        >>> issubclass(em.InputError, em.EpsilometerError)
        True
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(public(arg) if isinstance(arg, str) else arg for arg in args))


def _on_one_line(args: tuple[object, ...]) -> tuple[object, ...]:
    """Texts without their line breaks: reprs of arrays and data frames have some."""
    return tuple(_LINE_BREAK.sub(" ", arg) if isinstance(arg, str) else arg for arg in args)


class MechanismError(EpsilometerError):
    """The mechanism raised, hung, or returned something that cannot be used.

    Its text is one line, whatever the repr of an input or an output looks like.

    Example:
        >>> try:
        ...     em.audit(lambda x: 1 / x, em.Pair(0, 1), em.PureDP(1.0), samples=100)
        ... except em.MechanismError as error:
        ...     print(error)
        <lambda> raised ZeroDivisionError on the input 0: 'division by zero'
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*_on_one_line(args))


class InputError(EpsilometerError, ValueError):
    """A parameter, a file or a claim is invalid. Its text is one line.

    Example:
        >>> try:
        ...     em.PureDP(-1.0)
        ... except em.InputError as error:
        ...     print(error)
        epsilon=-1.0 must be a finite number of at least 0
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*_on_one_line(args))


class MissingExtraError(EpsilometerError, ImportError):
    """An optional package is needed; the text names the command that installs it.

    Attributes:
        extra: the extra of this project that brings the package.

    Example:
        >>> print(em.MissingExtraError("pyarrow", "parquet", "reading draws.parquet"))
        reading draws.parquet needs the package pyarrow, which is not installed; ...
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        missing = f"{purpose} needs the package {package}, which is not installed"
        super().__init__(f"{missing}; install it with: {install_command(extra, package)}")
        self.extra = extra


class EngineError(EpsilometerError):
    """Workers died again and again, a scheduler went away, or there is none at the given address.

    Example:
        >>> issubclass(em.EngineError, em.EpsilometerError)
        True
    """


class BudgetError(EpsilometerError):
    """More failure probability was spent than the audit had: a bug, never a user's fault."""


class PrivacyViolation(EpsilometerError, AssertionError):
    """A claim was refuted. `result` holds the audit with its counterexample.

    Example:
        >>> try:
        ...     em.audit(em.zoo.dp_mean(), samples=1000, seed=0).raise_if_refuted()
        ... except em.PrivacyViolation as violation:
        ...     print(violation.result.is_refuted)
        True
    """

    def __init__(self, message: str, result: "AuditResult") -> None:
        super().__init__(message)
        self.result = result


class BlindAudit(EpsilometerError, AssertionError):
    """An audit could not have refuted anything. `result.blind` says why.

    Example:
        >>> try:
        ...     result = em.audit(em.zoo.laplace(), claim="eps=9", samples=100, seed=0)
        ...     result.raise_if_refuted(fail_blind=True)
        ... except em.BlindAudit as blind:
        ...     print(blind.result.verdict)
        not refuted
    """

    def __init__(self, message: str, result: "AuditResult") -> None:
        super().__init__(message)
        self.result = result


class EpsilometerWarning(UserWarning):
    """Something the user should know that does not change the answer.

    Example:
        >>> issubclass(em.EpsilometerWarning, UserWarning)
        True
    """


class BlindAuditWarning(EpsilometerWarning):
    """An audit of a test could not have refuted anything, so that its success says nothing.

    Example:
        >>> issubclass(em.BlindAuditWarning, em.EpsilometerWarning)
        True
    """


# What pip must be given for an extra, where that is more than the name of one package.
_REQUIREMENTS_OF_EXTRA = {
    "neural": "jax optax",
    "ray": "'ray[client]'",
    "diffprivlib": "diffprivlib 'scikit-learn<1.9'",
}


def install_command(extra: str, package: str) -> str:
    """Returns the command that installs an extra, by the names of its packages.

    `pip install epsilometer[extra]` would ask an index for this project, which is on none yet.

    Args:
        extra: its name in pyproject.toml.
        package: what it consists of, where that is one package.
    """
    return f"pip install {_REQUIREMENTS_OF_EXTRA.get(extra, package)}"


# The greatest number of characters of a dataset or of a text in a message.
_MAX_REPR_LENGTH = 120
# The greatest number of characters of a foreign error in a message of `blamed`.
_MAX_ERROR_LENGTH = 200


def short_repr(value: object) -> str:
    """Returns a short text for a value, whatever its `__repr__` does."""
    text = safe_repr(value)
    if len(text) <= _MAX_REPR_LENGTH:
        return text
    return text[: _MAX_REPR_LENGTH - 1] + "…"


def safe_repr(value: object) -> str:
    """Returns the repr of a value, or a substitute if that raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Turns whatever foreign code raises into an InputError that says which code is to blame.

    Args:
        what: the beginning of the message.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        raise InputError(f"{what}: {repr(error)[:_MAX_ERROR_LENGTH]}") from error


@contextmanager
def discreet(secrets: Iterable[str]) -> Iterator[None]:
    """Removes these secrets from the text of a MechanismError that passes through."""
    try:
        yield
    except MechanismError as error:
        error.args = tuple(
            without(arg, secrets) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: a similar known one, or nothing."""
    spellings = {_spelling(each): each for each in known}
    close = get_close_matches(_spelling(name), list(spellings), n=1)
    return f"; did you mean {spellings[close[0]]!r}?" if close else ""


def _spelling(name: object) -> str:
    """A name without what people mix up: capitals, and which character joins words."""
    return str(name).lower().replace("_", "-").replace(" ", "-")


def meant_number(text: str) -> str:
    """Returns the end of a message about a text that is no number: the number that was meant.

    A comma may be that of decimals, a percent sign a hundredth. "1,000" may be two numbers.
    """
    if _THOUSANDS.fullmatch(text.strip()):
        return ""
    plain = text.strip().replace(",", ".")
    is_percentage = plain.endswith("%")
    try:
        value = float(plain.removesuffix("%").rstrip())
    except ValueError:
        return ""
    return f"; write {value / 100.0 if is_percentage else value:g}"


def meant_or_known(name: object, known: Collection[str]) -> str:
    """Returns the end of a message about an unknown name: a similar known one, or all of them."""
    return did_you_mean(name, known) or f"; known are {', '.join(known)}"
