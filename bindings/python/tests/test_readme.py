# SPDX-License-Identifier: Apache-2.0
"""The programs of README.md run as they stand, one after the other."""

import os
import re

import pytest

README = os.path.join(os.path.dirname(__file__), os.pardir, "README.md")


def programs(language):
    with open(README, encoding="utf-8") as text:
        return re.findall(rf"```{language}\n(.*?)```", text.read(), re.DOTALL)


def run(sources, names):
    for source in sources:
        exec(compile(source, README, "exec"), names)


def test_readme():
    assert len(programs("python")) == 8
    run(programs("python"), {})


def test_readme_of_torch():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    assert len(programs("py")) == 1
    run(programs("python")[:1] + programs("py"), {})
