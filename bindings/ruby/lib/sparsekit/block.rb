# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # A view cut into a grid of equal blocks, the units that live or die; or blocks of several views,
  # coupled so that block i of each of them is one unit. Knows the arrays of its leaves and keeps
  # them alive.
  class Block < Handle
    include Grid

    FLAT = "block" # :nodoc:

    # shape:: the blocks' extents, each of which divides the view's; one <= 0 spans the dimension;
    #         nil: blocks of one element
    def initialize(view, shape = nil, name: nil)
      setup(Flat.block_create(View.of(view), shape, name), [view.leaf])
    end

    # Couples blocks whose grids agree after a permutation of axes each, `orders` (one per member,
    # nil for none). Raises CouplingError for members that do not agree.
    def self.couple(members, orders = nil, name: nil)
      handle = Flat.block_couple(members.map { |member| Block.of(member) }, orders&.flatten, name)
      wrap(handle, members.flat_map(&:leaves))
    end

    # The number of blocks.
    def numblk
      flat(:numblk)
    end

    # The number of elements of a block, over all leaves.
    def numel_per_block
      flat(:numel_per_block)
    end

    # The number of elements of all blocks.
    def numel
      flat(:numel)
    end

    # The block of one leaf, as it was created.
    def leaf(index)
      handle = flat(:leaf, index)
      Block.wrap(handle, [leaves[index]])
    end

    # The extents of a leaf's blocks.
    def leaf_shape(index)
      flat(:leaf_shape, index)
    end

    # The Lp norm of each block, of the score dtype, or those of `values`, one array per leaf. p is
    # 0, 1, 2, Float::INFINITY, its negative, or in [0.01, 1000].
    def norms(p, values: nil, context: nil)
      fill(:norms, context, @score_dtype, @grid_shape, entries(values) || leaf_entries, p)
    end

    # The smallest element of each block, of the score dtype.
    def min(context: nil)
      fill(:min, context, @score_dtype, @grid_shape, leaf_entries)
    end

    # The largest element of each block, of the score dtype.
    def max(context: nil)
      fill(:max, context, @score_dtype, @grid_shape, leaf_entries)
    end

    # How many elements have |x| > eps; NaN counts.
    def nnz(eps: Flat::NNZ_EPS, context: nil)
      operate(:nnz, context, leaf_entries, eps, nil)
    end

    # The same of each block: a list of integers, row-major in the grid.
    def nnz_per_block(eps: Flat::NNZ_EPS, context: nil)
      fill(:nnz, context, :i64, [@grid_shape.inject(1, :*)], leaf_entries, eps).unpack("q*")
    end

    # What the block says of the elements of each block, a list of floats, those of leaf 0 first: of
    # the score dtype. It ends the call by STOP, or by an exception.
    def reduce(context: nil, &function)
      raise ArgumentError, "no block given" unless function
      fill(:reduce, context, @score_dtype, @grid_shape, leaf_entries, Handle.function(&function))
    end

    # Zeroes the blocks whose mask (u8, one byte per block) is 1.
    def apply_mask(mask, into: nil, context: nil)
      operate(:apply_mask, context, leaf_entries, entries(into), [Arrays.entry(mask, :u8)])
    end

    # Zeroes the blocks whose mask is 0.
    def apply_keep_mask(mask, into: nil, context: nil)
      operate(:apply_keep_mask, context, leaf_entries, entries(into), [Arrays.entry(mask, :u8)])
    end

    # Scales each block by its number, of any float dtype (as a String: the score dtype). 0 gives +0
    # even for NaN and infinity.
    def apply_multiplier(multiplier, into: nil, context: nil)
      operate(:apply_multiplier, context, leaf_entries, entries(into),
              Arrays.numbers(multiplier, @score_dtype))
    end

    # Copies into the leaves, from one array per leaf, of any float dtype.
    def set_data(source, context: nil)
      operate(:set_data, context, leaf_entries, entries(source))
    end

    # The mask of each leaf's elements, in the shape of its view, from one of blocks (u8).
    def masks(block_mask, context: nil)
      fill_each(:get_masks, context, :u8, @leaves.map(&:shape), [Arrays.entry(block_mask, :u8)])
    end

    # The blocks as a view of the leaf's memory: of shape (B0, b0, B1, b1, ...), reordered
    # (B0, B1, ..., b0, b1, ...). Couplings of several leaves are refused.
    def block_view(reorder: false)
      View.wrap(flat(:block_view, reorder ? 1 : 0), @leaves.first.entry)
    end

    # The blocks gathered, each in one piece: (blocks..., elements per block), of the leaves' dtype
    # if they agree, else of the score dtype.
    def merged(context: nil)
      dtypes = @leaves.map(&:dtype).uniq
      fill(:block_view_merged, context, dtypes.size == 1 ? dtypes.first : @score_dtype,
           @grid_shape + [numel_per_block], leaf_entries)
    end

    # Each block's value, of any dtype (as a String: the score dtype), repeated over its elements:
    # one array per leaf, in the shape of its view.
    def broadcast(values, context: nil)
      source = Arrays.entry(values, @score_dtype)
      fill_each(:broadcast_block_to_element, context, Arrays::NAMES[source[1]],
                @leaves.map(&:shape), [source])
    end

    # A view of an array with one number per block, of a float dtype, in the shape
    # (B0, 1, B1, 1, ...), which broadcasts against block_view.
    def broadcast_fake(values)
      source = Arrays.entry(values, @score_dtype)
      View.wrap(flat(:broadcast_fake, source[1]), source)
    end

    # A view of an array with one number per block, of a float dtype, in the shape of the grid.
    def expand_block_tensor(values)
      source = Arrays.entry(values, @score_dtype)
      View.wrap(flat(:expand_block_tensor, source[1]), source)
    end

    private

    def setup(handle, leaves)
      @handle = handle
      @leaves = leaves
      @grid_shape = grid_shape
      @score_dtype = score_dtype
    end
  end
end
