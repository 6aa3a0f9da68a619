/* The digits: 1,797 images of 8 x 8 pixels with their labels, split once and for all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DIGITS_DATA_H_
#define DIGITS_DATA_H_

enum { PIXELS = 64, CLASSES = 10, TRAIN_IMAGES = 1437, TEST_IMAGES = 360 };

/* Pixels run from 0 (paper) to 1 (ink). */
struct image {
  float pixels[PIXELS];
  int label;
};

struct digits {
  struct image train[TRAIN_IMAGES];
  struct image test[TEST_IMAGES];
};

/* Reads the CSV file; every fifth image is for testing. Returns 0, or -1 after it has said on
 * stderr what is wrong with the file. */
int digits_load(const char *path, struct digits *out);

#endif /* DIGITS_DATA_H_ */
