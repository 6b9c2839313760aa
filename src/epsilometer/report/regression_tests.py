"""The counterexample of a result as a regression test for pytest.

What stands in the file comes from the result, which may be a stranger's: names are checked, texts
are comments, and values are written by us.
"""

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from epsilometer.environment import package_version
from epsilometer.errors import InputError
from epsilometer.report import wording
from epsilometer.report.formatting import plain
from epsilometer.report.wording import SIDES
from epsilometer.result import AuditResult

# A true claim fails a regression test at most once in a million runs with fresh draws.
_FALSE_ALARM = 1e-6
# The largest failure probability from which draws are extrapolated: at 1/2 none would be needed.
_MAX_FAILURE_PROBABILITY = 0.4
# Draws per side that a test takes at least.
_MIN_DRAWS = 1000
# More draws than these, or than the audit took itself, make a test slow.
_MAX_DRAWS = 200_000
# Characters of a comment.
_MAX_COMMENT_CHARACTERS = 300
# The modules that `literal` uses, by the names that it uses.
_MODULES = {
    "np": "numpy",
    "pd": "pandas",
    "pl": "polars",
    "datetime": "datetime",
    "importlib": "importlib",
}
# Claims whose repr is Python that makes them.
_CLAIMS_BY_REPR = ("PureDP", "ApproxDP", "RenyiDP", "ZCDP", "GaussianDP")
_BUILT_IN_TYPES = (type(None), bool, int, str, bytes, datetime.date, datetime.datetime)


def render_test(result: AuditResult) -> str:
    """Returns a file for pytest that audits the mechanism on the pair of the result's witness.

    It takes as many more draws than the audit as its greater confidence costs.

    Raises:
        InputError: if there is no pair, or one that cannot be written as Python.
    """
    witness = result.witness
    if witness is None or result.verdict is None or wording.is_recorded(result):
        raise InputError("to_test: only an audit with a pair of inputs and a claim makes a test")
    mechanism = _mechanism_source(result)
    body = [f"    {name} = {literal(witness.pair.side(side))}" for side, name in enumerate(SIDES)]
    body.append(f"    claim = {_claim_source(result)}")
    imports = sorted([*mechanism.imports, *_imports_for(body)])
    comments = [
        f"Written by Epsilometer {package_version()}.",
        wording.verdict_sentence(result),
        wording.bound_sentence(result),
    ]
    if witness.pair.note:
        comments.append(witness.pair.note)
    target = wording.mechanism_name(result).rpartition(":")[2]
    name = re.sub(r"\W+", "_", target).strip("_").lower() or "mechanism"
    call = f"epsilometer.audit({mechanism.expression}, (left, right), claim, **settings)"
    lines = [
        *(f"# {plain(comment, _MAX_COMMENT_CHARACTERS)}" for comment in comments),
        *imports,
        "",
        "",
        f"def test_{name}_keeps_its_claim():",
        *body,
        "    # A true claim fails this test at most once in a million runs with other seeds.",
        f"    settings = {literal(_test_settings(result))}",
        f"    {call}.raise_if_refuted()",
        "",
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Source:
    """Python that makes the mechanism.

    Attributes:
        expression: the mechanism.
        imports: the lines that it, and the test, need.
    """

    expression: str
    imports: list[str]


def _mechanism_source(result: AuditResult) -> _Source:
    settings = result.settings
    recipe = settings.get("recipe") or {}
    features = settings.get("features") or {}
    # Places are written "package.module:function".
    function_place = str(recipe.get("function", ""))
    features_place = str(features.get("place", "")) if features else None
    places = [place for place in (function_place, features_place) if place is not None]
    if all(_is_importable(place) for place in places):
        return _imported_source(recipe, function_place, features_place)
    if "target" not in settings:
        which = "the mechanism or its features" if features else "the mechanism"
        raise InputError(
            f"to_test: no test could import {which} (a lambda, an inner function, an object): "
            "write it as a function of a module and audit that"
        )
    target = str(settings["target"])
    is_batch = settings.get("batch") is True
    # A target may bring its own features, like an entry of the zoo; they have no place.
    more = f", features={features_place!r}" if features_place else ""
    # Headers are not stored: whoever runs the test of a service that wants some adds them.
    for key in ("params", "dataset_format", "http"):
        if settings.get(key):
            more += f", {key}={literal(settings[key])}"
    return _Source(
        expression=f"open_target({target!r}, batch={is_batch}{more})",
        imports=["import epsilometer", "from epsilometer.cli.targets import open_target"],
    )


def _is_importable(place: str) -> bool:
    """Whether a place is a dotted name, and nothing else that Python would run."""
    return all(part.isidentifier() for part in _dotted(place).split("."))


def _dotted(place: str) -> str:
    return place.replace(":", ".", 1)


def _imported_source(recipe: Any, function_place: str, features_place: str | None) -> _Source:
    """The mechanism as a function of a module, wrapped if it needs options."""
    function = _dotted(function_place)
    is_batch = recipe.get("batch") is True
    options = []
    if not is_batch and recipe.get("on_error") == "outcome":
        options.append('on_error="outcome"')
    if features_place is not None:
        options.append(f"features={_dotted(features_place)}")
    modules = {function_place.partition(":")[0]}
    if features_place is not None:
        modules.add(features_place.partition(":")[0])
    imports = ["import epsilometer", *(f"import {module}" for module in modules)]
    params = recipe.get("params") or {}
    if params and all(name.isidentifier() for name in params):
        values = ", ".join(f"{name}={literal(value)}" for name, value in params.items())
        function = f"functools.partial({function}, {values})"
        imports.insert(0, "import functools")
    if not is_batch and not options:
        return _Source(expression=function, imports=imports)
    factory = "from_batch" if is_batch else "from_callable"
    arguments = ", ".join([function, *options])
    return _Source(expression=f"epsilometer.{factory}({arguments})", imports=imports)


def _claim_source(result: AuditResult) -> str:
    claim = result.claim
    if type(claim).__name__ in _CLAIMS_BY_REPR:
        return f"epsilometer.{claim!r}"
    return f"importlib.import_module('epsilometer.claims').from_dict({literal(claim.to_dict())})"


def _imports_for(lines: Sequence[str]) -> list[str]:
    """The imports of the modules that these lines of code use."""
    imports = []
    code = "".join(lines)
    for name, module in _MODULES.items():
        if re.search(rf"\b{name}\.", code):
            imports.append(f"import {module}" if name == module else f"import {module} as {name}")
    return imports


def _test_settings(result: AuditResult) -> dict[str, Any]:
    """As certain as a test must be, with draws that make up for it.

    Errors of bounds shrink with the root of the number of draws.
    """
    failure_probability = min(1.0 - result.confidence, _MAX_FAILURE_PROBABILITY)
    samples = max(int(result.settings.get("samples", 0)), _MIN_DRAWS)
    growth = max(1.0, float(ndtri(_FALSE_ALARM) / ndtri(failure_probability)) ** 2)
    needed = math.ceil(samples * growth)
    settings = {
        "samples": min(needed, max(samples, _MAX_DRAWS)),
        "confidence": 1.0 - _FALSE_ALARM,
        "seed": 1,
    }
    representation = result.settings.get("representation", "value")
    if representation in ("bits", "all"):
        settings["representation"] = representation
    return settings


def literal(value: Any) -> str:
    """Returns Python source that makes an equal value of the same type.

    The source may use `np`, `pd`, `pl` and `datetime`.

    Raises:
        InputError: if we know no such source.
    """
    kind = type(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if kind in _BUILT_IN_TYPES:
        return repr(value)
    if kind is list:
        return f"[{_listed(value)}]"
    if kind in (tuple, set, frozenset):
        return f"{kind.__name__}([{_listed(value)}])"
    if kind is dict:
        entries = [f"{literal(key)}: {literal(content)}" for key, content in value.items()]
        return "{" + ", ".join(entries) + "}"
    library = kind.__module__.partition(".")[0]
    source = None
    if library == "numpy":
        source = _numpy_literal(value)
    elif library == "pandas":
        source = _pandas_literal(value)
    elif library == "polars":
        source = _polars_literal(value)
    if source is None:
        raise InputError(
            f"to_test: an input of type {kind.__name__} cannot be written into a test; "
            "write the pair yourself"
        )
    return source


def _listed(values: Any) -> str:
    return ", ".join(literal(value) for value in values)


def _numpy_literal(value: Any) -> str | None:
    name = type(value).__name__
    if name == "ndarray":
        is_empty = value.size == 0 and value.ndim > 1
        reshape = f".reshape({value.shape})" if is_empty else ""
        return f"np.array({literal(value.tolist())}, dtype={str(value.dtype)!r}){reshape}"
    if name != "datetime64" and hasattr(value, "dtype"):
        return f"np.dtype({str(value.dtype)!r}).type({literal(value.item())})"
    return None


def _pandas_literal(value: Any) -> str | None:
    name = type(value).__name__
    if name == "DataFrame":
        columns = [f"{literal(column)}: {literal(value[column])}" for column in value]
        return f"pd.DataFrame({{{', '.join(columns)}}})"
    if name == "Series":
        values = literal(value.tolist())
        return f"pd.Series({values}, dtype={str(value.dtype)!r}, name={literal(value.name)})"
    return None


def _polars_literal(value: Any) -> str | None:
    name = type(value).__name__
    if name == "DataFrame":
        return f"pl.DataFrame([{_listed(value)}])"
    if name == "Series":
        return f"pl.Series({value.name!r}, {literal(value.to_list())}, dtype=pl.{value.dtype})"
    return None
