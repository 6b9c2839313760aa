"""Method `renyi-bet`: one exact bet on a learned log-ratio."""

from epsilometer.methods.renyi_bet.method import BetProposal, RenyiBetMethod

__all__ = ["BetProposal", "RenyiBetMethod"]
