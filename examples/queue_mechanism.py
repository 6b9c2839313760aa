"""A mechanism of your own: a worker thread takes requests from one queue and puts its outputs into another.

Queues and threads are made for each call: a mechanism is sent to other processes (`jobs=2`), and they cannot be.
"""

import copy
import queue
import threading

import epsilometer as em
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import read_outputs


class QueueMechanism(Mechanism):
    is_seeded = True  # equal generators give equal outputs: one worker draws them, in order
    chunk_size = 256  # outputs per generator

    def __init__(self, work, timeout=30.0):
        self.name, self.work, self.timeout = f"{work.__name__} behind a queue", work, timeout

    def sample(self, dataset, n, rng):
        requests, answers = queue.Queue(), queue.Queue()
        threading.Thread(target=serve, args=(self.work, requests, answers, self.timeout), daemon=True).start()
        for _ in range(n):
            requests.put((copy.deepcopy(dataset), rng))  # the work may change its input
        requests.put(None)
        return read_outputs([self._next(answers) for _ in range(n)], expected=n)

    def _next(self, answers):
        try:
            output, error = answers.get(timeout=self.timeout)
        except queue.Empty:
            raise em.MechanismError(f"{self.name} gave no output within timeout={self.timeout:g} s") from None
        if error is not None:
            raise em.MechanismError(f"{self.name} raised {error!r}") from error
        return output


def serve(work, requests, answers, timeout):
    while (request := requests.get(timeout=timeout)) is not None:
        try:
            answers.put((work(*request), None))
        except Exception as error:
            answers.put((None, error))


def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)  # ε = 1 would need scale=1
