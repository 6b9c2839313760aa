"""Features: a user's function of one output, whose values the event may look at."""

import copy
import json
import math
import pickle
from dataclasses import make_dataclass

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.checkpoints import audit_key
from epsilometer.auditing.config import AuditConfig
from epsilometer.auditing.questions import Question
from epsilometer.auditing.settings import open_settings
from epsilometer.cli import main
from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms import as_mechanism
from epsilometer.mechanisms.features import Features
from epsilometer.outputs import read_outputs
from epsilometer.outputs.shapes import leaves_of, n_of_features
from epsilometer.storage import code_digest

N = 4000


def scrambled(x, n, rng):
    """A seed, and a bit that is the parity of the seed's ones, xor the input, three times of four."""
    seeds = rng.integers(0, 2**40, n)
    return np.column_stack([seeds, (np.bitwise_count(seeds) % 2) ^ x ^ (rng.random(n) < 0.25)])


def decoded(report):
    seed, bit = report.tolist()
    return (seed.bit_count() + bit) % 2 == 1


def both(report):
    return {"left": decoded(report), "right": not decoded(report)}


def one(x, rng):
    seed = int(rng.integers(0, 2**40))
    return seed, seed.bit_count() % 2 ^ x ^ (rng.random() < 0.25)


PAIR, CLAIM = em.Pair(0, 1), em.PureDP(0.5)


@pytest.fixture(scope="module")
def found():
    return em.audit(em.from_batch(scrambled, features=decoded), PAIR, CLAIM, samples=N, seed=0)


def test_without_features_nothing_is_found_and_with_them_the_leak_is(found):
    assert not em.audit(em.from_batch(scrambled), PAIR, CLAIM, samples=N, seed=0).is_refuted
    assert found.is_refuted
    assert 0.9 < found.lower_bound < math.log(3)
    assert "features.decoded" in found.witness.event.describe()
    pictured = found.findings[0].details.get("pictures", [])
    assert all(picture["left"] for picture in pictured)


def test_functions_of_single_outputs_have_features_too():
    def odd(report):
        return (report[0].bit_count() + report[1]) % 2 == 1

    assert em.audit(
        em.from_callable(one, features=odd), PAIR, CLAIM, samples=2000, seed=0
    ).is_refuted


@pytest.mark.parametrize(
    ("returned", "paths"),
    [
        (lambda out: {"a": 1, "b c": "x"}, ["features.a", "features['b c']"]),
        (lambda out: 1.5, ["features"]),
        (lambda out: (True, None), ["features[0]", "features[1]"]),
        (len, ["features.len"]),
    ],
)
def test_features_are_named_by_their_keys_or_their_function(returned, paths):
    outputs = em.from_batch(lambda x, n: [[1, 2]] * n, features=returned).sample(
        0, 3, np.random.default_rng(0)
    )
    (block,) = outputs.blocks
    assert [leaf.path for leaf in leaves_of(block.shape)] == [*paths, "output[0]", "output[1]"]
    assert n_of_features(block.shape) == len(block.columns) - 2


def test_every_kind_of_batch_is_read_output_by_output():
    def first(output):
        return output["a"] if isinstance(output, dict) else output

    for batch in (
        {"a": np.arange(4), "b": list("wxyz")},
        [0, 1, 2, 3],
        np.arange(4),
        iter(range(4)),
    ):
        outputs = em.from_batch(lambda x, n, batch=batch: batch, features=first).sample(
            0, 4, np.random.default_rng(0)
        )
        assert outputs.blocks[0].columns[0].values.tolist() == [0, 1, 2, 3]


def test_a_function_that_changes_its_argument_changes_nothing():
    def spoiled(output):
        output[0] = 99
        return output.sum()

    mechanism = em.from_batch(lambda x, n: np.zeros((n, 1)), features=spoiled)
    outputs = mechanism.sample(0, 3, np.random.default_rng(0))
    assert [column.values.tolist() for column in outputs.blocks[0].columns] == [
        [99.0] * 3,
        [0.0] * 3,
    ]


def counting():
    calls = iter(range(10**6))
    return lambda output: next(calls)


def test_objects_of_other_libraries_have_features_too():
    class Noise:
        def randomise(self, value, rng):
            return value + rng.laplace()

    mechanism = as_mechanism(Noise()).with_features(Features.of(abs))
    outputs = mechanism.sample(0.0, 3, np.random.default_rng(0))
    assert [leaf.path for leaf in leaves_of(outputs.blocks[0].shape)] == ["features.abs", "output"]


def test_a_mechanism_of_diffprivlib_takes_its_features_to_workers():
    tools = pytest.importorskip("diffprivlib.mechanisms")
    mechanism = as_mechanism(tools.Laplace(epsilon=1.0, sensitivity=1.0)).with_features(
        Features.of(abs)
    )
    assert pickle.loads(pickle.dumps(mechanism)).features.name == "abs"


@pytest.mark.parametrize(
    ("features", "error", "text"),
    [
        (lambda out: 1 / 0, InputError, "raised ZeroDivisionError on the output"),
        (lambda out: object(), MechanismError, "features=<lambda>.*cannot be read"),
        (counting(), InputError, "must depend on the output alone"),
        (3, InputError, "must be a function of one output"),
        (lambda out: None, InputError, "returns None whatever the output"),
    ],
)
def test_nonsense_is_refused_in_words(features, error, text):
    with pytest.raises(error, match=text):
        em.audit(em.from_batch(scrambled, features=features), PAIR, CLAIM, samples=N, seed=0)


def test_a_failed_run_has_no_features():
    def failing(x, rng):
        if rng.random() < 0.5:
            raise ValueError
        return 1

    outputs = em.from_callable(failing, on_error="outcome", features=lambda out: out + 1).sample(
        0, 50, np.random.default_rng(0)
    )
    assert {block.shape.partition(",")[0] for block in outputs} == {
        "featured{features: None",
        "featured{features: int",
    }


def test_an_event_of_features_says_what_plain_outputs_lack(found):
    draws = scrambled(0, 10, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"looks at features .*mechanism\.sample"):
        found.witness.event.contains(draws)
    featured = em.from_batch(scrambled, features=decoded).sample(0, 10, np.random.default_rng(0))
    assert found.witness.event.contains(featured).shape == (10,)


def test_results_keep_name_digest_and_place(found):
    kept = em.AuditResult.from_json(found.to_json())
    place = f"{decoded.__module__}:decoded"
    assert kept.settings["features"] == {
        "name": "decoded",
        "digest": code_digest(decoded),
        "place": place,
    }
    assert em.verify(kept).holds
    assert "features" in str(em.verify(kept))
    assert f"features={decoded.__module__}.decoded" in found.to_test()


def test_a_replay_needs_the_same_features(found):
    kept = em.AuditResult.from_json(found.to_json())
    plain, featured = em.from_batch(scrambled), em.from_batch(scrambled, features=decoded)
    for mechanism, given in ((plain, decoded), (featured, None), (featured, decoded)):
        again = em.replay(kept, mechanism, samples=N, seed=1, features=given)
        assert again.is_refuted
        assert again.settings["features"] == kept.settings["features"]
    with pytest.raises(InputError, match="features=decoded"):
        em.replay(kept, plain)
    with pytest.raises(InputError, match="not the function"):
        em.replay(kept, plain, features=both)


def test_a_replay_of_an_event_without_features_leaves_them_out():
    leak = em.audit(
        em.from_batch(lambda x, n, rng: rng.random(n) + x), PAIR, CLAIM, samples=N, seed=0
    )
    same = em.from_batch(lambda x, n, rng: rng.random(n) + x, features=lambda out: out > 1)
    assert em.replay(leak, same, samples=N, seed=1).is_refuted
    with pytest.raises(InputError, match="found without features"):
        em.replay(leak, same, samples=N, features=lambda out: out > 1)


def test_the_recount_needs_the_recorded_features(found, tmp_path):
    draws, bare = tmp_path / "draws.jsonl", tmp_path / "bare.jsonl"
    mechanism = em.from_batch(scrambled, features=decoded)
    kept = em.audit(mechanism, PAIR, CLAIM, samples=N, seed=0, record=draws)
    em.audit(em.from_batch(scrambled), PAIR, CLAIM, samples=N, seed=0, record=bare)
    assert em.verify(kept, draws).holds
    check = em.verify(kept, bare)
    assert check.holds is None
    assert "which were not recorded" in check.reason
    recording = em.from_recording(draws)
    again = em.audit(recording, claim=CLAIM, samples=N, seed=0)
    assert again.witness.to_dict() == kept.witness.to_dict()
    assert again.settings["features"] == kept.settings["features"]
    with pytest.raises(InputError, match="kept as columns"):
        em.audit(em.from_recording(bare, features=decoded), claim=CLAIM, samples=N, seed=0)


def test_recorded_outputs_have_features(tmp_path):
    sides = [scrambled(x, N, np.random.default_rng(x)) for x in (0, 1)]

    def parity(report):
        return (int(report[0]).bit_count() + int(report[1])) % 2 == 1

    assert em.compare(*sides, CLAIM, seed=0, features=parity).is_refuted
    np.savez(tmp_path / "draws.npz", left=sides[0], right=sides[1])
    recording = em.from_recording(tmp_path / "draws.npz", features=parity)
    assert em.audit(recording, claim=CLAIM, samples=N, seed=0).is_refuted
    result = em.compare(recording.left, recording.right, CLAIM, seed=0)
    assert result.is_refuted
    assert result.settings["features"]["name"] == "parity"


def test_features_are_part_of_what_a_mechanism_is():
    plain, one_way, other = (
        em.from_batch(scrambled, features=each) for each in (None, decoded, both)
    )
    assert len({each.digest() for each in (plain, one_way, other)}) == 3
    assert one_way.with_features(None).digest() == plain.digest()
    assert copy.copy(one_way).features is one_way.features
    assert pickle.loads(pickle.dumps(one_way)).digest() == one_way.digest()


def test_a_checkpoint_is_that_of_its_features(tmp_path):
    how = {"samples": N, "seed": 0, "checkpoint": tmp_path / "audit.journal"}
    command = ["python3", "-c", "print(1)", "{dataset}"]
    first, second = (
        em.from_command(command, features=each, batch=False) for each in (decoded, both)
    )
    settings = open_settings(AuditConfig(samples=N, seed=0, method="events"))
    keys = [
        audit_key(each, [PAIR], Question(CLAIM, judged=True), settings) for each in (first, second)
    ]
    assert keys[0] != keys[1]
    assert em.audit(em.from_batch(scrambled, features=decoded), PAIR, CLAIM, **how).is_refuted


def test_runs_in_a_row_have_features_each():
    twice = em.repeated(em.from_batch(scrambled, features=decoded), 2)
    result = em.audit(twice, PAIR, CLAIM, samples=N, seed=0)
    assert result.is_refuted
    again = em.replay(
        result, em.repeated(em.from_batch(scrambled), 2), samples=N, seed=1, features=decoded
    )
    assert again.is_refuted


@pytest.mark.parametrize(
    "how", [{"stop_early": True}, {"representation": "all"}, {"representation": "bits"}]
)
def test_other_ways_to_audit_take_features(how):
    mechanism = em.from_batch(scrambled, features=decoded)
    assert em.audit(mechanism, PAIR, CLAIM, samples=20_000, seed=0, **how).is_refuted


def test_curves_and_searches_take_features():
    mechanism = em.from_batch(scrambled, features=decoded)
    assert em.profile(mechanism, PAIR, samples=20_000, seed=0).epsilon(0.0) > 0.5
    assert em.measure(mechanism, PAIR, samples=N, seed=0).lower_bound > 0.5
    domain = em.domains.Category([0, 1])
    assert em.audit(mechanism, domain, CLAIM, samples=N, seed=0).is_refuted


def test_workers_compute_features():
    one_process, two = (
        em.audit(em.zoo.olh(), claim=CLAIM, samples=N, seed=0, jobs=jobs) for jobs in (1, 2)
    )
    assert one_process.is_refuted
    assert one_process.witness.to_dict() == two.witness.to_dict()


def test_a_class_of_the_name_of_the_shape_is_no_feature():
    own = make_dataclass("featured", ["features"])
    assert "'featured'{" in read_outputs([own(1)]).blocks[0].shape


def test_the_command_line_takes_features(tmp_path, monkeypatch):
    (tmp_path / "hashed.py").write_text(
        "import numpy as np\n"
        "def draw(x, n, rng):\n"
        "    seeds = rng.integers(0, 2**40, n)\n"
        "    return np.column_stack([seeds, (np.bitwise_count(seeds) % 2) ^ x ^ (rng.random(n) < 0.25)])\n"
        "def odd(report):\n"
        "    return (int(report[0]).bit_count() + int(report[1])) % 2 == 1\n"
    )
    monkeypatch.chdir(tmp_path)
    where = ["--batch", "--features", "hashed:odd", "--samples", str(N), "--seed", "0"]
    ask = [
        "audit",
        "hashed:draw",
        "--left",
        "0",
        "--right",
        "1",
        "--epsilon",
        ".5",
        *where,
        "--json",
        "result.json",
    ]
    assert main(ask) == 1
    stored = json.loads((tmp_path / "result.json").read_text())
    assert stored["settings"]["features"]["place"] == "hashed:odd"
    assert main(["verify", "result.json"]) == 0
    assert main(["replay", "result.json", "hashed:draw", *where]) == 1
    assert main(["replay", "result.json", "hashed:draw", "--batch"]) == 2
    (tmp_path / "audit.toml").write_text(
        'mechanism = "hashed:draw"\nbatch = true\nfeatures = "hashed:odd"\nleft = 0\nright = 1\nepsilon = 0.5\n'
        f"samples = {N}\nseed = 0\n"
    )
    assert main(["audit", "audit.toml"]) == 1
    for side in (0, 1):
        np.save(tmp_path / f"{side}.npy", scrambled(side, N, np.random.default_rng(side)))
    assert main(["compare", "0.npy", "1.npy", "--epsilon", ".5", "--features", "hashed:odd"]) == 1
    assert (
        main(
            [
                "audit",
                "hashed:draw",
                "--left",
                "0",
                "--right",
                "1",
                "--epsilon",
                "1",
                "--features",
                "odd",
            ]
        )
        == 2
    )
