"""Errors for outputs that cannot be read: what, where, and a line of code that would help.

Values are untrusted here: whatever they define (a repr, a hash, a property) may raise anything.
"""

import types
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Any

from epsilometer.errors import MechanismError
from epsilometer.outputs.foreign import field_names, opener

# Characters of a value's repr in an error message.
MAX_REPR = 80
ALLOWED = (
    "an output may be a number, str, bytes, None, date or time, an enum member, an array, "
    "a data frame, or a tuple, list, set, iterator, dict, dataclass or the like of such values"
)
BATCH = (
    "a batch of outputs must be a sequence with one entry per output (a list, tuple, iterator or "
    "array), or a dict or data frame of columns of equal length"
)
# How deep inside an output an unreadable value is looked for.
_MAX_PATH_LENGTH = 12


def safe_repr(value: object) -> str:
    """Returns the value's repr on one line, or a stand-in if it has none."""
    try:
        text = str.__str__(repr(value))
    except Exception:
        return f"<unprintable {type_name(value)}>"
    return text if text.isprintable() else ascii(text)[1:-1]


def cut_repr(value: object) -> str:
    """Returns at most `MAX_REPR` characters of the value's repr."""
    text = safe_repr(value)
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def type_name(value: object) -> str:
    """Returns the name of the value's class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


class Unreadable(MechanismError):
    """An output is, or contains, something that cannot be read."""

    def __init__(self, value: Any, output: int, why: str = "") -> None:
        super().__init__(f"{type_name(value)} in output {output}")
        self.value = value
        self.output = output
        self.why = why

    def text(self, batch: Any) -> str:
        """Returns a message for the user.

        It names the type, the place inside the output, and a line of code that would make it
        readable.

        Args:
            batch: the outputs among which it is.
        """
        path = None
        if not isinstance(batch, dict):
            with suppress(Exception):  # looking for it runs code of the outputs
                path = path_of(self.value, batch[self.output], "")
        where = f" at output{path}" if path else ""
        reason = f" ({self.why})" if self.why else ""
        # By its true type: what an object says of its class runs its own code.
        if issubclass(type(self.value), types.CoroutineType):
            # Nobody will await it any more; Python would warn after this message.
            self.value.close()
        return (
            f"output {self.output} is or holds a value of type {type_name(self.value)}{where}, "
            f"which cannot be read{reason}: {cut_repr(self.value)}; "
            f"{ALLOWED}; try: {_remedy(self.value)}"
        )


def _remedy(value: Any) -> str:
    """Returns a line of code that would make a value readable, judging by its type alone."""
    kind = type(value)
    if issubclass(kind, type) or callable(value):
        return "return value()  # what it returns, not the function itself"
    if hasattr(kind, "get_params") and hasattr(kind, "fit"):
        return "return em.fitted(model)"
    if hasattr(kind, "read"):
        return "return value.read()"
    if issubclass(kind, Awaitable):
        return "return asyncio.run(value)"
    if kind.__dictoffset__:
        return "return vars(value)  # its attributes as a dict"
    if issubclass(kind, Iterable):
        return "return list(value)"
    return "return str(value)"


def path_of(wanted: object, value: Any, path: str) -> str | None:
    """Returns where a value is inside another, as Python would write it: `['fit'][2].model`.

    Args:
        wanted: the value to find, by identity.
        value: where it is looked for.
        path: of `value` itself.

    Returns:
        None if it is not found.
    """
    if value is wanted:
        return path
    if path.count("[") + path.count(".") >= _MAX_PATH_LENGTH:
        return None
    open_value = opener(type(value))
    if open_value is not None:
        value = open_value(value)
    for step, part in _parts(value):
        found_path = path_of(wanted, part, path + step)
        if found_path is not None:
            return found_path
    return None


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    """Yields the parts of a value, each with the code that leads to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"[{cut_repr(key)}]", part
    elif isinstance(value, list | tuple):
        for position, part in enumerate(value):
            yield f"[{position}]", part
    else:
        for name in field_names(type(value)) or ():
            yield f".{name}", getattr(value, name, None)
