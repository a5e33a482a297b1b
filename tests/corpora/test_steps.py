import numpy as np
import pytest

from webrnn.corpora.errors import ItemError
from webrnn.corpora.options import Options
from webrnn.corpora.steps import Cutter, Joiner
from webrnn.errors import OptionError
from webrnn.ir import DType, Symbol, Value
from webrnn.ir.timing import TimedOutput, Timing

SAMPLES = Value("x", DType.FLOAT, (1, Symbol("n")))
FEATURES = Value("x", DType.FLOAT, (1, Symbol("n"), 7))
UNCLEAR = Value("x", DType.FLOAT, (1, Symbol("n"), Symbol("m")))
STEPS_FIRST = Value("x", DType.FLOAT, (Symbol("steps"), Symbol("batch"), 4))
TIMED = Timing(2, {"x": 1}, {"y": TimedOutput(axis=1, rate=1)})


def cutter(value=SAMPLES, timing=None, audio=None, **options):
    return Cutter(Options(stream=True, **options), [value], timing, audio or {})


def frames(length, **how):
    steps = cutter(**how).cut({"x": np.arange(1, length + 1, dtype=np.float32)[None]})
    return [steps[number]["x"][0].tolist() for number in range(len(steps))]


def test_what_is_left_at_the_end():
    assert frames(5, frame=2) == [[1, 2], [3, 4], [5, 0]]
    assert frames(5, frame=2, remainder="keep") == [[1, 2], [3, 4], [5]]
    assert frames(5, frame=2, remainder="drop") == [[1, 2], [3, 4]]
    assert frames(4, frame=2) == [[1, 2], [3, 4]]


def test_frames_that_overlap_begin_with_zeros():
    assert frames(5, frame=3, hop=2) == [[0, 1, 2], [2, 3, 4], [4, 5, 0]]
    assert frames(5, frame=3, hop=2, remainder="drop") == [[0, 1, 2], [2, 3, 4]]


def test_without_frames_an_item_is_one_step():
    assert frames(5) == [[1, 2, 3, 4, 5]]


def test_what_the_model_fixes_is_a_frame():
    assert frames(3, value=Value("x", DType.FLOAT, (1, 2)), time={"x": 1}) == [[1, 2], [3, 0]]


def test_a_plan_of_audio_says_what_its_frames_are():
    audio = {"frame": 3, "hop": 2}
    assert frames(4, audio=audio) == [[0, 1, 2], [2, 3, 4]]
    assert frames(4, audio=audio, frame=4) == [[1, 2, 3, 4]]


def test_items_that_cannot_be_cut():
    with pytest.raises(ItemError, match="it is empty"):
        frames(0, frame=2)
    with pytest.raises(ItemError, match="shorter than one frame: 1, not 2"):
        frames(1, frame=2, remainder="drop")
    cut = Cutter(Options(stream=True, time={"x": 1, "z": 0}), [SAMPLES, Value("z", DType.FLOAT, (None,))], None, {})
    with pytest.raises(ItemError, match="different lengths"):
        cut.cut({"x": np.zeros((1, 3), np.float32), "z": np.zeros(2, np.float32)})
    with pytest.raises(ItemError, match="there is no axis 1"):
        cutter().cut({"x": np.zeros(3, np.float32)})


def test_which_axis_is_time():
    assert cutter(FEATURES, frame=2).cut({"x": np.zeros((1, 5, 7), np.float32)})[0]["x"].shape == (1, 2, 7)
    assert len(cutter(UNCLEAR, time={"x": 2}, frame=2).cut({"x": np.zeros((1, 9, 4), np.float32)})) == 2
    with pytest.raises(OptionError, match="not 'z'"):
        cutter(time={"z": 1})
    with pytest.raises(OptionError, match="'x' has 2 axes, there is no axis 3"):
        cutter(time={"x": 3})


@pytest.mark.parametrize(
    "value", [UNCLEAR, STEPS_FIRST, Value("x", DType.FLOAT, (None, None)), Value("x", DType.FLOAT)]
)
def test_an_axis_that_is_not_clear_is_never_guessed(value):
    unclear = cutter(value, frame=2)
    with pytest.raises(OptionError, match=r"along which axis to cut .* is not clear: say time="):
        unclear.cut({"x": np.zeros((1, 9, 4), np.float32)})
    assert len(unclear.cut({"x": np.zeros((1, 1, 9), np.float32)}, ["x"])) == 5, "a signal has one axis"
    assert len(cutter(value).cut({"x": np.zeros((3, 9, 4), np.float32)})) == 1, "nothing is cut"


def test_several_inputs():
    fed = [SAMPLES, Value("z", DType.FLOAT, (3,))]
    feeds = {"x": np.zeros((1, 4), np.float32), "z": np.zeros(3, np.float32)}
    with pytest.raises(OptionError, match="is not clear"):
        Cutter(Options(stream=True, frame=2), fed, None, {}).cut(feeds)
    for how in ({"time": {"x": 1}}, {"input": "x"}):
        steps = Cutter(Options(stream=True, frame=2, **how), fed, None, {}).cut(feeds)
        assert [feed.shape for feed in steps[1].values()] == [(1, 2), (3,)]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"hop": 2}, "say frame="),
        ({"frame": 3, "timing": TIMED}, "a multiple of 2"),
        ({"frame": 4, "hop": 2, "timing": TIMED}, "frames overlap"),
        ({"frame": 4, "hop": 2, "remainder": "keep"}, "do not overlap"),
    ],
)
def test_options_that_do_not_fit_the_stream(how, said):
    with pytest.raises(OptionError, match=said):
        cutter(**how)


def joined(parts, **options):
    cut = cutter(**options)
    return Joiner(Options(stream=True, **options), ["y"], None, cut).joined([[np.float32(part)] for part in parts], 3)[
        "y"
    ]


def test_results_are_stacked_or_joined():
    assert joined([[1, 2], [3, 4]], frame=2).tolist() == [[1, 2], [3, 4]]
    assert joined([[1, 2], [3]], frame=2, join=0).tolist() == [1, 2, 3]
    with pytest.raises(ItemError, match="do not fit together"):
        joined([[1, 2], [3]], frame=2)


def test_results_are_added_up():
    assert joined([[0, 1], [1, 2], [2, 3], [3, 0]], frame=2, hop=1, join="overlap").tolist() == [2, 4, 6]
    with pytest.raises(OptionError, match="not a frame of 2 samples"):
        joined([[1]], frame=2, hop=1, join="overlap")
    with pytest.raises(OptionError, match="say frame= and hop="):
        joined([[1]], join="overlap")


def test_a_timed_stream_knows_its_axis():
    cut = cutter(timing=TIMED)
    parts = [[np.zeros((1, n, 3))] for n in (0, 2, 1)]
    assert Joiner(Options(stream=True), ["y"], TIMED, cut).joined(parts, 0)["y"].shape == (1, 3, 3)
    last = Joiner(Options(stream=True), ["final"], TIMED, cut).joined([[np.zeros(1)], [np.ones(1)]], 0)
    assert last["final"].tolist() == [1]
    with pytest.raises(OptionError, match="join= is for streams whose states have names"):
        Joiner(Options(stream=True, join=1), ["y"], TIMED, cut)
