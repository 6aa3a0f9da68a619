// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import static org.sparsekit.Block.or;
import static org.sparsekit.View.list;

import java.util.Arrays;
import java.util.List;
import org.sparsekit.Options.Key;

/**
 * A grid of blocks cut into groups that compete; or a coupling, in which the blocks of scope i of
 * every member compete together.
 *
 * <p>Blocks are ranked by score, largest first; equal scores by position, lower first; NaN above
 * infinity. Arrays "arranged by scope" have the shape (grid shape..., blocks per scope). A scope is
 * immutable.
 */
public final class Scope implements AutoCloseable {
  /** What a selection gave: keep masks, one per leaf (u8), and its report. */
  public record Selection(Elements[] masks, Report report) {}

  final ScopeHandle handle;
  final Elements[] leaves;

  private Scope(ScopeHandle handle, Elements[] leaves) {
    this.handle = handle;
    this.leaves = leaves;
  }

  /**
   * Cuts a grid of blocks into scopes.
   *
   * @param shape the blocks of a scope along each axis; 0 or less, and missing ones at the end,
   *     span the axis: without any there is one scope of all blocks
   * @throws SparseKitException.ShapeMismatch if an extent does not divide the grid's
   */
  public Scope(Block block, long... shape) {
    this(block, shape, null);
  }

  /** The same with a name for messages, or null. */
  public Scope(Block block, long[] shape, String name) {
    this(Flat.scope_create(block.handle, shape, name), block.leaves);
  }

  /** Couples scopes whose grids agree as they are. */
  public static Scope couple(Scope... members) {
    return couple(List.of(members), null, null);
  }

  /**
   * Couples scopes whose grids agree after a permutation each.
   *
   * @param orders for each member the permutation of its grid's axes, or null for none
   * @param name for messages, or null
   * @throws SparseKitException.Coupling if the grids do not agree
   */
  public static Scope couple(List<Scope> members, long[][] orders, String name) {
    final ScopeHandle[] handles = members.stream().map(m -> m.handle).toArray(ScopeHandle[]::new);
    final Elements[] leaves =
        members.stream().flatMap(m -> Arrays.stream(m.leaves)).toArray(Elements[]::new);
    final long[] axes = Block.flatten(orders, handles.length);
    return new Scope(Flat.scope_couple(handles, axes, name), leaves);
  }

  /** The name. */
  public String name() {
    return Flat.scope_name(handle);
  }

  /** How many scopes there are along each axis. */
  public long[] gridShape() {
    return Flat.scope_grid_shape(handle);
  }

  /** The number of scopes. */
  public long numscope() {
    return Flat.scope_numscope(handle);
  }

  /** Blocks of one scope. */
  public long numblkPerScope() {
    return Flat.scope_numblk_per_scope(handle);
  }

  /** Elements of one scope. */
  public long numelPerScope() {
    return Flat.scope_numel_per_scope(handle);
  }

  /** f64 if a leaf is f64, else f32. */
  public Dtype scoreDtype() {
    return Dtype.of(Flat.scope_score_dtype(handle));
  }

  /** The number of members, 1 if it is no coupling. */
  public int memberCount() {
    return Flat.scope_member_count(handle);
  }

  /** The blocks that a member brings to a scope. */
  public long memberNumblk(int index) {
    return Flat.scope_member_numblk(handle, index);
  }

  /** The number of leaves, over all members. */
  public int leafCount() {
    return Flat.scope_leaf_count(handle);
  }

  /** The view of a leaf. */
  public View leafView(int index) {
    return new View(Flat.scope_leaf_view(handle, index), leaves[index]);
  }

  /** n - floor(sparsity * n) for n blocks of a scope. */
  public long sparsityToNnz(double sparsity) {
    return Flat.scope_sparsity_to_nnz(handle, sparsity);
  }

  /** Lp norms of the blocks, arranged by scope, of the score dtype; p as in {@link Block#norms}. */
  public Elements blockNorms(double p) {
    return blockNorms(p, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements blockNorms(double p, Options options) {
    final ContextHandle context = options.check();
    final Elements out = arranged(scoreDtype());
    Flat.scope_block_norms(context, handle, leaves, p, list(out));
    return out;
  }

  /** Arranges block arrays, one per member and of one dtype, by scope. */
  public Elements blockToScope(Elements... values) {
    return blockToScope(values, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements blockToScope(Elements[] values, Options options) {
    final ContextHandle context = options.check();
    final Elements out = arranged(values.length == 0 ? scoreDtype() : values[0].dtype());
    Flat.scope_block_to_scope(context, handle, values, list(out));
    return out;
  }

  /** The same as a view of the block array. Refused for a coupling of several members. */
  public View blockToScopeView(Elements values, boolean reorder) {
    final int code = values.dtype().code;
    return new View(Flat.scope_block_to_scope_view(handle, code, reorder ? 1 : 0), values);
  }

  /** Repeats each scope's value (any dtype) over its blocks: one array per member. */
  public Elements[] scopeToBlock(Elements values) {
    return scopeToBlock(values, new Options());
  }

  /** The same; reads no option but the context. */
  public Elements[] scopeToBlock(Elements values, Options options) {
    final ContextHandle context = options.check();
    final long scopes = numscope();
    final Elements[] out = new Elements[memberCount()];
    for (int i = 0; i < out.length; ++i) {
      out[i] = Elements.allocate(values.dtype(), scopes * memberNumblk(i));
    }
    Flat.scope_scope_to_block(context, handle, list(values), out);
    return out;
  }

  /** The k-th largest score of each scope, in the grid shape; k = 1 is the largest. */
  public Elements kthLargest(long... k) {
    return kthLargest(k, new Options());
  }

  /**
   * The same; reads the options {@code values} and {@code scores}.
   *
   * @param k one number for all scopes, or one per scope
   */
  public Elements kthLargest(long[] k, Options options) {
    final ContextHandle context = options.check(Key.VALUES, Key.SCORES);
    final Elements out = perScope();
    Flat.scope_kth_largest(context, handle, ranked(options), options.scores, k, list(out));
    return out;
  }

  /** A threshold in the middle between the k-th and the next score of each scope. */
  public Elements kthMid(long... k) {
    return kthMid(k, 1, new Options());
  }

  /**
   * The same, (weight v_k + v_(k+1)) / (weight + 1); reads the options {@code values} and {@code
   * scores}.
   */
  public Elements kthMid(long[] k, double weight, Options options) {
    final ContextHandle context = options.check(Key.VALUES, Key.SCORES);
    final Elements out = perScope();
    Flat.scope_kth_mid(context, handle, ranked(options), options.scores, k, weight, list(out));
    return out;
  }

  /**
   * Keeps exactly so many blocks of each scope, those of largest norm, and zeroes the rest.
   *
   * @param counts one number for all scopes, or one per scope
   */
  public Report keepTop(long... counts) {
    return keepTop(counts, new Options());
  }

  /** The same; reads the options {@code values}, {@code scores}, {@code ties} and {@code into}. */
  public Report keepTop(long[] counts, Options options) {
    final ContextHandle context = options.check(Key.VALUES, Key.SCORES, Key.TIES, Key.INTO);
    return Report.of(
        Flat.scope_keep_top(
            context,
            handle,
            leaves,
            options.into,
            counts,
            options.values,
            options.scores,
            options.ties.code));
  }

  /** The same selection as element masks; nothing is pruned. */
  public Selection masks(long... counts) {
    return masks(counts, new Options());
  }

  /**
   * The same; reads the options {@code values}, {@code scores}, {@code blockMask} (which takes the
   * place of counts) and {@code ties}.
   */
  public Selection masks(long[] counts, Options options) {
    final ContextHandle context =
        options.check(Key.VALUES, Key.SCORES, Key.BLOCK_MASK, Key.TIES);
    final Elements[] masks = new Elements[leafCount()];
    for (int i = 0; i < masks.length; ++i) {
      masks[i] = Elements.allocate(Dtype.U8, View.numelAndClose(Flat.scope_leaf_view(handle, i)));
    }
    final long[] report =
        Flat.scope_get_masks(
            context,
            handle,
            ranked(options),
            options.scores,
            options.blockMask,
            counts,
            options.ties.code,
            masks);
    return new Selection(masks, Report.of(report));
  }

  /** Zeroes the blocks with Euclidean norm &lt; threshold of their scope, or the one for all. */
  public Report hardThreshold(Elements thresholds) {
    return hardThreshold(thresholds, new Options());
  }

  /** The same; reads the options {@code values} and {@code into}. */
  public Report hardThreshold(Elements thresholds, Options options) {
    final ContextHandle context = options.check(Key.VALUES, Key.INTO);
    return Report.of(
        Flat.scope_hard_threshold(
            context, handle, leaves, options.into, list(thresholds), options.values));
  }

  /** Group soft thresholding with one threshold per scope, or one for all. */
  public Report softThreshold(Elements thresholds) {
    return softThreshold(thresholds, new Options());
  }

  /** The same, with the options of {@link Block#softThreshold(Elements, Options)}. */
  public Report softThreshold(Elements thresholds, Options options) {
    final ContextHandle context =
        options.check(
            Key.CONDITIONERS, Key.EPS, Key.ATOL, Key.MAX_ITER, Key.SCALE, Key.INTO);
    return Report.of(
        Flat.scope_soft_threshold(
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

  /** Ends the scope; what was made of it goes on. */
  @Override
  public void close() {
    handle.close();
  }

  /** Whose norms are the scores: the leaves' own if no other source is given. */
  private Elements[] ranked(Options options) {
    final boolean other = options.scores != null || options.blockMask != null;
    return other ? options.values : or(options.values, leaves);
  }

  private Elements arranged(Dtype dtype) {
    return Elements.allocate(dtype, numscope() * numblkPerScope());
  }

  private Elements perScope() {
    return Elements.allocate(scoreDtype(), numscope());
  }
}
