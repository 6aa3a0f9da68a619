// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace SparseKit {

/// <summary>Pruning of a span, in place, in one call: of a slice of an array, the stack or native
/// memory. The span is pinned during the call and not copied.</summary>
/// <remarks>Shapes are row-major and have exactly the elements of the span, or
/// ShapeMismatchException is thrown. Spans of ushort need the dtype F16 or BF16 to be said.
/// </remarks>
public static class Spans {
  /// <summary>N:M sparsity: of every m elements in a row along an axis, keeps the n of largest
  /// magnitude.</summary>
  /// <param name="weights">the elements</param>
  /// <param name="shape">1 to 16 extents</param>
  /// <param name="axis">negative ones count from the end; its extent must be a multiple of
  /// m</param>
  /// <param name="n">how many are kept</param>
  /// <param name="m">of how many</param>
  /// <param name="context">how the call runs</param>
  /// <exception cref="ShapeMismatchException">if the shape has not as many elements as the
  /// span</exception>
  public static Report PruneNm(this Span<float> weights, long[] shape, int axis, long n, long m,
                               Context context = null) {
    return Pinned(weights, Dtype.F32, shape, v => v.PruneNm(axis, n, m, null, context));
  }

  /// <summary>The same of double.</summary>
  public static Report PruneNm(this Span<double> weights, long[] shape, int axis, long n, long m,
                               Context context = null) {
    return Pinned(weights, Dtype.F64, shape, v => v.PruneNm(axis, n, m, null, context));
  }

  /// <summary>The same of F16 or BF16.</summary>
  public static Report PruneNm(this Span<ushort> weights, Dtype dtype, long[] shape, int axis,
                               long n, long m, Context context = null) {
    return Pinned(weights, Elements.Half(dtype), shape,
                  v => v.PruneNm(axis, n, m, null, context));
  }

  /// <summary>Zeroes exactly floor(sparsity * length) elements, those of smallest magnitude.
  /// </summary>
  public static Report PruneUnstructured(this Span<float> weights, double sparsity,
                                         Context context = null) {
    return Pinned(weights, Dtype.F32, Flat(weights),
                  v => v.PruneUnstructured(sparsity, null, context));
  }

  /// <summary>The same of double.</summary>
  public static Report PruneUnstructured(this Span<double> weights, double sparsity,
                                         Context context = null) {
    return Pinned(weights, Dtype.F64, Flat(weights),
                  v => v.PruneUnstructured(sparsity, null, context));
  }

  /// <summary>The same of F16 or BF16.</summary>
  public static Report PruneUnstructured(this Span<ushort> weights, Dtype dtype, double sparsity,
                                         Context context = null) {
    return Pinned(weights, Elements.Half(dtype), Flat(weights),
                  v => v.PruneUnstructured(sparsity, null, context));
  }

  /// <summary>Euclidean soft thresholding of blocks of this shape with one threshold.</summary>
  public static Report SoftThresholdBlocks(this Span<float> weights, long[] shape,
                                           long[] blockShape, double threshold,
                                           Context context = null) {
    return Pinned(weights, Dtype.F32, shape,
                  v => v.SoftThresholdBlocks(blockShape, threshold, null, context));
  }

  /// <summary>The same of double.</summary>
  public static Report SoftThresholdBlocks(this Span<double> weights, long[] shape,
                                           long[] blockShape, double threshold,
                                           Context context = null) {
    return Pinned(weights, Dtype.F64, shape,
                  v => v.SoftThresholdBlocks(blockShape, threshold, null, context));
  }

  /// <summary>The same of F16 or BF16.</summary>
  public static Report SoftThresholdBlocks(this Span<ushort> weights, Dtype dtype, long[] shape,
                                           long[] blockShape, double threshold,
                                           Context context = null) {
    return Pinned(weights, Elements.Half(dtype), shape,
                  v => v.SoftThresholdBlocks(blockShape, threshold, null, context));
  }

  static long[] Flat<T>(Span<T> weights) {
    return new long[] {weights.Length};
  }

  /// <summary>Runs an operation on a view of the span, which ends with the call.</summary>
  static unsafe Report Pinned<T>(Span<T> weights, Dtype dtype, long[] shape,
                                 Func<View, Report> operation) where T : struct {
    // To pin one element is to pin the array; all its bytes may be more than an int counts.
    var first = MemoryMarshal.AsBytes(weights.Slice(0, Math.Min(1, weights.Length)));
    fixed (byte* address = &MemoryMarshal.GetReference(first)) {
      using (var view = new View(Elements.Fixed(address, weights.Length, dtype), shape)) {
        RequireAll(view, weights.Length);
        return operation(view);
      }
    }
  }

  static void RequireAll(View view, int length) {
    if (view.Numel == length) return;
    throw new ShapeMismatchException(
        "shape: got (" + string.Join(",", view.Shape) + ") for a span of " + length +
        " elements, expected one of as many");
  }
}

}
