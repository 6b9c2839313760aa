"""Forged results: what a liar would change in an honest file, one kind of change each.

A forgery changes something that matters (a bound, a verdict, a count, a price, a bet) and keeps the rest
of the file consistent where a careful liar would. `FORGERIES` must all be refused by the checker.
`UNKNOWABLE` are changes that no file can betray without its draws; docs/how-to/verify.md lists them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Document = dict[str, Any]
Generator = np.random.Generator
# Changes a copy of a document in place; False if the kind does not apply to it.
Change = Callable[[Document, Generator], bool]

FORGERIES: dict[str, Change] = {}
UNKNOWABLE: dict[str, Change] = {}


def _forgery(name: str) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        FORGERIES[name] = change
        return change

    return keep


def _unknowable(name: str) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        UNKNOWABLE[name] = change
        return change

    return keep


def forge(document: Document, change: Change, rng: Generator) -> Document | None:
    """A forged copy of a document; None if the kind does not apply or changes nothing."""
    forged = copy.deepcopy(document)
    if not change(forged, rng) or forged == document:
        return None
    return forged


@dataclass(frozen=True)
class Forged:
    """A forged document, with the kind of honest result and the kind of forgery it was made from."""

    source: str
    kind: str
    document: Document


def forged_results(
    sources: Sequence[tuple[str, Document]], kinds: Mapping[str, Change], n: int, rng: Generator
) -> Iterator[Forged]:
    """Yields n forgeries; every kind in turn, each on a random source to which it applies.

    Kinds that apply to none of the sources are left out.
    """
    applicable = list(kinds)
    number = 0
    while number < n and applicable:
        name = applicable[number % len(applicable)]
        for place in rng.permutation(len(sources)):
            source, document = sources[place]
            forged = forge(document, kinds[name], rng)
            if forged is not None:
                yield Forged(source, name, forged)
                number += 1
                break
        else:
            applicable.remove(name)


# What most forgeries need.


def _first(document: Document) -> Document:
    finding: Document = document["findings"][0]
    return finding


def _details(document: Document) -> Document:
    details: Document = _first(document)["details"]
    return details


def _is_exact(document: Document) -> bool:
    return bool(document["guarantee"] == "exact" and document["witness"] is not None)


def _claimed(document: Document) -> float:
    """The value of the claim's own parameter."""
    claim = document["claim"]
    names = {"zcdp": "rho", "gaussian": "mu", "tradeoff": "excess", "approx-delta": "delta"}
    return float(claim[names.get(claim["notion"], "epsilon")])


def _set_bound(document: Document, bound: float) -> None:
    """Another bound everywhere, with the verdict and the p-value that belong to it."""
    document["lower_bound"] = bound
    _first(document)["lower_bound"] = bound
    if "bound_over_time" in _details(document) and _details(document)["bound_over_time"]:
        _details(document)["bound_over_time"][-1][1] = bound
    if document["verdict"] in ("refuted", "not refuted"):
        is_refuted = bound > _claimed(document)
        _set_verdict(document, "refuted" if is_refuted else "not refuted")


def _set_verdict(document: Document, verdict: str) -> None:
    """Another verdict, with a p-value that belongs to it."""
    failure = 1.0 - document["confidence"]
    p_value = document.get("p_value")
    document["verdict"] = verdict
    if verdict == "refuted" and p_value is not None and p_value > failure:
        document["p_value"] = 0.5 * failure
    if verdict == "not refuted" and p_value is not None and p_value <= failure:
        document["p_value"] = 0.5 * (failure + 1.0)
    if verdict == "refuted":
        document["detectable"] = None
    if "stopped" in _details(document):
        _details(document)["stopped"] = "refuted" if verdict == "refuted" else "samples"


def _witnesses(document: Document) -> list[Document]:
    """The two copies of the witness of the first finding."""
    return [document["witness"], _first(document)["witness"]]


def _side_of(document: Document, likelier: bool) -> str:
    side = document["witness"]["likelier_under"]
    if likelier:
        return f"{side}_counts"
    return "right_counts" if side == "left" else "left_counts"


def _bets(document: Document) -> list[Document]:
    bets: list[Document] = _details(document).get("batches", [])
    return bets


def _has_bets(document: Document) -> bool:
    """Whether there are bets that the checker recomputes, and that show something."""
    is_known = document["claim"]["notion"] in ("pure", "approx", "approx-delta", "gaussian")
    return is_known and bool(_bets(document)) and document["lower_bound"] > 0.0


# Bounds.


@_forgery("bound raised")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    bound = document["lower_bound"]
    _set_bound(document, bound * float(rng.uniform(1.05, 2.0)) + 0.05)
    return True


@_forgery("bound raised far")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    _set_bound(document, 10.0 * document["lower_bound"] + 5.0)
    return True


@_forgery("bound raised just above the claim")
def _(document: Document, rng: Generator) -> bool:
    # Just above the claim would be within the checker's precision if the bound were just below.
    if not _is_exact(document) or document["verdict"] != "not refuted":
        return False
    if document["lower_bound"] > 0.9 * _claimed(document) - 0.02:
        return False
    _set_bound(document, _claimed(document) * 1.0001 + 1e-6)
    return True


@_forgery("bound raised in the result alone")
def _(document: Document, rng: Generator) -> bool:
    document["lower_bound"] = document["lower_bound"] * 1.3 + 0.1
    return True


@_forgery("bound raised in the finding alone")
def _(document: Document, rng: Generator) -> bool:
    _first(document)["lower_bound"] = _first(document)["lower_bound"] * 1.3 + 0.1
    return True


@_forgery("bound below 0")
def _(document: Document, rng: Generator) -> bool:
    _set_bound(document, -1.0)
    return True


@_forgery("refutation hidden behind a low bound")
def _(document: Document, rng: Generator) -> bool:
    """Only where the refutation is clear; near the claim the precision of the search decides."""
    is_known = document["claim"]["notion"] in ("pure", "approx")
    if not _is_exact(document) or document["verdict"] != "refuted" or not is_known:
        return False
    if (
        _first(document)["method"] in ("renyi-variational",)
        or document["lower_bound"] < 1.5 * _claimed(document) + 0.2
    ):
        return False
    _set_bound(document, _claimed(document) * 0.98)
    return True


@_forgery("ledger invented")
def _(document: Document, rng: Generator) -> bool:
    """A search may choose again on what has proved; an audit of given pairs may not."""
    if "paid" in _details(document):
        return False
    _details(document)["paid"] = [["certificate", 1.0 - _first(document)["confidence"]]]
    return True


@_forgery("search invented")
def _(document: Document, rng: Generator) -> bool:
    if "finder" in document["settings"]:
        return False
    document["settings"]["finder"] = {"name": "random"}
    return True


# Verdicts.


@_forgery("verdict: refuted instead of not refuted")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "not refuted":
        return False
    _set_verdict(document, "refuted")
    return True


@_forgery("verdict: refuted instead of inconclusive")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "inconclusive":
        return False
    document["verdict"] = "refuted"
    return True


@_forgery("verdict: not refuted instead of inconclusive")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "inconclusive":
        return False
    document["verdict"] = "not refuted"
    return True


@_forgery("verdict: not refuted instead of refuted")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "refuted":
        return False
    _set_verdict(document, "not refuted")
    return True


@_forgery("verdict: inconclusive instead of a clear one")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] not in ("refuted", "not refuted"):
        return False
    document["verdict"] = "inconclusive"
    document["p_value"] = None
    document["detectable"] = None
    return True


@_forgery("verdict: none although there is a claim")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] is None or _claimed(document) == 0.0:
        return False
    document["verdict"] = None
    document["p_value"] = None
    document["detectable"] = None
    return True


@_forgery("untrusted draws declared trusted, the verdict left")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "inconclusive" or document["guarantee"].startswith("none"):
        return False
    for report in document["health"]:
        report["untrusted"] = False
    return True


@_forgery("trusted draws declared untrusted, the verdict left")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] not in ("refuted", "not refuted"):
        return False
    document["health"].append({"name": "drift", "message": "", "untrusted": True})
    return True


# Counts.


@_forgery("hits added where the event is likelier")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    name = _side_of(document, likelier=True)
    more = int(rng.integers(1, 200))
    for witness in _witnesses(document):
        witness[name][0] += more
    return True


@_forgery("hits removed where the event is less likely")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    name = _side_of(document, likelier=False)
    if document["witness"][name][0] == 0:
        return False
    fewer = int(rng.integers(1, document["witness"][name][0] + 1))
    for witness in _witnesses(document):
        witness[name][0] -= fewer
    return True


@_forgery("draws added where the event is less likely")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or document["witness"]["right_counts"][1] == 0:
        return False
    name = _side_of(document, likelier=False)
    for witness in _witnesses(document):
        witness[name][1] += 100
    document["samples_used"] = [n + 100 for n in document["samples_used"]]
    document["settings"]["samples"] = document["settings"].get("samples", 0) + 100
    return True


@_forgery("all counts doubled")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or document["witness"]["left_counts"][1] == 0:
        return False
    for witness in _witnesses(document):
        for name in ("left_counts", "right_counts"):
            witness[name] = [2 * n for n in witness[name]]
    document["samples_used"] = [2 * n for n in document["samples_used"]]
    document["settings"]["samples"] = 2 * document["settings"].get("samples", 0)
    return True


@_forgery("counts of the two sides swapped")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    counts = document["witness"]
    if counts["left_counts"][0] == counts["right_counts"][0]:
        return False
    for witness in _witnesses(document):
        witness["left_counts"], witness["right_counts"] = (
            witness["right_counts"],
            witness["left_counts"],
        )
    return True


@_forgery("the side where the event is likelier swapped")
def _(document: Document, rng: Generator) -> bool:
    if (
        not _is_exact(document)
        or document["witness"]["left_counts"] == document["witness"]["right_counts"]
    ):
        return False
    for witness in _witnesses(document):
        witness["likelier_under"] = "left" if witness["likelier_under"] == "right" else "right"
    return True


@_forgery("more hits than draws")
def _(document: Document, rng: Generator) -> bool:
    if document["witness"] is None:
        return False
    for witness in _witnesses(document):
        witness["left_counts"][0] = witness["left_counts"][1] + 1
    return True


@_forgery("negative counts")
def _(document: Document, rng: Generator) -> bool:
    if document["witness"] is None:
        return False
    for witness in _witnesses(document):
        witness["right_counts"][0] = -5
    return True


@_forgery("limits of the event tightened")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    for witness in _witnesses(document):
        witness["p_lower"] = 0.5 * (witness["p_lower"] + 1.0)
        witness["q_upper"] = 0.5 * witness["q_upper"]
    return True


@_forgery("limits of the event invented")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    for witness in _witnesses(document):
        witness["p_lower"] = 0.999
        witness["q_upper"] = 0.001
    return True


# Confidence, guarantee and claim.


@_forgery("confidence raised everywhere")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or document["lower_bound"] == 0.0:
        return False
    confidence = 1.0 - (1.0 - document["confidence"]) / 5.0
    document["confidence"] = confidence
    document["settings"]["confidence"] = confidence
    for finding in document["findings"]:
        finding["confidence"] = 1.0 - (1.0 - finding["confidence"]) / 5.0
    for entry in _details(document).get("paid", []):
        entry[1] /= 5.0
    p_value = document.get("p_value")
    if p_value is not None and document["verdict"] == "refuted":
        document["p_value"] = p_value / 5.0
    return True


@_forgery("confidence raised in the result alone")
def _(document: Document, rng: Generator) -> bool:
    document["confidence"] = 1.0 - (1.0 - document["confidence"]) / 3.0
    return True


@_forgery("confidence raised in result and settings")
def _(document: Document, rng: Generator) -> bool:
    confidence = 1.0 - (1.0 - document["confidence"]) / 3.0
    document["confidence"] = confidence
    document["settings"]["confidence"] = confidence
    return document["verdict"] != "refuted" or (document.get("p_value") or 1.0) < 1.0 - confidence


@_forgery("confidence of 1")
def _(document: Document, rng: Generator) -> bool:
    document["confidence"] = 1.0
    document["settings"]["confidence"] = 1.0
    return True


@_forgery("guarantee: exact instead of another one")
def _(document: Document, rng: Generator) -> bool:
    if document["guarantee"] == "exact" or document["guarantee"].startswith("none"):
        return False
    document["guarantee"] = "exact"
    _first(document)["guarantee"] = "exact"
    return True


@_forgery("guarantee: none instead of exact")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    document["guarantee"] = "none: hidden"
    _first(document)["guarantee"] = "none: hidden"
    if document["verdict"] is not None:
        document["verdict"] = "inconclusive"
        document["p_value"] = None
        document["detectable"] = None
    return _first(document)["method"] in ("events", "bits", "profile", "sequential", "renyi-bet")


@_forgery("guarantee that does not exist")
def _(document: Document, rng: Generator) -> bool:
    document["guarantee"] = "proved by inspection"
    _first(document)["guarantee"] = "proved by inspection"
    return True


@_forgery("claim changed in the result alone")
def _(document: Document, rng: Generator) -> bool:
    if "epsilon" not in document["claim"]:
        return False
    document["claim"] = {**document["claim"], "epsilon": document["claim"]["epsilon"] + 0.5}
    return True


@_forgery("claim of another notion")
def _(document: Document, rng: Generator) -> bool:
    if document["claim"]["notion"] not in ("pure", "gaussian") or document["lower_bound"] == 0.0:
        return False
    claim = {"notion": "zcdp", "rho": 0.5 * document["lower_bound"]}
    document["claim"] = claim
    _first(document)["claim"] = claim
    return document["verdict"] == "refuted"


@_forgery("delta of the claim removed")
def _(document: Document, rng: Generator) -> bool:
    if document["claim"]["notion"] != "approx" or document["lower_bound"] == 0.0:
        return False
    # Without a large delta the same counts prove a much larger bound.
    if not 1e-4 <= document["claim"]["delta"] <= 0.01:
        return False
    claim = {**document["claim"], "delta": 0.0}
    document["claim"] = claim
    for finding in document["findings"]:
        if finding["claim"]["notion"] == "approx":
            finding["claim"] = claim
    _set_bound(document, document["lower_bound"] * 1.1 + 0.05)
    return True


@_forgery("method that proves differently")
def _(document: Document, rng: Generator) -> bool:
    method = _first(document)["method"]
    if not _is_exact(document) or document["lower_bound"] == 0.0:
        return False
    other = {
        "events": "profile",
        "profile": "renyi-bet",
        "renyi-bet": "sequential",
        "sequential": "profile",
    }
    if method not in other:
        return False
    _first(document)["method"] = other[method]
    return True


# Findings and budget.


@_forgery("finding repeated")
def _(document: Document, rng: Generator) -> bool:
    document["findings"].append(copy.deepcopy(_first(document)))
    return True


@_forgery("finding dropped")
def _(document: Document, rng: Generator) -> bool:
    # A search whose other findings are left out states less, which the ledger allows.
    if len(document["findings"]) < 2 or "paid" in _details(document):
        return False
    del document["findings"][1:]
    return True


@_forgery("findings reordered")
def _(document: Document, rng: Generator) -> bool:
    findings = document["findings"]
    if len(findings) < 2 or findings[0]["lower_bound"] == findings[1]["lower_bound"]:
        return False
    findings[0], findings[1] = findings[1], findings[0]
    return True


@_forgery("findings reordered with the ledger")
def _(document: Document, rng: Generator) -> bool:
    """The finding of a smaller bound decides, and the result says so everywhere."""
    findings = document["findings"]
    if (
        len(findings) < 2
        or "paid" not in _details(document)
        or document["verdict"] == "inconclusive"
    ):
        return False
    if findings[1]["guarantee"] != "exact" or findings[1]["method"] == "bits":
        return False
    if findings[1]["lower_bound"] >= findings[0]["lower_bound"]:
        return False
    findings[1]["details"]["paid"] = findings[0]["details"].pop("paid")
    findings[0], findings[1] = findings[1], findings[0]
    for name in ("lower_bound", "guarantee", "claim", "witness"):
        document[name] = findings[0][name]
    is_refuted = findings[0]["lower_bound"] > _claimed(document)
    _set_verdict(document, "refuted" if is_refuted else "not refuted")
    return True


@_forgery("ledger: certificates made cheaper")
def _(document: Document, rng: Generator) -> bool:
    for entry in _details(document).get("paid", []):
        entry[1] *= 0.5
    return "paid" in _details(document)


@_forgery("ledger: more spent than there was")
def _(document: Document, rng: Generator) -> bool:
    paid = _details(document).get("paid")
    if paid is None:
        return False
    paid.append(["certificate of trial 99", 1.0 - document["confidence"]])
    return True


@_forgery("ledger emptied")
def _(document: Document, rng: Generator) -> bool:
    if "paid" not in _details(document):
        return False
    _details(document)["paid"] = []
    return True


@_forgery("ledger removed")
def _(document: Document, rng: Generator) -> bool:
    paid = _details(document).pop("paid", None)
    if paid is None:
        return False
    # With a single certificate at the whole price there is nothing to hide.
    spent = math.fsum(1.0 - finding["confidence"] for finding in document["findings"])
    return not math.isclose(spent, 1.0 - document["confidence"])


@_forgery("second finding: bound raised")
def _(document: Document, rng: Generator) -> bool:
    for finding in document["findings"][1:]:
        finding["lower_bound"] = finding["lower_bound"] * 1.5 + 0.3
    return len(document["findings"]) > 1


@_forgery("second finding: confidence raised")
def _(document: Document, rng: Generator) -> bool:
    for finding in document["findings"][1:]:
        finding["confidence"] = 1.0 - (1.0 - finding["confidence"]) / 4.0
    return len(document["findings"]) > 1


# Draws, p-values and what could have been detected.


@_forgery("fewer draws used than counted")
def _(document: Document, rng: Generator) -> bool:
    if document["witness"] is None or document["witness"]["left_counts"][1] < 2:
        return False
    document["samples_used"][0] = document["witness"]["left_counts"][1] - 1
    return True


@_forgery("more draws used than asked for")
def _(document: Document, rng: Generator) -> bool:
    if "finder" in document["settings"]:
        return False
    document["settings"]["samples"] = max(document["samples_used"]) - 1
    return True


@_forgery("p-value: refuted with a large one")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "refuted" or document["confidence"] < 0.2:
        return False
    document["p_value"] = 0.9
    return True


@_forgery("p-value: not refuted with a small one")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "not refuted":
        return False
    document["p_value"] = 1e-9
    return True


def _has_checked_p_value(document: Document) -> bool:
    """Whether the p-value is recomputed: not for whole curves, which events and bands test by a line."""
    if not _is_exact(document) or document.get("p_value") is None:
        return False
    notion = document["claim"]["notion"]
    method = _first(document)["method"]
    if method in ("renyi-bet", "renyi-variational"):
        return True
    if method == "profile":
        return notion not in ("zcdp", "tradeoff")
    return notion in ("pure", "approx") or (method == "sequential" and notion == "gaussian")


@_forgery("p-value: far smaller than the counts say")
def _(document: Document, rng: Generator) -> bool:
    if not _has_checked_p_value(document) or not 1e-14 < document["p_value"] < 1.0:
        return False
    document["p_value"] *= 1e-5
    return document["verdict"] == "refuted"


@_forgery("p-value: a little smaller, not refuted")
def _(document: Document, rng: Generator) -> bool:
    failure = 1.0 - document["confidence"]
    if not _has_checked_p_value(document) or document["verdict"] != "not refuted":
        return False
    if document["p_value"] < 1.5 * failure:
        return False
    document["p_value"] = failure * 1.001
    return True


@_forgery("p-value: close to refuting, said to be far from it")
def _(document: Document, rng: Generator) -> bool:
    failure = 1.0 - document["confidence"]
    if not _has_checked_p_value(document) or document["verdict"] != "not refuted":
        return False
    if document["p_value"] > 0.3 or failure > 0.2:
        return False
    document["p_value"] = 0.99
    return True


@_forgery("p-value of a measurement or of untrusted draws")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] in ("refuted", "not refuted"):
        return False
    document["p_value"] = float(rng.uniform(0.0, 1.0))
    return True


@_forgery("p-value that is no probability")
def _(document: Document, rng: Generator) -> bool:
    document["p_value"] = float(rng.choice([0.0, -0.1, 1.5]))
    return True


@_forgery("detectable: less than the claim")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "not refuted" or _claimed(document) == 0.0:
        return False
    document["detectable"] = 0.7 * _claimed(document)
    return True


@_forgery("detectable: after a refutation")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "refuted" or not _is_exact(document):
        return False
    if _first(document)["method"] not in ("events", "bits", "profile", "sequential", "renyi-bet"):
        return False
    document["detectable"] = _claimed(document) + 0.1
    return True


@_forgery("detectable: by a measurement")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] is not None:
        return False
    document["detectable"] = 0.3
    return True


@_forgery("detectable: rare outputs with no probability")
def _(document: Document, rng: Generator) -> bool:
    values: list[Any] = [-0.1, 0.0, 1.5, "x", True, []]
    document["detectable_mass"] = values[int(rng.integers(len(values)))]
    return True


@_forgery("detectable: rare outputs, after a refutation or by a measurement")
def _(document: Document, rng: Generator) -> bool:
    document["detectable_mass"] = 0.01
    return document["verdict"] in ("refuted", None)


@_forgery("blind: although it refuted, measured or was not trusted")
def _(document: Document, rng: Generator) -> bool:
    document["blind"] = "the outputs never repeat"
    return document["verdict"] != "not refuted"


@_forgery("blind: for no reason")
def _(document: Document, rng: Generator) -> bool:
    values: list[Any] = ["", 0, True, [], {}]
    document["blind"] = values[int(rng.integers(len(values)))]
    return True


# Bets of audits that stop early.


@_forgery("bets: three times the wealth on every batch")
def _(document: Document, rng: Generator) -> bool:
    for bet in _bets(document):
        bet["share"] *= 3.0
    return _has_bets(document)


@_forgery("bets: nearly the whole wealth on every event")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if not any(bet["stake"] for bet in bets):
        return False
    for bet in bets:
        bet["share"] = 0.999
    return _has_bets(document)


@_forgery("bets: a share a little too large")
def _(document: Document, rng: Generator) -> bool:
    for bet in _bets(document):
        bet["share"] *= 1.001
    return _has_bets(document)


@_forgery("bets: a share below 0")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if len(bets) < 2 or bets[1]["batch"] != bets[0]["batch"]:
        return False
    moved = 2.0 * bets[0]["share"]
    bets[0]["share"] -= moved
    bets[1]["share"] += moved
    return True


@_forgery("bets: batches repeated")
def _(document: Document, rng: Generator) -> bool:
    details = _details(document)
    if not _has_bets(document):
        return False
    details["batches"] = 4 * details["batches"]
    return True


@_forgery("bets: batches repeated and numbered")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if not _has_bets(document):
        return False
    last = bets[-1]["batch"]
    again = [{**bet, "batch": bet["batch"] + last} for bet in bets]
    _details(document)["batches"] = [*again[:0], *bets, *again]
    return True


@_forgery("bets: batches repeated, with as many draws")
def _(document: Document, rng: Generator) -> bool:
    """The draws of the pilot and the counts of the witness no longer fit, whatever is said of the rest."""
    bets = _bets(document)
    if not _has_bets(document) or bets[-1]["batch"] < 2:
        return False
    last = bets[-1]["batch"]
    again = [{**bet, "batch": bet["batch"] + last} for bet in bets]
    drawn = sum(bet["left"][1] for bet in bets if bet["stake"] == 0)
    _details(document)["batches"] = [*bets, *again]
    _details(document)["pairs_of_draws"] += drawn
    document["samples_used"] = [n + drawn for n in document["samples_used"]]
    return True


@_forgery("bets: a losing batch left out")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if not _has_bets(document) or bets[-1]["batch"] < 2:
        return False
    number = int(rng.integers(1, bets[-1]["batch"] + 1))
    _details(document)["batches"] = [bet for bet in bets if bet["batch"] != number]
    return True


@_forgery("bets: a batch left out and the others renumbered")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if not _has_bets(document) or bets[-1]["batch"] < 2:
        return False
    number = int(rng.integers(1, bets[-1]["batch"] + 1))
    kept = [bet for bet in bets if bet["batch"] != number]
    for bet in kept:
        bet["batch"] -= bet["batch"] > number
    _details(document)["batches"] = kept
    return True


@_forgery("bets: two batches made one")
def _(document: Document, rng: Generator) -> bool:
    bets = _bets(document)
    if not _has_bets(document) or bets[-1]["batch"] < 2:
        return False
    for bet in bets:
        bet["batch"] = max(bet["batch"] - 1, 1)
    return True


@_forgery("bets: hits added to the batches")
def _(document: Document, rng: Generator) -> bool:
    for bet in _bets(document):
        side = "right" if bet["flipped"] else "left"
        bet[side][0] = bet[side][1]
    return _has_bets(document)


@_forgery("bets: hits added to bets beside the witness")
def _(document: Document, rng: Generator) -> bool:
    is_changed = False
    for bet in _bets(document):
        side = "right" if bet["flipped"] else "left"
        if bet["stake"] and bet[side][0] < bet[side][1]:
            bet[side][0] = bet[side][1]
            is_changed = True
    return is_changed and _has_bets(document)


@_forgery("bets: different draws in one batch")
def _(document: Document, rng: Generator) -> bool:
    is_changed = False
    for bet in _bets(document):
        if bet["stake"]:
            bet["left"][1] += 5
            bet["right"][1] += 5
            is_changed = True
    return is_changed


@_forgery("bets: turned round")
def _(document: Document, rng: Generator) -> bool:
    for bet in _bets(document):
        bet["flipped"] = not bet["flipped"]
    return _has_bets(document)


@_forgery("bets: the pilot shortened")
def _(document: Document, rng: Generator) -> bool:
    if "pilot" not in _details(document):
        return False
    _details(document)["pilot"] -= 3
    return True


@_forgery("bets: fewer choices of events")
def _(document: Document, rng: Generator) -> bool:
    if (
        _details(document).get("choices_of_events", 1) < 2
        or document["witness"]["left_counts"][1] == 0
    ):
        return False
    _details(document)["choices_of_events"] = 1
    return True


@_forgery("bets: another reason to stop")
def _(document: Document, rng: Generator) -> bool:
    stopped = _details(document).get("stopped")
    if stopped is None:
        return False
    _details(document)["stopped"] = "samples" if stopped == "refuted" else "refuted"
    return True


@_forgery("bets: more wealth over time")
def _(document: Document, rng: Generator) -> bool:
    for point in _details(document).get("wealth", []):
        point[1] = min(2.0 * point[1] + 1.0, 1e300)
    return _has_bets(document)


@_forgery("bets: a larger bound over time")
def _(document: Document, rng: Generator) -> bool:
    points = _details(document).get("bound_over_time", [])
    if len(points) < 2 or not _has_bets(document):
        return False
    points[0][1] = points[-1][1] + 0.5
    return True


@_forgery("bets: the next rung of the ladder")
def _(document: Document, rng: Generator) -> bool:
    if not _has_bets(document) or document["claim"]["notion"] != "pure":
        return False
    bound = document["lower_bound"]
    _set_bound(
        document, (math.floor(bound * 40.0 + 1e-9) + 2.0) / 40.0 if bound < 1.9 else bound + 0.5
    )
    return True


@_forgery("bets: a bound between the rungs")
def _(document: Document, rng: Generator) -> bool:
    if not _has_bets(document):
        return False
    _set_bound(document, document["lower_bound"] * 1.003)
    return True


# Bands.


def _is_band(document: Document) -> bool:
    return "left_shares" in _details(document)


@_forgery("band: limits tightened")
def _(document: Document, rng: Generator) -> bool:
    if not _is_band(document):
        return False
    details = _details(document)
    place = int(rng.integers(len(details["p_lower"])))
    details["p_lower"][place] = 0.5 * (1.0 + details["p_lower"][place])
    return True


@_forgery("band: events left out")
def _(document: Document, rng: Generator) -> bool:
    if not _is_band(document):
        return False
    for name in ("left_hits", "right_hits", "left_shares", "p_lower", "q_upper"):
        del _details(document)[name][::2]
    return True


@_forgery("band: hits added")
def _(document: Document, rng: Generator) -> bool:
    if not _is_band(document):
        return False
    name = "right_hits" if document["witness"]["likelier_under"] == "right" else "left_hits"
    hits = _details(document)[name]
    place = int(rng.integers(len(hits)))
    hits[place] += 50
    return True


@_forgery("band: turned round")
def _(document: Document, rng: Generator) -> bool:
    if not _is_band(document):
        return False
    _details(document)["flipped"] = not _details(document)["flipped"]
    return True


@_forgery("band: another price for the sides")
def _(document: Document, rng: Generator) -> bool:
    if not _is_band(document):
        return False
    shares = _details(document)["left_shares"]
    _details(document)["left_shares"] = [1.0 - share for share in shares]
    return True


# Rényi bets and lines.


def _is_score_bet(document: Document) -> bool:
    return "divergence_lower" in _details(document) and "cells" in _details(document)


@_forgery("score: a larger divergence and bound")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document) or document["claim"]["notion"] == "pure":
        return False
    factor = float(rng.uniform(1.05, 2.0))
    if _details(document)["divergence_lower"] == 0.0:
        return False
    _details(document)["divergence_lower"] *= factor
    _set_bound(document, document["lower_bound"] * factor)
    return True


@_forgery("score: a smaller divergence and bound")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document) or document["claim"]["notion"] == "pure":
        return False
    if _details(document)["divergence_lower"] < 0.01:
        return False
    _details(document)["divergence_lower"] *= 0.7
    _set_bound(document, document["lower_bound"] * 0.7)
    return True


@_forgery("score: multiplied")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document) or document["lower_bound"] == 0.0:
        return False
    # A score that is half as large again may prove the same bound, from the same draws, as its best
    # multiple is flat: then nothing is forged. Ten times the score loses everything on some output.
    for witness in _witnesses(document):
        witness["event"]["scores"] = [10.0 * score for score in witness["event"]["scores"]]
    return True


@_forgery("score: more draws in the best cell")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document):
        return False
    side = document["witness"]["likelier_under"]
    cells = _details(document)["cells"][side]
    best = int(np.argmax(document["witness"]["event"]["scores"]))
    cells[best] += 50
    return True


@_forgery("score: draws moved between cells")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document):
        return False
    side = document["witness"]["likelier_under"]
    cells = _details(document)["cells"][side]
    scores = document["witness"]["event"]["scores"]
    best = int(np.argmax(scores))
    worst = int(np.argmin(scores))
    if best == worst or cells[worst] == 0:
        return False
    cells[best] += cells[worst]
    cells[worst] = 0
    return True


@_forgery("score: another order")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document):
        return False
    _details(document)["order"] += 1.0
    return True


@_forgery("score: a stake that can lose everything")
def _(document: Document, rng: Generator) -> bool:
    if not _is_score_bet(document) or document["lower_bound"] == 0.0:
        return False
    _details(document)["stake"] = 5.0
    return True


@_forgery("line: a higher one, with a larger bound")
def _(document: Document, rng: Generator) -> bool:
    line = _details(document).get("line")
    if line is None or document["lower_bound"] == 0.0:
        return False
    line[0] *= 1.5
    line[1] *= 1.2
    _set_bound(document, document["lower_bound"] * 1.2 + 0.02)
    return True


@_forgery("line: below 0")
def _(document: Document, rng: Generator) -> bool:
    line = _details(document).get("line")
    if line is None or document["lower_bound"] == 0.0:
        return False
    line[1] = -0.2
    return True


@_forgery("line: another order of the counts")
def _(document: Document, rng: Generator) -> bool:
    details = _details(document)
    if "variance" not in details:
        return False
    if rng.random() < 0.5:
        details["variance"] = "rare"
    else:
        del details["variance"]
    return True


@_forgery("line: two separate bounds instead of it")
def _(document: Document, rng: Generator) -> bool:
    details = _details(document)
    if document["lower_bound"] == 0.0 or details.pop("line", None) is None:
        return False
    details["left_share"] = 0.5
    return True


# Figures that are none.


@_forgery("figures: not a number, infinite, text, true")
def _(document: Document, rng: Generator) -> bool:
    values: list[Any] = [math.nan, math.inf, "1.5", True, None, [], 10**400]
    value = values[int(rng.integers(len(values)))]
    places = [
        (document, "confidence"),
        (document, "lower_bound"),
        (_first(document), "lower_bound"),
        (_first(document), "confidence"),
    ]
    if document["witness"] is not None:
        places.append((_first(document)["witness"], "left_counts"))
    place = places[int(rng.integers(len(places)))]
    place[0][place[1]] = value
    return True


@_forgery("schema of another version")
def _(document: Document, rng: Generator) -> bool:
    document["schema_version"] = 2
    return True


# What no file can betray.


@_unknowable("another event")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or "chosen" not in document["witness"]["event"]:
        return False
    for witness in _witnesses(document):
        witness["event"]["chosen"] = [0]
    return True


@_unknowable("another pair of inputs")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document):
        return False
    for witness in _witnesses(document):
        witness["pair"] = {"left": [1, 2, 3], "right": [1, 2]}
    return True


@_unknowable("another mechanism, seed, date and environment")
def _(document: Document, rng: Generator) -> bool:
    document["settings"]["mechanism"] = "somebody else's"
    document["settings"]["seed"] = 12345
    document["date"] = "1999-12-31T23:59:59+00:00"
    document["environment"] = {}
    document["identity"] = {}
    return _is_exact(document)


@_unknowable("checks that were switched off, hidden")
def _(document: Document, rng: Generator) -> bool:
    for name in ("suppress", "on_error", "failed", "retried", "distance", "features", "recording"):
        document["settings"].pop(name, None)
    return _is_exact(document)


@_unknowable("reports of untrusted draws, hidden")
def _(document: Document, rng: Generator) -> bool:
    if document["verdict"] != "inconclusive" or not _is_exact(document):
        return False
    document["health"] = []
    document["verdict"] = (
        "refuted" if document["lower_bound"] > _claimed(document) else "not refuted"
    )
    return True


@_unknowable("a smaller claim")
def _(document: Document, rng: Generator) -> bool:
    if document["claim"]["notion"] != "pure" or document["verdict"] != "refuted":
        return False
    if not _is_exact(document) or _claimed(document) == 0.0 or "batches" in _details(document):
        return False
    for claim in (document["claim"], *(finding["claim"] for finding in document["findings"])):
        claim["epsilon"] *= 0.5
    return True


@_unknowable("guesses in hindsight")
def _(document: Document, rng: Generator) -> bool:
    """The guess of the first batch of a bet, as it was seen in that batch."""
    bets = _bets(document)
    if not _has_bets(document) or bets[0]["left"][1] < 2 or len(bets) < 2:
        return False
    bets[0]["p1"] = min(bets[0]["p1"] * 1.0000001, 1.0)
    return True


@_unknowable("refutation of a curve hidden behind a low bound")
def _(document: Document, rng: Generator) -> bool:
    """Another line, chosen beforehand, may have proved as little."""
    is_of_event = _first(document)["method"] == "events" and len(document["findings"]) == 1
    is_curve = document["claim"]["notion"] in ("gaussian", "renyi", "zcdp", "tradeoff")
    is_hidden = (
        _is_exact(document) and is_of_event and is_curve and "finder" not in document["settings"]
    )
    if document["verdict"] != "refuted" or not is_hidden:
        return False
    _set_bound(document, 0.0)
    document["verdict"] = "not refuted"
    document["p_value"] = 1.0
    return True


@_unknowable("more draws used than there were")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or "batches" in _details(document):
        return False
    document["samples_used"] = [n + 1000 for n in document["samples_used"]]
    document["settings"]["samples"] = document["settings"].get("samples", 0) + 1000
    return True


@_unknowable("a bound raised by a thousandth")
def _(document: Document, rng: Generator) -> bool:
    if not _is_exact(document) or document["lower_bound"] == 0.0 or "batches" in _details(document):
        return False
    _set_bound(document, document["lower_bound"] * 1.001)
    return document["claim"]["notion"] == "pure" and not _is_band(document)
