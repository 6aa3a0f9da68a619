using System;
using SparseKit;

public static class Slices {
  public static void Main() {
    var arena = new float[100 + 8 * 16];  // a matrix of 8 x 16 comes after 100 other numbers
    for (int i = 0; i < arena.Length; ++i) arena[i] = 1 + i % 4;

    // One call on a span: 2:4 along the rows leaves the 3s and 4s.
    Report pruned = arena.AsSpan(100, 8 * 16).PruneNm(new long[] {8, 16}, 1, 2, 4);

    // A view of the same slice, for anything else.
    using (var view = new View(arena.AsMemory(100, 8 * 16), 8, 16))
    using (var fours = new Block(view, 1, 4)) {
      fours.SoftThreshold(new float[] {2.5f});  // all have norm 5: each is halved
      Console.WriteLine("kept " + pruned.Achieved + " of " + pruned.Total);
    }
    if (arena[98] != 3 || arena[101] != 0 || arena[102] != 1.5f) throw new Exception("wrong slice");
  }
}
