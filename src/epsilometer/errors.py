"""Everything that Epsilometer raises on purpose.

```
Exception
└── EpsilometerError            the root: catch this to catch all of them
    ├── MechanismError          the mechanism raised, hung, or returned something unusable
    ├── InputError              a parameter, file or claim that makes no sense (also a ValueError)
    ├── EngineError             workers died again and again, or there are none
    ├── MissingExtraError       an optional package is not installed (also an ImportError)
    ├── BudgetError             a bug in Epsilometer: too much failure probability was spent
    └── PrivacyViolation        raised by `AuditResult.raise_if_refuted` (also an AssertionError)
Warning
└── EpsilometerWarning          something a user should know, but that does not change the answer
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the result is only carried, never inspected
    from epsilometer.result import AuditResult


class EpsilometerError(Exception):
    """The root of all exceptions of Epsilometer."""


class MechanismError(EpsilometerError):
    """The mechanism raised, hung, or returned something that cannot be used."""


class InputError(EpsilometerError, ValueError):
    """A parameter, a file or a claim that makes no sense."""


class MissingExtraError(EpsilometerError, ImportError):
    """An optional package is needed; the text names the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed; "
            f"install it with: pip install 'epsilometer[{extra}]'"
        )


class EngineError(EpsilometerError):
    """Workers died again and again, a scheduler went away, or there is none at the given address."""


class BudgetError(EpsilometerError):
    """More failure probability was spent than the audit had: a bug, never a user's fault."""


class PrivacyViolation(EpsilometerError, AssertionError):
    """A claim was refuted. `result` holds the audit with its counterexample."""

    def __init__(self, message: str, result: AuditResult) -> None:
        super().__init__(message)
        self.result = result


class EpsilometerWarning(UserWarning):
    """Something the user should know that does not change the answer."""


# How much of a dataset or of a text is shown in messages.
_SHOWN = 120


def shown(value: object) -> str:
    """A short text for a value, safe against hostile `__repr__`."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
