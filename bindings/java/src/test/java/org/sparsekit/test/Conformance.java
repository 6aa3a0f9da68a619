// SPDX-License-Identifier: Apache-2.0
package org.sparsekit.test;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.sparsekit.Block;
import org.sparsekit.Context;
import org.sparsekit.Dtype;
import org.sparsekit.Elements;
import org.sparsekit.Layer;
import org.sparsekit.Masking;
import org.sparsekit.Options;
import org.sparsekit.Report;
import org.sparsekit.Schedule;
import org.sparsekit.Scope;
import org.sparsekit.SparseKit;
import org.sparsekit.SparseKitException;
import org.sparsekit.Ties;
import org.sparsekit.View;

/** The conformance driver: {@code Conformance CASES RESULTS}. */
public final class Conformance {
  /** What the driver's own functions throw. */
  private static final class Thrown extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  private static final String OK = "ok";

  private final Path cases;
  private final Path results;
  private String current = "";
  private int number;
  private final Map<String, Elements> arrays = new HashMap<>();
  /** In the order of creation. */
  private final Map<String, AutoCloseable> handles = new LinkedHashMap<>();
  /** Masks of the maskings' layers, for the functions that change them. */
  private final Map<String, List<Elements>> masks = new HashMap<>();
  private Step step;

  private Conformance(Path cases, Path results) {
    this.cases = cases;
    this.results = results;
  }

  public static void main(String[] arguments) throws Exception {
    final Path results = Path.of(arguments[1]);
    Files.createDirectories(results);
    new Conformance(Path.of(arguments[0]), results).run();
  }

  private void run() throws Exception {
    try (PrintWriter out =
        new PrintWriter(Files.newBufferedWriter(results.resolve("results.tsv")))) {
      for (String line : Files.readAllLines(cases.resolve("cases.tsv"))) {
        step = new Step(line);
        if (!step.testCase.equals(current)) startCase();
        ++number;
        out.println(current + "\t" + number + "\t" + result());
      }
      startCase();
    }
  }

  private void startCase() throws Exception {
    for (AutoCloseable handle : handles.values()) handle.close();
    handles.clear();
    arrays.clear();
    masks.clear();
    current = step.testCase;
    number = 0;
  }

  private String result() throws Exception {
    try {
      return execute();
    } catch (SparseKitException e) {
      return "error " + e.statusName() + " " + e.getMessage().replaceAll("[\t\n]", " ");
    } catch (Thrown e) {
      return "error callback";
    }
  }

  private String execute() throws Exception {
    final String name = step.arguments() > 0 ? step.at(0) : null;
    return switch (step.command) {
      case "array" -> {
        final byte[] content = Files.readAllBytes(cases.resolve("data").resolve(step.at(2)));
        arrays.put(name, Memory.of(dtype(step.at(1)), content));
        yield OK;
      }
      case "zeros" -> {
        arrays.put(name, Elements.allocate(dtype(step.at(1)), Long.parseLong(step.at(2))));
        yield OK;
      }
      case "readonly" -> {
        arrays.put(name, Memory.readOnly(array(name)));
        yield OK;
      }
      case "save" -> save(name);
      case "address" -> {
        final Elements array = array(name);
        yield ints(array.address() == Memory.address(Memory.buffer(array)) ? 1 : 0);
      }
      case "close" -> {
        handles.get(name).close();
        yield OK;
      }
      case "live" -> ints(SparseKit.liveHandles());
      case "context" -> keep(name, context());
      case "view" -> keep(name, view());
      case "block" -> keep(name, new Block(view(step.at(1)), shape(), step.text("name")));
      case "couple" ->
          keep(name, Block.couple(members(Block.class), step.lists("orders"), step.text("name")));
      case "scope" -> keep(name, new Scope(block(step.at(1)), shape(), step.text("name")));
      case "couple_scopes" ->
          keep(name, Scope.couple(members(Scope.class), step.lists("orders"), step.text("name")));
      case "schedule" -> keep(name, schedule());
      case "masking" -> keep(name, masking());
      default -> {
        final Object handle = handles.get(name);
        if (handle instanceof View view) yield ofView(view);
        if (handle instanceof Block block) yield ofBlock(block);
        if (handle instanceof Scope scope) yield ofScope(scope);
        if (handle instanceof Schedule schedule) yield ofSchedule(schedule);
        yield ofMasking((Masking) handle);
      }
    };
  }

  private String save(String name) throws IOException {
    final Path file = results.resolve(current + "." + name + ".bin");
    Files.write(file, Memory.content(array(name)));
    return OK;
  }

  // --- what makes handles

  private Context context() {
    final Context.Executor executor =
        Context.Executor.valueOf(step.text("executor", "default").toUpperCase(Locale.ROOT));
    final int threads = (int) step.integer("threads", 0);
    final String progress = step.text("progress");
    if (progress == null) return new Context(executor, threads);
    return new Context(
        executor,
        threads,
        (done, total) -> {
          if (progress.equals("throw")) throw new Thrown();
          return progress.equals("cancel");
        });
  }

  private View view() {
    final Elements array = array(step.at(2));
    if (step.arguments() > 3) return View.parse(array, step.at(3));
    return new View(array, shape(), step.integers("stride"), step.integer("offset", 0));
  }

  private Schedule schedule() {
    final long tMax = step.integer("t_max", 0);
    return switch (step.at(1)) {
      case "cosine" ->
          Schedule.cosine(
              step.number("prune_rate", 0),
              tMax,
              step.number("eta_min", 0),
              step.integer("last_epoch", -1));
      case "linear" -> Schedule.linear(step.number("prune_rate", 0), tMax);
      case "magnitude" ->
          Schedule.magnitude(
              step.number("initial", 0),
              step.number("final", 0),
              tMax,
              step.integer("t_start", 0),
              step.integer("interval", 1));
      default -> {
        final boolean throwing = step.text("fn").equals("throw");
        yield Schedule.custom(
            t -> {
              if (throwing) throw new Thrown();
              return 1.0 / (2 + t);
            });
      }
    };
  }

  private Masking masking() {
    final Masking.Prune prune = mode(Masking.Prune.class, "prune", "magnitude");
    final Masking.Redistribute redistribute =
        mode(Masking.Redistribute.class, "redistribute", "none");
    final Masking.Grow grow = mode(Masking.Grow.class, "grow", "none");
    final Masking.Modes modes =
        new Masking.Modes()
            .seed(step.integer("seed", 0))
            .prune(prune)
            .redistribute(redistribute)
            .grow(grow)
            .denseGradients(step.flag("dense_gradients"));
    final boolean throwing = "throw".equals(step.text("fn"));
    final List<Elements> layerMasks = new ArrayList<>();
    masks.put(step.at(0), layerMasks);
    final ToDoubleFunction<double[]> criterion = throwing ? this::fail : Conformance::sum;
    if (prune == Masking.Prune.CALLBACK) {
      modes.pruneFunction((id, rate, n) -> flip(throwing, layerMasks.get(id), 1, n));
    }
    if (prune == Masking.Prune.STRUCT_CRITERION) modes.pruneCriterion(criterion);
    if (redistribute == Masking.Redistribute.CALLBACK) {
      modes.statistic(id -> throwing ? fail(null) : 1 + id);
    }
    if (grow == Masking.Grow.CALLBACK) {
      modes.growFunction((id, n) -> flip(throwing, layerMasks.get(id), 0, n));
    }
    if (grow == Masking.Grow.STRUCT_CRITERION) modes.growCriterion(criterion);
    return new Masking((Schedule) handles.get(step.at(1)), modes);
  }

  /** Changes the first bytes of a mask that have a value to the other value. */
  private void flip(boolean throwing, Elements mask, int value, long count) {
    if (throwing) throw new Thrown();
    long left = count;
    for (int i = 0; i < mask.length() && left > 0; ++i) {
      if (mask.bytes().get(i) != value) continue;
      mask.bytes().put(i, (byte) (1 - value));
      --left;
    }
  }

  private double fail(double[] numbers) {
    throw new Thrown();
  }

  private static double sum(double[] numbers) {
    double sum = 0;
    for (double number : numbers) sum += number;
    return sum;
  }

  // --- what handles do

  private String ofView(View view) {
    return switch (step.command) {
      case "format" -> text(view.format());
      case "dtype" -> text(name(view.dtype()));
      case "shape" -> ints(view.shape());
      case "stride" -> ints(view.stride());
      case "offset" -> ints(view.offset());
      case "numel" -> ints(view.numel());
      case "cosize" -> ints(view.cosize());
      case "linear_offset" -> ints(view.linearOffset(step.integers("index")));
      case "to_param_rc" ->
          ints(view.toParamRc(step.integers("index"), step.integer("cols", 0)));
      case "view_block_view" -> temporary(view.blockView(step.flag("reorder"), shape()));
      case "view_merged" -> give(view.merged(shape(), options()));
      case "view_broadcast" -> give(view.broadcast(shape(), one("values"), options()));
      case "view_apply_mask" -> {
        view.applyMask(shape(), one("mask"), options("into"));
        yield OK;
      }
      case "view_apply_keep_mask" -> {
        view.applyKeepMask(shape(), one("mask"), options("into"));
        yield OK;
      }
      case "view_apply_multiplier" -> {
        view.applyMultiplier(shape(), one("multiplier"), options("into"));
        yield OK;
      }
      case "prune_nm" ->
          report(
              view.pruneNm(
                  (int) step.integer("axis", 0),
                  step.integer("n", 0),
                  step.integer("m", 0),
                  options("into")));
      case "prune_unstructured" ->
          report(view.pruneUnstructured(step.number("sparsity", 0), options("into")));
      case "soft_threshold_blocks" ->
          report(
              view.softThresholdBlocks(shape(), step.number("threshold", 0), options("into")));
      default -> throw unknown();
    };
  }

  private String ofBlock(Block block) {
    return switch (step.command) {
      case "grid_shape" -> ints(block.gridShape());
      case "numblk" -> ints(block.numblk());
      case "numel" -> ints(block.numel());
      case "numel_per_block" -> ints(block.numelPerBlock());
      case "score_dtype" -> text(name(block.scoreDtype()));
      case "leaf_count" -> ints(block.leafCount());
      case "name" -> text(block.name());
      case "leaf" -> ints(block.leafShape(Integer.parseInt(step.at(1))));
      case "norms" -> give(block.norms(step.number("p", 0), options("values")));
      case "min" -> give(block.min(options()));
      case "max" -> give(block.max(options()));
      case "nnz" -> nnz(block);
      case "reduce" -> give(block.reduce(reduction(), options()));
      case "apply_mask" -> {
        block.applyMask(one("mask"), options("into"));
        yield OK;
      }
      case "apply_keep_mask" -> {
        block.applyKeepMask(one("mask"), options("into"));
        yield OK;
      }
      case "apply_multiplier" -> {
        block.applyMultiplier(one("multiplier"), options("into"));
        yield OK;
      }
      case "hard_threshold" ->
          report(block.hardThreshold(one("thresholds"), options("values", "into")));
      case "soft_threshold" -> report(block.softThreshold(one("thresholds"), softOptions()));
      case "set_data" -> {
        block.setData(list("source"), options());
        yield OK;
      }
      case "block_masks" -> give(block.masks(one("mask"), options()));
      case "block_view" -> temporary(block.blockView(step.flag("reorder")));
      case "broadcast_fake" -> temporary(block.broadcastFake(grid(block)));
      case "expand_block_tensor" -> temporary(block.expandBlockTensor(grid(block)));
      case "merged" -> give(block.merged(options()));
      case "broadcast" -> give(block.broadcast(one("values"), options()));
      default -> throw unknown();
    };
  }

  private String nnz(Block block) {
    final double eps = step.number("eps", 1e-8);
    if (step.has("out")) give(block.nnzPerBlock(eps, options()));
    return ints(block.nnz(eps, options()));
  }

  private ToDoubleFunction<double[]> reduction() {
    return switch (step.text("fn")) {
      case "sum" -> Conformance::sum;
      case "throw" -> this::fail;
      default ->
          elements -> {
            throw new SparseKitException.Cancelled("the driver's function stops");
          };
    };
  }

  private static Elements grid(Block block) {
    return Elements.allocate(block.scoreDtype(), block.numblk());
  }

  private String ofScope(Scope scope) {
    return switch (step.command) {
      case "grid_shape" -> ints(scope.gridShape());
      case "score_dtype" -> text(name(scope.scoreDtype()));
      case "leaf_count" -> ints(scope.leafCount());
      case "name" -> text(scope.name());
      case "numscope" -> ints(scope.numscope());
      case "numblk_per_scope" -> ints(scope.numblkPerScope());
      case "numel_per_scope" -> ints(scope.numelPerScope());
      case "member_count" -> ints(scope.memberCount());
      case "sparsity_to_nnz" -> ints(scope.sparsityToNnz(Step.number(step.at(1))));
      case "scope_norms" -> give(scope.blockNorms(step.number("p", 0), options()));
      case "block_to_scope" -> give(scope.blockToScope(list("values"), options()));
      case "scope_to_block" -> give(scope.scopeToBlock(one("values"), options()));
      case "block_to_scope_view" -> {
        final long blocks = scope.numscope() * scope.numblkPerScope();
        final Elements values = Elements.allocate(scope.scoreDtype(), blocks);
        yield temporary(scope.blockToScopeView(values, step.flag("reorder")));
      }
      case "kth_largest" ->
          give(scope.kthLargest(step.integers("k"), options("values", "scores")));
      case "kth_mid" ->
          give(
              scope.kthMid(
                  step.integers("k"), step.number("k_weight", 1), options("values", "scores")));
      case "keep_top" ->
          report(
              scope.keepTop(
                  step.integers("counts"), options("values", "scores", "ties", "into")));
      case "masks" -> {
        final Scope.Selection selection =
            scope.masks(
                step.integers("counts"), options("values", "scores", "block_mask", "ties"));
        give(selection.masks());
        yield report(selection.report());
      }
      case "hard_threshold" ->
          report(scope.hardThreshold(one("thresholds"), options("values", "into")));
      case "soft_threshold" -> report(scope.softThreshold(one("thresholds"), softOptions()));
      default -> throw unknown();
    };
  }

  private String ofSchedule(Schedule schedule) {
    return switch (step.command) {
      case "schedule_step" -> {
        if (step.has("t")) schedule.stepTo(step.integer("t", 0));
        else schedule.step();
        yield OK;
      }
      case "position" -> ints(schedule.position());
      case "rate" ->
          numbers(
              step.has("current")
                  ? schedule.rateFrom(step.number("current", 0))
                  : schedule.rate());
      case "cumulative_sparsity" -> numbers(schedule.cumulativeSparsity(step.integer("t", 0)));
      default -> throw unknown();
    };
  }

  private String ofMasking(Masking masking) {
    final Context context = (Context) handles.get(step.text("context"));
    return switch (step.command) {
      case "add" -> add(masking);
      case "remove" -> {
        masking.remove(step.at(1));
        yield OK;
      }
      case "remove_matching" -> ints(masking.removeMatching(step.at(1)));
      case "has_layer" -> ints(masking.hasLayer(Integer.parseInt(step.at(1))) ? 1 : 0);
      case "layer_name" -> text(masking.layerName(Integer.parseInt(step.at(1))));
      case "find" -> ints(masking.find(step.at(1)));
      case "layer_count" -> ints(masking.layerCount());
      case "initialise" -> {
        masking.initialise(
            step.number("density", 0),
            mode(Masking.Init.class, "mode", "random"),
            mode(Masking.Draw.class, "draw", "exact"),
            step.integers("counts"),
            context);
        yield OK;
      }
      case "densities" ->
          numbers(
              masking.densities(
                  step.number("density", 0), mode(Masking.Init.class, "mode", "random")));
      case "apply" -> {
        masking.apply(
            context,
            Arrays.stream(step.names("what"))
                .map(what -> Masking.What.valueOf(what.toUpperCase(Locale.ROOT)))
                .toArray(Masking.What[]::new));
        yield OK;
      }
      case "step" -> {
        masking.step(context);
        yield OK;
      }
      case "update" -> update(masking.update(context));
      case "stats" -> stats(step.has("layer")
          ? masking.stats((int) step.integer("layer", 0))
          : masking.stats());
      case "baseline" -> ints(masking.baseline());
      case "adjusted_growth" -> numbers(masking.adjustedGrowth());
      case "state_save" -> {
        arrays.put(step.at(1), Elements.copyOf(masking.save()));
        yield OK;
      }
      case "state_restore" -> {
        masking.restore(Memory.content(array(step.at(1))));
        yield OK;
      }
      default -> throw unknown();
    };
  }

  private String add(Masking masking) {
    final Elements mask = one("mask");
    final Layer layer =
        new Layer(step.at(1), view(step.at(2)), mask)
            .gradient(one("gradient"))
            .momentum(one("momentum"))
            .adam(one("adam_m1"), one("adam_m2"));
    final int id = masking.add(layer);
    masks.get(step.at(0)).add(mask);
    return ints(id);
  }

  // --- arguments

  private static Dtype dtype(String name) {
    return Dtype.valueOf(name.toUpperCase(Locale.ROOT));
  }

  private <E extends Enum<E>> E mode(Class<E> type, String key, String otherwise) {
    return Enum.valueOf(type, step.text(key, otherwise).toUpperCase(Locale.ROOT));
  }

  private long[] shape() {
    return step.integers("shape");
  }

  private View view(String name) {
    return (View) handles.get(name);
  }

  private Block block(String name) {
    return (Block) handles.get(name);
  }

  private <T> List<T> members(Class<T> type) {
    return Arrays.stream(step.names("members"))
        .map(name -> type.cast(handles.get(name)))
        .toList();
  }

  private Elements array(String name) {
    final Elements array = arrays.get(name);
    if (array == null) throw new IllegalStateException(current + ": no array " + name);
    return array;
  }

  private Elements one(String key) {
    return step.has(key) ? array(step.text(key)) : null;
  }

  private Elements[] list(String key) {
    return Arrays.stream(step.names(key)).map(this::array).toArray(Elements[]::new);
  }

  private Options options(String... keys) {
    final Options options = new Options().context((Context) handles.get(step.text("context")));
    for (String key : keys) {
      if (!step.has(key)) continue;
      switch (key) {
        case "into" -> options.into(list(key));
        case "values" -> options.values(list(key));
        case "scores" -> options.scores(one(key));
        case "block_mask" -> options.blockMask(one(key));
        case "ties" -> options.ties(mode(Ties.class, key, null));
        default -> throw unknown();
      }
    }
    return options;
  }

  private Options softOptions() {
    final Options options = options("into");
    if (step.has("conditioners")) options.conditioners(list("conditioners"));
    if (step.has("eps")) options.eps(step.number("eps", 0));
    if (step.has("atol")) options.atol(step.number("atol", 0));
    if (step.has("max_iter")) options.maxIter((int) step.integer("max_iter", 0));
    return options.scale(step.flag("scale"));
  }

  private IllegalStateException unknown() {
    return new IllegalStateException(current + ": unknown command " + step.command);
  }

  // --- results

  private String keep(String name, AutoCloseable handle) {
    handles.put(name, handle);
    return OK;
  }

  private String give(Elements... given) {
    final String[] names = step.names("out");
    for (int i = 0; i < given.length; ++i) arrays.put(names[i], given[i]);
    return OK;
  }

  private static String temporary(View view) {
    try (view) {
      return text(view.format());
    }
  }

  private static String name(Dtype dtype) {
    return dtype.name().toLowerCase(Locale.ROOT);
  }

  private static String text(String text) {
    return "text " + text;
  }

  private static String ints(long... values) {
    return "ints " + join(Arrays.stream(values).mapToObj(Long::toString).toList());
  }

  private static String numbers(double... values) {
    return "numbers "
        + join(
            Arrays.stream(values)
                .mapToObj(Double::toString)
                .map(n -> n.replace("Infinity", "inf").replace("NaN", "nan"))
                .toList());
  }

  private static String join(List<String> words) {
    return String.join(",", words);
  }

  private static String report(Report report) {
    return ints(
        report.total(),
        report.requested(),
        report.achieved(),
        report.ties(),
        report.notConverged());
  }

  private static String update(Masking.Update update) {
    return numbers(
        update.rate(),
        update.requestedRemoved(),
        update.removed(),
        update.requestedGrown(),
        update.grown(),
        update.nonzeros(),
        update.residual());
  }

  private static String stats(Masking.Stats stats) {
    return numbers(
        stats.numel(),
        stats.nonzeros(),
        stats.zeros(),
        stats.density(),
        stats.requestedDensity(),
        stats.statistic(),
        stats.rate(),
        stats.requestedRemoved(),
        stats.removed(),
        stats.requestedGrown(),
        stats.grown());
  }
}
