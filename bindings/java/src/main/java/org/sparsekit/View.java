// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.nio.Buffer;

/**
 * An array and how its elements lie in it: a strided window. Shapes, strides and offsets count
 * elements. A view is immutable; blocks keep it alive in C, so it may be closed before them.
 */
public final class View implements AutoCloseable {
  final ViewHandle handle;
  final Elements elements;

  View(ViewHandle handle, Elements elements) {
    this.handle = handle;
    this.elements = elements;
  }

  /** A view of all elements, row-major and contiguous. */
  public View(Elements elements, long... shape) {
    this(elements, shape, null, 0);
  }

  /** The same of a buffer that knows its dtype, see {@link Elements#of(Buffer)}. */
  public View(Buffer buffer, long... shape) {
    this(Elements.of(buffer), shape);
  }

  /**
   * A strided view.
   *
   * @param elements an array of a float dtype
   * @param shape 1 to 16 extents
   * @param stride as many strides, negative ones allowed; null = row-major contiguous
   * @param offset of element (0, 0, ...)
   * @throws SparseKitException.OutOfBounds if it reaches below element 0
   * @throws SparseKitException.Overlap if two indices lead to one element
   */
  public View(Elements elements, long[] shape, long[] stride, long offset) {
    this(Flat.view_create(elements.dtype().code, shape, stride, offset), elements);
  }

  /**
   * A view from its text form: {@code (64,128):(128,1)+32} is shape:stride+offset; without strides
   * it is contiguous.
   */
  public static View parse(Elements elements, String text) {
    return new View(Flat.view_parse(elements.dtype().code, text), elements);
  }

  /** The text form. */
  public String format() {
    return Flat.view_format(handle);
  }

  /** The array. */
  public Elements elements() {
    return elements;
  }

  /** The dtype of the elements. */
  public Dtype dtype() {
    return Dtype.of(Flat.view_dtype(handle));
  }

  /** The extents. */
  public long[] shape() {
    return Flat.view_shape(handle);
  }

  /** The strides. */
  public long[] stride() {
    return Flat.view_stride(handle);
  }

  /** Where element (0, 0, ...) lies. */
  public long offset() {
    return Flat.view_offset(handle);
  }

  /** The number of elements: the product of the shape. */
  public long numel() {
    return Flat.view_numel(handle);
  }

  /** The span of the layout, without the offset: 1 + sum((shape - 1) * |stride|). */
  public long cosize() {
    return Flat.view_cosize(handle);
  }

  /** Where the element of this index lies in the array. */
  public long linearOffset(long... index) {
    return Flat.view_linear_offset(handle, index);
  }

  /** Row and column of that element in a row-major matrix of so many columns. */
  public long[] toParamRc(long[] index, long columns) {
    return Flat.view_to_param_rc(handle, index, columns);
  }

  /**
   * The blocks as a view of the same array: (B0, b0, B1, b1, ...), or reordered (B0, B1, ..., b0,
   * b1, ...).
   *
   * @param blockShape as in {@link Block}
   */
  public View blockView(boolean reorder, long... blockShape) {
    return new View(Flat.view_block_view_of(handle, blockShape, reorder ? 1 : 0), elements);
  }

  /** The blocks gathered, each in one piece: (grid shape..., elements of a block). */
  public Elements merged(long... blockShape) {
    return merged(blockShape, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements merged(long[] blockShape, Options options) {
    final ContextHandle context = options.check();
    final Elements out = Elements.allocate(dtype(), numel());
    Flat.view_block_view_merged(context, handle, list(elements), blockShape, list(out));
    return out;
  }

  /** Repeats each block's value over its elements; any dtype, contiguous in the view's shape. */
  public Elements broadcast(long[] blockShape, Elements values) {
    return broadcast(blockShape, values, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements broadcast(long[] blockShape, Elements values, Options options) {
    final ContextHandle context = options.check();
    final Elements out = Elements.allocate(values.dtype(), numel());
    Flat.view_broadcast_block_to_element(context, handle, blockShape, list(values), list(out));
    return out;
  }

  /** Zeroes the blocks whose mask (u8, grid shape) is 1. */
  public void applyMask(long[] blockShape, Elements pruneMask) {
    applyMask(blockShape, pruneMask, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyMask(long[] blockShape, Elements pruneMask, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    Flat.view_apply_mask(
        context, handle, list(elements), options.into, blockShape, list(pruneMask));
  }

  /** Zeroes the blocks whose mask (u8, grid shape) is 0. */
  public void applyKeepMask(long[] blockShape, Elements keepMask) {
    applyKeepMask(blockShape, keepMask, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyKeepMask(long[] blockShape, Elements keepMask, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    Flat.view_apply_keep_mask(
        context, handle, list(elements), options.into, blockShape, list(keepMask));
  }

  /** Scales each block by its number (a float dtype, grid shape). */
  public void applyMultiplier(long[] blockShape, Elements multiplier) {
    applyMultiplier(blockShape, multiplier, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyMultiplier(long[] blockShape, Elements multiplier, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    Flat.view_apply_multiplier(
        context, handle, list(elements), options.into, blockShape, list(multiplier));
  }

  /**
   * N:M sparsity: of every m elements in a row along an axis, keeps the n of largest magnitude.
   *
   * @param axis negative ones count from the end; its extent must be a multiple of m
   */
  public Report pruneNm(int axis, long n, long m) {
    return pruneNm(axis, n, m, new Options());
  }

  /** The same; reads the option {@code into}. */
  public Report pruneNm(int axis, long n, long m, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    return Report.of(Flat.prune_nm(context, handle, list(elements), options.into, axis, n, m));
  }

  /** Zeroes exactly floor(sparsity * numel) elements, those of smallest magnitude. */
  public Report pruneUnstructured(double sparsity) {
    return pruneUnstructured(sparsity, new Options());
  }

  /** The same; reads the option {@code into}. */
  public Report pruneUnstructured(double sparsity, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    return Report.of(
        Flat.prune_unstructured(context, handle, list(elements), options.into, sparsity));
  }

  /** Euclidean soft thresholding of blocks of this shape with one threshold. */
  public Report softThresholdBlocks(long[] blockShape, double threshold) {
    return softThresholdBlocks(blockShape, threshold, new Options());
  }

  /** The same; reads the option {@code into}. */
  public Report softThresholdBlocks(long[] blockShape, double threshold, Options options) {
    final ContextHandle context = options.check(Options.Key.INTO);
    return Report.of(
        Flat.soft_threshold_blocks(
            context, handle, list(elements), options.into, blockShape, threshold));
  }

  /** Ends the view; what was made of it goes on. */
  @Override
  public void close() {
    handle.close();
  }

  /** A list of one. */
  static Elements[] list(Elements elements) {
    return new Elements[] {elements};
  }

  /** The number of elements of a view that C gave; closes it. */
  static long numelAndClose(ViewHandle view) {
    try {
      return Flat.view_numel(view);
    } finally {
      view.close();
    }
  }
}
