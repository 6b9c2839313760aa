"""What an audit runs: anything that draws outputs for a dataset.

Services are in `epsilometer.mechanisms.http`, which loads HTTP and TLS: few audits need them.
"""

from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.commands import from_command
from epsilometer.mechanisms.functions import as_mechanism, as_subject, from_batch, from_callable
from epsilometer.mechanisms.kept_draws import keeping
from epsilometer.mechanisms.libraries import fitted, from_opendp
from epsilometer.mechanisms.recordings import from_recording, recorded_outputs

__all__ = [
    "Mechanism", "as_mechanism", "as_subject", "fitted", "from_batch", "from_callable", "from_command", "from_opendp",
    "from_recording", "keeping", "recorded_outputs",
]  # fmt: skip
