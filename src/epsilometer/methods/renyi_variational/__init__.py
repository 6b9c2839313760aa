"""Method `renyi-variational`: a learned bounded function. The public namespace `epsilometer.renyi_variational`."""

from epsilometer.methods.renyi_variational.method import RenyiVariationalMethod
from epsilometer.methods.renyi_variational.options import Options
from epsilometer.methods.renyi_variational.published import published_error

__all__ = ["Options", "RenyiVariationalMethod", "published_error"]
