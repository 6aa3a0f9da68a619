# SPDX-License-Identifier: Apache-2.0
"""Prunes the initialisers of an ONNX file, whatever framework it came from, and runs it again.

The model is a small convolutional network for handwritten digits, trained here with NumPy. Its file
is then pruned in two ways, without any training after it:

    2:4       of every four weights of the last layer along its inputs, two go
    filters   half of the filters go, each with its bias and with all weights that read its channel

Filters that are zero do nothing, so a last file leaves them out: it is smaller, and right as often.
Exits with 1 if a count is not exactly what was asked for, or if accuracy is lost.

    prune_onnx.py [FOLDER]     where the files stay; without it they go
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import sparsekit as sk
from onnx import TensorProto, helper, numpy_helper

from digits import LINEAR_ACCURACY, NEAREST_MEAN_ACCURACY, expect, load

FILTERS, POSITIONS, CLASSES = 16, 64, 10
EPOCHS, BATCH, RATE, MOMENTUM = 20, 32, 0.02, 0.9


# --- a model to prune: trained with NumPy, written with onnx.helper ---

def patches(pixels):
    """The 3 x 3 neighbourhood of each pixel: (images, 64, 9)."""
    padded = np.pad(pixels.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return windows.reshape(-1, POSITIONS, 9)


def train(pixels, labels):
    """Minibatch descent with momentum; parameters in the order of :func:`build_model`."""
    random = np.random.default_rng(0)
    windows, answers = patches(pixels), np.eye(CLASSES, dtype=np.float32)[labels]
    conv = random.normal(0, (2 / 9) ** 0.5, (FILTERS, 9)).astype(np.float32)
    dense = random.normal(0, (2 / POSITIONS / FILTERS) ** 0.5,
                          (CLASSES, FILTERS * POSITIONS)).astype(np.float32)
    params = [conv, np.zeros(FILTERS, np.float32), dense, np.zeros(CLASSES, np.float32)]
    velocity = [np.zeros_like(param) for param in params]
    for _ in range(EPOCHS):
        for batch in np.split(random.permutation(len(labels)), range(BATCH, len(labels), BATCH)):
            slopes = gradient(params, windows[batch], answers[batch])
            for param, v, g in zip(params, velocity, slopes):
                v *= MOMENTUM
                v += g
                param -= RATE * v
    return params


def gradient(params, windows, answers):
    """Of the mean cross-entropy."""
    conv, conv_bias, dense, dense_bias = params
    channels = np.maximum(windows @ conv.T + conv_bias, 0)
    flat = channels.transpose(0, 2, 1).reshape(len(answers), -1)
    outputs = flat @ dense.T + dense_bias
    likelihoods = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    error = (likelihoods / likelihoods.sum(axis=1, keepdims=True) - answers) / len(answers)
    back = (error @ dense).reshape(len(answers), FILTERS, POSITIONS).transpose(0, 2, 1)
    back = back * (channels > 0)
    return [np.tensordot(back, windows, axes=((0, 1), (0, 1))), back.sum(axis=(0, 1)),
            error.T @ flat, error.sum(axis=0)]


def build_model(conv, conv_bias, dense, dense_bias):
    """conv: (filters, 9); dense: (classes, filters * positions)."""
    arrays = {"conv": conv.reshape(-1, 1, 3, 3), "conv_bias": conv_bias, "dense": dense,
              "dense_bias": dense_bias}
    nodes = [helper.make_node("Conv", ["image", "conv", "conv_bias"], ["channels"],
                              kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["channels"], ["active"]),
             helper.make_node("Flatten", ["active"], ["flat"]),
             helper.make_node("Gemm", ["flat", "dense", "dense_bias"], ["scores"], transB=1)]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["images", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["images", CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(array), name)
         for name, array in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


# --- pruning: a model's initialisers are replaced by pruned ones of the same names ---

def arrays_of(model):
    """The initialisers by name, as read-only arrays."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def replace(model, pruned):
    for tensor in model.graph.initializer:
        if tensor.name in pruned:
            tensor.CopyFrom(numpy_helper.from_array(pruned[tensor.name], tensor.name))


def prune_two_of_four(model):
    dense = arrays_of(model)["dense"]
    into = np.empty_like(dense)
    sk.prune_nm(dense, 2, 4, axis=1, into=into)
    replace(model, {"dense": into})
    expect((np.count_nonzero(into.reshape(-1, 4), axis=1) == 2).all(), "2:4: two of every four")


def prune_filters(model):
    """Filter k, element k of its bias, and the 64 columns of every class that read channel k."""
    leaves = {name: arrays_of(model)[name] for name in ("conv", "conv_bias", "dense")}
    filters = sk.BlockCoupling(
        [sk.BlockSpec(sk.View(leaves["conv"], shape=(1, FILTERS, 9)), (-1, 1, -1)),
         sk.BlockSpec(sk.View(leaves["conv_bias"], shape=(1, FILTERS, 1)), (1, 1, 1)),
         sk.BlockSpec(sk.View(leaves["dense"], shape=(CLASSES, FILTERS, POSITIONS)), (-1, 1, -1))],
        name="filters")
    pruned = {name: np.empty_like(array) for name, array in leaves.items()}
    sk.ScopeSpec(filters).hard_threshold(nnz=FILTERS // 2, into=list(pruned.values()))
    replace(model, pruned)


def without_zero_filters(model):
    arrays = arrays_of(model)
    alive = (arrays["conv"] != 0).any(axis=(1, 2, 3))
    expect(alive.sum() == FILTERS // 2, "filters: half are kept")
    channels = arrays["dense"].reshape(CLASSES, FILTERS, POSITIONS)
    expect(not channels[:, ~alive].any() and not arrays["conv_bias"][~alive].any(),
           "filters: nothing reads a pruned one")
    return build_model(arrays["conv"][alive], arrays["conv_bias"][alive],
                       channels[:, alive].reshape(CLASSES, -1), arrays["dense_bias"])


def main(folder):
    (pixels, labels), (test_pixels, test_labels) = load()
    images = test_pixels.reshape(-1, 1, 8, 8)

    def show(stage, name, model):
        path = folder / name
        onnx.save(model, path)
        scores = onnxruntime.InferenceSession(path).run(None, {"image": images})[0]
        accuracy = (scores.argmax(axis=1) == test_labels).mean()
        weights = np.concatenate([arrays_of(model)[name].ravel() for name in ("conv", "dense")])
        density = np.count_nonzero(weights) / weights.size
        print(f"{stage:18} {accuracy:8.2%} {density:8.2%} {path.stat().st_size:8} bytes")
        return accuracy, scores

    print(f"{'':18} {'accuracy':>8} {'density':>8} {'file':>14}")
    dense = build_model(*train(pixels, labels))
    accuracy, _ = show("dense", "dense.onnx", dense)
    expect(accuracy > LINEAR_ACCURACY, "dense: better than a linear classifier")

    fours = onnx.load(folder / "dense.onnx")
    prune_two_of_four(fours)
    accuracy, _ = show("2:4", "two_of_four.onnx", fours)
    expect(accuracy > LINEAR_ACCURACY, "2:4: better than a linear classifier")

    fewer = onnx.load(folder / "dense.onnx")
    prune_filters(fewer)
    accuracy, scores = show("filters, zeroed", "filters_zeroed.onnx", fewer)
    expect(accuracy > NEAREST_MEAN_ACCURACY, "filters: accuracy")
    fewer = without_zero_filters(fewer)
    _, small_scores = show("filters, left out", "filters_left_out.onnx", fewer)
    expect(np.allclose(small_scores, scores, atol=1e-4), "left out: the same scores")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(pathlib.Path(scratch))
