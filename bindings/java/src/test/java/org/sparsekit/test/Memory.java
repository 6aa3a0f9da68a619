// SPDX-License-Identifier: Apache-2.0
package org.sparsekit.test;

import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ShortBuffer;
import org.sparsekit.Dtype;
import org.sparsekit.Elements;

/** What the tests do with arrays of any dtype. */
final class Memory {
  private Memory() {}

  /** An array that holds little-endian bytes. */
  static Elements of(Dtype dtype, byte[] content) {
    final Elements elements = Elements.allocate(dtype, content.length / dtype.bytes());
    final ByteBuffer bytes = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
    switch (dtype) {
      case F32 -> elements.floats().put(bytes.asFloatBuffer());
      case F64 -> elements.doubles().put(bytes.asDoubleBuffer());
      case F16, BF16 -> elements.shorts().put(bytes.asShortBuffer());
      case U8 -> elements.bytes().put(bytes);
      case I64 -> elements.longs().put(bytes.asLongBuffer());
    }
    return elements;
  }

  /** The little-endian bytes of an array. */
  static byte[] content(Elements elements) {
    final byte[] content = new byte[(int) elements.length() * elements.dtype().bytes()];
    final ByteBuffer bytes = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
    switch (elements.dtype()) {
      case F32 -> bytes.asFloatBuffer().put(elements.floats());
      case F64 -> bytes.asDoubleBuffer().put(elements.doubles());
      case F16, BF16 -> bytes.asShortBuffer().put(elements.shorts());
      case U8 -> bytes.put(elements.bytes());
      case I64 -> bytes.asLongBuffer().put(elements.longs());
    }
    return content;
  }

  static Buffer buffer(Elements elements) {
    return switch (elements.dtype()) {
      case F32 -> elements.floats();
      case F64 -> elements.doubles();
      case F16, BF16 -> elements.shorts();
      case U8 -> elements.bytes();
      case I64 -> elements.longs();
    };
  }

  /** The same memory, which refuses to be written. */
  static Elements readOnly(Elements elements) {
    return switch (elements.dtype()) {
      case F32 -> Elements.of(elements.floats().asReadOnlyBuffer());
      case F64 -> Elements.of(elements.doubles().asReadOnlyBuffer());
      case F16, BF16 -> {
        final ShortBuffer readOnly = elements.shorts().asReadOnlyBuffer();
        yield Elements.of(readOnly, elements.dtype());
      }
      case U8 -> Elements.of(elements.bytes().asReadOnlyBuffer());
      case I64 -> Elements.of(elements.longs().asReadOnlyBuffer());
    };
  }

  /** Where a direct buffer's element 0 is, as Java itself has it. */
  static long address(Buffer buffer) {
    try {
      final Field address = Buffer.class.getDeclaredField("address");
      address.setAccessible(true);
      return address.getLong(buffer);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }
}
