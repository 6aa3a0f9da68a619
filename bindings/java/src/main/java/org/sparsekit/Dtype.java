// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/** The type of the elements of an array. */
public enum Dtype {
  /** {@code float}. */
  F32(FlatConstants.F32),
  /** {@code double}. */
  F64(FlatConstants.F64),
  /** IEEE half precision, a word of 16 bits in a {@code short}. */
  F16(FlatConstants.F16),
  /** The upper half of a {@code float}, a word of 16 bits in a {@code short}. */
  BF16(FlatConstants.BF16),
  /** {@code byte}: masks and saved states. */
  U8(FlatConstants.U8),
  /** {@code long}: counts. */
  I64(FlatConstants.I64);

  private static final int BITS = 0xff;

  final int code;

  Dtype(int code) {
    this.code = code;
  }

  /** Bytes of one element. */
  public int bytes() {
    return (code & BITS) / Byte.SIZE;
  }

  static Dtype of(int code) {
    for (Dtype dtype : values()) {
      if (dtype.code == code) return dtype;
    }
    throw new IllegalArgumentException("no dtype has code " + code);
  }
}
