# SPDX-License-Identifier: Apache-2.0
"""Dynamic sparse training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np

from . import _native, init_scheme
from . import grow as _grow
from . import prune as _prune
from . import redistribute as _redistribute
from ._context import Context, Handle, callback_of, doubles, native_context
from ._errors import InvalidArgumentError, ShapeMismatchError, SparseKitError, named
from ._memory import Array, Memory, integers, memory_of
from ._modes import Mode, ModeLike, mode_of
from ._view import View, view_of
from .decay import Decay, decay_of

#: An array, or a function without arguments that gives it (or None) when it is needed.
ArraySource = Union[None, Array, Callable[[], Optional[Array]]]

_APPLY = {
    "weights": _native.APPLY_WEIGHTS,
    "momentum": _native.APPLY_MOMENTUM,
    "gradients": _native.APPLY_GRADIENTS,
}
_DRAWS = {"exact": _native.DRAW_EXACT, "bernoulli": _native.DRAW_BERNOULLI}


class UpdateReport(NamedTuple):
    """What an update did, all layers together; counts of elements."""

    rate: float
    requested_removed: int
    removed: int
    requested_grown: int
    grown: int
    nonzeros: int
    residual: int


class LayerStats(NamedTuple):
    """Counts and densities of a layer, or of all, when they were last counted."""

    numel: int
    nonzeros: int
    zeros: int
    density: float
    requested_density: float
    statistic: float
    rate: float
    requested_removed: int
    removed: int
    requested_grown: int
    grown: int


_FRACTIONS = ("density", "requested_density", "statistic", "rate")


class Layer:
    """A named layer of a masking. All attributes but ``name``, ``id`` and ``view`` may be set to
    other arrays between calls.

    Attributes:
        view: the weights, a :class:`View`.
        mask: keep mask, bool or uint8, contiguous, of the view's shape.
        gradient, momentum, adam_m1, adam_m2: arrays that go with the view (see
            :meth:`View.beside`) of any float dtype; functions that give them; or None. The momentum
            of Adam's moments is m1 / (sqrt(m2) + 1e-8).
    """

    def __init__(
        self,
        name: str,
        number: int,
        view: View,
        mask: Array,
        gradient: ArraySource,
        momentum: ArraySource,
        adam_m1: ArraySource,
        adam_m2: ArraySource,
    ) -> None:
        self.name = name
        self.id = number
        self.view = view
        self.mask = mask
        self.gradient = gradient
        self.momentum = momentum
        self.adam_m1 = adam_m1
        self.adam_m2 = adam_m2

    def _mask_memory(self) -> Memory:
        try:
            memory = memory_of(self.mask)
        except SparseKitError as error:
            raise named(error, f"mask of {self.name}")
        if not memory.dense:
            raise ShapeMismatchError(
                f"mask of {self.name}: got strides {memory.stride}, expected a contiguous array"
            )
        return memory

    def _beside(self, kind: str) -> Memory | None:
        source: ArraySource = getattr(self, kind)
        if callable(source) and not hasattr(source, "__dlpack__"):
            source = source()
        try:
            return None if source is None else self.view.beside(source)
        except SparseKitError as error:
            raise named(error, f"{kind} of {self.name}")

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.view!r})"


class Masking(Handle):
    """Keeps named layers sparse while somebody else trains them.

    Call :meth:`step` after every step of the optimiser and :meth:`update` now and then, which
    prunes the weakest weights and grows as many elsewhere. RigL::

        masking = Masking(CosineDecay(0.3, 1000), grow="gradient", dense_gradients=True)
        layer = masking.add("fc1", weight, gradient=lambda: grad)
        masking.initialise(0.1, "erdos_renyi_kernel")
        for t in range(1, steps + 1):
            ...                              # backward pass, optimiser step
            if t % 100 == 0:
                masking.update()
            masking.step()

    One call at a time. It keeps the arrays of its layers, and changes weights and masks in place.

    Args:
        decay: a schedule of :mod:`sparsekit.decay`, or a function of t.
        prune, redistribute, grow: modes of :mod:`sparsekit.prune`, :mod:`sparsekit.redistribute`
            and :mod:`sparsekit.grow`: their names, themselves, or functions.
        dense_gradients: momentum, moments and gradients are never masked. Else they are zeroed
            where the mask is 0: for optimisers that must not move dead weights.
        seed: of random choices, which are the same on every machine.

    Exceptions of your functions come out of the call, which they end.
    """

    def __init__(
        self,
        decay: Decay | Callable[[int], float],
        prune: ModeLike = "magnitude",
        redistribute: ModeLike = "none",
        grow: ModeLike = "none",
        *,
        dense_gradients: bool = False,
        seed: int = 0,
    ) -> None:
        self._decay = decay_of(decay)
        self._layers: list[Layer] = []
        self._prune = mode_of("prune", prune, _prune.MODES, _prune.callback)
        self._redistribute = mode_of(
            "redistribute", redistribute, _redistribute.MODES, _redistribute.callback
        )
        self._grow = mode_of("grow", grow, _grow.MODES, _grow.callback)
        # The library borrows the callbacks: they live as long as the masking.
        self._callbacks = (
            self._callback(self._prune, "callback", Masking._call_prune),
            self._callback(self._prune, "struct_criterion", Masking._call_prune_criterion),
            self._callback(self._redistribute, "callback", Masking._call_statistic),
            self._callback(self._grow, "callback", Masking._call_grow),
            self._callback(self._grow, "struct_criterion", Masking._call_grow_criterion),
        )
        signed_seed = (seed + (1 << 63)) % (1 << 64) - (1 << 63)
        self._handle = _native.masking_create(
            self._decay._handle,
            signed_seed,
            self._prune.number,
            self._redistribute.number,
            self._grow.number,
            dense_gradients,
            *self._callbacks,
        )

    def _callback(self, mode: Mode, name: str, call: Callable[[Any, bytes], Any]) -> Any:
        return callback_of(self, call) if mode.name == name else None

    def _call_prune(self, raw: bytes) -> float:
        layer, rate, requested = doubles(raw)
        _given(self._prune)(self, self._layers[int(layer)], rate, int(requested))
        return 0.0

    def _call_prune_criterion(self, raw: bytes) -> float:
        return _given(self._prune)(np.frombuffer(raw))

    def _call_statistic(self, raw: bytes) -> float:
        return _given(self._redistribute)(self, self._layers[int(doubles(raw)[0])])

    def _call_grow(self, raw: bytes) -> float:
        layer, requested = doubles(raw)
        _given(self._grow)(self, self._layers[int(layer)], int(requested))
        return 0.0

    def _call_grow_criterion(self, raw: bytes) -> float:
        return _given(self._grow)(np.frombuffer(raw))

    # --- layers ---

    @property
    def decay(self) -> Decay:
        return self._decay

    def add(
        self,
        name: str,
        weight: View | Array,
        mask: Array | None = None,
        gradient: ArraySource = None,
        momentum: ArraySource = None,
        adam_m1: ArraySource = None,
        adam_m2: ArraySource = None,
    ) -> Layer:
        """Adds a layer, before initialisation.

        Args:
            name: unique among all ever added, not empty.
            weight: a :class:`View`, or an array to view as a whole.
            mask: keep mask, bool or uint8, contiguous, of the view's shape; None: a new one.
            gradient, momentum, adam_m1, adam_m2: arrays that go with the weights, or functions
                without arguments that give them at each call, for frameworks that make new ones.
        """
        view = view_of(weight)
        number = _native.masking_add(self._handle, name, view._handle)
        if mask is None:
            mask = np.ones(view._shape, np.bool_)
        layer = Layer(name, number, view, mask, gradient, momentum, adam_m1, adam_m2)
        self._layers.append(layer)
        return layer

    def remove(self, name: str) -> None:
        """Removes the layer of this name; its mask is left alone."""
        _native.masking_remove(self._handle, name)

    def remove_matching(self, part: str) -> int:
        """Removes all layers whose names contain ``part``, and says how many."""
        return _native.masking_remove_matching(self._handle, part)

    def layer_count(self) -> int:
        """Layers ever added; their ids are 0, 1, 2, ..."""
        return _native.masking_layer_count(self._handle)

    def find(self, name: str) -> int:
        """The id of a layer, -1 if there is none of this name."""
        return _native.masking_find(self._handle, name)

    def layer_name(self, number: int) -> str:
        return _native.masking_layer_name(self._handle, number)

    def has_layer(self, number: int) -> bool:
        """Whether the layer of this id belongs to the masking."""
        return bool(_native.masking_has_layer(self._handle, number))

    @property
    def layers(self) -> dict[str, Layer]:
        """The layers that belong, by name."""
        return {layer.name: layer for layer in self._layers if self.has_layer(layer.id)}

    def __getitem__(self, name: str) -> Layer:
        return self.layers[name]

    def _belonging(self) -> list[Layer | None]:
        return [layer if self.has_layer(layer.id) else None for layer in self._layers]

    def _weights_and_masks(self) -> tuple[list[Any], list[Any]]:
        layers = self._belonging()
        return (
            [layer and layer.view._memory for layer in layers],
            [layer and layer._mask_memory() for layer in layers],
        )

    def _brought(self) -> tuple[list[Any], ...]:
        layers = self._belonging()
        others = [
            [layer and layer._beside(kind) for layer in layers]
            for kind in ("gradient", "momentum", "adam_m1", "adam_m2")
        ]
        return self._weights_and_masks() + tuple(others)

    # --- initialisation ---

    def initialise(
        self,
        density: float = 0.0,
        mode: ModeLike = "random",
        *,
        draw: str = "exact",
        counts: Sequence[int] | None = None,
        context: Context | None = None,
    ) -> None:
        """Writes the first masks and applies them to the weights. May be called again.

        Args:
            density: in [0, 1]; not read by ``resume`` and the lottery tickets.
            mode: of :mod:`sparsekit.init_scheme`, its name, or a function that gives the keep mask
                of a :class:`Layer`.
            draw: ``"exact"`` counts, or ``"bernoulli"``: each place with this probability.
            counts: ones per layer id, with ``lottery_ticket_dist``.
        """
        scheme = mode_of("mode", mode, init_scheme.MODES, init_scheme.callback)
        if scheme.function is not None:
            for layer in filter(None, self._belonging()):
                np.asarray(layer.mask)[...] = scheme.function(layer)
        _native.masking_initialise(
            native_context(context),
            self._handle,
            *self._weights_and_masks(),
            density,
            scheme.number,
            _draw(draw),
            integers(counts),
        )

    def densities(self, density: float, mode: ModeLike = "random") -> list[float]:
        """The densities that initialisation would give, one per layer id; 1 for layers that would
        leave, 0 for those that left before."""
        out = np.zeros(self.layer_count())
        scheme = mode_of("mode", mode, init_scheme.MODES, init_scheme.callback)
        _native.masking_densities(self._handle, density, scheme.number, (out,))
        return out.tolist()

    # --- training ---

    def apply(self, *what: str, context: Context | None = None) -> None:
        """Zeroes what the masks forbid in ``"weights"`` (the default), ``"momentum"`` (moments
        too), ``"gradients"``."""
        flags = 0
        for part in what or ("weights",):
            if part not in _APPLY:
                raise InvalidArgumentError(f"apply: got {part!r}, expected {', '.join(_APPLY)}")
            flags |= _APPLY[part]
        _native.masking_apply(native_context(context), self._handle, *self._brought(), flags)

    def step(self, *, context: Context | None = None) -> None:
        """After a step of the optimiser: applies the masks to the weights and, unless
        ``dense_gradients``, to momentum and moments; moves the decay on."""
        _native.masking_step(native_context(context), self._handle, *self._brought())

    def update(self, *, context: Context | None = None) -> UpdateReport:
        """Prunes and grows. Arrays that the modes read must be there for every layer.

        Raises:
            InvalidArgumentError: an array is missing; the message names layer and array.
        """
        rate, *counts = _native.masking_update(
            native_context(context), self._handle, *self._brought()
        )
        return UpdateReport(rate, *map(int, counts))

    def stats(self, layer: None | int | str | Layer = None) -> LayerStats:
        """Of one layer (its id, name or :class:`Layer`), or the sums of all."""
        if isinstance(layer, str):
            layer = self.find(layer)
            if layer < 0:
                raise KeyError("no such layer")
        if isinstance(layer, Layer):
            layer = layer.id
        numbers = _native.masking_stats(self._handle, -1 if layer is None else layer)
        return LayerStats(
            *(
                number if name in _FRACTIONS else int(number)
                for name, number in zip(LayerStats._fields, numbers)
            )
        )

    @property
    def baseline(self) -> int:
        """The nonzeros that growth aims for."""
        return _native.masking_baseline(self._handle)

    @property
    def adjusted_growth(self) -> float:
        """What the next update adds to the places that it hands out."""
        return _native.masking_adjusted_growth(self._handle)

    # --- save and restore ---

    def save(self) -> bytes:
        """The whole state: seed, modes, layers, counts, growth, the decay's position; the same
        bytes on every machine, fit for ``pickle``. Masks and weights are yours to save."""
        state = bytearray(_native.masking_save_size(self._handle))
        _native.masking_save(self._handle, (state,))
        return bytes(state)

    def restore(self, state: bytes) -> None:
        """Takes up a saved state: training goes on bit for bit, given the same arrays.

        Raises:
            InvalidArgumentError, ShapeMismatchError: a state of other layers, modes or schedule, or
                a damaged one; nothing has changed then.
        """
        _native.masking_restore(self._handle, (state,))

    def __repr__(self) -> str:
        if self.closed:
            return "Masking(closed)"
        return (
            f"Masking({len(self.layers)} layers, prune {self._prune.name}, "
            f"redistribute {self._redistribute.name}, grow {self._grow.name})"
        )


def _given(mode: Mode) -> Callable[..., Any]:
    """The function of a mode that was made with one."""
    assert mode.function is not None
    return mode.function


def _draw(draw: str) -> int:
    if draw not in _DRAWS:
        raise InvalidArgumentError(f"draw: got {draw!r}, expected one of {', '.join(_DRAWS)}")
    return _DRAWS[draw]
