"""Finds a generator inside a mechanism: a copy of it in every worker would draw the same numbers in each of them.

The mechanism is packed as it would be for a worker, into nothing, and every object is looked at on the way: what
functions close over, attributes, arguments that were bound, the globals that a function uses.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
# Code of libraries is looked at only where it is used directly: what lies behind it is too much, and not the user's.
_LIBRARIES = ("site-packages", "dist-packages")
_OWN = __name__.partition(".")[0]


class _Found(Exception):
    """Ends the search: says what was found."""


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, content: Any) -> int:
        """Forgets it."""
        return len(content)


def own_generator(mechanism: object) -> str | None:
    """The type of a generator that the mechanism holds or uses, e.g. "Generator"; None if there is none to be seen.

    What is no generator by its type (a counter, a seed that is updated by hand) is not seen here; the check for
    repeated draws sees what it does.
    """
    try:
        _search(mechanism, set())
    except _Found as found:
        return str(found)
    return None


def _search(each: object, seen: set[int]) -> None:
    """Looks at everything in an object.

    Args:
        seen: the classes whose methods were looked at.
    """
    import cloudpickle  # slow to import, and only workers need it

    class Searching(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, each: Any) -> Any:
            if isinstance(each, _GENERATORS):
                raise _Found(type(each).__name__)
            if isinstance(each, FunctionType):
                _look_at_globals(each)
                if _is_of_the_user(each):
                    return self._dynamic_function_reduce(each)  # by value, with everything that it uses
            if isinstance(each, type) and _is_of_the_user(each) and id(each) not in seen:
                seen.add(id(each))
                for value in vars(each).values():  # of a class that workers import nothing is packed
                    _search(getattr(value, "__func__", value), seen)
            return super().reducer_override(each)

    try:
        # Large arrays are handed to the callback instead of being copied.
        Searching(_Nowhere(), protocol=5, buffer_callback=lambda buffer: None).dump(each)
    except _Found:
        raise
    except Exception:  # whatever cannot be packed is told when it really is to be sent
        return


def _look_at_globals(function: FunctionType) -> None:
    for name in _names(function.__code__):
        each = function.__globals__.get(name)
        if isinstance(each, _GENERATORS):
            raise _Found(type(each).__name__)


def _names(code: CodeType) -> Iterator[str]:
    """All names of globals and attributes in a function, and in those that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_of_the_user(each: Any) -> bool:
    """Whether something was written in the user's own program and not in a library."""
    top = str(getattr(each, "__module__", None)).partition(".")[0]
    if top in sys.stdlib_module_names or top == _OWN:
        return False
    file = getattr(sys.modules.get(str(each.__module__)), "__file__", None) or ""
    return not any(part in file for part in _LIBRARIES)
