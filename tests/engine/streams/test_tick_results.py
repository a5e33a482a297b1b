import numpy as np
import pytest

import webrnn
from webrnn.engine.streams.tick_results import Group, TickResults


def group(handles, value, tickets, shape=(2,)):
    n = len(handles)
    return Group(np.array(handles), [np.full((n, *shape), value, np.float32)], np.array(tickets))


def test_one_group():
    results = TickResults([group([7, 3], 1, [0, 1])])
    assert len(results) == 2
    assert results.handles.tolist() == [7, 3]
    assert list(results.by_handle()) == [7, 3]
    assert results.by_handle()[3][0].base is results.arrays[0]


def test_several_groups_are_told_apart_and_keep_the_order_of_submission():
    results = TickResults([group([7, 3], 1, [0, 2]), group([5], 2, [1], shape=(4,))])
    assert list(results.by_handle()) == [7, 5, 3]
    assert [len(each.handles) for each in results.groups] == [2, 1]
    for name in ("arrays", "handles"):
        with pytest.raises(webrnn.ShapeError, match="2 different shapes: look at its groups"):
            getattr(results, name)


def test_nobody():
    for results in (TickResults([]), TickResults(outputs={})):
        assert len(results) == 0
        assert results.by_handle() == {}
        assert results.arrays == []
        assert results.handles.tolist() == []


def test_streams_that_ran_alone_are_put_together():
    outputs = {4: [np.float32([1, 2])], 9: [np.float32([3, 4])], 2: [np.float32([5])]}
    results = TickResults(outputs=outputs)
    assert results.by_handle() == outputs
    assert [(each.handles.tolist(), each.arrays[0].tolist()) for each in results.groups] == [
        ([4, 9], [[1, 2], [3, 4]]),
        ([2], [[5]]),
    ]


def test_outputs_of_one_number_and_none():
    results = TickResults([Group(np.array([1, 2]), [np.float32([3, 4])], np.array([0, 1]))])
    assert results.by_handle()[2][0].shape == ()
    assert TickResults([Group(np.array([1]), [], np.array([0]))]).by_handle() == {1: []}


def test_what_is_no_tensor():
    results = TickResults(outputs={0: [[np.float32([1])]]})
    assert list(results.by_handle()) == [0]
    with pytest.raises(webrnn.ModelError, match=r"tick\(\) returns what each stream gave"):
        _ = results.arrays
