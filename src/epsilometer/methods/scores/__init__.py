"""All scores of some outputs: what they are made of decides which ones are learned.

A score is a number per output, learned on training draws and stored as plain data:

- `values`: outcomes (labels, repeated numbers, rare shapes, far groups), each by itself;
- `line`: a number itself, and its distance from where numbers are densest;
- `columns`: each column of structured outputs alone, by the two above;
- `by_shape`: the additive score of all columns;
- `joint`: scores that see columns together;
- `summaries`: statistics of many columns that need no fit, for vectors of which there are few.
"""

from epsilometer.methods.scores.choice import learn_scores
from epsilometer.methods.scores.learned import LearnedScore

__all__ = ["LearnedScore", "learn_scores"]
