// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace SparseKit {

/// <summary>Functions and lists on their way between C# and C.</summary>
internal static class Functions {
  /// <summary>The form of every function of a caller: numbers in, one number out.</summary>
  internal delegate double Function(double[] numbers);

  internal delegate int CallFunction(IntPtr user, IntPtr numbers, long count, IntPtr result);
  internal delegate void DropFunction(IntPtr user);

  // C keeps their addresses for ever.
  static readonly CallFunction call = Call;
  static readonly DropFunction drop = Drop;

  internal static bool Register() {
    FlatPINVOKE.Register(call, drop, Errors.RaiseDelegate);
    return true;
  }

  /// <summary>What C holds of a function until it gives it back to Drop. It does not keep it alive.
  /// </summary>
  internal static IntPtr Hold(Function function) {
    return GCHandle.ToIntPtr(GCHandle.Alloc(function, GCHandleType.Weak));
  }

  // An exception must not cross C: it waits until the call that it ends comes back.
  static int Call(IntPtr user, IntPtr numbers, long count, IntPtr result) {
    try {
      var function = (Function)GCHandle.FromIntPtr(user).Target;
      var array = new double[count];
      Marshal.Copy(numbers, array, 0, array.Length);
      Marshal.WriteInt64(result, BitConverter.DoubleToInt64Bits(function(array)));
      return 0;
    } catch (Exception exception) {
      Errors.Stash(exception);
      return 1;
    }
  }

  static void Drop(IntPtr user) {
    GCHandle.FromIntPtr(user).Free();
  }

  /// <summary>Integers with their count before them; null stays null.</summary>
  internal static long[] Counted(long[] values) {
    if (values == null) return null;
    var counted = new long[values.Length + 1];
    counted[0] = values.Length;
    values.CopyTo(counted, 1);
    return counted;
  }

  /// <summary>Copies a flat_ints.</summary>
  internal static long[] Ints(IntPtr list) {
    var values = new long[Marshal.ReadInt32(list)];
    Marshal.Copy(list + sizeof(long), values, 0, values.Length);
    return values;
  }

  /// <summary>Copies a flat_numbers.</summary>
  internal static double[] Numbers(IntPtr list) {
    var values = new double[Marshal.ReadInt32(list)];
    Marshal.Copy(list + sizeof(double), values, 0, values.Length);
    return values;
  }
}

}
