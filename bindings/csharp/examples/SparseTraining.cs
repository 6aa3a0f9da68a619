// SPDX-License-Identifier: Apache-2.0
using System;
using SparseKit;

/// <summary>Finds a sparse linear map from examples of what it does: a tenth of the weights exists
/// at any time, and RigL moves them to where gradients are largest.</summary>
public sealed class SparseTraining {
  const int Outputs = 16;
  const int Inputs = 64;
  const int Numel = Outputs * Inputs;
  const int Steps = 3000;
  const int Interval = 20;
  const int LastUpdate = Steps * 3 / 4;
  const double Density = 0.1;
  const float Rate = 0.01f;

  readonly Random random = new Random(1);
  readonly float[] truth = new float[Numel];
  readonly float[] weights = new float[Numel];
  readonly float[] gradient = new float[Numel];
  readonly byte[] mask = new byte[Numel];

  SparseTraining() {
    int ones = (int)(Numel * Density) * 3 / 4;
    for (int i = 0; i < ones; ++i) truth[random.Next(Numel)] = random.Next(2) == 0 ? 1 : -1;
  }

  /// <summary>A number of mean 0 and variance 1, by Box and Muller.</summary>
  float Gaussian() {
    var radius = Math.Sqrt(-2 * Math.Log(1 - random.NextDouble()));
    return (float)(radius * Math.Cos(2 * Math.PI * random.NextDouble()));
  }

  /// <summary>One step of stochastic gradient descent on a random input; the squared error before
  /// it.</summary>
  double Descend() {
    var input = new float[Inputs];
    for (int i = 0; i < Inputs; ++i) input[i] = Gaussian();
    double loss = 0;
    for (int o = 0; o < Outputs; ++o) {
      float error = 0;
      for (int i = 0; i < Inputs; ++i) {
        error += (weights[o * Inputs + i] - truth[o * Inputs + i]) * input[i];
      }
      loss += error * error;
      for (int i = 0; i < Inputs; ++i) {
        // Averaged over inputs: one of them says little about a weight that does not exist yet.
        int at = o * Inputs + i;
        gradient[at] = 0.95f * gradient[at] + 0.05f * error * input[i];
        weights[at] -= Rate * error * input[i];
      }
    }
    return loss;
  }

  void Train() {
    var modes = new MaskingModes {Seed = 1, Grow = Grow.Gradient, DenseGradients = true};
    using (var schedule = Schedule.Cosine(0.3, LastUpdate))
    using (var masking = new Masking(schedule, modes))
    using (var view = new View(weights, Outputs, Inputs)) {
      masking.Add(new Layer("map", view, mask) {Gradient = gradient});
      masking.Initialise(Density, Init.ErdosRenyi);
      double loss = 0;
      for (int step = 1; step <= Steps; ++step) {
        loss += Descend();
        if (step % Interval == 0 && step <= LastUpdate) masking.Update();
        masking.Step();
        if (step % (Steps / 5) == 0) {
          Console.WriteLine("step {0}: mean squared error {1:F5}", step, loss / (Steps / 5));
          loss = 0;
        }
      }
      Check(masking);
    }
  }

  void Check(Masking masking) {
    int nonzeros = 0;
    int found = 0;
    int wanted = 0;
    for (int i = 0; i < Numel; ++i) {
      nonzeros += weights[i] != 0 ? 1 : 0;
      wanted += truth[i] != 0 ? 1 : 0;
      found += truth[i] != 0 && Math.Abs(weights[i] - truth[i]) < 0.1 ? 1 : 0;
    }
    Console.WriteLine("{0} of {1} weights of the map found", found, wanted);
    if (nonzeros > masking.Baseline) throw new Exception(nonzeros + " weights are not 0");
    if (found < 0.9 * wanted) throw new Exception("the map was not found");
  }

  public static void Main() {
    new SparseTraining().Train();
  }
}
