"""What a training released, step by step; and the hook of Opacus."""

from types import SimpleNamespace

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.models import Recorder, from_opacus


def test_what_is_recorded_is_a_copy():
    recorder = Recorder()
    gradient = np.array([1.0, 2.0])
    recorder.step(gradient)
    gradient[:] = 9.0
    recorder.step({"a": [3.0], "b": np.array([[4.0]])})
    assert recorder.output().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert len(recorder) == 2
    assert repr(recorder) == "<Recorder: 2 steps>"


def test_scores_are_projections_in_units_of_the_sensitivity():
    recorder = Recorder(sensitivity=0.5)
    recorder.step([3.0, 4.0])
    recorder.step([0.0, 1.0])
    np.testing.assert_allclose(recorder.scores([0.0, 7.0]), [8.0, 2.0])
    np.testing.assert_allclose(recorder.scores([[0.6], [0.8]]), [10.0, 1.6])
    many = recorder.scores(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]]))
    np.testing.assert_allclose(many, [[6.0, 0.0], [8.0, 2.0], [-8.0, -2.0]])


def test_what_does_not_fit_is_refused():
    recorder = Recorder()
    with pytest.raises(InputError, match="no step was recorded"):
        recorder.output()
    with pytest.raises(InputError, match="noisy_gradient holds no numbers"):
        recorder.step([])
    recorder.step([1.0, 2.0])
    with pytest.raises(InputError, match="3 numbers, and 2 in the steps before"):
        recorder.step([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="direction has 3 numbers, and the gradients have 2"):
        recorder.scores([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="length above 0"):
        recorder.scores([0.0, 0.0])
    with pytest.raises(InputError, match="sensitivity=0"):
        Recorder(sensitivity=0)


class Optimizer:
    """The few names of Opacus' DPOptimizer that are used; `make recipes` runs the real one."""

    def __init__(self, loss_reduction):
        self.params = [SimpleNamespace(grad=np.array([1.0])), SimpleNamespace(grad=np.array([2.0]))]
        self.max_grad_norm = 1.5
        self.expected_batch_size = 3
        self.loss_reduction = loss_reduction
        self.step_hook = None

    def attach_step_hook(self, hook):
        self.step_hook = hook


@pytest.mark.parametrize(("loss_reduction", "sensitivity"), [("mean", 0.5), ("sum", 1.5)])
def test_the_hook_of_opacus_records_and_leaves_the_accountants_in_place(
    loss_reduction, sensitivity
):
    optimizer = Optimizer(loss_reduction)
    counted = []
    optimizer.attach_step_hook(counted.append)
    recorder = from_opacus(optimizer)
    for step in range(2):
        optimizer.params[0].grad = np.array([float(step)])
        optimizer.step_hook(optimizer)
    assert recorder.output().tolist() == [[0.0, 2.0], [1.0, 2.0]]
    assert recorder.sensitivity == sensitivity
    assert counted == [optimizer, optimizer]


def test_another_optimizer_is_refused():
    with pytest.raises(InputError, match="make_private"):
        from_opacus(SimpleNamespace(params=[]))
