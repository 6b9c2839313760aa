"""What unit tests get beside the rest: results that rehearse nothing."""

import pytest

from epsilometer.auditing.power import Rehearsal
from epsilometer.auditing.rare_outputs import RareOutputs


@pytest.fixture(autouse=True)
def quick_rehearsals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a result could have refuted, which costs as much as dozens of audits, is told without finding it out.

    Whatever prints or stores a result that did not refute asks for it. Tests of the figure itself are marked
    `rehearses`.
    """
    if request.node.get_closest_marker("rehearses") is None:
        monkeypatch.setattr(Rehearsal, "_detectable", lambda self: self.task.claim.value + 1.0)
        monkeypatch.setattr(RareOutputs, "_detectable_mass", lambda self: 0.01)
