"""Which datasets are neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.errors import InputError

RELATIONS = {
    "replace": "one record is another one",
    "add-remove": "one record is missing",
    "l1": "numbers differ by at most the sensitivity in all",
    "linf": "every number differs by at most the sensitivity",
}


def check_relation(relation: object, known: Sequence[str], domain: str) -> str:
    """One of the relations that a domain knows."""
    if relation in known:
        return str(relation)
    if relation not in RELATIONS:
        raise InputError(f"relation={relation!r} is unknown; known are {', '.join(map(repr, RELATIONS))}")
    raise InputError(f"relation={relation!r} makes no sense for {domain}, which has {', '.join(map(repr, known))}")
