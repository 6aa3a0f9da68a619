# SPDX-License-Identifier: Apache-2.0
"""Cases of what a language may get wrong: handles, memory, names, functions, contexts."""
import itertools
import math

from cases_blocks import BAD, DTYPES, block_of, mixed, one_to
from cases_scopes import scope_of
from cases_training import COSINE, masking_of, save_net, train

EXECUTORS = (("serial", 1), ("tbb", 1), ("tbb", 2), ("tbb", 4), ("openmp", 1), ("openmp", 2),
             ("openmp", 4))


# --- memory -------------------------------------------------------------------------------------

def cases_memory(suite):
    for dtype in DTYPES + ("u8", "i64"):
        c = suite.case(f"address_{dtype}")
        c.array("A", dtype, range(5))
        c.do("zeros", "Z", dtype, 1000)
        c.do("address", "A", rule="unsupported")
        c.do("address", "Z", rule="unsupported")
        c.save("A")
    for dtype in DTYPES:
        c = suite.case(f"array_bits_{dtype}")
        least = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "bf16": 2.0**-133}[dtype]
        block_of(c, dtype, [0.0, -0.0, math.inf, -math.inf, math.nan, least, -least, 1 / 3], "(8)")
        c.do("merged", "B", out="M")
        c.save("A", "M")
    c = suite.case("array_of_large_integers")
    block_of(c, "f32", one_to(4), "(4)")
    c.array("v", "i64", [2**63 - 1, -2**63, 2**53 + 1, -1])
    c.do("broadcast", "B", values="v", out="E")
    c.save("v", "E")
    c = suite.case("arrays_are_shared")
    c.array("A", "f32", one_to(12))
    c.do("view", "V", "f32", "A", "(2,3)")
    c.do("view", "W", "f32", "A", "(2,3)+6")
    c.do("prune_unstructured", "V", sparsity=0.5)
    c.do("prune_nm", "W", axis=0, n=1, m=2)
    c.save("A")


def readonly_view(c):
    c.array("A", "f32", mixed(1, 24))
    c.do("readonly", "A", rule="unsupported")
    c.do("view", "V", "f32", "A", "(4,6)")


def cases_readonly(suite):
    c = suite.case("readonly_is_read")
    readonly_view(c)
    c.do("block", "B", "V", shape=[1, 6])
    c.array("t", "f32", [1.5])
    c.do("zeros", "I", "f32", 24)
    c.do("norms", "B", p=2.0, out="n")
    c.do("hard_threshold", "B", thresholds="t", into="I")
    c.save("n", "I", "A")
    c = suite.case("readonly_is_not_written")
    readonly_view(c)
    c.do("block", "B", "V", shape=[1, 2])
    c.do("scope", "S", "B", shape=[1, 3])
    c.array("mask", "u8", [1, 0] * 6)
    c.array("t", "f32", [1])
    c.fails(BAD, "read-only", "apply_mask", "B", mask="mask")
    c.fails(BAD, "read-only", "soft_threshold", "B", thresholds="t")
    c.fails(BAD, "read-only", "keep_top", "S", counts=1)
    c.fails(BAD, "read-only", "prune_nm", "V", axis=1, n=1, m=2)
    c.fails(BAD, "read-only", "prune_unstructured", "V", sparsity=0.5)
    c.save("A")
    c = suite.case("readonly_into")
    block_of(c, "f32", one_to(4), "(4)")
    c.array("I", "f32", [9, 9, 9, 9])
    c.array("mask", "u8", [1, 0, 1, 0])
    c.do("readonly", "I", rule="unsupported")
    c.fails(BAD, "read-only", "apply_mask", "B", mask="mask", into="I")
    c.save("A", "I")


# --- names --------------------------------------------------------------------------------------

def cases_names(suite):
    c = suite.case("names_utf8")
    c.array("X", "f32", one_to(6))
    c.array("Y", "f32", one_to(6))
    c.do("view", "VX", "f32", "X", "(2,3)")
    c.do("view", "VY", "f32", "Y", "(2,3)")
    c.do("block", "BX", "VX", name="größe")
    c.do("block", "BY", "VY", name="θ")
    c.do("couple", "B", members=["BX", "BY"], name="重み")
    c.check("text größe", "name", "BX")
    c.check("text θ", "name", "BY")
    c.check("text 重み", "name", "B")
    c.fails("SPK_COUPLING", "'重み'", "block_view", "B", reorder=0)
    c = suite.case("names_in_messages")
    c.do("zeros", "A", "f32", 24)
    c.do("view", "V", "f32", "A", "(4,6)")
    c.do("view", "W", "f32", "A", "(2,3)")
    c.do("block", "B", "V", name="fc1.weight")
    c.do("block", "D", "W", name="fc2.weight")
    c.fails("SPK_COUPLING", "fc2.weight", "couple", "C", members=["B", "D"])
    c.do("schedule", "s", "linear", prune_rate=0.5, t_max=10)
    c.do("masking", "M", "s")
    c.do("zeros", "m", "u8", 24)
    c.do("add", "M", "größe", "V", mask="m")
    c.check("text größe", "layer_name", "M", 0)
    c.check("ints 0", "find", "M", "größe")
    c.fails(BAD, "größe", "add", "M", "größe", "V", mask="m")


# --- handles ------------------------------------------------------------------------------------

def cases_handles(suite):
    c = suite.case("handles_counted")
    c.step(["live"], {}, "ints 0")
    scope_of(c, "f32", one_to(24), "(4,6)", [1, 2], [1, 3])
    c.step(["live"], {}, "ints 3")
    c.do("close", "V")
    c.do("close", "B")
    c.step(["live"], {}, "ints 3")  # the scope keeps them alive
    c.do("close", "S")
    c.step(["live"], {}, "ints 0")
    c = suite.case("handles_in_every_order")
    c.array("A", "f32", one_to(24))
    for order in itertools.permutations("VBS"):
        c.do("view", "V", "f32", "A", "(4,6)")
        c.do("block", "B", "V", shape=[1, 2])
        c.do("scope", "S", "B", shape=[1, 3])
        for name in order:
            c.do("close", name)
        c.step(["live"], {}, "ints 0")
    c = suite.case("handles_closed_twice")
    scope_of(c, "f32", one_to(24), "(4,6)", [1, 2], [1, 3])
    for name in "SSBBVV":
        c.do("close", name)
    c.step(["live"], {}, "ints 0")
    c = suite.case("handles_parents_first")
    scope_of(c, "f32", mixed(1, 24), "(4,6)", [1, 2], [1, 3])
    c.do("close", "V")
    c.do("norms", "B", p=2.0, out="n")
    c.do("close", "B")
    c.do("keep_top", "S", counts=1)
    c.save("n", "A")
    c = suite.case("handles_members_first")
    c.array("X", "f32", mixed(1, 24))
    c.array("Y", "f32", mixed(2, 24))
    for name in "XY":
        c.do("view", f"V{name}", "f32", name, "(4,6)")
        c.do("block", f"B{name}", f"V{name}", shape=[1, 2])
        c.do("scope", f"S{name}", f"B{name}", shape=[1, 3])
    c.do("couple", "B", members=["BX", "BY"])
    c.do("couple_scopes", "S", members=["SX", "SY"])
    for name in ("SX", "BX", "VX", "VY", "BY", "SY"):
        c.do("close", name)
    c.do("norms", "B", p=2.0, out="n")
    c.do("keep_top", "S", counts=2)
    c.save("n", "X", "Y")
    c = suite.case("handles_schedule_first")
    masking_of(c, grow="gradient", dense_gradients=1)
    for name in ("s", "V0", "V1", "V2"):
        c.do("close", name)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    train(c, 1)
    save_net(c)
    c = suite.case("handles_closed")
    scope_of(c, "f32", one_to(24), "(4,6)", [1, 2], [1, 3])
    c.array("mask", "u8", [1] * 12)
    c.array("t", "f32", [100])
    for name in "VBS":
        c.do("close", name)
    for fact in ("format", "shape", "numel"):
        c.fails(BAD, "", fact, "V")
    for fact in ("grid_shape", "numblk", "name"):
        c.fails(BAD, "", fact, "B")
    for fact in ("grid_shape", "numscope", "member_count"):
        c.fails(BAD, "", fact, "S")
    c.fails(BAD, "", "block", "C", "V")
    c.fails(BAD, "", "scope", "T", "B")
    c.fails(BAD, "", "couple", "C", members=["B"])
    c.fails(BAD, "", "couple_scopes", "T", members=["S"])
    c.fails(BAD, "", "prune_nm", "V", axis=1, n=1, m=2)
    c.fails(BAD, "", "norms", "B", p=2, out="n")
    c.fails(BAD, "", "apply_mask", "B", mask="mask")
    c.fails(BAD, "", "reduce", "B", fn="sum", out="n")
    c.fails(BAD, "", "scope_norms", "S", p=2, out="n")
    c.fails(BAD, "", "keep_top", "S", counts=1)
    c.fails(BAD, "", "hard_threshold", "S", thresholds="t")
    c.save("A")
    c = suite.case("handles_closed_training")
    masking_of(c, schedule=COSINE)
    c.do("state_save", "M", "blob")
    c.do("close", "M")
    c.do("close", "s")
    c.fails(BAD, "", "masking", "N", "s")
    c.fails(BAD, "", "rate", "s")
    c.fails(BAD, "", "position", "s")
    c.fails(BAD, "", "schedule_step", "s")
    c.fails(BAD, "", "layer_count", "M")
    c.fails(BAD, "", "initialise", "M", density=0.5, mode="erdos_renyi")
    c.fails(BAD, "", "update", "M")
    c.fails(BAD, "", "step", "M")
    c.fails(BAD, "", "stats", "M")
    c.fails(BAD, "", "state_save", "M", "other")
    c.fails(BAD, "", "state_restore", "M", "blob")
    save_net(c)
    c = suite.case("handles_many")
    c.array("A", "f32", one_to(24))
    for i in range(50):
        c.do("view", f"V{i}", "f32", "A", "(4,6)")
    c.step(["live"], {}, "ints 50")


# --- contexts -----------------------------------------------------------------------------------

def cases_contexts(suite):
    for executor, threads in EXECUTORS:
        c = suite.case(f"context_{executor}_{threads}")
        c.do("context", "C", executor=executor, threads=threads,
             rule="" if executor == "serial" else "unavailable")
        scope_of(c, "f32", [((i * 7919) % 8209) / 64 - 64 for i in range(8192)], "(64,128)", [1, 4],
                 [4, 8])
        c.do("norms", "B", p=math.inf, out="n", context="C")
        c.do("nnz", "B", out="z", context="C")
        c.do("masks", "S", counts=9, out="M", context="C")
        c.do("merged", "B", out="G", context="C")
        c.do("prune_nm", "V", axis=1, n=2, m=4, context="C")
        c.save("n", "z", "M", "G", "A")
        c = suite.case(f"context_{executor}_{threads}_training")
        c.do("context", "C", executor=executor, threads=threads,
             rule="" if executor == "serial" else "unavailable")
        masking_of(c, redistribute="gradient", grow="random", seed=12, dense_gradients=1)
        c.do("initialise", "M", density=0.5, mode="erdos_renyi", context="C")
        c.do("update", "M", context="C")
        c.do("step", "M", context="C")
        c.do("stats", "M")
        save_net(c)
    c = suite.case("context_default")
    c.do("context", "C")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [1, 6])
    c.do("norms", "B", p=2.0, out="n", context="C")
    c.do("close", "C")
    c.do("norms", "B", p=2.0, out="m")
    c.save("n", "m")
    c = suite.case("context_refused")
    c.fails(BAD, "threads", "context", "C", threads=-1)


def run_all(c, expected):
    """Calls of all kinds, under the context C, that all end as expected."""
    for words, options in ((["norms", "B"], {"p": 2, "out": "n"}), (["nnz", "B"], {}),
                           (["merged", "B"], {"out": "g"}),
                           (["hard_threshold", "B"], {"thresholds": "t"}),
                           (["soft_threshold", "B"], {"thresholds": "t"}),
                           (["keep_top", "S"], {"counts": 3}),
                           (["prune_nm", "V"], {"axis": 1, "n": 2, "m": 4}),
                           (["prune_unstructured", "V"], {"sparsity": 0.5})):
        c.step(words, {**options, "context": "C"}, expected)


def cases_progress(suite):
    for progress, expected in (("cancel", "error SPK_CANCELLED progress"),
                               ("throw", "error callback")):
        c = suite.case(f"progress_{progress}")
        c.do("context", "C", progress=progress)
        c.do("zeros", "A", "f32", 65536)
        c.do("view", "V", "f32", "A", "(256,256)")
        c.do("block", "B", "V", shape=[1, 8])
        c.do("scope", "S", "B", shape=[1, 32])
        c.array("t", "f32", [0.5])
        run_all(c, expected)
        c.do("norms", "B", p=2.0, out="after")
        c.save("after")
        c = suite.case(f"progress_{progress}_training")
        c.do("context", "C", progress=progress)
        masking_of(c, grow="random")
        c.do("initialise", "M", density=0.5, mode="erdos_renyi")
        c.step(["update", "M"], {"context": "C"}, expected)
        c.step(["step", "M"], {"context": "C"}, expected)
        c.check("ints 0", "position", "s")
    c = suite.case("progress_count")
    c.do("context", "C", progress="count")
    scope_of(c, "f32", [((i * 7919) % 8209) / 64 - 64 for i in range(8192)], "(64,128)", [1, 4],
             [4, 8])
    c.do("norms", "B", p=1.0, out="n", context="C")
    c.do("keep_top", "S", counts=9, context="C")
    c.save("n", "A")
    c = suite.case("progress_count_serial")
    c.do("context", "C", executor="serial", threads=1, progress="count")
    scope_of(c, "f64", mixed(1, 512), "(8,64)", [1, 4], [1, 16])
    c.do("keep_top", "S", counts=5, context="C")
    c.save("A")
