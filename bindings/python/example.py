#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Structured sparsity in four small steps, on NumPy arrays and in place."""

import numpy as np

import sparsekit as sk

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


# 1. N:M sparsity: of every four weights in a row, the two of largest magnitude stay.
weights = normal(64, 128)
report = sk.prune_nm(weights, 2, 4)
print(f"2:4: {report.achieved} of {report.total} weights stay")
assert ((weights.reshape(-1, 4) != 0).sum(axis=1) == 2).all()

# 2. Whole neurons. One is a row of w1, an element of b1 and a column of w2: they live or die
#    together, and the 16 of largest norm stay.
w1, b1, w2 = normal(32, 20), normal(32), normal(10, 32)
neurons = sk.BlockCoupling(
    [sk.BlockSpec(w1, (1, -1)), sk.BlockSpec(sk.View(b1, (32, 1))), sk.BlockSpec(w2, (-1, 1))],
    orders=[(0, 1), (0, 1), (1, 0)],
    name="neurons",
)
sk.ScopeSpec(neurons).hard_threshold(nnz=16)
alive = neurons.norms()[:, 0] > 0
print(f"neurons: {alive.sum()} of {alive.size} stay")
assert (w1.any(axis=1) == alive).all() and (w2.any(axis=0) == alive).all()

# 3. Group lasso by proximal gradient descent: least squares in which whole features vanish.
inputs = rng.normal(size=(200, 12))
truth = np.zeros((12, 3))
truth[[2, 5, 7]] = rng.normal(size=(3, 3)) + 2
targets = inputs @ truth + 0.01 * rng.normal(size=(200, 3))
solution = np.zeros((12, 3))
features = sk.BlockSpec(solution, (1, 3))
rate = 200 / np.linalg.norm(inputs, 2) ** 2
for _ in range(200):
    solution -= rate * inputs.T @ (inputs @ solution - targets) / 200
    features.soft_threshold(rate * 0.5)
print(f"group lasso: features {np.flatnonzero(features.norms()).tolist()} of 12 stay")
assert features.norms().ravel().nonzero()[0].tolist() == [2, 5, 7]

# 4. Dynamic sparse training (RigL): a layer is 80 % sparse all along; every ten steps the weakest
#    weights go, and others grow where the gradient is large.
truth = normal(16, 16) * (rng.random((16, 16)) < 0.15)
weights, gradient = 0.1 * normal(16, 16), np.zeros((16, 16), np.float32)
masking = sk.Masking(sk.CosineDecay(0.5, 300), grow="gradient", dense_gradients=True)
layer = masking.add("layer", weights, gradient=gradient)
masking.initialise(0.2, "erdos_renyi")
for t in range(1, 401):
    inputs = normal(64, 16)
    gradient[...] = inputs.T @ (inputs @ (weights - truth)) / 64
    weights -= 0.2 * gradient
    if t % 10 == 0:
        masking.update()
    masking.step()
    if t in (1, 100, 400):
        error = np.abs(weights - truth).max()
        print(f"RigL, step {t}: {layer.mask.sum()} active weights, largest error {error:.4f}")
assert layer.mask.sum() == 51 and (weights[~layer.mask] == 0).all() and error < 0.01
