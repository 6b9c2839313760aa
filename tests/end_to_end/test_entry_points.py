"""Methods and mechanisms of another package, found by its entry points. Nothing is installed."""

import os
import tomllib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "examples" / "package"


def put_metadata(folder, name, groups):
    """What pip would write of a package, as far as entry points need it."""
    home = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (home / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The example package, and one whose modules are missing, fail, or hold something else."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    put_metadata(folder, project["name"], project["entry-points"])
    broken = {
        "missing": "no_such_module:Thing",
        "failing": "failing_module:Thing",
        "number": "failing_module_2:thing",
    }
    put_metadata(
        folder,
        "broken-plugins",
        {
            "epsilometer.methods": {f"{name}-method": value for name, value in broken.items()},
            "epsilometer.mechanisms": {
                f"{name}-mechanism": value for name, value in broken.items()
            },
        },
    )
    (folder / "failing_module.py").write_text(
        "raise RuntimeError('out of order')\n", encoding="utf-8"
    )
    (folder / "failing_module_2.py").write_text("thing = 3\n", encoding="utf-8")
    return folder


@pytest.fixture
def epsilometer(site, tmp_path, warm_python):
    def run(*arguments):
        known = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        path = [str(Path(each).resolve()) for each in (site, PACKAGE, *known)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        return warm_python.run("-m", "epsilometer", *arguments, cwd=tmp_path, env=environment)

    return run


def test_methods_are_listed(epsilometer):
    done = epsilometer("methods")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert (
        "events learned from at most 1000 draws (from epsilometer-example)" in rows["quick-events"]
    )
    assert "exact" in rows["events"]


def test_broken_methods_do_not_break_the_list(epsilometer):
    rows = {line.split()[0]: line for line in epsilometer("methods").stdout.splitlines()}
    assert "no_such_module" in rows["missing-method"]
    assert "out of order" in rows["failing-method"]
    assert "(from broken-plugins)" in rows["number-method"]


def test_mechanisms_are_listed(epsilometer):
    done = epsilometer("zoo")
    assert done.returncode == 0, done.stderr
    assert "plugin:half-noise" in done.stdout
    assert "plugin:missing-mechanism" in done.stdout  # listed, not loaded
    assert "svt5" in done.stdout


def test_both_are_used(epsilometer, tmp_path):
    """The true ε is 2; the bound is 1.9 with a standard error of about 0.04."""
    inputs = ["--samples", "20000", "--seed", "0"]
    done = epsilometer(
        "audit", "plugin:half-noise", "--method", "quick-events", *inputs, "--json", "result.json"
    )
    assert done.returncode == 1, done.stderr
    assert "REFUTED" in done.stdout
    stored = (tmp_path / "result.json").read_text(encoding="utf-8")
    assert '"quick-events"' in stored
    again = epsilometer(
        "replay", "result.json", "plugin:half-noise", "--samples", "20000", "--seed", "1"
    )
    assert again.returncode == 1, again.stderr


def test_the_caller_may_state_inputs_and_claim(epsilometer):
    """No false alarm but with probability 1e-9: the claim is true."""
    flags = [
        "--left",
        "[1]",
        "--right",
        "[0]",
        "--epsilon",
        "2",
        "--samples",
        "2000",
        "--seed",
        "0",
    ]
    done = epsilometer("audit", "plugin:half-noise", *flags, "--confidence", "0.999999999")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "plugin:nothing"], "half-noise"),  # says what there is
        (["audit", "plugin:missing-mechanism"], "no_such_module"),
        (["audit", "plugin:failing-mechanism"], "out of order"),
        (["audit", "plugin:number-mechanism"], "3"),
        (["audit", "zoo:laplace", "--method", "failing-method"], "out of order"),
        (["audit", "zoo:laplace", "--method", "number-method"], "number-method"),
    ],
)
def test_what_does_not_work_is_an_error_in_one_line(epsilometer, arguments, message):
    done = epsilometer(*arguments, "--left", "0", "--right", "1", "--epsilon", "1")
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
