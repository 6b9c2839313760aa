"""The journal: what an audit remembers, so that it can resume after an interruption."""

from typing import Any, NamedTuple

from epsilometer.engine.folding import Folded
from epsilometer.mechanisms.drawing_log import Incidents
from epsilometer.outputs import Outputs


class StreamKey(NamedTuple):
    """Identifies the draws of one side of a pair in one phase.

    Attributes:
        phase: what the draws are for, a `Phase`.
        pair: the number of the pair in the audit.
        side: 0 left, 1 right.
    """

    phase: int
    pair: int
    side: int


class Journal:
    """Remembers chunks of outputs, and the totals of the chunks that certify.

    This base class remembers nothing.

    Attributes:
        is_kept: whether anything is remembered at all.
    """

    is_kept = False

    def sizes(self, stream: StreamKey) -> dict[int, int]:
        """Returns how many outputs are remembered of which chunks, by the number of the chunk.

        Of a chunk that was interrupted, these are the outputs that were finished.
        """
        return {}

    def recall(self, stream: StreamKey, chunk: int) -> tuple[Outputs, bytes] | None:
        """Returns the outputs of a chunk and their fingerprint; None if it was not drawn before."""
        return None

    def keep(self, stream: StreamKey, chunk: int, outputs: Outputs, fingerprint: bytes) -> None:
        """Remembers a chunk of outputs."""

    def note_incidents(self, stream: StreamKey, chunk: int, incidents: Incidents) -> None:
        """Remembers what happened while a chunk was drawn.

        To be called before the chunk itself is remembered.
        """

    def incidents(self, stream: StreamKey) -> dict[int, Incidents]:
        """Returns what happened while chunks were drawn, by the number of the chunk."""
        return {}

    def check_same_proposal(self, number: int, examples: tuple[Any, Any]) -> None:
        """Makes sure that the proposal is the one from before the interruption.

        Args:
            number: of the pair.
            examples: its tallies of the draws that it was learned from, left and right.
        """

    def resume(self, stream: StreamKey, example: Any) -> Folded | None:
        """Returns the total of the first chunks of a stream; None if the stream is unknown.

        Args:
            stream: the draws that were interrupted.
            example: other reduced outputs of this side, to restore types that the file does not
                hold.
        """
        return None

    def save(self, stream: StreamKey, folded: Folded) -> None:
        """Remembers the total of a stream's chunks so far, replacing the one before."""

    def read_note(self, name: str) -> str | None:
        """Returns the text that is remembered under a name; None if there is none."""
        return None

    def write_note(self, name: str, text: str) -> None:
        """Remembers a text under a name, such as the results of some screening runs."""

    def stored_state(self) -> bytes | None:
        """The state of an audit that may stop early; None if nothing is remembered."""
        return None

    def store_state(self, state: bytes) -> None:
        """Remembers the state of an audit that may stop early."""

    def write_note_now(self, name: str, text: str) -> None:
        """Remembers a text, and writes everything to disk before it returns."""
