"""Methods that find and certify a loss of privacy.

Each learns on some draws and certifies on fresh ones.

Example:
    >>> em.methods.find_method("events").guarantee
    'exact'
"""

from typing import TYPE_CHECKING

from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.registry import (
    as_method,
    as_options,
    find_method,
    names,
    restore_proposal,
)
from epsilometer.namespaces import namespace

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
