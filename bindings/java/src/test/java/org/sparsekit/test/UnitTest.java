// SPDX-License-Identifier: Apache-2.0
package org.sparsekit.test;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.sparsekit.Block;
import org.sparsekit.Context;
import org.sparsekit.Dtype;
import org.sparsekit.Elements;
import org.sparsekit.Layer;
import org.sparsekit.Masking;
import org.sparsekit.Options;
import org.sparsekit.Progress;
import org.sparsekit.Report;
import org.sparsekit.Schedule;
import org.sparsekit.Scope;
import org.sparsekit.SparseKit;
import org.sparsekit.SparseKitException;
import org.sparsekit.View;

/** What conformance cannot test: buffers, garbage collection, closing, exceptions. */
public final class UnitTest {
  private interface Body {
    void run() throws Exception;
  }

  /** So many elements that progress is asked for. */
  private static final int LARGE = 1 << 22;

  private static int failures;

  private UnitTest() {}

  /** {@code UnitTest FOLDER}, that of the binding's sources. */
  public static void main(String[] arguments) {
    test("the page shows the examples", () -> pageShowsExamples(Path.of(arguments[0])));
    test("the package has the library's version", () -> packageVersion(Path.of(arguments[0])));
    test("the library sees the buffer's own address", UnitTest::addressIsTheBuffers);
    test("position and limit bound the array", UnitTest::positionAndLimit);
    test("results are in the caller's buffer", UnitTest::writesInPlace);
    test("wrong buffers are refused", UnitTest::wrongBuffers);
    test("read-only buffers are not written", UnitTest::readOnlyBuffers);
    test("closing goes in any order", UnitTest::closingInAnyOrder);
    test("closed objects fail", UnitTest::closedObjectsFail);
    test("the cleaner closes what nobody closed", UnitTest::cleanerCloses);
    test("calls keep alive what they use", UnitTest::callsKeepAlive);
    test("views keep their buffers alive", UnitTest::viewsKeepBuffers);
    test("calls stand garbage collection", UnitTest::collectionWhileCallsRun);
    test("maskings keep functions alive", UnitTest::maskingsKeepFunctions);
    test("cycles through functions are collected", UnitTest::cyclesAreCollected);
    test("exceptions of functions come out", UnitTest::exceptionsComeOut);
    test("functions may call the library", UnitTest::callsInsideFunctions);
    test("functions may close what the call uses", UnitTest::closingInsideFunctions);
    test("a progress function cancels", UnitTest::progressCancels);
    test("each status has its exception", UnitTest::statuses);
    test("lists that do not fit are refused", UnitTest::wrongLists);
    test("what is null is named", UnitTest::nullsAreNamed);
    test("names may have any character", UnitTest::names);
    test("options that are not read are refused", UnitTest::unreadOptions);
    test("a block serves many threads", UnitTest::manyThreads);
    test("a layer's arrays can be exchanged", UnitTest::exchangedArrays);
    System.out.println(failures == 0 ? "all passed" : failures + " failed");
    System.exit(failures == 0 ? 0 : 1);
  }

  private static void test(String name, Body body) {
    try {
      body.run();
    } catch (Exception | AssertionError e) {
      ++failures;
      System.out.println("FAILED: " + name);
      e.printStackTrace(System.out);
    }
  }

  // --- the package

  private static void pageShowsExamples(Path folder) throws IOException {
    final String page = Files.readString(folder.resolve("README.md"));
    for (String name : List.of("Example", "Rows")) {
      final String example = Files.readString(folder.resolve("examples/" + name + ".java"));
      check(page.contains("```java\n" + example + "```"), "README.md differs from " + name);
    }
    equal(3, page.split("```java").length);
  }

  private static void packageVersion(Path folder) throws IOException {
    final int version = SparseKit.version();
    final String text = version / 10000 + "." + version / 100 % 100 + "." + version % 100;
    final String pom = Files.readString(folder.resolve("pom.xml"));
    check(pom.contains("<version>" + text + "</version>"), "pom.xml is not of version " + text);
  }

  // --- buffers

  private static void addressIsTheBuffers() {
    final FloatBuffer buffer = floats(1, 2, 3, 4);
    equal(Memory.address(buffer), Elements.of(buffer).address());
  }

  private static void positionAndLimit() {
    final FloatBuffer buffer = floats(9, 9, 3, 4, 9);
    final Elements elements = Elements.of(buffer.position(2).limit(4));
    buffer.clear();
    equal(2L, elements.length());
    equal(Memory.address(buffer) + 2L * Float.BYTES, elements.address());
    try (View view = new View(elements, 1, 2);
        Block block = new Block(view, 1, 2)) {
      equal(5f, block.norms(2).floats().get(0)); // sqrt(3^2 + 4^2)
    }
    thrown(
        SparseKitException.class,
        () -> {
          try (View view = new View(elements, 3)) {
            view.pruneUnstructured(0.5);
          }
        });
    equal(9f, buffer.get(4));
  }

  private static void writesInPlace() {
    final FloatBuffer buffer = floats(1, -4, 3, 2, 5, 6, -8, 7);
    try (View view = new View(buffer, 2, 4)) {
      equal(new Report(8, 4, 4, 0, 0), view.pruneNm(1, 2, 4));
    }
    equal(floats(0, -4, 3, 0, 0, 0, -8, 7), buffer);
  }

  private static void wrongBuffers() {
    final Class<?> refused = SparseKitException.InvalidArgument.class;
    final ByteBuffer foreign = ByteBuffer.allocateDirect(8).order(foreignOrder());
    equal(
        "buffer: got one on the heap, expected a direct one (ByteBuffer.allocateDirect)",
        thrown(refused, () -> Elements.of(FloatBuffer.allocate(4))).getMessage());
    thrown(refused, () -> Elements.of(ByteBuffer.allocate(4)));
    thrown(refused, () -> Elements.of(foreign.asFloatBuffer()));
    thrown(refused, () -> Elements.of(foreign.asDoubleBuffer()));
    thrown(refused, () -> Elements.of(foreign.asLongBuffer()));
    thrown(refused, () -> Elements.of(foreign.asShortBuffer(), Dtype.F16));
    final ByteBuffer bytes = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    final Class<?> dtype = SparseKitException.UnsupportedDtype.class;
    thrown(dtype, () -> Elements.of(bytes.asShortBuffer()));
    thrown(dtype, () -> Elements.of(bytes.asShortBuffer(), Dtype.F32));
    thrown(dtype, () -> Elements.of(bytes.asIntBuffer()));
    thrown(dtype, () -> Elements.of(null));
    thrown(dtype, () -> Elements.allocate(Dtype.F32, 1).doubles());
    thrown(SparseKitException.OutOfMemory.class, () -> Elements.allocate(Dtype.F32, 1L << 40));
    bytes.position(1);
    final Buffer crooked = bytes.slice().order(ByteOrder.nativeOrder()).asFloatBuffer();
    thrown(
        SparseKitException.class,
        () -> {
          try (View view = new View(crooked, 1)) {
            view.pruneUnstructured(1);
          }
        });
  }

  private static ByteOrder foreignOrder() {
    return ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
        ? ByteOrder.LITTLE_ENDIAN
        : ByteOrder.BIG_ENDIAN;
  }

  private static void readOnlyBuffers() {
    final FloatBuffer buffer = floats(3, 4);
    final FloatBuffer result = floats(0, 0);
    final Elements readOnly = Elements.of(buffer.asReadOnlyBuffer());
    final Elements mask = Elements.copyOf((byte) 1, (byte) 0);
    try (View view = new View(readOnly, 2);
        Block block = new Block(view)) {
      equal(floats(3, 4), block.norms(2).floats());
      final Class<?> refused = SparseKitException.InvalidArgument.class;
      thrown(refused, () -> view.pruneUnstructured(0.5));
      thrown(refused, () -> block.applyMask(mask));
      thrown(refused, () -> block.setData(Elements.of(result)));
      block.applyMask(mask, new Options().into(Elements.of(result)));
      thrown(refused, () -> block.applyMask(mask, new Options().into(readOnly)));
    }
    equal(floats(3, 4), buffer);
    equal(floats(0, 4), result);
  }

  // --- closing

  private static final int[][] ORDERS = {
    {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}
  };

  private static void closingInAnyOrder() throws Exception {
    final long before = SparseKit.liveHandles();
    for (int[] order : ORDERS) {
      final View view = new View(floats(3, 4, 6, 8), 2, 2);
      final Block block = new Block(view, 1, 2);
      final Scope scope = new Scope(block);
      final AutoCloseable[] all = {view, block, scope};
      equal(before + all.length, SparseKit.liveHandles());
      for (int which : order) {
        if (which == 2) equal(floats(10), scope.kthLargest(1).floats());
        if (which == 1) equal(floats(5, 10), block.norms(2).floats());
        if (which == 0) equal(4L, view.numel());
        all[which].close();
        all[which].close();
      }
      equal(before, SparseKit.liveHandles());
    }
  }

  private static void closedObjectsFail() {
    final View view = new View(floats(1, 2), 2);
    final Block block = new Block(view);
    final Scope scope = new Scope(block);
    final Schedule schedule = Schedule.linear(0.5, 10);
    final Masking masking = new Masking(schedule, new Masking.Modes());
    final Context context = new Context();
    view.close();
    block.close();
    scope.close();
    schedule.close();
    masking.close();
    context.close();
    final List<Body> uses =
        List.of(
            view::numel,
            view::format,
            () -> new Block(view),
            () -> view.pruneUnstructured(0.5),
            block::gridShape,
            block::name,
            () -> block.norms(2),
            () -> new Scope(block),
            () -> Block.couple(block, block),
            scope::numscope,
            () -> scope.keepTop(1),
            () -> Scope.couple(scope),
            schedule::rate,
            schedule::step,
            () -> new Masking(schedule, new Masking.Modes()),
            masking::step,
            masking::update,
            masking::save,
            () -> masking.add(new Layer("x", view, Elements.allocate(Dtype.U8, 2))),
            context::threads,
            context::trim);
    for (Body use : uses) thrown(SparseKitException.InvalidArgument.class, use);
    try (View open = new View(floats(1, 2), 2)) {
      thrown(
          SparseKitException.InvalidArgument.class,
          () -> open.pruneUnstructured(0.5, new Options().context(context)));
    }
  }

  // --- garbage collection

  private static void cleanerCloses() throws InterruptedException {
    final long before = SparseKit.liveHandles();
    for (int i = 0; i < 1000; ++i) {
      final Block block = new Block(new View(floats(1, 2, 3, 4), 2, 2), 1, 2);
      equal(2L, new Scope(Block.couple(block, block)).numblkPerScope());
      new Masking(Schedule.custom(t -> 0.5), new Masking.Modes());
      new Context(Context.Executor.SERIAL, 1, (done, total) -> false);
    }
    check(SparseKit.liveHandles() > before, "nothing was made");
    for (int i = 0; i < 600 && SparseKit.liveHandles() > before; ++i) {
      System.gc();
      Thread.sleep(50);
    }
    equal(before, SparseKit.liveHandles());
  }

  /** Collects, and lets the cleaner run. */
  private static void collect() {
    System.gc();
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** All that the call needs is out of the program's reach while it runs. */
  private static void callsKeepAlive() {
    for (int i = 0; i < 3; ++i) {
      final Elements sums =
          new Block(new View(floats(1, 2, 3, 4), 2, 2), 1, 2)
              .reduce(
                  elements -> {
                    collect();
                    return elements[0] + elements[1];
                  });
      equal(floats(3, 7), sums.floats());
      final AtomicInteger asked = new AtomicInteger();
      final Progress progress =
          (done, total) -> {
            asked.incrementAndGet();
            collect();
            return false;
          };
      final Elements norms =
          new Block(new View(Elements.allocate(Dtype.F32, LARGE), LARGE), 4)
              .norms(
                  2,
                  new Options().context(new Context(Context.Executor.SERIAL, 1, progress)));
      equal(LARGE / 4L, norms.length());
      check(asked.get() > 1, "progress was asked " + asked + " times");
    }
  }

  private static void viewsKeepBuffers() {
    final int numel = 1 << 20;
    final View[] views = new View[8];
    for (int i = 0; i < views.length; ++i) {
      final Elements ones = Elements.allocate(Dtype.F32, numel);
      for (int k = 0; k < numel; ++k) ones.floats().put(k, 1);
      views[i] = new View(ones, numel);
    }
    collect();
    for (int i = 0; i < 64; ++i) Elements.allocate(Dtype.U8, numel); // would reuse what was freed
    for (View view : views) {
      try (view;
          Block block = new Block(view, numel)) {
        equal(floats(numel), block.norms(1).floats());
      }
    }
  }

  private static void collectionWhileCallsRun() throws InterruptedException {
    final AtomicBoolean done = new AtomicBoolean();
    final Thread collector =
        new Thread(
            () -> {
              while (!done.get()) System.gc();
            });
    collector.start();
    try {
      for (int i = 0; i < 2000; ++i) {
        final FloatBuffer weights = floats(3, 4, 0, 1, 6, 8, 1, 0);
        final Block block = new Block(new View(weights, 4, 2), 1, 2);
        equal(floats(5, 1, 10, 1), block.norms(2).floats());
        equal(new Report(4, 2, 2, 0, 0), new Scope(block).keepTop(2));
        equal(floats(3, 4, 0, 0, 6, 8, 0, 0), weights);
      }
    } finally {
      done.set(true);
      collector.join();
    }
  }

  /** An object whose functions refer to the handles that they were given to. */
  private static final class Trainer {
    final Schedule schedule = Schedule.custom(t -> this.schedule().position());
    final Masking masking =
        new Masking(
            schedule,
            new Masking.Modes()
                .prune(Masking.Prune.CALLBACK)
                .pruneFunction((layer, rate, requested) -> this.masking().layerCount()));

    Schedule schedule() {
      return schedule;
    }

    Masking masking() {
      return masking;
    }
  }

  private static void cyclesAreCollected() throws InterruptedException {
    final List<WeakReference<Trainer>> trainers = new ArrayList<>();
    for (int i = 0; i < 10; ++i) {
      final Trainer trainer = new Trainer();
      if (i % 2 == 0) trainer.masking.close();
      trainers.add(new WeakReference<>(trainer));
    }
    for (int i = 0; i < 100 && trainers.stream().anyMatch(t -> t.get() != null); ++i) collect();
    equal(0L, trainers.stream().filter(t -> t.get() != null).count());
  }

  private static void maskingsKeepFunctions() {
    final Schedule schedule = Schedule.custom(t -> 0.5);
    final FloatBuffer weights = floats(1, 2, 3, 4);
    final Elements mask = Elements.allocate(Dtype.U8, 4);
    try (Masking masking = new Masking(schedule, new Masking.Modes());
        View view = new View(weights, 2, 2)) {
      masking.add(new Layer("layer", view, mask));
      schedule.close();
      masking.initialise(1, Masking.Init.ERDOS_RENYI);
      for (int i = 0; i < 5; ++i) collect();
      equal(2L, masking.update().removed());
    }
    equal(floats(0, 0, 3, 4), weights);
  }

  // --- exceptions

  private static void exceptionsComeOut() {
    final IllegalStateException own = new IllegalStateException("own");
    try (View view = new View(floats(1, 2), 2);
        Block block = new Block(view)) {
      final Throwable caught =
          thrown(
              IllegalStateException.class,
              () ->
                  block.reduce(
                      elements -> {
                        throw own;
                      }));
      check(caught == own, "it is another exception");
      final StackOverflowError error = new StackOverflowError();
      final Throwable caughtError =
          thrown(
              StackOverflowError.class,
              () ->
                  block.reduce(
                      elements -> {
                        throw error;
                      }));
      check(caughtError == error, "it is another error");
      equal(floats(1, 2), block.norms(1).floats());
    }
    try (Schedule schedule =
        Schedule.custom(
            t -> {
              throw own;
            })) {
      check(thrown(IllegalStateException.class, schedule::rate) == own, "another exception");
    }
    thrown(NullPointerException.class, () -> Schedule.custom(null).rate());
  }

  private static void callsInsideFunctions() {
    try (View view = new View(floats(1, 2, 3), 3);
        Block block = new Block(view);
        View inner = new View(floats(3, 4), 2);
        Block innerBlock = new Block(inner, 2);
        Context context = new Context()) {
      final Options other = new Options().context(context);
      thrown(SparseKitException.InvalidArgument.class, () -> block.reduce(e -> innerBlock.nnz()));
      final Elements result =
          block.reduce(
              elements -> {
                thrown(SparseKitException.ShapeMismatch.class, () -> new Block(inner, 7));
                return elements[0] * innerBlock.norms(2, other).floats().get(0);
              });
      equal(floats(5, 10, 15), result.floats());
    }
  }

  private static void closingInsideFunctions() {
    final long before = SparseKit.liveHandles();
    final View view = new View(floats(1, 2, 3), 3);
    final Block block = new Block(view);
    final Context context = new Context();
    final Elements result =
        block.reduce(
            elements -> {
              view.close();
              block.close();
              context.close();
              equal(before + 3, SparseKit.liveHandles()); // the call's own
              return 2 * elements[0];
            },
            new Options().context(context));
    equal(floats(2, 4, 6), result.floats());
    equal(before, SparseKit.liveHandles());
  }

  private static void progressCancels() {
    final AtomicInteger calls = new AtomicInteger();
    try (View view = new View(Elements.allocate(Dtype.F32, LARGE), LARGE);
        Block block = new Block(view, 4);
        Context context =
            new Context(
                Context.Executor.SERIAL,
                1,
                (done, total) -> {
                  check(0 <= done && done <= total, done + " of " + total);
                  return calls.incrementAndGet() == 2;
                })) {
      final Options options = new Options().context(context);
      thrown(SparseKitException.Cancelled.class, () -> block.norms(2, options));
      equal(2, calls.get());
      equal(Context.Executor.SERIAL, context.executor());
      equal(1, context.threads());
    }
  }

  private static void statuses() {
    final Elements six = Elements.allocate(Dtype.F32, 6);
    try (View view = new View(six, 2, 3);
        Block rows = new Block(view, 1, 3);
        Block columns = new Block(view, 2, 1)) {
      status(1, "SPK_INVALID_ARGUMENT", SparseKitException.InvalidArgument.class,
          () -> rows.norms(-1));
      status(2, "SPK_SHAPE_MISMATCH", SparseKitException.ShapeMismatch.class,
          () -> new Block(view, 2, 2));
      status(3, "SPK_COUPLING", SparseKitException.Coupling.class,
          () -> Block.couple(rows, columns));
      status(4, "SPK_OVERLAP", SparseKitException.Overlap.class,
          () -> new View(six, new long[] {2, 3}, new long[] {1, 1}, 0));
      status(5, "SPK_OUT_OF_BOUNDS", SparseKitException.OutOfBounds.class,
          () -> view.linearOffset(2, 0));
      status(6, "SPK_UNSUPPORTED_DTYPE", SparseKitException.UnsupportedDtype.class,
          () -> rows.applyMask(Elements.allocate(Dtype.F32, 2)));
      status(7, "SPK_OUT_OF_MEMORY", SparseKitException.OutOfMemory.class,
          () -> Elements.allocate(Dtype.F64, 1L << 31));
      status(9, "SPK_CANCELLED", SparseKitException.Cancelled.class,
          () -> {
            throw new SparseKitException.Cancelled("enough");
          });
    }
    for (Context.Executor executor : Context.Executor.values()) {
      if (executor.available()) {
        new Context(executor, 1).close();
      } else {
        status(10, "SPK_UNAVAILABLE", SparseKitException.Unavailable.class,
            () -> new Context(executor, 1));
      }
    }
  }

  private static void status(int status, String name, Class<?> type, Body body) {
    final SparseKitException caught = (SparseKitException) thrown(type, body);
    equal(status, caught.status());
    equal(name, caught.statusName());
  }

  private static void nullsAreNamed() {
    final List<Body> uses =
        List.of(
            () -> new Block((View) null, 1),
            () -> new Block(new View(floats(1), 1)).reduce(null),
            () -> Schedule.custom(null),
            () -> new Masking(null, new Masking.Modes()));
    final List<String> names = List.of("view", "function", "rate", "schedule");
    for (int i = 0; i < names.size(); ++i) {
      final Throwable thrown = thrown(NullPointerException.class, uses.get(i));
      check(thrown.getMessage().contains(names.get(i)), thrown.getMessage());
    }
  }

  private static void wrongLists() {
    try (View view = new View(floats(1, 2, 3, 4), 2, 2);
        Block rows = new Block(view, 1, 0);
        Scope scope = new Scope(rows)) {
      final List<Block> members = List.of(rows, new Block(new View(floats(1, 2), 2, 1), 1, 1));
      // As many numbers as there must be, but not as many for each member.
      final long[][] uneven = {{0}, {1, 0, 1}};
      thrown(
          SparseKitException.ShapeMismatch.class, () -> Block.couple(members, uneven, null));
      thrown(
          SparseKitException.ShapeMismatch.class,
          () -> Scope.couple(List.of(scope, scope), uneven, null));
      thrown(SparseKitException.ShapeMismatch.class, scope::blockToScope);
    }
  }

  private static void names() {
    final String name = "größe 重み \uD83D\uDE42";
    try (View view = new View(floats(1, 2), 2);
        Block block = new Block(view, new long[] {1}, name)) {
      equal(name, block.name());
    }
    try (Schedule schedule = Schedule.linear(0.5, 10);
        Masking masking = new Masking(schedule, new Masking.Modes());
        View view = new View(floats(1, 2), 2)) {
      masking.add(new Layer(name, view, Elements.allocate(Dtype.U8, 2)));
      equal(name, masking.layerName(0));
      equal(0, masking.find(name));
      final String state = new String(masking.save(), StandardCharsets.ISO_8859_1);
      final String utf8 =
          new String(name.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
      check(state.contains(utf8), "the saved name is not UTF-8");
    }
  }

  private static void unreadOptions() {
    try (View view = new View(floats(1, 2), 2);
        Block block = new Block(view)) {
      final Class<?> refused = SparseKitException.InvalidArgument.class;
      thrown(refused, () -> block.norms(2, new Options().eps(1)));
      thrown(refused, () -> block.min(new Options().values(Elements.copyOf(1f, 2f))));
      equal(floats(2, 1),
          block.norms(2, new Options().values(Elements.copyOf(2f, 1f))).floats());
    }
  }

  // --- use

  private static void manyThreads() throws InterruptedException {
    final AtomicReference<Throwable> failure = new AtomicReference<>();
    final List<Thread> threads = new ArrayList<>();
    try (View view = new View(floats(3, 4, 6, 8), 2, 2);
        Block block = new Block(view, 1, 2)) {
      for (int i = 0; i < 8; ++i) {
        final Thread thread =
            new Thread(
                () -> {
                  for (int k = 0; k < 500; ++k) {
                    equal(floats(5, 10), block.norms(2).floats());
                    thrown(SparseKitException.InvalidArgument.class, () -> block.norms(-1));
                    equal(floats(7, 14), block.reduce(e -> e[0] + e[1]).floats());
                  }
                });
        thread.setUncaughtExceptionHandler((t, e) -> failure.set(e));
        threads.add(thread);
        thread.start();
      }
      for (Thread thread : threads) thread.join();
    }
    if (failure.get() != null) throw new AssertionError(failure.get());
  }

  private static void exchangedArrays() {
    final FloatBuffer weights = floats(1, 2, 3, 4);
    final Elements mask = Elements.copyOf((byte) 1, (byte) 1, (byte) 0, (byte) 0);
    try (Schedule schedule = Schedule.linear(0.5, 100);
        Masking masking =
            new Masking(
                schedule, new Masking.Modes().grow(Masking.Grow.GRADIENT).denseGradients(true));
        View view = new View(weights, 2, 2)) {
      final Layer layer = new Layer("layer", view, mask).gradient(Elements.copyOf(0f, 0, 9, 1));
      masking.add(layer);
      masking.initialise(0, Masking.Init.LOTTERY_TICKET);
      equal(floats(1, 2, 0, 0), weights);
      layer.gradient(Elements.copyOf(0f, 0, 1, 9));
      final Masking.Update update = masking.update();
      equal(1L, update.removed());
      equal(1L, update.grown());
    }
    equal(Elements.copyOf((byte) 0, (byte) 1, (byte) 0, (byte) 1).bytes(), mask.bytes());
  }

  // --- shorthand

  private static FloatBuffer floats(float... values) {
    return Elements.copyOf(values).floats();
  }

  private static void check(boolean truth, String message) {
    if (!truth) throw new AssertionError(message);
  }

  private static void equal(Object expected, Object got) {
    check(Objects.equals(expected, got), "expected " + expected + ", got " + got);
  }

  private static void equal(FloatBuffer expected, FloatBuffer got) {
    check(expected.equals(got), "expected " + list(expected) + ", got " + list(got));
  }

  private static String list(FloatBuffer buffer) {
    final float[] values = new float[buffer.limit()];
    buffer.get(0, values);
    return Arrays.toString(values);
  }

  private static Throwable thrown(Class<?> type, Body body) {
    try {
      body.run();
    } catch (Throwable e) {
      if (type.isInstance(e)) return e;
      throw new AssertionError("expected " + type + ", got " + e, e);
    }
    throw new AssertionError("expected " + type + ", got no exception");
  }
}
