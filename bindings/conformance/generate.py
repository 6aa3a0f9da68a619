#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py CASES: makes the cases, their data and what they have to give."""
import sys

sys.dont_write_bytecode = True  # the sources may lie anywhere

import cases_blocks
import cases_language
import cases_scopes
import cases_training
import cases_views
from suite import Suite, cases_of


def main(folder):
    suite = Suite(folder)
    for module in (cases_views, cases_blocks, cases_scopes, cases_training, cases_language):
        for make in cases_of(module):
            make(suite)
    suite.finish()
    print(f"{len(suite.names)} cases, {len(suite.lines)} steps")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
