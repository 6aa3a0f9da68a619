// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using SparseKit;

/// <summary>What conformance cannot test: arrays, garbage collection, disposing, exceptions.
/// UnitTest.exe FOLDER, that of the binding's sources.</summary>
public static partial class UnitTest {
  /// <summary>So many elements that progress is asked for.</summary>
  const int Large = 1 << 22;

  static int failures;

  public static int Main(string[] arguments) {
    Test("the page shows the examples", () => PageShowsExamples(arguments[0]));
    Test("the assembly has the library's version", AssemblyVersion);
    Test("the library sees the array's own address", AddressIsTheArrays);
    Test("segments bound the array", Segments);
    Test("results are in the caller's array", WritesInPlace);
    Test("wrong arrays are refused", WrongArrays);
    Test("slices of memory are worked on in place", SlicesInPlace);
    Test("memory is found where it is", AddressIsTheMemorys);
    Test("memory without an array is pinned by its owner", OwnedMemory);
    Test("an owner that refuses to pin leaves nothing pinned", RefusedPin);
    Test("views keep memory alive", ViewsKeepMemory);
    Test("memory stands garbage collection", MemoryMoves);
    Test("wrong memory is refused", WrongMemory);
    Test("spans are worked on in place", SpansInPlace);
    Test("spans of halves are worked on in place", HalfSpans);
    Test("spans may be on the stack", StackSpans);
    Test("wrong spans are refused", WrongSpans);
    Test("disposing goes in any order", DisposingInAnyOrder);
    Test("disposed objects fail", DisposedObjectsFail);
    Test("finalisers close what nobody closed", FinalisersClose);
    Test("calls keep alive what they use", CallsKeepAlive);
    Test("calls stand garbage collection", CollectionWhileCallsRun);
    Test("maskings keep functions alive", MaskingsKeepFunctions);
    Test("cycles through functions are collected", CyclesAreCollected);
    Test("exceptions of functions come out", ExceptionsComeOut);
    Test("functions may call the library", CallsInsideFunctions);
    Test("functions may dispose of what the call uses", DisposingInsideFunctions);
    Test("a progress function cancels", ProgressCancels);
    Test("each status has its exception", Statuses);
    Test("lists that do not fit are refused", WrongLists);
    Test("names may have any character", Names);
    Test("a block serves many threads", ManyThreads);
    Test("a layer's arrays can be exchanged", ExchangedArrays);
    Console.WriteLine(failures == 0 ? "all passed" : failures + " failed");
    return failures == 0 ? 0 : 1;
  }

  static void Test(string name, Action body) {
    try {
      body();
    } catch (Exception exception) {
      ++failures;
      Console.WriteLine("FAILED: " + name + "\n" + exception);
    }
  }

  // --- the assembly

  static void PageShowsExamples(string folder) {
    var page = File.ReadAllText(Path.Combine(folder, "README.md"));
    foreach (var name in new[] {"Example", "Rows", "Slices"}) {
      var example = File.ReadAllText(Path.Combine(folder, "examples", name + ".cs"));
      Check(page.Contains("```csharp\n" + example + "```"), "README.md differs from " + name);
    }
    Equal(4, page.Split(new[] {"```csharp"}, StringSplitOptions.None).Length);
  }

  static void AssemblyVersion() {
    var version = typeof(Library).Assembly.GetName().Version;
    Equal(Library.Version, version.Major * 10000 + version.Minor * 100 + version.Build);
  }

  // --- arrays

  static void AddressIsTheArrays() {
    AddressIs(new float[] {1, 2, 3}, array => array);
    AddressIs(new double[2, 3], array => array);
    AddressIs(new byte[5], array => array);
    AddressIs(new long[5], array => array);
    AddressIs(new ushort[5], array => new Elements(array, Dtype.BF16));
  }

  static void AddressIs<T>(T array, Func<T, Elements> elements) {
    var pin = GCHandle.Alloc(array, GCHandleType.Pinned);
    try {
      Equal((long)pin.AddrOfPinnedObject(), elements(array).Address());
    } finally {
      pin.Free();
    }
  }

  static void Segments() {
    var array = new float[] {9, 9, 3, 4, 9};
    Elements segment = new ArraySegment<float>(array, 2, 2);
    Equal(2, segment.Length);
    using (var view = new View(segment, 1, 2))
    using (var block = new Block(view, 1, 2)) {
      Equal(new float[] {5}, block.Norms(2).Floats);  // sqrt(3^2 + 4^2)
    }
    using (var tooLong = new View(segment, 3)) {
      Thrown<SparseKitException>(() => tooLong.PruneUnstructured(0.5));
    }
    using (var view = new View(new Elements(array, 3), 2)) view.PruneUnstructured(1);
    Equal(new float[] {9, 9, 3, 0, 0}, array);
    Thrown<OutOfBoundsException>(() => new Elements(array, 6));
    Thrown<OutOfBoundsException>(() => new Elements(array, -1));
    Thrown<OutOfBoundsException>(() => new Elements(array, 2, 4));
  }

  static void WritesInPlace() {
    var matrix = new float[,] {{1, -4, 3, 2}, {5, 6, -8, 7}};
    using (var view = View.Of(matrix)) {
      Equal("total 8, requested 4, achieved 4, ties 0, not converged 0",
            view.PruneNm(1, 2, 4).ToString());
    }
    Equal(new float[] {0, -4, 3, 0, 0, 0, -8, 7}, matrix.Cast<float>().ToArray());
  }

  static void WrongArrays() {
    Thrown<UnsupportedDtypeException>(() => new Elements(new int[3]));
    Thrown<UnsupportedDtypeException>(() => new Elements(new ushort[3]));
    Thrown<UnsupportedDtypeException>(() => new Elements(new ushort[3], Dtype.F32));
    Thrown<UnsupportedDtypeException>(() => new Elements(new string[3]));
    Thrown<UnsupportedDtypeException>(() => new Elements(new float[3]).Doubles.ToString());
    Thrown<UnsupportedDtypeException>(() => new View(new byte[3], 3));
    Thrown<InvalidArgumentException>(() => new Elements(null));
    Thrown<MemoryException>(() => Elements.Allocate(Dtype.F32, 1L << 40));
    using (var view = new View(new float[] {1, 2}, 2))
    using (var block = new Block(view)) {
      Thrown<SparseKitException>(() => block.ApplyMask(null));
      Null("values", () => block.Broadcast(null));
      Null("members", () => Block.Couple(block, null));
    }
    Null("elements", () => new View((Elements)null, 3));
    Null("view", () => new Block(null, 3));
    Null("block", () => new Scope((Block)null));
    Null("schedule", () => new Masking(null));
    using (var schedule = Schedule.Linear(0.5, 10))
    using (var masking = new Masking(schedule)) {
      Null("layer", () => masking.Add(null));
    }
  }

  static void Null(string argument, Action body) {
    Equal(argument, Thrown<ArgumentNullException>(body).ParamName);
  }

  // --- disposing

  static readonly int[][] Orders = {
    new[] {0, 1, 2}, new[] {0, 2, 1}, new[] {1, 0, 2}, new[] {1, 2, 0}, new[] {2, 0, 1},
    new[] {2, 1, 0}
  };

  static void DisposingInAnyOrder() {
    var before = Library.LiveHandles;
    foreach (var order in Orders) {
      var view = new View(new float[] {3, 4, 6, 8}, 2, 2);
      var block = new Block(view, 1, 2);
      var scope = new Scope(block);
      var all = new IDisposable[] {view, block, scope};
      Equal(before + all.Length, Library.LiveHandles);
      foreach (var which in order) {
        if (which == 2) Equal(new float[] {10}, scope.KthLargest(new long[] {1}).Floats);
        if (which == 1) Equal(new float[] {5, 10}, block.Norms(2).Floats);
        if (which == 0) Equal(4L, view.Numel);
        all[which].Dispose();
        all[which].Dispose();
      }
      Equal(before, Library.LiveHandles);
    }
  }

  static void DisposedObjectsFail() {
    var view = new View(new float[] {1, 2}, 2);
    var block = new Block(view);
    var scope = new Scope(block);
    var schedule = Schedule.Linear(0.5, 10);
    var masking = new Masking(schedule);
    var context = new Context();
    foreach (var handle in new IDisposable[] {view, block, scope, schedule, masking, context}) {
      handle.Dispose();
    }
    var uses = new Action[] {
      () => view.Numel.ToString(),
      () => view.Format(),
      () => new Block(view),
      () => view.PruneUnstructured(0.5),
      () => block.GridShape.ToString(),
      () => block.Name.ToString(),
      () => block.Norms(2),
      () => new Scope(block),
      () => Block.Couple(block, block),
      () => scope.Numscope.ToString(),
      () => scope.KeepTop(1),
      () => Scope.Couple(scope),
      () => schedule.Rate(),
      () => schedule.Step(),
      () => new Masking(schedule),
      () => masking.Step(),
      () => masking.Update(),
      () => masking.Save(),
      () => masking.Add(new Layer("x", view, new byte[2])),
      () => context.Threads.ToString(),
      () => context.Trim()
    };
    foreach (var use in uses) Thrown<InvalidArgumentException>(use);
    using (var open = new View(new float[] {1, 2}, 2)) {
      Thrown<InvalidArgumentException>(() => open.PruneUnstructured(0.5, context: context));
    }
  }

  // --- garbage collection

  static void Collect() {
    GC.Collect();
    GC.WaitForPendingFinalizers();
  }

  /// <summary>Runs on so many threads of its own, whose stacks hold nothing afterwards.</summary>
  static void Concurrently(int count, Action body) {
    Exception failure = null;
    var threads = Enumerable.Range(0, count).Select(i => new Thread(() => {
      try {
        body();
      } catch (Exception exception) {
        failure = exception;
      }
    })).ToList();
    foreach (var thread in threads) thread.Start();
    foreach (var thread in threads) thread.Join();
    if (failure != null) throw new Exception("in a thread", failure);
  }

  static void FinalisersClose() {
    var before = Library.LiveHandles;
    Concurrently(1, () => {
      for (int i = 0; i < 1000; ++i) {
        var block = new Block(new View(new float[] {1, 2, 3, 4}, 2, 2), 1, 2);
        Equal(2L, new Scope(Block.Couple(block, block)).NumblkPerScope);
        new Masking(Schedule.Custom(t => 0.5));
        new Context(Executor.Serial, 1, (done, total) => false);
      }
      Check(Library.LiveHandles > before, "nothing was made");
    });
    for (int i = 0; i < 100 && Library.LiveHandles > before; ++i) Collect();
    Equal(before, Library.LiveHandles);
  }

  /// <summary>All that the call needs is out of the program's reach while it runs.</summary>
  static void CallsKeepAlive() {
    for (int i = 0; i < 10; ++i) {
      var sums = new Block(new View(new float[] {1, 2, 3, 4}, 2, 2), 1, 2).Reduce(elements => {
        Collect();
        return elements[0] + elements[1];
      });
      Equal(new float[] {3, 7}, sums.Floats);
      int asked = 0;
      Func<long, long, bool> progress = (done, total) => {
        ++asked;
        Collect();
        return false;
      };
      var norms = new Block(new View(new float[Large], Large), 4)
          .Norms(2, context: new Context(Executor.Serial, 1, progress));
      Equal(Large / 4, norms.Length);
      Check(asked > 1, "progress was asked " + asked + " times");
    }
  }

  /// <summary>The collector moves arrays that nothing pins; results must reach them all the same.
  /// </summary>
  static void CollectionWhileCallsRun() {
    WhileCollecting(() => {
      var weights = new float[] {3, 4, 0, 1, 6, 8, 1, 0};
      var block = new Block(new View(weights, 4, 2), 1, 2);
      Equal(new float[] {5, 1, 10, 1}, block.Norms(2).Floats);
      Equal(2L, new Scope(block).KeepTop(2).Achieved);
      Equal(new float[] {3, 4, 0, 0, 6, 8, 0, 0}, weights);
    });
  }

  /// <summary>Runs often, while another thread collects.</summary>
  static void WhileCollecting(Action body) {
    var done = false;
    var collector = new Thread(() => {
      while (!Volatile.Read(ref done)) GC.Collect();
    });
    collector.Start();
    try {
      for (int i = 0; i < 2000; ++i) body();
    } finally {
      Volatile.Write(ref done, true);
      collector.Join();
    }
  }

  /// <summary>An object whose functions refer to the handles that they were given to.</summary>
  sealed class Trainer {
    internal readonly Schedule Schedule;
    internal readonly Masking Masking;

    internal Trainer() {
      Schedule = Schedule.Custom(t => Schedule.Position);
      Masking = new Masking(Schedule, new MaskingModes {
        Prune = Prune.Callback,
        PruneFunction = (layer, rate, requested) => Equal(1, Masking.LayerCount)
      });
    }
  }

  static void CyclesAreCollected() {
    const int Made = 100;
    var trainers = new WeakReference[Made];
    Concurrently(1, () => {
      for (int i = 0; i < Made; ++i) {
        var trainer = new Trainer();
        if (i % 2 == 0) trainer.Masking.Dispose();
        trainers[i] = new WeakReference(trainer);
      }
    });
    for (int i = 0; i < 10; ++i) Collect();
    // Mono scans stacks conservatively: one of them may seem to be in use.
    Check(trainers.Count(trainer => trainer.IsAlive) < Made / 10, "cycles are not collected");
  }

  static void MaskingsKeepFunctions() {
    var weights = new float[] {1, 2, 3, 4};
    Masking masking = null;
    Concurrently(1, () => {
      using (var schedule = Schedule.Custom(t => 0.5)) {
        masking = new Masking(schedule);
        masking.Add(new Layer("layer", new View(weights, 2, 2), new byte[4]));
      }
    });
    masking.Initialise(1, Init.ErdosRenyi);
    for (int i = 0; i < 5; ++i) Collect();
    Equal(2L, masking.Update().Removed);
    Equal(new float[] {0, 0, 3, 4}, weights);
    masking.Dispose();
  }

  // --- exceptions

  static void ExceptionsComeOut() {
    var own = new InvalidOperationException("own");
    using (var view = new View(new float[] {1, 2}, 2))
    using (var block = new Block(view)) {
      var caught = Thrown<InvalidOperationException>(() => block.Reduce(e => Throw(own)));
      Check(ReferenceEquals(own, caught), "it is another exception");
      Check(caught.StackTrace.Contains("UnitTest.Throw"), "its stack is lost");
      Equal(new float[] {1, 2}, block.Norms(1).Floats);
      Thrown<ArgumentNullException>(() => block.Reduce(null));
    }
    using (var schedule = Schedule.Custom(t => Throw(own))) {
      Check(ReferenceEquals(own, Thrown<InvalidOperationException>(() => schedule.Rate())),
            "it is another exception");
    }
    Thrown<ArgumentNullException>(() => Schedule.Custom(null));
  }

  static double Throw(Exception exception) {
    throw exception;
  }

  static void CallsInsideFunctions() {
    using (var view = new View(new float[] {1, 2, 3}, 3))
    using (var block = new Block(view))
    using (var inner = new View(new float[] {3, 4}, 2))
    using (var innerBlock = new Block(inner, 2))
    using (var context = new Context()) {
      Thrown<InvalidArgumentException>(() => block.Reduce(elements => innerBlock.Nnz()));
      var result = block.Reduce(elements => {
        Thrown<ShapeMismatchException>(() => new Block(inner, 7));
        return elements[0] * innerBlock.Norms(2, context: context).Floats[0];
      });
      Equal(new float[] {5, 10, 15}, result.Floats);
    }
  }

  static void DisposingInsideFunctions() {
    var before = Library.LiveHandles;
    var view = new View(new float[] {1, 2, 3}, 3);
    var block = new Block(view);
    var context = new Context();
    var result = block.Reduce(elements => {
      view.Dispose();
      block.Dispose();
      context.Dispose();
      Equal(before + 3, Library.LiveHandles);  // the call's own
      return 2 * elements[0];
    }, context);
    Equal(new float[] {2, 4, 6}, result.Floats);
    Equal(before, Library.LiveHandles);
  }

  static void ProgressCancels() {
    int calls = 0;
    Func<long, long, bool> progress = (done, total) => {
      Check(0 <= done && done <= total, done + " of " + total);
      return ++calls == 2;
    };
    using (var view = new View(new float[Large], Large))
    using (var block = new Block(view, 4))
    using (var context = new Context(Executor.Serial, 1, progress)) {
      Thrown<CancelledException>(() => block.Norms(2, context: context));
      Equal(2, calls);
      Equal(Executor.Serial, context.Executor);
      Equal(1, context.Threads);
    }
  }

  static void Statuses() {
    Elements six = new float[6];
    using (var view = new View(six, 2, 3))
    using (var rows = new Block(view, 1, 3))
    using (var columns = new Block(view, 2, 1)) {
      Status<InvalidArgumentException>(1, "SPK_INVALID_ARGUMENT", () => rows.Norms(-1));
      Status<ShapeMismatchException>(2, "SPK_SHAPE_MISMATCH", () => new Block(view, 2, 2));
      Status<CouplingException>(3, "SPK_COUPLING", () => Block.Couple(rows, columns));
      Status<OverlapException>(4, "SPK_OVERLAP",
                               () => new View(six, new long[] {2, 3}, new long[] {1, 1}));
      Status<OutOfBoundsException>(5, "SPK_OUT_OF_BOUNDS", () => view.LinearOffset(2, 0));
      Status<UnsupportedDtypeException>(6, "SPK_UNSUPPORTED_DTYPE",
                                        () => rows.ApplyMask(new float[2]));
      Status<MemoryException>(7, "SPK_OUT_OF_MEMORY",
                              () => Elements.Allocate(Dtype.F64, 1L << 31));
      Status<CancelledException>(9, "SPK_CANCELLED",
                                 () => { throw new CancelledException("enough"); });
    }
    foreach (Executor executor in Enum.GetValues(typeof(Executor))) {
      if (Context.Available(executor)) new Context(executor, 1).Dispose();
      else Status<UnavailableException>(10, "SPK_UNAVAILABLE", () => new Context(executor, 1));
    }
  }

  static void Status<E>(int status, string name, Action body) where E : SparseKitException {
    var caught = Thrown<E>(body);
    Equal(status, caught.Status);
    Equal(name, caught.StatusName);
  }

  static void WrongLists() {
    using (var view = new View(new float[] {1, 2, 3, 4}, 2, 2))
    using (var rows = new Block(view, 1, 0))
    using (var scope = new Scope(rows))
    using (var column = new View(new float[] {1, 2}, 2, 1))
    using (var others = new Block(column, 1, 1)) {
      // As many numbers as there must be, but not as many for each member.
      var uneven = new[] {new long[] {0}, new long[] {1, 0, 1}};
      Thrown<ShapeMismatchException>(() => Block.Couple(new[] {rows, others}, uneven));
      Thrown<ShapeMismatchException>(() => Scope.Couple(new[] {scope, scope}, uneven));
      Thrown<ShapeMismatchException>(() => scope.BlockToScope(new Elements[0]));
    }
  }

  static void Names() {
    const string name = "größe 重み \U0001F642";
    using (var schedule = Schedule.Linear(0.5, 10))
    using (var masking = new Masking(schedule))
    using (var view = new View(new float[] {1, 2}, 2))
    using (var block = new Block(view, new long[] {1}, name)) {
      Equal(name, block.Name);
      masking.Add(new Layer(name, view, new byte[2]));
      Equal(name, masking.LayerName(0));
      Equal(0, masking.Find(name));
      var latin = Encoding.GetEncoding("ISO-8859-1");
      var saved = latin.GetString(masking.Save());
      Check(saved.Contains(latin.GetString(Encoding.UTF8.GetBytes(name))),
            "the saved name is not UTF-8");
    }
  }

  // --- use

  static void ManyThreads() {
    using (var view = new View(new float[] {3, 4, 6, 8}, 2, 2))
    using (var block = new Block(view, 1, 2)) {
      Concurrently(8, () => {
        for (int k = 0; k < 500; ++k) {
          Equal(new float[] {5, 10}, block.Norms(2).Floats);
          Thrown<InvalidArgumentException>(() => block.Norms(-1));
          Equal(new float[] {7, 14}, block.Reduce(e => e[0] + e[1]).Floats);
        }
      });
    }
  }

  static void ExchangedArrays() {
    var weights = new float[] {1, 2, 3, 4};
    var mask = new byte[] {1, 1, 0, 0};
    var modes = new MaskingModes {Grow = Grow.Gradient, DenseGradients = true};
    using (var schedule = Schedule.Linear(0.5, 100))
    using (var masking = new Masking(schedule, modes))
    using (var view = new View(weights, 2, 2)) {
      var layer = new Layer("layer", view, mask) {Gradient = new float[] {0, 0, 9, 1}};
      masking.Add(layer);
      masking.Initialise(0, Init.LotteryTicket);
      Equal(new float[] {1, 2, 0, 0}, weights);
      layer.Gradient = new float[] {0, 0, 1, 9};
      var update = masking.Update();
      Equal(1L, update.Removed);
      Equal(1L, update.Grown);
    }
    Equal(new byte[] {0, 1, 0, 1}, mask);
  }

  // --- shorthand

  static void Check(bool truth, string message) {
    if (!truth) throw new Exception(message);
  }

  static void Equal<T>(T expected, T got) {
    Check(expected.Equals(got), "expected " + expected + ", got " + got);
  }

  static void Equal<T>(T[] expected, T[] got) {
    Check(expected.SequenceEqual(got),
          "expected " + string.Join(",", expected) + ", got " + string.Join(",", got));
  }

  static E Thrown<E>(Action body) where E : Exception {
    try {
      body();
    } catch (E exception) {
      return exception;
    }
    throw new Exception("expected " + typeof(E).Name + ", got no exception");
  }
}
