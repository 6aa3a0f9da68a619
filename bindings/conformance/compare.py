#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py CASES RESULTS: a line per failure, then "N passed, N failed" (cases)."""
import math
import os
import sys

sys.dont_write_bytecode = True  # the sources may lie anywhere

import numpy

from numbers_of import STORAGE

MOST_SHOWN = 4  # failures of one case: the rest follows from the first, as a rule


def read_table(path, columns):
    """Rows by (case, step); the last column may hold anything. Raises ValueError on a bad line."""
    rows = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            if not line.strip():
                continue
            parts = line.split("\t", columns - 1)
            if len(parts) != columns:
                raise ValueError(f"{path}: line {number}: expected {columns} columns: {line!r}")
            key = (parts[0], int(parts[1]))
            if key in rows:
                raise ValueError(f"{path}: line {number}: step {key} appears twice")
            rows[key] = parts[2:]
    return rows


# --- arrays -------------------------------------------------------------------------------------

def ordered(words):
    """Floats as integers, such that neighbours differ by one and -0 by none from +0."""
    bits = words.dtype.itemsize * 8
    signed = words.view(f"<i{bits // 8}").astype(object)
    lowest = -(1 << (bits - 1))
    return numpy.array([int(x) if x >= 0 else lowest - int(x) for x in signed], dtype=object)


def is_nan(words, dtype):
    if dtype == "bf16":
        return (words & 0x7FFF) > 0x7F80
    return numpy.isnan(words)


def differing(expected, got, dtype, ulps):
    """Indices that differ. Without a tolerance, zeros differ by their signs; NaN equals NaN."""
    same = expected.view(f"<u{expected.dtype.itemsize}") == got.view(f"<u{got.dtype.itemsize}")
    if dtype not in ("u8", "i64"):
        both_nan = is_nan(expected, dtype) & is_nan(got, dtype)
        one_nan = is_nan(expected, dtype) ^ is_nan(got, dtype)
        near = abs(ordered(expected) - ordered(got)) <= ulps if ulps else False
        same = (same | near | both_nan) & ~one_nan
    return numpy.flatnonzero(~same.astype(bool))


def shown(words, index, dtype):
    word = words[index]
    if dtype == "bf16":
        word = numpy.array([int(word) << 16], dtype="<u4").view("<f4")[0]
    return f"{word} (bits {words[index:index + 1].tobytes()[::-1].hex()})"


def compare_file(cases, results, name, dtype, ulps):
    """What is wrong with a saved array; empty if nothing is."""
    path = os.path.join(results, name)
    if not os.path.exists(path):
        return f"{name} was not written"
    expected = numpy.fromfile(os.path.join(cases, "expected", name), dtype=STORAGE[dtype])
    size = os.path.getsize(path)
    if size != expected.nbytes:
        return f"{name} has {size} bytes, expected {expected.nbytes}"
    got = numpy.fromfile(path, dtype=STORAGE[dtype])
    wrong = differing(expected, got, dtype, int(ulps))
    if not len(wrong):
        return ""
    at = wrong[0]
    return (f"{name}: {len(wrong)} of {len(got)} differ, first [{at}]: "
            f"got {shown(got, at, dtype)}, expected {shown(expected, at, dtype)} up to {ulps} ulp")


# --- results ------------------------------------------------------------------------------------

def numbers_agree(expected, got, tolerance):
    def agrees(a, b):
        if math.isnan(a) or math.isinf(a):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= tolerance * max(1.0, abs(a))
    try:
        wanted = [float(x) for x in expected.split(",")]
        found = [float(x) for x in got.split(",")]
    except ValueError:
        return False
    return len(wanted) == len(found) and all(map(agrees, wanted, found))


def is_allowed(rule, got):
    """A result that the rule allows besides the expected one."""
    return ((rule == "unsupported" and got == "text unsupported") or
            (rule == "unavailable" and got.startswith("error SPK_UNAVAILABLE")))


def judge(cases, results, expected, rule, got):
    """What is wrong with one step; empty if nothing is."""
    kind, _, rest = expected.partition(" ")
    if kind == "file":
        return compare_file(cases, results, *rest.split(" ")) if got == "ok" else f"got {got!r}"
    got_kind, _, got_rest = got.partition(" ")
    if kind == "numbers":
        agree = got_kind == kind and numbers_agree(rest, got_rest, float(rule or 1e-12))
    elif kind == "error" and rest != "callback":
        status, _, part = rest.partition(" ")
        got_status, _, message = got_rest.partition(" ")
        agree = got_kind == kind and got_status == status and part in message
    else:
        agree = got == expected
    return "" if agree else f"got {got!r}, expected {expected!r}"


def compare_case(cases, results, steps, rows):
    """Failures of one case: (step, what). `steps` are its expected (step, expected, rule)."""
    failures = []
    for key, expected, rule in steps:
        if key not in rows:
            failures.append((key[1], "no result"))
            continue
        got = rows[key][0].strip().replace("\t", " ")
        if is_allowed(rule, got):
            # What a case is about cannot be had here: the rest of it means nothing.
            if expected == "ok":
                break
            continue
        wrong = judge(cases, results, expected, rule, got)
        if wrong:
            failures.append((key[1], wrong))
    return failures


def commands_of(cases):
    """The steps of cases.tsv by (case, step), to show with failures."""
    steps = {}
    count = {}
    with open(os.path.join(cases, "cases.tsv"), encoding="utf-8") as file:
        for line in file:
            case, _, command = line.rstrip("\n").partition("\t")
            count[case] = count.get(case, 0) + 1
            steps[case, count[case]] = command.replace("\t", " ")
    return steps


def main(cases, results):
    expected = read_table(os.path.join(cases, "expected.tsv"), 4)
    commands = commands_of(cases)
    assert set(commands) == set(expected), "cases.tsv and expected.tsv do not belong together"
    try:
        rows = read_table(os.path.join(results, "results.tsv"), 3)
    except (OSError, ValueError) as error:
        print(error)
        rows = {}
    by_case = {}
    for key, (result, rule) in expected.items():
        by_case.setdefault(key[0], []).append((key, result, rule))
    failed = set()
    for case, steps in by_case.items():
        failures = compare_case(cases, results, steps, rows)
        if failures:
            failed.add(case)
        for step, wrong in failures[:MOST_SHOWN]:
            print(f"{case}: step {step}: {commands[case, step]}: {wrong}")
        if len(failures) > MOST_SHOWN:
            print(f"{case}: {len(failures) - MOST_SHOWN} more")
    unknown = sorted(set(rows) - set(expected))
    for case, step in unknown:
        failed.add(case)
        print(f"{case}: step {step}: there is no such step")
    passed = len(set(by_case) - failed)
    print(f"{passed} passed, {len(failed)} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
