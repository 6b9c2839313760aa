import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from epsilometer.bounds import ErrorBudget
from epsilometer.errors import BudgetError, EpsilometerError, InputError


def test_everything_can_be_spent_once():
    budget = ErrorBudget(0.05)
    assert budget.spend(0.05, "certificate") == 0.05
    assert budget.remaining == 0.0
    with pytest.raises(BudgetError, match="cannot spend 1e-06 on a second look"):
        budget.spend(1e-6, "a second look")


def test_overdraft_raises_and_spends_nothing():
    budget = ErrorBudget(0.05)
    budget.spend(0.03, "one")
    with pytest.raises(BudgetError):
        budget.spend(0.03, "two")
    assert budget.ledger == (("one", 0.03),)
    assert budget.spent == 0.03
    assert budget.remaining == pytest.approx(0.02)


def test_shares_that_exceed_the_total_by_rounding_only():
    budget = ErrorBudget(0.3)
    assert 0.1 + 0.2 > 0.3
    budget.spend(0.1, "a")
    budget.spend(0.2, "b")
    assert budget.remaining == 0.0
    for parts in (3, 7, 49, 1000):
        budget = ErrorBudget(0.05)
        for _ in range(parts):
            budget.spend(0.05 / parts, "part")


@pytest.mark.parametrize("amount", [0.0, -0.01, float("nan"), float("inf")])
def test_only_positive_amounts(amount):
    with pytest.raises(BudgetError):
        ErrorBudget(0.05).spend(amount, "nothing")


@pytest.mark.parametrize("total", [0.0, 1.0, -1.0, float("nan")])
def test_total_is_a_probability(total):
    with pytest.raises(InputError):
        ErrorBudget(total)


def test_overdraft_is_one_of_ours():
    assert issubclass(BudgetError, EpsilometerError)


def test_what_is_spent_cannot_be_taken_back():
    budget = ErrorBudget(0.05)
    budget.spend(0.05, "certificate")
    with pytest.raises(FrozenInstanceError):
        budget.total = 0.5
    with pytest.raises((AttributeError, TypeError)):  # which one depends on the version of Python
        budget.ledger = ()
    with pytest.raises(AttributeError):
        budget.ledger.clear()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(BudgetError, match="cannot be copied"):
            duplicate(budget)
    with pytest.raises(BudgetError):
        budget.spend(1e-3, "a second look")
