"""No random number of an audit comes from a constant seed, or from one that nobody can know.

A proof whose coins always fall the same way does not keep its failure probability: the published hockey-stick
certificate had a constant seed, and refuted true claims in most runs at unlucky numbers of draws. So every generator
in the package is made from a seed that somebody gave, and the few exceptions are listed here with their reasons.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
# What makes a generator, or sets the state of a shared one.
MAKERS = {
    "default_rng",
    "SeedSequence",
    "Generator",
    "RandomState",
    "Random",
    "SystemRandom",
    "PRNGKey",
    "key",
    "seed",
    "manual_seed",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "SFC64",
    "MT19937",
    "spawn_rng",
}
# Those of them that are names of other things, too: they count only as parts of these modules.
ONLY_OF = {
    "key": {"random"},
    "seed": {"random"},
    "Random": {"random"},
    "Generator": {"random", "np"},
}
MODULES = {"np", "numpy", "random", "jax", "torch"}
# Parameters of functions and keywords of calls that are seeds.
SEEDS = {"seed", "random_state", "rng", "entropy"}

# Whoever adds a line says why no proof and no published procedure rests on it.
ALLOWED = {
    "epsilometer/auditing/config.py: seed=None": "means fresh entropy, which the result records",
    "epsilometer/auditing/metadata.py: seed=None": "a fact that is not known yet; nothing is drawn from it",
    "epsilometer/mechanisms/timing.py: default_rng()": "a few draws that are timed and thrown away",
    "epsilometer/cli/demo.py: seed=_SEED": "the demonstration shows every reader the same numbers",
    "epsilometer/cli/reproduce.py: seed=0": "figures of the papers, which come out the same for every reader",
    "epsilometer/engine/repetition_checks.py: default_rng(0)": (
        "an order in which to look at exchangeable draws: a fixed one is as valid as a random one, "
        "and the check has its false alarm over the draws alone"
    ),
    "epsilometer/inputs/domains/tables.py: seed=0": "the examples of a strategy: which inputs are tried, documented",
    "epsilometer/inputs/finders/base.py: seed=0": "which pairs are tried, documented; draws have the audit's seed",
    "epsilometer/inputs/finders/search.py: seed=0": "which pairs are tried, documented; draws have the audit's seed",
    "epsilometer/inputs/finders/rounds.py: seed=0": "which pairs are tried, documented; draws have the audit's seed",
    "epsilometer/inputs/finders/plain.py: seed=0": "a list of patterns is tried in its order, and nothing is drawn",
    "epsilometer/zoo/training.py: default_rng(0)": "the records of an example, which are inputs and not draws",
    "epsilometer/zoo/training.py: default_rng(_REUSED_SEED)": "the bug that the entry `seed_reused` shows",
    "epsilometer/mechanisms/libraries.py: SystemRandom()": "diffprivlib's own noise, restored in a worker",
}
# Conformance suites for authors of plug-ins: tests must be repeatable, and audit nothing of a user's.
ALLOWED_FOLDERS = ("epsilometer/testing/",)


class Found(NamedTuple):
    """A constant seed: where it is, and how it is written."""

    file: str
    line: int
    text: str

    @property
    def key(self):
        return f"{self.file}: {self.text}"


def constants_of(tree):
    """Names that a module gives constant values."""
    named = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and is_constant(node.value, set()):
            named |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and node.value and is_constant(node.value, set()):
            named.add(node.target.id)
    return named


def is_constant(node, named):
    """Whether an expression has the same value in every run. None stands for fresh entropy, which nobody can repeat."""
    if isinstance(node, ast.Name):
        return node.id in named
    if isinstance(node, ast.Constant):
        return True
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    kinds = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List)
    if isinstance(node, ast.Call):
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        owner = node.func
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        # A method of some object, like rng.integers(9), gives what the object gives.
        is_plain = isinstance(node.func, ast.Name) or getattr(owner, "id", "") in MODULES
        return is_plain and bool(parts) and all(is_constant(part, named) for part in parts)
    return isinstance(node, kinds) and all(is_constant(part, named) for part in parts)


def makes_a_generator(node):
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in MAKERS and function.id not in ONLY_OF
    if not isinstance(function, ast.Attribute) or function.attr not in MAKERS:
        return False
    owner = (
        function.value.attr
        if isinstance(function.value, ast.Attribute)
        else getattr(function.value, "id", "")
    )
    return function.attr not in ONLY_OF or owner in ONLY_OF[function.attr]


def seeds_of(text, file):
    """Every generator with a constant or unknown seed, every constant handed on as one, every constant default."""
    tree = ast.parse(text)
    named = constants_of(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if makes_a_generator(node) and all(is_constant(each, named) for each in given):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                shown = ", ".join(ast.unparse(each) for each in given)
                found.append(Found(file, node.lineno, f"{name}({shown})"))
            for keyword in node.keywords:
                is_none = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
                if (
                    keyword.arg in {"seed", "random_state"}
                    and not is_none
                    and is_constant(keyword.value, named)
                ):
                    found.append(
                        Found(
                            file,
                            keyword.value.lineno,
                            f"{keyword.arg}={ast.unparse(keyword.value)}",
                        )
                    )
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = node.args
            positional = [*arguments.posonlyargs, *arguments.args]
            defaults = list(
                zip(
                    positional[len(positional) - len(arguments.defaults) :],
                    arguments.defaults,
                    strict=True,
                )
            )
            defaults += [
                each
                for each in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
                if each[1]
            ]
            for argument, default in defaults:
                is_none = isinstance(default, ast.Constant) and default.value is None
                if argument.arg in SEEDS and not is_none and is_constant(default, named):
                    found.append(
                        Found(file, default.lineno, f"{argument.arg}={ast.unparse(default)}")
                    )
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                is_seed = (
                    isinstance(field, ast.AnnAssign) and getattr(field.target, "id", "") in SEEDS
                )
                if is_seed and field.value is not None and is_constant(field.value, named):
                    found.append(
                        Found(file, field.lineno, f"{field.target.id}={ast.unparse(field.value)}")
                    )
    return found


def all_seeds():
    files = sorted(SOURCE.rglob("*.py"))
    return [
        seed
        for path in files
        for seed in seeds_of(path.read_text(encoding="utf-8"), path.relative_to(SOURCE).as_posix())
        if not seed.file.startswith(ALLOWED_FOLDERS)
    ]


def test_no_constant_seed_is_written_again():
    unknown = [seed for seed in all_seeds() if seed.key not in ALLOWED]
    places = "\n".join(f"{seed.file}:{seed.line}: {seed.text}" for seed in unknown)
    advice = "take Task.learning_rng() or Task.proving_rng(), or a stream of the audit's seed (engine/streams.py)"
    assert not unknown, f"constant seeds:\n{places}\n{advice}"


def test_exceptions_are_still_there():
    assert {seed.key for seed in all_seeds()} == set(ALLOWED)


def test_no_exception_is_about_a_published_procedure_or_a_bound():
    assert not [
        key for key in ALLOWED if key.startswith(("epsilometer/methods/", "epsilometer/bounds/"))
    ]


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng(0)",
        "rng = np.random.default_rng()",
        "rng = np.random.default_rng(None)",
        "rng = default_rng(_SEED)",
        "rng = np.random.default_rng([1, _SEED])",
        "rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1, 2)))",
        "rng = np.random.Generator(np.random.PCG64(7))",
        "rng = np.random.RandomState(3)",
        "rng = random.Random(3)",
        "random.seed(1)",
        "np.random.seed(_SEED)",
        "key = jax.random.PRNGKey(0)",
        "key = jax.random.key(0)",
        "torch.manual_seed(2)",
        "sampler = optuna.samplers.TPESampler(seed=1)",
        "model = Forest(random_state=_SEED)",
        "def prove(counts, seed=3): ...",
        "def prove(counts, *, rng=np.random.default_rng(3)): ...",
        "class Options:\n    seed: int = 4",
    ],
)
def test_every_way_to_write_one_is_found(line):
    assert seeds_of(f"_SEED = 20_230_715\n{line}\n", "some.py")


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng(seed)",
        "rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(1, 2)))",
        "rng = task.proving_rng()",
        "sampler = TPESampler(seed=int(rng.integers(2**31)))",
        "def audit(mechanism, seed=None): ...",
        "place = sorted(rows, key=len)",
    ],
)
def test_seeds_that_somebody_gave_are_fine(line):
    assert not seeds_of(f"_SEED = 20_230_715\n{line}\n", "some.py")
