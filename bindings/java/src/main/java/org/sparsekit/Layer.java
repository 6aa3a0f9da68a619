// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/**
 * What a {@link Masking} needs of a layer: its weights, its mask, and what its modes read.
 * Gradient, momentum and moments may have any float dtype, and lie as the weights' view says; other
 * arrays may be given for them between calls.
 */
public final class Layer {
  final String name;
  final View view;
  final Elements mask;
  Elements gradient;
  Elements momentum;
  Elements adamM1;
  Elements adamM2;

  /**
   * A layer.
   *
   * @param name unique in its masking
   * @param weights the weights
   * @param mask its keep mask, which the masking writes: u8, contiguous in the shape of the view
   */
  public Layer(String name, View weights, Elements mask) {
    this.name = name;
    this.view = weights;
    this.mask = mask;
  }

  /** The gradient that the last backward pass left, or null. */
  public Layer gradient(Elements gradient) {
    this.gradient = gradient;
    return this;
  }

  /** SGD's momentum, or null. */
  public Layer momentum(Elements momentum) {
    this.momentum = momentum;
    return this;
  }

  /** Adam's first and second moments, both or none. */
  public Layer adam(Elements m1, Elements m2) {
    this.adamM1 = m1;
    this.adamM2 = m2;
    return this;
  }

  /** The name. */
  public String name() {
    return name;
  }

  /** The weights. */
  public View weights() {
    return view;
  }

  /** The keep mask. */
  public Elements mask() {
    return mask;
  }
}
