// SPDX-License-Identifier: Apache-2.0
package org.sparsekit;

/**
 * A call that failed. The message names the argument, what was given and what was expected; a class
 * per status lets them be caught apart. A refused call has written nothing.
 */
public abstract class SparseKitException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int status;

  private SparseKitException(int status, String message) {
    super(message);
    this.status = status;
  }

  /** The number of the status in C, such as 4 for {@code SPK_OVERLAP}. */
  public final int status() {
    return status;
  }

  /** The name of the status in C, such as {@code SPK_OVERLAP}. */
  public final String statusName() {
    return Flat.status_string(status);
  }

  /** Called by the C code. */
  static void raise(int status, byte[] message) {
    throw of(status, NativeLibrary.text(message));
  }

  private static SparseKitException of(int status, String message) {
    return switch (status) {
      case FlatConstants.INVALID_ARGUMENT -> new InvalidArgument(message);
      case FlatConstants.SHAPE_MISMATCH -> new ShapeMismatch(message);
      case FlatConstants.COUPLING -> new Coupling(message);
      case FlatConstants.OVERLAP -> new Overlap(message);
      case FlatConstants.OUT_OF_BOUNDS -> new OutOfBounds(message);
      case FlatConstants.UNSUPPORTED_DTYPE -> new UnsupportedDtype(message);
      case FlatConstants.OUT_OF_MEMORY -> new OutOfMemory(message);
      case FlatConstants.CANCELLED -> new Cancelled(message);
      case FlatConstants.UNAVAILABLE -> new Unavailable(message);
      default -> new Internal(status, message);
    };
  }

  /** A value outside its range, a closed object, a buffer of the wrong kind. */
  public static final class InvalidArgument extends SparseKitException {
    private static final long serialVersionUID = 1L;

    InvalidArgument(String message) {
      super(FlatConstants.INVALID_ARGUMENT, message);
    }
  }

  /** Shapes, lengths or counts that do not fit each other. */
  public static final class ShapeMismatch extends SparseKitException {
    private static final long serialVersionUID = 1L;

    ShapeMismatch(String message) {
      super(FlatConstants.SHAPE_MISMATCH, message);
    }
  }

  /** Members whose grids do not agree. */
  public static final class Coupling extends SparseKitException {
    private static final long serialVersionUID = 1L;

    Coupling(String message) {
      super(FlatConstants.COUPLING, message);
    }
  }

  /** One element reached twice, or arrays that share bytes. */
  public static final class Overlap extends SparseKitException {
    private static final long serialVersionUID = 1L;

    Overlap(String message) {
      super(FlatConstants.OVERLAP, message);
    }
  }

  /** A view or an index that reaches outside. */
  public static final class OutOfBounds extends SparseKitException {
    private static final long serialVersionUID = 1L;

    OutOfBounds(String message) {
      super(FlatConstants.OUT_OF_BOUNDS, message);
    }
  }

  /** A dtype that this argument cannot have. */
  public static final class UnsupportedDtype extends SparseKitException {
    private static final long serialVersionUID = 1L;

    UnsupportedDtype(String message) {
      super(FlatConstants.UNSUPPORTED_DTYPE, message);
    }
  }

  /** Memory that could not be had. */
  public static final class OutOfMemory extends SparseKitException {
    private static final long serialVersionUID = 1L;

    OutOfMemory(String message) {
      super(FlatConstants.OUT_OF_MEMORY, message);
    }
  }

  /** A function of yours asked to stop: a {@link Progress}, or any by throwing this. */
  public static final class Cancelled extends SparseKitException {
    private static final long serialVersionUID = 1L;

    public Cancelled(String message) {
      super(FlatConstants.CANCELLED, message);
    }
  }

  /** Not in this build of the library, such as an executor. */
  public static final class Unavailable extends SparseKitException {
    private static final long serialVersionUID = 1L;

    Unavailable(String message) {
      super(FlatConstants.UNAVAILABLE, message);
    }
  }

  /** A defect of the library: please report the message. */
  public static final class Internal extends SparseKitException {
    private static final long serialVersionUID = 1L;

    Internal(int status, String message) {
      super(status, message);
    }
  }
}
