"""Many audits at once: run in parallel, remembered in a history, and shown on one page with what changed."""

from epsilometer.suites.family import Family, Terms, family_digest, judge_family, may_join
from epsilometer.suites.history import Change, Entry, History, Outcome, find_changes, status_over_all
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
