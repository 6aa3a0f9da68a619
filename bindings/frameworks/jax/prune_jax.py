# SPDX-License-Identifier: Apache-2.0
"""Prunes a JAX model.

JAX's arrays never change, so the library is given arrays to write ``into``: it reads the weights
where JAX keeps them, and what it has written becomes new weights.

Trains a perceptron on handwritten digits and makes it sparse in three ways:

    2:4       of every four weights along a neuron's inputs, two go
    blocks    half of the 4 x 2 blocks of each weight matrix go
    neurons   half of the hidden neurons go, each with its inputs, its bias and its outputs

Each is then trained on with its zeros held. Exits with 1 if a count is not exactly what was asked
for, or if accuracy falls by more than chance explains.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import sparsekit as sk

from digits import LINEAR_ACCURACY, expect, load, noise

HIDDEN, BATCH, RATE, MOMENTUM = 64, 32, 0.05, 0.9
EPOCHS = 30


# --- the model: plain JAX ---

def initialise(key):
    def weights(key, inputs, neurons):
        return jax.random.normal(key, (inputs, neurons)) * (2 / inputs) ** 0.5

    first, second = jax.random.split(key)
    return {"w1": weights(first, 64, HIDDEN), "b1": jnp.zeros(HIDDEN),
            "w2": weights(second, HIDDEN, 10), "b2": jnp.zeros(10)}


def logits(params, pixels):
    hidden = jax.nn.relu(pixels @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, pixels, labels):
    log_likelihoods = jax.nn.log_softmax(logits(params, pixels))
    return -jnp.take_along_axis(log_likelihoods, labels[:, None], axis=1).mean()


@partial(jax.jit, static_argnames="epochs")
def train(params, masks, pixels, labels, key, epochs):
    """Minibatch descent with momentum; parameters whose mask is 0 stay 0."""
    def step(state, batch):
        params, velocity = state
        gradient = jax.grad(loss)(params, pixels[batch], labels[batch])
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradient)
        params = jax.tree.map(lambda p, v, m: (p - RATE * v) * m, params, velocity, masks)
        return (params, velocity), None

    def epoch(state, key):
        order = jax.random.permutation(key, len(labels))[:len(labels) // BATCH * BATCH]
        return jax.lax.scan(step, state, order.reshape(-1, BATCH))

    velocity = jax.tree.map(jnp.zeros_like, params)
    (params, _), _ = jax.lax.scan(epoch, (params, velocity), jax.random.split(key, epochs))
    return params


# --- pruning: parameters in, new parameters out ---

def empty(params, *names):
    return {name: np.empty(params[name].shape, np.float32) for name in names}


def with_pruned(params, pruned):
    """JAX may take the memory of ``pruned`` over, which therefore is not written to again."""
    return params | {name: jnp.asarray(array) for name, array in pruned.items()}


def two_of_four(params):
    pruned = empty(params, "w1", "w2")
    for name, into in pruned.items():
        sk.prune_nm(params[name], 2, 4, axis=0, into=into)
    return with_pruned(params, pruned)


def half_of_blocks(params):
    pruned = empty(params, "w1", "w2")
    for name, into in pruned.items():
        scope = sk.ScopeSpec(sk.BlockSpec(params[name], (4, 2)))
        scope.hard_threshold(nnz=scope.numblk_per_scope() // 2, into=into)
    return with_pruned(params, pruned)


def half_of_neurons(params):
    """Neuron j is column j of w1, element j of b1 and row j of w2. Their grids must agree: the bias
    is viewed as a row, and the axes of w2's grid (64, 1) are swapped."""
    neurons = sk.BlockCoupling(
        [sk.BlockSpec(params["w1"], (-1, 1)),
         sk.BlockSpec(sk.View(params["b1"], shape=(1, HIDDEN)), (1, 1)),
         sk.BlockSpec(params["w2"], (1, -1))],
        orders=[(0, 1), (0, 1), (1, 0)], name="neurons")
    pruned = empty(params, "w1", "b1", "w2")
    sk.ScopeSpec(neurons).hard_threshold(nnz=HIDDEN // 2, into=list(pruned.values()))
    return with_pruned(params, pruned)


# --- counting, without the library ---

def is_two_of_four(params):
    for name in ("w1", "w2"):
        fours = np.asarray(params[name]).reshape(-1, 4, params[name].shape[1])
        if (np.count_nonzero(fours, axis=1) != 2).any():
            return False
    return True


def is_half_of_blocks(params):
    for name in ("w1", "w2"):
        rows, columns = params[name].shape
        blocks = np.asarray(params[name]).reshape(rows // 4, 4, columns // 2, 2)
        nonzeros = np.count_nonzero(blocks, axis=(1, 3))
        if (nonzeros == 8).sum() * 2 != nonzeros.size or (nonzeros == 0).sum() * 2 != nonzeros.size:
            return False
    return True


def is_half_of_neurons(params):
    w1, b1, w2 = (np.asarray(params[name]) for name in ("w1", "b1", "w2"))
    dead = (w1 == 0).all(axis=0) & (b1 == 0) & (w2 == 0).all(axis=1)
    return dead.sum() == HIDDEN // 2 and np.count_nonzero(w1) == w1.size // 2


def main():
    (pixels, labels), (test_pixels, test_labels) = load()
    first, second, third = jax.random.split(jax.random.key(0), 3)

    def show(stage, params):
        accuracy = float((logits(params, test_pixels).argmax(axis=1) == test_labels).mean())
        weights = jnp.concatenate([params["w1"].ravel(), params["w2"].ravel()])
        density = np.count_nonzero(weights) / weights.size
        print(f"{stage:22} {accuracy:8.2%} {density:8.2%}")
        return accuracy, density

    print(f"{'':22} {'accuracy':>8} {'density':>8}")
    params = initialise(first)
    dense = train(params, jax.tree.map(jnp.ones_like, params), pixels, labels, second, EPOCHS)
    accuracy, _ = show("dense", dense)
    expect(accuracy > LINEAR_ACCURACY, "dense: better than a linear classifier")

    for name, prune, promise in (("2:4", two_of_four, is_two_of_four),
                                 ("blocks", half_of_blocks, is_half_of_blocks),
                                 ("neurons", half_of_neurons, is_half_of_neurons)):
        pruned = prune(dense)
        show(f"{name}, pruned", pruned)
        masks = jax.tree.map(lambda p: p != 0, pruned)
        tuned = train(pruned, masks, pixels, labels, third, EPOCHS)
        sparse_accuracy, density = show(f"{name}, fine-tuned", tuned)
        expect(promise(tuned) and density == 0.5, f"{name}: half of the weights, in structure")
        expect(sparse_accuracy >= accuracy - noise(accuracy, len(test_labels)),
               f"{name}: accuracy is kept")

    expect(np.count_nonzero(dense["w1"]) == dense["w1"].size, "the dense weights are as they were")
    expect(sk.View(dense["w1"]).address == dense["w1"].unsafe_buffer_pointer(),
           "the library reads JAX's own memory")


if __name__ == "__main__":
    main()
