"""The published error of the variational estimate of a Rényi divergence.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Theorem 4.3 and Corollary 4.4.
"""

import math

# Of the published certificate.
GUARANTEE = (
    "none: the published Chernoff bound, whose proof has gaps (α/(α − 1) is lost, "
    "E_Q e^(αh) ≥ 1 is assumed)"
)

# η is cut off at e^300, which is far above 1: its exponential would overflow.
_LARGEST_LOG_ETA = 300.0


def published_error(order: float, bound: float, n: int, failure_probability: float) -> float:
    """Returns ln((1 + η)/(1 − η)), the published error of the estimate; infinite for η ≥ 1.

    Here η = √(max{3e^(2(α−1)C), 2e^(αC)}·ln(2/β)/n).

    Args:
        order: α.
        bound: C, the largest |h|.
        n: draws of each side.
        failure_probability: β.

    Guarantee: none, see `GUARANTEE`.

    Reference: Kong et al. (2023), Theorem 4.3 and (9).
    """
    log_power_p = math.log(3.0) + 2.0 * (order - 1.0) * bound
    log_power_q = math.log(2.0) + order * bound
    log_confidence = math.log(math.log(2.0 / failure_probability))
    log_eta = 0.5 * (max(log_power_p, log_power_q) + log_confidence - math.log(max(n, 1)))
    eta = math.exp(min(log_eta, _LARGEST_LOG_ETA))
    if eta >= 1.0:
        return math.inf
    return math.log((1.0 + eta) / (1.0 - eta))
