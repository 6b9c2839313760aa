"""Each check trips on its own fake and stays silent on healthy draws."""

from itertools import product

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import poisson

from epsilometer.bounds import Counts
from epsilometer.engine import Fingerprints, correlation_checks, repetition_checks
from epsilometer.engine.correlation_checks import check_correlation, check_order
from epsilometer.engine.fingerprints import HEAD, fingerprint, row_hashes
from epsilometer.engine.health import CHECKS, check_drift, check_identifiers, check_suppressed
from epsilometer.engine.health_statistics import (
    USUAL_DEVIATIONS,
    clustering_evidence,
    hypergeometric_tails,
)
from epsilometer.engine.repetition_checks import check_repeats
from epsilometer.errors import InputError
from epsilometer.outputs import read_outputs
from epsilometer.outputs.text_reading import DIFFERENT, GROWING, Identifier


def names(reports):
    return [report.name for report in reports]


class TestIdentifiers:
    def test_none(self):
        assert check_identifiers([]) == []

    def test_columns_that_were_left_out_are_named_together(self):
        reports = check_identifiers(
            [
                Identifier("run_id", DIFFERENT, is_used=False),
                Identifier("time", GROWING, is_used=False),
                *(Identifier(f"id{number}", DIFFERENT, is_used=False) for number in range(6)),
            ]
        )
        assert names(reports) == ["identifier-columns"] * 2
        assert not any(report.untrusted for report in reports)
        assert reports[0].message.startswith(
            "run_id, id0, id1, id2, id3 and 2 more have a different value in every output and were "
            "left out"
        )
        assert reports[1].message.startswith("time has a value that grows from output to output")

    def test_a_column_that_tells_the_inputs_apart(self):
        (report,) = check_identifiers([Identifier("run_id", DIFFERENT, is_used=True)])
        assert "tells the two inputs apart" in report.message
        assert "left out:" not in report.message


class TestSuppress:
    def test_names(self):
        assert check_suppressed(()) == frozenset()
        assert check_suppressed("drift") == {"drift"}
        assert check_suppressed(list(CHECKS)) == set(CHECKS)

    def test_unknown_name(self):
        with pytest.raises(InputError, match="'drfit' is not a health check; did you mean 'drift'"):
            check_suppressed(["drift", "drfit"])


class TestCorrelation:
    def test_trips_on_a_sticky_sequence(self, rng):
        sticky = np.repeat(rng.random(2000) < 0.5, 5)
        assert check_correlation(1, [rng.random(10_000) < 0.5]) == []
        reports = check_correlation(0, [sticky])
        assert names(reports) == ["serial-correlation"]
        assert "left" in reports[0].message
        assert reports[0].untrusted

    def test_trips_on_alternation(self):
        reports = check_correlation(1, [np.arange(1000) % 2 == 0])
        assert names(reports) == ["serial-correlation"]

    @pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 1e-3, 0.999])
    def test_silent_on_independent_draws(self, share, rng):
        for _ in range(20):
            for side in (0, 1):
                assert check_correlation(side, [rng.random(30_000) < share]) == []

    @pytest.mark.parametrize("lag", [1, 2, 3])
    @pytest.mark.parametrize("hits", [5, 9, 30])
    def test_two_rare_hits_in_a_row_are_chance(self, lag, hits):
        # Of k independent hits among n draws, some two are this close with probability k²/n: 1e-3 to 0.03 here.
        rare = np.zeros(30_000, dtype=bool)
        rare[:: 30_000 // (hits - 1)] = True
        rare[lag] = True
        assert check_correlation(0, [rare]) == []
        assert check_correlation(0, [~rare]) == []

    @pytest.mark.parametrize("n", [0, 1, 2, 29])
    def test_too_few_to_tell(self, n):
        few = np.ones(n, dtype=bool)
        assert check_correlation(0, [few]) == []

    @pytest.mark.parametrize("lag", [2, 3])
    def test_trips_where_only_outputs_further_apart_depend(self, lag, rng):
        # Every output of the first kind says what the one `lag` after it is; neighbours know nothing of each other.
        tossed = rng.random((1000, lag)) < 0.5
        hits = np.concatenate([tossed, tossed], axis=1).ravel()
        shuffled = rng.permutation(hits)
        assert check_correlation(1, [shuffled]) == []
        (report,) = check_correlation(0, [hits])
        assert report.name == "serial-correlation"
        assert f"{lag} apart" in report.message


class TestOrder:
    def test_outputs_of_a_call_that_share_a_part_of_their_noise(self, rng):
        for scale in (0.05, 0.2):
            shared = (rng.normal(size=(12, 8)) * scale + rng.normal(size=(12, 1))).ravel()
            assert names(check_order(read_outputs(shared), read_outputs(rng.normal(size=96)))) == [
                "serial-correlation"
            ]

    @pytest.mark.parametrize(
        "arranged",
        [
            np.sort,
            np.cumsum,
            lambda x: np.column_stack([x, -x]).ravel(),
            lambda x: (
                x * np.repeat([0.2, 3.0], 10)[np.arange(len(x)) % 20]
            ),  # calm and wild by turns
        ],
        ids=["sorted", "summed", "antithetic", "volatile"],
    )
    def test_trips(self, arranged, rng):
        draws = rng.normal(size=2000)
        reports = check_order(read_outputs(draws), read_outputs(arranged(draws)))
        assert names(reports) == ["serial-correlation"]
        assert "right" in reports[0].message

    def test_every_column_counts(self, rng):
        draws = rng.normal(size=(2000, 3))
        draws[:, 2] = np.sort(draws[:, 2])
        assert names(check_order(read_outputs(draws), read_outputs(draws[:, :2]))) == [
            "serial-correlation"
        ]

    @pytest.mark.parametrize("law", ["normal", "coin", "mixed", "constant", "strange", "shapes"])
    def test_silent(self, law, rng):
        draw = {
            "normal": lambda: rng.normal(size=3000),
            "coin": lambda: rng.integers(2, size=3000),
            "mixed": lambda: np.where(rng.random(3000) < 0.5, 0.0, rng.normal(size=3000)),
            "constant": lambda: np.zeros(3000),
            "strange": lambda: rng.choice([np.nan, np.inf, -np.inf, 0.0, 1.0], 3000),
            "shapes": lambda: [
                {k: rng.normal() for k in "abcdef" if rng.random() < 0.5} for _ in range(3000)
            ],
        }[law]
        for _ in range(5):
            assert check_order(read_outputs(draw()), read_outputs(draw())) == []
        assert check_order(read_outputs([]), read_outputs([1.0])) == []


def prints_of(*chunks):
    """The fingerprints of chunks of outputs of one side."""
    prints = Fingerprints()
    for chunk in chunks:
        prints.add(fingerprint(read_outputs(chunk)))
    return prints


def checked(*chunks):
    return names(check_repeats([prints_of(*chunks), Fingerprints()]))


def pieces(outputs):
    """As long as what a fingerprint remembers of a chunk."""
    return [outputs[start : start + HEAD] for start in range(0, len(outputs), HEAD)]


class TestRepeats:
    def test_chunks_of_any_length_that_beginclustering_evidence(self, rng):
        draws = rng.normal(size=100)
        assert checked(draws[:30], draws[:64], draws[:6]) == ["repeated-chunks"]
        assert checked(*(draws[:n] for n in (40, *[2] * 20))) == ["repeated-chunks"]
        assert checked(*(rng.normal(size=n) for n in (40, *[2] * 20))) == []

    def test_a_run_that_comes_back_anywhere(self, rng):
        draws = rng.normal(size=(30, 64))
        draws[20, 13:40] = draws[7, 30:57]
        assert checked(*draws) == ["repeated-chunks"]
        assert checked(*rng.normal(size=(30, 64))) == []

    @pytest.mark.parametrize(("n_copies", "n_values"), [(2, 100), (3, 60), (8, 50), (20, 40)])
    def test_copies_in_any_order(self, n_copies, n_values, rng):
        copied = np.repeat(rng.normal(size=n_values), n_copies)
        assert checked(*pieces(rng.permutation(copied))) == ["repeated-chunks"]
        joined = np.append(copied, rng.normal(size=n_values // 3))
        assert checked(*pieces(rng.permutation(joined))) == ["repeated-chunks"]

    @pytest.mark.parametrize("n", [40, 400, 20_000])
    @pytest.mark.parametrize("n_values", [2, 10, 100, 300, 5000])
    def test_independent_draws_of_few_values_are_no_copies(self, n_values, n, rng):
        assert checked(*pieces(rng.integers(n_values, size=n))) == []
        assert checked(*pieces(rng.geometric(1.0 / n_values, size=n))) == []

    def test_no_bet_on_copies_can_be_expected_to_win(self):
        rates = np.geomspace(1e-3, 200.0, 2000)[:, None]
        for k in range(2, repetition_checks._MAX_COPIES + 1):
            below, at, above = (poisson.pmf(count, rates) for count in (k - 1, k, k + 1))
            for lost in repetition_checks._LOST_PARTS:
                others = repetition_checks._LOST_PARTS
                won = 2.0 * np.sqrt(lost * others * k / (k + 1))
                assert np.all(at * won - below * lost - above * others <= 1e-15)

    def test_a_coin_that_is_tossed_with_the_same_seed(self, rng):
        frozen = rng.integers(2, size=64)
        assert "repeated-chunks" in checked(*[frozen] * 10)
        assert checked(*rng.integers(2, size=(10, 64))) == []

    def test_one_of_a_hundred_seeds_at_a_time(self, rng):
        seeds = rng.integers(100, size=60)
        assert checked(*(np.random.default_rng(seed).normal(size=64) for seed in seeds)) == [
            "repeated-chunks"
        ]

    def test_so_many_pairs_of_runs_that_some_are_equal_by_chance(self, rng):
        # Two runs of 15 outputs of four kinds are equal once in 1e9 pairs, and here are 2e9 pairs.
        chunks = rng.integers(4, size=(512, 128))
        longest = np.lib.stride_tricks.sliding_window_view(chunks, 15, axis=1).reshape(-1, 15)
        assert len(np.unique(longest @ 4 ** np.arange(15))) < len(longest)
        assert checked(*chunks) == []

    @pytest.mark.parametrize(
        "kind", ["constant", "two shapes", "rare", "optional keys", "partitions"]
    )
    def test_outputs_that_coincide_as_a_matter_of_course(self, kind, rng):
        draw = {
            "constant": lambda: "a",
            "two shapes": lambda: None if rng.random() < 0.2 else "a",
            "rare": lambda: int(rng.random() < 1e-3),
            "optional keys": lambda: {f"k{i}": 1 for i in range(40) if rng.random() < 0.5},
            "partitions": lambda: [name for name in "abcd" if rng.random() < 0.9],
        }[kind]
        assert checked(*([draw() for _ in range(64)] for _ in range(40))) == []

    def test_a_draw_that_is_handed_out_several_times(self, rng):
        assert "serial-correlation" in checked(*(np.full(64, each) for each in rng.normal(size=40)))
        assert "serial-correlation" in checked(
            *(np.full(n, each) for n, each in ((30, 0.1), (64, 0.2), (6, 0.3)))
        )
        assert "serial-correlation" in checked(
            *(np.repeat(each, 2) for each in rng.normal(size=(5, 12)))
        )
        assert checked(*(np.tile(each, 2) for each in rng.normal(size=(5, 32)))) == [
            "repeated-chunks"
        ]

    @pytest.mark.parametrize("times", [2, 3, 4, 8])
    def test_draws_that_come_again_in_their_own_chunk_at_any_place(self, times, rng):
        again = [np.repeat(rng.normal(size=8 // times), times) for _ in range(10)]
        assert "serial-correlation" in checked(*(rng.permutation(each) for each in again))
        again = [np.repeat(rng.normal(size=64 // times), times) for _ in range(12)]
        assert "serial-correlation" in checked(*(rng.permutation(each) for each in again))

    @pytest.mark.parametrize("values", [3, 50, 1000])
    def test_equal_outputs_are_no_twins_of_their_chunk(self, values, rng):
        for n in (8, 64, 300):
            assert checked(*(rng.integers(values, size=n).astype(float) for _ in range(30))) == []

    def test_short_chunks_that_bring_outputs_back_in_the_same_order(self, rng):
        seeds = rng.integers(3, size=12)
        assert checked(*(np.random.default_rng(seed).normal(size=5) for seed in seeds)) == [
            "repeated-chunks"
        ]
        stream = rng.normal(size=200)
        copies = [stream[at : at + 5] for at in rng.integers(190, size=200)]
        assert "repeated-chunks" in checked(*copies)
        for kinds in (6, 30, 1000):
            assert (
                checked(*rng.integers(kinds, size=(60, 8)))
                == checked(*rng.integers(kinds, size=(60, 64)))
                == []
            )

    def test_little_and_nothing(self):
        assert check_repeats([Fingerprints(), Fingerprints()]) == []
        assert checked([1.0]) == checked([1.0], [1.0]) == checked([1.0, 2.0], [1.0, 2.0]) == []

    @pytest.mark.parametrize("law", ["normal", "coin", "geometric", "label"])
    def test_silent_on_independent_draws(self, law, rng):
        draw = {
            "normal": lambda: rng.normal(size=(80, 100)),
            "coin": lambda: (rng.random((80, 100)) < 0.97).astype(int),
            "geometric": lambda: rng.geometric(0.4, size=(80, 100)),
            "label": lambda: rng.choice(["a", "b", "c"], (80, 100)),
        }[law]
        for _ in range(10):
            assert check_repeats([prints_of(*draw()), prints_of(*draw())]) == []


class TestDrift:
    def test_trips_on_a_moving_share(self):
        moving = [Counts(hits, 1000) for hits in (100, 150, 200, 300, 400, 500)]
        steady = [Counts(250, 1000)] * 6
        reports = check_drift([steady, moving])
        assert names(reports) == ["drift"]
        assert "right" in reports[0].message
        assert reports[0].untrusted

    def test_trips_on_a_share_that_comes_and_goes(self):
        waves = [Counts(hits, 1000) for hits in (200, 500, 200, 500, 200, 500, 200, 500)]
        assert names(check_drift([waves, []])) == ["drift"]

    @pytest.mark.parametrize("share", [0.5, 0.03, 1e-3])
    def test_silent_on_independent_draws(self, share, rng):
        for _ in range(20):
            chunks = [Counts(int(rng.binomial(2000, share)), 2000) for _ in range(30)]
            assert check_drift([chunks, chunks]) == []

    def test_trips_on_small_chunks_whose_share_comes_and_goes(self, rng):
        shares = np.where(np.arange(200) % 2 == 0, 0.05, 0.25)
        small = [Counts(int(rng.binomial(64, share)), 64) for share in np.repeat(shares, 3)]
        assert names(check_drift([small, []])) == ["drift"]
        steady = [Counts(int(rng.binomial(64, 0.15)), 64) for _ in range(600)]
        assert check_drift([steady, []]) == []

    def test_trips_on_two_chunks_and_on_rare_events(self, rng):
        # Nothing is approximate, so neither the chunks nor the expected hits need to be many.
        assert names(check_drift([[Counts(0, 40), Counts(1, 1), Counts(40, 40)], []])) == ["drift"]
        rare = [Counts(12 if place in (3, 90) else 0, 64) for place in range(100)]
        assert names(check_drift([rare, []])) == ["drift"]
        assert check_drift([[Counts(int(place % 37 == 0), 64) for place in range(100)], []]) == []

    def test_the_evidence_of_any_order_is_a_fair_bet(self):
        pieces = [np.array(list(each)) for each in product(range(5), repeat=3)]
        for hits in range(13):
            tables = [each for each in pieces if each.sum() == hits]
            chances = [float(comb(4, each).prod() / comb(12, hits)) for each in tables]
            worth = [
                np.exp(clustering_evidence(np.stack([each, 4 - each], axis=1))) for each in tables
            ]
            assert np.dot(chances, worth) <= 1.0 + 1e-9

    def test_one_hit_in_a_last_chunk_of_one_is_chance(self):
        # Its probability is the event's own: 1.5 %.
        assert check_drift([[Counts(1000, 65_536), Counts(1, 1)], []]) == []
        assert check_drift([[Counts(65, 65_536), Counts(1, 5)], []]) == []

    def test_nothing_and_little(self):
        assert check_drift([[], [Counts(1, 1)]]) == []
        assert check_drift([[Counts(0, 0)] * 4, [Counts(3, 3), Counts(0, 3)]]) == []


def test_row_hashes_know_equal_outputs():
    hashes = row_hashes(
        read_outputs([1.0, "1", (1.0, "x"), None, 1.0, "1", (1.0, "x"), None, (1.0, "y"), 1])
    )
    assert np.array_equal(hashes[:4], hashes[4:8])
    assert len(set(hashes.tolist())) == 6


def slow_followed(hits, lag):
    order = np.concatenate([hits[start::lag] for start in range(lag)])
    return int(np.count_nonzero(order[1:] & order[:-1]))


def test_neighbours_a_lag_apart_are_counted_as_if_they_were_laid_out(monkeypatch):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 7, 100, 101, 102):
        hits, seen = rng.random(n) < 0.6, []
        hits[0] = hits[-1] = True
        monkeypatch.setattr(
            correlation_checks,
            "hypergeometric_tails",
            lambda followed, *rest, seen=seen: seen.append(followed) or 1.0,
        )
        check_correlation(0, [hits])
        if np.count_nonzero(hits) > 1:
            assert seen == [slow_followed(hits, lag) for lag in (1, 2, 3)]


def test_no_tail_within_the_usual_spreads_would_be_an_alarm():
    """The shortcut never hides an alarm: all small populations, and some large ones."""
    sizes = [
        (population, marked, drawn)
        for population in range(1, 24)
        for marked in range(population + 1)
        for drawn in range(population + 1)
    ]
    sizes += [
        (10_000, marked, drawn)
        for marked in (1, 3, 10, 100, 1600)
        for drawn in (1, 3, 10, 100, 1600, 9000, 9999)
    ]
    for population, marked, drawn in sizes:
        mean = drawn * marked / population
        variance = (
            mean * (1.0 - marked / population) * (population - drawn) / max(population - 1, 1)
        )
        for seen in range(max(0, drawn + marked - population), min(marked, drawn) + 1):
            if abs(seen - mean) < USUAL_DEVIATIONS * np.sqrt(variance) and abs(seen - mean) > (
                USUAL_DEVIATIONS - 0.5
            ) * np.sqrt(variance):
                assert hypergeometric_tails(seen, population, marked, drawn) > 1e-6
