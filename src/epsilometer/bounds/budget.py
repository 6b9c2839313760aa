"""The failure probability of an audit, and the budget from which every certificate spends.

Each certificate is wrong with at most the failure probability spent on it. By the union bound, the
probability that any certificate of the audit is wrong is at most the sum of these. So an audit that
spends from one budget errs with at most the budget's total, however many certificates it makes and
whichever of them it reports. Searching for something to certify costs nothing.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from epsilometer.errors import BudgetError, InputError

# Relative. A sum of error shares such as 0.1 + 0.2 may exceed their total through rounding, by far
# less than this.
_ROUNDING = 1e-12


def check_failure_probability(value: float) -> float:
    """Returns the value if it lies strictly between 0 and 1; raises InputError if not."""
    if not 0.0 < value < 1.0:
        raise InputError(f"failure_probability={value!r} must lie strictly between 0 and 1")
    return value


class Spending(NamedTuple):
    """One entry of a budget's ledger.

    Attributes:
        purpose: what the failure probability was spent on.
        amount: the failure probability spent.
    """

    purpose: str
    amount: float


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The failure probability of one audit. Overspending raises `BudgetError`.

    Spending cannot be undone: the total is fixed, the ledger is read-only, and a budget can neither
    be copied nor pickled.

    Attributes:
        total: the probability with which the whole audit may err.
    """

    total: float
    _entries: list[Spending] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_failure_probability(self.total)

    def __copy__(self) -> NoReturn:
        """Refuses: a copy would spend the same failure probability again."""
        _refuse_copy()

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Refuses, as `__copy__` does."""
        _refuse_copy()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuses to be pickled: the copy in another process would spend the same again."""
        _refuse_copy()

    @property
    def ledger(self) -> tuple[Spending, ...]:
        """What was spent on what, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> float:
        """The failure probability spent so far."""
        return sum(entry.amount for entry in self._entries)

    @property
    def remaining(self) -> float:
        """The failure probability that may still be spent."""
        return max(self.total - self.spent, 0.0)

    def spend(self, amount: float, purpose: str) -> float:
        """Enters the amount in the ledger and returns it; raises BudgetError if too little is left.

        Args:
            amount: a failure probability above 0.
            purpose: what it is spent on, for the ledger and for error messages.
        """
        is_affordable = self.spent + amount <= self.total * (1.0 + _ROUNDING)
        # Written so that an amount which is not a number is refused as well.
        if not amount > 0.0 or not is_affordable:
            raise BudgetError(
                f"cannot spend {amount:g} on {purpose}: "
                f"{self.remaining:g} of {self.total:g} is left"
            )
        self._entries.append(Spending(purpose=purpose, amount=amount))
        return amount


def _refuse_copy() -> NoReturn:
    raise BudgetError(
        "an ErrorBudget cannot be copied: what is spent on one would be left in the other"
    )
