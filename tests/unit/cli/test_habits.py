"""What people type, and what they forget."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer

import epsilometer as em
from epsilometer.cli import main
from epsilometer.cli.listing import EXTRAS
from epsilometer.cli.options import count
from epsilometer.errors import install_command, meant_number

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("100000", 10**5),
        ("100_000", 10**5),
        ("1e5", 10**5),
        ("100k", 10**5),
        ("2.5M", 2_500_000),
        (" 1K ", 1000),
    ],
)
def test_counts(text, number):
    assert count(text) == number


@pytest.mark.parametrize("text", ["1.5", "x", "", "k", "inf", "nan", "1e999999999", "1,5", "1e-3"])
def test_what_is_no_count(text):
    with pytest.raises(typer.BadParameter, match="is not a whole number such as"):
        count(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return tmp_path


FUNCTION = "def noisy(x, rng):\n    return x + rng.laplace()\n"
ARGUMENTS = ("--left", "0", "--right", "1", "--epsilon", "1.5", "--samples", "1e3", "--seed", "1")


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("habits_a.py", "habits_a.py:noisy"),
        ("habits_b.py", "./habits_b.py"),
        ("with-dashes.py", "with-dashes.py:noisy"),
        ("sub/habits_c.py", "sub/habits_c.py"),
        ("json.py", "./json.py"),  # a module of that name exists; the file is meant
    ],
)
def test_files_are_mechanisms(folder, capsys, file, target):
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(FUNCTION)
    assert main(["audit", target, *ARGUMENTS]) == 0
    assert "NOT REFUTED" in capsys.readouterr().out


def test_workers_run_a_file_that_they_cannot_import(folder):
    (folder / "with-dashes.py").write_text(FUNCTION)
    assert main(["audit", "with-dashes.py", *ARGUMENTS, "--jobs", "2"]) == 0


@pytest.mark.parametrize(
    ("content", "target", "said"),
    [
        (FUNCTION + FUNCTION.replace("noisy", "other"), "habits_d.py", "say which: habits_d.py:noisy"),
        ("x = 1\n", "habits_d.py", "defines no function; to run it as a program"),
        (FUNCTION, "nothere.py:noisy", "there is no file 'nothere.py'"),
        (FUNCTION, "habits_d.py:nosy", "did you mean 'noisy'?"),
    ],
)  # fmt: skip
def test_files_that_are_none(folder, capsys, content, target, said):
    (folder / "habits_d.py").write_text(content)
    sys.modules.pop("habits_d", None)
    assert main(["audit", target, *ARGUMENTS]) == 2
    assert said in capsys.readouterr().err


COLUMNS = "id,count,city\n"


def write_sides(folder, kind):
    rng = np.random.default_rng(0)
    for side, mean in (("left", 0.0), ("right", 1.0)):
        rows = [(i, mean + rng.laplace(scale=0.2), "ab"[int(rng.integers(2))]) for i in range(300)]
        if kind == "csv":
            text = COLUMNS + "".join(f"{i},{value},{city}\n" for i, value, city in rows)
        else:
            text = "".join(
                f'{{"id": {i}, "count": {value}, "city": "{city}"}}\n' for i, value, city in rows
            )
        (folder / f"{side}.{kind}").write_text(text)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(("columns", "status"), [("count", 1), ("count,city", 1), ("city", 0)])
def test_columns(folder, kind, columns, status):
    write_sides(folder, kind)
    given = [
        "compare",
        f"left.{kind}",
        f"right.{kind}",
        "--columns",
        columns,
        "--epsilon",
        "1",
        "--seed",
        "0",
    ]
    assert main(given) == status


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_column_that_is_not_there(folder, capsys, kind):
    write_sides(folder, kind)
    assert (
        main(["compare", f"left.{kind}", f"right.{kind}", "--columns", "total", "--epsilon", "1"])
        == 2
    )
    assert "has no column 'total'; it has 'id, count, city'" in capsys.readouterr().err


def test_columns_of_parquet_and_of_what_has_none(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    table = pyarrow.table({"id": [1, 2], "count": [1.0, 2.0], "city": ["a", "b"]})
    parquet.write_table(table, folder / "t.parquet")
    side = em.from_recording("t.parquet", columns=["count"]).sides[0]
    assert len(side.outputs()) == 2
    assert {block.shape for block in side.outputs()} == {"float"}
    with pytest.raises(em.InputError, match="has no column 'x'"):
        em.from_recording("t.parquet", columns=["x"])
    np.save(folder / "t.npy", np.zeros(3))
    with pytest.raises(em.InputError, match="needs names of columns"):
        em.from_recording("t.npy", columns=["x"])
    with pytest.raises(em.InputError, match="must name columns"):
        em.from_recording("t.parquet", columns="count")


def test_measure_is_about_pure_epsilon_unless_told_otherwise():
    pair = em.Pair(0, 1)
    shared = {"samples": 500, "seed": 0}
    assert em.measure(em.zoo.laplace().mechanism, pair, **shared).claim == em.PureDP(0.0)
    assert em.measure(em.zoo.laplace(), order=2.0, **shared).claim == em.RenyiDP(2.0, 0.0)
    assert em.measure(em.zoo.laplace(), delta=1e-3, **shared).claim == em.ApproxDP(0.0, 1e-3)


def test_whole_floats_are_samples_in_python_and_files(folder, capsys):
    assert em.audit(em.zoo.laplace(), samples=1e3, seed=0).settings["samples"] == 1000
    for samples in ("1e3", '"1k"', "1_000"):
        (folder / "audit.toml").write_text(
            f'mechanism = "zoo:laplace"\nsamples = {samples}\nseed = 0\n'
        )
        assert main(["audit", "audit.toml"]) == 0
        assert "1,000 left, 1,000 right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [((0.5, 8), "RenyiDP(order=8, epsilon=0.5)"), ((1, 0.5), "RenyiDP(order=2, epsilon=0.5)")],
)
def test_the_two_numbers_of_renyi(numbers, advice):
    with pytest.raises(em.InputError, match=re.escape(f"name the two numbers: {advice}")):
        em.RenyiDP(*numbers)
    claim = em.RenyiDP(2.0, 0.5)
    assert repr(claim) == "RenyiDP(order=2.0, epsilon=0.5)"
    assert "order=2" in claim.describe()
    assert "epsilon=0.5" in claim.describe()


def batch_audit(function):
    return em.audit(em.from_batch(function), em.Pair(0, 1), em.PureDP(1.5), samples=500, seed=0)


GENERATOR = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("function", "is_seeded"),
    [
        (lambda x, n: x + GENERATOR.laplace(size=n), False),
        (lambda x, n, scale=1.0: x + GENERATOR.laplace(scale=scale, size=n), False),
        (lambda x, n, rng: x + rng.laplace(size=n), True),
        (lambda x, n, rng=None: x + rng.laplace(size=n), True),
        (lambda x, n, generator: x + generator.laplace(size=n), True),
        (lambda x, n, *, rng: x + rng.laplace(size=n), True),
        (lambda *given: given[0] + given[2].laplace(size=given[1]), True),
    ],
)
def test_batch_functions_with_and_without_a_generator(function, is_seeded):
    assert batch_audit(function).settings["seeded_mechanism"] is is_seeded


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, rng: x + rng.laplace(), "returns one output per call: audit it as it is, without from_batch"),
        (lambda x: x, "returns one output per call"),
        (lambda x, n, rng: x + rng.laplace(), "returned the single value"),
        (lambda x, n, rng: x + rng.laplace(size=(3, n)), "so return np.moveaxis(array, 1, 0)"),
        (lambda x, n, rng: None, "is a `return` missing?"),
        (lambda x, n, rng: rng.laplace(size=n + 1), "outputs where"),
    ],
)  # fmt: skip
def test_the_usual_mistakes_with_batches(function, said):
    with pytest.raises(em.EpsilometerError, match=re.escape(said)):
        batch_audit(function)


def test_a_batch_function_that_was_not_called_one():
    def many(x, n, rng):
        return x + rng.laplace(size=n)

    with pytest.raises(
        em.InputError, match=r"draws many outputs at once is audited as from_batch\(f\)"
    ):
        em.audit(many, em.Pair(0, 1), em.PureDP(1.0), samples=500, seed=0)


def test_dir_shows_public_names_only():
    shown = {name for name in dir(em) if not name.startswith("__")}
    assert shown == set(em.__all__)


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^jobs +up to \d+", said, re.MULTILINE)
    for extra in EXTRAS:
        assert re.search(rf"^{extra} .*(\d|missing: pip install .+)$", said, re.MULTILINE)


def test_extras_are_those_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    name_of = re.compile(r"[\w-]+")
    assert {
        extra: {name_of.match(each)[0] for each in needs} for extra, needs in declared.items()
    } == {extra: set(packages) for extra, (packages, _) in EXTRAS.items()}


def test_an_extra_is_installed_by_all_its_packages():
    """The project is on no index yet: pip could not find epsilometer[extra]."""
    for extra, (packages, _) in EXTRAS.items():
        command = install_command(extra, packages[0])
        assert command.startswith("pip install ")
        assert "epsilometer" not in command
        assert all(package in command for package in packages)


def test_the_address_of_the_project_is_one_placeholder():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert all(url.startswith(urls["Source"]) for url in urls.values())


def test_completion():
    asked = {
        "_EPSILOMETER_COMPLETE": "complete_bash",
        "COMP_WORDS": "epsilometer audit --sam",
        "COMP_CWORD": "2",
    }
    command = [sys.executable, "-m", "epsilometer"]
    ended = subprocess.run(
        command, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == ["--samples"]


def test_completion_is_installed(tmp_path):
    command = [sys.executable, "-m", "epsilometer", "--install-completion", "bash"]
    # Named, because there is no shell above a test from which it could be guessed.
    environment = os.environ | {
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / ".bash_completions" / "epsilometer.sh").is_file()


def test_profile_as_a_page_with_all_claims(folder):
    claims = ["--claim", "mu=1", "--claim", "eps=1,delta=1e-3", "--claim", "eps=.5"]
    files = ["--html", "profile.html", "--plot", "profile.svg"]
    assert main(["profile", "zoo:gaussian", "--samples", "5k", "--seed", "0", *claims, *files]) == 1
    page = (folder / "profile.html").read_text(encoding="utf-8")
    for claim in ("GaussianDP(mu=1)", "ApproxDP(epsilon=1, delta=0.001)", "PureDP(epsilon=0.5)"):
        assert page.count(claim) >= 2  # in the table, and in the legend of the picture
    assert "<svg" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_report_that_cannot_be_written_is_status_2(folder, capsys):
    (folder / "gone").mkdir()
    (folder / "gone" / "m.py").write_text(
        "import shutil\ndef leak(x):\n    shutil.rmtree('gone', ignore_errors=True)\n    return x\n"
    )
    given = [
        "audit",
        "gone/m.py",
        "--left",
        "0",
        "--right",
        "1",
        "--epsilon",
        "1",
        "--samples",
        "100",
        "--constant",
        "leak",
    ]
    assert main([*given, "--html", "gone/report.html"]) == 2
    said = capsys.readouterr()
    assert "REFUTED" in said.out
    assert "report.html cannot be written" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", "1,5"], "--epsilon': '1,5' is not a number such as 0.5 or 1e-5; write 1.5"),
        (["--epsilon", "1", "--confidence", "95%"], "write 0.95"),
        (["--epsilon", "1", "--delta", "1e-5 %"], "write 1e-07"),
        (["--epsilon", "1", "--max-seconds", "10s"], "'10s' is not a number such as 0.5 or 1e-5;"),
        (["--epsilon", "1", "--jobs", "all"], "'all' is not a whole number such as 2"),
    ],
)
def test_what_is_no_number_says_what_it_is_and_what_was_meant(capsys, arguments, said):
    assert main(["audit", "zoo:laplace", *arguments]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert "Input should be" not in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("text", ["1,000", "12,345,678", "1e", "one", ""])
def test_a_number_that_may_be_another_one_is_not_guessed(text):
    assert meant_number(text) == ""


@pytest.mark.parametrize("text", ["eps=1 delta=1e-5", "eps=1;delta=1e-5", "eps=one", "eps=1,5"])
def test_a_claim_that_cannot_be_read_says_how_to_write_it(text):
    with pytest.raises(em.InputError, match="write it like eps=1,delta=1e-6"):
        em.audit(em.zoo.laplace(), claim=text, samples=100)


def test_a_file_of_data_is_no_target(folder, capsys):
    assert main(["audit", "counts.csv", *ARGUMENTS]) == 2
    complaint = capsys.readouterr().err
    assert "recording:counts.csv" in complaint
    assert "counts:csv" not in complaint
    assert main(["audit", "command:", *ARGUMENTS]) == 2
    assert "the program is missing" in capsys.readouterr().err


def test_keys_of_a_suite_are_suggested(folder, capsys):
    Path("suite.toml").write_text('titel = "x"\n[[audit]]\nmechanism = "zoo:svt5"\n')
    assert main(["run", "suite.toml"]) == 2
    assert "did you mean 'title'?" in capsys.readouterr().err


def test_a_domain_of_no_kind_says_how_to_write_one(folder, capsys):
    Path("no_kind.py").write_text(FUNCTION)
    text = 'mechanism = "no_kind.py:noisy"\nepsilon = 1.0\ndomain = {low = 0, high = 1}\n'
    Path("audit.toml").write_text(text)
    assert main(["audit", "audit.toml"]) == 2
    assert "a table needs a kind, as in {kind = 'number'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"progress": "bar"}, "object with a method advance"),
        ({"checkpoint": ""}, "name a file"),
        ({"checkpoint": "."}, "name a file"),
        ({"on_error": "outcome"}, "em.from_callable"),
        ({"batch": True}, "em.from_batch"),
        ({"features": len}, "features="),
        ({"finder": "random"}, "em.finders.Random"),
        ({"params": {"a": 1}}, "functools.partial"),
    ],
)
def test_settings_that_belong_elsewhere(settings, why):
    with pytest.raises(em.InputError, match=re.escape(why)):
        em.audit(em.zoo.laplace(), claim="eps=1", samples=100, **settings)


def test_mistakes_are_one_line_whatever_the_data_look_like():
    table = np.zeros((3, 2))
    with pytest.raises(em.InputError) as refused:
        em.around((table, table))
    assert "\n" not in str(refused.value)
    with pytest.raises(em.MechanismError) as failed:
        em.audit(lambda rows: 1 / 0, em.Pair(table, table + 1), em.PureDP(1.0), samples=100)
    assert "\n" not in str(failed.value)
