"""Methods that find and certify a loss of privacy.

Each learns on some draws and certifies on fresh ones.

Example:
    >>> em.methods.find_method("events").guarantee
    'exact'
"""

from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.registry import (
    as_method,
    as_options,
    find_method,
    names,
    restore_proposal,
)

__all__ = [
    "Method",
    "Proposal",
    "Task",
    "as_method",
    "as_options",
    "find_method",
    "names",
    "restore_proposal",
]
