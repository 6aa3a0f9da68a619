// SPDX-License-Identifier: Apache-2.0
using System;

namespace SparseKit {

/// <summary>A call that failed. The message names the argument, what was given and what was
/// expected; a class per status lets them be caught apart. A refused call has written
/// nothing.</summary>
public abstract class SparseKitException : Exception {
  internal SparseKitException(int status, string message) : base(message) {
    Status = status;
  }

  /// <summary>The number of the status in C, such as 4 for SPK_OVERLAP.</summary>
  public int Status { get; }

  /// <summary>The name of the status in C, such as SPK_OVERLAP.</summary>
  public string StatusName {
    get { return Flat.status_string(Status); }
  }

  internal static SparseKitException Of(int status, string message) {
    switch (status) {
      case Flat.INVALID_ARGUMENT: return new InvalidArgumentException(message);
      case Flat.SHAPE_MISMATCH: return new ShapeMismatchException(message);
      case Flat.COUPLING: return new CouplingException(message);
      case Flat.OVERLAP: return new OverlapException(message);
      case Flat.OUT_OF_BOUNDS: return new OutOfBoundsException(message);
      case Flat.UNSUPPORTED_DTYPE: return new UnsupportedDtypeException(message);
      case Flat.OUT_OF_MEMORY: return new MemoryException(message);
      case Flat.CANCELLED: return new CancelledException(message);
      case Flat.UNAVAILABLE: return new UnavailableException(message);
      default: return new InternalException(status, message);
    }
  }
}

/// <summary>A value outside its range, a closed object, an array of the wrong
/// kind.</summary>
public sealed class InvalidArgumentException : SparseKitException {
  internal InvalidArgumentException(string message) : base(Flat.INVALID_ARGUMENT, message) {}
}

/// <summary>Shapes, lengths or counts that do not fit each other.</summary>
public sealed class ShapeMismatchException : SparseKitException {
  internal ShapeMismatchException(string message) : base(Flat.SHAPE_MISMATCH, message) {}
}

/// <summary>Members whose grids do not agree.</summary>
public sealed class CouplingException : SparseKitException {
  internal CouplingException(string message) : base(Flat.COUPLING, message) {}
}

/// <summary>One element reached twice, or arrays that share bytes.</summary>
public sealed class OverlapException : SparseKitException {
  internal OverlapException(string message) : base(Flat.OVERLAP, message) {}
}

/// <summary>A view or an index that reaches outside.</summary>
public sealed class OutOfBoundsException : SparseKitException {
  internal OutOfBoundsException(string message) : base(Flat.OUT_OF_BOUNDS, message) {}
}

/// <summary>A dtype that this argument cannot have.</summary>
public sealed class UnsupportedDtypeException : SparseKitException {
  internal UnsupportedDtypeException(string message) : base(Flat.UNSUPPORTED_DTYPE, message) {}
}

/// <summary>Memory that could not be had.</summary>
public sealed class MemoryException : SparseKitException {
  internal MemoryException(string message) : base(Flat.OUT_OF_MEMORY, message) {}
}

/// <summary>A function of yours asked to stop: one that follows progress, or any
/// by throwing this.</summary>
public sealed class CancelledException : SparseKitException {
  /// <summary>To be thrown by a function that ends its call.</summary>
  public CancelledException(string message) : base(Flat.CANCELLED, message) {}
}

/// <summary>Not in this build of the library, such as an executor.</summary>
public sealed class UnavailableException : SparseKitException {
  internal UnavailableException(string message) : base(Flat.UNAVAILABLE, message) {}
}

/// <summary>A defect of the library: please report the message.</summary>
public sealed class InternalException : SparseKitException {
  internal InternalException(int status, string message) : base(status, message) {}
}

}
