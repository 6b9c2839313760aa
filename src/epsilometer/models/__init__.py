"""For those who train models: canaries, their coins and scores, and what a training released.

There are no attacks, no shadow models and no training loop here: the training stays yours, and what
it releases is audited by `epsilometer.from_scores`, `epsilometer.from_one_run` and
`epsilometer.audit`.

>>> coins = em.models.coin_flips(["a", "b", "c"], seed=1)  # which canaries are trained on
>>> recorder = em.models.Recorder()
>>> recorder.step([0.3, 1.2])  # the noisy gradient, in any loop
>>> recorder.scores([0.0, 1.0]).tolist()
[1.2]
"""

from typing import TYPE_CHECKING

from epsilometer.models.canaries import gradient_canaries
from epsilometer.models.coins import Coins, JoinedScores, coin_flips
from epsilometer.models.likelihoods import subsampled_score
from epsilometer.models.recording import Recorder, from_opacus
from epsilometer.namespaces import namespace
from epsilometer.stability import Movement, movement

__all__ = [
    "Coins",
    "JoinedScores",
    "Movement",
    "Recorder",
    "coin_flips",
    "from_opacus",
    "gradient_canaries",
    "movement",
    "subsampled_score",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
