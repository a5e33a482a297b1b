"""Views against numpy's strides."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from webrnn.ir import Symbol
from webrnn.plan.views import Storage, View, collapsed, dense_strides, dense_view


def each_seed(test):
    """Run a test on many seeds; a failure names its own."""

    def run():
        for seed in range(300):
            try:
                test(seed)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise

    run.__name__ = test.__name__
    return run


def elements(view: View, base: np.ndarray) -> np.ndarray:
    """What a view shows of an array."""
    return as_strided(base[view.offset :], view.shape, [stride * base.itemsize for stride in view.strides])


def random_view(rng: np.random.Generator) -> tuple[View, np.ndarray, np.ndarray]:
    """A view, its storage as an array, and numpy's view of the same elements."""
    shape = tuple(int(size) for size in rng.choice([1, 1, 2, 3, 4], rng.integers(0, 5)))
    base = np.arange(int(np.prod(shape)), dtype=np.int64)
    view, array = dense_view(Storage("arena", "i64", base.size), shape), base.reshape(shape)
    for _ in range(rng.integers(0, 5)):
        view, array = _step(rng, view, array)
    return view, base, array


def _step(rng, view, array):
    kind = rng.integers(0, 4)
    if kind == 0:
        perm = [int(a) for a in rng.permutation(view.rank)]
        return view.transposed(perm), array.transpose(perm)
    if kind == 1 and view.rank < 6:
        axis = int(rng.integers(0, view.rank + 1))
        return view.with_axis(axis), np.expand_dims(array, axis)
    if not view.rank:
        return view, array
    axis = int(rng.integers(0, view.rank))
    size = array.shape[axis]
    if kind == 2:
        index = int(rng.integers(0, size))
        return view.without_axis(axis, index), array.take(index, axis)
    step = int(rng.choice([-2, -1, 1, 2]))
    start = int(rng.integers(0, size))
    count = (size - 1 - start) // step + 1 if step > 0 else start // -step + 1
    stop = start + count * step
    cut = slice(start, None if stop < 0 else stop, step)
    return view.sliced(axis, start, count, step), array[(slice(None),) * axis + (cut,)]


@each_seed
def test_views(seed):
    view, base, array = random_view(np.random.default_rng(seed))
    assert view.shape == array.shape
    np.testing.assert_array_equal(elements(view, base), array)
    assert view.count == array.size
    if view.is_contiguous:
        np.testing.assert_array_equal(base[view.offset : view.offset + array.size], array.reshape(-1))


@each_seed
def test_reshape(seed):
    rng = np.random.default_rng(seed)
    view, base, array = random_view(rng)
    shapes = [(array.size,), tuple(s for s in array.shape if s != 1), (1, *array.shape, 1)]
    for split in (2, 3):
        if array.size % split == 0:
            shapes += [(split, array.size // split), (array.size // split, 1, split)]
    for shape in shapes:
        shaped = view.reshaped(shape)
        if shaped is not None:
            np.testing.assert_array_equal(elements(shaped, base), array.reshape(shape))
        else:
            assert not view.is_contiguous


@each_seed
def test_broadcast(seed):
    rng = np.random.default_rng(seed)
    view, base, array = random_view(rng)
    shape = tuple(int(rng.integers(1, 4)) if size == 1 else size for size in array.shape)
    shape = (*(int(size) for size in rng.integers(1, 3, rng.integers(0, 3))), *shape)
    repeated = view.broadcast(shape)
    np.testing.assert_array_equal(elements(repeated, base), np.broadcast_to(array, shape))
    if view.rank:
        assert view.broadcast(array.shape[1:]) is None
    if view.rank and array.shape[-1] > 1:
        assert view.broadcast((*shape[:-1], shape[-1] + 1)) is None


@each_seed
def test_collapse(seed):
    rng = np.random.default_rng(seed)
    view, base, array = random_view(rng)
    dense = dense_view(Storage("arena", "i64", array.size), array.shape)
    repeated = dense_view(Storage("arena", "i64", 1), ()).broadcast(array.shape)
    few = collapsed([view, dense, repeated])
    assert len({each.shape for each in few}) == 1
    assert few[0].rank <= sum(size != 1 for size in array.shape)
    np.testing.assert_array_equal(elements(few[0], base).reshape(-1), array.reshape(-1))
    np.testing.assert_array_equal(elements(few[1], np.arange(array.size)).reshape(-1), np.arange(array.size))
    assert all(stride == 0 for stride in few[2].strides)
    assert collapsed([dense])[0].rank == (1 if array.size > 1 else 0)


def test_named_sizes():
    n, m = Symbol("n"), Symbol("m")
    view = dense_view(Storage("arena", "f32", n * m * 3), (n, m, 3))
    assert view.strides == (3 * m, 3, 1)
    assert view.reshaped((n * m * 3,)).strides == (1,)
    assert view.transposed([1, 0, 2]).reshaped((n * m, 3)) is None
    assert view.transposed([1, 0, 2]).reshaped((m, 1, n, 3)).strides == (3, 0, 3 * m, 1)
    heads = dense_view(Storage("arena", "f32", n * 8 * m), (n, 8, m)).transposed([1, 2, 0])
    assert heads.reshaped((2, 4, m, n)).strides == (4 * m, m, 1, 8 * m)
    assert heads.reshaped((2, 4, m * n)) is None
    assert view.sliced(0, n - 1, n, -1).offset == 3 * m * n - 3 * m
    assert view.broadcast((n, m, 3)).strides == view.strides
    assert view.broadcast((n, n, 3)) is None
    assert collapsed([view])[0].shape == (n * m * 3,)
    assert dense_strides(()) == ()


def test_what_a_view_follows_is_seen_in_the_same_way():
    here, there = (dense_view(Storage("arena", "f32", 6), (2, 3)) for _ in range(2))
    view = here.following(there, 0).transposed([1, 0]).without_axis(0, 2)
    assert view.follows == there.transposed([1, 0]).without_axis(0, 2)
    assert view.follows_in == 0
