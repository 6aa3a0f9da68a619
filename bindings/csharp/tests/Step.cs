// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text.RegularExpressions;

/// <summary>A line of cases.tsv: positional arguments, then those with keys.</summary>
public sealed class Step {
  static readonly Regex Key = new Regex("^([A-Za-z_0-9]+)=(.*)$");

  readonly List<string> positional = new List<string>();
  readonly Dictionary<string, string> keyed = new Dictionary<string, string>();

  public Step(string line) {
    var words = line.Split('\t');
    Case = words[0];
    Command = words[1];
    foreach (var word in words.Skip(2)) {
      var match = Key.Match(word);
      if (match.Success) keyed[match.Groups[1].Value] = match.Groups[2].Value;
      else positional.Add(word);
    }
  }

  public string Case { get; }

  public string Command { get; }

  public int Arguments {
    get { return positional.Count; }
  }

  public string At(int index) {
    return positional[index];
  }

  public int IntegerAt(int index) {
    return int.Parse(positional[index], CultureInfo.InvariantCulture);
  }

  public bool Has(string key) {
    return keyed.ContainsKey(key);
  }

  public string Text(string key, string otherwise = null) {
    return Has(key) ? keyed[key] : otherwise;
  }

  public double Number(string key, double otherwise = 0) {
    return Has(key) ? Parse(keyed[key]) : otherwise;
  }

  public long Integer(string key, long otherwise = 0) {
    return Has(key) ? long.Parse(keyed[key], CultureInfo.InvariantCulture) : otherwise;
  }

  public bool Flag(string key) {
    return Integer(key) != 0;
  }

  public long[] Integers(string key) {
    return Has(key) ? List(keyed[key]) : null;
  }

  /// <summary>Lists that are separated by semicolons.</summary>
  public long[][] Lists(string key) {
    return Has(key) ? keyed[key].Split(';').Select(List).ToArray() : null;
  }

  public string[] Names(string key) {
    return Has(key) ? keyed[key].Split(',') : null;
  }

  /// <summary>A value of an enumeration, by its name in lower case with underscores.</summary>
  public E Mode<E>(string key, string otherwise) {
    return (E)Enum.Parse(typeof(E), Text(key, otherwise).Replace("_", ""), true);
  }

  public static double Parse(string text) {
    switch (text) {
      case "inf": return double.PositiveInfinity;
      case "-inf": return double.NegativeInfinity;
      case "nan": return double.NaN;
      default: return double.Parse(text, CultureInfo.InvariantCulture);
    }
  }

  static long[] List(string text) {
    return text.Split(',')
        .Where(word => word != "")
        .Select(word => long.Parse(word, CultureInfo.InvariantCulture))
        .ToArray();
  }
}
