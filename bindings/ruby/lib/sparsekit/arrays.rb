# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # The dtypes by name.
  DTYPES = { f32: Flat::F32, f64: Flat::F64, f16: Flat::F16, bf16: Flat::BF16, u8: Flat::U8,
             i64: Flat::I64 }.freeze

  # How arrays are handed to Flat: as [object, dtype, layout].
  module Arrays # :nodoc:
    NAMES = DTYPES.invert.freeze
    BYTES = { f32: 4, f64: 8, f16: 2, bf16: 2, u8: 1, i64: 8 }.freeze
    LAYOUTS = { nil => Flat::LAYOUT_VIEW, contiguous: Flat::LAYOUT_CONTIGUOUS }.freeze

    module_function

    def narray?(object)
      defined?(::NArray) && object.is_a?(::NArray)
    end

    # The dtype of an NArray; nil if it has none. One of 16-bit words has that which is asked for.
    def narray_dtype(object, asked)
      case object.typecode
      when ::NArray::SFLOAT then :f32
      when ::NArray::DFLOAT then :f64
      when ::NArray::BYTE then :u8
      when ::NArray::SINT then %i[f16 bf16].find { |dtype| dtype == asked }
      end
    end

    # An array with a dtype, if that is said apart from it.
    def said(array, dtype)
      dtype.nil? ? array : [array, dtype]
    end

    # `default` is the dtype of an array that does not say its own.
    def entry(array, default = nil)
      object, dtype, layout = array.is_a?(::Array) ? array : [array]
      dtype ||= narray?(object) ? narray_dtype(object, default) : default
      code = DTYPES[dtype]
      if code.nil? || (narray?(object) && narray_dtype(object, dtype) != dtype)
        raise refusal(Flat::UNSUPPORTED_DTYPE, "dtype", dtype.inspect,
                      "the array's, of #{DTYPES.keys}")
      end
      unless LAYOUTS.key?(layout)
        raise refusal(Flat::INVALID_ARGUMENT, "layout", layout.inspect, ":contiguous")
      end
      [object, code, LAYOUTS[layout]]
    end

    # A list of arrays, or one alone; none is nil. Too many are left to the library to refuse.
    def entries(arrays, default)
      return nil if arrays.nil?
      single = !arrays.is_a?(::Array) || arrays[1].is_a?(Symbol)
      (single ? [arrays] : arrays).map.with_index do |array, i|
        entry(array, default.is_a?(::Array) ? default.fetch(i, default.last) : default)
      end
    end

    # Numbers, or an array: thresholds may be given as 0.5 or [0.5, 1.0].
    def numbers(values, default)
      list = values.is_a?(Numeric) ? [values] : values
      return [entry(values, default)] unless list.is_a?(::Array) && list.all?(Numeric)
      [[list.pack("d*"), Flat::F64, Flat::LAYOUT_VIEW]]
    end

    # A new array of zeros, an NArray if `like` is one.
    def make(like, dtype, shape)
      unless narray?(like) && dtype != :i64
        return "\0".b * (shape.inject(1, :*) * BYTES.fetch(dtype))
      end
      type = { f32: ::NArray::SFLOAT, f64: ::NArray::DFLOAT, u8: ::NArray::BYTE }
      ::NArray.new(type.fetch(dtype, ::NArray::SINT), *shape.reverse)
    end

    def refusal(status, what, got, expected)
      Error.of(status, "#{what}: got #{got}, expected #{expected}")
    end
  end
end
