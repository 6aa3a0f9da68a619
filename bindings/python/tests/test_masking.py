# SPDX-License-Identifier: Apache-2.0
"""Schedules and dynamic sparse training."""

import math
import pickle

import numpy as np
import pytest

import sparsekit as sk


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def masking_of(shapes=((8, 16), (16, 4)), density=0.5, mode="erdos_renyi", **options):
    """A masking over random layers, and their gradients."""
    masking = sk.Masking(sk.CosineDecay(0.3, 100), **options)
    for number, shape in enumerate(shapes):
        masking.add(
            f"layer{number}",
            random(*shape, seed=number),
            gradient=random(*shape, seed=10 + number),
            momentum=random(*shape, seed=20 + number),
        )
    masking.initialise(density, mode)
    return masking


# --- decays ---


def test_cosine_decay():
    decay = sk.CosineDecay(0.4, 100, eta_min=0.1)
    for t in (0, 1, 50, 99, 100, 150):
        decay.step(t)
        expected = 0.1 + 0.3 * (1 + math.cos(math.pi * min(t, 100) / 100)) / 2
        assert decay.rate() == pytest.approx(expected, rel=1e-14)
    assert decay.position == 150
    assert repr(sk.CosineDecay(0.4, 100, last_epoch=4)) == "CosineDecay(position 5)"


def test_linear_decay_steps():
    decay = sk.LinearDecay(0.5, 4)
    rates = []
    for _ in range(6):
        rates.append(decay.rate())
        decay.step()
    assert rates == pytest.approx([0.5, 0.375, 0.25, 0.125, 0, 0])


def test_magnitude_decay():
    decay = sk.MagnitudePruneDecay(0.1, 0.9, t_max=1100, t_start=100, interval=50)
    assert decay.cumulative_sparsity(0) == 0.1 and decay.cumulative_sparsity(2000) == 0.9
    assert decay.cumulative_sparsity(600) == pytest.approx(0.9 - 0.8 * 0.5**3)
    decay.step(600)
    assert decay.rate_from(0.5) == pytest.approx(0.8 - 0.5)
    before = decay.cumulative_sparsity(550)
    assert decay.rate() == pytest.approx(decay.cumulative_sparsity(600) - before)


def test_custom_decay():
    seen = []
    decay = sk.CustomDecay(lambda t: seen.append(t) or 1 / (2 + t))
    decay.step(8)
    assert decay.rate() == 0.1 and seen == [8]

    def fail(t):
        raise LookupError("no rate")

    with pytest.raises(LookupError, match="no rate"):
        sk.CustomDecay(fail).rate()
    with pytest.raises(sk.SparseKitError):
        sk.CustomDecay(lambda t: 2.0).rate()


# --- initialisation ---


def test_initialisation_draws_exact_counts():
    masking = masking_of(density=0.25)
    layers = masking.layers
    assert list(layers) == ["layer0", "layer1"]
    total = sum(int(layer.mask.sum()) for layer in layers.values())
    assert total == masking.baseline == masking.stats().nonzeros
    for density, layer in zip(masking.densities(0.25, "erdos_renyi"), layers.values()):
        assert layer.mask.sum() == math.floor(density * layer.mask.size + 0.5)
        assert ((layer.view.data != 0) == layer.mask).all()


def test_schemes_by_name_themselves_and_function():
    for mode in ("erdos_renyi", sk.init_scheme.erdos_renyi):
        np.testing.assert_array_equal(
            masking_of(mode=mode)["layer0"].mask, masking_of()["layer0"].mask
        )
    checks = masking_of(mode=lambda layer: np.indices(layer.view.shape).sum(axis=0) % 2)
    assert checks["layer0"].mask.sum() == 64 and not checks["layer0"].mask[0, 0]
    with pytest.raises(sk.InvalidArgumentError, match="erdos_renyi"):
        masking_of(mode="dense")


def test_given_counts():
    masking = masking_of()
    masking.initialise(mode="lottery_ticket_dist", counts=[5, 6])
    assert [int(layer.mask.sum()) for layer in masking.layers.values()] == [5, 6]
    masking.initialise(0.5, "erdos_renyi", draw="bernoulli")
    with pytest.raises(sk.InvalidArgumentError, match="bernoulli"):
        masking.initialise(0.5, draw="poisson")


def test_a_masks_own_array_is_used():
    masking = sk.Masking(sk.LinearDecay())
    mask = np.zeros((4, 4), np.uint8)
    weights = random(4, 4)
    masking.add("w", weights, mask)
    mask[1] = 1
    masking.initialise(mode="lottery_ticket")
    assert (weights[1] != 0).all() and np.count_nonzero(weights) == 4


# --- updates ---


def test_rigl_prunes_small_weights_and_grows_large_gradients():
    masking = masking_of(grow="gradient", dense_gradients=True)
    expected = {}
    for name, layer in masking.layers.items():
        weights, mask = layer.view.data.copy(), layer.mask.copy()
        count = math.ceil(0.3 * mask.sum())
        active = np.flatnonzero(mask)
        weakest = active[np.abs(weights.ravel()[active]).argsort(kind="stable")[:count]]
        mask.ravel()[weakest] = False
        dead = np.flatnonzero(~mask)
        strongest = dead[(-np.abs(layer.gradient.ravel()[dead])).argsort(kind="stable")[:count]]
        mask.ravel()[strongest] = True
        expected[name] = mask
    report = masking.update()
    for name, mask in expected.items():
        np.testing.assert_array_equal(masking[name].mask, mask)
    assert report.rate == 0.3 and report.removed == report.grown == report.requested_grown
    assert report.nonzeros == masking.baseline and report.residual == 0
    stats = masking.stats("layer1")
    assert stats.numel == 64 and stats.removed == stats.requested_removed
    assert isinstance(stats.nonzeros, int)
    assert masking.stats(masking["layer1"]) == masking.stats(1) == stats


def test_step_applies_masks_and_moves_the_decay():
    masking = masking_of()
    layer = masking["layer0"]
    layer.view.data[...] = 1
    masking.step()
    np.testing.assert_array_equal(layer.view.data, layer.mask)
    assert ((layer.momentum != 0) == layer.mask).all() and (layer.gradient != 0).all()
    assert masking.decay.position == 1
    masking.apply("gradients")
    assert ((layer.gradient != 0) == layer.mask).all()
    with pytest.raises(sk.InvalidArgumentError, match="momentum"):
        masking.apply("moments")


def test_gradients_from_a_function():
    masking = sk.Masking(sk.CosineDecay(0.5, 10), grow="gradient", dense_gradients=True)
    arrays = [None]
    layer = masking.add("w", random(4, 4), gradient=lambda: arrays[-1])
    masking.initialise(0.5, "erdos_renyi")
    with pytest.raises(sk.InvalidArgumentError, match="gradient"):
        masking.update()
    gradient = np.zeros((4, 4))
    place = tuple(np.argwhere(~layer.mask)[-1])
    gradient[place] = 3
    arrays.append(gradient)
    masking.update()
    assert layer.mask[place]


def test_adams_moments():
    masking = sk.Masking(sk.CosineDecay(0.5, 10), grow="momentum", dense_gradients=True)
    first, second = random(4, 4, seed=1), random(4, 4, seed=2) ** 2
    layer = masking.add("w", random(4, 4), adam_m1=first, adam_m2=second)
    masking.initialise(0.5, "erdos_renyi")
    report = masking.update()
    momentum = np.abs(first.astype("f8") / (np.sqrt(second.astype("f8")) + 1e-8))
    dead = momentum[~layer.mask]
    grown = momentum[layer.mask & (layer.view.data == 0)]
    assert report.grown == grown.size == 4
    assert grown.min() >= np.sort(dead)[-1] or np.sort(dead)[-1] < np.sort(grown)[-1]


def test_functions_as_modes():
    calls = []

    def prune(masking, layer, rate, requested):
        calls.append(("prune", layer.name, requested))
        layer.mask.ravel()[np.flatnonzero(layer.mask)[:requested]] = False

    def statistic(masking, layer):
        return 1.0 + layer.id

    def grow(masking, layer, requested):
        calls.append(("grow", layer.name, requested))
        layer.mask.ravel()[np.flatnonzero(~layer.mask)[-requested:]] = True

    masking = masking_of(prune=prune, redistribute=statistic, grow=grow)
    report = masking.update()
    pruned = sum(requested for kind, _, requested in calls if kind == "prune")
    grown = {name: requested for kind, name, requested in calls if kind == "grow"}
    assert report.removed == pruned and report.grown == sum(grown.values())
    assert grown["layer1"] == pytest.approx(2 * grown["layer0"], abs=1)


@pytest.mark.parametrize("what", ["prune", "redistribute", "grow"])
def test_exceptions_of_modes_come_out(what):
    def fail(*_):
        raise LookupError(what)

    with pytest.raises(LookupError, match=what):
        masking_of(**{"grow": "random", what: fail}).update()


def test_criteria_of_kernels():
    masking = sk.Masking(
        sk.CosineDecay(0.25, 10), prune=sk.prune.struct_criterion(lambda kernel: kernel.sum())
    )
    weights = random(4, 4, 3, 3)
    sums = np.abs(weights.astype("f8").sum(axis=(2, 3)))
    layer = masking.add("conv", weights)
    masking.initialise(mode="lottery_ticket")
    masking.update()
    dead = ~layer.mask.any(axis=(2, 3))
    assert dead.sum() == 4 and layer.mask.sum() == 12 * 9
    np.testing.assert_array_equal(dead, sums <= np.sort(sums, axis=None)[3])


def test_modes_that_do_not_exist():
    with pytest.raises(sk.InvalidArgumentError, match="struct_magnitude_mean"):
        sk.Masking(sk.LinearDecay(), prune="largest")
    with pytest.raises(sk.SparseKitError):
        sk.Masking(sk.LinearDecay(), grow="momentum")  # needs dense gradients


# --- layers ---


def test_layers_leave():
    masking = masking_of(((4, 4), (4, 4), (4, 4)))
    assert masking.find("layer1") == 1 and masking.layer_name(2) == "layer2"
    masking.remove("layer1")
    assert list(masking.layers) == ["layer0", "layer2"] and masking.layer_count() == 3
    assert not masking.has_layer(1) and masking.find("nothing") == -1
    masking.update()
    assert masking.remove_matching("layer") == 2 and masking.layers == {}
    with pytest.raises(KeyError):
        masking.stats("layer9")
    with pytest.raises(KeyError):
        masking["layer0"]


def test_strided_layers():
    whole = random(8, 16)
    masking = sk.Masking(sk.CosineDecay(0.5, 10), grow="random")
    layer = masking.add("half", whole[:, ::-2])
    before = whole[:, ::2].copy()
    masking.initialise(0.5, "erdos_renyi")
    np.testing.assert_array_equal(whole[:, ::-2] != 0, layer.mask)
    np.testing.assert_array_equal(whole[:, ::2], before)


@pytest.mark.parametrize(
    "mask",
    [
        np.ones((4, 4), np.float32),
        np.ones((4, 8), bool)[:, ::2],
        np.ones((4, 4), bool, order="F"),
        np.ones(3, bool),
    ],
)
def test_wrong_masks_are_refused(mask):
    masking = sk.Masking(sk.LinearDecay())
    masking.add("w", random(4, 4), mask)
    with pytest.raises((sk.ShapeMismatchError, sk.UnsupportedDtypeError), match="mask"):
        masking.initialise(0.5, "erdos_renyi")


def test_read_only_masks_are_refused():
    frozen = np.ones((4, 4), bool)
    frozen.flags.writeable = False
    masking = sk.Masking(sk.LinearDecay())
    masking.add("w", random(4, 4), frozen)
    with pytest.raises(sk.InvalidArgumentError, match="read-only"):
        masking.initialise(0.5, "erdos_renyi")


# --- save and restore ---


def train(masking, steps):
    for _ in range(steps):
        masking.update()
        masking.step()
    return [layer.mask.copy() for layer in masking.layers.values()]


def test_a_pickled_state_goes_on_bit_for_bit():
    masking = masking_of(grow="random", seed=2**63 + 5)
    train(masking, 3)
    layers = {
        name: (layer.view.data, layer.mask, layer.momentum)
        for name, layer in masking.layers.items()
    }
    stored = pickle.dumps((masking.save(), layers))
    expected = train(masking, 3)
    state, layers = pickle.loads(stored)
    again = sk.Masking(sk.CosineDecay(0.3, 100), grow="random", seed=2**63 + 5)
    for name, (weights, mask, momentum) in layers.items():
        again.add(name, weights, mask, momentum=momentum)
    again.restore(state)
    assert again.decay.position == 3 and again.stats().nonzeros == masking.stats().nonzeros
    for mask, other in zip(train(again, 3), expected):
        np.testing.assert_array_equal(mask, other)


def test_damaged_states_are_refused():
    masking = masking_of()
    state = masking.save()
    for damaged in (b"", state[:-1], state[:20] + bytes([state[20] ^ 1]) + state[21:]):
        with pytest.raises(sk.SparseKitError):
            masking.restore(damaged)
    with pytest.raises(sk.ShapeMismatchError, match="gaps"):
        masking.restore(memoryview(bytes(2 * len(state)))[::2])
    masking.restore(bytearray(state))
