"""Recognises functions that return nothing: a `return` was forgotten."""

import dis
import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from epsilometer.errors import MechanismError
from epsilometer.outputs import Outputs

# Functions of these kinds return an object, whatever their code says.
_RETURNS_AN_OBJECT = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# Stands for a returned value that the code does not determine.
_UNKNOWN = object()


def check_returned(name: str, left: Outputs, right: Outputs) -> None:
    """Refuses a mechanism that returned nothing but None, for both inputs.

    None on one side only, or now and then, is an output like any other.

    Raises:
        MechanismError: if it did.
    """
    if _are_all_none(left) and _are_all_none(right):
        raise MechanismError(nothing_returned(name))


def _are_all_none(outputs: Outputs) -> bool:
    shapes = {block.shape for block in outputs.blocks}
    return len(outputs) > 0 and shapes == {"None"}


def nothing_returned(name: str) -> str:
    """Returns the message that a mechanism returns nothing."""
    return f"{name} returned nothing but None, for both inputs: is a `return` missing?"


def never_returns(function: Callable[..., Any]) -> bool:
    """Returns whether the code of a function says that it returns None, whatever happens."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code.co_flags & _RETURNS_AN_OBJECT:
        return False
    instructions = list(dis.get_instructions(code))
    returned: list[Any] = [
        instruction.argval for instruction in instructions if instruction.opname == "RETURN_CONST"
    ]
    for before, instruction in pairwise(instructions):
        if instruction.opname != "RETURN_VALUE":
            continue
        # `x if … else None` jumps to the instruction.
        is_constant = before.opname == "LOAD_CONST" and not instruction.is_jump_target
        returned.append(before.argval if is_constant else _UNKNOWN)
    return all(value is None for value in returned)
