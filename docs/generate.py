"""Writes what the documentation takes from the code and from measurements, so that it cannot be out of date.

A page has places like

    <!-- generated: extras -->
    …
    <!-- /generated -->

whose content is made here: from the command line's own help, from the tables of the code, and from `figures.json`,
which holds every measured figure with the settings that give it.

    python docs/generate.py                     fill the pages (make figures)
    python docs/generate.py --measure svt5      measure some figures anew, or all; then fill the pages
    python docs/generate.py --check             change nothing, and end with status 1 if a page is out of date
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import typer

import epsilometer as em
from epsilometer.report.wording import figure_down, figure_up

DOCS = Path(__file__).resolve().parent
FIGURES = DOCS / "figures.json"
_PLACE = re.compile(r"(<!-- generated: ([\w/-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
_WIDTH = 96


# --- What is measured -------------------------------------------------------------------------------------------------


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


def ldp_bias() -> dict[str, Any]:
    """The table of `epsilometer reproduce ldp/bias`."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "epsilometer", "reproduce", "ldp/bias", "--out", folder]
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
    rows = [{key: row[key] for key in ("case", "quantity", "measured")} for row in found["rows"]]
    return {"command": "epsilometer reproduce ldp/bias", "rows": rows}


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
    from importlib import import_module

    if str(DOCS.parent) not in sys.path:
        sys.path.insert(0, str(DOCS.parent))
    return import_module("benchmarks.sizes")


MEASURED: dict[str, Callable[[], dict[str, Any]]] = {
    "svt5": svt5,
    "confidence": confidence,
    "renyi-coverage": renyi_coverage,
    "ldp-bias": ldp_bias,
    "sizes": sizes,
    "sizes-simulated": sizes_simulated,
}


# --- What is made of it -----------------------------------------------------------------------------------------------


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
        + f"{found['runs']} runs | "
        + " | ".join(f"order {each:g}" for each in found["orders"])
        + " |"
    )
    names = {"laplace": "Laplace, ε = 1", "randomized_response": "randomized response, ε = 1"}
    rows = [
        f"| {names[name]} | {' | '.join(f'{each:.3g}' for each in row)} |"
        for name, row in found["shares"].items()
    ]
    return "\n".join([head, "|" + "---|" * (1 + len(found["orders"])), *rows, ""])


def _bias_text(figures: dict[str, Any]) -> str:
    cases: dict[str, dict[str, float]] = {}
    for row in figures["ldp-bias"]["rows"]:
        cases.setdefault(row["case"], {})[row["quantity"]] = row["measured"]
    names = list(dict.fromkeys(row["quantity"] for row in figures["ldp-bias"]["rows"]))
    rows = [
        f"| {case} | {' | '.join(f'{cells[name]:.3f}' for name in names)} |"
        for case, cells in cases.items()
    ]
    return "\n".join(
        [
            f"| distribution, cells | {' | '.join(names)} |",
            "|" + "---|" * (1 + len(names)),
            *rows,
            "",
        ]
    )


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

    rows = [
        f"| `{extra}` | {', '.join(packages)} | {purpose} |"
        for extra, (packages, purpose) in EXTRAS.items()
    ]
    return "\n".join(["| extra | packages | for |", "|---|---|---|", *rows, ""])


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
}
_KINDS = {
    "samples": 'number, or text like `"100k"`',
    "suppress": "list of texts",
    "left": "any",
    "right": "any",
}


def _toml(_: dict[str, Any]) -> str:
    from epsilometer.cli.application import make_app
    from epsilometer.cli.settings_file import _TYPES, KEYS

    audit = typer.main.get_command(make_app()).commands["audit"]  # type: ignore[attr-defined]
    helps = {each.name: each.help for each in audit.params if getattr(each, "help", None)}
    rows = []
    for key in KEYS:
        types = {str: "text", bool: "true or false", dict: "table", list: "list"}
        kind = _KINDS.get(key) or types.get(_TYPES.get(key), "number")  # type: ignore[arg-type]
        rows.append(
            f"| `{key}` | {kind} | {_OWN_KEYS.get(key) or helps[key].replace('|', chr(92) + '|')} |"
        )
    return "\n".join(["| key | value | meaning |", "|---|---|---|", *rows, ""])


MADE: dict[str, Callable[[dict[str, Any]], str]] = {
    "svt5": _svt5_text,
    "confidence": _confidence_text,
    "renyi-coverage": _coverage_text,
    "ldp-bias": _bias_text,
    "sizes": _sizes_text,
    "sizes-simulated": _sizes_simulated_text,
    "soundness": _soundness_text,
    "extras": _extras,
    "cli": _cli,
    "toml": _toml,
}


def filled(page: str, figures: dict[str, Any]) -> str:
    """A page with every generated place written anew."""
    return _PLACE.sub(
        lambda found: f"{found[1]}\n{MADE[found[2]](figures).strip()}\n\n{found[3]}", page
    )


def main(arguments: list[str]) -> int:
    """See above."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    if "--measure" in arguments:
        for name in [each for each in arguments if not each.startswith("-")] or MEASURED:
            sys.stdout.write(f"figures: measuring {name}\n")
            sys.stdout.flush()
            figures[name] = MEASURED[name]()
            FIGURES.write_text(
                json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8"
            )
    stale = []
    for path in sorted(DOCS.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = filled(before, figures)
        if after != before:
            stale.append(path.relative_to(DOCS).as_posix())
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale:
        sys.stdout.write(
            f"figures: {'out of date' if '--check' in arguments else 'written'}: {', '.join(stale)}\n"
        )
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
