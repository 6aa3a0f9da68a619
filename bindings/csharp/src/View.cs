// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>An array and how its elements lie in it: a strided window. Shapes, strides and offsets
/// count elements. A view is immutable; blocks keep it alive in C, so it may be closed before them.
/// </summary>
public sealed class View : IDisposable {
  internal readonly ViewHandle Handle;

  internal View(ViewHandle handle, Elements elements) {
    Handle = handle;
    Elements = elements;
  }

  /// <summary>A view of all elements, row-major and contiguous.</summary>
  /// <param name="elements">an array of a float dtype</param>
  /// <param name="shape">1 to 16 extents</param>
  public View(Elements elements, params long[] shape) : this(elements, shape, null) {}

  /// <summary>A strided view.</summary>
  /// <param name="elements">an array of a float dtype</param>
  /// <param name="shape">1 to 16 extents</param>
  /// <param name="stride">as many strides, negative ones allowed; null for row-major
  /// contiguous</param>
  /// <param name="offset">of element (0, 0, ...)</param>
  /// <exception cref="OutOfBoundsException">if it reaches below element 0</exception>
  /// <exception cref="OverlapException">if two indices lead to one element</exception>
  public View(Elements elements, long[] shape, long[] stride, long offset = 0)
      : this(Flat.view_create((int)elements.Given("elements").Dtype, shape, stride, offset),
             elements) {}

  /// <summary>A view of a whole array in the array's own shape.</summary>
  public static View Of(Array array) {
    var shape = new long[array.Given("array").Rank];
    for (int d = 0; d < shape.Length; ++d) shape[d] = array.GetLength(d);
    return new View(new Elements(array), shape);
  }

  /// <summary>A view from its text form: (64,128):(128,1)+32 is shape:stride+offset; without
  /// strides it is contiguous.</summary>
  public static View Parse(Elements elements, string text) {
    return new View(Flat.view_parse((int)elements.Given("elements").Dtype, text), elements);
  }

  /// <summary>The text form.</summary>
  public string Format() {
    return Flat.view_format(Handle);
  }

  /// <summary>The array.</summary>
  public Elements Elements { get; }

  /// <summary>The dtype of the elements.</summary>
  public Dtype Dtype {
    get { return (Dtype)Flat.view_dtype(Handle); }
  }

  /// <summary>The extents.</summary>
  public long[] Shape {
    get { return Flat.view_shape(Handle); }
  }

  /// <summary>The strides.</summary>
  public long[] Stride {
    get { return Flat.view_stride(Handle); }
  }

  /// <summary>Where element (0, 0, ...) lies.</summary>
  public long Offset {
    get { return Flat.view_offset(Handle); }
  }

  /// <summary>The number of elements: the product of the shape.</summary>
  public long Numel {
    get { return Flat.view_numel(Handle); }
  }

  /// <summary>The span of the layout, without the offset: 1 + sum((shape - 1) *
  /// |stride|).</summary>
  public long Cosize {
    get { return Flat.view_cosize(Handle); }
  }

  /// <summary>Where the element of this index lies in the array.</summary>
  public long LinearOffset(params long[] index) {
    return Flat.view_linear_offset(Handle, index);
  }

  /// <summary>Row and column of that element in a row-major matrix of so many columns.</summary>
  public long[] ToParamRc(long[] index, long columns) {
    return Flat.view_to_param_rc(Handle, index, columns);
  }

  /// <summary>The blocks as a view of the same array: (B0, b0, B1, b1, ...), or reordered
  /// (B0, B1, ..., b0, b1, ...).</summary>
  public View BlockView(bool reorder, params long[] blockShape) {
    return new View(Flat.view_block_view_of(Handle, blockShape, reorder ? 1 : 0), Elements);
  }

  /// <summary>The blocks gathered, each in one piece: (grid shape..., elements of a
  /// block).</summary>
  public Elements Merged(long[] blockShape, Context context = null) {
    var result = Elements.Allocate(Dtype, Numel);
    Flat.view_block_view_merged(Context.Handle(context), Handle, Elements.List(Elements),
                                blockShape, Elements.List(result));
    return result;
  }

  /// <summary>Repeats each block's value over its elements.</summary>
  /// <param name="blockShape">as in Block</param>
  /// <param name="values">of any dtype, which the result has too</param>
  /// <param name="context">how the call runs</param>
  /// <returns>an array contiguous in the view's shape</returns>
  public Elements Broadcast(long[] blockShape, Elements values, Context context = null) {
    var result = Elements.Allocate(values.Given("values").Dtype, Numel);
    Flat.view_broadcast_block_to_element(Context.Handle(context), Handle, blockShape,
                                         Elements.List(values), Elements.List(result));
    return result;
  }

  /// <summary>Zeroes the blocks whose mask (U8, grid shape) is 1, here or in another
  /// array.</summary>
  public void ApplyMask(long[] blockShape, Elements pruneMask, Elements into = null,
                        Context context = null) {
    Flat.view_apply_mask(Context.Handle(context), Handle, Elements.List(Elements),
                         Elements.Optional(into), blockShape, Elements.List(pruneMask));
  }

  /// <summary>Zeroes the blocks whose mask (U8, grid shape) is 0, here or in another
  /// array.</summary>
  public void ApplyKeepMask(long[] blockShape, Elements keepMask, Elements into = null,
                            Context context = null) {
    Flat.view_apply_keep_mask(Context.Handle(context), Handle, Elements.List(Elements),
                              Elements.Optional(into), blockShape, Elements.List(keepMask));
  }

  /// <summary>Scales each block by its number (a float dtype, grid shape), here or in another
  /// array.</summary>
  public void ApplyMultiplier(long[] blockShape, Elements multiplier, Elements into = null,
                              Context context = null) {
    Flat.view_apply_multiplier(Context.Handle(context), Handle, Elements.List(Elements),
                               Elements.Optional(into), blockShape, Elements.List(multiplier));
  }

  /// <summary>N:M sparsity: of every m elements in a row along an axis, keeps the n of largest
  /// magnitude.</summary>
  /// <param name="axis">negative ones count from the end; its extent must be a multiple of
  /// m</param>
  /// <param name="n">how many are kept</param>
  /// <param name="m">of how many</param>
  /// <param name="into">another array that receives the result</param>
  /// <param name="context">how the call runs</param>
  public Report PruneNm(int axis, long n, long m, Elements into = null, Context context = null) {
    return new Report(Flat.prune_nm(Context.Handle(context), Handle, Elements.List(Elements),
                                    Elements.Optional(into), axis, n, m));
  }

  /// <summary>Zeroes exactly floor(sparsity * numel) elements, those of smallest
  /// magnitude.</summary>
  public Report PruneUnstructured(double sparsity, Elements into = null, Context context = null) {
    return new Report(Flat.prune_unstructured(Context.Handle(context), Handle,
                                              Elements.List(Elements), Elements.Optional(into),
                                              sparsity));
  }

  /// <summary>Euclidean soft thresholding of blocks of this shape with one threshold.</summary>
  public Report SoftThresholdBlocks(long[] blockShape, double threshold, Elements into = null,
                                    Context context = null) {
    return new Report(Flat.soft_threshold_blocks(Context.Handle(context), Handle,
                                                 Elements.List(Elements),
                                                 Elements.Optional(into), blockShape, threshold));
  }

  /// <summary>Ends the view; what was made of it goes on.</summary>
  public void Dispose() {
    Handle.Dispose();
  }

  /// <summary>The number of elements of a view that C gave; closes it.</summary>
  internal static long NumelAndClose(ViewHandle view) {
    using (view) return Flat.view_numel(view);
  }
}

}
