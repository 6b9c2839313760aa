"""Method `sequential`: bets against the claim that may stop at any time."""

from epsilometer.methods.sequential.method import Options, SequentialMethod, SequentialProposal

__all__ = ["Options", "SequentialMethod", "SequentialProposal"]
