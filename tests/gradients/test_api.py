"""What `webrnn.gradient` takes and gives."""

import numpy as np
import pytest
from onnx import helper

import webrnn
from tests.onnx.models import floats, initializer, integers, model
from webrnn.gradients.api import derive

X = np.float32([[1, 2, 3], [4, 5, 6]])
W = np.float32([[1, 0], [0, 2], [1, 1]])


def _linear(*extra, outputs=("y", "loss")):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0),
        *extra,
    ]
    shapes = {"y": ["n", 2], "loss": []}
    made = [floats(name, shapes.get(name)) for name in outputs]
    return model(nodes, [floats("x", ["n", 3])], made, [initializer("w", W)]).SerializeToString()


def _run(graph, **feeds):
    session = webrnn.InferenceSession(graph, backend="numpy")
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds), strict=True))


def test_inputs_and_weights():
    found = _run(webrnn.gradient(_linear(), "loss", ["x", "w"]), x=X)
    assert list(found) == ["loss", "x_grad", "w_grad"]
    np.testing.assert_array_equal(found["x_grad"], np.ones((2, 2)) @ W.T)
    np.testing.assert_array_equal(found["w_grad"], X.T @ np.ones((2, 2)))


def test_all_weights():
    assert list(_run(webrnn.gradient(_linear(), "loss"), x=X)) == ["loss", "w_grad"]


def test_outputs_that_stay():
    found = _run(webrnn.gradient(_linear(), "loss", outputs=["y"]), x=X)
    assert list(found) == ["loss", "y", "w_grad"]
    np.testing.assert_array_equal(found["y"], X @ W)


def test_a_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(_linear())
    assert list(_run(webrnn.gradient(path, "loss"), x=X)) == ["loss", "w_grad"]


def test_what_the_loss_does_not_depend_on_has_zeros():
    nodes = [helper.make_node("ReduceSum", ["x"], ["loss"], keepdims=0)]
    proto = model(nodes, [floats("x", ["n", 3]), floats("z", ["m"])], [floats("loss", [])]).SerializeToString()
    found = _run(webrnn.gradient(proto, "loss", ["z"]), x=X, z=np.float32([1, 2]))
    assert found["z_grad"].tolist() == [0, 0]


def test_a_weight_that_is_used_twice():
    extra = [helper.make_node("MatMul", ["x", "w"], ["again"]), helper.make_node("Mul", ["again", "y"], ["product"])]
    extra.append(helper.make_node("ReduceSum", ["product"], ["total"], keepdims=0))
    found = _run(webrnn.gradient(_linear(*extra, outputs=["total"]), "total"), x=X)
    np.testing.assert_allclose(found["w_grad"], X.T @ (2 * X @ W))


def test_a_loss_of_ours():
    graph = webrnn.gradient(_linear(), "mse", ["x", "w"], prediction="y")
    target = np.float32([[1, 2], [3, 4]])
    found = _run(graph, x=X, target=target)
    difference = X @ W - target
    np.testing.assert_allclose(found["loss"], (difference**2).mean())
    np.testing.assert_allclose(found["w_grad"], X.T @ difference / 2)


def test_a_mask():
    graph = webrnn.gradient(_linear(), "mse", ["x"], prediction="y", mask=True)
    target = np.float32([[1, 2], [3, 4]])
    found = _run(graph, x=X, target=target, mask=np.float32([0, 1]))
    difference = (X @ W - target)[1]
    np.testing.assert_allclose(found["loss"], (difference**2).mean())
    np.testing.assert_allclose(found["x_grad"], [np.zeros(3), W @ difference])


def test_a_loss_of_the_caller():
    def product(b, prediction, target):
        return b.op("ReduceSum", b.op("Mul", prediction, target), keepdims=0)

    target = np.float32([[1, 2], [3, 4]])
    found = _run(webrnn.gradient(_linear(), product, ["x"], prediction="y"), x=X, target=target)
    np.testing.assert_allclose(found["x_grad"], target @ W.T)


def test_weights_as_inputs():
    found = derive(_linear(), "loss", ["x", "w"])
    assert found.gradients == {"x": "x_grad", "w": "w_grad"}
    assert found.loss == "loss"
    np.testing.assert_array_equal(found.weights["w"], W)
    results = _run(found.graph, x=X, w=2 * W)
    np.testing.assert_array_equal(results["x_grad"], np.ones((2, 2)) @ (2 * W).T)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "gone"}, "'gone' is neither an output"),
        ({"loss": "loss", "wrt": ["gone"]}, "there is no input or weight 'gone'"),
        ({"loss": "loss", "wrt": ["gone"]}, "there are 'x', 'w'"),
        ({"loss": "loss", "wrt": "w"}, "wrt is 'w'; it is a list of names"),
        ({"loss": "loss", "wrt": 3}, "wrt is 3; it is a list of names"),
        ({"loss": "loss", "outputs": "y"}, "outputs is a list of names"),
        ({"loss": "loss", "truncate": 0}, "truncate is 0"),
        ({"loss": "loss", "every": 1.5}, "every is 1.5"),
        ({"loss": "loss", "prediction": "y"}, "prediction and mask are for a loss that webrnn adds"),
        ({"loss": "mse"}, "prediction names the output that the loss is of"),
        ({"loss": "loss", "outputs": ["gone"]}, "the model has no output 'gone'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(webrnn.OptionError, match=message):
        webrnn.gradient(_linear(), **arguments)


def test_a_loss_is_one_number():
    with pytest.raises(webrnn.ShapeError, match="has to be one floating-point number"):
        webrnn.gradient(_linear(), "y", ["x"])


def test_with_respect_to_a_target():
    target = np.float32([[1, 2], [3, 4]])
    found = _run(webrnn.gradient(_linear(), "mse", ["target"], prediction="y"), x=X, target=target)
    np.testing.assert_allclose(found["target_grad"], (target - X @ W) / 2)


def test_names():
    """A value inside gives way to what is added; an input of the model does not."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["w_grad"]),
        helper.make_node("Relu", ["w_grad"], ["target"]),
    ]
    inputs, outputs = [floats("x", ["n", 3])], [floats("target", ["n", 2])]
    proto = model(nodes, inputs, outputs, [initializer("w", W)]).SerializeToString()
    found = _run(webrnn.gradient(proto, "mse", ["w"]), x=X, target=np.zeros((2, 2), np.float32))
    np.testing.assert_allclose(found["w_grad"], X.T @ (X @ W) / 2)
    nodes = [helper.make_node("MatMul", ["target", "w"], ["y"])]
    proto = model(nodes, [floats("target", ["n", 3])], [floats("y", ["n", 2])], [initializer("w", W)])
    with pytest.raises(webrnn.OptionError, match="the model has an input 'target', which the loss has, too"):
        webrnn.gradient(proto.SerializeToString(), "mse", ["w"])


def test_a_loss_of_one_element_with_axes():
    nodes = [helper.make_node("ReduceSumSquare", ["x"], ["loss"])]
    proto = model(nodes, [floats("x", [2, 3])], [floats("loss", [1, 1])]).SerializeToString()
    np.testing.assert_array_equal(_run(webrnn.gradient(proto, "loss", ["x"]), x=X)["x_grad"], 2 * X)


def test_integers_have_no_gradient():
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["row"]),
        helper.make_node("ReduceSum", ["row"], ["loss"], keepdims=0),
    ]
    proto = model(nodes, [floats("x", [2, 3]), integers("i", [1])], [floats("loss", [])]).SerializeToString()
    with pytest.raises(webrnn.OptionError, match="'i' is no tensor of floating-point numbers"):
        webrnn.gradient(proto, "loss", ["i"])


def test_a_gradient_is_a_model_again():
    """The gradient of the square of the gradient of a cube."""
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["c"])]
    nodes.append(helper.make_node("ReduceSum", ["c"], ["loss"], keepdims=0))
    proto = model(nodes, [floats("x", [1])], [floats("loss", [])]).SerializeToString()
    first = webrnn.gradient(proto, "loss", ["x"])
    second = webrnn.gradient(first, "x_grad", ["x"])
    found = _run(second, x=np.float32([2]))
    np.testing.assert_allclose(found["x_grad"], 12)
    np.testing.assert_allclose(found["x_grad_1"], 12)


def test_the_model_is_left_as_it_was():
    from webrnn.formats.reader import read_model
    from webrnn.ir.text import to_text

    graph = read_model(_linear())
    before = to_text(graph)
    webrnn.gradient(graph, "loss", ["x", "w"])
    assert to_text(graph) == before
