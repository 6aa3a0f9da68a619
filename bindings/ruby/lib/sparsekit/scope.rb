# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # The grid of a block cut into groups of blocks that compete; or scopes, coupled so that the
  # blocks of scope i of each of them compete together. Knows the arrays of its leaves and keeps
  # them alive.
  class Scope < Handle
    include Grid

    FLAT = "scope" # :nodoc:

    # What a scope keeps of the block of a member.
    Member = Struct.new(:leaves, :grid_shape)
    private_constant :Member

    # shape:: blocks of a scope along each axis; one <= 0, or missing at the end, spans the grid's;
    #         nil: one scope of all blocks
    def initialize(block, shape = nil, name: nil)
      handle = Flat.scope_create(Block.of(block), shape, name)
      setup(handle, [Member.new(block.leaves, block.grid_shape)])
    end

    # Couples scopes whose grids agree after a permutation of axes each, `orders` (one per member,
    # nil for none).
    def self.couple(scopes, orders = nil, name: nil)
      handle = Flat.scope_couple(scopes.map { |scope| Scope.of(scope) }, orders&.flatten, name)
      wrap(handle, scopes.flat_map(&:members))
    end

    # The number of scopes.
    def numscope
      flat(:numscope)
    end

    # The number of blocks of a scope, over all members.
    def numblk_per_scope
      flat(:numblk_per_scope)
    end

    # The number of elements of a scope, over all members.
    def numel_per_scope
      flat(:numel_per_scope)
    end

    # The number of blocks that were coupled; 1 for a scope of one.
    def member_count
      flat(:member_count)
    end

    # The block of a member.
    def member_block(index)
      handle = flat(:member_block, index)
      Block.wrap(handle, members[index].leaves)
    end

    # How many blocks a member brings to a scope.
    def member_numblk(index)
      flat(:member_numblk, index)
    end

    # How many blocks of a scope stay at a sparsity in [0, 1]: n - floor(sparsity n).
    def sparsity_to_nnz(sparsity)
      flat(:sparsity_to_nnz, sparsity)
    end

    # The Lp norms of blocks, arranged by scope: (scopes..., blocks per scope), of the score dtype.
    def norms(p, values: nil, context: nil)
      fill(:block_norms, context, @score_dtype, @scores_shape, entries(values) || leaf_entries, p)
    end

    # Arrays of blocks, one per member and all of one dtype (as Strings: the score dtype), arranged
    # by scope: (scopes..., blocks per scope).
    def block_to_scope(values, context: nil)
      source = Arrays.entries(values, @score_dtype)
      fill(:block_to_scope, context, Arrays::NAMES[source.first[1]], @scores_shape, source)
    end

    # The same without a copy: a view of an array of a float dtype with one number per block.
    # Couplings of several members are refused.
    def block_to_scope_view(values, reorder: false)
      source = Arrays.entry(values, @score_dtype)
      View.wrap(flat(:block_to_scope_view, source[1], reorder ? 1 : 0), source)
    end

    # Each scope's value, of any dtype (as a String: the score dtype), repeated over its blocks: one
    # array per member, in the shape of its grid.
    def scope_to_block(values, context: nil)
      source = Arrays.entry(values, @score_dtype)
      fill_each(:scope_to_block, context, Arrays::NAMES[source[1]], members.map(&:grid_shape),
                [source])
    end

    # The k-th largest score of each scope, k = 1 being the largest: one k for all, or a list of one
    # per scope. Scores are the norms of the leaves, of `values`, or `scores` themselves, of the
    # shape and dtype of norms.
    def kth_largest(k, values: nil, scores: nil, context: nil)
      fill(:kth_largest, context, @score_dtype, @grid_shape, *source(values, scores), [k].flatten)
    end

    # A threshold between the k-th and the next score of each scope, their mean with the weights
    # k_weight and 1: as a threshold it keeps exactly k.
    def kth_mid(k, k_weight: 1.0, values: nil, scores: nil, context: nil)
      fill(:kth_mid, context, @score_dtype, @grid_shape, *source(values, scores), [k].flatten,
           k_weight)
    end

    # Keeps exactly `counts` blocks of each scope (one number for all, or a list), those of largest
    # score, and zeroes the rest. Equal scores are settled by position, lower first; with
    # `ties: :keep_all` every block that is tied with the last kept one is kept. NaN ranks above
    # infinity. Returns a Report.
    def keep_top(counts, values: nil, scores: nil, ties: :by_position, into: nil, context: nil)
      Report.new(*operate(:keep_top, context, leaf_entries, entries(into), [counts].flatten,
                          entries(values), optional(scores, @score_dtype),
                          Handle.mode("TIES", ties)))
    end

    # What keep_top would keep: [keep masks of the leaves' elements, Report]. Nothing is pruned.
    # With `block_mask`, a keep mask of blocks (u8, of the shape of norms), that decides, without
    # counts.
    def masks(counts = nil, values: nil, scores: nil, block_mask: nil, ties: :by_position,
              context: nil)
      masks = @leaves.map { |leaf| Arrays.make(leaf.array, :u8, leaf.shape) }
      report = operate(:get_masks, context, *source(values, scores, block_mask),
                       optional(block_mask, :u8), counts && [counts].flatten,
                       Handle.mode("TIES", ties), masks.map { |mask| Arrays.entry(mask, :u8) })
      [masks, Report.new(*report)]
    end

    attr_reader :members # :nodoc:

    private

    def setup(handle, members)
      @handle = handle
      @members = members
      @leaves = members.flat_map(&:leaves)
      @grid_shape = grid_shape
      @scores_shape = @grid_shape + [numblk_per_scope]
      @score_dtype = score_dtype
    end

    def optional(array, dtype)
      array && [Arrays.entry(array, dtype)]
    end

    # Where scores come from: what was given, or else the leaves.
    def source(values, scores, block_mask = nil)
      given = entries(values)
      given ||= leaf_entries unless scores || block_mask
      [given, optional(scores, @score_dtype)]
    end
  end
end
