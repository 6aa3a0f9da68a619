# SPDX-License-Identifier: Apache-2.0
"""Cases of views: facts, texts, refusals, and what works on a view alone."""
import math

BAD = "SPK_INVALID_ARGUMENT"


def one_to(n):
    return [float(i) for i in range(1, n + 1)]


def facts(case, *arguments, **options):
    """A view made so, and everything that can be asked of it."""
    case.do("view", "V", *arguments, **options)
    for fact in ("format", "dtype", "shape", "stride", "offset", "numel", "cosize"):
        case.do(fact, "V")


def cases_view_facts(suite):
    for dtype in ("f32", "f64", "f16", "bf16"):
        c = suite.case(f"view_facts_{dtype}")
        c.do("zeros", "A", dtype, 64)
        facts(c, dtype, "A", "(4,6):(6,1)+2")
    c = suite.case("view_of_numbers")
    c.do("zeros", "A", "f32", 64)
    facts(c, "f32", "A", shape=[2, 3, 4], stride=[12, 4, 1], offset=5)
    c = suite.case("view_contiguous")
    c.do("zeros", "A", "f32", 30)
    facts(c, "f32", "A", shape=[2, 3, 5])
    c = suite.case("view_one_dimension")
    c.do("zeros", "A", "f32", 30)
    facts(c, "f32", "A", "(10):(3)+1")
    c = suite.case("view_text_blanks")
    c.do("zeros", "A", "f32", 30)
    facts(c, "f32", "A", " ( 2 , 3 ) : ( 3 , 1 ) + 4 ")
    c = suite.case("view_text_without_strides")
    c.do("zeros", "A", "f32", 30)
    facts(c, "f32", "A", "(4,3)+7")
    c = suite.case("view_negative_strides")
    c.do("zeros", "A", "f32", 24)
    facts(c, "f32", "A", "(4,6):(-6,-1)+23")
    c = suite.case("view_sixteen_dimensions")
    c.do("zeros", "A", "f64", 64)
    facts(c, "f64", "A", shape=[2, 1] * 6 + [1] * 4)
    c = suite.case("view_large_numbers")
    c.do("zeros", "A", "f32", 4)
    facts(c, "f32", "A", shape=[3, 2], stride=[2**40, 1], offset=2**33)


def cases_view_offsets(suite):
    c = suite.case("view_linear_offset")
    c.do("zeros", "A", "f32", 64)
    c.do("view", "V", "f32", "A", "(4,6):(6,1)+2")
    c.check("ints 2", "linear_offset", "V", index=[0, 0])
    c.check("ints 25", "linear_offset", "V", index=[3, 5])
    c.do("view", "R", "f32", "A", "(4,6):(-6,-1)+30")
    c.check("ints 30", "linear_offset", "R", index=[0, 0])
    c.check("ints 7", "linear_offset", "R", index=[3, 5])
    c.fails("SPK_OUT_OF_BOUNDS", "", "linear_offset", "V", index=[4, 0])
    c.fails("SPK_OUT_OF_BOUNDS", "", "linear_offset", "V", index=[0, -1])
    c.fails("SPK_SHAPE_MISMATCH", "", "linear_offset", "V", index=[0])
    c = suite.case("view_to_param_rc")
    c.do("zeros", "A", "f32", 64)
    c.do("view", "V", "f32", "A", "(4,6):(8,1)+2")
    c.check("ints 0,2", "to_param_rc", "V", index=[0, 0], cols=8)
    c.check("ints 3,7", "to_param_rc", "V", index=[3, 5], cols=8)
    c.check("ints 6,1", "to_param_rc", "V", index=[3, 5], cols=5)
    c.fails(BAD, "", "to_param_rc", "V", index=[0, 0], cols=0)
    c.fails("SPK_OUT_OF_BOUNDS", "", "to_param_rc", "V", index=[0, 6], cols=8)


def cases_view_refusals(suite):
    c = suite.case("view_refused_overlap")
    c.do("zeros", "A", "f32", 64)
    c.fails("SPK_OVERLAP", "", "view", "V", "f32", "A", "(4,6):(1,1)")
    c.fails("SPK_OVERLAP", "", "view", "V", "f32", "A", "(4,6):(0,1)")
    c.fails("SPK_OVERLAP", "", "view", "V", "f32", "A", shape=[3, 4], stride=[3, 2])
    c.do("view", "V", "f32", "A", shape=[3, 4], stride=[1, 3])
    c = suite.case("view_refused_bounds")
    c.do("zeros", "A", "f32", 64)
    c.fails("SPK_OUT_OF_BOUNDS", "", "view", "V", "f32", "A", "(4,6):(-6,1)+17")
    c.fails("SPK_OUT_OF_BOUNDS", "", "view", "V", "f32", "A", shape=[4], stride=[-1], offset=2)
    c = suite.case("view_refused_arguments")
    c.do("zeros", "A", "f32", 64)
    c.fails(BAD, "", "view", "V", "f32", "A", shape=[4, 0])
    c.fails(BAD, "-3", "view", "V", "f32", "A", shape=[-3])
    c.fails("SPK_SHAPE_MISMATCH", "stride", "view", "V", "f32", "A", shape=[4, 6], stride=[6])
    c.fails(BAD, "", "view", "V", "f32", "A", shape=[1] * 17)
    c = suite.case("view_refused_texts")
    c.do("zeros", "A", "f32", 64)
    for wrong in ("(4,6", "4,6", "(4,6):(6,1)x", "(4,x)", "(4,6):(6,1)+", "()"):
        c.fails(BAD, "view text", "view", "V", "f32", "A", wrong)
    c = suite.case("view_beyond_array")
    c.array("A", "f32", one_to(23))
    c.do("view", "V", "f32", "A", "(4,6)")
    c.do("block", "B", "V")
    c.fails("SPK_OUT_OF_BOUNDS", "23", "norms", "B", p=2, out="n")
    c.fails("SPK_OUT_OF_BOUNDS", "", "prune_nm", "V", axis=1, n=1, m=2)
    c.save("A")


def cases_view_operations(suite):
    c = suite.case("view_block_view")
    c.do("zeros", "A", "f32", 64)
    c.do("view", "V", "f32", "A", "(4,6):(8,1)+2")
    c.check("text (2,2,2,3):(16,8,3,1)+2", "view_block_view", "V", shape=[2, 3], reorder=0)
    c.check("text (2,2,2,3):(16,3,8,1)+2", "view_block_view", "V", shape=[2, 3], reorder=1)
    c.do("view_block_view", "V", shape=[-1, 1], reorder=1)
    c.fails("SPK_SHAPE_MISMATCH", "", "view_block_view", "V", shape=[3, 3], reorder=1)
    c = suite.case("view_merged")
    c.array("A", "f32", one_to(24))
    c.do("view", "V", "f32", "A", "(4,6):(1,4)")
    c.do("view_merged", "V", shape=[2, 3], out="M")
    c.save("M")
    for dtype in ("f16", "bf16", "f64"):
        c = suite.case(f"view_merged_{dtype}")
        c.array("A", dtype, [0.1 * i for i in range(30)])
        c.do("view", "V", dtype, "A", "(4,6):(-6,-1)+25")
        c.do("view_merged", "V", shape=[1, 2], out="M")
        c.save("M")
    c = suite.case("view_broadcast")
    c.do("zeros", "A", "f32", 26)
    c.array("values", "f64", [0.5, -1.25, math.inf, math.nan])
    c.do("view", "V", "f32", "A", "(4,6)+2")
    c.do("view_broadcast", "V", shape=[2, 3], values="values", out="E")
    c.save("E")
    c = suite.case("view_apply_masks")
    c.array("A", "f32", one_to(26))
    c.array("mask", "u8", [1, 0, 0, 255])
    c.do("view", "V", "f32", "A", "(4,6)+2")
    c.do("zeros", "I", "f32", 26)
    c.do("view_apply_mask", "V", shape=[2, 3], mask="mask", into="I")
    c.save("A", "I")
    c = suite.case("view_apply_keep_mask")
    c.array("A", "bf16", one_to(26))
    c.array("mask", "u8", [1, 0, 0, 255])
    c.do("view", "V", "bf16", "A", "(4,6)+2")
    c.do("view_apply_keep_mask", "V", shape=[2, 3], mask="mask")
    c.save("A")
    c = suite.case("view_apply_multiplier")
    c.array("A", "f16", [0.1 * i for i in range(26)])
    c.array("m", "f32", [0.3, -2, 0, 1e-3])
    c.do("view", "V", "f16", "A", "(4,6)+2")
    c.do("view_apply_multiplier", "V", shape=[2, 3], multiplier="m")
    c.save("A")
