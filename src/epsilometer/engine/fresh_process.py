"""A few answers of a mechanism from a fresh process, which remembers nothing of this one.

A function that is imported there has empty caches and generators that were not used yet. So noise
that is drawn once and kept changes, and what has no noise stays.
"""

import importlib
import importlib.util
import io
import json
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from epsilometer.engine.fingerprints import row_hashes
from epsilometer.errors import MechanismError
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.callables import BatchMechanism, SingleMechanism
from epsilometer.mechanisms.commands import Limits, run_program
from epsilometer.mechanisms.kept_draws import KeptMechanism
from epsilometer.mechanisms.repeating import RepeatedMechanism

# Answers per input that are asked for: two show that they repeat there, too.
_ANSWERS_PER_INPUT = 2
# Bytes that the process may print: two hashes per input take about a hundred.
_MAX_OUTPUT_BYTES = 1 << 16
# Set in the environment of the fresh process: a module that audits when it is imported must not
# start another one.
_MARK = "EPSILOMETER_FRESH_PROCESS"
# The program of the process. The search path is that of this one.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from epsilometer.engine.fresh_process import serve; serve()"
)
# The key of the generators that are passed there. Those of chunks have keys of four numbers.
_KEY = 5
# Values that hold no state, so that a copy of them is as good as new.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, np.ndarray)


class _Order(NamedTuple):
    """What the fresh process is to do.

    Attributes:
        modules: the files of the modules that it needs, by their names.
        pickled: the mechanism and the inputs, in the order in which they are asked for.
        seed: of the audit.
    """

    modules: Mapping[str, str]
    pickled: bytes
    seed: int


def can_be_renewed(mechanism: Mechanism) -> bool:
    """Returns whether a fresh process can have the mechanism without any state of this one.

    Only functions of modules can be had like that: they are sent by name and imported. Others would
    be sent with what they remember.
    """
    if os.environ.get(_MARK):
        return False
    inner = _innermost(mechanism)
    if type(inner) not in (SingleMechanism, BatchMechanism):
        return False
    features = inner.features
    functions = [inner.function]  # type: ignore[attr-defined]  # both have one
    if features is not None:
        functions.append(features.function)
    return all(_is_stateless(function) for function in functions)


def fresh_answers(
    mechanism: Mechanism, datasets: Sequence[Any], seconds: float, seed: int
) -> list[list[int]] | None:
    """Returns the hashes of a few answers for each dataset, from a process of their own.

    Args:
        mechanism: one that `can_be_renewed`.
        datasets: asked about in this order.
        seconds: the process is ended after this time.
        seed: of the audit; the generators that are passed are of no chunk's stream.

    Returns:
        The hashes as `row_hashes` makes them; None if the process could not give them: it may fail
        to import the function, or take too long.
    """
    unwrapped = mechanism.mechanism if isinstance(mechanism, KeptMechanism) else mechanism
    try:
        pickled = pickle.dumps((unwrapped, list(datasets)))
    except Exception:  # objects may raise anything when they are pickled
        return None
    order = _Order(modules=_module_files(mechanism), pickled=pickled, seed=seed)
    argv = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
    try:
        finished = run_program(
            argv,
            input_bytes=pickle.dumps(tuple(order)),
            limits=Limits(seconds=seconds, output=_MAX_OUTPUT_BYTES),
            env={**os.environ, _MARK: "1"},
            cwd=None,
        )
        answers = json.loads(finished.stdout)
    except (MechanismError, ValueError):
        return None
    return [[int(answer) for answer in side] for side in answers]


def serve() -> None:
    """Answers one order on standard input: what the fresh process does."""
    # What modules and mechanisms print must not get into the answer.
    with os.fdopen(os.dup(1), "w") as answer_file:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        order = _Order(*pickle.loads(sys.stdin.buffer.read()))
        sys.stdin = io.StringIO()
        for name, file in order.modules.items():
            _import(name, file)
        mechanism, datasets = pickle.loads(order.pickled)
        answers = []
        for number, dataset in enumerate(datasets):
            sequence = np.random.SeedSequence(order.seed, spawn_key=(_KEY, number))
            outputs = mechanism.sample(dataset, _ANSWERS_PER_INPUT, np.random.default_rng(sequence))
            answers.append(row_hashes(outputs).tolist())
        json.dump(answers, answer_file)


def _innermost(mechanism: Mechanism) -> Mechanism:
    """Returns the mechanism that draws, inside of those that record or repeat it."""
    while isinstance(mechanism, KeptMechanism | RepeatedMechanism):
        mechanism = mechanism.mechanism
    return mechanism


def _is_stateless(value: Any) -> bool:
    """Returns whether a value is the same in another process, whatever happened in this one."""
    if isinstance(value, _PLAIN):
        return not (isinstance(value, np.ndarray) and value.dtype.hasobject)
    if isinstance(value, partial):
        return all(map(_is_stateless, (value.func, *value.args, *value.keywords.values())))
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_stateless, value))
    if type(value) is dict:
        return all(map(_is_stateless, (*value.keys(), *value.values())))
    return isinstance(value, type) or _is_importable(value)


def _is_importable(function: Any) -> bool:
    """Returns whether a function is what its module holds under its name."""
    module_name = getattr(function, "__module__", None)
    if module_name in (None, "__main__"):  # a program is not imported: it would run again
        return False
    named: Any = sys.modules.get(module_name)
    for name in getattr(function, "__qualname__", "<>").split("."):
        named = getattr(named, name, None)
    return named is function


def _module_files(mechanism: Mechanism) -> dict[str, str]:
    """Returns the file of the module that a mechanism's function is from, by the module's name."""
    function: Any = _innermost(mechanism).function  # type: ignore[attr-defined]  # it has one
    while isinstance(function, partial):
        function = function.func
    name = function.__module__
    file = getattr(sys.modules[name], "__file__", None)
    return {} if file is None else {name: file}


def _import(name: str, file: str) -> None:
    """Imports a module by its name, or from its file if nothing of that name is on the path."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
