"""The errors for values that cannot be read. The values are hostile: even printing one may fail."""

from __future__ import annotations

from epsilometer.errors import MechanismError

MAX_REPR = 80
ALLOWED = (
    "an output may be a bool, int, float, complex, Decimal, str, bytes, None, date, an enum member, a numpy scalar "
    "or array, or a tuple, list, set, dict with string keys or dataclass of such values"
)
BATCH = (
    "a batch of outputs must be a sequence with one entry per output (a list, tuple, iterator or array), "
    "or a dict or data frame of columns of equal length"
)


def safe_repr(value: object) -> str:
    """The value's repr on one line, or a stand-in if it has none."""
    try:
        text = str.__str__(repr(value))
    except Exception:
        return f"<unprintable {type_name(value)}>"
    return text if text.isprintable() else ascii(text)[1:-1]


def cut_repr(value: object) -> str:
    """At most `MAX_REPR` characters of the value's repr."""
    text = safe_repr(value)
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def type_name(value: object) -> str:
    """The name of the value's class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def unreadable(value: object, output: int, why: str = "") -> MechanismError:
    """An output is, or contains, something that is not allowed."""
    reason = f" ({why})" if why else ""
    return MechanismError(
        f"output {output} is or holds a value of type {type_name(value)}, which cannot be read{reason}: "
        f"{cut_repr(value)}; {ALLOWED}"
    )


def not_a_batch(values: object) -> MechanismError:
    """The whole batch is something that has no entries."""
    return MechanismError(f"the mechanism returned a batch of type {type_name(values)}: {cut_repr(values)}; {BATCH}")
