"""Writes what the documentation takes from the code and from measurements, so that it cannot be out of date.

A page has places like

    <!-- generated: extras -->
    …
    <!-- /generated -->

whose content is made here: from the command line's own help, from the tables of the code, and from `figures.json`,
which holds every measured figure with the settings that give it. The picture of the README and the sentence below it
are what `epsilometer demo` prints.

    python docs/generate.py                     fill the pages, draw the picture (make figures)
    python docs/generate.py --measure svt5      measure some figures anew, or all; then fill the pages
    python docs/generate.py --take RESULTS …    take over what `epsilometer reproduce … --out` wrote (results.json)
    python docs/generate.py --check             change nothing, and end with status 1 if a page is out of date
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import typer

import epsilometer as em
from epsilometer.report.formatting import figure_down, figure_up

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
FIGURES = DOCS / "figures.json"
_PLACE = re.compile(r"(<!-- generated: ([\w/-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
_WIDTH = 96


# --- What is measured -------------------------------------------------------------------------------------------------


def demo() -> dict[str, Any]:
    """What the README says below its picture."""
    _, results = _picture().show()
    correct, broken = results["zoo:laplace"], results["zoo:dp_mean"]
    return {
        "command": "epsilometer demo",
        "lower_bound": [correct.lower_bound, broken.lower_bound],
        "detectable": correct.detectable,
    }


def svt5() -> dict[str, Any]:
    """The first audit of the tutorial."""
    result = em.audit(
        em.zoo.svt5(), em.zoo.svt5().worst_pair, em.PureDP(1.0), samples=100_000, seed=0
    )
    command = "epsilometer audit zoo:svt5 --epsilon 1 --seed 0"
    return {"command": command, "lower_bound": result.lower_bound, "p_value": result.p_value}


def confidence() -> dict[str, Any]:
    """What a higher confidence costs."""
    asked = (0.95, 0.999, 0.99995)
    found = [
        em.measure(em.zoo.laplace(), samples=50_000, seed=0, confidence=each).lower_bound
        for each in asked
    ]
    return {"confidence": list(asked), "lower_bound": found}


def renyi_coverage() -> dict[str, Any]:
    """How often a floored bound with a nominal 95 % holds, with the default floor."""
    import numpy as np

    n, runs, orders = 100_000, 200, (2.0, 5.0, 7.0)
    cases = {
        "laplace": (em.zoo.laplace(), lambda x, rng: x + rng.laplace(size=n)),
        "randomized_response": (
            em.zoo.randomized_response(),
            lambda x, rng: (rng.random(n) < 1 / (1 + np.e)) != x,
        ),
    }
    shares: dict[str, list[float]] = {}
    for name, (entry, draw) in cases.items():
        truths = [entry.truth(em.RenyiDP, order=order) for order in orders]
        held = np.zeros(len(orders))
        for rng in np.random.default_rng(1).spawn(runs):
            left, right = draw(0, rng), draw(1, rng)
            bounds = [
                em.renyi.lower_bound(left, right, order, confidence=0.95).lower_bound
                for order in orders
            ]
            held += np.array(bounds) <= truths
        shares[name] = (held / runs).tolist()
    return {"samples": n, "runs": runs, "orders": list(orders), "shares": shares}


def renyi_floor() -> dict[str, Any]:
    """How often a floored bound of ten people's answers holds: with the paper's floor at a tenth of its n, by default."""
    from itertools import product

    import numpy as np

    from epsilometer.methods.published.renyi.bound import bound_from
    from epsilometer.methods.published.renyi.densities import Densities

    n, runs, orders = 500_000, 400, (2.0, 5.0, 7.0)
    entry = em.zoo.randomized_responses(epsilon=1.5)
    lie = 1 / (1 + np.exp(1.5))
    vectors = np.array(list(product((0, 1), repeat=10)))
    laws = [np.where(vectors == [person] + [0] * 9, 1 - lie, lie).prod(axis=1) for person in (1, 0)]
    rng = np.random.default_rng(1)
    samples = [[rng.multinomial(n, law) for law in laws] for _ in range(runs)]
    found: dict[str, Any] = {}
    for name, floor in (("1e-5", 1e-5), ("default", None)):
        bounds = np.array(
            [
                [
                    bound_from(Densities.of_counts(*counts), order, 0.05, floor, None).lower_bound
                    for order in orders
                ]
                for counts in samples
            ]
        )
        truths = np.array([entry.truth(em.RenyiDP, order=order) for order in orders])
        found[name] = {
            "held": (bounds <= truths).mean(axis=0).tolist(),
            "tightness": (bounds / truths).mean(axis=0).tolist(),
        }
    return {"samples": n, "runs": runs, "orders": list(orders), "floors": found}


def reproduced(name: str, *arguments: str) -> dict[str, Any]:
    """The figures of `epsilometer reproduce NAME`, with the command that gives them."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "epsilometer", "reproduce", name, *arguments, "--out", folder]
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
    return as_figures(found, " ".join(["epsilometer reproduce", name, *arguments]))


def as_figures(found: dict[str, Any], command: str) -> dict[str, Any]:
    """What is kept of the content of `results.json`."""
    rows = [{key: row[key] for key in ("case", "quantity", "measured")} for row in found["rows"]]
    return {"command": command, "rows": rows}


def ldp_bias() -> dict[str, Any]:
    """The table of `epsilometer reproduce ldp/bias`."""
    return reproduced("ldp/bias")


def ldp_exact() -> dict[str, Any]:
    """Coverage and length of exact intervals; some minutes."""
    return reproduced("ldp/exact")


def ldp_practice() -> dict[str, Any]:
    """Shares of estimates within γ at parts of the planned n, with union bounds and as published; some minutes."""
    return {
        "with union bounds": reproduced("ldp/laplace", *_LDP_PRACTICE),
        "as published": reproduced("ldp/laplace", *_LDP_PRACTICE, *_AS_PUBLISHED),
    }


def ldp_renyi_practice() -> dict[str, Any]:
    """The same of the Rényi divergence of order 2."""
    return reproduced("ldp/renyi", *_LDP_RENYI_PRACTICE)


def local_side_by_side() -> dict[str, Any]:
    """The methods local and events on the same draws."""
    return reproduced("local/side_by_side", *_SIDE_BY_SIDE)


def renyi_exact() -> dict[str, Any]:
    """Means of exact Rényi bounds; some minutes."""
    return reproduced("renyi/exact")


def local_figure5() -> dict[str, Any]:
    """Figure 5 of the local approach."""
    return reproduced("local/figure5")


def local_figure6() -> dict[str, Any]:
    """Figure 6 of the local approach."""
    return reproduced("local/figure6", *_FIGURE_6)


def local_mixed() -> dict[str, Any]:
    """Bounds on mixed distributions; some minutes."""
    return reproduced("local/mixed", *_MIXED)


def local_undersmoothing() -> dict[str, Any]:
    """The Laplace mechanism with the default bandwidths, and with those of the conditions (C3) and (C4)."""
    return {
        "default": reproduced("local/figure4", *_FIGURE_4),
        "conditions": reproduced("local/figure4", *_FIGURE_4, *_CONDITIONS),
    }


_LDP_PRACTICE = ("--set", "epsilon=.2,.52,1")
_AS_PUBLISHED = ("--set", "published=1")
_LDP_RENYI_PRACTICE = ("--set", "epsilon=.2,.5")
_SIDE_BY_SIDE = ("--runs", "10")
_FIGURE_6 = ("--runs", "200", "--set", "sizes=5000,20000")
_MIXED = ("--runs", "40")
_FIGURE_4 = ("--runs", "60", "--set", "algorithms=a")
_CONDITIONS = ("--set", "search_undersmoothing=0.1334", "--set", "undersmoothing=0.15")


def sizes() -> dict[str, Any]:
    """Exact sizes of the joint test of one event."""
    found = _benchmark_sizes()
    return {"draws": found.EXACT_DRAWS, "sizes": found.exact_sizes()}


def sizes_simulated() -> dict[str, Any]:
    """Sizes of whole audits, from runs at the boundary of each claim; takes some minutes."""
    found = _benchmark_sizes()
    about = {
        "draws": found.SIMULATED_DRAWS,
        "runs": found.RUNS,
        "failure_probability": found.SIMULATED_FAILURE,
    }
    return {**about, "sizes": found.simulated_sizes()}


def _benchmark_sizes() -> Any:
    return _import_from_checkout("benchmarks.sizes")


def _picture() -> Any:
    return _import_from_checkout("docs.images.demo_picture")


def _import_from_checkout(name: str) -> Any:
    from importlib import import_module

    if str(DOCS.parent) not in sys.path:
        sys.path.insert(0, str(DOCS.parent))
    return import_module(name)


MEASURED: dict[str, Callable[[], dict[str, Any]]] = {
    "demo": demo,
    "svt5": svt5,
    "confidence": confidence,
    "renyi-coverage": renyi_coverage,
    "renyi-exact": renyi_exact,
    "renyi-floor": renyi_floor,
    "ldp-bias": ldp_bias,
    "ldp-exact": ldp_exact,
    "ldp-practice": ldp_practice,
    "ldp-renyi-practice": ldp_renyi_practice,
    "local-figure5": local_figure5,
    "local-figure6": local_figure6,
    "local-mixed": local_mixed,
    "local-side-by-side": local_side_by_side,
    "local-undersmoothing": local_undersmoothing,
    "sizes": sizes,
    "sizes-simulated": sizes_simulated,
}


# --- What experiments wrote -------------------------------------------------------------------------------------------

# Of each row of an experiment, what pages need.
_TAKEN = ("case", "quantity", "expected", "measured", "standard_error", "runs")


def take(figures: dict[str, Any], paths: list[Path]) -> None:
    """Takes over the figures of experiments, or of all of them (agreement.json).

    Rows of the same case and quantity replace those of before.
    """
    stored = figures.setdefault("reproduced", {})
    for path in paths:
        if path.name == "agreement.json":
            lines = json.loads(path.read_text(encoding="utf-8"))
            figures["agreement"] = {
                "command": "epsilometer reproduce --all --quick",
                "lines": lines,
            }
            continue
        results = json.loads(path.read_text(encoding="utf-8"))
        rows = {
            (row["case"], row["quantity"]): row
            for row in stored.get(results["experiment"], {"rows": []})["rows"]
        }
        for row in results["rows"]:
            rows[row["case"], row["quantity"]] = {key: row.get(key) for key in _TAKEN}
        commands = stored.get(results["experiment"], {"commands": []})["commands"]
        stored[results["experiment"]] = {
            "commands": list(dict.fromkeys([*commands, _command_of(results)])),
            "rows": list(rows.values()),
        }


def _command_of(results: dict[str, Any]) -> str:
    """The command that gives these figures, with what was not left at its default."""
    from epsilometer_experiments.options import read_options
    from epsilometer_experiments.registry import find

    experiment = find(results["experiment"])
    settings = results["settings"]
    defaults = read_options(experiment.name, experiment.options, {})
    words = [f"epsilometer reproduce {experiment.name}"]
    if settings["runs"] != experiment.runs:
        words.append(f"--runs {settings['runs']}")
    if settings["seed"]:
        words.append(f"--seed {settings['seed']}")
    for name, value in settings["options"].items():
        default = defaults[name]
        if value != (list(default) if isinstance(default, tuple) else default):
            shown = ",".join(map(str, value)) if isinstance(value, list) else value
            words.append(f"--set {name}={shown}")
    return " ".join(words)


def _reproduced(figures: dict[str, Any], experiment: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = figures["reproduced"][f"auditorium/{experiment}"]["rows"]
    return {(row["case"], row["quantity"]): row for row in rows}


# --- What is made of it -----------------------------------------------------------------------------------------------


def _demo_text(figures: dict[str, Any]) -> str:
    _, broken = figures["demo"]["lower_bound"]
    return (
        "The first mechanism keeps its promise of ε = 1. No audit can prove that; this one would have noticed, nine times\n"
        f"in ten, if its usual outputs revealed a true ε of {figure_up(figures['demo']['detectable'], 3)} or more. The second has half the noise"
        f" that it needs: its ε is at least {figure_down(broken)}.\n"
    )


def _svt5_text(figures: dict[str, Any]) -> str:
    bound, p_value = figures["svt5"]["lower_bound"], figures["svt5"]["p_value"]
    return (
        "```text\nREFUTED: zoo:svt5 violates ε-differential privacy with ε = 1.\n\n"
        f"    bound          ε is at least {figure_down(bound)}, but the claim allows only 1.\n"
        f"    confidence     95%, p-value {figure_up(p_value, 2)}. The guarantee is exact: …\n\n"
        "  Counterexample\n    left input     …\n    event          …\n```\n"
    )


def _confidence_text(figures: dict[str, Any]) -> str:
    found = figures["confidence"]
    pairs = zip(found["confidence"], found["lower_bound"], strict=True)
    rows = [f"| {each:g} | {figure_down(bound)} |" for each, bound in pairs]
    return "\n".join(["| confidence | ε is at least |", "|---|---|", *rows, ""])


def _coverage_text(figures: dict[str, Any]) -> str:
    found = figures["renyi-coverage"]
    head = (
        "| of "
        f"{found['runs']} runs | "
        + " | ".join(f"order {each:g}" for each in found["orders"])
        + " |"
    )
    names = {"laplace": "Laplace, ε = 1", "randomized_response": "randomized response, ε = 1"}
    rows = [
        f"| {names[name]} | {' | '.join(f'{each:.3g}' for each in row)} |"
        for name, row in found["shares"].items()
    ]
    return "\n".join([head, "|" + "---|" * (1 + len(found["orders"])), *rows, ""])


def _floor_text(figures: dict[str, Any]) -> str:
    found = figures["renyi-floor"]
    head = f"| of {found['runs']} runs | " + " | ".join(
        f"order {each:g}" for each in found["orders"]
    )
    names = {"1e-5": "τ = 10⁻⁵, n·τ = 5", "default": "τ = 50/n, the default"}
    rows = []
    for name, row in found["floors"].items():
        cells = [
            f"{held:.3g} ({tight:.3f})"
            for held, tight in zip(row["held"], row["tightness"], strict=True)
        ]
        rows.append(f"| {names[name]} | {' | '.join(cells)} |")
    return "\n".join([f"{head} |", "|" + "---|" * (1 + len(found["orders"])), *rows, ""])


def _by_case(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    cases: dict[str, dict[str, float]] = {}
    for row in found["rows"]:
        cases.setdefault(row["case"], {})[row["quantity"]] = row["measured"]
    return cases


def _table(found: dict[str, Any], title: str, columns: dict[str, str]) -> str:
    """A line per case, a column per quantity; a quantity that a case does not have stays empty.

    Args:
        found: as `reproduced` returns it.
        title: of the first column.
        columns: the quantities, with the format of each.
    """
    rows = [
        f"| {case} | "
        + " | ".join(
            format(cells[name], form) if name in cells else "" for name, form in columns.items()
        )
        + " |"
        for case, cells in _by_case(found).items()
    ]
    return "\n".join(
        [f"| {title} | {' | '.join(columns)} |", "|" + "---|" * (1 + len(columns)), *rows, ""]
    )


def _bias_text(figures: dict[str, Any]) -> str:
    found = figures["ldp-bias"]
    names = dict.fromkeys(row["quantity"] for row in found["rows"])
    return _table(found, "distribution, cells", dict.fromkeys(names, ".3f"))


def _exact_text(figures: dict[str, Any]) -> str:
    columns = {
        "truth": ".3f",
        "cells": ".0f",
        "holds the truth": ".4g",
        "lower end": ".3f",
        "upper end": ".3f",
        "half of its length": ".3f",
        "draws planned for ± that half": ".2g",
    }
    return _table(figures["ldp-exact"], "distribution, n", columns)


# "epsilon=0.2 n/100=216": the level, the part of the planned n, and that many draws.
_PART_OF_PLAN = re.compile(r"epsilon=(\S+) .*n/(\S+)=(\d+)$")
# Parts of the planned n that the page shows, without those at which all estimates are within γ.
_PARTS = (1, 100, 200, 300, 400, 600, 1000)
_RENYI_PARTS = (1e3, 1e4, 3e4, 1e5, 3e5, 1e6)


def _practice_table(found: dict[str, Any], parts: tuple[float, ...]) -> str:
    """A line per level: the planned n, and the share of estimates within γ at parts of it."""
    shares: dict[str, dict[float, float]] = {}
    planned: dict[str, tuple[float, float]] = {}
    for row in found["rows"]:
        case = _PART_OF_PLAN.match(row["case"])
        assert case is not None
        level, part, n = case[1], float(case[2]), int(case[3])
        # The smallest part that was run says most exactly what the planned n is.
        planned[level] = min(planned.get(level, (math.inf, math.inf)), (part, part * n))
        if row["quantity"] == "share within γ":
            shares.setdefault(level, {})[part] = row["measured"]
    lines = [
        f"| ε | planned n | {' | '.join('n' if part == 1 else f'n/{part:,.0f}' for part in parts)} |",
        "|" + "---|" * (2 + len(parts)),
    ]
    for level, of_parts in shares.items():
        cells = [f"{of_parts[part]:.3g}" if part in of_parts else "" for part in parts]
        part, n = planned[level]
        # Without the planned n itself, a rounded part of it tells two digits.
        shown = f"{n:,.0f}" if part == 1 else f"{n:.2g}"
        lines.append(f"| {level} | {shown} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _practice_text(figures: dict[str, Any]) -> str:
    found = figures["ldp-practice"]
    return "\n".join(
        f"n {name} (`{found[name]['command']}`):\n\n{_practice_table(found[name], _PARTS)}"
        for name in ("as published", "with union bounds")
    )


def _renyi_practice_text(figures: dict[str, Any]) -> str:
    return _practice_table(figures["ldp-renyi-practice"], _RENYI_PARTS)


def _side_by_side_text(figures: dict[str, Any]) -> str:
    from epsilometer_experiments.registry import find

    cases = find("local/side_by_side").cases({"samples": 100_000})
    truths = {case.name: case.parameters["truth"] for case in cases}
    lines = ["| mechanism | truth | `events`, exact | `local`, asymptotic |", "|---|---|---|---|"]
    for case, measured in _by_case(figures["local-side-by-side"]).items():
        truth = "∞" if math.isinf(truths[case]) else f"{truths[case]:.3f}"
        lines.append(f"| {case} | {truth} | {measured['events']:.3f} | {measured['local']:.3f} |")
    return "\n".join([*lines, ""])


def _renyi_exact_text(figures: dict[str, Any]) -> str:
    """Means of bounds with the truth of each entry of the zoo."""
    from epsilometer_experiments.self.measuring import entry_of

    lines = [
        "| entry of the zoo | order | draws per side | truth | mean bound |",
        "|---|---|---|---|---|",
    ]
    for case, measured in _by_case(figures["renyi-exact"]).items():
        spec, *settings = case.split()
        order, samples = (setting.partition("=")[2] for setting in settings)
        truth = entry_of(spec).truth(em.RenyiDP, order=float(order))
        lines.append(
            f"| `{spec}` | {order} | {int(samples):,} | {truth:.3f} | {measured['mean certified bound']:.3f} |"
        )
    return "\n".join([*lines, ""])


def _figure5_text(figures: dict[str, Any]) -> str:
    columns = {"lower bound": ".3f", "estimate": ".3f", "estimate of step 1": ".3f"}
    return _table(figures["local-figure5"], "dataset (global ε = 1.5)", columns)


def _figure6_text(figures: dict[str, Any]) -> str:
    columns = {
        "mean squared error": ".4f",
        "mean squared error, arg max by Brent's method": ".4f",
    }
    return _table(figures["local-figure6"], "algorithm, ε = 1.5", columns)


def _mixed_text(figures: dict[str, Any]) -> str:
    columns = {
        "lower bound": ".3f",
        "lower bound / truth": ".3f",
        "covers the truth": ".3g",
        "bound of events": ".3f",
        "Rényi bound / truth, order 2": ".3f",
        "Rényi bound holds, order 2": ".3g",
    }
    return _table(figures["local-mixed"], "mechanism", columns)


def _undersmoothing_text(figures: dict[str, Any]) -> str:
    found = figures["local-undersmoothing"]
    names = {"default": "defaults", "conditions": "step 1: 2/15, step 2: .15"}
    levels = [case.partition("ε0=")[2] for case in _by_case(found["default"])]
    rows = []
    for name, words in names.items():
        cells = [
            f"{case['lower bound / truth']:.3f} ({case['covers the truth']:.3g})"
            for case in _by_case(found[name]).values()
        ]
        rows.append(f"| {words} | {' | '.join(cells)} |")
    head = "| undersmoothing | " + " | ".join(f"ε = {level}" for level in levels) + " |"
    return "\n".join([head, "|" + "---|" * (1 + len(levels)), *rows, ""])


def _sizes_text(figures: dict[str, Any]) -> str:
    """One row per notion, one column per failure probability or way in."""
    rows: dict[str, dict[str, float]] = figures["sizes"]["sizes"]
    columns = list(next(iter(rows.values())))
    head = [
        f"| notion | {' | '.join(f'of {each}' for each in columns)} |",
        "|" + "---|" * (1 + len(columns)),
    ]
    lines = [
        f"| {name} | {' | '.join(f'{row[each]:.3f}' for each in columns)} |"
        for name, row in rows.items()
    ]
    return "\n".join([*head, *lines, ""])


def _sizes_simulated_text(figures: dict[str, Any]) -> str:
    rows: dict[str, dict[str, float]] = figures["sizes-simulated"]["sizes"]
    columns = sorted({name for row in rows.values() for name in row})
    head = [f"| notion | {' | '.join(columns)} |", "|" + "---|" * (1 + len(columns))]
    lines = []
    for name, row in rows.items():
        cells = [f"{row[each]:.2f}" if each in row else "" for each in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*head, *lines, ""])


def _soundness_text(figures: dict[str, Any]) -> str:
    """Written by `make sound ARGS=--document`."""
    found = figures["soundness"]
    return "\n".join([f"`{found['command']}`: {found['markdown'][0]}", *found["markdown"][1:]])


def _extras(_: dict[str, Any]) -> str:
    from epsilometer.cli.listing import EXTRAS
    from epsilometer.errors import install_command

    rows = [
        f"| `{extra}` | `{install_command(extra, packages[0])}` | {purpose} |"
        for extra, (packages, purpose) in EXTRAS.items()
    ]
    return "\n".join(["| extra | install it with | for |", "|---|---|---|", *rows, ""])


def _cli(_: dict[str, Any]) -> str:
    from epsilometer.cli.application import make_app

    group = typer.main.get_command(make_app())
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    pages = [f"```text\n{_help(group, 'epsilometer')}\n```\n"]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        pages.append(f"## {name}\n\n```text\n{_help(command, f'epsilometer {name}')}\n```\n")
    return "\n" + "\n".join(pages)


def _help(command: Any, path: str) -> str:
    context = command.make_context(
        path, [], resilient_parsing=True, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines()).strip()


# Keys that are no options of `epsilometer audit`, or read differently in a file.
_OWN_KEYS = {
    "mechanism": "What to run, as on the command line: `package.module:function`, `file.py:function`, `zoo:NAME`, …",
    "pairs": "Several pairs, `[[left, right], …]`: the audit finds out which one tells more.",
    "finder": "A table that describes a search: `name`, `domain`, `relation`, `trials`, `samples`, `seed`.",
    "options": "A table of options of the method; `epsilometer methods` lists their names.",
    "left": "One input. A text that begins with `@` names a file beside this one; `@@` stands for a single `@`.",
    "right": "Its neighbour.",
    "params": "Further parameters of a function, by name: `[params]`, then `epsilon = 1`.",
    "http": (
        "How a service is asked: `method`, `timeout` (seconds), `body` (a template with `{dataset}`, and `{n}` of a batch), "
        '`answer` (a path such as `result.values.0`), and the table `headers`; a header `"env:VAR"` takes the value of a '
        "variable. Results keep no header."
    ),
}
_KINDS = {
    "samples": 'number, or text like `"100k"`',
    "trial_samples": 'number, or text like `"100k"`',
    "suppress": "list of texts",
    "left": "any",
    "right": "any",
    "domain": "text or table",
}


def _toml(_: dict[str, Any]) -> str:
    from epsilometer.cli.application import make_app
    from epsilometer.cli.settings_file import _TYPES, KEYS

    audit = typer.main.get_command(make_app()).commands["audit"]  # type: ignore[attr-defined]
    helps = {each.name: each.help for each in audit.params if getattr(each, "help", None)}
    rows = []
    for key in KEYS:
        types = {
            str: "text",
            bool: "true or false",
            int: "whole number",
            dict: "table",
            list: "list",
        }
        kind = _KINDS.get(key) or types.get(_TYPES.get(key), "number")  # type: ignore[arg-type]
        rows.append(
            f"| `{key}` | {kind} | {_OWN_KEYS.get(key) or helps[key].replace('|', chr(92) + '|')} |"
        )
    return "\n".join(["| key | value | meaning |", "|---|---|---|", *rows, ""])


_MECHANISMS = (
    *("NonDPLaplace1", "NonDPLaplace2", "NonDPGaussian1", "NonDPGaussian2"),
    *("SVT3", "SVT4", "SVT5", "SVT6"),
)
_PUBLISHED = {
    "histogram": "poisson-histogram/published",
    "hockey-stick": "hockey-stick/published",
    "Rényi": "renyi-variational/published",
    "MMD": "mmd/published",
}
_SIZES = (50_000, 100_000, 500_000)


def table1_sizes(figures: dict[str, Any]) -> list[int]:
    """Those of the paper's numbers of draws that were run."""
    cases = {case for case, _ in _reproduced(figures, "table1")}
    return [
        samples
        for samples in _SIZES
        if all(f"{name} ε=1 n={samples}" in cases for name in _MECHANISMS)
    ]


def table1_cells(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The published columns of Table 1 that the paper has a number for, with the size of each."""
    rows = _reproduced(figures, "table1")
    return [
        {**row, "samples": samples}
        for samples in table1_sizes(figures)
        for name in _MECHANISMS
        for epsilon in ("0.01", "1")
        for column in _PUBLISHED.values()
        for row in [rows.get((f"{name} ε={epsilon} n={samples}", f"detected by {column}"))]
        if row is not None
    ]


def detections_apart(row: dict[str, Any]) -> int:
    """By how many of ten detections a measured share and the paper's differ."""
    return round(10 * abs(row["measured"] - row["expected"]))


def _table1_text(figures: dict[str, Any]) -> str:
    """Detections at all three sizes, the paper's and ours, and how many agree."""
    rows = _reproduced(figures, "table1")
    lines = [
        f"| mechanism | ε | {' | '.join(_PUBLISHED)} |",
        "|" + "---|" * (2 + len(_PUBLISHED)),
    ]
    for name in _MECHANISMS:
        for epsilon in ("0.01", "1"):
            cells = []
            for column in _PUBLISHED.values():
                found = [
                    rows.get((f"{name} ε={epsilon} n={samples}", f"detected by {column}"))
                    for samples in table1_sizes(figures)
                ]
                compared = [row for row in found if row is not None]
                theirs, ours = (
                    "/".join(f"{10 * row[rate]:.0f}" for row in compared)
                    for rate in ("expected", "measured")
                )
                cells.append(f"{theirs} → {ours}" if compared else "–")
            lines.append(f"| {name} | {epsilon} | {' | '.join(cells)} |")
    near = [
        (samples, [row for row in table1_cells(figures) if row["samples"] == samples])
        for samples in table1_sizes(figures)
    ]
    counted = "; ".join(
        f"at n = {samples:,} ({cells[0]['runs']} runs) {sum(detections_apart(row) <= 3 for row in cells)} of {len(cells)} "
        f"within three of ten detections, {sum(detections_apart(row) == 0 for row in cells)} the same number"
        for samples, cells in near
    )
    found = "; ".join(
        f"{_found_by_some(cells, 'expected')} and {_found_by_some(cells, 'measured')} at n = {samples:,}"
        for samples, cells in near
    )
    return "\n".join(
        [
            *lines,
            "",
            f"Of the paper's numbers: {counted}.",
            "",
            f"Of these {2 * len(_MECHANISMS)} mechanisms and levels, found by some tester in most runs, in the paper and here: {found}.",
            "",
        ]
    )


def _found_by_some(cells: list[dict[str, Any]], rate: str) -> int:
    """How many mechanisms and levels at least one of the testers detects in more than half of the runs."""
    return len({cell["case"] for cell in cells if cell[rate] > 0.5})  # noqa: PLR2004  # most runs


def _table2_text(figures: dict[str, Any]) -> str:
    """Mean trials of the published testers, the paper's and ours."""
    rows = _reproduced(figures, "table2")
    lines = [
        f"| mechanism | finder | {' | '.join(_PUBLISHED)} |",
        "|" + "---|" * (2 + len(_PUBLISHED)),
    ]
    for name in _MECHANISMS[:4]:
        for finder in ("Bayesian", "Random", "Grid"):
            found = [
                rows[f"{name} {finder}", f"trials with {column}, 2/3"]
                for column in _PUBLISHED.values()
            ]
            cells = [f"{row['expected']:.1f} → {row['measured']:.1f}" for row in found]
            lines.append(f"| {name} | {finder} | {' | '.join(cells)} |")
    compared = table2_cells(figures)
    near = sum(abs(row["measured"] - row["expected"]) <= _NEAR_TRIALS for row in compared)
    counted = f"{near} of {len(compared)} numbers are within {_NEAR_TRIALS} trials of the paper's"
    return "\n".join(
        [*lines, "", f"{max(row['runs'] for row in compared)} runs each: {counted}.", ""]
    )


_NEAR_TRIALS = 10


def table2_cells(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The published columns of Table 2."""
    return [
        row
        for (_, quantity), row in _reproduced(figures, "table2").items()
        if "/published" in quantity
    ]


def _figure2_text(figures: dict[str, Any]) -> str:
    rows = _reproduced(figures, "figure2")
    lines = [
        "| s | true divergence | RényiTester: estimate | caught | `renyi-variational`: bound | caught | `auto`: bound | caught |",
        "|" + "---|" * 8,
    ]
    for step in range(3, 11):
        case = f"s={step / 10:g}"
        cells = [f"{rows[case, 'bound by auto']['expected']:.3g}"]
        for quantity, method in (
            ("estimate", "renyi-variational/published"),
            ("bound", "renyi-variational"),
            ("bound", "auto"),
        ):
            cells.append(f"{rows[case, f'{quantity} by {method}']['measured']:.3g}")
            cells.append(f"{10 * rows[case, f'caught by {method}']['measured']:.0f} of 10")
        lines.append(f"| {step / 10:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _figure3_text(figures: dict[str, Any]) -> str:
    rows = _reproduced(figures, "figure3")
    cases = list(dict.fromkeys(case for case, _ in rows))
    quantities = {
        "certified": "certified hockey-stick divergence",
        "the tester's estimate": "estimate by hockey-stick/published",
        "trials of `auto`": "trials of the Bayesian finder",
        "trials of the tester": "trials of the Bayesian finder with hockey-stick/published",
    }
    lines = [f"| | truth | {' | '.join(quantities)} |", "|" + "---|" * (2 + len(quantities))]
    for case in cases:
        found = [rows[case, quantity] for quantity in quantities.values()]
        cells = [f"{row['measured']:.3g} ± {row['standard_error'] or 0.0:.1g}" for row in found]
        lines.append(f"| {case} | {found[0]['expected']:.3g} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{found[0]['runs']} runs each.", ""])


def _hockey_stick_coverage_text(figures: dict[str, Any]) -> str:
    """One row per confidence and ε, with the range over the sizes."""
    lines = [
        "| confidence | ε | allowed | above the truth, over twelve sizes |",
        "|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in figures["reproduced"]["auditorium/hockey-stick-coverage"]["rows"]:
        _, epsilon, confidence = row["case"].split()
        groups.setdefault((confidence, epsilon.removeprefix("ε=")), []).append(row)
    for (confidence, epsilon), rows in sorted(groups.items()):
        shares = [row["measured"] for row in rows]
        lines.append(
            f"| {confidence} | {epsilon} | {rows[0]['expected']:.3g} | {min(shares):.3g} to {max(shares):.3g} |"
        )
    return "\n".join([*lines, "", f"{rows[0]['runs']} audits for each size, ε and confidence.", ""])


def _agreement_text(figures: dict[str, Any]) -> str:
    """As `epsilometer reproduce --all` writes it."""
    from epsilometer_experiments.agreement import Agreement, Difference, as_markdown

    lines = [
        Agreement(
            experiment=line["experiment"],
            size=line["size"],
            agreed=line["agreed"],
            differences=tuple(Difference(**difference) for difference in line["differs"]),
            unjudged=line["unjudged"],
            seconds=line["seconds"],
            error=line["error"],
        )
        for line in figures["agreement"]["lines"]
    ]
    return f"`{figures['agreement']['command']}`: {as_markdown(lines)}"


def _paper_items(_: dict[str, Any]) -> str:
    """Made from the markers of the tests."""
    made = _import_from_checkout("docs.paper_items").table()
    assert isinstance(made, str)
    return made


MADE: dict[str, Callable[[dict[str, Any]], str]] = {
    "demo": _demo_text,
    "svt5": _svt5_text,
    "confidence": _confidence_text,
    "renyi-coverage": _coverage_text,
    "renyi-floor": _floor_text,
    "ldp-bias": _bias_text,
    "ldp-exact": _exact_text,
    "ldp-practice": _practice_text,
    "ldp-renyi-practice": _renyi_practice_text,
    "local-side-by-side": _side_by_side_text,
    "renyi-exact": _renyi_exact_text,
    "local-figure5": _figure5_text,
    "local-figure6": _figure6_text,
    "local-mixed": _mixed_text,
    "local-undersmoothing": _undersmoothing_text,
    "sizes": _sizes_text,
    "sizes-simulated": _sizes_simulated_text,
    "soundness": _soundness_text,
    "extras": _extras,
    "cli": _cli,
    "toml": _toml,
    "agreement": _agreement_text,
    "paper-items": _paper_items,
    "auditorium-table1": _table1_text,
    "auditorium-table2": _table2_text,
    "auditorium-figure2": _figure2_text,
    "auditorium-figure3": _figure3_text,
    "hockey-stick-coverage": _hockey_stick_coverage_text,
}


def filled(page: str, figures: dict[str, Any]) -> str:
    """A page with every generated place written anew."""
    return _PLACE.sub(
        lambda found: f"{found[1]}\n{MADE[found[2]](figures).strip()}\n\n{found[3]}", page
    )


def _write_figures(figures: dict[str, Any]) -> None:
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """See above."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if "--measure" in arguments:
        for name in [each for each in arguments if not each.startswith("-")] or MEASURED:
            sys.stdout.write(f"figures: measuring {name}\n")
            sys.stdout.flush()
            figures[name] = MEASURED[name]()
            _write_figures(figures)
    if "--take" in arguments:
        take(figures, [Path(each) for each in arguments if not each.startswith("-")])
        _write_figures(figures)
    stale = []
    drawn = _picture().draw()
    if drawn != _picture().PICTURE.read_text(encoding="utf-8"):
        stale.append("the picture of the demo")
        if "--check" not in arguments:
            _picture().PICTURE.write_text(drawn, encoding="utf-8")
            figures["demo"] = demo()
            _write_figures(figures)
    for path in [README, *sorted(DOCS.rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        after = filled(before, figures)
        if after != before:
            stale.append(path.relative_to(DOCS.parent).as_posix())
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale:
        sys.stdout.write(
            f"figures: {'out of date' if '--check' in arguments else 'written'}: {', '.join(stale)}\n"
        )
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
