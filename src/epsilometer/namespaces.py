"""Namespaces show their public names only, and say which one a misspelt name was meant to be."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from epsilometer.errors import did_you_mean

_NO_HOMES: Mapping[str, str] = MappingProxyType({})


def namespace(
    module: str, public: Sequence[str], *, homes: Mapping[str, str] = _NO_HOMES
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module, by PEP 562.

    They belong below `if not TYPE_CHECKING:`, because a type checker that sees `__getattr__` takes
    every misspelt name for a name.

    Args:
        module: its `__name__`.
        public: its `__all__`.
        homes: for names that are imported when they are first used, the module where each lives. A
            module of the name itself is the value.
    """

    def get_attribute(name: str) -> Any:
        if name in homes:
            home = import_module(homes[name])
            is_home = homes[name] == f"{module}.{name}"
            return home if is_home else getattr(home, name)
        hint = "" if name.startswith("_") else did_you_mean(name, public)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    def list_names() -> list[str]:
        return sorted(public)

    return get_attribute, list_names
