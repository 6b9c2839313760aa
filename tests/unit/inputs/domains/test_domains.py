"""Which datasets a domain makes, and what it refuses."""

import math

import numpy as np
import pytest
import scipy.stats

import epsilometer as em
from epsilometer import InputError, domains

MIDDLE = 0.5


def test_a_number_and_its_neighbour():
    pair = domains.Number(0, 10, sensitivity=1).neighbours("replace").pair([MIDDLE, 1.0])
    assert (pair.left, pair.right) == (5.0, 6.0)
    assert isinstance(pair.left, float)


def test_numbers_without_sensitivity_lie_anywhere():
    pair = domains.Number(0, 10).neighbours("linf").pair([0.0, 1.0])
    assert (pair.left, pair.right) == (0.0, 10.0)


def test_a_whole_number_and_its_neighbour():
    pair = domains.Integer(0, 10, sensitivity=2).neighbours("l1").pair([MIDDLE, 0.0])
    assert (pair.left, pair.right) == (5, 3)
    assert isinstance(pair.right, int)


def test_equal_numbers_are_driven_apart():
    assert domains.Number(0, 1).neighbours("replace").pair([0.0, 0.0]).right == 1.0
    assert domains.Integer(0, 9, sensitivity=1).neighbours("replace").pair([1.0, 1.0]).right == 8


def test_two_categories():
    pair = domains.Category(["a", "b", "c"]).neighbours("replace").pair([0.4, 0.4])
    assert (pair.left, pair.right) == ("b", "c")


@pytest.mark.paper("C1", "equal")
def test_one_number_of_a_vector_is_replaced():
    pair = domains.Vector(3, low=0, high=1).neighbours("replace").pair([0.0, 0.0, 1.0, MIDDLE, 0.4])
    assert pair.left == [0.0, 0.0, 1.0]
    assert pair.right == [0.0, MIDDLE, 1.0]


@pytest.mark.paper("C1", "equal")
def test_one_number_of_a_vector_is_left_out():
    pair = domains.Vector(3).neighbours("add-remove").pair([0.0, MIDDLE, 1.0, 0.4])
    assert (pair.left, pair.right) == ([0.0, MIDDLE, 1.0], [0.0, 1.0])


def test_the_only_number_can_be_missing():
    pair = domains.Vector(1).neighbours("add-remove").pair([1.0])
    assert (pair.left, pair.right) == ([1.0], [])


def test_every_number_of_a_vector_moves():
    neighbours = domains.Vector(2, low=0, high=1, sensitivity=0.25).neighbours("linf")
    pair = neighbours.pair([MIDDLE, MIDDLE, 0.0, 1.0])
    assert (pair.left, pair.right) == ([0.5, 0.5], [0.25, 0.75])


def test_answers_share_their_sensitivity():
    pair = domains.Queries(2, low=0, high=10).neighbours("l1").pair([MIDDLE, MIDDLE, 0.0, 1.0])
    assert (pair.left, pair.right) == ([5.0, 5.0], [4.5, 5.5])


def test_whole_answers_move_by_whole_steps():
    pair = (
        domains.Queries(2, low=0, high=10, whole=True)
        .neighbours("l1")
        .pair([MIDDLE, MIDDLE, 0.0, 0.66])
    )
    assert (pair.left, pair.right) == ([5, 5], [4, 5])


def test_answers_stay_in_their_interval():
    pair = domains.Queries(2, low=0, high=10).neighbours("linf").pair([0.0, 1.0, 0.0, 1.0])
    assert min(pair.right) >= 0.0
    assert max(pair.right) <= 10.0
    assert pair.left != pair.right


def test_rows_of_a_table():
    table = domains.Table(
        {"age": domains.Integer(0, 4), "ill": domains.Category(["no", "yes"])}, rows=2
    )
    point = [0.0, 0.0, 1.0, 1.0, MIDDLE, 0.0, 0.9]
    pair = table.neighbours("replace").pair(point)
    assert pair.left == [{"age": 0, "ill": "no"}, {"age": 4, "ill": "yes"}]
    assert pair.right == [{"age": 0, "ill": "no"}, {"age": 2, "ill": "no"}]


@pytest.mark.parametrize(
    "make",
    [
        lambda: domains.Number(math.nan, 1),
        lambda: domains.Number(0, math.inf),
        lambda: domains.Number(1, 1),
        lambda: domains.Number(2, 1),
        lambda: domains.Number(0, 1, sensitivity=0),
        lambda: domains.Number(0, 1, sensitivity=math.nan),
        lambda: domains.Number("0", 1),
        lambda: domains.Integer(3, 3),
        lambda: domains.Integer(0, 1.5),
        lambda: domains.Integer(0, 3, sensitivity=0),
        lambda: domains.Category([]),
        lambda: domains.Category("abc"),
        lambda: domains.Category([1, 2, 1]),
        lambda: domains.Vector(0),
        lambda: domains.Vector(-1),
        lambda: domains.Vector(2.5),
        lambda: domains.Vector(True),
        lambda: domains.Vector(2, low=0, high=math.nan),
        lambda: domains.Vector(2, low=0, high=1.5, whole=True),
        lambda: domains.Queries(0),
        lambda: domains.Queries(3, low=5, high=5),
        lambda: domains.Table({}, rows=2),
        lambda: domains.Table({"a": domains.Number(0, 1)}, rows=0),
        lambda: domains.Table({"a": [0, 1]}, rows=2),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize(
    ("domain", "relation"),
    [
        (domains.Category(["only"]), "replace"),
        (domains.Table({"a": domains.Category(["only"])}, rows=3), "replace"),
        (domains.Queries(2, low=0, high=4, sensitivity=0.5, whole=True), "linf"),
    ],
)
def test_a_domain_without_neighbours_says_so(domain, relation):
    with pytest.raises(InputError, match=r"no.* neighbour"):
        domain.neighbours(relation)


def test_a_row_of_one_kind_can_still_be_missing():
    pair = (
        domains.Table({"a": domains.Category(["only"])}, rows=2)
        .neighbours("add-remove")
        .pair([0.0, 0.0, 0.0])
    )
    assert (len(pair.left), len(pair.right)) == (2, 1)


def test_relations_are_explained():
    with pytest.raises(InputError, match="known are 'replace', 'add-remove', 'user'"):
        domains.Vector(3).neighbours("substitute")
    with pytest.raises(InputError, match="for answers of queries: allowed here is 'linf', 'l1'"):
        domains.Queries(3).neighbours("replace")


@pytest.mark.paper("C32", "equal")
def test_canaries_are_uniform_on_the_sphere():
    """Section 5: any direction is as likely as any other, and the norm is always the full one."""
    d, n = 5, 4000
    records = domains.Records(domains.Sphere(d), size=1)
    finder = em.finders.Random(records, "add-remove", trials=n, seed=3)
    canaries = []
    while (pair := finder.ask()) is not None:
        assert pair.right == []
        canaries.append(pair.left[0])
        finder.tell(None)
    canaries = np.array(canaries)
    assert np.allclose(np.linalg.norm(canaries, axis=1), 1.0)
    # A coordinate of a uniform direction in d dimensions is 2B − 1 with B ~ Beta((d − 1)/2, (d − 1)/2).
    law = scipy.stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1.0, scale=2.0)
    rotated = canaries @ scipy.stats.ortho_group.rvs(d, random_state=1)
    for column in (*canaries.T, *rotated.T):
        assert scipy.stats.kstest(column, law.cdf).pvalue > 1e-10


@pytest.mark.paper("C32", "equal")
def test_uniform_search_keeps_canaries_uniform():
    sphere = domains.Sphere(3)
    points = [
        finder.next_point(4)
        for finder in (em.finders.Random(sphere), em.finders.Random(sphere, uniform=True))
    ]
    assert np.array_equal(*points)


@pytest.mark.parametrize(
    ("record", "inside"),
    [
        ((0.6, 0.8), True),
        ([0.6, -0.8], True),
        ((0.6, 0.9), False),
        ((1.0,), False),
        ((math.nan, 1.0), False),
        (("a", 1.0), False),
        (1.0, False),
    ],
)
def test_a_sphere_knows_its_vectors(record, inside):
    assert domains.Sphere(2).contains(record) == inside


def test_the_middle_of_the_cube_is_a_vector_too():
    sphere = domains.Sphere(2, radius=3.0)
    assert sphere.record([0.5, 0.5]) == (3.0, 0.0)
    assert sphere.other([0.5, 0.5], (3.0, 0.0)) == (-3.0, -0.0)
    assert sphere.contains(sphere.record([0.0, 1.0]))


def test_a_sphere_is_read_from_text():
    from epsilometer.inputs.finders.plain import read_domain

    assert read_domain("sphere:16") == domains.Sphere(16)
    assert read_domain("records:sphere:4:2.5") == domains.Records(domains.Sphere(4, 2.5))


class TestCategoryOfArrays:
    def test_arrays_and_what_holds_them_can_be_its_values(self):
        low = np.zeros(3)
        high = np.ones(3)
        domain = em.domains.Category([low, high])
        pair = domain.neighbours("replace").pair((0.0, 0.9))
        assert pair.left.tolist() != pair.right.tolist()
        assert domain.contains(np.ones(3))
        assert not domain.contains(np.full(3, 2.0))
        rows = em.domains.Category([{"a": low}, {"a": high}])
        assert rows.contains({"a": np.zeros(3)})

    def test_an_array_that_is_named_twice_is_refused(self):
        with pytest.raises(em.InputError, match="names a value twice"):
            em.domains.Category([np.zeros(3), np.zeros(3)])

    def test_a_search_finds_the_leak_between_two_arrays(self):
        arrays = em.domains.Category([np.zeros(3), np.ones(3)])
        result = em.audit(noisy_sums, arrays, em.PureDP(0.5), samples=2000, seed=0)
        assert result.is_refuted


@em.from_batch
def noisy_sums(array, n, rng):
    return array.sum() + rng.laplace(size=n)
