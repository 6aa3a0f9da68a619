// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using SparseKit;

/// <summary>The conformance driver: Conformance.exe CASES RESULTS.</summary>
public sealed class Conformance {
  /// <summary>What the driver's own functions throw.</summary>
  sealed class ThrownException : Exception {}

  const string Ok = "ok";

  readonly string cases;
  readonly string results;
  readonly Dictionary<string, Elements> arrays = new Dictionary<string, Elements>();
  readonly Dictionary<string, IDisposable> handles = new Dictionary<string, IDisposable>();
  readonly List<IDisposable> created = new List<IDisposable>();
  /// <summary>Masks of the maskings' layers, for the functions that change them.</summary>
  readonly Dictionary<string, List<byte[]>> masks = new Dictionary<string, List<byte[]>>();
  string current = "";
  int number;
  Step step;

  Conformance(string cases, string results) {
    this.cases = cases;
    this.results = results;
  }

  public static void Main(string[] arguments) {
    Directory.CreateDirectory(arguments[1]);
    new Conformance(arguments[0], arguments[1]).Run();
  }

  void Run() {
    using (var output = new StreamWriter(Path.Combine(results, "results.tsv"))) {
      foreach (var line in File.ReadLines(Path.Combine(cases, "cases.tsv"))) {
        step = new Step(line);
        if (step.Case != current) StartCase();
        ++number;
        output.Write(current + "\t" + number + "\t" + Result() + "\n");
      }
      StartCase();
    }
  }

  void StartCase() {
    foreach (var handle in created) handle.Dispose();
    created.Clear();
    handles.Clear();
    arrays.Clear();
    masks.Clear();
    current = step.Case;
    number = 0;
  }

  string Result() {
    try {
      return Execute();
    } catch (SparseKitException e) {
      return "error " + e.StatusName + " " + e.Message.Replace('\t', ' ').Replace('\n', ' ');
    } catch (ThrownException) {
      return "error callback";
    }
  }

  string Execute() {
    var name = step.Arguments > 0 ? step.At(0) : null;
    switch (step.Command) {
      case "array":
        arrays[name] = Filled(ParseDtype(step.At(1)),
                              File.ReadAllBytes(Path.Combine(cases, "data", step.At(2))));
        return Ok;
      case "zeros":
        arrays[name] = Elements.Allocate(ParseDtype(step.At(1)), step.IntegerAt(2));
        return Ok;
      case "readonly": return Text("unsupported");
      case "save":
        File.WriteAllBytes(Path.Combine(results, current + "." + name + ".bin"),
                           Content(Array(name)));
        return Ok;
      case "address": return Ints(IsOwnAddress(Array(name)) ? 1 : 0);
      case "close":
        handles[name].Dispose();
        return Ok;
      case "live": return Ints(Library.LiveHandles);
      case "context": return Keep(name, NewContext());
      case "view": return Keep(name, NewView());
      case "block":
        return Keep(name, new Block(Handle<View>(step.At(1)), Shape(), step.Text("name")));
      case "couple":
        return Keep(name, Block.Couple(Members<Block>(), step.Lists("orders"), step.Text("name")));
      case "scope":
        return Keep(name, new Scope(Handle<Block>(step.At(1)), Shape(), step.Text("name")));
      case "couple_scopes":
        return Keep(name, Scope.Couple(Members<Scope>(), step.Lists("orders"), step.Text("name")));
      case "schedule": return Keep(name, NewSchedule());
      case "masking": return Keep(name, NewMasking());
    }
    var handle = handles[name];
    if (handle is View view) return Of(view);
    if (handle is Block block) return Of(block);
    if (handle is Scope scope) return Of(scope);
    if (handle is Schedule schedule) return Of(schedule);
    return Of((Masking)handle);
  }

  // --- arrays

  static Elements Filled(Dtype dtype, byte[] content) {
    var elements = Elements.Allocate(dtype, content.Length / dtype.Bytes());
    Buffer.BlockCopy(content, 0, elements.Array, 0, content.Length);
    return elements;
  }

  static byte[] Content(Elements elements) {
    var content = new byte[elements.Length * elements.Dtype.Bytes()];
    Buffer.BlockCopy(elements.Array, 0, content, 0, content.Length);
    return content;
  }

  static bool IsOwnAddress(Elements elements) {
    var pin = GCHandle.Alloc(elements.Array, GCHandleType.Pinned);
    try {
      return elements.Address() == (long)pin.AddrOfPinnedObject();
    } finally {
      pin.Free();
    }
  }

  // --- what makes handles

  Context NewContext() {
    var executor = step.Mode<Executor>("executor", "default");
    var threads = (int)step.Integer("threads");
    var progress = step.Text("progress");
    if (progress == null) return new Context(executor, threads);
    return new Context(executor, threads, (done, total) => {
      if (progress == "throw") throw new ThrownException();
      return progress == "cancel";
    });
  }

  View NewView() {
    var array = Array(step.At(2));
    if (step.Arguments > 3) return View.Parse(array, step.At(3));
    return new View(array, Shape(), step.Integers("stride"), step.Integer("offset"));
  }

  Schedule NewSchedule() {
    switch (step.At(1)) {
      case "cosine":
        return Schedule.Cosine(step.Number("prune_rate"), step.Integer("t_max"),
                               step.Number("eta_min"), step.Integer("last_epoch", -1));
      case "linear":
        return Schedule.Linear(step.Number("prune_rate"), step.Integer("t_max"));
      case "magnitude":
        return Schedule.Magnitude(step.Number("initial"), step.Number("final"),
                                  step.Integer("t_max"), step.Integer("t_start"),
                                  step.Integer("interval", 1));
      default:
        var throwing = step.Text("fn") == "throw";
        return Schedule.Custom(t => {
          if (throwing) throw new ThrownException();
          return 1.0 / (2 + t);
        });
    }
  }

  Masking NewMasking() {
    var throwing = step.Text("fn") == "throw";
    var layerMasks = new List<byte[]>();
    masks[step.At(0)] = layerMasks;
    var modes = new MaskingModes {
      Seed = step.Integer("seed"),
      Prune = step.Mode<Prune>("prune", "magnitude"),
      Redistribute = step.Mode<Redistribute>("redistribute", "none"),
      Grow = step.Mode<Grow>("grow", "none"),
      DenseGradients = step.Flag("dense_gradients")
    };
    Func<double[], double> criterion = numbers => throwing ? Fail() : Sum(numbers);
    if (modes.Prune == Prune.Callback) {
      modes.PruneFunction = (id, rate, count) => Flip(throwing, layerMasks[id], 1, count);
    }
    if (modes.Prune == Prune.StructCriterion) modes.PruneCriterion = criterion;
    if (modes.Redistribute == Redistribute.Callback) {
      modes.Statistic = id => throwing ? Fail() : 1 + id;
    }
    if (modes.Grow == Grow.Callback) {
      modes.GrowFunction = (id, count) => Flip(throwing, layerMasks[id], 0, count);
    }
    if (modes.Grow == Grow.StructCriterion) modes.GrowCriterion = criterion;
    return new Masking(Handle<Schedule>(step.At(1)), modes);
  }

  /// <summary>Changes the first bytes of a mask that have a value to the other value.</summary>
  static void Flip(bool throwing, byte[] mask, byte value, long count) {
    if (throwing) Fail();
    for (int i = 0; i < mask.Length && count > 0; ++i) {
      if (mask[i] != value) continue;
      mask[i] = (byte)(1 - value);
      --count;
    }
  }

  static double Fail() {
    throw new ThrownException();
  }

  static double Sum(double[] numbers) {
    double sum = 0;
    foreach (var number in numbers) sum += number;
    return sum;
  }

  // --- what handles do

  string Of(View view) {
    switch (step.Command) {
      case "format": return Text(view.Format());
      case "dtype": return Text(Name(view.Dtype));
      case "shape": return Ints(view.Shape);
      case "stride": return Ints(view.Stride);
      case "offset": return Ints(view.Offset);
      case "numel": return Ints(view.Numel);
      case "cosize": return Ints(view.Cosize);
      case "linear_offset": return Ints(view.LinearOffset(step.Integers("index")));
      case "to_param_rc":
        return Ints(view.ToParamRc(step.Integers("index"), step.Integer("cols")));
      case "view_block_view": return Temporary(view.BlockView(step.Flag("reorder"), Shape()));
      case "view_merged": return Give(view.Merged(Shape(), Context()));
      case "view_broadcast": return Give(view.Broadcast(Shape(), One("values"), Context()));
      case "view_apply_mask":
        view.ApplyMask(Shape(), One("mask"), One("into"), Context());
        return Ok;
      case "view_apply_keep_mask":
        view.ApplyKeepMask(Shape(), One("mask"), One("into"), Context());
        return Ok;
      case "view_apply_multiplier":
        view.ApplyMultiplier(Shape(), One("multiplier"), One("into"), Context());
        return Ok;
      case "prune_nm":
        return Counts(view.PruneNm((int)step.Integer("axis"), step.Integer("n"), step.Integer("m"),
                                   One("into"), Context()));
      case "prune_unstructured":
        return Counts(view.PruneUnstructured(step.Number("sparsity"), One("into"), Context()));
      case "soft_threshold_blocks":
        return Counts(view.SoftThresholdBlocks(Shape(), step.Number("threshold"), One("into"),
                                               Context()));
      default: throw Unknown();
    }
  }

  string Of(Block block) {
    switch (step.Command) {
      case "grid_shape": return Ints(block.GridShape);
      case "numblk": return Ints(block.Numblk);
      case "numel": return Ints(block.Numel);
      case "numel_per_block": return Ints(block.NumelPerBlock);
      case "score_dtype": return Text(Name(block.ScoreDtype));
      case "leaf_count": return Ints(block.LeafCount);
      case "name": return Text(block.Name);
      case "leaf": return Ints(block.LeafShape(step.IntegerAt(1)));
      case "norms": return Give(block.Norms(step.Number("p"), All("values"), Context()));
      case "min": return Give(block.Min(Context()));
      case "max": return Give(block.Max(Context()));
      case "nnz":
        var eps = step.Number("eps", 1e-8);
        if (step.Has("out")) Give(block.NnzPerBlock(eps, Context()));
        return Ints(block.Nnz(eps, Context()));
      case "reduce": return Give(block.Reduce(Reduction(), Context()));
      case "apply_mask":
        block.ApplyMask(One("mask"), All("into"), Context());
        return Ok;
      case "apply_keep_mask":
        block.ApplyKeepMask(One("mask"), All("into"), Context());
        return Ok;
      case "apply_multiplier":
        block.ApplyMultiplier(One("multiplier"), All("into"), Context());
        return Ok;
      case "hard_threshold":
        return Counts(block.HardThreshold(One("thresholds"), All("values"), All("into"),
                                          Context()));
      case "soft_threshold":
        return Counts(block.SoftThreshold(
            One("thresholds"), All("conditioners"), step.Number("eps", -1),
            step.Number("atol", -1), (int)step.Integer("max_iter"), step.Flag("scale"),
            All("into"), Context()));
      case "set_data":
        block.SetData(All("source"), Context());
        return Ok;
      case "block_masks": return Give(block.Masks(One("mask"), Context()));
      case "block_view": return Temporary(block.BlockView(step.Flag("reorder")));
      case "broadcast_fake": return Temporary(block.BroadcastFake(Grid(block)));
      case "expand_block_tensor": return Temporary(block.ExpandBlockTensor(Grid(block)));
      case "merged": return Give(block.Merged(Context()));
      case "broadcast": return Give(block.Broadcast(One("values"), Context()));
      default: throw Unknown();
    }
  }

  Func<double[], double> Reduction() {
    switch (step.Text("fn")) {
      case "sum": return Sum;
      case "throw": return numbers => Fail();
      default:
        return numbers => { throw new CancelledException("the driver's function stops"); };
    }
  }

  static Elements Grid(Block block) {
    return Elements.Allocate(block.ScoreDtype, block.Numblk);
  }

  string Of(Scope scope) {
    switch (step.Command) {
      case "grid_shape": return Ints(scope.GridShape);
      case "score_dtype": return Text(Name(scope.ScoreDtype));
      case "leaf_count": return Ints(scope.LeafCount);
      case "name": return Text(scope.Name);
      case "numscope": return Ints(scope.Numscope);
      case "numblk_per_scope": return Ints(scope.NumblkPerScope);
      case "numel_per_scope": return Ints(scope.NumelPerScope);
      case "member_count": return Ints(scope.MemberCount);
      case "sparsity_to_nnz": return Ints(scope.SparsityToNnz(Step.Parse(step.At(1))));
      case "scope_norms": return Give(scope.BlockNorms(step.Number("p"), Context()));
      case "block_to_scope": return Give(scope.BlockToScope(All("values"), Context()));
      case "scope_to_block": return Give(scope.ScopeToBlock(One("values"), Context()));
      case "block_to_scope_view":
        var blocks = Elements.Allocate(scope.ScoreDtype, scope.Numscope * scope.NumblkPerScope);
        return Temporary(scope.BlockToScopeView(blocks, step.Flag("reorder")));
      case "kth_largest":
        return Give(scope.KthLargest(step.Integers("k"), All("values"), One("scores"), Context()));
      case "kth_mid":
        return Give(scope.KthMid(step.Integers("k"), step.Number("k_weight", 1), All("values"),
                                 One("scores"), Context()));
      case "keep_top":
        return Counts(scope.KeepTop(step.Integers("counts"), All("values"), One("scores"),
                                    step.Mode<Ties>("ties", "by_position"), All("into"),
                                    Context()));
      case "masks":
        var selection = scope.Masks(step.Integers("counts"), All("values"), One("scores"),
                                    One("block_mask"), step.Mode<Ties>("ties", "by_position"),
                                    Context());
        Give(selection.Masks);
        return Counts(selection.Report);
      case "hard_threshold":
        return Counts(scope.HardThreshold(One("thresholds"), All("values"), All("into"),
                                          Context()));
      case "soft_threshold":
        return Counts(scope.SoftThreshold(
            One("thresholds"), All("conditioners"), step.Number("eps", -1),
            step.Number("atol", -1), (int)step.Integer("max_iter"), step.Flag("scale"),
            All("into"), Context()));
      default: throw Unknown();
    }
  }

  string Of(Schedule schedule) {
    switch (step.Command) {
      case "schedule_step":
        if (step.Has("t")) schedule.StepTo(step.Integer("t"));
        else schedule.Step();
        return Ok;
      case "position": return Ints(schedule.Position);
      case "rate":
        return Numbers(step.Has("current") ? schedule.RateFrom(step.Number("current"))
                                           : schedule.Rate());
      case "cumulative_sparsity": return Numbers(schedule.CumulativeSparsity(step.Integer("t")));
      default: throw Unknown();
    }
  }

  string Of(Masking masking) {
    switch (step.Command) {
      case "add": return Add(masking);
      case "remove":
        masking.Remove(step.At(1));
        return Ok;
      case "remove_matching": return Ints(masking.RemoveMatching(step.At(1)));
      case "has_layer": return Ints(masking.HasLayer(step.IntegerAt(1)) ? 1 : 0);
      case "layer_name": return Text(masking.LayerName(step.IntegerAt(1)));
      case "find": return Ints(masking.Find(step.At(1)));
      case "layer_count": return Ints(masking.LayerCount);
      case "initialise":
        masking.Initialise(step.Number("density"), step.Mode<Init>("mode", "random"),
                           step.Mode<Draw>("draw", "exact"), step.Integers("counts"), Context());
        return Ok;
      case "densities":
        return Numbers(masking.Densities(step.Number("density"),
                                         step.Mode<Init>("mode", "random")));
      case "apply":
        masking.Apply(step.Mode<ApplyTo>("what", null), Context());
        return Ok;
      case "step":
        masking.Step(Context());
        return Ok;
      case "update": return Of(masking.Update(Context()));
      case "stats":
        return Of(step.Has("layer") ? masking.Stats((int)step.Integer("layer")) : masking.Stats());
      case "baseline": return Ints(masking.Baseline);
      case "adjusted_growth": return Numbers(masking.AdjustedGrowth);
      case "state_save":
        arrays[step.At(1)] = masking.Save();
        return Ok;
      case "state_restore":
        masking.Restore(Array(step.At(1)).Bytes);
        return Ok;
      default: throw Unknown();
    }
  }

  string Add(Masking masking) {
    var layer = new Layer(step.At(1), Handle<View>(step.At(2)), One("mask")) {
      Gradient = One("gradient"),
      Momentum = One("momentum"),
      AdamM1 = One("adam_m1"),
      AdamM2 = One("adam_m2")
    };
    var id = masking.Add(layer);
    masks[step.At(0)].Add(layer.Mask.Bytes);
    return Ints(id);
  }

  // --- arguments

  static Dtype ParseDtype(string name) {
    return (Dtype)Enum.Parse(typeof(Dtype), name, true);
  }

  long[] Shape() {
    return step.Integers("shape");
  }

  T Handle<T>(string name) {
    return (T)handles[name];
  }

  T[] Members<T>() {
    return step.Names("members").Select(Handle<T>).ToArray();
  }

  Context Context() {
    return step.Has("context") ? Handle<Context>(step.Text("context")) : null;
  }

  Elements Array(string name) {
    return arrays[name];
  }

  Elements One(string key) {
    return step.Has(key) ? Array(step.Text(key)) : null;
  }

  Elements[] All(string key) {
    return step.Has(key) ? step.Names(key).Select(Array).ToArray() : null;
  }

  Exception Unknown() {
    return new InvalidOperationException(current + ": unknown command " + step.Command);
  }

  // --- results

  string Keep(string name, IDisposable handle) {
    handles[name] = handle;
    created.Add(handle);
    return Ok;
  }

  string Give(params Elements[] given) {
    var names = step.Names("out");
    for (int i = 0; i < given.Length; ++i) arrays[names[i]] = given[i];
    return Ok;
  }

  static string Temporary(View view) {
    using (view) return Text(view.Format());
  }

  static string Name(Dtype dtype) {
    return dtype.ToString().ToLowerInvariant();
  }

  static string Text(string text) {
    return "text " + text;
  }

  static string Ints(params long[] values) {
    return "ints " + string.Join(",", values);
  }

  static string Numbers(params double[] values) {
    return "numbers " + string.Join(",", values.Select(Format));
  }

  static string Format(double value) {
    if (double.IsNaN(value)) return "nan";
    if (double.IsInfinity(value)) return value > 0 ? "inf" : "-inf";
    return value.ToString("G17", CultureInfo.InvariantCulture);
  }

  static string Counts(Report report) {
    return Ints(report.Total, report.Requested, report.Achieved, report.Ties, report.NotConverged);
  }

  static string Of(UpdateReport report) {
    return Numbers(report.Rate, report.RequestedRemoved, report.Removed, report.RequestedGrown,
                   report.Grown, report.Nonzeros, report.Residual);
  }

  static string Of(LayerStats stats) {
    return Numbers(stats.Numel, stats.Nonzeros, stats.Zeros, stats.Density, stats.RequestedDensity,
                   stats.Statistic, stats.Rate, stats.RequestedRemoved, stats.Removed,
                   stats.RequestedGrown, stats.Grown);
  }
}
