#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance driver: conformance.py CASES RESULTS, see bindings/conformance/README.md."""

import os
import sys
import warnings

import numpy as np

import sparsekit as sk

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.uint16,
    "u8": np.uint8,
    "i64": np.int64,
}


class Thrown(Exception):
    """The driver's own exception, which callbacks throw."""


def throw(*_):
    raise Thrown("thrown in a callback")


def integers(text):
    return None if text is None else [int(part) for part in text.split(",")]


def permutations(text):
    return None if text is None else [integers(part) for part in text.split(";")]


def number(text, default=None):
    return default if text is None else float(text)


def ints(*values):
    return "ints " + ",".join(str(int(value)) for value in values)


def numbers(*values):
    return "numbers " + ",".join(f"{value:.17g}" for value in values)


def layout_of(array, base):
    """The text of a NumPy array's layout, its offset counted from the array ``base``."""
    size = array.itemsize
    offset = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // size
    shape = ",".join(map(str, array.shape))
    stride = ",".join(str(step // size) for step in array.strides)
    return f"text ({shape}):({stride})" + (f"+{offset}" if offset else "")


def in_order_sum(elements):
    total = 0.0
    for element in elements:
        total += element
    return total


def stop(_):
    raise sk.CancelledError("asked to stop")


def prune_first(_, layer, __, requested):
    mask = layer.mask.reshape(-1)
    mask[np.flatnonzero(mask)[:requested]] = 0


def grow_first(_, layer, requested):
    mask = layer.mask.reshape(-1)
    mask[np.flatnonzero(mask == 0)[:requested]] = 1


class Case:
    """The named objects of one case, and the commands: one method each, named command_..."""

    def __init__(self, name, cases, results):
        self.name, self.cases, self.results = name, cases, results
        self.objects = {}
        self.words = {}  # arrays of 16-bit words, and what they are

    def run(self, command, arguments):
        positional = [part for part in arguments if "=" not in part or part.startswith("(")]
        keywords = dict(part.split("=", 1) for part in arguments if part not in positional)
        try:
            return getattr(self, "command_" + command)(*positional, **keywords) or "ok"
        except sk.SparseKitError as error:
            return f"error {error.status_name} {error}".replace("\n", " ").replace("\t", " ")
        except Thrown:
            return "error callback"
        except Exception as error:  # of another layer: never what is expected
            return f"error {type(error).__name__} {error}".replace("\n", " ")

    def close(self):
        for thing in self.objects.values():
            if hasattr(thing, "close"):
                thing.close()

    # --- names ---

    def array(self, name):
        """An array as an argument: 16-bit words say what they are."""
        if name is None:
            return None
        array = self.objects[name]
        return sk.words(array, self.words[name]) if self.words.get(name) else array

    def arrays(self, text):
        return None if text is None else [self.array(name) for name in text.split(",")]

    def keep(self, name, array):
        if str(array.dtype) == "bfloat16":
            array = array.view(np.uint16)
        if array.dtype == np.uint16:
            self.words[name] = "bf16"
        self.objects[name] = array

    def keep_all(self, names, arrays):
        names = names.split(",")
        if len(names) != len(arrays):
            raise sk.ShapeMismatchError(f"out: got {len(names)} names, expected {len(arrays)}")
        for name, array in zip(names, arrays):
            self.keep(name, array)

    def options(self, context=None, into=None, **others):
        """What many commands take: context, and into."""
        if context is not None:
            others["context"] = self.objects[context]
        if into is not None:
            others["into"] = self.arrays(into)
        return others

    def view_options(self, context=None, into=None):
        options = self.options(context, into)
        if into is not None:
            options["into"] = options["into"][0]
        return options

    # --- arrays ---

    def command_array(self, name, dtype, file):
        path = os.path.join(self.cases, "data", file)
        self.objects[name] = np.fromfile(path, DTYPES[dtype])
        self.words[name] = dtype if dtype == "bf16" else None

    def command_zeros(self, name, dtype, count):
        self.objects[name] = np.zeros(int(count), DTYPES[dtype])
        self.words[name] = dtype if dtype == "bf16" else None

    def command_readonly(self, name):
        self.objects[name].flags.writeable = False

    def command_save(self, name):
        self.objects[name].tofile(os.path.join(self.results, f"{self.name}.{name}.bin"))

    def command_address(self, name):
        array = self.objects[name]
        seen = sk._native.address((self.array(name),))  # as a call sees its arguments
        return ints(seen == array.__array_interface__["data"][0])

    # --- contexts ---

    def command_context(self, name, executor="default", threads="0", progress=None):
        function = {
            None: None,
            "cancel": lambda done, total: True,
            "throw": throw,
            "count": lambda done, total: False,
        }[progress]
        self.objects[name] = sk.Context(executor, int(threads), function)

    # --- views ---

    def command_view(self, name, dtype, array, text=None, shape=None, stride=None, offset=None):
        array = self.array(array)
        if text is not None:
            self.objects[name] = sk.View.from_text(array, text, dtype)
        else:
            self.objects[name] = sk.View(
                array,
                integers(shape),
                integers(stride),
                None if offset is None else int(offset),
                dtype,
            )

    def command_format(self, view):
        return "text " + self.objects[view].layout

    def command_dtype(self, view):
        return "text " + self.objects[view].dtype

    def command_shape(self, view):
        return ints(*self.objects[view].shape)

    def command_stride(self, view):
        return ints(*self.objects[view].stride)

    def command_offset(self, view):
        return ints(self.objects[view].offset)

    def command_cosize(self, view):
        return ints(self.objects[view].cosize)

    def command_numel(self, thing):
        return ints(self.objects[thing].numel())

    def command_linear_offset(self, view, index):
        return ints(self.objects[view].linear_offset(integers(index)))

    def command_to_param_rc(self, view, index, cols):
        return ints(*self.objects[view].to_param_rc(integers(index), int(cols)))

    def command_view_block_view(self, view, shape=None, reorder="0"):
        view = self.objects[view]
        blocks = view.block_view_of(integers(shape), reorder == "1")
        return layout_of(blocks, memory_start(view))

    def command_view_merged(self, view, out, shape=None, context=None):
        blocks = self.objects[view].block_view_of(
            integers(shape), merge=True, **self.options(context)
        )
        self.keep(out, blocks)

    def command_view_broadcast(self, view, values, out, shape=None, context=None):
        self.keep(
            out,
            self.objects[view].broadcast_block_to_element(
                self.array(values), integers(shape), **self.options(context)
            ),
        )

    def command_view_apply_mask(self, view, mask, shape=None, **options):
        self.objects[view].apply_mask(
            self.array(mask), integers(shape), **self.view_options(**options)
        )

    def command_view_apply_keep_mask(self, view, mask, shape=None, **options):
        self.objects[view].apply_keep_mask(
            self.array(mask), integers(shape), **self.view_options(**options)
        )

    def command_view_apply_multiplier(self, view, multiplier, shape=None, **options):
        self.objects[view].apply_multiplier(
            self.array(multiplier), integers(shape), **self.view_options(**options)
        )

    # --- blocks and scopes ---

    def command_block(self, block, view, /, shape=None, name=None):
        self.objects[block] = sk.BlockSpec(self.objects[view], integers(shape), name)

    def command_couple(self, block, /, members, orders=None, name=None):
        self.objects[block] = sk.BlockCoupling(
            [self.objects[member] for member in members.split(",")], permutations(orders), name
        )

    def command_scope(self, scope, block, /, shape=None, name=None):
        self.objects[scope] = sk.ScopeSpec(self.objects[block], integers(shape), name)

    def command_couple_scopes(self, scope, /, members, orders=None, name=None):
        self.objects[scope] = sk.ScopeCoupling(
            [self.objects[member] for member in members.split(",")], permutations(orders), name
        )

    def command_close(self, name):
        self.objects[name].close()

    def command_live(self):
        return ints(sk.live_handles())

    def command_name(self, thing):
        return "text " + self.objects[thing].name

    def command_score_dtype(self, thing):
        return "text " + self.objects[thing].score_dtype

    def command_leaf(self, block, index):
        return ints(*self.objects[block].leaf_shape(int(index)))

    def command_norms(self, block, p, out, values=None, context=None):
        self.keep(
            out, self.objects[block].norms(self.arrays(values), float(p), **self.options(context))
        )

    def command_min(self, block, out, context=None):
        self.keep(out, self.objects[block].min(**self.options(context)))

    def command_max(self, block, out, context=None):
        self.keep(out, self.objects[block].max(**self.options(context)))

    def command_nnz(self, block, eps="1e-8", out=None, context=None):
        options = self.options(context)
        if out is not None:
            self.keep(out, self.objects[block].nnz(float(eps), per_block=True, **options))
        return ints(self.objects[block].nnz(float(eps), **options))

    def command_reduce(self, block, fn, out, context=None):
        function = {"sum": in_order_sum, "throw": throw, "stop": stop}[fn]
        self.keep(out, self.objects[block].reduce(None, function, **self.options(context)))

    def command_apply_mask(self, block, mask, **options):
        self.objects[block].apply_mask(self.array(mask), **self.options(**options))

    def command_apply_keep_mask(self, block, mask, **options):
        self.objects[block].apply_keep_mask(self.array(mask), **self.options(**options))

    def command_apply_multiplier(self, block, multiplier, **options):
        self.objects[block].apply_multiplier(self.array(multiplier), **self.options(**options))

    def command_hard_threshold(self, thing, thresholds, values=None, **options):
        return ints(
            *self.objects[thing].hard_threshold(
                self.array(thresholds), values=self.arrays(values), **self.options(**options)
            )
        )

    def command_soft_threshold(
        self,
        thing,
        thresholds,
        conditioners=None,
        eps=None,
        atol=None,
        max_iter="0",
        scale="0",
        **options,
    ):
        return ints(
            *self.objects[thing].soft_threshold(
                self.array(thresholds),
                self.arrays(conditioners),
                max_iter=int(max_iter),
                atol=number(atol),
                eps=number(eps),
                scale=scale == "1",
                **self.options(**options),
            )
        )

    def command_set_data(self, block, source, context=None):
        self.objects[block].set_data(self.arrays(source), **self.options(context))

    def command_block_masks(self, block, mask, out, context=None):
        masks = self.objects[block].get_masks(self.array(mask), **self.options(context))
        self.keep_all(out, masks if isinstance(masks, list) else [masks])

    def command_block_view(self, block, reorder):
        block = self.objects[block]
        blocks = block.block_view(reorder=reorder == "1")
        return layout_of(blocks, memory_start(block.views[0]))

    def command_broadcast_fake(self, block):
        values = np.zeros(self.objects[block].grid_shape)
        return layout_of(self.objects[block].broadcast_block_to_element(values, fake=True), values)

    def command_expand_block_tensor(self, block):
        values = np.zeros(self.objects[block].grid_shape)
        return layout_of(self.objects[block].expand_block_tensor(values), values)

    def command_merged(self, block, out, context=None):
        self.keep(out, self.objects[block].block_view(merge=True, **self.options(context)))

    def command_broadcast(self, block, values, out, context=None):
        arrays = self.objects[block].broadcast_block_to_element(
            self.array(values), **self.options(context)
        )
        self.keep_all(out, arrays if isinstance(arrays, list) else [arrays])

    def command_scope_norms(self, scope, p, out, context=None):
        self.keep(out, self.objects[scope].block_norms(p=float(p), **self.options(context)))

    def command_block_to_scope(self, scope, values, out, context=None):
        scope, values = self.objects[scope], self.arrays(values)
        if isinstance(scope, sk.ScopeSpec) and len(values) == 1:
            values = values[0]
        self.keep(out, scope.block_to_scope(values, **self.options(context)))

    def command_scope_to_block(self, scope, values, out, context=None):
        arrays = self.objects[scope].scope_to_block(self.array(values), **self.options(context))
        self.keep_all(out, arrays if isinstance(arrays, list) else [arrays])

    def command_block_to_scope_view(self, scope, reorder):
        scope = self.objects[scope]
        values = [np.zeros(member.block.grid_shape) for member in scope.scopes()]
        given = values if isinstance(scope, sk.ScopeCoupling) else values[0]
        return layout_of(scope.block_to_scope(given, reorder == "1", merge=False), values[0])

    def command_kth_largest(self, scope, k, out, values=None, scores=None, context=None):
        self.keep(
            out,
            self.objects[scope].kth_largest(
                self.arrays(values),
                integers(k),
                block_scores=self.array(scores),
                **self.options(context),
            ),
        )

    def command_kth_mid(self, scope, k, out, k_weight="1", values=None, scores=None, context=None):
        self.keep(
            out,
            self.objects[scope].kth_mid(
                self.arrays(values),
                integers(k),
                float(k_weight),
                block_scores=self.array(scores),
                **self.options(context),
            ),
        )

    def command_keep_top(
        self, scope, counts, values=None, scores=None, ties="by_position", **options
    ):
        return ints(
            *self.objects[scope].hard_threshold(
                nnz=integers(counts),
                values=self.arrays(values),
                block_scores=self.array(scores),
                ties=ties,
                **self.options(**options),
            )
        )

    def command_masks(
        self,
        scope,
        out,
        counts=None,
        values=None,
        scores=None,
        block_mask=None,
        ties="by_position",
        context=None,
    ):
        masks, report = self.objects[scope].get_masks(
            integers(counts),
            self.arrays(values),
            self.array(scores),
            self.array(block_mask),
            ties=ties,
            report=True,
            **self.options(context),
        )
        self.keep_all(out, masks if isinstance(masks, list) else [masks])
        return ints(*report)

    def command_sparsity_to_nnz(self, scope, sparsity):
        return ints(self.objects[scope].sparsity_to_nnz(float(sparsity)))

    # --- conveniences ---

    def command_prune_nm(self, view, axis, n, m, **options):
        return ints(
            *sk.prune_nm(
                self.objects[view], int(n), int(m), int(axis), **self.view_options(**options)
            )
        )

    def command_prune_unstructured(self, view, sparsity, **options):
        return ints(
            *sk.prune_unstructured(
                self.objects[view], float(sparsity), **self.view_options(**options)
            )
        )

    def command_soft_threshold_blocks(self, view, shape, threshold, **options):
        return ints(
            *sk.soft_threshold_blocks(
                self.objects[view],
                integers(shape),
                float(threshold),
                **self.view_options(**options),
            )
        )

    # --- training ---

    def command_schedule(self, name, kind, **options):
        if kind == "custom":
            function = {"half": lambda t: 1 / (2 + t), "throw": throw}[options["fn"]]
            self.objects[name] = sk.CustomDecay(function)
            return
        kinds = {
            "cosine": sk.CosineDecay,
            "linear": sk.LinearDecay,
            "magnitude": sk.MagnitudePruneDecay,
        }
        words = {"initial": "initial_sparsity", "final": "final_sparsity"}
        counts = ("t_max", "last_epoch", "t_start", "interval")
        self.objects[name] = kinds[kind](
            **{
                words.get(key, key): int(value) if key in counts else float(value)
                for key, value in options.items()
            }
        )

    def command_schedule_step(self, name, t=None):
        self.objects[name].step(None if t is None else int(t))

    def command_position(self, name):
        return ints(self.objects[name].position)

    def command_rate(self, name, current=None):
        decay = self.objects[name]
        return numbers(decay.rate() if current is None else decay.rate_from(float(current)))

    def command_cumulative_sparsity(self, name, t):
        return numbers(self.objects[name].cumulative_sparsity(int(t)))

    def command_masking(
        self,
        name,
        schedule,
        seed="0",
        prune="magnitude",
        redistribute="none",
        grow="none",
        dense_gradients="0",
        fn=None,
    ):
        throws = fn == "throw"
        criterion = throw if throws else in_order_sum
        prune_modes = {
            "callback": throw if throws else prune_first,
            "struct_criterion": sk.prune.struct_criterion(criterion),
        }
        grow_modes = {
            "callback": throw if throws else grow_first,
            "struct_criterion": sk.grow.struct_criterion(criterion),
        }
        statistics = {"callback": throw if throws else lambda masking, layer: 1.0 + layer.id}
        self.objects[name] = sk.Masking(
            self.objects[schedule],
            prune_modes.get(prune, prune),
            statistics.get(redistribute, redistribute),
            grow_modes.get(grow, grow),
            dense_gradients=dense_gradients == "1",
            seed=int(seed),
        )

    def command_add(self, masking, name, view, /, mask, **arrays):
        layer = self.objects[masking].add(
            name,
            self.objects[view],
            self.objects[mask],
            **{kind: self.array(array) for kind, array in arrays.items()},
        )
        return ints(layer.id)

    def command_remove(self, masking, name):
        self.objects[masking].remove(name)

    def command_remove_matching(self, masking, part):
        return ints(self.objects[masking].remove_matching(part))

    def command_has_layer(self, masking, layer):
        return ints(self.objects[masking].has_layer(int(layer)))

    def command_layer_name(self, masking, layer):
        return "text " + self.objects[masking].layer_name(int(layer))

    def command_find(self, masking, name):
        return ints(self.objects[masking].find(name))

    def command_initialise(
        self, masking, density="0", mode="random", draw="exact", counts=None, context=None
    ):
        self.objects[masking].initialise(
            float(density), mode, draw=draw, counts=integers(counts), **self.options(context)
        )

    def command_densities(self, masking, density, mode):
        return numbers(*self.objects[masking].densities(float(density), mode))

    def command_apply(self, masking, what, context=None):
        self.objects[masking].apply(*what.split(","), **self.options(context))

    def command_step(self, masking, context=None):
        self.objects[masking].step(**self.options(context))

    def command_update(self, masking, context=None):
        return numbers(*self.objects[masking].update(**self.options(context)))

    def command_stats(self, masking, layer=None):
        return numbers(*self.objects[masking].stats(None if layer is None else int(layer)))

    def command_baseline(self, masking):
        return ints(self.objects[masking].baseline)

    def command_adjusted_growth(self, masking):
        return numbers(self.objects[masking].adjusted_growth)

    def command_state_save(self, masking, array):
        self.keep(array, np.frombuffer(self.objects[masking].save(), np.uint8))

    def command_state_restore(self, masking, array):
        self.objects[masking].restore(self.objects[array])


def memory_start(view):
    """A flat array that begins where the view's array does."""
    start = sk.View.from_existing(view, (1,), (1,), 0)
    return start.data


def _fact(name, property_like):
    def command(self, thing):
        fact = getattr(self.objects[thing], name)
        fact = fact if property_like else fact()
        return ints(*fact) if isinstance(fact, tuple) else ints(fact)

    return command


for _name in ("grid_shape",):
    setattr(Case, "command_" + _name, _fact(_name, True))
for _name in (
    "numblk",
    "numel_per_block",
    "leaf_count",
    "numscope",
    "numblk_per_scope",
    "numel_per_scope",
    "member_count",
    "layer_count",
):
    setattr(Case, "command_" + _name, _fact(_name, False))


def main(cases, results):
    warnings.simplefilter("ignore", sk.NotConvergedWarning)  # the report has it too
    os.makedirs(results, exist_ok=True)
    case, step = None, 0
    with (
        open(os.path.join(cases, "cases.tsv"), encoding="utf-8") as lines,
        open(os.path.join(results, "results.tsv"), "w", encoding="utf-8") as out,
    ):
        for line in lines:
            name, command, *arguments = line.rstrip("\n").split("\t")
            if case is None or case.name != name:
                if case is not None:
                    case.close()
                case, step = Case(name, cases, results), 0
            step += 1
            out.write(f"{name}\t{step}\t{case.run(command, arguments)}\n")
    if case is not None:
        case.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
