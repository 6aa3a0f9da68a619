// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntToDoubleFunction;
import java.util.function.ToDoubleFunction;

/**
 * Dynamic sparse training: keeps named layers sparse while somebody else trains them. {@link #step}
 * comes after every optimiser step; {@link #update} now and then, and prunes the weakest weights
 * and grows as many elsewhere.
 *
 * <p>It changes as it is used: one call at a time. A layer's id is its number in the order of
 * adding.
 */
public final class Masking implements AutoCloseable {
  /** Which weights an update removes. */
  public enum Prune {
    /** The smallest |w| of each layer. */
    MAGNITUDE(FlatConstants.PRUNE_MAGNITUDE),
    /** The smallest |w| of all layers together. */
    GLOBAL_MAGNITUDE(FlatConstants.PRUNE_GLOBAL_MAGNITUDE),
    /** The kernels with the smallest |mean w|. */
    STRUCT_MAGNITUDE_MEAN(FlatConstants.PRUNE_STRUCT_MAGNITUDE_MEAN),
    /** The kernels with the smallest |max w|. */
    STRUCT_MAGNITUDE_MAX(FlatConstants.PRUNE_STRUCT_MAGNITUDE_MAX),
    /** The kernels with the smallest |min w|. */
    STRUCT_MAGNITUDE_MIN(FlatConstants.PRUNE_STRUCT_MAGNITUDE_MIN),
    /** The kernels with the smallest magnitude of {@link Modes#pruneCriterion}. */
    STRUCT_CRITERION(FlatConstants.PRUNE_STRUCT_CRITERION),
    /** What {@link Modes#pruneFunction} clears in the mask. */
    CALLBACK(FlatConstants.PRUNE_CALLBACK);

    final int code;

    Prune(int code) {
      this.code = code;
    }
  }

  /** By which statistic the places that became free are shared among layers. */
  public enum Redistribute {
    /** Each layer regrows what it lost. */
    NONE(FlatConstants.REDISTRIBUTE_NONE),
    /** The same; the statistic, nonzeros, is told. */
    NONZERO(FlatConstants.REDISTRIBUTE_NONZERO),
    /** Mean |momentum| over active weights. */
    MOMENTUM(FlatConstants.REDISTRIBUTE_MOMENTUM),
    /** Mean |gradient| over active weights. */
    GRADIENT(FlatConstants.REDISTRIBUTE_GRADIENT),
    /** What {@link Modes#statistic} says. */
    CALLBACK(FlatConstants.REDISTRIBUTE_CALLBACK);

    final int code;

    Redistribute(int code) {
      this.code = code;
    }
  }

  /** Which of the inactive places grow; new weights start at 0. */
  public enum Grow {
    /** None is asked for. */
    NONE(FlatConstants.GROW_NONE),
    /** Uniformly drawn. */
    RANDOM(FlatConstants.GROW_RANDOM),
    /** The largest |gradient|. */
    GRADIENT(FlatConstants.GROW_GRADIENT),
    /** The largest |momentum|; needs dense gradients. */
    MOMENTUM(FlatConstants.GROW_MOMENTUM),
    /** The kernels with the largest |mean gradient|. */
    STRUCT_GRADIENT_MEAN(FlatConstants.GROW_STRUCT_GRADIENT_MEAN),
    /** The kernels with the largest |max gradient|. */
    STRUCT_GRADIENT_MAX(FlatConstants.GROW_STRUCT_GRADIENT_MAX),
    /** The kernels with the largest |min gradient|. */
    STRUCT_GRADIENT_MIN(FlatConstants.GROW_STRUCT_GRADIENT_MIN),
    /** The kernels with the largest magnitude of {@link Modes#growCriterion}. */
    STRUCT_CRITERION(FlatConstants.GROW_STRUCT_CRITERION),
    /** What {@link Modes#growFunction} sets in the mask. */
    CALLBACK(FlatConstants.GROW_CALLBACK);

    final int code;

    Grow(int code) {
      this.code = code;
    }
  }

  /** How the first masks come about. */
  public enum Init {
    /** The density in every layer but the first, which leaves, dense. */
    RANDOM(FlatConstants.INIT_RANDOM),
    /** Densities ~ (out + in) / (out in). */
    ERDOS_RENYI(FlatConstants.INIT_ERDOS_RENYI),
    /** Densities ~ sum of dims / product of dims. */
    ERDOS_RENYI_KERNEL(FlatConstants.INIT_ERDOS_RENYI_KERNEL),
    /** Whole kernels, otherwise as RANDOM. */
    STRUCT_RANDOM(FlatConstants.INIT_STRUCT_RANDOM),
    /** Whole kernels, otherwise as ERDOS_RENYI. */
    STRUCT_ERDOS_RENYI(FlatConstants.INIT_STRUCT_ERDOS_RENYI),
    /** Whole kernels, otherwise as ERDOS_RENYI_KERNEL. */
    STRUCT_ERDOS_RENYI_KERNEL(FlatConstants.INIT_STRUCT_ERDOS_RENYI_KERNEL),
    /** A mask of the weights that are not 0. */
    RESUME(FlatConstants.INIT_RESUME),
    /** Masks as you set them. */
    LOTTERY_TICKET(FlatConstants.INIT_LOTTERY_TICKET),
    /** Given counts, positions drawn. */
    LOTTERY_TICKET_DIST(FlatConstants.INIT_LOTTERY_TICKET_DIST);

    final int code;

    Init(int code) {
      this.code = code;
    }
  }

  /** How places are drawn at initialisation. */
  public enum Draw {
    /** Exactly round(density * elements). */
    EXACT(FlatConstants.DRAW_EXACT),
    /** Each place with this probability. */
    BERNOULLI(FlatConstants.DRAW_BERNOULLI);

    final int code;

    Draw(int code) {
      this.code = code;
    }
  }

  /** Arrays to which masks are applied. */
  public enum What {
    /** The weights. */
    WEIGHTS(FlatConstants.APPLY_WEIGHTS),
    /** Momentum and moments, where given. */
    MOMENTUM(FlatConstants.APPLY_MOMENTUM),
    /** Gradients, where given. */
    GRADIENTS(FlatConstants.APPLY_GRADIENTS);

    final int code;

    What(int code) {
      this.code = code;
    }
  }

  /** Clears bytes of a layer's mask. */
  @FunctionalInterface
  public interface PruneFunction {
    /** Clears {@code requested} of them, or as many as it likes. */
    void prune(int layer, double rate, long requested);
  }

  /** Sets bytes of a layer's mask. */
  @FunctionalInterface
  public interface GrowFunction {
    /** Sets {@code requested} of them, or as many as it likes; may set the weights there. */
    void grow(int layer, long requested);
  }

  /**
   * The modes of a masking; by default it prunes by magnitude and grows nothing. What a function
   * throws ends the call and comes out of it.
   */
  public static final class Modes {
    private long seed;
    private Prune prune = Prune.MAGNITUDE;
    private Redistribute redistribute = Redistribute.NONE;
    private Grow grow = Grow.NONE;
    private boolean denseGradients;
    private Callback pruneFunction;
    private Callback pruneCriterion;
    private Callback statistic;
    private Callback growFunction;
    private Callback growCriterion;

    /** The seed of what is drawn. */
    public Modes seed(long seed) {
      this.seed = seed;
      return this;
    }

    /** Which weights an update removes. */
    public Modes prune(Prune prune) {
      this.prune = prune;
      return this;
    }

    /** How free places are shared among layers. */
    public Modes redistribute(Redistribute redistribute) {
      this.redistribute = redistribute;
      return this;
    }

    /** Which places grow. */
    public Modes grow(Grow grow) {
      this.grow = grow;
      return this;
    }

    /** Whether momentum, moments and gradients are never masked. */
    public Modes denseGradients(boolean dense) {
      denseGradients = dense;
      return this;
    }

    /** For {@link Prune#CALLBACK}. */
    public Modes pruneFunction(PruneFunction function) {
      pruneFunction =
          new Callback(
              n -> {
                function.prune((int) n[0], n[1], (long) n[2]);
                return 0;
              });
      return this;
    }

    /** For {@link Prune#STRUCT_CRITERION}: a number for the weights of a kernel. */
    public Modes pruneCriterion(ToDoubleFunction<double[]> criterion) {
      pruneCriterion = new Callback(criterion::applyAsDouble);
      return this;
    }

    /** For {@link Redistribute#CALLBACK}: a layer's statistic, finite and not negative. */
    public Modes statistic(IntToDoubleFunction function) {
      statistic = new Callback(n -> function.applyAsDouble((int) n[0]));
      return this;
    }

    /** For {@link Grow#CALLBACK}. */
    public Modes growFunction(GrowFunction function) {
      growFunction =
          new Callback(
              n -> {
                function.grow((int) n[0], (long) n[1]);
                return 0;
              });
      return this;
    }

    /** For {@link Grow#STRUCT_CRITERION}: a number for the gradients of a kernel. */
    public Modes growCriterion(ToDoubleFunction<double[]> criterion) {
      growCriterion = new Callback(criterion::applyAsDouble);
      return this;
    }
  }

  /**
   * What an update did, all layers together; counts are of elements.
   *
   * @param rate the schedule's
   * @param residual baseline - nonzeros
   */
  public record Update(
      double rate,
      long requestedRemoved,
      long removed,
      long requestedGrown,
      long grown,
      long nonzeros,
      long residual) {
    private static Update of(double[] n) {
      return new Update(
          n[0], (long) n[1], (long) n[2], (long) n[3], (long) n[4], (long) n[5], (long) n[6]);
    }
  }

  /**
   * The state of one layer or of all, when last counted; rates and requests are the last update's.
   *
   * @param density nonzeros / numel
   * @param requestedDensity at initialisation
   * @param statistic normalised over layers
   */
  public record Stats(
      long numel,
      long nonzeros,
      long zeros,
      double density,
      double requestedDensity,
      double statistic,
      double rate,
      long requestedRemoved,
      long removed,
      long requestedGrown,
      long grown) {
    private static Stats of(double[] n) {
      return new Stats(
          (long) n[0], (long) n[1], (long) n[2], n[3], n[4], n[5], n[6], (long) n[7], (long) n[8],
          (long) n[9], (long) n[10]);
    }
  }

  private static final int ALL = -1;

  private final MaskingHandle handle;
  /** One per id; null for layers that were removed. */
  private final List<Layer> layers = new ArrayList<>();

  /** A masking without layers. The schedule is kept, and moved on in every step. */
  public Masking(Schedule schedule, Modes modes) {
    handle =
        Flat.masking_create(
            schedule.handle,
            modes.seed,
            modes.prune.code,
            modes.redistribute.code,
            modes.grow.code,
            modes.denseGradients ? 1 : 0,
            modes.pruneFunction,
            modes.pruneCriterion,
            modes.statistic,
            modes.growFunction,
            modes.growCriterion);
    handle.borrowed =
        new Object[] {
          schedule.handle,
          modes.pruneFunction,
          modes.pruneCriterion,
          modes.statistic,
          modes.growFunction,
          modes.growCriterion
        };
  }

  /** Adds a layer, before initialisation; its id. */
  public int add(Layer layer) {
    final int id = Flat.masking_add(handle, layer.name, layer.view.handle);
    layers.add(layer);
    return id;
  }

  /** Removes the layer of this name. Its mask is left alone. */
  public void remove(String name) {
    Flat.masking_remove(handle, name);
    forgetRemoved();
  }

  /** Removes all layers whose names contain {@code part}; how many. None is an error. */
  public int removeMatching(String part) {
    final int removed = Flat.masking_remove_matching(handle, part);
    forgetRemoved();
    return removed;
  }

  private void forgetRemoved() {
    for (int id = 0; id < layers.size(); ++id) {
      if (!hasLayer(id)) layers.set(id, null);
    }
  }

  /** How many layers were ever added. */
  public int layerCount() {
    return Flat.masking_layer_count(handle);
  }

  /** The id of the layer of this name, -1 if there is none. */
  public int find(String name) {
    return Flat.masking_find(handle, name);
  }

  /** The name of a layer. */
  public String layerName(int id) {
    return Flat.masking_layer_name(handle, id);
  }

  /** Whether the layer still belongs to the masking. */
  public boolean hasLayer(int id) {
    return Flat.masking_has_layer(handle, id) != 0;
  }

  /** Draws the masks and applies them to the weights. */
  public void initialise(double density, Init mode) {
    initialise(density, mode, Draw.EXACT, null, null);
  }

  /**
   * The same.
   *
   * @param counts for {@link Init#LOTTERY_TICKET_DIST} the ones of each id's layer, else null
   * @param context how the call runs, or null
   */
  public void initialise(double density, Init mode, Draw draw, long[] counts, Context context) {
    Flat.masking_initialise(
        Context.handle(context), handle, weights(), masks(), density, mode.code, draw.code, counts);
  }

  /** The densities that initialisation would give, one per id. */
  public double[] densities(double density, Init mode) {
    final Elements out = Elements.allocate(Dtype.F64, layerCount());
    Flat.masking_densities(handle, density, mode.code, View.list(out));
    final double[] densities = new double[(int) out.length()];
    out.doubles().get(densities);
    return densities;
  }

  /** Zeroes what the masks forbid. */
  public void apply(What... what) {
    apply(null, what);
  }

  /** The same in a context. */
  public void apply(Context context, What... what) {
    int codes = 0;
    for (What one : what) codes |= one.code;
    Flat.masking_apply(
        Context.handle(context),
        handle,
        weights(),
        masks(),
        each(l -> l.gradient),
        each(l -> l.momentum),
        each(l -> l.adamM1),
        each(l -> l.adamM2),
        codes);
  }

  /** After an optimiser step: applies the masks, moves the schedule on. */
  public void step() {
    step(null);
  }

  /** The same in a context. */
  public void step(Context context) {
    Flat.masking_step(
        Context.handle(context),
        handle,
        weights(),
        masks(),
        each(l -> l.gradient),
        each(l -> l.momentum),
        each(l -> l.adamM1),
        each(l -> l.adamM2));
  }

  /** Prunes and grows. */
  public Update update() {
    return update(null);
  }

  /** The same in a context. */
  public Update update(Context context) {
    return Update.of(
        Flat.masking_update(
            Context.handle(context),
            handle,
            weights(),
            masks(),
            each(l -> l.gradient),
            each(l -> l.momentum),
            each(l -> l.adamM1),
            each(l -> l.adamM2)));
  }

  /** All layers: sums; densities and rate are means. */
  public Stats stats() {
    return stats(ALL);
  }

  /** One layer. */
  public Stats stats(int layer) {
    return Stats.of(Flat.masking_stats(handle, layer));
  }

  /** The nonzeros that growth aims for. */
  public long baseline() {
    return Flat.masking_baseline(handle);
  }

  /** What the next update adds to the places that it hands out. */
  public double adjustedGrowth() {
    return Flat.masking_adjusted_growth(handle);
  }

  /** The whole state but masks and weights; the same bytes on every machine. */
  public byte[] save() {
    final Elements out = Elements.allocate(Dtype.U8, Flat.masking_save_size(handle));
    Flat.masking_save(handle, View.list(out));
    final byte[] state = new byte[(int) out.length()];
    out.bytes().get(state);
    return state;
  }

  /** Takes up a saved state of a masking with the same modes, kind of schedule and layers. */
  public void restore(byte[] state) {
    Flat.masking_restore(handle, View.list(Elements.copyOf(state)));
    forgetRemoved();
  }

  /** Ends the masking. */
  @Override
  public void close() {
    handle.close();
  }

  private Elements[] weights() {
    return each(l -> l.view.elements);
  }

  private Elements[] masks() {
    return each(l -> l.mask);
  }

  /** One array per id, null where there is none. */
  private Elements[] each(Function<Layer, Elements> array) {
    return layers.stream().map(l -> l == null ? null : array.apply(l)).toArray(Elements[]::new);
  }
}
