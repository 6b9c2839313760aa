"""Domains: which datasets a search may try, and which of them are neighbours.

Example:
    >>> domain = em.domains.Vector(4, low=0, high=1)
    >>> "add-remove" in domain.relations
    True
"""

from typing import TYPE_CHECKING

from epsilometer.inputs.coordinates import RELATIONS, Coordinate, Neighbours, check_relation
from epsilometer.inputs.domains.numbers import (
    Boolean,
    Category,
    Date,
    Domain,
    Integer,
    Number,
    Sphere,
    Text,
)
from epsilometer.inputs.domains.records import Optional
from epsilometer.inputs.domains.tables import Matrix, Queries, Records, Table, Vector, from_strategy
from epsilometer.namespaces import namespace

__all__ = [
    "RELATIONS",
    "Boolean",
    "Category",
    "Coordinate",
    "Date",
    "Domain",
    "Integer",
    "Matrix",
    "Neighbours",
    "Number",
    "Optional",
    "Queries",
    "Records",
    "Sphere",
    "Table",
    "Text",
    "Vector",
    "check_relation",
    "from_strategy",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)
