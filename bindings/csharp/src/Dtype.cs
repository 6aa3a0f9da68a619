// SPDX-License-Identifier: Apache-2.0
namespace SparseKit {

/// <summary>The type of the elements of an array.</summary>
public enum Dtype {
  /// <summary>float</summary>
  F32 = Flat.F32,
  /// <summary>double</summary>
  F64 = Flat.F64,
  /// <summary>IEEE half precision, a word of 16 bits in a ushort</summary>
  F16 = Flat.F16,
  /// <summary>the upper half of a float, a word of 16 bits in a ushort</summary>
  BF16 = Flat.BF16,
  /// <summary>byte: masks and saved states</summary>
  U8 = Flat.U8,
  /// <summary>long: counts</summary>
  I64 = Flat.I64
}

/// <summary>Facts about dtypes.</summary>
public static class Dtypes {
  const int BitsMask = 0xff;
  const int BitsOfByte = 8;

  /// <summary>Bytes of one element.</summary>
  public static int Bytes(this Dtype dtype) {
    return ((int)dtype & BitsMask) / BitsOfByte;
  }
}

}
