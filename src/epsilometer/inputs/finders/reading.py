"""Finders as plain data, for the command line and for files."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from epsilometer.errors import InputError
from epsilometer.inputs.domains import Queries
from epsilometer.inputs.domains.reading import read_domain
from epsilometer.inputs.finders.bayesian import Bayesian
from epsilometer.inputs.finders.grid import Grid
from epsilometer.inputs.finders.patterns import Patterns
from epsilometer.inputs.finders.random import Random
from epsilometer.inputs.finding import Finder

FINDERS: dict[str, Any] = {each.name: each for each in (Random, Grid, Bayesian, Patterns)}


def read_finder(data: Mapping[str, Any]) -> Finder:
    """The finder that {"name": …, "domain": …, "trials": …, …} describes."""
    settings = dict(data)
    name, domain = settings.pop("name", None), settings.pop("domain", None)
    if name not in FINDERS:
        close = get_close_matches(str(name), FINDERS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(FINDERS)}"
        raise InputError(f"finder: the name {name!r} is unknown; {hint}")
    if domain is None:
        raise InputError("a finder needs a domain to search, like 'vector:4:0:1'")
    space = read_domain(domain)
    if name == Patterns.name and not isinstance(space, Queries):
        raise InputError(f"domain={domain!r:.100}: patterns are of answers of queries; write 'queries:5'")
    try:
        finder: Finder = FINDERS[name](space, **settings)
    except TypeError as error:  # an argument that this finder does not have
        raise InputError(f"finder {name!r}: {str(error).partition('() ')[2] or error}") from error
    return finder
