// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.util.EnumSet;
import java.util.Set;

/**
 * What an operation may be told beside its arguments:
 *
 * <pre>{@code block.softThreshold(0.5, new Options().scale(true).into(result))}</pre>
 *
 * <p>Each operation says which options it reads; another one that is set is refused with {@link
 * SparseKitException.InvalidArgument}. All operations read the context.
 */
public final class Options {
  enum Key { INTO, VALUES, SCORES, BLOCK_MASK, CONDITIONERS, EPS, ATOL, MAX_ITER, SCALE, TIES }

  private static final double DEFAULT = -1;

  private final EnumSet<Key> given = EnumSet.noneOf(Key.class);
  Context context;
  Elements[] into;
  Elements[] values;
  Elements[] scores;
  Elements[] blockMask;
  Elements[] conditioners;
  double eps = DEFAULT;
  double atol = DEFAULT;
  int maxIter;
  boolean scale;
  Ties ties = Ties.BY_POSITION;

  /** How the call runs. */
  public Options context(Context context) {
    this.context = context;
    return this;
  }

  /** Other arrays that receive the result, one per leaf, of its dtype; the leaves are only read. */
  public Options into(Elements... into) {
    this.into = into;
    return given(Key.INTO);
  }

  /** Arrays, one per leaf, whose norms decide in place of the leaves' own. */
  public Options values(Elements... values) {
    this.values = values;
    return given(Key.VALUES);
  }

  /** Scores of the blocks, arranged by scope, of the score dtype. */
  public Options scores(Elements scores) {
    this.scores = new Elements[] {scores};
    return given(Key.SCORES);
  }

  /** A keep mask of the blocks, arranged by scope. */
  public Options blockMask(Elements blockMask) {
    this.blockMask = new Elements[] {blockMask};
    return given(Key.BLOCK_MASK);
  }

  /** The diagonal of the metric, one array per leaf: positive and finite. */
  public Options conditioners(Elements... conditioners) {
    this.conditioners = conditioners;
    return given(Key.CONDITIONERS);
  }

  /** What is added to norms, without conditioners; default: machine epsilon of the score dtype. */
  public Options eps(double eps) {
    this.eps = eps;
    return given(Key.EPS);
  }

  /** Relative tolerance, with conditioners; default 1e-8. */
  public Options atol(double atol) {
    this.atol = atol;
    return given(Key.ATOL);
  }

  /** Steps at most, 1 to 64, with conditioners; default 20. */
  public Options maxIter(int maxIter) {
    this.maxIter = maxIter;
    return given(Key.MAX_ITER);
  }

  /** Whether thresholds are multiplied by the square root of the elements of a block. */
  public Options scale(boolean scale) {
    this.scale = scale;
    return given(Key.SCALE);
  }

  /** What becomes of equal scores; default {@link Ties#BY_POSITION}. */
  public Options ties(Ties ties) {
    this.ties = ties;
    return given(Key.TIES);
  }

  private Options given(Key key) {
    given.add(key);
    return this;
  }

  /** The context's handle, after a look whether the operation reads all that is given. */
  ContextHandle check(Key... read) {
    final Set<Key> unread = given.clone();
    for (Key key : read) unread.remove(key);
    if (!unread.isEmpty()) {
      throw new SparseKitException.InvalidArgument(
          "options: got " + unread + ", which this operation does not read");
    }
    return Context.handle(context);
  }
}
