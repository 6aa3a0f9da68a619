import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.sparsekit.Report;
import org.sparsekit.View;

public final class Example {
  public static void main(String[] arguments) {
    FloatBuffer weights =
        ByteBuffer.allocateDirect(64 * 128 * Float.BYTES)
            .order(ByteOrder.nativeOrder())
            .asFloatBuffer();
    for (int i = 0; i < 64 * 128; ++i) weights.put(i, i * 37 % 101 + 1);

    try (View view = new View(weights, 64, 128)) {
      Report report = view.pruneNm(1, 2, 4); // of every 4 in a row keeps the 2 largest
      System.out.println("kept " + report.achieved() + " of " + report.total());
    }

    int nonzero = 0;
    for (int i = 0; i < 64 * 128; ++i) nonzero += weights.get(i) != 0 ? 1 : 0;
    System.out.println("density " + nonzero / (64.0 * 128.0));
    if (nonzero != 64 * 128 / 2) throw new AssertionError("not 2:4");
  }
}
