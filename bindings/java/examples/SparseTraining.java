// SPDX-License-Identifier: Apache-2.0
import java.nio.FloatBuffer;
import java.util.Random;
import org.sparsekit.Dtype;
import org.sparsekit.Elements;
import org.sparsekit.Layer;
import org.sparsekit.Masking;
import org.sparsekit.Schedule;
import org.sparsekit.View;

/**
 * Finds a sparse linear map from examples of what it does: a tenth of the weights exists at any
 * time, and RigL moves them to where gradients are largest.
 */
public final class SparseTraining {
  private static final int OUTPUTS = 16;
  private static final int INPUTS = 64;
  private static final int NUMEL = OUTPUTS * INPUTS;
  private static final int STEPS = 3000;
  private static final int INTERVAL = 20;
  private static final int LAST_UPDATE = STEPS * 3 / 4;
  private static final double DENSITY = 0.1;
  private static final float RATE = 0.01f;

  private final Random random = new Random(1);
  private final float[] truth = new float[NUMEL];
  private final Elements weights = Elements.allocate(Dtype.F32, NUMEL);
  private final Elements gradient = Elements.allocate(Dtype.F32, NUMEL);
  private final Elements mask = Elements.allocate(Dtype.U8, NUMEL);

  private SparseTraining() {
    final int ones = (int) (NUMEL * DENSITY) * 3 / 4;
    for (int i = 0; i < ones; ++i) truth[random.nextInt(NUMEL)] = random.nextBoolean() ? 1 : -1;
  }

  /** One step of stochastic gradient descent on a random input; the squared error before it. */
  private double descend() {
    final FloatBuffer w = weights.floats();
    final FloatBuffer g = gradient.floats();
    final float[] input = new float[INPUTS];
    for (int i = 0; i < INPUTS; ++i) input[i] = (float) random.nextGaussian();
    double loss = 0;
    for (int o = 0; o < OUTPUTS; ++o) {
      float error = 0;
      for (int i = 0; i < INPUTS; ++i) {
        error += (w.get(o * INPUTS + i) - truth[o * INPUTS + i]) * input[i];
      }
      loss += error * error;
      for (int i = 0; i < INPUTS; ++i) {
        // Averaged over inputs: one of them says little about a weight that does not exist yet.
        final int at = o * INPUTS + i;
        g.put(at, 0.95f * g.get(at) + 0.05f * error * input[i]);
        w.put(at, w.get(at) - RATE * error * input[i]);
      }
    }
    return loss;
  }

  private void train() {
    try (Schedule schedule = Schedule.cosine(0.3, LAST_UPDATE, 0);
        Masking masking =
            new Masking(
                schedule,
                new Masking.Modes().seed(1).grow(Masking.Grow.GRADIENT).denseGradients(true));
        View view = new View(weights, OUTPUTS, INPUTS)) {
      masking.add(new Layer("map", view, mask).gradient(gradient));
      masking.initialise(DENSITY, Masking.Init.ERDOS_RENYI);
      double loss = 0;
      for (int step = 1; step <= STEPS; ++step) {
        loss += descend();
        if (step % INTERVAL == 0 && step <= LAST_UPDATE) masking.update();
        masking.step();
        if (step % (STEPS / 5) == 0) {
          System.out.printf("step %d: mean squared error %.5f%n", step, loss / (STEPS / 5));
          loss = 0;
        }
      }
      check(masking);
    }
  }

  private void check(Masking masking) {
    int nonzeros = 0;
    int found = 0;
    int wanted = 0;
    for (int i = 0; i < NUMEL; ++i) {
      nonzeros += weights.floats().get(i) != 0 ? 1 : 0;
      wanted += truth[i] != 0 ? 1 : 0;
      found += truth[i] != 0 && Math.abs(weights.floats().get(i) - truth[i]) < 0.1 ? 1 : 0;
    }
    System.out.printf("%d of %d weights of the map found%n", found, wanted);
    if (nonzeros > masking.baseline()) throw new AssertionError(nonzeros + " weights are not 0");
    if (found < 0.9 * wanted) throw new AssertionError("the map was not found");
  }

  public static void main(String[] arguments) {
    new SparseTraining().train();
  }
}
