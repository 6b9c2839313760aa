"""What an audit runs: anything that draws outputs for a dataset.

Services and recordings are in `epsilometer.mechanisms.http` and
`epsilometer.mechanisms.recordings`: few audits need them, so few load them.
"""

from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.commands import from_command
from epsilometer.mechanisms.functions import (
    as_audit_target,
    as_mechanism,
    from_batch,
    from_callable,
)
from epsilometer.mechanisms.libraries import fitted, from_opendp

__all__ = [
    "Mechanism",
    "as_audit_target",
    "as_mechanism",
    "fitted",
    "from_batch",
    "from_callable",
    "from_command",
    "from_opendp",
]
