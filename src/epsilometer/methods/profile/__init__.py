"""Method `profile`: many nested events at once, and with them the whole privacy curve."""

from epsilometer.methods.profile.method import ProfileMethod, ProfileProposal

__all__ = ["ProfileMethod", "ProfileProposal"]
