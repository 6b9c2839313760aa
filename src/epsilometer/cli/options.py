"""The options of the commands: one type per option, defined once and shared by all commands.

A command takes an option by naming its type, for example `samples: Samples = None`. None always
means "not given", so that a settings file can say otherwise. In the help the options stand in
groups, see `GroupedCommand`.
"""

from decimal import Decimal
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from epsilometer.errors import InputError, meant_number

# The groups of options, in the order in which the help shows them.
CLAIM = "Claim"
INPUTS = "Inputs"
SEARCH = "Search"
DRAWS = "Draws"
OUTPUT = "Output"
GROUPS = (CLAIM, INPUTS, SEARCH, DRAWS, OUTPUT)

# What is larger is not even turned into a whole number: 1e999999999 has that many digits.
_BEYOND_COUNTING = Decimal(10) ** 30
# The powers of ten that suffixes of counts stand for.
_SUFFIXES = {"k": 3, "m": 6, "g": 9}


def count(text: str) -> int:
    """A whole number as people write it: 100000, 100_000, 1e5, 100k, 2.5M."""
    plain = text.strip().replace("_", "")
    exponent = _SUFFIXES.get(plain[-1:].lower(), 0)
    digits = plain[:-1] if exponent else plain
    try:
        value = Decimal(digits).scaleb(exponent)
        if abs(value) < _BEYOND_COUNTING and value == int(value):
            return int(value)
    except ArithmeticError:
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number such as 100000, 1e5 or 100k")


def _number_mistake(text: object, complaint: str) -> str | None:
    """What is wrong with the text of a number, and what was probably meant.

    Args:
        text: what was given.
        complaint: the library's own; None is returned for those that are about something else.
    """
    if not isinstance(text, str) or not complaint.startswith("Input should be a valid"):
        return None
    is_whole = "integer" in complaint
    kind = "a whole number such as 2" if is_whole else "a number such as 0.5 or 1e-5"
    return f"{text!r} is not {kind}{'' if is_whole else meant_number(text)}"


# What is asked may be said once; of settings of the run the last one counts, as usual.
_SAID_ONCE = (CLAIM, INPUTS, SEARCH)


class GroupedCommand(TyperCommand):
    """A command whose help lists the options by group (their `rich_help_panel`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments; a claim or an input that is given twice is refused."""
        texts, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in given:
            is_flag = getattr(parameter, "is_flag", False)
            is_value = not parameter.multiple and not is_flag
            panel = getattr(parameter, "rich_help_panel", None)
            if panel in _SAID_ONCE and is_value and given.count(parameter) > 1:
                raise InputError(f"{parameter.opts[0]} is given twice: give it once")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            name = None if error.param is None else error.param.name
            text = None if name is None else texts.get(name)
            mistake = _number_mistake(text, error.message)
            if mistake is None:
                raise
            raise typer.BadParameter(mistake, ctx, error.param) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments, then the options of each group, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        others: list[tuple[str, str]] = []
        for group in GROUPS:
            sections[group] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                sections["Arguments"].append(record)
                continue
            panel = getattr(parameter, "rich_help_panel", None)
            records = sections.setdefault(panel, []) if panel else others
            records.append(record)
        sections["Options"] = others
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class MechanismCommand(GroupedCommand):
    """A command that runs mechanisms: meanwhile standard output is reserved for its answer."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; `ctx.obj` is its `Answers`."""
        with ctx.obj.reserved():
            return super().invoke(ctx)


# ----- what to run

_TARGET_HELP = (
    "What to run: package.module:function (the current folder is searched), "
    "'command:./program {dataset}' (or {file}, {stdin}), an http(s) address, recording:FILE, "
    "plugin:NAME of an installed package, or zoo:NAME for a reference mechanism, "
    "zoo:NAME?epsilon=.7 to calibrate it."
)
Target = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET_HELP)]
TargetOrFile = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help=f"{_TARGET_HELP} Or a TOML file with the same settings.",
    ),
]
StoredResult = Annotated[str, typer.Argument(metavar="RESULT", help="What --json wrote.")]

# ----- what is claimed

Epsilon = Annotated[float | None, typer.Option(help="Claimed ε.", rich_help_panel=CLAIM)]
Delta = Annotated[
    float | None,
    typer.Option(help="With --epsilon: (ε, δ).", rich_help_panel=CLAIM),
]
Order = Annotated[
    float | None,
    typer.Option(help="With --epsilon: Rényi of this order.", rich_help_panel=CLAIM),
]
Mu = Annotated[float | None, typer.Option(help="Claimed μ: Gaussian.", rich_help_panel=CLAIM)]
Rho = Annotated[
    float | None,
    typer.Option(help="Claimed ρ: zero-concentrated.", rich_help_panel=CLAIM),
]
Accountant = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help=(
            "A function without arguments that returns an accountant (dp-accounting, Opacus), a "
            "function from ε to δ, or pairs: all its (ε, δ) are claimed."
        ),
        rich_help_panel=CLAIM,
    ),
]
FixedEpsilon = Annotated[
    float | None,
    typer.Option("--epsilon", help="Fixed ε of approx: bounds δ.", rich_help_panel=CLAIM),
]
FixedDelta = Annotated[
    float | None,
    typer.Option("--delta", help="Fixed δ of approx: bounds ε.", rich_help_panel=CLAIM),
]
FixedOrder = Annotated[
    float | None,
    typer.Option("--order", help="Fixed order of renyi.", rich_help_panel=CLAIM),
]
Notion = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="pure, approx, renyi, zcdp or gaussian: what to measure.",
        rich_help_panel=CLAIM,
    ),
]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--claim",
        metavar="CLAIM",
        help="Check a claim such as eps=1,delta=1e-6; may be repeated.",
        rich_help_panel=CLAIM,
    ),
]
Distance = Annotated[
    int | None,
    typer.Option(
        help="The inputs are this many steps apart: group privacy.  [default: 1]",
        rich_help_panel=CLAIM,
    ),
]

# ----- what the mechanism is run on

Left = Annotated[
    str | None,
    typer.Option(
        metavar="JSON|@FILE",
        help="One input, as JSON or @file (json, jsonl, npy, csv, parquet).",
        rich_help_panel=INPUTS,
    ),
]
Right = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE", help="Its neighbour.", rich_help_panel=INPUTS),
]
Batch = Annotated[
    bool | None,
    typer.Option(
        "--batch",
        help="The target draws many outputs at once: f(dataset, n, rng) or f(dataset, n).",
        rich_help_panel=INPUTS,
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="A function of one output: further columns that the event may look at.",
        rich_help_panel=INPUTS,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A further parameter of the function; may be repeated. The value is JSON, or a word.",
        rich_help_panel=INPUTS,
    ),
]
DatasetFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help=(
            "How a program gets {file} and {stdin}: json, jsonl, csv, npy or parquet.  "
            "[default: json]"
        ),
        rich_help_panel=INPUTS,
    ),
]
HttpHeaders = Annotated[
    list[str] | None,
    typer.Option(
        "--http-header",
        metavar="NAME=VALUE",
        help="A header for a service; may be repeated. NAME=env:VAR takes the value of a variable.",
        rich_help_panel=INPUTS,
    ),
]
HttpMethod = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="POST, GET, PUT, PATCH or DELETE.  [default: POST]",
        rich_help_panel=INPUTS,
    ),
]
HttpTimeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Of one request.  [default: 30]", rich_help_panel=INPUTS),
]
HttpBody = Annotated[
    str | None,
    typer.Option(
        metavar="TEMPLATE",
        help="What a service is sent, e.g. '{\"records\": {dataset}}'; {n} counts a batch.",
        rich_help_panel=INPUTS,
    ),
]
HttpAnswer = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Where the output is in the answer, e.g. result.values.0.",
        rich_help_panel=INPUTS,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Of csv files.  [default: a word above numbers is one]",
        rich_help_panel=INPUTS,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="The columns that are the output.  [default: all]",
        rich_help_panel=INPUTS,
    ),
]
MaxOutputBytes = Annotated[
    float | None,
    typer.Option(
        metavar="BYTES",
        help=("Memory for the outputs of a side.  [default: an eighth of the memory, at most 8e9]"),
        rich_help_panel=INPUTS,
    ),
]

# ----- how inputs are searched for

Finder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "How to search for inputs: search, random, grid, bayesian or patterns.  "
            "[default: search]"
        ),
        rich_help_panel=SEARCH,
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help=(
            "Search these inputs: records:number:0:1, vector:4:0:1, category:a,b, "
            "or JSON with a kind, …"
        ),
        rich_help_panel=SEARCH,
    ),
]
Around = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Search the neighbours of this data (csv, json, jsonl, npy, parquet).",
        rich_help_panel=SEARCH,
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which are neighbours: replace, add-remove, user, substitute-column, l1, linf.",
        rich_help_panel=SEARCH,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="With --around: the column that names the user; neighbours lack all rows of one.",
        rich_help_panel=SEARCH,
    ),
]
Beyond = Annotated[
    bool | None,
    typer.Option(
        "--beyond",
        help="Also judge values outside the domain that can occur: NaN, None, infinity.",
        rich_help_panel=SEARCH,
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=count,
        help="Pairs that a search tries.  [default: 50]",
        rich_help_panel=SEARCH,
    ),
]
TrialSamples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=count,
        help="Draws per input and trial.  [default: 20000]",
        rich_help_panel=SEARCH,
    ),
]
SearchOn = Annotated[
    bool | None,
    typer.Option(
        "--search-on",
        help="Try every pair for the largest bound, even after a refutation.",
        rich_help_panel=SEARCH,
    ),
]

# ----- how the draws are made and judged

Samples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=count,
        help="Draws per input: 50000, 1e6, 100k.  [default: 100000]",
        rich_help_panel=DRAWS,
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(help="Of the bound.  [default: 0.95]", rich_help_panel=DRAWS),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Makes the run repeatable.  [default: fresh]", rich_help_panel=DRAWS),
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="See: epsilometer methods.  [default: auto]",
        rich_help_panel=DRAWS,
    ),
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the method; may be repeated. The value is JSON, or a word.",
        rich_help_panel=DRAWS,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(help="Worker processes of the local engine.  [default: 1]", rich_help_panel=DRAWS),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help=(
            "local, dask://host:port, ray://host:port or ray://auto; the result is the same.  "
            "[default: local]"
        ),
        rich_help_panel=DRAWS,
    ),
]
Suppress = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CHECK",
        help="Switch off a health check; may be repeated. The result records it.",
        rich_help_panel=DRAWS,
    ),
]
Constant = Annotated[
    str | None,
    typer.Option(
        metavar="ask|leak",
        help=(
            "If each input always gets one answer: ask finds out whether that is noise drawn once "
            "and kept; leak says that there is no noise. The result records it.  [default: ask]"
        ),
        rich_help_panel=DRAWS,
    ),
]
StopEarly = Annotated[
    bool | None,
    typer.Option(
        "--stop-early/--no-stop-early",
        help="Stop as soon as the claim is refuted; --samples is the most.",
        rich_help_panel=DRAWS,
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="End after this many seconds, even if a call hangs; see --stop-early.",
        rich_help_panel=DRAWS,
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Resume from this file if interrupted.",
        rich_help_panel=DRAWS,
    ),
]
Representation = Annotated[
    str | None,
    typer.Option(
        metavar="VIEW",
        help="value, bits or all.  [default: value]",
        rich_help_panel=DRAWS,
    ),
]
AllRepresentations = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Also report leaks through floating-point bits; the verdict stays.",
        rich_help_panel=DRAWS,
    ),
]

# ----- where the answer goes

Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as JSON; - is standard output.",
        rich_help_panel=OUTPUT,
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the report as one HTML page.",
        rich_help_panel=OUTPUT,
    ),
]
Junit = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write the result as JUnit XML.", rich_help_panel=OUTPUT),
]
Markdown = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write a summary in Markdown, for the page of a job.",
        rich_help_panel=OUTPUT,
    ),
]
WriteTest = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="If refuted, write the counterexample as a test for pytest.",
        rich_help_panel=OUTPUT,
    ),
]
FailBlind = Annotated[
    bool | None,
    typer.Option(
        "--fail-blind",
        help="Exit with status 3 if nothing could have been refuted; the verdict stays.",
        rich_help_panel=OUTPUT,
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Draw the curves (.svg, .png, .pdf).", rich_help_panel=OUTPUT
    ),
]
