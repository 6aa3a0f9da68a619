// SPDX-License-Identifier: Apache-2.0
namespace SparseKit {

/// <summary>What a masking needs of a layer: its weights, its mask, and what its modes read.
/// Gradient, momentum and moments may have any float dtype, and lie as the weights' view says;
/// other arrays may be given for them between calls.</summary>
public sealed class Layer {
  /// <summary>A layer.</summary>
  /// <param name="name">unique in its masking</param>
  /// <param name="weights">the weights</param>
  /// <param name="mask">its keep mask, which the masking writes: U8, contiguous in the shape of the
  /// view</param>
  public Layer(string name, View weights, Elements mask) {
    Name = name;
    Weights = weights;
    Mask = mask;
  }

  /// <summary>The name.</summary>
  public string Name { get; }

  /// <summary>The weights.</summary>
  public View Weights { get; }

  /// <summary>The keep mask.</summary>
  public Elements Mask { get; }

  /// <summary>The gradient that the last backward pass left, or null.</summary>
  public Elements Gradient { get; set; }

  /// <summary>SGD's momentum, or null.</summary>
  public Elements Momentum { get; set; }

  /// <summary>Adam's first moment, or null; both moments or none.</summary>
  public Elements AdamM1 { get; set; }

  /// <summary>Adam's second moment, or null.</summary>
  public Elements AdamM2 { get; set; }
}

}
