// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;

namespace SparseKit {

/// <summary>A view cut into a grid of equal sub-tensors, the pruning units; or a coupling, in which
/// block i of several of them is one unit. It knows its arrays, one per leaf (a view cut into
/// blocks), so that operations need no data.</summary>
/// <remarks>Results are new arrays, row-major in GridShape, of the ScoreDtype unless said
/// otherwise. Where `into` is given, its arrays, one per leaf, receive the result and the leaves
/// are only read. A block that is pruned becomes exactly +0. A block is immutable; what was made of
/// it keeps it alive in C.</remarks>
public sealed class Block : IDisposable {
  internal readonly BlockHandle Handle;
  internal readonly Elements[] Leaves;

  Block(BlockHandle handle, params Elements[] leaves) {
    Handle = handle;
    Leaves = leaves;
  }

  /// <summary>Cuts a view into blocks.</summary>
  /// <param name="view">the view</param>
  /// <param name="shape">the extents of a block; 0 or less spans the dimension; no extents at all
  /// make every element a block</param>
  /// <exception cref="ShapeMismatchException">if an extent does not divide the view's</exception>
  public Block(View view, params long[] shape) : this(view, shape, null) {}

  /// <summary>The same with a name for messages, or null.</summary>
  public Block(View view, long[] shape, string name)
      : this(Flat.block_create(view.Given("view").Handle, shape, name), view.Elements) {}

  /// <summary>Couples blocks whose grids agree as they are.</summary>
  /// <exception cref="CouplingException">if they do not</exception>
  public static Block Couple(params Block[] members) {
    return Couple(members, null);
  }

  /// <summary>Couples blocks whose grids agree after a permutation each.</summary>
  /// <param name="members">the blocks</param>
  /// <param name="orders">for each member the permutation of its grid's axes, or null for
  /// none</param>
  /// <param name="name">for messages, or null</param>
  /// <exception cref="CouplingException">if the grids do not agree</exception>
  public static Block Couple(Block[] members, long[][] orders, string name = null) {
    var handles = members.Given("members").Select(m => m.Given("members").Handle).ToArray();
    return new Block(Flat.block_couple(handles, Flatten(orders, handles.Length), name),
                     members.SelectMany(m => m.Leaves).ToArray());
  }

  /// <summary>Permutations, one after the other: C cannot see where one ends.</summary>
  internal static long[] Flatten(long[][] orders, int members) {
    if (orders == null) return null;
    if (orders.Length != members || orders.Any(order => order.Length != orders[0].Length)) {
      throw new ShapeMismatchException(
          "orders: got permutations of [" + string.Join(", ", orders.Select(o => o.Length)) +
          "] axes for " + members + " members, expected one of as many axes for each");
    }
    return orders.SelectMany(order => order).ToArray();
  }

  /// <summary>The name.</summary>
  public string Name {
    get { return Flat.block_name(Handle); }
  }

  /// <summary>How many blocks there are along each axis.</summary>
  public long[] GridShape {
    get { return Flat.block_grid_shape(Handle); }
  }

  /// <summary>The number of blocks.</summary>
  public long Numblk {
    get { return Flat.block_numblk(Handle); }
  }

  /// <summary>Elements of one block, over all leaves.</summary>
  public long NumelPerBlock {
    get { return Flat.block_numel_per_block(Handle); }
  }

  /// <summary>Elements of all blocks.</summary>
  public long Numel {
    get { return Flat.block_numel(Handle); }
  }

  /// <summary>F64 if a leaf is F64, else F32.</summary>
  public Dtype ScoreDtype {
    get { return (Dtype)Flat.block_score_dtype(Handle); }
  }

  /// <summary>The number of leaves.</summary>
  public int LeafCount {
    get { return Flat.block_leaf_count(Handle); }
  }

  /// <summary>A leaf as it was before it was coupled.</summary>
  public Block Leaf(int index) {
    return new Block(Flat.block_leaf(Handle, index), Leaves[index]);
  }

  /// <summary>The extents of a leaf's blocks.</summary>
  public long[] LeafShape(int index) {
    return Flat.block_leaf_shape(Handle, index);
  }

  /// <summary>The view of a leaf.</summary>
  public View LeafView(int index) {
    return new View(Flat.block_leaf_view(Handle, index), Leaves[index]);
  }

  /// <summary>One Lp norm per block.</summary>
  /// <param name="p">0 (count of non-zeros), 1, 2, an infinity, or finite in [0.01, 1000]</param>
  /// <param name="values">arrays, one per leaf, that are looked at in place of the leaves</param>
  /// <param name="context">how the call runs</param>
  public Elements Norms(double p, Elements[] values = null, Context context = null) {
    var result = Scores();
    Flat.block_norms(Context.Handle(context), Handle, values ?? Leaves, p, Elements.List(result));
    return result;
  }

  /// <summary>The smallest signed element per block.</summary>
  public Elements Min(Context context = null) {
    var result = Scores();
    Flat.block_min(Context.Handle(context), Handle, Leaves, Elements.List(result));
    return result;
  }

  /// <summary>The largest signed element per block.</summary>
  public Elements Max(Context context = null) {
    var result = Scores();
    Flat.block_max(Context.Handle(context), Handle, Leaves, Elements.List(result));
    return result;
  }

  /// <summary>The number of elements with |x| &gt; eps.</summary>
  public long Nnz(double eps = Flat.NNZ_EPS, Context context = null) {
    return Flat.block_nnz(Context.Handle(context), Handle, Leaves, eps, null);
  }

  /// <summary>The same for each block, I64.</summary>
  public Elements NnzPerBlock(double eps = Flat.NNZ_EPS, Context context = null) {
    Elements result = new long[Numblk];
    Flat.block_nnz(Context.Handle(context), Handle, Leaves, eps, Elements.List(result));
    return result;
  }

  /// <summary>Calls a function for each block, on this thread, with the block's elements as
  /// doubles: leaf 0's row-major inside its block, then leaf 1's, ...</summary>
  /// <exception cref="CancelledException">if the function throws it; whatever else the function
  /// throws comes out of this call too</exception>
  public Elements Reduce(Func<double[], double> function, Context context = null) {
    function.Given("function");
    var result = Scores();
    using (var callback = new Callback(n => function(n))) {
      Flat.block_reduce(Context.Handle(context), Handle, Leaves, callback, Elements.List(result));
    }
    return result;
  }

  /// <summary>Zeroes the blocks whose mask (U8) is 1.</summary>
  public void ApplyMask(Elements pruneMask, Elements[] into = null, Context context = null) {
    Flat.block_apply_mask(Context.Handle(context), Handle, Leaves, into, Elements.List(pruneMask));
  }

  /// <summary>Zeroes the blocks whose mask (U8) is 0.</summary>
  public void ApplyKeepMask(Elements keepMask, Elements[] into = null, Context context = null) {
    Flat.block_apply_keep_mask(Context.Handle(context), Handle, Leaves, into,
                               Elements.List(keepMask));
  }

  /// <summary>Scales each block by its number (a float dtype); 0 gives +0 whatever the block held.
  /// </summary>
  public void ApplyMultiplier(Elements multiplier, Elements[] into = null, Context context = null) {
    Flat.block_apply_multiplier(Context.Handle(context), Handle, Leaves, into,
                                Elements.List(multiplier));
  }

  /// <summary>Zeroes the blocks with Euclidean norm &lt; threshold.</summary>
  /// <param name="thresholds">F32 or F64; one per block, or one for all</param>
  /// <param name="values">arrays, one per leaf, whose norms decide in place of the leaves'
  /// own</param>
  /// <param name="into">arrays that receive the result</param>
  /// <param name="context">how the call runs</param>
  public Report HardThreshold(Elements thresholds, Elements[] values = null, Elements[] into = null,
                              Context context = null) {
    return new Report(Flat.block_hard_threshold(Context.Handle(context), Handle, Leaves, into,
                                                Elements.List(thresholds), values));
  }

  /// <summary>Group soft thresholding, w &lt;- w max(0, 1 - t / ||w||); with conditioners h the
  /// proximal operator in the metric diag(h).</summary>
  /// <param name="thresholds">F32 or F64; one per block, or one for all</param>
  /// <param name="conditioners">arrays, one per leaf: positive and finite</param>
  /// <param name="eps">added to norms, without conditioners; -1 for machine epsilon of the score
  /// dtype</param>
  /// <param name="atol">relative tolerance, with conditioners; -1 for 1e-8</param>
  /// <param name="maxIter">steps at most, 1 to 64, with conditioners; 0 for 20</param>
  /// <param name="scale">whether thresholds are multiplied by the square root of the elements of a
  /// block</param>
  /// <param name="into">arrays that receive the result</param>
  /// <param name="context">how the call runs</param>
  public Report SoftThreshold(Elements thresholds, Elements[] conditioners = null, double eps = -1,
                              double atol = -1, int maxIter = 0, bool scale = false,
                              Elements[] into = null, Context context = null) {
    return new Report(Flat.block_soft_threshold(Context.Handle(context), Handle, Leaves, into,
                                                Elements.List(thresholds), conditioners, eps, atol,
                                                maxIter, scale ? 1 : 0));
  }

  /// <summary>Copies arrays, one per leaf and of any float dtype, into the views; laid out as they
  /// say.</summary>
  public void SetData(Elements[] source, Context context = null) {
    Flat.block_set_data(Context.Handle(context), Handle, Leaves, source);
  }

  /// <summary>The element masks of a block mask (U8): one per leaf, U8, contiguous in its view's
  /// shape.</summary>
  public Elements[] Masks(Elements blockMask, Context context = null) {
    var result = PerLeaf(Dtype.U8);
    Flat.block_get_masks(Context.Handle(context), Handle, Elements.List(blockMask), result);
    return result;
  }

  /// <summary>The blocks as a view of the same array: (B0, b0, B1, b1, ...), or reordered
  /// (B0, B1, ..., b0, b1, ...). Refused for a coupling of several leaves.</summary>
  public View BlockView(bool reorder = false) {
    return new View(Flat.block_block_view(Handle, reorder ? 1 : 0), Leaves[0]);
  }

  /// <summary>The blocks gathered, each in one piece: (grid shape..., elements of a block); of the
  /// leaves' dtype if they agree, else of the score dtype.</summary>
  public Elements Merged(Context context = null) {
    var agree = Leaves.All(leaf => leaf.Dtype == Leaves[0].Dtype);
    var result = Elements.Allocate(agree ? Leaves[0].Dtype : ScoreDtype, Numel);
    Flat.block_block_view_merged(Context.Handle(context), Handle, Leaves, Elements.List(result));
    return result;
  }

  /// <summary>Repeats each block's value over its elements: one array per leaf, of the values'
  /// dtype.</summary>
  public Elements[] Broadcast(Elements values, Context context = null) {
    var result = PerLeaf(values.Given("values").Dtype);
    Flat.block_broadcast_block_to_element(Context.Handle(context), Handle, Elements.List(values),
                                          result);
    return result;
  }

  /// <summary>An array of the grid seen in shape (B0, 1, B1, 1, ...), which goes with the block
  /// view.</summary>
  public View BroadcastFake(Elements values) {
    var code = (int)values.Given("values").Dtype;
    return new View(Flat.block_broadcast_fake(Handle, code), values);
  }

  /// <summary>An array of the grid seen in the grid shape.</summary>
  public View ExpandBlockTensor(Elements values) {
    var code = (int)values.Given("values").Dtype;
    return new View(Flat.block_expand_block_tensor(Handle, code), values);
  }

  /// <summary>Ends the block; what was made of it goes on.</summary>
  public void Dispose() {
    Handle.Dispose();
  }

  Elements Scores() {
    return Elements.Allocate(ScoreDtype, Numblk);
  }

  Elements[] PerLeaf(Dtype dtype) {
    var arrays = new Elements[LeafCount];
    for (int i = 0; i < arrays.Length; ++i) {
      arrays[i] = Elements.Allocate(dtype, View.NumelAndClose(Flat.block_leaf_view(Handle, i)));
    }
    return arrays;
  }
}

}
