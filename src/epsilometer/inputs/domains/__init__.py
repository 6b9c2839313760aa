"""Domains: which datasets a search may try, and which of them are neighbours.

Example:
    >>> domain = em.domains.Vector(4, low=0, high=1)
    >>> "add-remove" in domain.relations
    True
"""

from epsilometer.inputs.coordinates import RELATIONS
from epsilometer.inputs.domains.numbers import Category, Domain, Integer, Neighbours, Number
from epsilometer.inputs.domains.records import Queries, Table, Vector

__all__ = ["RELATIONS", "Category", "Domain", "Integer", "Neighbours", "Number", "Queries", "Table", "Vector"]
