// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/**
 * An array: a direct buffer and the dtype of its elements. The memory stays the buffer's; it is
 * kept alive, and nothing is copied.
 *
 * <p>Element 0 is the one at the buffer's position, the last is the one before its limit; moving
 * either afterwards changes nothing here. Buffers must be direct and in native byte order. A
 * read-only buffer can be read; where it would be written it is refused.
 */
public final class Elements {
  private static final int WORDS = 4;

  private final Buffer buffer;
  private final Dtype dtype;
  private final long address;

  private Elements(Buffer buffer, ByteOrder order, Dtype dtype) {
    if (!buffer.isDirect()) {
      throw new SparseKitException.InvalidArgument(
          "buffer: got one on the heap, expected a direct one (ByteBuffer.allocateDirect)");
    }
    if (order != ByteOrder.nativeOrder()) {
      throw new SparseKitException.InvalidArgument(
          "buffer: got " + order + " bytes, expected native order (ByteOrder.nativeOrder())");
    }
    this.buffer = buffer.slice();
    this.dtype = dtype;
    address = FlatJNI.bufferAddress(this.buffer);
  }

  /**
   * The array of a buffer that knows its dtype.
   *
   * @param buffer a {@link FloatBuffer} (f32), {@link DoubleBuffer} (f64), {@link ByteBuffer} (u8)
   *     or {@link LongBuffer} (i64)
   * @throws SparseKitException.InvalidArgument if it is on the heap or not in native byte order
   * @throws SparseKitException.UnsupportedDtype if it is of another kind
   */
  public static Elements of(Buffer buffer) {
    if (buffer instanceof FloatBuffer b) return new Elements(b, b.order(), Dtype.F32);
    if (buffer instanceof DoubleBuffer b) return new Elements(b, b.order(), Dtype.F64);
    if (buffer instanceof ByteBuffer b) return new Elements(b, ByteOrder.nativeOrder(), Dtype.U8);
    if (buffer instanceof LongBuffer b) return new Elements(b, b.order(), Dtype.I64);
    throw new SparseKitException.UnsupportedDtype(
        "buffer: got " + (buffer == null ? "null" : buffer.getClass().getSimpleName())
            + ", expected floats, doubles, bytes, longs, or shorts together with F16 or BF16");
  }

  /**
   * The array of a buffer of 16-bit words.
   *
   * @param dtype {@link Dtype#F16} or {@link Dtype#BF16}
   * @throws SparseKitException.InvalidArgument if it is on the heap or not in native byte order
   * @throws SparseKitException.UnsupportedDtype if the dtype is another
   */
  public static Elements of(ShortBuffer buffer, Dtype dtype) {
    if (dtype != Dtype.F16 && dtype != Dtype.BF16) {
      throw new SparseKitException.UnsupportedDtype(
          "buffer of shorts: got dtype " + dtype + ", expected F16 or BF16");
    }
    return new Elements(buffer, buffer.order(), dtype);
  }

  /**
   * A new array of zeros.
   *
   * @throws SparseKitException.OutOfMemory if it needs 2 GiB or more, which no buffer holds
   */
  public static Elements allocate(Dtype dtype, long length) {
    if (length < 0 || length > Integer.MAX_VALUE / dtype.bytes()) {
      throw new SparseKitException.OutOfMemory(
          "array: got " + length + " elements of " + dtype + ", expected less than 2 GiB");
    }
    final ByteBuffer bytes =
        ByteBuffer.allocateDirect((int) length * dtype.bytes()).order(ByteOrder.nativeOrder());
    return switch (dtype) {
      case F32 -> of(bytes.asFloatBuffer());
      case F64 -> of(bytes.asDoubleBuffer());
      case F16, BF16 -> of(bytes.asShortBuffer(), dtype);
      case U8 -> of(bytes);
      case I64 -> of(bytes.asLongBuffer());
    };
  }

  /** A new array of dtype f32 that holds the values. */
  public static Elements copyOf(float... values) {
    final Elements elements = allocate(Dtype.F32, values.length);
    elements.floats().put(values);
    return elements;
  }

  /** A new array of dtype f64 that holds the values. */
  public static Elements copyOf(double... values) {
    final Elements elements = allocate(Dtype.F64, values.length);
    elements.doubles().put(values);
    return elements;
  }

  /** A new array of dtype u8 that holds the values. */
  public static Elements copyOf(byte... values) {
    final Elements elements = allocate(Dtype.U8, values.length);
    elements.bytes().put(values);
    return elements;
  }

  /** The dtype of the elements. */
  public Dtype dtype() {
    return dtype;
  }

  /** The number of elements. */
  public long length() {
    return buffer.limit();
  }

  /** The same memory as floats, for dtype f32; another dtype is refused. */
  public FloatBuffer floats() {
    return ((FloatBuffer) expect(Dtype.F32)).duplicate();
  }

  /** The same memory as doubles, for dtype f64; another dtype is refused. */
  public DoubleBuffer doubles() {
    return ((DoubleBuffer) expect(Dtype.F64)).duplicate();
  }

  /** The same memory as words of 16 bits, for dtypes f16 and bf16; another dtype is refused. */
  public ShortBuffer shorts() {
    return ((ShortBuffer) (dtype == Dtype.BF16 ? buffer : expect(Dtype.F16))).duplicate();
  }

  /** The same memory as bytes, for dtype u8; another dtype is refused. */
  public ByteBuffer bytes() {
    return ((ByteBuffer) expect(Dtype.U8)).duplicate();
  }

  /** The same memory as longs, for dtype i64; another dtype is refused. */
  public LongBuffer longs() {
    return ((LongBuffer) expect(Dtype.I64)).duplicate();
  }

  /** The address at which the library finds element 0. */
  public long address() {
    return Flat.address(new Elements[] {this});
  }

  private Buffer expect(Dtype expected) {
    if (dtype == expected) return buffer;
    throw new SparseKitException.UnsupportedDtype(
        "array: got one of " + dtype + ", expected " + expected);
  }

  /** A list as C takes it; null, a list that is not given, and null entries are passed on. */
  static long[] pack(Elements[] list) {
    if (list == null) return null;
    final long[] words = new long[WORDS * list.length];
    for (int i = 0; i < list.length; ++i) {
      if (list[i] == null) continue;
      words[WORDS * i] = list[i].address;
      words[WORDS * i + 1] = list[i].length();
      words[WORDS * i + 2] = list[i].dtype.code;
      words[WORDS * i + 3] = list[i].buffer.isReadOnly() ? 1 : 0;
    }
    return words;
  }

  /** The same of arrays that the library writes. */
  static long[] packWritable(Elements[] list) {
    if (list == null) return null;
    for (Elements elements : list) {
      if (elements != null && elements.buffer.isReadOnly()) {
        throw new SparseKitException.InvalidArgument(
            "array: got a read-only one, expected one that can be written");
      }
    }
    return pack(list);
  }
}
