"""Foreign values as one short, harmless line, for the reprs of our objects and for reports."""

import re
import reprlib
from dataclasses import fields, is_dataclass
from typing import Any

# Characters of a value in the repr of one of our objects.
MAX_REPR_CHARACTERS = 80
# Items of a list, and entries of a dict, that are written out.
_MAX_ITEMS = 24
_MAX_DICT_ENTRIES = 12
# Characters of a text, or of the repr of any other object, inside of a value.
_MAX_NESTED_CHARACTERS = 200
# Columns of a data frame that are named.
_MAX_COLUMNS = 8
_LINE_BREAK = re.compile(r"\s*\n\s*")
# Where an object without a repr of its own lies in memory, as in "<object object at 0x7f…>".
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class _ShortRepr(reprlib.Repr):
    """Python's repr with few items and characters; large arrays and data frames by their shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = _MAX_ITEMS
        self.maxtuple = _MAX_ITEMS
        self.maxset = _MAX_ITEMS
        self.maxfrozenset = _MAX_ITEMS
        self.maxdeque = _MAX_ITEMS
        self.maxarray = _MAX_ITEMS
        self.maxdict = _MAX_DICT_ENTRIES
        self.maxstring = _MAX_NESTED_CHARACTERS
        self.maxother = _MAX_NESTED_CHARACTERS

    def repr1(self, x: object, level: int) -> str:
        """Returns the repr of a value at this depth; `repr` and all containers call it."""
        summary = frame_summary(x) or _array_summary(x)
        return f"<{summary}>" if summary else super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        """Returns the repr of a value that is no container, without places in memory."""
        return _ADDRESS.sub("", super().repr_instance(x, level))


_SHORT_REPR = _ShortRepr()


def one_line(value: object, most: int = MAX_REPR_CHARACTERS) -> str:
    """Returns a value on one line of at most that many characters, whatever its `__repr__` does.

    Data frames and large arrays are shown by their shape.
    """
    return cut(uncut_line(value), most)


def fields_on_one_line(instance: Any) -> str:
    """Returns a dataclass as its own `__repr__` would, with each value on one short line.

    For classes whose values may be anything: `__repr__ = fields_on_one_line`.
    """
    shown = [
        f"{field.name}={one_line(getattr(instance, field.name))}"
        for field in fields(instance)
        if field.repr
    ]
    return f"{type(instance).__qualname__}({', '.join(shown)})"


def complete_repr(value: Any) -> str:
    """Returns a dataclass with all its values, which its repr may cut: for records of what was run.

    The same for the values of a dict; anything else is represented by its own repr.
    """
    if is_dataclass(value) and not isinstance(value, type):
        parts = [
            f"{part.name}={complete_repr(getattr(value, part.name))}"
            for part in fields(value)
            if part.repr
        ]
        return f"{type(value).__qualname__}({', '.join(parts)})"
    if type(value) is dict:
        entries = [f"{name!r}: {complete_repr(entry)}" for name, entry in value.items()]
        return "{" + ", ".join(entries) + "}"
    return repr(value)


def uncut_line(value: object) -> str:
    """Returns a value on one line, with few items; texts and other objects may make it long."""
    try:
        text = _SHORT_REPR.repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return clean(_LINE_BREAK.sub(" ", text))


def frame_summary(value: object) -> str | None:
    """Returns the shape and the columns of a data frame or series; None for anything else.

    The type is recognised by its name: nothing is imported.
    """
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library not in ("pandas", "polars"):
        return None
    if kind.__name__ == "DataFrame":
        rows, columns = value.shape  # type: ignore[attr-defined]
        names = [str(name) for name in value.columns[:_MAX_COLUMNS]]  # type: ignore[attr-defined]
        if columns > _MAX_COLUMNS:
            names.append("…")
        listed = f": {', '.join(names)}" if names else ""
        return f"{library}.DataFrame, {counted(rows, 'row')} × {counted(columns, 'column')}{listed}"
    if kind.__name__ == "Series":
        name = value.name  # type: ignore[attr-defined]
        called = "" if name in (None, "") else f" {name}"
        length = len(value)  # type: ignore[arg-type]
        return f"{library}.Series{called}, {counted(length, 'value')}"
    return None


def _array_summary(value: object) -> str | None:
    """Returns the type and the shape of a large NumPy array; None for anything else."""
    kind = type(value)
    if kind.__module__ != "numpy" or kind.__name__ != "ndarray":
        return None
    if value.size <= _MAX_ITEMS:  # type: ignore[attr-defined]
        return None
    return f"{value.dtype} array of shape {value.shape}"  # type: ignore[attr-defined]


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where there is not one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clean(text: str) -> str:
    """Returns the text with unprintable characters spelled out.

    So it can control neither a terminal nor a page.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def cut(text: str, most: int) -> str:
    """Returns the text, or its beginning and an ellipsis, in at most that many characters."""
    if len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…"
