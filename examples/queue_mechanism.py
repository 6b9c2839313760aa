"""A mechanism of your own: a worker thread does the work and puts its outputs into a queue.

Both are made for each call: a mechanism is sent to other processes (`jobs=2`), they cannot be.
"""

import copy
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Outputs, read_outputs


class QueueMechanism(Mechanism):
    is_seeded = True  # equal generators give equal outputs: one worker draws them, in order
    chunk_size = 256  # outputs per generator

    def __init__(self, work: Callable[..., Any], timeout: float = 30.0) -> None:
        self.name = f"{work.__name__} behind a queue"
        self.work = work
        self.timeout = timeout

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        answers: queue.Queue[Any] = queue.Queue()

        def answer_all() -> None:
            try:
                for _ in range(n):
                    answers.put(self.work(copy.deepcopy(dataset), rng))  # it may change its input
            except Exception as error:
                answers.put(error)

        threading.Thread(target=answer_all, daemon=True).start()
        return read_outputs([self._next(answers) for _ in range(n)], expected=n)

    def _next(self, answers: "queue.Queue[Any]") -> Any:
        try:
            answer = answers.get(timeout=self.timeout)
        except queue.Empty:
            message = f"{self.name} gave no output within timeout={self.timeout:g} s"
            raise em.MechanismError(message) from None
        if isinstance(answer, Exception):
            raise em.MechanismError(f"{self.name} raised {answer!r}") from answer
        return answer
