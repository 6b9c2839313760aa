"""What kind of guarantee a certified bound comes with.

Results store a guarantee as text, "exact" or "none: the reason why". Code asks for its kind here.
"""

from dataclasses import dataclass
from enum import StrEnum


class GuaranteeKind(StrEnum):
    """The four kinds of guarantees."""

    # Holds for any number of independent draws from any distribution.
    EXACT = "exact"
    # Holds in the limit of many draws.
    ASYMPTOTIC = "asymptotic"
    # Holds if the assumption holds that the detail names.
    CONDITIONAL = "conditional"
    # An estimate: the detail says what is missing.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee of a bound.

    Attributes:
        kind: what is promised.
        detail: the assumption of a conditional guarantee, or why there is none; may be empty.
    """

    kind: GuaranteeKind
    detail: str = ""

    def __str__(self) -> str:
        """The text that results store; `parse_guarantee` is the inverse."""
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)

    @property
    def is_proved(self) -> bool:
        """Whether anything is guaranteed. A figure without a guarantee decides no verdict."""
        return self.kind is not GuaranteeKind.NONE


def parse_guarantee(text: str) -> Guarantee:
    """Returns the guarantee that a text states: a kind, or a kind, a colon and a detail.

    A text of an unknown kind, from a stored file or from another package's method, promises nothing
    that we could rely on: its kind is NONE and its detail the whole text.
    """
    kind, _, detail = text.partition(":")
    try:
        return Guarantee(kind=GuaranteeKind(kind.strip()), detail=detail.strip())
    except ValueError:
        return Guarantee(kind=GuaranteeKind.NONE, detail=text)
