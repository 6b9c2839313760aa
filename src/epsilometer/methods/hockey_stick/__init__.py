"""Method `hockey-stick`: a classifier's event. The public namespace `epsilometer.hockey_stick`."""

from epsilometer.methods.hockey_stick.method import HockeyStickMethod, Options

__all__ = ["HockeyStickMethod", "Options"]
