# SPDX-License-Identifier: Apache-2.0
"""Cases: steps with their expected results, and the files that go with them."""
import inspect
import os
import shutil

import numpy

from numbers_of import encode, nearest
from training_model import TrainingModel

# A command whose name Python, or the model, has taken for something else.
METHODS = {"context": "context_"}


class Case:
    def __init__(self, suite, name):
        self.suite, self.name, self.model = suite, name, TrainingModel()
        self.steps = 0
        self.saved = set()

    def array(self, name, dtype, values):
        """A new array; floats are rounded to dtype."""
        values = numpy.asarray(values).ravel()
        if dtype not in ("u8", "i64"):
            values = numpy.array([nearest(dtype, float(x)) for x in values])
        self.model.give(name, dtype, values)
        file = f"{self.name}.{name}.bin"
        self.suite.write_file("data", file, encode(dtype, values))
        self.step(["array", name, dtype, file], {}, "ok")

    def do(self, command, *args, rule="", **kw):
        """A step that succeeds as the model says; returns the expected result."""
        expected = self.modelled(command, args, kw)
        self.step([command, *args], kw, expected, rule)
        return expected

    def modelled(self, command, args, options):
        """What the model makes of a step; in which context it runs makes no difference."""
        options = {key: value for key, value in options.items() if key != "context"}
        return getattr(self.model, METHODS.get(command, command))(*args, **options)

    def check(self, expected, command, *args, rule="", **kw):
        """A step whose result is known from elsewhere; the model has to agree."""
        found = self.modelled(command, args, kw)
        assert rule or found == expected, f"{self.name}: {command}: {found}, not {expected}"
        self.step([command, *args], kw, expected, rule)

    def fails(self, status, message, command, *args, **kw):
        """A step that is refused, and says so; nothing is written."""
        self.step([command, *args], kw, f"error {status} {message}")

    def save(self, *names):
        for name in names:
            assert name not in self.saved, f"{self.name}: {name} would be written twice"
            self.saved.add(name)
            array = self.model[name]
            file = f"{self.name}.{name}.bin"
            self.suite.write_file("expected", file, array.words())
            self.step(["save", name], {}, f"file {file} {array.dtype} {array.ulps}")

    def step(self, arguments, options, expected, rule=""):
        self.steps += 1
        words = [self.name] + [text(a) for a in arguments]
        words += [f"{key}={text(value)}" for key, value in options.items()]
        assert not any("\t" in w or "\n" in w for w in words)
        self.suite.lines.append("\t".join(words))
        self.suite.expected.append("\t".join([self.name, str(self.steps), expected, rule]))


class Suite:
    def __init__(self, folder):
        self.folder, self.lines, self.expected, self.names = folder, [], [], set()
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("data", "expected"):
            os.makedirs(os.path.join(folder, part))

    def case(self, name):
        assert name not in self.names, f"two cases {name}"
        self.names.add(name)
        return Case(self, name)

    def write_file(self, part, name, words):
        with open(os.path.join(self.folder, part, name), "wb") as file:
            file.write(words.tobytes())

    def finish(self):
        self.case("end").step(["live"], {}, "ints 0")
        for name, lines in (("cases.tsv", self.lines), ("expected.tsv", self.expected)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


def text(value):
    """An argument as cases.tsv has it."""
    if isinstance(value, (list, tuple)):
        nested = value and isinstance(value[0], (list, tuple))
        return (";" if nested else ",").join(text(v) for v in value)
    if isinstance(value, (float, numpy.floating)):
        return repr(float(value))
    return str(value)


def cases_of(module):
    """The functions of a module that make cases, in the order of the file."""
    found = [f for name, f in vars(module).items()
             if name.startswith("cases_") and inspect.isfunction(f)]
    return sorted(found, key=lambda f: f.__code__.co_firstlineno)
