"""Method `events`: one certified event."""

from epsilometer.methods.events.method import EventProposal, EventsMethod

__all__ = ["EventProposal", "EventsMethod"]
