// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import static org.sparsekit.View.list;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.ToDoubleFunction;
import org.sparsekit.Options.Key;

/**
 * A view cut into a grid of equal sub-tensors, the pruning units; or a coupling, in which block i
 * of several of them is one unit. It knows its arrays, one per leaf (a view cut into blocks), so
 * that operations need no data.
 *
 * <p>Results are new arrays, row-major in {@link #gridShape()}, of the {@link #scoreDtype()} unless
 * said otherwise. A block that is pruned becomes exactly +0. A block is immutable; what was made of
 * it keeps it alive in C.
 */
public final class Block implements AutoCloseable {
  final BlockHandle handle;
  final Elements[] leaves;

  Block(BlockHandle handle, Elements... leaves) {
    this.handle = handle;
    this.leaves = leaves;
  }

  /**
   * Cuts a view into blocks.
   *
   * @param shape the extents of a block; 0 or less spans the dimension; no extents at all make
   *     every element a block
   * @throws SparseKitException.ShapeMismatch if an extent does not divide the view's
   */
  public Block(View view, long... shape) {
    this(view, shape, null);
  }

  /** The same with a name for messages, or null. */
  public Block(View view, long[] shape, String name) {
    this(Flat.block_create(view.handle, shape, name), view.elements);
  }

  /** Couples blocks whose grids agree as they are. */
  public static Block couple(Block... members) {
    return couple(List.of(members), null, null);
  }

  /**
   * Couples blocks whose grids agree after a permutation each.
   *
   * @param orders for each member the permutation of its grid's axes, or null for none
   * @param name for messages, or null
   * @throws SparseKitException.Coupling if the grids do not agree
   */
  public static Block couple(List<Block> members, long[][] orders, String name) {
    final BlockHandle[] handles = members.stream().map(m -> m.handle).toArray(BlockHandle[]::new);
    final Elements[] leaves =
        members.stream().flatMap(m -> Arrays.stream(m.leaves)).toArray(Elements[]::new);
    return new Block(Flat.block_couple(handles, flatten(orders, handles.length), name), leaves);
  }

  /** Permutations, one after the other: C cannot see where one ends. */
  static long[] flatten(long[][] orders, int members) {
    if (orders == null) return null;
    final int[] axes = Arrays.stream(orders).mapToInt(order -> order.length).toArray();
    if (axes.length != members || Arrays.stream(axes).distinct().count() > 1) {
      throw new SparseKitException.ShapeMismatch(
          "orders: got permutations of " + Arrays.toString(axes) + " axes for " + members
              + " members, expected one of as many axes for each");
    }
    return Arrays.stream(orders).flatMapToLong(Arrays::stream).toArray();
  }

  /** The name. */
  public String name() {
    return Flat.block_name(handle);
  }

  /** How many blocks there are along each axis. */
  public long[] gridShape() {
    return Flat.block_grid_shape(handle);
  }

  /** The number of blocks. */
  public long numblk() {
    return Flat.block_numblk(handle);
  }

  /** Elements of one block, over all leaves. */
  public long numelPerBlock() {
    return Flat.block_numel_per_block(handle);
  }

  /** Elements of all blocks. */
  public long numel() {
    return Flat.block_numel(handle);
  }

  /** f64 if a leaf is f64, else f32. */
  public Dtype scoreDtype() {
    return Dtype.of(Flat.block_score_dtype(handle));
  }

  /** The number of leaves. */
  public int leafCount() {
    return Flat.block_leaf_count(handle);
  }

  /** A leaf as it was before it was coupled. */
  public Block leaf(int index) {
    return new Block(Flat.block_leaf(handle, index), leaves[index]);
  }

  /** The extents of a leaf's blocks. */
  public long[] leafShape(int index) {
    return Flat.block_leaf_shape(handle, index);
  }

  /** The view of a leaf. */
  public View leafView(int index) {
    return new View(Flat.block_leaf_view(handle, index), leaves[index]);
  }

  /**
   * One Lp norm per block.
   *
   * @param p 0 (count of non-zeros), 1, 2, an infinity, or finite in [0.01, 1000]
   */
  public Elements norms(double p) {
    return norms(p, new Options());
  }

  /** The same; reads the option {@code values}. */
  public Elements norms(double p, Options options) {
    final ContextHandle context = options.check(Key.VALUES);
    final Elements out = scores();
    Flat.block_norms(context, handle, or(options.values, leaves), p, list(out));
    return out;
  }

  /** The smallest signed element per block. */
  public Elements min() {
    return min(new Options());
  }

  /** The same; reads no option but the context. */
  public Elements min(Options options) {
    final ContextHandle context = options.check();
    final Elements out = scores();
    Flat.block_min(context, handle, leaves, list(out));
    return out;
  }

  /** The largest signed element per block. */
  public Elements max() {
    return max(new Options());
  }

  /** The same; reads no option but the context. */
  public Elements max(Options options) {
    final ContextHandle context = options.check();
    final Elements out = scores();
    Flat.block_max(context, handle, leaves, list(out));
    return out;
  }

  /** The number of elements with |x| > 1e-8. */
  public long nnz() {
    return nnz(FlatConstants.NNZ_EPS, new Options());
  }

  /** The number of elements with |x| > eps; reads no option but the context. */
  public long nnz(double eps, Options options) {
    return Flat.block_nnz(options.check(), handle, leaves, eps, null);
  }

  /** The same for each block, i64. */
  public Elements nnzPerBlock(double eps, Options options) {
    final ContextHandle context = options.check();
    final Elements out = Elements.allocate(Dtype.I64, numblk());
    Flat.block_nnz(context, handle, leaves, eps, list(out));
    return out;
  }

  /**
   * Calls a function for each block, on this thread, with the block's elements as doubles: leaf 0's
   * row-major inside its block, then leaf 1's, ...
   *
   * @throws SparseKitException.Cancelled if the function throws it; whatever else the function
   *     throws comes out of this call too
   */
  public Elements reduce(ToDoubleFunction<double[]> function) {
    return reduce(function, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements reduce(ToDoubleFunction<double[]> function, Options options) {
    final ContextHandle context = options.check();
    final Elements out = scores();
    final Callback callback =
        new Callback(Objects.requireNonNull(function, "function")::applyAsDouble);
    try {
      Flat.block_reduce(context, handle, leaves, callback, list(out));
    } finally {
      callback.close();
    }
    return out;
  }

  /** Zeroes the blocks whose mask (u8) is 1. */
  public void applyMask(Elements pruneMask) {
    applyMask(pruneMask, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyMask(Elements pruneMask, Options options) {
    final ContextHandle context = options.check(Key.INTO);
    Flat.block_apply_mask(context, handle, leaves, options.into, list(pruneMask));
  }

  /** Zeroes the blocks whose mask (u8) is 0. */
  public void applyKeepMask(Elements keepMask) {
    applyKeepMask(keepMask, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyKeepMask(Elements keepMask, Options options) {
    final ContextHandle context = options.check(Key.INTO);
    Flat.block_apply_keep_mask(context, handle, leaves, options.into, list(keepMask));
  }

  /** Scales each block by its number (a float dtype); 0 gives +0 whatever the block held. */
  public void applyMultiplier(Elements multiplier) {
    applyMultiplier(multiplier, new Options());
  }

  /** The same; reads the option {@code into}. */
  public void applyMultiplier(Elements multiplier, Options options) {
    final ContextHandle context = options.check(Key.INTO);
    Flat.block_apply_multiplier(context, handle, leaves, options.into, list(multiplier));
  }

  /** Zeroes the blocks with Euclidean norm &lt; threshold. */
  public Report hardThreshold(double threshold) {
    return hardThreshold(Elements.copyOf(threshold), new Options());
  }

  /**
   * The same with a threshold per block, or one for all.
   *
   * @param thresholds f32 or f64
   */
  public Report hardThreshold(Elements thresholds) {
    return hardThreshold(thresholds, new Options());
  }

  /** The same; reads the options {@code values} and {@code into}. */
  public Report hardThreshold(Elements thresholds, Options options) {
    final ContextHandle context = options.check(Key.VALUES, Key.INTO);
    return Report.of(
        Flat.block_hard_threshold(
            context, handle, leaves, options.into, list(thresholds), options.values));
  }

  /** Group soft thresholding, w &lt;- w max(0, 1 - t / ||w||), with one threshold for all. */
  public Report softThreshold(double threshold) {
    return softThreshold(Elements.copyOf(threshold), new Options());
  }

  /**
   * The same with a threshold per block, or one for all.
   *
   * @param thresholds f32 or f64
   */
  public Report softThreshold(Elements thresholds) {
    return softThreshold(thresholds, new Options());
  }

  /**
   * The same; reads the options {@code conditioners}, {@code eps}, {@code atol}, {@code maxIter},
   * {@code scale} and {@code into}. With conditioners h it is the proximal operator in the metric
   * diag(h).
   */
  public Report softThreshold(Elements thresholds, Options options) {
    final ContextHandle context =
        options.check(
            Key.CONDITIONERS, Key.EPS, Key.ATOL, Key.MAX_ITER, Key.SCALE, Key.INTO);
    return Report.of(
        Flat.block_soft_threshold(
            context,
            handle,
            leaves,
            options.into,
            list(thresholds),
            options.conditioners,
            options.eps,
            options.atol,
            options.maxIter,
            options.scale ? 1 : 0));
  }

  /** Copies arrays, one per leaf and of any float dtype, into the views; laid out as they say. */
  public void setData(Elements... source) {
    setData(source, new Options());
  }

  /** The same; reads no option but the context. */
  public void setData(Elements[] source, Options options) {
    Flat.block_set_data(options.check(), handle, leaves, source);
  }

  /** The element masks of a block mask (u8): one per leaf, u8, contiguous in its view's shape. */
  public Elements[] masks(Elements blockMask) {
    return masks(blockMask, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements[] masks(Elements blockMask, Options options) {
    final ContextHandle context = options.check();
    final Elements[] out = perLeaf(Dtype.U8);
    Flat.block_get_masks(context, handle, list(blockMask), out);
    return out;
  }

  /**
   * The blocks as a view of the same array: (B0, b0, B1, b1, ...), or reordered (B0, B1, ..., b0,
   * b1, ...). Refused for a coupling of several leaves.
   */
  public View blockView(boolean reorder) {
    return new View(Flat.block_block_view(handle, reorder ? 1 : 0), leaves[0]);
  }

  /**
   * The blocks gathered, each in one piece: (grid shape..., elements of a block); of the leaves'
   * dtype if they agree, else of the score dtype.
   */
  public Elements merged() {
    return merged(new Options());
  }

  /** The same; reads no option but the context. */
  public Elements merged(Options options) {
    final ContextHandle context = options.check();
    final long numel = numel();
    final boolean agree = Arrays.stream(leaves).map(Elements::dtype).distinct().count() == 1;
    final Elements out = Elements.allocate(agree ? leaves[0].dtype() : scoreDtype(), numel);
    Flat.block_block_view_merged(context, handle, leaves, list(out));
    return out;
  }

  /** Repeats each block's value over its elements: one array per leaf, of the values' dtype. */
  public Elements[] broadcast(Elements values) {
    return broadcast(values, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements[] broadcast(Elements values, Options options) {
    final ContextHandle context = options.check();
    final Elements[] out = perLeaf(values.dtype());
    Flat.block_broadcast_block_to_element(context, handle, list(values), out);
    return out;
  }

  /** An array of the grid seen in shape (B0, 1, B1, 1, ...), which goes with the block view. */
  public View broadcastFake(Elements values) {
    return new View(Flat.block_broadcast_fake(handle, values.dtype().code), values);
  }

  /** An array of the grid seen in the grid shape. */
  public View expandBlockTensor(Elements values) {
    return new View(Flat.block_expand_block_tensor(handle, values.dtype().code), values);
  }

  /** Ends the block; what was made of it goes on. */
  @Override
  public void close() {
    handle.close();
  }

  static Elements[] or(Elements[] given, Elements[] otherwise) {
    return given == null ? otherwise : given;
  }

  private Elements scores() {
    return Elements.allocate(scoreDtype(), numblk());
  }

  private Elements[] perLeaf(Dtype dtype) {
    final Elements[] out = new Elements[leafCount()];
    for (int i = 0; i < out.length; ++i) {
      out[i] = Elements.allocate(dtype, View.numelAndClose(Flat.block_leaf_view(handle, i)));
    }
    return out;
  }
}
