/* SPDX-License-Identifier: Apache-2.0 */
#include "digits_data.h"

#include <stdio.h>
#include <stdlib.h>

enum { INK_MAX = 16, TEST_EVERY = 5, LINE_SIZE = 512 };

/* 64 pixels and a label, separated by commas. */
static int parse_image(const char *text, struct image *out) {
  for (int i = 0; i <= PIXELS; ++i) {
    char *end = NULL;
    long value = strtol(text, &end, 10);
    long limit = i < PIXELS ? INK_MAX : CLASSES - 1;
    char separator = i < PIXELS ? ',' : '\n';
    if (end == text || *end != separator || value < 0 || value > limit) return -1;
    if (i < PIXELS) {
      out->pixels[i] = (float)value / INK_MAX;
    } else {
      out->label = (int)value;
    }
    text = end + 1;
  }
  return 0;
}

static int read_images(FILE *file, const char *path, struct digits *out) {
  char line[LINE_SIZE];
  int trains = 0;
  int tests = 0;
  for (int i = 0; i < TRAIN_IMAGES + TEST_IMAGES; ++i) {
    struct image *next = i % TEST_EVERY == 0 ? &out->test[tests++] : &out->train[trains++];
    if (fgets(line, sizeof line, file) == NULL || parse_image(line, next) != 0) {
      fprintf(stderr, "%s:%d: expected 64 pixels (0 to 16) and a label (0 to 9)\n", path, i + 1);
      return -1;
    }
  }
  return 0;
}

int digits_load(const char *path, struct digits *out) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    return -1;
  }
  int result = read_images(file, path, out);
  fclose(file);
  return result;
}
