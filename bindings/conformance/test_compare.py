#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A judge that lets everything pass is worth nothing: what compare.py has to find."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the sources may lie anywhere

import numpy

import compare
from suite import Suite


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cases = os.path.join(self.folder.name, "cases")
        suite = Suite(self.cases)
        c = suite.case("one")
        c.array("A", "f32", [3, -4, 0.0, float("nan")])
        c.step(["update", "M"], {}, "numbers 0.5,nan")
        c.fails("SPK_OVERLAP", "weights", "apply", "M")
        c.save("A")
        c.step(["readonly", "A"], {}, "ok", "unsupported")
        suite.finish()
        self.rows = ["one\t1\tok", "one\t2\tnumbers 0.5,nan",
                     "one\t3\terror SPK_OVERLAP the weights", "one\t4\tok", "one\t5\tok",
                     "end\t1\tints 0"]
        self.words = numpy.array([3, -4, 0.0, numpy.nan], dtype="<f4")

    def verdict(self, rows=None, words=None):
        """What compare.py returns for such results, and its last line."""
        with tempfile.TemporaryDirectory() as results:
            with open(os.path.join(results, "results.tsv"), "w", encoding="utf-8") as file:
                file.write("\n".join(self.rows if rows is None else rows) + "\n")
            words = self.words if words is None else words
            words.tofile(os.path.join(results, "one.A.bin"))
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                code = compare.main(self.cases, results)
        return code, told.getvalue().strip().split("\n")[-1]

    def with_row(self, index, row):
        return self.rows[:index] + [row] + self.rows[index + 1:]

    def test_what_is_right_passes(self):
        self.assertEqual(self.verdict(), (0, "2 passed, 0 failed"))
        self.assertEqual(self.verdict(self.with_row(4, "one\t5\ttext unsupported"))[0], 0)
        near = self.with_row(1, "one\t2\tnumbers 0.5000000000000001,nan")
        self.assertEqual(self.verdict(near)[0], 0)

    def test_missing_and_needless_results_fail(self):
        self.assertEqual(self.verdict([]), (1, "0 passed, 2 failed"))
        for i in range(len(self.rows)):
            self.assertEqual(self.verdict(self.rows[:i] + self.rows[i + 1:])[1],
                             "1 passed, 1 failed")
        self.assertEqual(self.verdict(self.rows + ["two\t1\tok"])[0], 1)
        self.assertEqual(self.verdict(self.rows + self.rows[:1])[0], 1)

    def test_wrong_results_fail(self):
        for index, row in ((0, "one\t1\ttext unsupported"), (0, "one\t1\tints 1"),
                           (1, "one\t2\tnumbers 0.5001,nan"), (1, "one\t2\tnumbers nan,nan"),
                           (1, "one\t2\tnumbers 0.5"), (1, "one\t2\tints 0.5,nan"),
                           (2, "one\t3\terror SPK_COUPLING the weights"),
                           (2, "one\t3\terror SPK_OVERLAP of others"), (2, "one\t3\tok"),
                           (5, "end\t1\tints 1")):
            with self.subTest(row):
                self.assertEqual(self.verdict(self.with_row(index, row)), (1, "1 passed, 1 failed"))

    def test_wrong_arrays_fail(self):
        for index, value in ((0, numpy.nextafter(numpy.float32(3), numpy.float32(4))), (2, -0.0),
                             (3, 1.0), (1, numpy.nan)):
            words = self.words.copy()
            words[index] = value
            self.assertEqual(self.verdict(words=words)[0], 1)
        self.assertEqual(self.verdict(words=self.words[:3])[0], 1)

    def test_ulps(self):
        def differ(a, b, dtype, storage, ulps):
            words = [numpy.array([x], dtype="<u2").view(storage) for x in (a, b)]
            return len(compare.differing(*words, dtype, ulps))
        for dtype, storage in (("f16", "<f2"), ("bf16", "<u2")):
            self.assertEqual(differ(0x3C00, 0x3C02, dtype, storage, 2), 0)
            self.assertEqual(differ(0x3C00, 0x3C03, dtype, storage, 2), 1)
            self.assertEqual(differ(0x8001, 0x0001, dtype, storage, 2), 0)  # around zero
            self.assertEqual(differ(0x8002, 0x0001, dtype, storage, 2), 1)
            self.assertEqual(differ(0x7FC1, 0x7FFF, dtype, storage, 0), 0)  # NaN and NaN
            self.assertEqual(differ(0xBC00, 0x3C00, dtype, storage, 9), 1)


if __name__ == "__main__":
    unittest.main()
