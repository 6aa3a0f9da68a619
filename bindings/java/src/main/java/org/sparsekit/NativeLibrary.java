// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** Finds and loads the C code, and cleans up after handles that nobody closed. */
final class NativeLibrary {
  static final Cleaner CLEANER = Cleaner.create();

  private static final String MODULE = System.mapLibraryName("sparsekit_java");

  private NativeLibrary() {}

  /**
   * Loads from the folder that the property {@code sparsekit.library.path} names; else what the jar
   * brings for this platform; else what {@code java.library.path} has.
   */
  static void load() {
    final String folder = System.getProperty("sparsekit.library.path");
    if (folder != null) {
      System.load(Path.of(folder, MODULE).toAbsolutePath().toString());
    } else if (NativeLibrary.class.getResource(resource(MODULE)) != null) {
      loadFromJar();
    } else {
      System.loadLibrary("sparsekit_java");
    }
  }

  /** A text as C has it; null stays null. */
  static byte[] utf8(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  /** A text of C. */
  static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  private static String resource(String file) {
    final String platform = System.getProperty("os.name") + "-" + System.getProperty("os.arch");
    return "native/" + platform.toLowerCase(Locale.ROOT).replace(' ', '_') + "/" + file;
  }

  /**
   * Unpacks the files that the jar's own list names, of which the module finds the others beside
   * itself. A library is mapped once it is loaded: its file can go.
   */
  private static void loadFromJar() {
    try {
      final Path folder = Files.createTempDirectory("sparsekit");
      final List<String> files = list();
      try {
        for (String file : files) {
          try (InputStream in = NativeLibrary.class.getResourceAsStream(resource(file))) {
            Files.copy(in, folder.resolve(file));
          }
        }
        System.load(folder.resolve(MODULE).toString());
      } finally {
        for (String file : files) Files.deleteIfExists(folder.resolve(file));
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UnsatisfiedLinkError("cannot unpack the SparseKit library: " + e);
    }
  }

  private static List<String> list() throws IOException {
    try (InputStream in = NativeLibrary.class.getResourceAsStream(resource("files.txt"))) {
      return text(in.readAllBytes()).lines().toList();
    }
  }
}
