"""docs/reference/papers.md: what it names exists, and nothing is called equal without a test that says so."""

import importlib.util
import itertools
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
# At least as many as an independent reader counted in the four papers.
_LEAST = 178
STATES = (
    "equal",
    "deviates: ",
    "not run: ",
    "notation: ",
    "a proof; ",
    "a step of a proof; ",
    "shown for ",
    "shown: ",
    "n as ",
    "see ",
)


def rows():
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.splitlines()
        if re.match(r"\| \d", line)
    ]


def test_the_statements_are_numbered_and_complete():
    numbers = [int(row[0]) for row in rows()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= _LEAST
    assert {len(row) for row in rows()} == {5}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_is_named_exists(row):
    _, _, files, tests, state = row
    paths = re.findall(r"\((?:\.\./)+([^)]+)\)", files) + re.findall(r"`([^`]+)`", files)
    assert paths
    for path in paths:
        assert (ROOT / path).is_file(), path
    names = re.findall(r"`([^`]+)`", tests)
    assert names
    for name in names:
        path, _, function = name.partition("::")
        assert re.search(
            rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE
        ), name
    assert state.startswith(STATES)
    assert state.startswith(("equal", "see ")) or len(state) > len("deviates: ") + 10, (
        "a deviation needs its reason"
    )


def test_experiments_that_are_named_exist():
    import epsilometer_experiments as experiments

    named = set(re.findall(r"`((?:local|renyi|ldp|auditorium)/[a-zA-Z0-9_-]+)`", PAGE))
    assert named
    assert named <= set(experiments.names())


# --- the table of the items, made from the tests' markers -------------------------------------


@pytest.fixture(scope="module")
def paper_items():
    spec = importlib.util.spec_from_file_location(
        "docs_paper_items", ROOT / "docs" / "paper_items.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def marked(paper_items):
    """The markers of all tests, by item."""
    by_item = {}
    for marker in paper_items.markers():
        by_item.setdefault(marker.item, []).append(marker)
    return by_item


def test_the_items_are_those_of_the_reading(paper_items):
    """40 of the local approach, 18 of local privacy, 48 of DP-Auditorium, 29 of the Rényi bounds."""
    counts = {"A": 40, "B": 18, "C": 48, "D": 29}
    numbers = [item.number for item in paper_items.items()]
    assert numbers == [
        f"{letter}{place}" for letter, n in counts.items() for place in range(1, n + 1)
    ]
    assert list(paper_items.papers()) == list(counts)


def test_every_marker_names_an_item(paper_items):
    assert set(marked(paper_items)) <= {item.number for item in paper_items.items()}


def test_no_item_is_equal_or_corrected_without_a_test(paper_items):
    """The state of an item comes from the tests that compare it, and they agree about it."""
    by_item = marked(paper_items)
    for item in paper_items.items():
        state = paper_items.state_of(item, by_item.get(item.number, []))
        assert item.state in ("", *paper_items.STATES_WITHOUT_TEST), item
        assert state not in ("equal", "corrected") or item.number in by_item, item.number
        assert not (item.state and item.number in by_item), f"{item.number}: a test says it already"


def test_what_is_not_equal_has_its_reason(paper_items):
    by_item = marked(paper_items)
    for item in paper_items.items():
        state = paper_items.state_of(item, by_item.get(item.number, []))
        assert item.note or state in ("equal", paper_items.NOT_COMPARED), item.number


@pytest.mark.parametrize(
    "decorator",
    ['paper("C11")', 'paper("C11", "nearly")', 'paper("C11", state="equal")', "paper(C11, STATE)"],
)
def test_a_marker_that_the_table_cannot_read_is_told(paper_items, tmp_path, decorator):
    source = f"import pytest\n\n\n@pytest.mark.{decorator}\ndef test_it():\n    pass\n"
    (tmp_path / "test_one.py").write_text(source, encoding="utf-8")
    with pytest.raises(ValueError, match=r"test_one\.py::test_it"):
        paper_items.markers(tmp_path)


def test_tests_that_disagree_about_an_item_are_told(paper_items):
    item = paper_items.items()[0]
    said = [paper_items.Marker(item.number, state, state) for state in ("equal", "corrected")]
    with pytest.raises(ValueError, match="disagree"):
        paper_items.state_of(item, said)


def test_markers_of_methods_and_of_several_items_are_read(paper_items, tmp_path):
    source = (
        "import pytest\n\n\nclass TestThings:\n"
        '    @pytest.mark.paper("A1", "equal")\n    @pytest.mark.paper("D2", "corrected")\n'
        "    def test_it(self):\n        pass\n"
    )
    (tmp_path / "test_one.py").write_text(source, encoding="utf-8")
    test = "test_one.py::TestThings::test_it"
    assert paper_items.markers(tmp_path) == [
        paper_items.Marker("A1", "equal", test),
        paper_items.Marker("D2", "corrected", test),
    ]


def test_a_paper_is_cited_by_its_authors():
    assert not re.search(r"\bseed 00\d", PAGE)


# --- what experiments found, beside what the paper prints -------------------------------------


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figures():
    """What `python docs/generate.py --take` took over from the experiments."""
    return json.loads((ROOT / "docs" / "figures.json").read_text(encoding="utf-8"))


def taken(figures, experiment):
    rows = figures["reproduced"][f"auditorium/{experiment}"]["rows"]
    return {(row["case"], row["quantity"]): row for row in rows}


@pytest.mark.paper("C40", "differs")
def test_most_numbers_of_table_1_come_back_at_every_size(generate, figures):
    """The published testers, compared with the paper's 56 numbers at each size themselves."""
    from epsilometer_experiments.auditorium import published

    cells = generate.table1_cells(figures)
    sizes = generate.table1_sizes(figures)
    assert sizes == [50_000, 100_000, 500_000]
    assert len(cells) == len(sizes) * 56
    for row in cells:
        title, epsilon, _ = row["case"].split()
        tester = row["quantity"].removeprefix("detected by ").removesuffix("/published")
        paper = published.detection_rate(
            title, float(epsilon.removeprefix("ε=")), tester, row["samples"]
        )
        assert row["expected"] == paper
    for samples in sizes:
        near = [generate.detections_apart(row) <= 3 for row in cells if row["samples"] == samples]
        assert 42 <= sum(near) < 56  # three quarters, and not all: else the state is another


@pytest.mark.paper("C41", "differs")
def test_most_numbers_of_table_2_come_back(generate, figures):
    """Algorithm 1 as printed, compared with the paper's 48 mean numbers of trials themselves."""
    from epsilometer_experiments.auditorium import published

    cells = generate.table2_cells(figures)
    assert len(cells) == 48
    for row in cells:
        title, finder = row["case"].split()
        tester = row["quantity"].removeprefix("trials with ").removesuffix("/published, 2/3")
        assert row["expected"] == published.mean_trials(title, finder, tester)
    near = [abs(row["measured"] - row["expected"]) <= 10 for row in cells]
    assert 32 <= sum(near) < 48  # two thirds, and not all: else the state is another


@pytest.mark.paper("C45", "equal")
def test_figure_2_follows_the_truth_and_catches_what_the_paper_catches(figures):
    """The estimates of the published tester: near the true divergence, and above the claim for s ≤ .6 in every run."""
    rows = taken(figures, "figure2")
    estimates = []
    for step in range(3, 11):
        case, method = f"s={step / 10:g}", "renyi-variational/published"
        row = rows[case, f"estimate by {method}"]
        assert 0.7 * row["expected"] < row["measured"] < 1.05 * row["expected"]
        estimates.append(row["measured"])
        caught = rows[case, f"caught by {method}"]["measured"]
        assert caught == 1.0 or step > 6
        assert caught == 0.0 or step < 10
    assert estimates == sorted(estimates, reverse=True)


@pytest.mark.paper("C46", "equal")
@pytest.mark.parametrize("mechanism", ["SVT4", "NonDPGaussian2"])
def test_figure_3_grows_with_the_draws(figures, mechanism):
    """(a) The published tester's estimate grows with n towards the truth, (b) and its trials become fewer."""
    rows = taken(figures, "figure3")
    cases = [f"{mechanism} n={n}" for n in (5_000, 50_000, 100_000, 500_000)]
    estimates = [rows[case, "estimate by hockey-stick/published"] for case in cases]
    for fewer, more in itertools.pairwise(estimates):
        chance = 2.0 * (fewer["standard_error"] + more["standard_error"])
        assert more["measured"] > fewer["measured"] - chance
    first, last = estimates[0], estimates[-1]
    assert first["measured"] < 0.8 * last["measured"]
    assert 0.75 * last["expected"] < last["measured"] < 1.1 * last["expected"]
    trials = [
        rows[case, "trials of the Bayesian finder with hockey-stick/published"]["measured"]
        for case in cases
    ]
    assert trials[-1] < 0.6 * trials[0]
