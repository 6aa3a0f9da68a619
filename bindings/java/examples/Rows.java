import org.sparsekit.Block;
import org.sparsekit.Dtype;
import org.sparsekit.Elements;
import org.sparsekit.Options;
import org.sparsekit.Report;
import org.sparsekit.Scope;
import org.sparsekit.View;

public final class Rows {
  public static void main(String[] arguments) {
    Elements weights = Elements.allocate(Dtype.F32, 64 * 128);
    for (int i = 0; i < 64 * 128; ++i) weights.floats().put(i, i / 128 + 1); // row r holds r + 1

    try (View view = new View(weights, 64, 128);
        Block rows = new Block(view, 1, 0); // 0 spans the dimension: every row is a block
        Scope scope = new Scope(rows)) { // all rows compete
      Report kept = scope.keepTop(scope.sparsityToNnz(0.5)); // zeroes the 32 weakest rows
      // One step of group lasso, with a threshold of 40 sqrt(128): norms are (r + 1) sqrt(128).
      Report left = rows.softThreshold(Elements.copyOf(40f), new Options().scale(true));
      System.out.println(kept.achieved() + " rows, then " + left.achieved());
      if (kept.achieved() != 32 || left.achieved() != 24) throw new AssertionError("wrong rows");
    }
  }
}
