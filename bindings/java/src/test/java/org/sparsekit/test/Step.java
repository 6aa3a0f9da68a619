// SPDX-License-Identifier: Apache-2.0
package org.sparsekit.test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A line of cases.tsv: positional arguments, then those with keys. */
final class Step {
  private static final String KEY = "[A-Za-z_0-9]+=.*";

  final String testCase;
  final String command;
  private final List<String> positional = new ArrayList<>();
  private final Map<String, String> keyed = new HashMap<>();

  Step(String line) {
    final String[] words = line.split("\t", -1);
    testCase = words[0];
    command = words[1];
    for (String word : Arrays.asList(words).subList(2, words.length)) {
      if (word.matches(KEY)) {
        keyed.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
      } else {
        positional.add(word);
      }
    }
  }

  int arguments() {
    return positional.size();
  }

  String at(int index) {
    return positional.get(index);
  }

  boolean has(String key) {
    return keyed.containsKey(key);
  }

  String text(String key) {
    return keyed.get(key);
  }

  String text(String key, String otherwise) {
    return keyed.getOrDefault(key, otherwise);
  }

  double number(String key, double otherwise) {
    return has(key) ? number(text(key)) : otherwise;
  }

  long integer(String key, long otherwise) {
    return has(key) ? Long.parseLong(text(key)) : otherwise;
  }

  boolean flag(String key) {
    return integer(key, 0) != 0;
  }

  long[] integers(String key) {
    return has(key) ? integers(keyed.get(key).split(",")) : null;
  }

  /** Lists that are separated by semicolons. */
  long[][] lists(String key) {
    if (!has(key)) return null;
    return Arrays.stream(text(key).split(";"))
        .map(list -> integers(list.split(",")))
        .toArray(long[][]::new);
  }

  String[] names(String key) {
    return has(key) ? text(key).split(",") : null;
  }

  static double number(String text) {
    return switch (text) {
      case "inf" -> Double.POSITIVE_INFINITY;
      case "-inf" -> Double.NEGATIVE_INFINITY;
      case "nan" -> Double.NaN;
      default -> Double.parseDouble(text);
    };
  }

  private static long[] integers(String[] words) {
    return Arrays.stream(words).filter(w -> !w.isEmpty()).mapToLong(Long::parseLong).toArray();
  }
}
