"""The trusted kernel: exact bounds from counts.

Whatever proposes an event, its certificate rests on this code and on `epsilometer.claims` alone. A
mistake elsewhere may cost power; one here would cost soundness. In reading order:

* `budget`: the failure probability of an audit, and how it is spent.
* `binomial`: bounds on one probability from a count. `anytime`: the same after every draw.
  `bernstein`: a bound on a bounded mean.
* `supremum`, `interpolation`: the greatest probability of a rejection region under a claim.
* `two_counts`: bounds on ε and δ from two counts. `certificate`: bounds on the parameter of any
  claim. `p_values`: their p-values. `excess`: what an excess of power says about ε.
* `bands`: many events at once.
* `inverse_curves`, `rank_test`: what the scores of two sides say about any claim. `auroc`: an
  interval for the area under their ROC curve.
* `supporting_lines`, `betting`, `bet_rounds`: evidence at any stopping time.
* `bets_on_means`: bounds on divergences and differences of means. `pure_by_renyi`: what a
  divergence says about pure privacy.
* `one_run`: bounds from one training run with canaries; `one_run_walk`: from several numbers of
  guesses at once; `one_run_curves`: for claims that are curves, by their `inverse_curves`.
"""

from epsilometer.bounds.binomial import Counts, lower, upper
from epsilometer.bounds.budget import ErrorBudget
from epsilometer.bounds.certificate import certified_value, refuted_line, two_bounds_value
from epsilometer.bounds.p_values import certificate_p_value, nested_p_value
from epsilometer.bounds.two_counts import delta_lower, epsilon_lower

__all__ = [
    "Counts",
    "ErrorBudget",
    "certificate_p_value",
    "certified_value",
    "delta_lower",
    "epsilon_lower",
    "lower",
    "nested_p_value",
    "refuted_line",
    "two_bounds_value",
    "upper",
]
