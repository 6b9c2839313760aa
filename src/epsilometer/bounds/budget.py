"""Failure probability is money: every look pays from one budget."""

from __future__ import annotations

from dataclasses import dataclass, field

from epsilometer.bounds.binomial import check_failure_probability
from epsilometer.errors import BudgetError

# Sums of shares such as 0.1 + 0.2 may exceed their total by rounding, never by more than this.
_ROUNDING = 1e-12


@dataclass(slots=True)
class ErrorBudget:
    """The failure probability of one audit. Spending more than there is raises `BudgetError`.

    Attributes:
        total: the probability with which the whole audit may err.
        ledger: what was spent on what, in order.
    """

    total: float
    ledger: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_failure_probability(self.total)

    @property
    def spent(self) -> float:
        """What is gone."""
        return sum(amount for _, amount in self.ledger)

    @property
    def remaining(self) -> float:
        """What is left."""
        return max(self.total - self.spent, 0.0)

    def spend(self, amount: float, purpose: str) -> float:
        """Pays for one look and returns what it paid."""
        if not amount > 0.0 or self.spent + amount > self.total * (1.0 + _ROUNDING):
            raise BudgetError(f"cannot spend {amount:g} on {purpose}: {self.remaining:g} of {self.total:g} is left")
        self.ledger.append((purpose, amount))
        return amount
