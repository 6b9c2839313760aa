"""`representation=` means the same in audit, measure, compare and profile, and the four share their keywords."""

import inspect
import json

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.profile import Profile
from epsilometer.cli.application import run_command
from epsilometer.outputs import BitsEvent

PAIR = em.Pair(0, 1)


def draws(x, n, rng):
    """Laplace noise; the right side went through float32 and came back."""
    noise = rng.laplace(size=n)
    return noise.astype(np.float32).astype(float) if x else noise


def sides(n=4000):
    return [draws(x, n, np.random.default_rng(x)) for x in (0, 1)]


MECHANISM = em.from_batch(draws)


def test_the_four_share_their_keywords():
    names = ("audit", "measure", "profile", "compare")
    ours = {name: set(inspect.signature(getattr(em, name)).parameters) for name in names}
    assert ours["audit"] - ours["measure"] == {"claim"}
    assert ours["audit"] - ours["profile"] == {"claim", "method", "options", "stop_early"}
    running = {
        "mechanism",
        "inputs",
        "samples",
        "jobs",
        "engine",
        "progress",
        "checkpoint",
        "record",
    }
    assert ours["audit"] - ours["compare"] == running | {"stop_early", "max_seconds"}


@pytest.mark.parametrize("representation", ["value", "bits", "all"])
def test_every_way_of_asking_sees_the_bits_when_asked(representation):
    wants = {"samples": 4000, "seed": 0, "representation": representation}
    audit = em.audit(MECHANISM, PAIR, em.PureDP(1.0), **wants)
    measure = em.measure(MECHANISM, PAIR, em.PureDP, **wants)
    compare = em.compare(*sides(), em.PureDP(1.0), seed=0, representation=representation)
    for result in (audit, measure, compare):
        assert (result.lower_bound > 2) == (representation == "bits")
        beside = [finding for finding in result.findings[1:] if finding.method == "bits"]
        assert len(beside) == (representation == "all")
        assert all(finding.lower_bound > 2 for finding in beside)
        assert result.settings.get("representation", "value") == representation
    assert audit.is_refuted == compare.is_refuted == (representation == "bits")
    if representation == "bits":
        assert isinstance(measure.witness.event, BitsEvent)
        assert em.replay(measure, MECHANISM, samples=2000, seed=1).lower_bound > 2


@pytest.mark.parametrize("representation", ["value", "bits", "all"])
def test_a_profile_of_bits(representation):
    found = em.profile(MECHANISM, PAIR, samples=4000, seed=0, representation=representation)
    assert (found.epsilon(0.0) > 2) == (representation == "bits")
    assert (found.bits is not None) == (representation == "all")
    if found.bits is not None:
        assert found.bits.epsilon(0.0) > 2
        assert found.confidence == pytest.approx(0.96)
        assert found.bits.confidence == pytest.approx(0.99)  # together 95 %
    again = Profile.from_json(found.to_json())
    assert again.to_dict() == json.loads(found.to_json())


@pytest.mark.parametrize("kind", ["list", "float32", "npy", "parquet", "jsonl", "csv"])
def test_bits_of_everything_that_can_be_compared(tmp_path, kind):
    left, right = sides(2000)
    if kind == "list":
        left, right = left.tolist(), right.tolist()
    elif kind == "float32":
        left, right = (
            right[::-1].copy(),
            right.astype(np.float32),
        )  # the same values; only the width differs
    else:
        left, right = (
            _stored(tmp_path / f"{number}.{kind}", side)
            for number, side in enumerate((left, right))
        )
    assert em.compare(left, right, em.PureDP(1.0), seed=0, representation="bits").is_refuted
    assert not em.compare(left, right, em.PureDP(1.0), seed=0).is_refuted


def _stored(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"x": values}), path)
    else:
        path.write_text("\n".join(map(repr, values.tolist())))
    return path


def test_views_go_with_the_methods_that_have_them():
    with pytest.raises(em.InputError, match="representation='hex' must be one of"):
        em.measure(MECHANISM, PAIR, em.PureDP, samples=100, representation="hex")
    with pytest.raises(em.InputError, match="goes with the method events"):
        em.compare(*sides(100), em.PureDP(1.0), method="mmd", representation="bits")
    with pytest.raises(em.InputError, match="cannot be combined with stopping early"):
        em.measure(MECHANISM, PAIR, em.PureDP, samples=100, stop_early=True, representation="bits")


def test_measure_may_stop_when_time_is_up():
    found = em.measure(
        MECHANISM, PAIR, em.PureDP, samples=2000, seed=0, stop_early=True, max_seconds=60.0
    )
    assert found.verdict is None
    assert found.findings[0].method == "sequential"


def test_a_distance_scales_what_is_claimed_and_is_noted():
    rng = np.random.default_rng(0)
    left, right = rng.laplace(0, 1, 4000), rng.laplace(2, 1, 4000)
    assert em.compare(left, right, em.PureDP(1.0), seed=0).is_refuted
    assert not em.compare(left, right, em.PureDP(1.0), seed=0, distance=2).is_refuted
    far = em.from_batch(lambda x, n, rng: 2 * x + rng.laplace(size=n))
    near, group = (em.profile(far, PAIR, samples=4000, seed=0, distance=k) for k in (1, 2))
    assert [each.check("eps=1").verdict.name for each in (near, group)] == [
        "REFUTED",
        "NOT_REFUTED",
    ]
    measured = em.measure(far, PAIR, em.PureDP, samples=4000, seed=0, distance=2)
    assert measured.settings["distance"] == 2
    with pytest.raises(em.InputError, match="distance"):
        em.measure(far, PAIR, em.PureDP, samples=4000, distance=0)


def test_a_profile_keeps_its_draws(tmp_path):
    first = em.profile(MECHANISM, PAIR, samples=1000, seed=0, record=tmp_path / "d.jsonl")
    again = em.profile(em.from_recording(tmp_path / "d.jsonl"), samples=1000, seed=0)
    assert first.band == again.band


def test_the_command_line_has_them_too(tmp_path, capsys):
    paths = [str(_stored(tmp_path / f"{number}.npy", side)) for number, side in enumerate(sides())]
    bits = ["--seed", "0", "--representation", "bits"]
    assert run_command(["compare", *paths, "--epsilon", "1", *bits]) == 1
    for command in ("measure", "profile"):
        capsys.readouterr()
        assert run_command([command, "zoo:laplace", "--samples", "4000", *bits, "--json", "-"]) == 0
        assert '"representation": "bits"' in capsys.readouterr().out
