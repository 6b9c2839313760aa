"""Finds a random generator inside a mechanism, which must not be copied to workers.

A copy of it in every worker would draw the same numbers in each of them. To find one, the mechanism
is pickled as it would be for a worker, into nothing, and every object is inspected on the way: what
functions close over, attributes, arguments that were bound, the globals that a function uses.
"""

import random
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

_GENERATOR_TYPES = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    random.Random,
)
# Library code is searched only where it is used directly: there is too much behind it, none of it
# the user's.
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")
_OUR_PACKAGE = __name__.partition(".")[0]


class _GeneratorFound(Exception):
    """Ends the search; its text is the type of the generator."""


def own_generator(mechanism: object) -> str | None:
    """Returns the type of a generator that the mechanism holds or uses; None if none is visible.

    The type is given by name, e.g. "Generator". What is not a generator by its type (a counter, a
    seed that is updated by hand) is not noticed here; the check for repeated draws sees its effect.
    """
    try:
        _search(mechanism, set())
    except _GeneratorFound as found:
        return str(found)
    return None


def _search(root: object, searched_classes: set[int]) -> None:
    """Inspects everything in an object.

    Args:
        root: where to start.
        searched_classes: the ids of classes whose methods were searched.

    Raises:
        _GeneratorFound: if there is a generator in it.
    """
    import cloudpickle  # slow to import, and only workers need it

    class SearchingPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, candidate: Any) -> Any:
            if isinstance(candidate, _GENERATOR_TYPES):
                raise _GeneratorFound(type(candidate).__name__)
            if isinstance(candidate, FunctionType):
                _check_globals(candidate)
                if _is_users_code(candidate):
                    # by value, with everything that it uses
                    return self._dynamic_function_reduce(candidate)
            is_class = isinstance(candidate, type)
            if is_class and _is_users_code(candidate) and id(candidate) not in searched_classes:
                searched_classes.add(id(candidate))
                # A class that workers can import is not pickled, so its methods are searched here.
                for value in vars(candidate).values():
                    _search(getattr(value, "__func__", value), searched_classes)
            return super().reducer_override(candidate)

    nowhere = SimpleNamespace(write=len)  # a file that keeps nothing
    try:
        # Large arrays are handed to the callback instead of being copied.
        SearchingPickler(nowhere, protocol=5, buffer_callback=lambda buffer: None).dump(root)
    except _GeneratorFound:
        raise
    except Exception:  # what cannot be pickled is reported when it is really sent
        return


def _check_globals(function: FunctionType) -> None:
    """Raises a _GeneratorFound if a function uses a generator that is a global."""
    for name in _names(function.__code__):
        used = function.__globals__.get(name)
        if isinstance(used, _GENERATOR_TYPES):
            raise _GeneratorFound(type(used).__name__)


def _names(code: CodeType) -> Iterator[str]:
    """Yields all names of globals and attributes in a function, and in those that it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_users_code(candidate: Any) -> bool:
    """Returns whether a class or function belongs to the user's own program, not to a library."""
    top_package = str(getattr(candidate, "__module__", None)).partition(".")[0]
    if top_package in sys.stdlib_module_names or top_package == _OUR_PACKAGE:
        return False
    module = sys.modules.get(str(candidate.__module__))
    file = getattr(module, "__file__", None) or ""
    return not any(folder in file for folder in _LIBRARY_FOLDERS)
