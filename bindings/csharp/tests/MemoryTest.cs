// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;
using System.Linq;
using System.Runtime.InteropServices;
using SparseKit;

/// <summary>Memory and spans: slices of arrays, native memory, the stack.</summary>
public static partial class UnitTest {
  /// <summary>Native memory that counts its pins.</summary>
  sealed unsafe class NativeMemory : MemoryManager<float> {
    readonly int length;
    IntPtr address;

    internal NativeMemory(params float[] values) {
      length = values.Length;
      address = Marshal.AllocHGlobal(length * sizeof(float));
      Marshal.Copy(values, 0, address, length);
    }

    internal int Pinned { get; private set; }

    internal long Address {
      get { return (long)address; }
    }

    public override Span<float> GetSpan() {
      return new Span<float>((void*)address, length);
    }

    public override MemoryHandle Pin(int index = 0) {
      if (address == IntPtr.Zero) throw new ObjectDisposedException("NativeMemory");
      ++Pinned;
      return new MemoryHandle((float*)address + index, default(GCHandle), this);
    }

    public override void Unpin() {
      --Pinned;
    }

    protected override void Dispose(bool disposing) {
      Marshal.FreeHGlobal(address);
      address = IntPtr.Zero;
    }
  }

  // --- memory

  static void SlicesInPlace() {
    var floats = new float[] {9, 9, 1, -4, 3, 2, 9};
    using (var view = new View(floats.AsMemory(2, 4), 1, 4)) {
      Equal(2L, view.PruneNm(1, 2, 4).Achieved);
      Equal(4, view.Elements.Length);
      Equal(2, view.Elements.Offset);
      Check(ReferenceEquals(floats, view.Elements.Floats), "it is another array");
    }
    Equal(new float[] {9, 9, 0, -4, 3, 0, 9}, floats);

    var doubles = new double[] {9, 3, 4, 9};
    using (var view = new View(doubles.AsMemory(1).Slice(0, 2), 2)) {
      view.SoftThresholdBlocks(new long[] {2}, 2.5);  // the norm 5 becomes 2.5
    }
    Near(new[] {9, 1.5, 2, 9}, doubles);

    var words = new ushort[] {0x3c00, 0x3c00, 0x4000, 0x3c00};  // 1, 1, 2, 1
    using (var view = new View(new Elements(words.AsMemory(1, 2), Dtype.F16), 2)) {
      view.PruneUnstructured(0.5);
    }
    Equal(new ushort[] {0x3c00, 0, 0x4000, 0x3c00}, words);

    var mask = new byte[] {0, 0, 1, 0};
    using (var view = new View(floats.AsMemory(3, 2), 2)) {
      view.ApplyMask(new long[] {1}, mask.AsMemory(1, 2));  // prunes the second
      view.PruneUnstructured(0, floats.AsMemory(5, 2));     // copies both behind themselves
    }
    Equal(new float[] {9, 9, 0, -4, 0, -4, 0}, floats);
  }

  static void AddressIsTheMemorys() {
    var array = new float[10];
    var pin = GCHandle.Alloc(array, GCHandleType.Pinned);
    try {
      var third = (long)pin.AddrOfPinnedObject() + 3 * sizeof(float);
      Elements memory = array.AsMemory(3, 4);
      Elements segment = new ArraySegment<float>(array, 3, 4);
      Equal(third, memory.Address());
      Equal(third, segment.Address());
    } finally {
      pin.Free();
    }
    AddressIs(new double[5], array64 => array64.AsMemory());
    AddressIs(new byte[5], bytes => bytes.AsMemory());
    AddressIs(new long[5], longs => longs.AsMemory());
    AddressIs(new long[5], longs => new ArraySegment<long>(longs));
    AddressIs(new ushort[5], halves => new Elements(halves.AsMemory(), Dtype.BF16));
    AddressIs(new ushort[5], halves => new Elements(new ArraySegment<ushort>(halves), Dtype.F16));
  }

  static void OwnedMemory() {
    using (IMemoryOwner<float> owner = new NativeMemory(9, 3, 4, 9)) {
      var native = (NativeMemory)owner;
      Elements slice = owner.Memory.Slice(1, 2);
      Equal(native.Address + sizeof(float), slice.Address());
      Check(slice.Array == null, "native memory has an array");
      Thrown<UnsupportedDtypeException>(() => slice.Floats.ToString());
      using (var view = new View(slice, 2))
      using (var block = new Block(view, 2)) {
        var sums = block.Reduce(elements => native.Pinned);
        Equal(new float[] {1}, sums.Floats);
        Thrown<InvalidArgumentException>(() => block.Norms(-1));
        Equal(0, native.Pinned);
        view.PruneUnstructured(0.5);
      }
      Equal(new float[] {9, 0, 4, 9}, native.GetSpan().ToArray());
    }
  }

  static void RefusedPin() {
    IMemoryOwner<float> open = new NativeMemory(1, 2);
    IMemoryOwner<float> closed = new NativeMemory(1, 2);
    using (open)
    using (var view = new View(open.Memory, 2)) {
      Elements into = closed.Memory;
      closed.Dispose();
      Thrown<ObjectDisposedException>(() => view.PruneUnstructured(0.5, into));
      using (var block = new Block(view)) {
        Thrown<ObjectDisposedException>(() => block.SetData(new[] {into}));
        Thrown<ObjectDisposedException>(() => Block.Couple(block, block).SetData(
            new Elements[] {open.Memory, into}));
      }
      Equal(0, ((NativeMemory)open).Pinned);
      Equal(new float[] {1, 2}, open.Memory.ToArray());
    }
  }

  static void ViewsKeepMemory() {
    Block block = null;
    Concurrently(1, () => {
      block = new Block(new View(new float[] {9, 3, 4, 9}.AsMemory(1, 2), 2), 2);
    });
    for (int i = 0; i < 5; ++i) Collect();
    Equal(new float[] {5}, block.Norms(2).Floats);
    block.Dispose();
  }

  static void MemoryMoves() {
    WhileCollecting(() => {
      var weights = new float[] {9, 3, 4, 0, 1, 9};
      using (var view = new View(weights.AsMemory(1, 4), 2, 2))
      using (var block = new Block(view, 1, 2)) {
        Equal(new float[] {5, 1}, block.Norms(2).Floats);
      }
      weights.AsSpan(1, 4).PruneUnstructured(0.5);
      Equal(new float[] {9, 3, 4, 0, 0, 9}, weights);
    });
  }

  static void WrongMemory() {
    Memory<float> two = new float[9].AsMemory(3, 2);
    using (var tooLong = new View(two, 3)) {
      Thrown<SparseKitException>(() => tooLong.PruneUnstructured(0.5));
    }
    Memory<ushort> words = new ushort[3];
    Thrown<UnsupportedDtypeException>(() => new Elements(words, Dtype.F32));
    Thrown<UnsupportedDtypeException>(() => new View(new byte[3].AsMemory(), 3));
    using (var view = new View(default(Memory<float>), 1)) {
      Thrown<SparseKitException>(() => view.PruneUnstructured(0.5));
    }
    var accepted = typeof(Elements).GetConstructors().Cast<System.Reflection.MethodBase>()
        .Concat(typeof(Elements).GetMethods())
        .SelectMany(method => method.GetParameters())
        .Select(parameter => parameter.ParameterType);
    Check(!accepted.Any(type => type.Name.StartsWith("ReadOnly")), "ReadOnlyMemory is accepted");
  }

  // --- spans

  static void SpansInPlace() {
    var floats = new float[] {9, 1, -4, 3, 2, 9};
    var report = floats.AsSpan(1, 4).PruneNm(new long[] {1, 4}, 1, 2, 4);
    Equal("total 4, requested 2, achieved 2, ties 0, not converged 0", report.ToString());
    Equal(new float[] {9, 0, -4, 3, 0, 9}, floats);
    Equal(1L, floats.AsSpan(2, 2).PruneUnstructured(0.5).Achieved);
    Equal(new float[] {9, 0, -4, 0, 0, 9}, floats);
    floats.AsSpan(2, 2).SoftThresholdBlocks(new long[] {2}, new long[] {2}, 1);
    Near(new double[] {9, 0, -3, 0, 0, 9}, floats.Select(x => (double)x).ToArray());

    var doubles = new double[] {9, 1, -4, 3, 2, 9};
    doubles.AsSpan(1, 4).PruneNm(new long[] {2, 2}, 0, 1, 2);  // the larger of each column
    Equal(new double[] {9, 0, -4, 3, 0, 9}, doubles);
    doubles.AsSpan(2, 2).SoftThresholdBlocks(new long[] {1, 2}, new long[] {1, 2}, 2.5);
    Near(new double[] {9, 0, -2, 1.5, 0, 9}, doubles);
    doubles.AsSpan(2, 2).PruneUnstructured(0.5);
    Near(new double[] {9, 0, -2, 0, 0, 9}, doubles);
    using (var context = new Context(Executor.Serial, 1)) {
      Equal(1L, doubles.AsSpan(5).PruneUnstructured(0, context).Achieved);
    }
  }

  static void HalfSpans() {
    // 1, 2, -4, 1 in halves, then in the upper halves of floats.
    HalfSpan(Dtype.F16, 0x3c00, 0x4000, 0xc400);
    HalfSpan(Dtype.BF16, 0x3f80, 0x4000, 0xc080);
  }

  static void HalfSpan(Dtype dtype, ushort one, ushort two, ushort minusFour) {
    var words = new[] {one, two, minusFour, one};
    words.AsSpan(1, 2).PruneNm(dtype, new long[] {2}, 0, 1, 2);
    Equal(new ushort[] {one, 0, minusFour, one}, words);
    words.AsSpan(2, 2).PruneUnstructured(dtype, 0.5);
    Equal(new ushort[] {one, 0, minusFour, 0}, words);
    words.AsSpan(0, 2).SoftThresholdBlocks(dtype, new long[] {2}, new long[] {2}, 1);
    Equal(new ushort[] {0, 0, minusFour, 0}, words);
  }

  static unsafe void StackSpans() {
    float* stack = stackalloc float[4];
    for (int i = 0; i < 4; ++i) stack[i] = i + 1;
    new Span<float>(stack, 3).PruneUnstructured(0.4);  // floor(1.2): the 1
    Equal(new float[] {0, 2, 3, 4}, new Span<float>(stack, 4).ToArray());
  }

  static void WrongSpans() {
    var before = Library.LiveHandles;
    var weights = new float[] {1, 2, 3, 4, 5, 6};
    var four = new long[] {4};
    Thrown<ShapeMismatchException>(() => weights.AsSpan(1, 3).PruneNm(four, 0, 2, 4));
    Thrown<ShapeMismatchException>(() => weights.AsSpan(1).PruneNm(four, 0, 2, 4));
    Thrown<ShapeMismatchException>(() => weights.AsSpan().SoftThresholdBlocks(four, four, 1));
    Thrown<ShapeMismatchException>(() => weights.AsSpan(0, 4).PruneNm(four, 0, 2, 3));
    Thrown<SparseKitException>(() => weights.AsSpan(0, 4).PruneUnstructured(2));
    Thrown<SparseKitException>(() => default(Span<float>).PruneNm(four, 0, 2, 4));
    Thrown<SparseKitException>(() => weights.AsSpan().PruneNm(null, 0, 2, 4));
    Thrown<UnsupportedDtypeException>(
        () => new ushort[4].AsSpan().PruneUnstructured(Dtype.U8, 0.5));
    Equal(new float[] {1, 2, 3, 4, 5, 6}, weights);
    Equal(before, Library.LiveHandles);
  }

  static void Near(double[] expected, double[] got) {
    Equal(expected.Length, got.Length);
    for (int i = 0; i < got.Length; ++i) {
      Check(Math.Abs(expected[i] - got[i]) <= 1e-6, i + ": expected " + expected[i] + ", got " +
                                                        got[i]);
    }
  }
}
