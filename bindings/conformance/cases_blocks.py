# SPDX-License-Identifier: Apache-2.0
"""Cases of blocks and couplings."""
import math
import random

BAD = "SPK_INVALID_ARGUMENT"
DTYPES = ("f32", "f64", "f16", "bf16")
P_VALUES = (0.0, 1.0, 2.0, math.inf, -math.inf, 3.0, 0.5)


def mixed(seed, n, scale=1.0):
    """Numbers without ties, of both signs."""
    drawn = random.Random(seed)
    return [scale * drawn.choice((-1, 1)) * (0.25 + drawn.random()) for _ in range(n)]


def one_to(n):
    return [float(i) for i in range(1, n + 1)]


def block_of(c, dtype, values, layout, shape=()):
    """The array A seen by the view V, cut by the block B."""
    c.array("A", dtype, values)
    c.do("view", "V", dtype, "A", layout)
    c.do("block", "B", "V", **({"shape": shape} if shape else {}))


def pair_of(c, first="f32", second="f32"):
    """X (4,6) in blocks of a row, coupled with the columns of Y (3,4): blocks of 6 + 3 elements."""
    c.array("X", first, mixed("x", 30))
    c.array("Y", second, mixed("y", 12))
    c.do("view", "VX", first, "X", "(4,6):(6,1)+3")
    c.do("view", "VY", second, "Y", "(3,4)")
    c.do("block", "BX", "VX", shape=[1, 6])
    c.do("block", "BY", "VY", shape=[3, 1])
    c.do("couple", "B", members=["BX", "BY"], orders=[[0, 1], [1, 0]])


# --- facts --------------------------------------------------------------------------------------

def cases_block_facts(suite):
    c = suite.case("block_facts")
    c.do("zeros", "A", "f32", 64)
    c.do("view", "V", "f32", "A", "(4,6,2)")
    c.do("block", "B", "V", shape=[2, 3, -1], name="weights")
    c.check("ints 2,2,1", "grid_shape", "B")
    c.check("ints 4", "numblk", "B")
    c.check("ints 12", "numel_per_block", "B")
    c.check("ints 48", "numel", "B")
    c.check("text f32", "score_dtype", "B")
    c.check("ints 1", "leaf_count", "B")
    c.check("text weights", "name", "B")
    c.check("ints 2,3,2", "leaf", "B", 0)
    c.fails("SPK_OUT_OF_BOUNDS", "index", "leaf", "B", 1)
    c = suite.case("block_default_shape")
    c.do("zeros", "A", "f64", 64)
    c.do("view", "V", "f64", "A", "(4,6)")
    c.do("block", "B", "V")
    c.check("ints 4,6", "grid_shape", "B")
    c.check("ints 1", "numel_per_block", "B")
    c.check("text f64", "score_dtype", "B")
    c.check("text block", "name", "B")
    c = suite.case("coupling_facts")
    pair_of(c, "bf16", "f64")
    c.check("ints 4,1", "grid_shape", "B")
    c.check("ints 4", "numblk", "B")
    c.check("ints 9", "numel_per_block", "B")
    c.check("ints 36", "numel", "B")
    c.check("text f64", "score_dtype", "B")
    c.check("ints 2", "leaf_count", "B")
    c.check("text coupling", "name", "B")
    c.check("ints 1,6", "leaf", "B", 0)
    c.check("ints 3,1", "leaf", "B", 1)


def cases_block_refusals(suite):
    c = suite.case("block_refused_shapes")
    c.do("zeros", "A", "f32", 64)
    c.do("view", "V", "f32", "A", "(4,10)")
    c.fails("SPK_SHAPE_MISMATCH", "divisible by 3", "block", "B", "V", shape=[2, 3])
    c.fails("SPK_SHAPE_MISMATCH", "", "block", "B", "V", shape=[2])
    c.fails("SPK_SHAPE_MISMATCH", "", "block", "B", "V", shape=[2, 2, 2])
    c = suite.case("coupling_refused")
    c.do("zeros", "X", "f32", 24)
    c.do("zeros", "Y", "f32", 24)
    c.do("view", "VX", "f32", "X", "(4,6)")
    c.do("view", "VY", "f32", "Y", "(6,4)")
    c.do("view", "VZ", "f32", "Y", "(24)")
    for name in ("X", "Y", "Z"):
        c.do("block", f"B{name}", f"V{name}")
    c.fails("SPK_COUPLING", "", "couple", "B", members=["BX", "BY"])
    c.fails("SPK_COUPLING", "", "couple", "B", members=["BX", "BZ"])
    c.fails("SPK_COUPLING", "permutation", "couple", "B", members=["BX", "BY"],
            orders=[[0, 1], [0, 0]])
    c.fails("SPK_SHAPE_MISMATCH", "orders", "couple", "B", members=["BX", "BY"], orders=[[1, 0]])
    c.do("couple", "B", members=["BX", "BY"], orders=[[0, 1], [1, 0]])
    c = suite.case("coupling_refused_overlap")
    c.array("A", "f32", one_to(24))
    c.do("view", "V", "f32", "A", "(4,3)")
    c.do("view", "W", "f32", "A", "(4,3)+9")
    c.do("block", "BV", "V", shape=[1, 3])
    c.do("block", "BW", "W", shape=[1, 3])
    c.do("couple", "B", members=["BV", "BW"])
    c.array("mask", "u8", [1, 0, 1, 0])
    c.fails("SPK_OVERLAP", "", "apply_mask", "B", mask="mask")
    c.save("A")


# --- measuring ----------------------------------------------------------------------------------

def cases_norms(suite):
    layouts = {"f32": "(4,6)", "f64": "(4,6):(1,4)+1", "f16": "(4,6):(-6,-1)+23",
               "bf16": "(4,6):(12,2)+1"}
    for dtype, layout in layouts.items():
        c = suite.case(f"norms_{dtype}")
        block_of(c, dtype, mixed(dtype, 60), layout, [2, 3])
        for i, p in enumerate(P_VALUES):
            c.do("norms", "B", p=p, out=f"n{i}")
            c.save(f"n{i}")
    c = suite.case("norms_of_values")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [1, 6])
    c.array("G", "f32", mixed(2, 24))
    c.do("norms", "B", p=2.0, out="n", values="G")
    c.save("n")
    c = suite.case("norms_pythagorean")
    block_of(c, "f32", [3, 4, -5, 12, 0, 0, 8, 15], "(4,2)", [1, 2])
    c.do("norms", "B", p=2.0, out="n")
    assert list(c.model["n"].values) == [5, 13, 0, 17]
    c.save("n")
    for dtype, large, small in (("f32", 1e30, 1e-30), ("f64", 1e300, 1e-300)):
        c = suite.case(f"norms_without_overflow_{dtype}")
        block_of(c, dtype, [3 * large, 4 * large, 3 * small, 4 * small], "(2,2)", [1, 2])
        for p in (1.0, 2.0, 3.0):
            c.do("norms", "B", p=p, out=f"n{p:.0f}")
            c.save(f"n{p:.0f}")
    for dtype, least in (("f32", 2.0**-149), ("f64", 2.0**-1074), ("f16", 2.0**-24),
                         ("bf16", 2.0**-133)):
        c = suite.case(f"norms_denormal_{dtype}")
        block_of(c, dtype, [3 * least, -4 * least, least, 0.0], "(2,2)", [1, 2])
        for p in (0.0, 1.0, 2.0, -math.inf):
            c.do("norms", "B", p=p, out=f"n{p:.0f}")
            c.save(f"n{p:.0f}")
    c = suite.case("norms_special")
    block_of(c, "f32", [math.nan, 1, math.inf, -1, -math.inf, math.nan, -0.0, 0], "(4,2)", [1, 2])
    for i, p in enumerate(P_VALUES):
        c.do("norms", "B", p=p, out=f"n{i}")
        c.save(f"n{i}")
    for name, first, second in (("f32", "f32", "f32"), ("mixed", "f16", "bf16"),
                                ("wide", "f32", "f64")):
        c = suite.case(f"norms_coupled_{name}")
        pair_of(c, first, second)
        for i, p in enumerate(P_VALUES):
            c.do("norms", "B", p=p, out=f"n{i}")
            c.save(f"n{i}")
    c = suite.case("norms_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    for p in (math.nan, -1.0, 0.009, 1000.5):
        c.fails(BAD, "p: got", "norms", "B", p=p, out="n")


def cases_extremes(suite):
    for dtype in DTYPES:
        c = suite.case(f"extremes_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 2])
        c.do("min", "B", out="low")
        c.do("max", "B", out="high")
        c.save("low", "high")
    c = suite.case("extremes_special")
    block_of(c, "f32", [math.nan, 1, -0.0, -0.0, math.inf, -math.inf, -2, -1], "(4,2)", [1, 2])
    c.do("min", "B", out="low")
    c.do("max", "B", out="high")
    c.save("low", "high")
    c = suite.case("extremes_coupled")
    pair_of(c)
    c.do("min", "B", out="low")
    c.do("max", "B", out="high")
    c.save("low", "high")


def cases_nnz(suite):
    c = suite.case("nnz")
    block_of(c, "f32", [0, 1e-9, 1e-7, -1, math.nan, 0, -0.0, math.inf], "(4,2)", [2, 1])
    c.do("nnz", "B")
    c.do("nnz", "B", out="n")
    c.do("nnz", "B", eps=0.0, out="n0")
    c.do("nnz", "B", eps=2.0, out="n2")
    c.save("n", "n0", "n2")
    c = suite.case("nnz_coupled")
    pair_of(c)
    c.do("nnz", "B", eps=0.5, out="n")
    c.save("n")
    c = suite.case("nnz_refused")
    block_of(c, "f32", one_to(8), "(4,2)")
    c.fails(BAD, "eps: got -1", "nnz", "B", eps=-1.0)
    c.fails(BAD, "eps: got NaN", "nnz", "B", eps=math.nan, out="n")


def cases_reduce(suite):
    for dtype in DTYPES:
        c = suite.case(f"reduce_sum_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.do("reduce", "B", fn="sum", out="s")
        c.save("s")
    c = suite.case("reduce_sum_coupled")
    pair_of(c, "f32", "f64")
    c.do("reduce", "B", fn="sum", out="s")
    c.save("s")
    c = suite.case("reduce_throw")
    block_of(c, "f32", one_to(24), "(4,6)", [1, 6])
    c.do("reduce", "B", fn="throw", out="s")
    c.do("reduce", "B", fn="sum", out="after")
    c.save("after")
    c = suite.case("reduce_stop")
    block_of(c, "f32", one_to(24), "(4,6)", [1, 6])
    c.do("reduce", "B", fn="stop", out="s")
    c.do("reduce", "B", fn="sum", out="after")
    c.save("after")


# --- masks, multipliers, thresholds -------------------------------------------------------------

def cases_masks(suite):
    for dtype in DTYPES:
        for command in ("apply_mask", "apply_keep_mask"):
            c = suite.case(f"{command}_{dtype}")
            block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
            c.array("mask", "u8", [1, 0, 0, 7])
            c.do(command, "B", mask="mask")
            c.save("A")
    c = suite.case("apply_mask_into")
    block_of(c, "f32", mixed(1, 26), "(4,6):(1,4)+2", [2, 3])
    c.array("mask", "u8", [1, 0, 0, 1])
    c.array("I", "f32", one_to(26))
    c.do("apply_mask", "B", mask="mask", into="I")
    c.save("A", "I")
    c = suite.case("apply_mask_coupled")
    pair_of(c)
    c.array("mask", "u8", [0, 1, 1, 0])
    c.do("apply_mask", "B", mask="mask")
    c.save("X", "Y")
    c = suite.case("apply_keep_mask_coupled_into")
    pair_of(c, "f16", "f64")
    c.array("mask", "u8", [0, 1, 1, 0])
    c.do("zeros", "IX", "f16", 30)
    c.do("zeros", "IY", "f64", 12)
    c.do("apply_keep_mask", "B", mask="mask", into=["IX", "IY"])
    c.save("X", "Y", "IX", "IY")
    c = suite.case("apply_mask_special")
    block_of(c, "f32", [math.nan, -math.inf, -0.0, -1, math.nan, math.inf, -0.0, 2], "(4,2)",
             [1, 2])
    c.array("mask", "u8", [1, 1, 0, 0])
    c.do("apply_mask", "B", mask="mask")
    c.save("A")
    c = suite.case("apply_mask_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    c.array("mask", "u8", [1, 0, 0])
    c.array("floats", "f32", [1, 0, 0, 1])
    c.array("good", "u8", [1, 0, 0, 1])
    c.do("zeros", "I", "f64", 24)
    c.fails("SPK_SHAPE_MISMATCH", "mask", "apply_mask", "B", mask="mask")
    c.fails("SPK_UNSUPPORTED_DTYPE", "mask", "apply_mask", "B", mask="floats")
    c.fails("SPK_UNSUPPORTED_DTYPE", "into", "apply_mask", "B", mask="good", into="I")
    c.fails("SPK_SHAPE_MISMATCH", "into", "apply_mask", "B", mask="good", into=["I", "I"])
    c.save("A")


def cases_multipliers(suite):
    for dtype in DTYPES:
        c = suite.case(f"apply_multiplier_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.array("m", "f64", [0.1, -3.7, 0, 1e-4])
        c.do("apply_multiplier", "B", multiplier="m")
        c.save("A")
    for dtype in DTYPES:
        c = suite.case(f"multiplier_of_{dtype}")
        block_of(c, "f32", mixed(dtype, 24), "(4,6)", [2, 3])
        c.array("m", dtype, [0.1, -3.7, 0, 1e-4])
        c.do("zeros", "I", "f32", 24)
        c.do("apply_multiplier", "B", multiplier="m", into="I")
        c.save("A", "I")
    c = suite.case("apply_multiplier_special")
    block_of(c, "f32", [math.nan, -math.inf, -0.0, -1, math.nan, math.inf, 1e30, -0.0], "(4,2)",
             [1, 2])
    c.array("m", "f32", [0, -0.0, 2, 1e30])
    c.do("apply_multiplier", "B", multiplier="m")
    c.save("A")
    c = suite.case("apply_multiplier_coupled")
    pair_of(c, "bf16", "f32")
    c.array("m", "f32", [0.5, 0, 1.7, -1])
    c.do("apply_multiplier", "B", multiplier="m")
    c.save("X", "Y")
    c = suite.case("apply_multiplier_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    c.array("bytes", "u8", [1, 0, 0, 1])
    c.fails("SPK_UNSUPPORTED_DTYPE", "multiplier", "apply_multiplier", "B", multiplier="bytes")
    c.save("A")


def cases_hard_thresholds(suite):
    for dtype in DTYPES:
        c = suite.case(f"hard_threshold_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.array("t", "f64" if dtype == "f64" else "f32", [1.5, 1.9, 0, math.inf])
        c.do("hard_threshold", "B", thresholds="t")
        c.save("A")
    c = suite.case("hard_threshold_is_strict")
    block_of(c, "f32", [3, 4, 6, 8, 5, 12, 0, 0], "(4,2)", [1, 2])
    c.array("t", "f32", [10])
    c.check("ints 4,-1,2,0,0", "hard_threshold", "B", thresholds="t")
    c.save("A")
    c = suite.case("hard_threshold_special")
    block_of(c, "f32", [math.nan, 1, math.inf, -1, -0.0, 0, -0.0, 0], "(4,2)", [1, 2])
    c.array("t", "f64", [math.inf, math.inf, 0, 1e-300])
    c.check("ints 4,-1,3,0,0", "hard_threshold", "B", thresholds="t")
    c.save("A")
    c = suite.case("hard_threshold_of_values")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [1, 6])
    c.array("G", "f16", mixed(2, 24))
    c.array("t", "f32", [1.75])
    c.do("zeros", "I", "f32", 24)
    c.do("hard_threshold", "B", thresholds="t", values="G", into="I")
    c.save("A", "I")
    c = suite.case("hard_threshold_coupled")
    pair_of(c, "f32", "bf16")
    c.array("t", "f32", [2.0, 2.5, 0.1, 9])
    c.do("hard_threshold", "B", thresholds="t")
    c.save("X", "Y")
    c = suite.case("hard_threshold_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    c.array("t", "f32", [1, 2, math.nan, 3])
    c.array("short", "f32", [1, 2, 3])
    c.array("halves", "f16", [1, 2, 3, 4])
    c.fails(BAD, "thresholds[2]: got NaN", "hard_threshold", "B", thresholds="t")
    c.fails("SPK_SHAPE_MISMATCH", "thresholds", "hard_threshold", "B", thresholds="short")
    c.fails("SPK_UNSUPPORTED_DTYPE", "thresholds", "hard_threshold", "B", thresholds="halves")
    c.save("A")


def cases_soft_thresholds(suite):
    for dtype in DTYPES:
        c = suite.case(f"soft_threshold_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.array("t", "f32", [0.5, 1.0, 0, 10])
        c.do("soft_threshold", "B", thresholds="t")
        c.save("A")
    c = suite.case("soft_threshold_one_number")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [1, 6])
    c.array("t", "f64", [0.7])
    c.do("zeros", "I", "f32", 24)
    c.do("soft_threshold", "B", thresholds="t", into="I")
    c.save("A", "I")
    c = suite.case("soft_threshold_at_the_norm")
    block_of(c, "f32", [3, 4, 3, 4, 0, -0.0, -5, 12], "(4,2)", [1, 2])
    c.array("t", "f32", [5, 4, 0, 13])
    c.check("ints 4,-1,1,0,0", "soft_threshold", "B", thresholds="t", eps=0.0)
    c.save("A")
    c = suite.case("soft_threshold_eps")
    block_of(c, "f64", [3, 4, 6, 8], "(2,2)", [1, 2])
    c.array("t", "f64", [3])
    c.do("soft_threshold", "B", thresholds="t", eps=1.0)
    c.save("A")
    c = suite.case("soft_threshold_scale")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [1, 6])
    c.array("t", "f32", [0.1, 0.2, 0.05, 3])
    c.do("soft_threshold", "B", thresholds="t", scale=1)
    c.save("A")
    c = suite.case("soft_threshold_special")
    block_of(c, "f32", [math.nan, 1, math.inf, -1, -2, -0.0, 1, 2], "(4,2)", [1, 2])
    c.array("t", "f32", [math.inf, 5, 0.5, math.inf])
    c.check("ints 4,-1,3,0,0", "soft_threshold", "B", thresholds="t")
    c.save("A")
    c = suite.case("soft_threshold_coupled")
    pair_of(c, "f32", "bf16")
    c.array("t", "f32", [0.5, 0.25, 9, 0])
    c.do("soft_threshold", "B", thresholds="t")
    c.save("X", "Y")
    c = suite.case("soft_threshold_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    c.array("t", "f32", [1, -0.5, 2, 3])
    c.array("nan", "f64", [math.nan])
    c.array("one", "f64", [1])
    c.fails(BAD, "thresholds[1]: got -0.5", "soft_threshold", "B", thresholds="t")
    c.fails(BAD, "thresholds[0]: got NaN", "soft_threshold", "B", thresholds="nan")
    c.fails(BAD, "eps: got NaN", "soft_threshold", "B", thresholds="one", eps=math.nan)
    c.fails(BAD, "max_iter: got 65", "soft_threshold", "B", thresholds="one", max_iter=65)
    c.save("A")


def metric(seed, n):
    return [10 ** random.Random(f"{seed} {i}").uniform(-2, 1) for i in range(n)]


def cases_conditioned_thresholds(suite):
    for dtype in DTYPES:
        c = suite.case(f"conditioned_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.array("H", "f32", metric(dtype, 26))
        c.array("t", "f64", [0.5, 1.0, 0, 1000])
        c.do("soft_threshold", "B", thresholds="t", conditioners="H", atol=0.0, max_iter=64)
        c.save("A")
    c = suite.case("conditioned_default_tolerance")
    block_of(c, "f64", mixed(3, 24), "(4,6)", [2, 3])
    c.array("H", "f64", metric(3, 24))
    c.array("t", "f64", [0.25])
    c.do("soft_threshold", "B", thresholds="t", conditioners="H")
    c.save("A")
    c = suite.case("conditioned_single_elements")
    block_of(c, "f32", [4, -4, 1, -0.5], "(4)")
    c.array("H", "f32", [2, 4, 0.5, 1])
    c.array("t", "f32", [2])
    c.check("ints 4,-1,2,0,0", "soft_threshold", "B", thresholds="t", conditioners="H")
    c.save("A")
    c = suite.case("conditioned_coupled")
    pair_of(c)
    c.array("HX", "f64", metric("x", 30))
    c.array("HY", "f16", metric("y", 12))
    c.array("t", "f32", [0.5, 0.25, 50, 0])
    c.do("zeros", "IX", "f32", 30)
    c.do("zeros", "IY", "f32", 12)
    c.do("soft_threshold", "B", thresholds="t", conditioners=["HX", "HY"], into=["IX", "IY"])
    c.save("X", "Y", "IX", "IY")
    c = suite.case("conditioned_special")
    block_of(c, "f32", [math.nan, 1, math.inf, -1, -2, -0.0, 1, 2], "(4,2)", [1, 2])
    c.array("H", "f32", [1, 2, 1, 2, 1, 2, 1, 2])
    c.array("t", "f32", [math.inf, 5, 0, math.inf])
    c.check("ints 4,-1,3,0,0", "soft_threshold", "B", thresholds="t", conditioners="H")
    c.save("A")
    # Weighted elements that are all but equal, and one step: far from the root.
    c = suite.case("conditioned_not_converged")
    n = 32
    h = [10.0 ** (i / 4 - 4) for i in range(n)]
    block_of(c, "f64", [1 / x for x in h], "(1,32)", [1, 32])
    c.array("H", "f64", h)
    c.array("t", "f64", [1.0])
    c.do("zeros", "I", "f64", 32)
    c.step(["soft_threshold", "B"], {"thresholds": "t", "conditioners": "H", "max_iter": 1,
                                     "into": "I"}, "ints 1,-1,1,0,1")
    # One step is enough for who asks for no more.
    c.step(["soft_threshold", "B"], {"thresholds": "t", "conditioners": "H", "max_iter": 1,
                                     "atol": 1e30, "into": "I"}, "ints 1,-1,1,0,0")
    c.save("A")
    c = suite.case("conditioned_refused")
    block_of(c, "f32", one_to(24), "(4,6)", [2, 3])
    c.array("t", "f32", [1])
    for i, wrong in enumerate((0.0, -1.0, math.nan, math.inf)):
        c.array(f"H{i}", "f32", [1] * 10 + [wrong] + [1] * 13)
        c.fails(BAD, "conditioners[0]", "soft_threshold", "B", thresholds="t",
                conditioners=f"H{i}")
    c.save("A")


# --- rearranging --------------------------------------------------------------------------------

def cases_set_data(suite):
    for dtype in DTYPES:
        c = suite.case(f"set_data_{dtype}")
        block_of(c, dtype, one_to(26), "(4,6):(1,4)+2", [2, 3])
        c.array("S", "f64", [x / 3 for x in one_to(26)])
        c.do("set_data", "B", source="S")
        c.save("A")
    c = suite.case("set_data_coupled")
    pair_of(c, "f32", "f16")
    c.array("SX", "bf16", mixed(1, 30))
    c.array("SY", "f32", mixed(2, 12, 1e6))
    c.do("set_data", "B", source=["SX", "SY"])
    c.save("X", "Y")
    c.fails("SPK_SHAPE_MISMATCH", "source", "set_data", "B", source=["SX"])


def cases_rearrangements(suite):
    c = suite.case("block_view")
    block_of(c, "f32", one_to(26), "(4,6):(1,4)+2", [2, 3])
    c.check("text (2,2,2,3):(2,1,12,4)+2", "block_view", "B", reorder=0)
    c.check("text (2,2,2,3):(2,12,1,4)+2", "block_view", "B", reorder=1)
    c.check("text (2,1,2,1):(2,2,1,1)", "broadcast_fake", "B")
    c.check("text (2,2):(2,1)", "expand_block_tensor", "B")
    c = suite.case("block_view_of_coupling")
    pair_of(c)
    c.fails("SPK_COUPLING", "2 leaves", "block_view", "B", reorder=1)
    for dtype in DTYPES:
        c = suite.case(f"merged_{dtype}")
        block_of(c, dtype, mixed(dtype, 26), "(4,6):(1,4)+2", [2, 3])
        c.do("merged", "B", out="M")
        c.save("M")
    for name, first, second in (("alike", "f16", "f16"), ("mixed", "f16", "bf16"),
                                ("wide", "f32", "f64")):
        c = suite.case(f"merged_coupled_{name}")
        pair_of(c, first, second)
        c.do("merged", "B", out="M")
        c.save("M")
    c = suite.case("block_masks")
    block_of(c, "f32", one_to(26), "(4,6):(1,4)+2", [2, 3])
    c.array("mask", "u8", [1, 0, 200, 0])
    c.do("block_masks", "B", mask="mask", out="E")
    c.save("E")
    c = suite.case("block_masks_coupled")
    pair_of(c)
    c.array("mask", "u8", [1, 0, 200, 0])
    c.do("block_masks", "B", mask="mask", out=["EX", "EY"])
    c.save("EX", "EY")
    for dtype in DTYPES + ("u8", "i64"):
        c = suite.case(f"broadcast_{dtype}")
        pair_of(c)
        c.array("v", dtype, [1, 2, 3, 250])
        c.do("broadcast", "B", values="v", out=["EX", "EY"])
        c.save("EX", "EY")


def cases_nested_couplings(suite):
    c = suite.case("coupling_of_couplings")
    pair_of(c)
    c.array("Z", "f16", mixed("z", 8))
    c.do("view", "VZ", "f16", "Z", "(4,2)")
    c.do("block", "BZ", "VZ", shape=[1, 2])
    c.do("couple", "C", members=["B", "BZ"], name="three")
    c.check("ints 3", "leaf_count", "C")
    c.check("text three", "name", "C")
    c.check("ints 11", "numel_per_block", "C")
    c.do("norms", "C", p=2.0, out="n")
    c.array("mask", "u8", [0, 1, 0, 1])
    c.do("apply_mask", "C", mask="mask")
    c.save("n", "X", "Y", "Z")
    c = suite.case("coupling_of_one_permutes")
    block_of(c, "f32", mixed(1, 24), "(4,6)", [2, 2])
    c.do("couple", "T", members=["B"], orders=[[1, 0]])
    c.check("ints 3,2", "grid_shape", "T")
    c.do("norms", "T", p=1.0, out="n")
    c.array("mask", "u8", [0, 1, 0, 0, 1, 1])
    c.do("apply_mask", "T", mask="mask")
    c.save("n", "A")
    c = suite.case("coupling_permuted_3d")
    c.array("X", "f32", mixed("x", 24))
    c.array("Y", "f64", mixed("y", 96))
    c.do("view", "VX", "f32", "X", "(2,3,4):(12,4,1)")
    c.do("view", "VY", "f64", "Y", "(4,2,12):(24,12,1)")
    c.do("block", "BX", "VX")
    c.do("block", "BY", "VY", shape=[1, 1, 4])
    c.do("couple", "B", members=["BX", "BY"], orders=[[0, 1, 2], [1, 2, 0]])
    c.check("ints 2,3,4", "grid_shape", "B")
    c.do("norms", "B", p=2.0, out="n")
    c.do("merged", "B", out="M")
    c.save("n", "M")
    c = suite.case("coupling_with_a_bias")
    c.array("W", "f32", mixed("w", 24))
    c.array("b", "f32", mixed("b", 4))
    c.do("view", "VW", "f32", "W", "(4,6)")
    c.do("view", "Vb", "f32", "b", "(4,1)")
    c.do("block", "BW", "VW", shape=[1, -1])
    c.do("block", "Bb", "Vb")
    c.do("couple", "B", members=["BW", "Bb"])
    c.array("t", "f32", [2.2])
    c.do("hard_threshold", "B", thresholds="t")
    c.save("W", "b")
