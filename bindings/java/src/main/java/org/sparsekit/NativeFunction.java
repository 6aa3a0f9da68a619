// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/** The form to which every function of a caller is brought: numbers in, one number out. */
interface NativeFunction {
  double call(double[] numbers);
}
