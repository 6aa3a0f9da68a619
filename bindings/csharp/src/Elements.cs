// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;
using System.Runtime.InteropServices;

namespace SparseKit {

/// <summary>An array, a segment of it or a Memory, and the dtype of its elements. The memory stays
/// its owner's; it is kept alive, pinned only while calls run, and never copied.</summary>
/// <remarks>Those of float, double, byte and long convert by themselves; those of ushort need the
/// dtype F16 or BF16 to be said. ReadOnlyMemory is not accepted.</remarks>
public sealed class Elements {
  readonly Func<MemoryHandle> pin;

  /// <summary>A segment of an array.</summary>
  /// <param name="array">of float, double, byte or long, with any number of dimensions</param>
  /// <param name="offset">where element 0 lies</param>
  /// <param name="length">how many elements it has; -1 for all the others</param>
  /// <exception cref="UnsupportedDtypeException">if the array is of another type</exception>
  /// <exception cref="OutOfBoundsException">if the segment is not in the array</exception>
  public Elements(Array array, int offset = 0, int length = -1)
      : this(array, DtypeOf(array), offset, length) {}

  /// <summary>A segment of an array of words of 16 bits.</summary>
  /// <param name="array">the words</param>
  /// <param name="dtype">F16 or BF16</param>
  /// <param name="offset">where element 0 lies</param>
  /// <param name="length">how many elements it has; -1 for all the others</param>
  /// <exception cref="UnsupportedDtypeException">if the dtype is another</exception>
  /// <exception cref="OutOfBoundsException">if the segment is not in the array</exception>
  public Elements(ushort[] array, Dtype dtype, int offset = 0, int length = -1)
      : this((Array)array, Half(dtype), offset, length) {}

  /// <summary>Words of 16 bits.</summary>
  /// <param name="words">the words</param>
  /// <param name="dtype">F16 or BF16</param>
  /// <exception cref="UnsupportedDtypeException">if the dtype is another</exception>
  public Elements(Memory<ushort> words, Dtype dtype)
      : this(words.Pin, words.Length, Half(dtype), Segment<ushort>(words)) {}

  Elements(Array array, Dtype dtype, int offset, int length) {
    if (array == null) throw new InvalidArgumentException("array: got null, expected an array");
    if (offset < 0 || offset > array.Length || length < -1 || length > array.Length - offset) {
      throw new OutOfBoundsException(
          "segment: got offset " + offset + " and length " + length + ", expected one inside an " +
          "array of " + array.Length);
    }
    Array = array;
    Dtype = dtype;
    Offset = offset;
    Length = length == -1 ? array.Length - offset : length;
    pin = PinArray;
  }

  /// <summary>Memory that a function pins, and where it lies in an array, if it does.</summary>
  Elements(Func<MemoryHandle> pin, int length, Dtype dtype, Tuple<Array, int> segment) {
    this.pin = pin;
    Length = length;
    Dtype = dtype;
    Array = segment.Item1;
    Offset = segment.Item2;
  }

  /// <summary>Memory that stays where it is as long as this object is used.</summary>
  internal static unsafe Elements Fixed(void* address, int length, Dtype dtype) {
    var handle = new MemoryHandle(address);
    return new Elements(() => handle, length, dtype, new Tuple<Array, int>(null, 0));
  }

  static Tuple<Array, int> Segment<T>(ReadOnlyMemory<T> memory) {
    ArraySegment<T> segment;
    MemoryMarshal.TryGetArray(memory, out segment);
    return new Tuple<Array, int>(segment.Array, segment.Offset);
  }

  unsafe MemoryHandle PinArray() {
    var handle = GCHandle.Alloc(Array, GCHandleType.Pinned);
    var start = (long)Offset * Dtype.Bytes();
    return new MemoryHandle((byte*)handle.AddrOfPinnedObject() + start, handle);
  }

  /// <summary>Keeps the elements where they are until the handle is disposed.</summary>
  internal MemoryHandle Pin() {
    return pin();
  }

  static Dtype DtypeOf(Array array) {
    if (array == null) throw new InvalidArgumentException("array: got null, expected an array");
    var type = array.GetType().GetElementType();
    if (type == typeof(float)) return Dtype.F32;
    if (type == typeof(double)) return Dtype.F64;
    if (type == typeof(byte)) return Dtype.U8;
    if (type == typeof(long)) return Dtype.I64;
    throw new UnsupportedDtypeException(
        "array: got one of " + type.Name +
        ", expected float, double, byte, long, or ushort together with F16 or BF16");
  }

  /// <summary>The dtype, which must be one of words of 16 bits.</summary>
  internal static Dtype Half(Dtype dtype) {
    if (dtype == Dtype.F16 || dtype == Dtype.BF16) return dtype;
    throw new UnsupportedDtypeException(
        "array of ushort: got dtype " + dtype + ", expected F16 or BF16");
  }

  /// <summary>A new array of zeros.</summary>
  /// <exception cref="MemoryException">if it needs 2 GiB or more</exception>
  public static Elements Allocate(Dtype dtype, long length) {
    if (length < 0 || length > int.MaxValue / dtype.Bytes()) {
      throw new MemoryException(
          "array: got " + length + " elements of " + dtype + ", expected less than 2 GiB");
    }
    switch (dtype) {
      case Dtype.F32: return new float[length];
      case Dtype.F64: return new double[length];
      case Dtype.U8: return new byte[length];
      case Dtype.I64: return new long[length];
      default: return new Elements(new ushort[length], dtype);
    }
  }

  /// <summary>The dtype of the elements.</summary>
  public Dtype Dtype { get; }

  /// <summary>The array itself; null if the elements are a Memory that is no array's.</summary>
  public Array Array { get; }

  /// <summary>Where element 0 lies in the array.</summary>
  public int Offset { get; }

  /// <summary>The number of elements.</summary>
  public int Length { get; }

  /// <summary>The array itself, of dtype F32.</summary>
  public float[] Floats {
    get { return As<float[]>(); }
  }

  /// <summary>The array itself, of dtype F64.</summary>
  public double[] Doubles {
    get { return As<double[]>(); }
  }

  /// <summary>The array itself, of dtype F16 or BF16.</summary>
  public ushort[] Words {
    get { return As<ushort[]>(); }
  }

  /// <summary>The array itself, of dtype U8.</summary>
  public byte[] Bytes {
    get { return As<byte[]>(); }
  }

  /// <summary>The array itself, of dtype I64.</summary>
  public long[] Longs {
    get { return As<long[]>(); }
  }

  T As<T>() where T : class {
    var array = Array as T;
    if (array != null) return array;
    throw new UnsupportedDtypeException(
        "array: got " + (Array == null ? "none" : Array.GetType().Name) + ", expected " +
        typeof(T).Name);
  }

  /// <summary>The address at which the library finds element 0 in this call; the array may move
  /// afterwards.</summary>
  public long Address() {
    return Flat.address(List(this));
  }

  /// <summary>The whole array.</summary>
  public static implicit operator Elements(float[] array) {
    return new Elements(array);
  }

  /// <summary>The whole array.</summary>
  public static implicit operator Elements(double[] array) {
    return new Elements(array);
  }

  /// <summary>The whole array.</summary>
  public static implicit operator Elements(byte[] array) {
    return new Elements(array);
  }

  /// <summary>The whole array.</summary>
  public static implicit operator Elements(long[] array) {
    return new Elements(array);
  }

  /// <summary>The whole array, row-major.</summary>
  public static implicit operator Elements(float[,] array) {
    return new Elements(array);
  }

  /// <summary>The whole array, row-major.</summary>
  public static implicit operator Elements(double[,] array) {
    return new Elements(array);
  }

  /// <summary>The segment.</summary>
  public static implicit operator Elements(ArraySegment<float> segment) {
    return new Elements(segment.Array, segment.Offset, segment.Count);
  }

  /// <summary>The segment.</summary>
  public static implicit operator Elements(ArraySegment<double> segment) {
    return new Elements(segment.Array, segment.Offset, segment.Count);
  }

  /// <summary>The segment.</summary>
  public static implicit operator Elements(ArraySegment<byte> segment) {
    return new Elements(segment.Array, segment.Offset, segment.Count);
  }

  /// <summary>The segment.</summary>
  public static implicit operator Elements(ArraySegment<long> segment) {
    return new Elements(segment.Array, segment.Offset, segment.Count);
  }

  /// <summary>The whole memory.</summary>
  public static implicit operator Elements(Memory<float> memory) {
    return new Elements(memory.Pin, memory.Length, Dtype.F32, Segment<float>(memory));
  }

  /// <summary>The whole memory.</summary>
  public static implicit operator Elements(Memory<double> memory) {
    return new Elements(memory.Pin, memory.Length, Dtype.F64, Segment<double>(memory));
  }

  /// <summary>The whole memory.</summary>
  public static implicit operator Elements(Memory<byte> memory) {
    return new Elements(memory.Pin, memory.Length, Dtype.U8, Segment<byte>(memory));
  }

  /// <summary>The whole memory.</summary>
  public static implicit operator Elements(Memory<long> memory) {
    return new Elements(memory.Pin, memory.Length, Dtype.I64, Segment<long>(memory));
  }

  /// <summary>A list of one.</summary>
  internal static Elements[] List(Elements elements) {
    return new[] {elements};
  }

  /// <summary>The same; none if there is no array.</summary>
  internal static Elements[] Optional(Elements elements) {
    return elements == null ? null : List(elements);
  }
}

}
