# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # An array that operations work on: its dtype, and the shape of the view of it.
  Leaf = Struct.new(:array, :dtype, :shape, :layout) do # :nodoc:
    def entry
      [array, DTYPES.fetch(dtype), layout]
    end
  end
  private_constant :Leaf

  # How elements lie in an array: element (i0, i1, ...) at offset + sum(i_d stride_d), counted in
  # elements. Keeps the array alive.
  class View < Handle
    # array:: an NArray, or a String of packed numbers with its `dtype`: :f32, :f64, :f16 or :bf16
    # shape:: default: that of the NArray, in the order of its memory (reversed), or the String's
    #         length
    # stride:: default: row-major and contiguous; may be negative
    # Raises Overlap for a layout that maps two indices to one element, OutOfBounds for one that
    # reaches below the array's start. One that reaches beyond its end is refused by every call.
    def initialize(array, shape = nil, stride: nil, offset: 0, dtype: nil)
      entry = Arrays.entry(Arrays.said(array, dtype))
      shape ||= default_shape(*entry)
      setup(Flat.view_create(entry[1], shape, stride, offset), entry)
    end

    # A view from its text form: "(64,128):(128,1)+32" is shape:stride+offset, "(64,128)"
    # contiguous.
    def self.parse(array, text, dtype: nil)
      entry = Arrays.entry(Arrays.said(array, dtype))
      wrap(Flat.view_parse(entry[1], text), entry)
    end

    # The array.
    def array
      @leaf.array
    end

    # The text form.
    def format
      Flat.view_format(@handle)
    end
    alias to_s format

    # The type of the elements, such as :f32.
    def dtype
      Arrays::NAMES[Flat.view_dtype(@handle)]
    end

    # The extent of each dimension.
    def shape
      Flat.view_shape(@handle)
    end

    # The stride of each dimension.
    def stride
      Flat.view_stride(@handle)
    end

    # Where element (0, 0, ...) lies.
    def offset
      Flat.view_offset(@handle)
    end

    # The number of elements.
    def numel
      Flat.view_numel(@handle)
    end

    # The span of the layout, 1 + sum((shape_d - 1) |stride_d|), without the offset.
    def cosize
      Flat.view_cosize(@handle)
    end

    # Where an element lies in the array.
    def linear_offset(*index)
      Flat.view_linear_offset(@handle, index)
    end

    # [row, column] of an element in a row-major matrix of `columns` columns that owns the array.
    def to_param_rc(index, columns)
      Flat.view_to_param_rc(@handle, index, columns)
    end

    # The blocks of this shape as a view of the same memory: of shape (B0, b0, B1, b1, ...),
    # reordered (B0, B1, ..., b0, b1, ...).
    def block_view(shape, reorder: false)
      View.wrap(Flat.view_block_view_of(@handle, shape, reorder ? 1 : 0), @leaf.entry)
    end

    # The blocks gathered, each in one piece: (blocks..., elements per block).
    def merged(shape, context: nil)
      blocks = Block.new(self, shape)
      out = Arrays.make(array, @leaf.dtype, blocks.grid_shape + [blocks.numel_per_block])
      Flat.view_block_view_merged(Context.optional(context), @handle, [@leaf.entry], shape,
                                  [Arrays.entry(out, @leaf.dtype)])
      out
    ensure
      blocks&.close
    end

    # Each block's value, of any dtype, repeated over its elements: in the shape of the view.
    def broadcast(shape, values, context: nil)
      source = Arrays.entry(values, @leaf.dtype)
      dtype = Arrays::NAMES[source[1]]
      out = Arrays.make(array, dtype, @leaf.shape)
      Flat.view_broadcast_block_to_element(Context.optional(context), @handle, shape, [source],
                                           [Arrays.entry(out, dtype)])
      out
    end

    # Zeroes the blocks of this shape whose mask (u8) is 1, in place or `into` another array. A nil
    # shape means blocks of one element.
    def apply_mask(shape, mask, into: nil, context: nil)
      Flat.view_apply_mask(Context.optional(context), @handle, [@leaf.entry], entries(into), shape,
                           [Arrays.entry(mask, :u8)])
    end

    # Zeroes the blocks whose mask is 0.
    def apply_keep_mask(shape, mask, into: nil, context: nil)
      Flat.view_apply_keep_mask(Context.optional(context), @handle, [@leaf.entry], entries(into),
                                shape, [Arrays.entry(mask, :u8)])
    end

    # Scales each block by its number, of any float dtype.
    def apply_multiplier(shape, multiplier, into: nil, context: nil)
      Flat.view_apply_multiplier(Context.optional(context), @handle, [@leaf.entry], entries(into),
                                 shape, Arrays.numbers(multiplier, @leaf.dtype))
    end

    # Keeps, of every m elements in a row along the axis, the n of largest magnitude. A negative
    # axis counts from the end. Returns a Report, of elements.
    def prune_nm(axis, n, m, into: nil, context: nil)
      Report.new(*Flat.prune_nm(Context.optional(context), @handle, [@leaf.entry], entries(into),
                                axis, n, m))
    end

    # Zeroes exactly floor(sparsity numel) elements, those of smallest magnitude. Returns a Report.
    def prune_unstructured(sparsity, into: nil, context: nil)
      Report.new(*Flat.prune_unstructured(Context.optional(context), @handle, [@leaf.entry],
                                          entries(into), sparsity))
    end

    # Shrinks the norms of blocks of this shape by one threshold. Returns a Report.
    def soft_threshold_blocks(shape, threshold, into: nil, context: nil)
      Report.new(*Flat.soft_threshold_blocks(Context.optional(context), @handle, [@leaf.entry],
                                             entries(into), shape, threshold))
    end

    attr_reader :leaf # :nodoc:

    private

    def setup(handle, entry)
      @handle = handle
      object, dtype, layout = entry
      @leaf = Leaf.new(object, Arrays::NAMES[dtype], shape, layout)
    end

    def default_shape(object, dtype, _layout)
      return object.shape.reverse if Arrays.narray?(object)
      [object.bytesize / Arrays::BYTES[Arrays::NAMES[dtype]]]
    end

    def entries(arrays)
      Arrays.entries(arrays, @leaf.dtype)
    end
  end
end
