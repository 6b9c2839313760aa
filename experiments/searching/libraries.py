"""Functions of released libraries, audited from their signature and a domain alone: nobody picks an input.

Each is audited twice: on the domain that its arguments declare, and beyond it. What is refuted is printed with its
counterexample: a claim that does not hold on inputs which the function accepts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer as em
from epsilometer_experiments.experiment import Case, Experiment, Numbers, Settings
from epsilometer_experiments.options import Option, whole, words

CONFIDENCE = 0.999
_NAMES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Entry:
    """A function and what its signature says about its inputs.

    Attributes:
        open: makes the function; it imports the library.
        domain: the datasets that it declares to take.
        relation: for which its documentation promises privacy.
    """

    open: Callable[[], Callable[[Any], Any]]
    domain: Any
    relation: str


_UNIT = em.domains.Number(0.0, 1.0)
_ARRAY = em.domains.Records(_UNIT, size=(1, 12), container="numpy")
_LIST = em.domains.Records(_UNIT)
_WHOLE = em.domains.Records(em.domains.Integer(0, 10))
_WORDS = em.domains.Records(em.domains.Category(_NAMES))
_ITEM = em.domains.Integer(1, 4)


def _tool(name: str, **settings: Any) -> Callable[[], Callable[[Any], Any]]:
    """A function of diffprivlib.tools with ε = 1."""

    def open_tool() -> Callable[[Any], Any]:
        from diffprivlib import tools  # type: ignore[import-untyped]

        function = getattr(tools, name)
        return lambda data: function(data, epsilon=1.0, **settings)

    return open_tool


def _scaler() -> Callable[[Any], Any]:
    from diffprivlib.models import StandardScaler  # type: ignore[import-untyped]

    def scaled(data: Any) -> Any:
        fitted = StandardScaler(epsilon=1.0, bounds=(0.0, 1.0)).fit(np.asarray(data).reshape(-1, 1))
        return [fitted.mean_[0], fitted.var_[0], fitted.n_samples_seen_]

    return scaled


def _bayes() -> Callable[[Any], Any]:
    from diffprivlib.models import GaussianNB

    def fitted(data: Any) -> Any:
        model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(*data)
        return [model.theta_, model.class_count_]

    return fitted


def _measurement(build: Callable[[Any], Any]) -> Callable[[], Callable[[Any], Any]]:
    """A measurement of OpenDP that its own map proves to have ε = 1 at a distance of 1."""

    def open_measurement() -> Callable[[Any], Any]:
        import opendp.prelude as dp

        dp.enable_features("contrib", "floating-point", "honest-but-curious")
        made: Callable[[Any], Any] = build(dp)
        return made

    return open_measurement


def _numbers(dp: Any, kind: Any) -> Any:
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    return dp.vector_domain(domain), dp.symmetric_distance()


def _opendp_sum(dp: Any) -> Any:
    return (
        _numbers(dp, float)
        >> dp.t.then_clamp((0.0, 1.0))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=1.0)
    )


def _opendp_whole_sum(dp: Any) -> Any:
    return (
        _numbers(dp, int)
        >> dp.t.then_clamp((0, 10))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=10.0)
    )


def _opendp_count(dp: Any) -> Any:
    return _numbers(dp, float) >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


def _opendp_histogram(dp: Any) -> Any:
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return texts >> dp.t.then_count_by_categories(list(_NAMES)) >> dp.m.then_laplace(scale=1.0)


def _opendp_distinct(dp: Any) -> Any:
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return texts >> dp.t.then_count_distinct() >> dp.m.then_laplace(scale=1.0)


def _client(module: str, name: str, **settings: Any) -> Callable[[], Callable[[Any], Any]]:
    """The privatising method of a client of pure-ldp, with ε = 1 and four items."""

    def open_client() -> Callable[[Any], Any]:
        # From its file: the package imports its servers too, and one of them needs a library that clients do not.
        package = find_spec("pure_ldp")
        if package is None or package.origin is None:
            raise em.MissingExtraError("pure_ldp", "test", "find/libraries")
        file = Path(package.origin).parent / "frequency_oracles" / f"{module}.py"
        spec = spec_from_file_location(name, file)
        assert spec is not None  # it has a path
        assert spec.loader is not None
        loaded = module_from_spec(spec)
        spec.loader.exec_module(loaded)
        method: Callable[[Any], Any] = getattr(loaded, name)(epsilon=1.0, d=4, **settings).privatise
        return lambda item: method(item)

    return open_client


_BOUNDS = (0.0, 1.0)
_LABELLED = em.domains.Matrix((2, 8), 1, 0.0, 1.0, labels=(0, 1))
LIBRARIES: dict[str, Entry] = {
    "diffprivlib mean": Entry(_tool("mean", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib nanmean": Entry(_tool("nanmean", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib sum": Entry(_tool("sum", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib var": Entry(_tool("var", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib std": Entry(_tool("std", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib count_nonzero": Entry(_tool("count_nonzero"), _ARRAY, "replace"),
    "diffprivlib histogram": Entry(_tool("histogram", bins=3, range=_BOUNDS), _ARRAY, "add-remove"),
    "diffprivlib median": Entry(_tool("median", bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib quantile": Entry(_tool("quantile", quant=0.25, bounds=_BOUNDS), _ARRAY, "replace"),
    "diffprivlib StandardScaler": Entry(_scaler, _ARRAY, "replace"),
    "diffprivlib GaussianNB": Entry(_bayes, _LABELLED, "replace"),
    "opendp clamped sum": Entry(_measurement(_opendp_sum), _LIST, "add-remove"),
    "opendp whole sum": Entry(_measurement(_opendp_whole_sum), _WHOLE, "add-remove"),
    "opendp count": Entry(_measurement(_opendp_count), _LIST, "add-remove"),
    "opendp count_by_categories": Entry(_measurement(_opendp_histogram), _WORDS, "add-remove"),
    "opendp count_distinct": Entry(_measurement(_opendp_distinct), _WORDS, "add-remove"),
    "pure-ldp DEClient": Entry(_client("direct_encoding/de_client", "DEClient"), _ITEM, "replace"),
    "pure-ldp UEClient": Entry(
        _client("unary_encoding/ue_client", "UEClient", use_oue=False), _ITEM, "replace"
    ),
    "pure-ldp UEClient, OUE": Entry(
        _client("unary_encoding/ue_client", "UEClient", use_oue=True), _ITEM, "replace"
    ),
    "pure-ldp HEClient": Entry(
        _client("histogram_encoding/he_client", "HEClient"), _ITEM, "replace"
    ),
}


@cache
def _opened(name: str) -> Callable[[Any], Any]:
    return LIBRARIES[name].open()


def _cases(settings: Settings) -> list[Case]:
    names = settings["functions"] or LIBRARIES
    return [
        Case(f"{name}, {'beyond' if beyond else 'within'}", {"name": name, "beyond": beyond})
        for name in names
        for beyond in (False, True)
        if ("beyond" if beyond else "within") in settings["where"]
    ]


def audit_function(case: Case, seed: int, settings: Settings) -> Numbers:
    """Searches for inputs; a counterexample is printed."""
    name, beyond = case.parameters["name"], case.parameters["beyond"]
    entry, began = LIBRARIES[name], time.process_time()
    looks = {"beyond": beyond, "trials": settings["pairs"], "seed": seed % 2**32}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn about leaks that they know of
            result = em.audit(
                em.from_callable(_opened(name), name=name),
                em.finders.Search(entry.domain, relation=entry.relation, **looks),
                em.PureDP(1.0),
                samples=settings["samples"],
                confidence=CONFIDENCE,
                seed=seed,
                max_seconds=settings["seconds"],
            )
    except (
        em.MechanismError
    ) as error:  # it took none of the inputs, or there was no time for a certificate
        print(f"{case.name}: {error}\n", flush=True)
        return {"audited": 0.0}
    if result.is_refuted or result.health:
        print(f"{case.name}: {result}\n", flush=True)
    seconds = time.process_time() - began
    return {
        "audited": 1.0,
        "refuted": float(result.is_refuted),
        "lower bound": result.lower_bound,
        "seconds": seconds,
    }


EXPERIMENTS = (
    Experiment(
        "find/libraries",
        "functions of diffprivlib, OpenDP and pure-ldp, audited from their signature and a domain alone",
        1,
        _cases,
        audit_function,
        (
            Option(
                "functions", "names of functions, separated by commas; all by default", (), words
            ),
            Option(
                "where",
                "within the declared domain, beyond it, or both",
                ("within", "beyond"),
                words,
            ),
            Option("pairs", "pairs that a search may look at", 500, whole),
            Option("samples", "draws per input of a certificate", 4_000, whole),
            Option("seconds", "for each search", 300.0, float),
        ),
        parallel=False,
    ),
)
