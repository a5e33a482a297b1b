import numpy as np
import pytest

import webrnn
from tests.corpora.models import double, gru, total
from tests.models.fetch import Unavailable, model_path, speech_path
from webrnn.audio import plans, read_wav
from webrnn.corpora import ItemError, Mapper, Options
from webrnn.errors import ModelError, OptionError


def sequences(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, 1, 4)).astype(np.float32) for length in lengths]


def same(some, others):
    return all(
        a.outputs.keys() == b.outputs.keys() and all(np.array_equal(a[name], b[name]) for name in a.outputs)
        for a, b in zip(some, others, strict=True)
    )


def test_whole_runs_side_by_side_have_the_bits_of_runs_alone():
    items = sequences([5] * 40 + [3, 9] + [7] * 20)
    together = Mapper(gru())
    session = webrnn.InferenceSession(gru())
    for _ in range(2):
        results = together(items)
        for item, result in zip(items, results, strict=True):
            assert [a.tobytes() for a in session.run(None, {"x": item})] == [
                result["y"].tobytes(),
                result["h"].tobytes(),
            ]
    assert together._runs._pool.batched


def test_items_that_are_a_batch_already_are_run_alone():
    rng = np.random.default_rng(0)
    items = [rng.standard_normal((5, 3, 4)).astype(np.float32) for _ in range(40)]
    assert [result["h"].shape for result in Mapper(gru())(items)] == [(1, 3, 16)] * 40


def test_streams_side_by_side_have_the_bits_of_streams_alone():
    items = sequences([5, 12, 12, 1, 7, 40, 40, 41] * 6)
    how = Options(stream=True, carry="internal", frame=3)
    whole = Mapper(gru())(items)
    assert same(Mapper(gru(), how)(items), whole)
    assert same(Mapper(gru(), how, batch=1)(items), whole)


def test_named_states():
    items = [np.arange(n, dtype=np.float32) for n in (4, 5, 9)]
    results = Mapper(total(), Options(stream=True, frame=4))(items)
    assert [result["mean"].ravel().tolist() for result in results] == [[3], [3, 5], [3, 14, 18]]
    assert same(results, Mapper(total(), Options(stream=True, frame=4, carry={"sum_in": "sum_out"}), batch=1)(items))


def test_bad_items_do_not_touch_others():
    good = sequences([5] * 30)
    items = [*good[:10], np.zeros((5, 1, 3), np.float32), *good[10:20], {"z": good[0]}, *good[20:], "none.npy"]
    for options in (Options(), Options(stream=True, carry="internal", frame=2)):
        results = Mapper(gru(), options)(items)
        assert [result.index for result in results if not result.ok] == [10, 21, 32]
        assert [result.kind for result in results if not result.ok] == ["ShapeError", "ItemError", "FileNotFoundError"]
        assert same([result for result in results if result.ok], Mapper(gru(), batch=1)(good))
        with pytest.raises(ItemError, match="10: ShapeError: input 'x' has shape"):
            results[10]["y"]


def test_results_that_are_not_finite():
    items = [np.float32([1]), np.float32([3e38]), np.float32([np.inf])]
    results = Mapper(double(), Options(finite=True))(items)
    reasons = [result.reason for result in results]
    assert reasons == [None, "output 'y' is not finite", "what it has for 'x' is not finite"]
    assert all(result.ok for result in Mapper(double())(items))


def test_outputs_that_are_kept():
    (result,) = Mapper(gru(), Options(outputs=("h",)))(sequences([3]))
    assert list(result.outputs) == ["h"]
    with pytest.raises(OptionError, match="there is no output 'z'"):
        Mapper(gru(), Options(outputs=("z",)))


def test_a_result_that_is_no_array_of_numbers_is_not_kept():
    from onnx.parser import parse_model

    model = parse_model("""<ir_version: 8, opset_import: ["": 17]>
    same (string[n] x) => (string[n] y) { y = Identity(x) }""")
    (result,) = Mapper(model.SerializeToString())([np.array(["a"])])
    assert "is of type object, which is not kept" in result.reason


def test_what_is_wrong_for_all_items_raises():
    with pytest.raises(ModelError):
        Mapper(b"nonsense")
    with pytest.raises(OptionError, match="batch=0"):
        Mapper(gru(), batch=0)
    with pytest.raises(OptionError, match="say input="):
        Mapper(total())([np.zeros(3, np.float32)])


def test_it_hands_over_what_it_has_after_some_time(monkeypatch):
    from webrnn.corpora import mapper
    from webrnn.corpora.items import Item

    monkeypatch.setattr(mapper, "WINDOW_ITEMS", 4)
    items = [Item(number, str(number), item) for number, item in enumerate(sequences([2] * 10))]
    assert len(Mapper(gru()).run(items, seconds=0.0)) == 4
    monkeypatch.setattr(mapper, "MOST_RESULTS", 1)
    assert len(Mapper(gru()).run(items)) == 4
    assert len(Mapper(gru())(sequences([2] * 10))) == 10


@pytest.fixture(scope="module")
def speech():
    try:
        path = speech_path()
        for name in ("silero_v6", "dtln_1", "dtln_2"):
            model_path(name)
    except Unavailable as error:
        pytest.skip(str(error))
    return read_wav(path)[0]


def test_silero_as_the_example_has_it(speech, tmp_path):
    from examples.vad import chunks

    model = model_path("silero_v6")
    items = [speech[:16000], speech[16000:40000], speech[:700]]
    how = Options(stream=True, fixed={"sr": 16000}, frame=576, hop=512)
    results = Mapper(model, how)(items)
    plans.silero(model).export(tmp_path / "vad.rnn")
    of_plan = Mapper(tmp_path / "vad.rnn", Options(stream=True))(items)
    stream = webrnn.InferenceSession(model, fixed={"sr": 16000}).stream()
    for item, result, other in zip(items, results, of_plan, strict=True):
        stream.reset()
        expected = [stream.step({"input": chunk[None]})[0].item() for chunk in chunks([item], 16000)]
        assert result["output"].ravel().tolist() == expected == other["probability"].ravel().tolist()


def test_a_filter_gives_samples(speech, tmp_path):
    model = plans.dtln(model_path("dtln_1"), model_path("dtln_2"))
    model.export(tmp_path / "denoise.rnn")
    items = [speech[:5000], speech[5000:7003]]
    results = Mapper(tmp_path / "denoise.rnn", Options(stream=True))(items)
    for item, result in zip(items, results, strict=True):
        denoise = model.filter()
        assert np.array_equal(result["clean"], np.concatenate([denoise.push(item), denoise.flush()]))
