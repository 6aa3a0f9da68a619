// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/** What becomes of blocks whose scores are equal where the selection ends. */
public enum Ties {
  /** Exactly the count; among equals the lower position is kept. */
  BY_POSITION(FlatConstants.TIES_BY_POSITION),
  /** Every block tied with the last kept one is kept too. */
  KEEP_ALL(FlatConstants.TIES_KEEP_ALL);

  final int code;

  Ties(int code) {
    this.code = code;
  }
}
