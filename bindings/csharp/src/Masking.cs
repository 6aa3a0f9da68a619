// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;

namespace SparseKit {

/// <summary>What an update did, all layers together; counts are of elements.</summary>
public sealed class UpdateReport {
  internal UpdateReport(double[] numbers) {
    Rate = numbers[0];
    RequestedRemoved = (long)numbers[1];
    Removed = (long)numbers[2];
    RequestedGrown = (long)numbers[3];
    Grown = (long)numbers[4];
    Nonzeros = (long)numbers[5];
    Residual = (long)numbers[6];
  }

  /// <summary>The schedule's.</summary>
  public double Rate { get; }

  /// <summary>How many were to go.</summary>
  public long RequestedRemoved { get; }

  /// <summary>How many went.</summary>
  public long Removed { get; }

  /// <summary>How many were to grow.</summary>
  public long RequestedGrown { get; }

  /// <summary>How many grew.</summary>
  public long Grown { get; }

  /// <summary>How many there are now.</summary>
  public long Nonzeros { get; }

  /// <summary>Baseline - nonzeros.</summary>
  public long Residual { get; }
}

/// <summary>The state of one layer or of all, when last counted; rates and requests are the last
/// update's.</summary>
public sealed class LayerStats {
  internal LayerStats(double[] numbers) {
    Numel = (long)numbers[0];
    Nonzeros = (long)numbers[1];
    Zeros = (long)numbers[2];
    Density = numbers[3];
    RequestedDensity = numbers[4];
    Statistic = numbers[5];
    Rate = numbers[6];
    RequestedRemoved = (long)numbers[7];
    Removed = (long)numbers[8];
    RequestedGrown = (long)numbers[9];
    Grown = (long)numbers[10];
  }

  /// <summary>Elements.</summary>
  public long Numel { get; }

  /// <summary>Ones of the mask.</summary>
  public long Nonzeros { get; }

  /// <summary>Zeros of the mask.</summary>
  public long Zeros { get; }

  /// <summary>Nonzeros / numel.</summary>
  public double Density { get; }

  /// <summary>At initialisation.</summary>
  public double RequestedDensity { get; }

  /// <summary>Normalised over layers.</summary>
  public double Statistic { get; }

  /// <summary>The share that was to go.</summary>
  public double Rate { get; }

  /// <summary>How many were to go.</summary>
  public long RequestedRemoved { get; }

  /// <summary>How many went.</summary>
  public long Removed { get; }

  /// <summary>How many were to grow.</summary>
  public long RequestedGrown { get; }

  /// <summary>How many grew.</summary>
  public long Grown { get; }
}

/// <summary>Dynamic sparse training: keeps named layers sparse while somebody else trains them.
/// Step comes after every optimiser step; Update now and then, and prunes the weakest weights and
/// grows as many elsewhere.</summary>
/// <remarks>It changes as it is used: one call at a time. A layer's id is its number in the order
/// of adding.</remarks>
public sealed class Masking : IDisposable {
  const int All = -1;

  readonly MaskingHandle handle;
  readonly List<Layer> layers = new List<Layer>();  // one per id; null for those that were removed

  /// <summary>A masking without layers. The schedule is kept, and moved on in every step.</summary>
  public Masking(Schedule schedule, MaskingModes modes = null) {
    modes = modes ?? new MaskingModes();
    var prune = modes.PruneFunction;
    var grow = modes.GrowFunction;
    var statistic = modes.Statistic;
    var pruneFunction = Callback(prune, n => { prune((int)n[0], n[1], (long)n[2]); return 0; });
    var pruneCriterion = Criterion(modes.PruneCriterion);
    var statisticFunction = Callback(statistic, n => statistic((int)n[0]));
    var growFunction = Callback(grow, n => { grow((int)n[0], (long)n[1]); return 0; });
    var growCriterion = Criterion(modes.GrowCriterion);
    handle = Flat.masking_create(schedule.Given("schedule").Handle, modes.Seed, (int)modes.Prune,
                                 (int)modes.Redistribute, (int)modes.Grow,
                                 modes.DenseGradients ? 1 : 0, pruneFunction, pruneCriterion,
                                 statisticFunction, growFunction, growCriterion);
    handle.Borrowed = new object[] {schedule.Handle, pruneFunction, pruneCriterion,
                                    statisticFunction, growFunction, growCriterion};
  }

  static Callback Callback(object given, Functions.Function function) {
    return given == null ? null : new Callback(function);
  }

  static Callback Criterion(Func<double[], double> criterion) {
    return Callback(criterion, n => criterion(n));
  }

  /// <summary>Adds a layer, before initialisation; its id.</summary>
  public int Add(Layer layer) {
    var weights = layer.Given("layer").Weights.Given("weights");
    var id = Flat.masking_add(handle, layer.Name, weights.Handle);
    layers.Add(layer);
    return id;
  }

  /// <summary>Removes the layer of this name. Its mask is left alone.</summary>
  public void Remove(string name) {
    Flat.masking_remove(handle, name);
    ForgetRemoved();
  }

  /// <summary>Removes all layers whose names contain a part; how many. None is an error.</summary>
  public int RemoveMatching(string part) {
    var removed = Flat.masking_remove_matching(handle, part);
    ForgetRemoved();
    return removed;
  }

  void ForgetRemoved() {
    for (int id = 0; id < layers.Count; ++id) {
      if (!HasLayer(id)) layers[id] = null;
    }
  }

  /// <summary>How many layers were ever added.</summary>
  public int LayerCount {
    get { return Flat.masking_layer_count(handle); }
  }

  /// <summary>The id of the layer of this name, -1 if there is none.</summary>
  public int Find(string name) {
    return Flat.masking_find(handle, name);
  }

  /// <summary>The name of a layer.</summary>
  public string LayerName(int id) {
    return Flat.masking_layer_name(handle, id);
  }

  /// <summary>Whether the layer still belongs to the masking.</summary>
  public bool HasLayer(int id) {
    return Flat.masking_has_layer(handle, id) != 0;
  }

  /// <summary>Draws the masks and applies them to the weights.</summary>
  /// <param name="density">in [0, 1]</param>
  /// <param name="mode">how layers share it</param>
  /// <param name="draw">how places are drawn</param>
  /// <param name="counts">for LotteryTicketDist the ones of each id's layer</param>
  /// <param name="context">how the call runs</param>
  public void Initialise(double density, Init mode, Draw draw = Draw.Exact, long[] counts = null,
                         Context context = null) {
    Flat.masking_initialise(Context.Handle(context), handle, Weights(), Masks(), density, (int)mode,
                            (int)draw, counts);
  }

  /// <summary>The densities that initialisation would give, one per id.</summary>
  public double[] Densities(double density, Init mode) {
    var result = new double[LayerCount];
    Flat.masking_densities(handle, density, (int)mode, Elements.List(result));
    return result;
  }

  /// <summary>Zeroes what the masks forbid.</summary>
  public void Apply(ApplyTo what, Context context = null) {
    Flat.masking_apply(Context.Handle(context), handle, Weights(), Masks(), Each(l => l.Gradient),
                       Each(l => l.Momentum), Each(l => l.AdamM1), Each(l => l.AdamM2), (int)what);
  }

  /// <summary>After an optimiser step: applies the masks, moves the schedule on.</summary>
  public void Step(Context context = null) {
    Flat.masking_step(Context.Handle(context), handle, Weights(), Masks(), Each(l => l.Gradient),
                      Each(l => l.Momentum), Each(l => l.AdamM1), Each(l => l.AdamM2));
  }

  /// <summary>Prunes and grows.</summary>
  public UpdateReport Update(Context context = null) {
    return new UpdateReport(Flat.masking_update(
        Context.Handle(context), handle, Weights(), Masks(), Each(l => l.Gradient),
        Each(l => l.Momentum), Each(l => l.AdamM1), Each(l => l.AdamM2)));
  }

  /// <summary>One layer; or all of them: sums, densities and rate are means.</summary>
  public LayerStats Stats(int layer = All) {
    return new LayerStats(Flat.masking_stats(handle, layer));
  }

  /// <summary>The nonzeros that growth aims for.</summary>
  public long Baseline {
    get { return Flat.masking_baseline(handle); }
  }

  /// <summary>What the next update adds to the places that it hands out.</summary>
  public double AdjustedGrowth {
    get { return Flat.masking_adjusted_growth(handle); }
  }

  /// <summary>The whole state but masks and weights; the same bytes on every machine.</summary>
  public byte[] Save() {
    var state = new byte[Flat.masking_save_size(handle)];
    Flat.masking_save(handle, Elements.List(state));
    return state;
  }

  /// <summary>Takes up a saved state of a masking with the same modes, kind of schedule and layers.
  /// </summary>
  public void Restore(byte[] state) {
    Flat.masking_restore(handle, Elements.List(state));
    ForgetRemoved();
  }

  /// <summary>Ends the masking.</summary>
  public void Dispose() {
    handle.Dispose();
  }

  Elements[] Weights() {
    return Each(layer => layer.Weights.Elements);
  }

  Elements[] Masks() {
    return Each(layer => layer.Mask);
  }

  /// <summary>One array per id, null where there is none.</summary>
  Elements[] Each(Func<Layer, Elements> array) {
    return layers.Select(layer => layer == null ? null : array(layer)).ToArray();
  }
}

}
