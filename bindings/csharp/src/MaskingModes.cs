// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>Which weights an update removes.</summary>
public enum Prune {
  /// <summary>The smallest |w| of each layer.</summary>
  Magnitude = Flat.PRUNE_MAGNITUDE,
  /// <summary>The smallest |w| of all layers together.</summary>
  GlobalMagnitude = Flat.PRUNE_GLOBAL_MAGNITUDE,
  /// <summary>The kernels with the smallest |mean w|.</summary>
  StructMagnitudeMean = Flat.PRUNE_STRUCT_MAGNITUDE_MEAN,
  /// <summary>The kernels with the smallest |max w|.</summary>
  StructMagnitudeMax = Flat.PRUNE_STRUCT_MAGNITUDE_MAX,
  /// <summary>The kernels with the smallest |min w|.</summary>
  StructMagnitudeMin = Flat.PRUNE_STRUCT_MAGNITUDE_MIN,
  /// <summary>The kernels with the smallest magnitude of PruneCriterion.</summary>
  StructCriterion = Flat.PRUNE_STRUCT_CRITERION,
  /// <summary>What PruneFunction clears in the mask.</summary>
  Callback = Flat.PRUNE_CALLBACK
}

/// <summary>By which statistic the places that became free are shared among layers.</summary>
public enum Redistribute {
  /// <summary>Each layer regrows what it lost.</summary>
  None = Flat.REDISTRIBUTE_NONE,
  /// <summary>The same; the statistic, nonzeros, is told.</summary>
  Nonzero = Flat.REDISTRIBUTE_NONZERO,
  /// <summary>Mean |momentum| over active weights.</summary>
  Momentum = Flat.REDISTRIBUTE_MOMENTUM,
  /// <summary>Mean |gradient| over active weights.</summary>
  Gradient = Flat.REDISTRIBUTE_GRADIENT,
  /// <summary>What Statistic says.</summary>
  Callback = Flat.REDISTRIBUTE_CALLBACK
}

/// <summary>Which of the inactive places grow; new weights start at 0.</summary>
public enum Grow {
  /// <summary>None is asked for.</summary>
  None = Flat.GROW_NONE,
  /// <summary>Uniformly drawn.</summary>
  Random = Flat.GROW_RANDOM,
  /// <summary>The largest |gradient|.</summary>
  Gradient = Flat.GROW_GRADIENT,
  /// <summary>The largest |momentum|; needs dense gradients.</summary>
  Momentum = Flat.GROW_MOMENTUM,
  /// <summary>The kernels with the largest |mean gradient|.</summary>
  StructGradientMean = Flat.GROW_STRUCT_GRADIENT_MEAN,
  /// <summary>The kernels with the largest |max gradient|.</summary>
  StructGradientMax = Flat.GROW_STRUCT_GRADIENT_MAX,
  /// <summary>The kernels with the largest |min gradient|.</summary>
  StructGradientMin = Flat.GROW_STRUCT_GRADIENT_MIN,
  /// <summary>The kernels with the largest magnitude of GrowCriterion.</summary>
  StructCriterion = Flat.GROW_STRUCT_CRITERION,
  /// <summary>What GrowFunction sets in the mask.</summary>
  Callback = Flat.GROW_CALLBACK
}

/// <summary>How the first masks come about.</summary>
public enum Init {
  /// <summary>The density in every layer but the first, which leaves, dense.</summary>
  Random = Flat.INIT_RANDOM,
  /// <summary>Densities ~ (out + in) / (out in).</summary>
  ErdosRenyi = Flat.INIT_ERDOS_RENYI,
  /// <summary>Densities ~ sum of dims / product of dims.</summary>
  ErdosRenyiKernel = Flat.INIT_ERDOS_RENYI_KERNEL,
  /// <summary>Whole kernels, otherwise as Random.</summary>
  StructRandom = Flat.INIT_STRUCT_RANDOM,
  /// <summary>Whole kernels, otherwise as ErdosRenyi.</summary>
  StructErdosRenyi = Flat.INIT_STRUCT_ERDOS_RENYI,
  /// <summary>Whole kernels, otherwise as ErdosRenyiKernel.</summary>
  StructErdosRenyiKernel = Flat.INIT_STRUCT_ERDOS_RENYI_KERNEL,
  /// <summary>A mask of the weights that are not 0.</summary>
  Resume = Flat.INIT_RESUME,
  /// <summary>Masks as you set them.</summary>
  LotteryTicket = Flat.INIT_LOTTERY_TICKET,
  /// <summary>Given counts, positions drawn.</summary>
  LotteryTicketDist = Flat.INIT_LOTTERY_TICKET_DIST
}

/// <summary>How places are drawn at initialisation.</summary>
public enum Draw {
  /// <summary>Exactly round(density * elements).</summary>
  Exact = Flat.DRAW_EXACT,
  /// <summary>Each place with this probability.</summary>
  Bernoulli = Flat.DRAW_BERNOULLI
}

/// <summary>Arrays to which masks are applied.</summary>
[Flags]
public enum ApplyTo {
  /// <summary>The weights.</summary>
  Weights = Flat.APPLY_WEIGHTS,
  /// <summary>Momentum and moments, where given.</summary>
  Momentum = Flat.APPLY_MOMENTUM,
  /// <summary>Gradients, where given.</summary>
  Gradients = Flat.APPLY_GRADIENTS
}

/// <summary>The modes of a masking; by default it prunes by magnitude and grows nothing. Functions
/// belong to the modes that name them. What a function throws ends the call and comes out of it.
/// </summary>
public sealed class MaskingModes {
  /// <summary>The seed of what is drawn.</summary>
  public long Seed { get; set; }

  /// <summary>Which weights an update removes.</summary>
  public Prune Prune { get; set; }

  /// <summary>How free places are shared among layers.</summary>
  public Redistribute Redistribute { get; set; }

  /// <summary>Which places grow.</summary>
  public Grow Grow { get; set; }

  /// <summary>Whether momentum, moments and gradients are never masked.</summary>
  public bool DenseGradients { get; set; }

  /// <summary>Clears bytes of a layer's mask: (layer, rate, requested), as many as requested or as
  /// it likes.</summary>
  public Action<int, double, long> PruneFunction { get; set; }

  /// <summary>A number for the weights of a kernel.</summary>
  public Func<double[], double> PruneCriterion { get; set; }

  /// <summary>A layer's statistic, finite and not negative.</summary>
  public Func<int, double> Statistic { get; set; }

  /// <summary>Sets bytes of a layer's mask: (layer, requested), as many as requested or as it
  /// likes; may set the weights there.</summary>
  public Action<int, long> GrowFunction { get; set; }

  /// <summary>A number for the gradients of a kernel.</summary>
  public Func<double[], double> GrowCriterion { get; set; }
}

}
