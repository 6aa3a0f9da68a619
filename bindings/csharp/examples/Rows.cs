using System;
using SparseKit;

public static class Rows {
  public static void Main() {
    var weights = new float[64 * 128];
    for (int i = 0; i < weights.Length; ++i) weights[i] = i / 128 + 1;  // row r holds r + 1

    using (var view = new View(weights, 64, 128))
    using (var rows = new Block(view, 1, 0))  // 0 spans the dimension: every row is a block
    using (var scope = new Scope(rows)) {     // all rows compete
      Report kept = scope.KeepTop(scope.SparsityToNnz(0.5));  // zeroes the 32 weakest rows
      // One step of group lasso, with a threshold of 40 sqrt(128): norms are (r + 1) sqrt(128).
      Report left = rows.SoftThreshold(new float[] {40}, scale: true);
      Console.WriteLine(kept.Achieved + " rows, then " + left.Achieved);
      if (kept.Achieved != 32 || left.Achieved != 24) throw new Exception("wrong rows");
    }
  }
}
