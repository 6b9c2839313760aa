"""Many audits at once: run in parallel, kept in a history, and shown on one page with changes."""

from epsilometer.suites.changes import Change, find_changes
from epsilometer.suites.family import Family, Terms, family_digest, judge_family, may_join
from epsilometer.suites.history import History
from epsilometer.suites.outcomes import Entry, Outcome, status_over_all
from epsilometer.suites.workers import run_tasks

__all__ = [
    "Change",
    "Entry",
    "Family",
    "History",
    "Outcome",
    "Terms",
    "family_digest",
    "find_changes",
    "judge_family",
    "may_join",
    "run_tasks",
    "status_over_all",
]
