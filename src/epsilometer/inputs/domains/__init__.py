"""Domains: which datasets a search may try, and which of them are neighbours."""

from epsilometer.inputs.domains.answers import Queries
from epsilometer.inputs.domains.base import Domain, Neighbours
from epsilometer.inputs.domains.numbers import Category, Integer, Number
from epsilometer.inputs.domains.records import Table, Vector
from epsilometer.inputs.relations import RELATIONS

__all__ = ["RELATIONS", "Category", "Domain", "Integer", "Neighbours", "Number", "Queries", "Table", "Vector"]
