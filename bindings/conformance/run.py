#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py CASES RESULTS -- DRIVER...: empties RESULTS, runs DRIVER... CASES RESULTS, compares."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the sources may lie anywhere

import compare


def main(cases, results, driver):
    cases, results = os.path.abspath(cases), os.path.abspath(results)
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    code = subprocess.run(driver + [cases, results], check=False).returncode
    if code != 0:
        print(f"{driver[0]} ended with {code}")
    return compare.main(cases, results) or (1 if code != 0 else 0)


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[3] != "--":
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[4:]))
