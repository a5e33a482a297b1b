"""Resizing, sampling, affine grids, regions, columns of blocks, determinants."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.backends import BACKENDS
from tests.onnx.models import floats, initializer, integers, model
from tests.plan.harness import check_graph, graph_of
from webrnn.reference.arrays import FLOOR_OR_CEIL

SIZES = [{"n": 2, "t": 7}, {"n": 1, "t": 4}, {"n": 0, "t": 3}]
COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric", "tf_half_pixel_for_nn",
)  # fmt: skip


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _scaled(shape, *scales, **attrs):
    numbers = np.array(scales, np.float32)
    return graph_of(lambda b, x: b.op("Resize", x, None, b.constant(numbers), **attrs), shape)


def _sized(shape, *sizes, **attrs):
    return graph_of(lambda b, x: b.op("Resize", x, None, None, b.ints(*sizes), **attrs), shape)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    "attrs",
    [
        *({"mode": "nearest", "nearest_mode": how} for how in ("round_prefer_floor", "round_prefer_ceil", "floor")),
        {"mode": "nearest", "nearest_mode": FLOOR_OR_CEIL},
        {"mode": "linear"},
        {"mode": "cubic", "cubic_coeff_a": -0.5},
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    ],
)
def test_resize(attrs, coordinates):
    attrs = attrs | {"coordinate_transformation_mode": coordinates}
    for graph in (
        _scaled("f n 2 5 6", 1, 1, 0.6, 2.5, **attrs),
        _scaled("f n 2 t 4", 1, 1, 2, 0.5, **attrs),
        _sized("f 2 t 6", 2, 5, 9, **attrs),
    ):
        check_graph(graph, sizes=[*SIZES[:2], {"n": 1, "t": 5}])


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_proportions_are_kept(policy):
    attrs = {"keep_aspect_ratio_policy": policy, "axes": [3, 2], "mode": "linear"}
    check_graph(_sized("f 2 2 5 6", 8, 4, **attrs))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_region_is_resized(mode):
    def build(b, x, roi):
        return b.op(
            "Resize", x, roi, None, b.ints(4, 7), mode=mode, axes=[1, 2], extrapolation_value=9.0,
            coordinate_transformation_mode="tf_crop_and_resize",
        )  # fmt: skip

    x = array(2, 5, 6)
    nan, inf = np.nan, np.inf
    for roi in ([0, 0.2, 1, 0.9], [-0.3, 0.5, 0.7, 1.4], [1, 0, 0, 1], [0, nan, 1, 0.5], [0, 0, inf, 1], [nan] * 4):
        check_graph(graph_of(build, "f 2 5 6", "f 4"), [x, np.array(roi, np.float32)])


def test_integers_go_to_the_nearest():
    graph = graph_of(
        lambda b, x: b.op("Resize", x, None, b.constant(np.array([1, 1.7], np.float32)), nearest_mode="ceil"), "i n 5"
    )
    check_graph(graph, sizes=SIZES)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float16, np.uint8])
def test_narrow_images(backend, dtype):
    x, scales = (array(1, 2, 4) * 40).astype(dtype), np.array([1, 1, 1.5], np.float32)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for mode in ("nearest", "linear"):
        node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
        inputs = [helper.make_tensor_value_info("x", kind, ["n", 2, 4])]
        proto = model([node], inputs, [floats("y", None)], [initializer("s", scales)], opset=19)
        (y,) = webrnn.InferenceSession(proto.SerializeToString(), backend=backend).run(None, {"x": x})
        (wanted,) = webrnn.InferenceSession(proto.SerializeToString(), backend="numpy").run(None, {"x": x})
        assert y.dtype == dtype
        assert np.allclose(y, wanted, rtol=1e-3)


@pytest.mark.parametrize("shape", [("f n 3 7", "f n 5 1"), ("f n 2 4 5", "f n 3 t 2"), ("f n 2 3 4 3", "f n 2 1 t 3")])
def test_grid_sample(shape):
    for mode, padding, aligned in product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        attrs = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
        check_graph(graph_of(lambda b, x, grid: b.op("GridSample", x, grid, **attrs), *shape), sizes=SIZES[1:])  # noqa: B023


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_a_grid_of_positions_that_are_no_numbers(mode, padding):
    attrs = {"mode": mode, "padding_mode": padding}
    nan, inf = np.nan, np.inf
    grid = np.array([[nan, 0.4], [0.1, nan], [nan, nan], [inf, 0], [0, -inf], [1e30, 0], [0.2, 0.3]], np.float32)
    graph = graph_of(lambda b, x, grid: b.op("GridSample", x, grid, **attrs), "f 1 2 3 4", "f 1 n 1 2")
    y = check_graph(graph, [array(1, 2, 3, 4), grid[None, :, None]])[0][0]
    assert mode == "nearest" or np.isnan(y[:, :, :3]).all()
    assert np.isfinite(y[:, :, -1]).all()


@pytest.mark.parametrize("aligned", [0, 1])
def test_affine_grid(aligned):
    for rank, size in ((2, (3, 1, 4, 5)), (3, (3, 2, 2, 1, 4))):
        graph = graph_of(
            lambda b, theta: b.op("AffineGrid", theta, b.ints(*size), align_corners=aligned),  # noqa: B023
            f"f 3 {rank} {rank + 1}",
        )
        check_graph(graph)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions(mode, samples):
    nan = np.nan
    rois = np.array([[0.5, 1, 7, 9], [3, 4, 3.5, 4.25], [-4, -2, 30, 5], [nan, 1, 2, nan], [6, 6, 2, 2]], np.float32)
    for coordinates in ("half_pixel", "output_half_pixel"):
        graph = graph_of(
            lambda b, x, rois, images: b.op(
                "RoiAlign", x, rois, images, mode=mode, output_height=2, output_width=3, sampling_ratio=samples,
                spatial_scale=0.75, coordinate_transformation_mode=coordinates,  # noqa: B023
            ),
            "f 2 3 8 6", "f n 4", "i n",
        )  # fmt: skip
        check_graph(graph, [array(2, 3, 8, 6), rois, np.array([0, 1, -1, 1, 0], np.int64)])


def test_regions_of_images_that_are_not_there():
    node = helper.make_node("RoiAlign", ["x", "rois", "images"], ["y"])
    proto = model(
        [node], [floats("x", [2, 1, 4, 4]), floats("rois", ["n", 4]), integers("images", ["n"])], [floats("y", None)]
    )
    verdicts = set()
    for backend in BACKENDS:
        session = webrnn.InferenceSession(proto.SerializeToString(), backend=backend)
        with pytest.raises(webrnn.ShapeError) as raised:
            session.run(None, {"x": array(2, 1, 4, 4), "rois": array(1, 4), "images": np.array([2], np.int64)})
        verdicts.add(raised.value.node)
    assert len(verdicts) == 1


@pytest.mark.parametrize(
    ("kernel", "places", "attrs"),
    [
        ((4, 2, 3, 2), "4 4", {}),
        ((4, 1, 3, 2), "3 5", {"group": 2, "offset_group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}),
        ((3, 2, 2, 2), "4 3", {"dilations": [2, 2]}),
    ],
)
def test_deformed_convolution(kernel, places, attrs):
    taps, parts = kernel[2] * kernel[3], attrs.get("offset_group", 1)
    shapes = [f"f n {channels} {places}" for channels in (2 * taps * parts, taps * parts)]
    for weights in (lambda b: b.constant(array(*kernel)), None):
        graph = graph_of(
            lambda b, x, offset, mask, *w: b.op(
                "DeformConv", x, weights(b) if weights else w[0], offset, b.constant(array(kernel[0])), mask, **attrs  # noqa: B023
            ),
            "f n 2 6 5", *shapes, *([] if weights else ["f " + " ".join(map(str, kernel))]),
        )  # fmt: skip
        check_graph(graph, sizes=SIZES)


@pytest.mark.parametrize(
    ("shape", "image", "block", "attrs"),
    [
        ("n 6 12", (4, 5), (2, 3), {"pads": [0, 0, 0, 1]}),
        ("n 8 6", (6, 5), (2, 2), {"strides": [2, 2], "pads": [0, 0, 0, 0]}),
        ("n 4 9", (9,), (2,), {"dilations": [3], "pads": [1, 2]}),
        ("n 12 8", (3, 4, 3), (2, 3, 2), {}),
    ],
)
def test_columns_to_images(shape, image, block, attrs):
    check_graph(graph_of(lambda b, x: b.op("Col2Im", x, b.ints(*image), b.ints(*block), **attrs), f"f {shape}"))


def test_determinants():
    for shape in ("n 3 3", "2 n 5 5", "n 1 1", "n 0 0"):
        check_graph(graph_of(lambda b, x: b.op("Det", x), f"f {shape}"))
    singular = np.array([[[0, 1], [1, 0]], [[1, 2], [2, 4]], [[0, 0], [0, 0]]], np.float32)
    check_graph(graph_of(lambda b, x: b.op("Det", x), "f n 2 2"), [singular])
    wild = array(54, 3, 3)
    for place, number in product(range(9), (np.inf, -np.inf, np.nan)):
        wild.reshape(54, 9)[place + 9 * (0 if np.isnan(number) else 1 + (number > 0)), place] = number
        wild.reshape(54, 9)[place + 27, [place, (place + 4) % 9]] = number
    check_graph(graph_of(lambda b, x: b.op("Det", x), "f n 3 3"), [wild])


# --- what is known only while running ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_that_are_an_input(mode):
    graph = graph_of(
        lambda b, x, scales: b.op("Resize", x, None, scales, mode=mode, antialias=int(mode != "nearest")),
        "f n 2 t",
        "f 3",
    )
    scales = [np.array(each, np.float32) for each in ([1, 1, 2], [1, 0.5, 1.7], [1, 2, 0.3])]
    check_graph(graph, *([array(2, 2, 7), each] for each in scales))


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_sizes_that_are_an_input(policy):
    graph = graph_of(
        lambda b, x, sizes: b.op(
            "Resize", x, None, None, sizes, axes=[3, 2], mode="linear", keep_aspect_ratio_policy=policy
        ),
        "f n 2 5 t", "i 2",
    )  # fmt: skip
    check_graph(graph, *([array(2, 2, 5, 6), np.int64(each)] for each in ([6, 5], [9, 4], [1, 8])))


def test_image_and_block_that_are_inputs():
    graph = graph_of(lambda b, *operands: b.op("Col2Im", *operands, pads=[0, 1, 0, 0]), "f n 6 12", "i 2", "i 2")
    check_graph(graph, *([array(2, 6, 12), np.int64(a), np.int64(b)] for a, b in (([4, 5], [2, 3]), ([5, 4], [3, 2]))))


def _verdicts(node, inputs, feeds):
    """What each backend says of bad values, and whether it works afterwards."""
    proto = model([node], inputs, [floats("y", None)], opset=20).SerializeToString()
    for backend in BACKENDS:
        session = webrnn.InferenceSession(proto, backend=backend)
        for feed, is_good in feeds:
            if is_good:
                session.run(None, feed)
            else:
                with pytest.raises(webrnn.ShapeError):
                    session.run(None, feed)
        assert backend == "numpy" or "in numpy" not in session.report()


def test_scales_that_are_bad():
    x = array(2, 3)
    feeds = [
        ({"x": x, "s": np.array(s, np.float32)}, min(s) > 0 and max(s) < 9)
        for s in ([1, 2], [1, 0], [-1, 2], [1, np.inf], [2, 1])
    ]
    _verdicts(helper.make_node("Resize", ["x", "", "s"], ["y"]), [floats("x", [2, "n"]), floats("s", [2])], feeds)


def test_sizes_that_are_bad():
    feeds = [({"x": array(2, 3), "s": np.int64(s)}, min(s) >= 0) for s in ([2, 4], [2, -4], [2, 0], [3, 1])]
    _verdicts(helper.make_node("Resize", ["x", "", "", "s"], ["y"]), [floats("x", [2, "n"]), integers("s", [2])], feeds)


def test_blocks_that_do_not_fit():
    node = helper.make_node("Col2Im", ["x", "image", "block"], ["y"])
    inputs = [floats("x", [1, "c", "n"]), integers("image", [2]), integers("block", [2])]
    feeds = [
        ({"x": array(1, 6, 12), "image": np.int64(image), "block": np.int64(block)}, is_good)
        for image, block, is_good in (
            ([4, 6], [1, 3], False), ([3, 6], [1, 3], True), ([4, 6], [0, 3], False), ([3, 6], [1, 4], False),
            ([-3, 6], [1, 3], False), ([3, 4], [1, 1], True),
        )
    ]  # fmt: skip
    _verdicts(node, inputs, feeds)
