"""Failure probability is money: every look pays from one budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.errors import BudgetError

# Sums of shares such as 0.1 + 0.2 may exceed their total by rounding, never by more than this.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The failure probability of one audit. Spending more than there is raises `BudgetError`.

    What was spent cannot be taken back: the total is fixed, the ledger is read-only, and there is one of each.

    Attributes:
        total: the probability with which the whole audit may err.
    """

    total: float
    _paid: list[tuple[str, float]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_failure_probability(self.total)

    def __copy__(self) -> NoReturn:
        """A copy would spend the same failure probability again."""
        raise BudgetError("an ErrorBudget cannot be copied: what is spent on one would be left in the other")

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Likewise."""
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Nor sent to another process."""
        self.__copy__()

    @property
    def ledger(self) -> tuple[tuple[str, float], ...]:
        """What was spent on what, in order."""
        return tuple(self._paid)

    @property
    def spent(self) -> float:
        """What is gone."""
        return sum(amount for _, amount in self._paid)

    @property
    def remaining(self) -> float:
        """What is left."""
        return max(self.total - self.spent, 0.0)

    def spend(self, amount: float, purpose: str) -> float:
        """Pays for one look and returns what it paid."""
        if not amount > 0.0 or self.spent + amount > self.total * (1.0 + _ROUNDING):
            raise BudgetError(f"cannot spend {amount:g} on {purpose}: {self.remaining:g} of {self.total:g} is left")
        self._paid.append((purpose, amount))
        return amount
