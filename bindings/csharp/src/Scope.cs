// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;

namespace SparseKit {

/// <summary>What becomes of blocks whose scores are equal where the selection ends.</summary>
public enum Ties {
  /// <summary>Exactly the count; among equals the lower position is kept.</summary>
  ByPosition = Flat.TIES_BY_POSITION,
  /// <summary>Every block tied with the last kept one is kept too.</summary>
  KeepAll = Flat.TIES_KEEP_ALL
}

/// <summary>What a selection gave.</summary>
public sealed class Selection {
  internal Selection(Elements[] masks, Report report) {
    Masks = masks;
    Report = report;
  }

  /// <summary>Keep masks, one per leaf: U8, contiguous in the shape of its view.</summary>
  public Elements[] Masks { get; }

  /// <summary>The counts.</summary>
  public Report Report { get; }
}

/// <summary>A grid of blocks cut into groups that compete; or a coupling, in which the blocks of
/// scope i of every member compete together.</summary>
/// <remarks>Blocks are ranked by score, largest first; equal scores by position, lower first; NaN
/// above infinity. The scores are the norms of the leaves, of `values` (arrays, one per leaf), or
/// `scores` themselves. Arrays "arranged by scope" have the shape (grid shape..., blocks per
/// scope). Where `into` is given, its arrays, one per leaf, receive the result and the leaves are
/// only read. A scope is immutable.</remarks>
public sealed class Scope : IDisposable {
  readonly ScopeHandle handle;
  readonly Elements[] leaves;

  Scope(ScopeHandle handle, Elements[] leaves) {
    this.handle = handle;
    this.leaves = leaves;
  }

  /// <summary>Cuts a grid of blocks into scopes.</summary>
  /// <param name="block">the blocks</param>
  /// <param name="shape">the blocks of a scope along each axis; 0 or less, and missing ones at the
  /// end, span the axis: without any there is one scope of all blocks</param>
  /// <exception cref="ShapeMismatchException">if an extent does not divide the grid's</exception>
  public Scope(Block block, params long[] shape) : this(block, shape, null) {}

  /// <summary>The same with a name for messages, or null.</summary>
  public Scope(Block block, long[] shape, string name)
      : this(Flat.scope_create(block.Given("block").Handle, shape, name), block.Leaves) {}

  /// <summary>Couples scopes whose grids agree as they are.</summary>
  /// <exception cref="CouplingException">if they do not</exception>
  public static Scope Couple(params Scope[] members) {
    return Couple(members, null);
  }

  /// <summary>Couples scopes whose grids agree after a permutation each.</summary>
  /// <param name="members">the scopes</param>
  /// <param name="orders">for each member the permutation of its grid's axes, or null for
  /// none</param>
  /// <param name="name">for messages, or null</param>
  /// <exception cref="CouplingException">if the grids do not agree</exception>
  public static Scope Couple(Scope[] members, long[][] orders, string name = null) {
    var handles = members.Given("members").Select(m => m.Given("members").handle).ToArray();
    return new Scope(Flat.scope_couple(handles, Block.Flatten(orders, handles.Length), name),
                     members.SelectMany(m => m.leaves).ToArray());
  }

  /// <summary>The name.</summary>
  public string Name {
    get { return Flat.scope_name(handle); }
  }

  /// <summary>How many scopes there are along each axis.</summary>
  public long[] GridShape {
    get { return Flat.scope_grid_shape(handle); }
  }

  /// <summary>The number of scopes.</summary>
  public long Numscope {
    get { return Flat.scope_numscope(handle); }
  }

  /// <summary>Blocks of one scope.</summary>
  public long NumblkPerScope {
    get { return Flat.scope_numblk_per_scope(handle); }
  }

  /// <summary>Elements of one scope.</summary>
  public long NumelPerScope {
    get { return Flat.scope_numel_per_scope(handle); }
  }

  /// <summary>F64 if a leaf is F64, else F32.</summary>
  public Dtype ScoreDtype {
    get { return (Dtype)Flat.scope_score_dtype(handle); }
  }

  /// <summary>The number of members, 1 if it is no coupling.</summary>
  public int MemberCount {
    get { return Flat.scope_member_count(handle); }
  }

  /// <summary>The blocks that a member brings to a scope.</summary>
  public long MemberNumblk(int index) {
    return Flat.scope_member_numblk(handle, index);
  }

  /// <summary>The number of leaves, over all members.</summary>
  public int LeafCount {
    get { return Flat.scope_leaf_count(handle); }
  }

  /// <summary>The view of a leaf.</summary>
  public View LeafView(int index) {
    return new View(Flat.scope_leaf_view(handle, index), leaves[index]);
  }

  /// <summary>n - floor(sparsity * n) for n blocks of a scope.</summary>
  public long SparsityToNnz(double sparsity) {
    return Flat.scope_sparsity_to_nnz(handle, sparsity);
  }

  /// <summary>Lp norms of the blocks, arranged by scope, of the score dtype; p as in Block.Norms.
  /// </summary>
  public Elements BlockNorms(double p, Context context = null) {
    var result = Arranged(ScoreDtype);
    Flat.scope_block_norms(Context.Handle(context), handle, leaves, p, Elements.List(result));
    return result;
  }

  /// <summary>Arranges block arrays, one per member and of one dtype, by scope.</summary>
  public Elements BlockToScope(Elements[] values, Context context = null) {
    var result = Arranged(values.Given("values").Length == 0 ? ScoreDtype : values[0].Dtype);
    Flat.scope_block_to_scope(Context.Handle(context), handle, values, Elements.List(result));
    return result;
  }

  /// <summary>The same as a view of the block array. Refused for a coupling of several members.
  /// </summary>
  public View BlockToScopeView(Elements values, bool reorder = false) {
    var code = (int)values.Given("values").Dtype;
    return new View(Flat.scope_block_to_scope_view(handle, code, reorder ? 1 : 0), values);
  }

  /// <summary>Repeats each scope's value (any dtype) over its blocks: one array per
  /// member.</summary>
  public Elements[] ScopeToBlock(Elements values, Context context = null) {
    var scopes = Numscope;
    var result = new Elements[MemberCount];
    for (int i = 0; i < result.Length; ++i) {
      result[i] = Elements.Allocate(values.Dtype, scopes * MemberNumblk(i));
    }
    Flat.scope_scope_to_block(Context.Handle(context), handle, Elements.List(values), result);
    return result;
  }

  /// <summary>The k-th largest score of each scope, in the grid shape; k = 1 is the
  /// largest.</summary>
  /// <param name="k">one number for all scopes, or one per scope</param>
  /// <param name="values">what is scored in place of the leaves</param>
  /// <param name="scores">or the scores themselves, arranged by scope</param>
  /// <param name="context">how the call runs</param>
  public Elements KthLargest(long[] k, Elements[] values = null, Elements scores = null,
                             Context context = null) {
    var result = PerScope();
    Flat.scope_kth_largest(Context.Handle(context), handle, Ranked(values, scores),
                           Elements.Optional(scores), k, Elements.List(result));
    return result;
  }

  /// <summary>A threshold between the k-th and the next score of each scope,
  /// (weight v_k + v_(k+1)) / (weight + 1).</summary>
  /// <param name="k">one number for all scopes, or one per scope</param>
  /// <param name="weight">positive; 1 is the middle</param>
  /// <param name="values">what is scored in place of the leaves</param>
  /// <param name="scores">or the scores themselves, arranged by scope</param>
  /// <param name="context">how the call runs</param>
  public Elements KthMid(long[] k, double weight = 1, Elements[] values = null,
                         Elements scores = null, Context context = null) {
    var result = PerScope();
    Flat.scope_kth_mid(Context.Handle(context), handle, Ranked(values, scores),
                       Elements.Optional(scores), k, weight, Elements.List(result));
    return result;
  }

  /// <summary>Keeps exactly so many blocks of each scope, those of largest norm, and zeroes the
  /// rest.</summary>
  public Report KeepTop(params long[] counts) {
    return KeepTop(counts, null);
  }

  /// <summary>The same.</summary>
  /// <param name="counts">one number for all scopes, or one per scope</param>
  /// <param name="values">what is scored in place of the leaves</param>
  /// <param name="scores">or the scores themselves, arranged by scope</param>
  /// <param name="ties">what becomes of equal scores</param>
  /// <param name="into">arrays that receive the result</param>
  /// <param name="context">how the call runs</param>
  public Report KeepTop(long[] counts, Elements[] values, Elements scores = null,
                        Ties ties = Ties.ByPosition, Elements[] into = null,
                        Context context = null) {
    return new Report(Flat.scope_keep_top(Context.Handle(context), handle, leaves, into, counts,
                                          values, Elements.Optional(scores), (int)ties));
  }

  /// <summary>The same selection as element masks; nothing is pruned.</summary>
  /// <param name="counts">one number for all scopes, one per scope, or null with a block
  /// mask</param>
  /// <param name="values">what is scored in place of the leaves</param>
  /// <param name="scores">or the scores themselves, arranged by scope</param>
  /// <param name="blockMask">or a keep mask of the blocks (U8), arranged by scope</param>
  /// <param name="ties">what becomes of equal scores</param>
  /// <param name="context">how the call runs</param>
  public Selection Masks(long[] counts, Elements[] values = null, Elements scores = null,
                         Elements blockMask = null, Ties ties = Ties.ByPosition,
                         Context context = null) {
    var masks = new Elements[LeafCount];
    for (int i = 0; i < masks.Length; ++i) {
      masks[i] = Elements.Allocate(Dtype.U8, View.NumelAndClose(Flat.scope_leaf_view(handle, i)));
    }
    var report = Flat.scope_get_masks(Context.Handle(context), handle,
                                      Ranked(values, scores ?? blockMask),
                                      Elements.Optional(scores), Elements.Optional(blockMask),
                                      counts, (int)ties, masks);
    return new Selection(masks, new Report(report));
  }

  /// <summary>Zeroes the blocks with Euclidean norm &lt; threshold of their scope, or the one for
  /// all; as in Block.HardThreshold.</summary>
  public Report HardThreshold(Elements thresholds, Elements[] values = null, Elements[] into = null,
                              Context context = null) {
    return new Report(Flat.scope_hard_threshold(Context.Handle(context), handle, leaves, into,
                                                Elements.List(thresholds), values));
  }

  /// <summary>Group soft thresholding with one threshold per scope, or one for all; as in
  /// Block.SoftThreshold.</summary>
  public Report SoftThreshold(Elements thresholds, Elements[] conditioners = null, double eps = -1,
                              double atol = -1, int maxIter = 0, bool scale = false,
                              Elements[] into = null, Context context = null) {
    return new Report(Flat.scope_soft_threshold(Context.Handle(context), handle, leaves, into,
                                                Elements.List(thresholds), conditioners, eps, atol,
                                                maxIter, scale ? 1 : 0));
  }

  /// <summary>Ends the scope; what was made of it goes on.</summary>
  public void Dispose() {
    handle.Dispose();
  }

  /// <summary>Whose norms are the scores: the leaves' own if no other source is given.</summary>
  Elements[] Ranked(Elements[] values, Elements other) {
    return other != null ? values : values ?? leaves;
  }

  Elements Arranged(Dtype dtype) {
    return Elements.Allocate(dtype, Numscope * NumblkPerScope);
  }

  Elements PerScope() {
    return Elements.Allocate(ScoreDtype, Numscope);
  }
}

}
