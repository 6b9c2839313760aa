"""Records what a training releases: the noisy gradient of every step."""

from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_positive
from epsilometer.errors import InputError
from epsilometer.stability.vectors import as_vector


class Recorder:
    """Keeps the noisy gradients of one training, for audits of what it released.

    Args:
        sensitivity: how far one record moves a noisy gradient at most, the unit of `scores`: the
            clip norm, divided by the expected batch size where gradients are averaged.

    Example:
        >>> from epsilometer import models
        >>> recorder = models.Recorder(sensitivity=0.25)
        >>> for gradient in ([0.5, 0.0], [0.25, 1.0]):
        ...     recorder.step(gradient)
        >>> recorder.scores([1.0, 0.0]).tolist()
        [2.0, 1.0]
        >>> recorder.output().shape
        (2, 2)
    """

    def __init__(self, sensitivity: float = 1.0) -> None:
        self.sensitivity = check_positive("sensitivity", sensitivity)
        self._gradients: list[Floats] = []

    def __len__(self) -> int:
        """How many steps were recorded."""
        return len(self._gradients)

    def __repr__(self) -> str:
        return f"<Recorder: {len(self)} steps>"

    def step(self, noisy_gradient: Any) -> None:
        """Keeps a copy of one step's noisy gradient.

        Args:
            noisy_gradient: an array or tensor, or lists and dicts of them, in the same order in
                every step.
        """
        vector = as_vector("noisy_gradient", noisy_gradient).numbers
        if not len(vector):
            raise InputError("noisy_gradient holds no numbers: record the parameters that change")
        if self._gradients and len(vector) != len(self._gradients[0]):
            raise InputError(
                f"noisy_gradient has {len(vector)} numbers, and {len(self._gradients[0])} in the "
                "steps before; record the same parameters in every step"
            )
        self._gradients.append(vector.copy())

    def output(self) -> Floats:
        """All noisy gradients as they were released, shape (steps, d): what a mechanism returns."""
        if not self._gradients:
            raise InputError("no step was recorded; call `step` once per step")
        return np.stack(self._gradients)

    def scores(self, direction: Any) -> Floats:
        """The noisy gradients along a canary's direction, in units of the sensitivity.

        Args:
            direction: the canary's gradient, of any length above 0, in the form of the gradients;
                or an array of shape (m, d), one direction per canary.

        Returns:
            Shape (steps,), or (m, steps) for m canaries. `subsampled_score` makes one number per
            canary of them, and so does their sum.
        """
        gradients = self.output()
        directions = _directions(direction, gradients.shape[1])
        norms = np.linalg.norm(directions, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0.0)).all():
            raise InputError("a direction must have a finite length above 0")
        along = (directions / norms) @ gradients.T / self.sensitivity
        return np.asarray(along[0] if len(along) == 1 else along)


def _directions(direction: Any, d: int) -> Floats:
    """Directions, shape (m, d)."""
    numbers = as_vector("direction", direction).numbers
    if len(numbers) == d:
        return numbers[None]
    shape: tuple[int, ...] = getattr(direction, "shape", ())
    if len(shape) == 2 and shape[1] == d:
        return numbers.reshape(-1, d)
    raise InputError(
        f"direction has {len(numbers)} numbers, and the gradients have {d}; "
        "several directions are an array with one row for each"
    )


def from_opacus(optimizer: Any) -> Recorder:
    """Records the noisy gradients of a training with Opacus, through its step hook.

    The hook runs after clipping, noise and scaling, right before the parameters change. A hook that
    is there already, like the accountant's, goes on.

    Args:
        optimizer: the `DPOptimizer` that `PrivacyEngine.make_private` returned.
    """
    if not hasattr(optimizer, "attach_step_hook") or not hasattr(optimizer, "params"):
        raise InputError(
            f"optimizer is a {type(optimizer).__name__} without step hooks; give the one that "
            "PrivacyEngine.make_private returned"
        )
    sensitivity = float(optimizer.max_grad_norm)
    if optimizer.loss_reduction == "mean":
        sensitivity /= float(optimizer.expected_batch_size)
    recorder = Recorder(sensitivity)
    earlier_hook = getattr(optimizer, "step_hook", None)

    def record(stepping: Any) -> None:
        if earlier_hook is not None:
            earlier_hook(stepping)
        recorder.step([parameter.grad for parameter in stepping.params])

    optimizer.attach_step_hook(record)
    return recorder
