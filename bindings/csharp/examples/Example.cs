using System;
using SparseKit;

public static class Example {
  public static void Main() {
    var weights = new float[64, 128];
    for (int i = 0; i < 64 * 128; ++i) weights[i / 128, i % 128] = i * 37 % 101 + 1;

    using (var view = View.Of(weights)) {
      Report report = view.PruneNm(1, 2, 4);  // of every 4 in a row keeps the 2 largest
      Console.WriteLine("kept " + report.Achieved + " of " + report.Total);
    }

    int nonzero = 0;
    foreach (float weight in weights) nonzero += weight != 0 ? 1 : 0;
    Console.WriteLine("density " + nonzero / (64.0 * 128.0));
    if (nonzero != 64 * 128 / 2) throw new Exception("not 2:4");
  }
}
