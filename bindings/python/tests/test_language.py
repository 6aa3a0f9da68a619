# SPDX-License-Identifier: Apache-2.0
"""What Python adds: exceptions, callbacks, contexts, threads, lifetimes, documentation."""

import gc
import inspect
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import sparsekit as sk


class Thrown(Exception):
    pass


def throw(*_):
    raise Thrown("mine")


@pytest.fixture(autouse=True)
def no_handle_is_left():
    gc.collect()
    before = sk.live_handles()
    yield
    gc.collect()
    assert sk.live_handles() <= before  # less if an earlier test's traceback went away


def ones(*shape):
    return np.ones(shape, np.float32)


# --- exceptions ---

PYTHONS_OWN = {
    sk.InvalidArgumentError: ValueError,
    sk.ShapeMismatchError: ValueError,
    sk.CouplingError: ValueError,
    sk.OverlapError: ValueError,
    sk.OutOfBoundsError: IndexError,
    sk.UnsupportedDtypeError: TypeError,
    sk.OutOfMemoryError: MemoryError,
    sk.UnavailableError: RuntimeError,
    sk.InternalError: RuntimeError,
    sk.CancelledError: Exception,
}


@pytest.mark.parametrize("kind", PYTHONS_OWN)
def test_exception_classes(kind):
    assert issubclass(kind, sk.SparseKitError) and issubclass(kind, PYTHONS_OWN[kind])
    words = kind.__name__.replace("Error", "").replace("Mismatch", "_Mismatch")
    words = words.replace("OutOf", "Out_Of_").replace("Argument", "_Argument")
    words = words.replace("Dtype", "_Dtype")
    assert kind("why").status_name == "SPK_" + words.upper()


def test_messages_name_the_argument():
    with pytest.raises(sk.ShapeMismatchError, match="block shape: dim 0: size 4") as caught:
        sk.BlockSpec(ones(4, 4), (3, 1))
    assert (caught.value.status, caught.value.status_name) == (2, "SPK_SHAPE_MISMATCH")


def rows(rows=4, columns=6):
    return sk.BlockSpec(ones(rows, columns), (1, -1))


FROZEN = np.ones((4, 6), np.float32)
FROZEN.flags.writeable = False

REFUSALS = {
    "values[1]: got NoneType": lambda: sk.BlockCoupling([rows(), rows()]).norms([ones(4, 6), None]),
    "source[0]: got shape (4, 5)": lambda: rows().set_data(ones(4, 5)),
    "into: got a read-only array": lambda: rows().soft_threshold(1, into=FROZEN),
    "block_thresholds: got elements of format 'i'": lambda: rows().soft_threshold(
        np.zeros(4, np.int32)
    ),
    "prune_mask: got str": lambda: rows().apply_mask("1"),
    "mask of w: got str": lambda: sk.Masking(lambda t: 0)
    .add("w", ones(2, 2), mask="1")
    ._mask_memory(),
    "momentum of w: got shape (3, 3)": lambda: sk.Masking(lambda t: 0)
    .add("w", ones(2, 2), momentum=ones(3, 3))
    ._beside("momentum"),
    "context: got 3": lambda: rows().norms(context=3),
    "decay: got 3": lambda: sk.Masking(3),
    "dtype: got f16 for an array of f32": lambda: sk.View(ones(4), dtype="f16"),
    "view stride: got 1 numbers, expected 2": lambda: sk.View(ones(4), (2, 2), (1,)),
    "index: got 3 numbers, expected 2": lambda: sk.View(ones(2, 2)).linear_offset((0, 0, 0)),
    "leaf index: got 1, expected 0 to 0": lambda: rows().leaf_shape(1),
    "view: shape (100,), strides (1,) and offset 0": lambda: sk.View(ones(4), (100,)).data,
    "block_values: got 5 numbers, expected 4": lambda: rows().expand_block_tensor(np.ones(5)),
    "block_values: got 3 numbers, expected 4": lambda: rows().broadcast_block_to_element(
        np.ones(3), fake=True
    ),
    "orders: got [(0,), (1, 0, 1)]": lambda: sk.BlockCoupling(
        [rows(), rows()], orders=[(0,), (1, 0, 1)]
    ),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_refusals_say_of_what(message):
    with pytest.raises(sk.SparseKitError) as caught:
        REFUSALS[message]()
    assert str(caught.value).startswith(message)


def test_a_closed_member_is_named_even_with_orders():
    closed = rows()
    closed.close()
    with pytest.raises(sk.InvalidArgumentError, match=r"members\[0\]"):
        sk.BlockCoupling([closed, rows()], orders=[(0, 1), (0, 1)])


def test_arguments_of_other_types():
    with pytest.raises(TypeError):
        sk.BlockSpec(ones(4), "ab")
    with pytest.raises(TypeError):
        sk.prune_nm(ones(4), 2.5, 4)
    with pytest.raises((TypeError, OverflowError)):
        sk.prune_nm(ones(4), 1 << 80, 4)
    with pytest.raises(TypeError):
        sk.BlockSpec(ones(4)).reduce(None, "no function")
    with pytest.raises(TypeError):
        sk.BlockSpec(ones(4)).reduce(None, lambda elements: "no number")


# --- callbacks ---


def test_exceptions_of_a_reducer_come_out():
    calls = []

    def fail_at_third(elements):
        calls.append(elements[0])
        if len(calls) == 3:
            raise Thrown("third")
        return 0.0

    with pytest.raises(Thrown, match="third"):
        sk.BlockSpec(np.arange(8, dtype=np.float32)).reduce(None, fail_at_third)
    assert calls == [0, 1, 2]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, sk.CancelledError])
def test_other_exceptions_of_a_callback(kind):
    def fail(*_):
        raise kind("now")

    with pytest.raises(kind):
        sk.BlockSpec(ones(4)).reduce(None, fail)
    assert sk.BlockSpec(ones(4)).norms().tolist() == [1] * 4  # nothing is left behind


def test_progress_cancels_throws_and_counts():
    seen = []
    weights = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    block = sk.BlockSpec(weights, (1, 8))
    with sk.Context(progress=lambda done, total: seen.append((done, total))) as counting:
        block.norms(context=counting)
    assert seen and all(0 <= done <= total for done, total in seen)
    assert seen == sorted(seen)
    before = weights.copy()
    cancelling = sk.Context(progress=lambda done, total: True)
    with pytest.raises(sk.CancelledError):
        block.soft_threshold(1.0, context=cancelling)
    throwing = sk.Context(progress=throw)
    with pytest.raises(Thrown, match="mine"):
        block.soft_threshold(1.0, context=throwing)
    finished = before.copy()
    sk.BlockSpec(finished, (1, 8)).soft_threshold(1.0)
    once = (weights == finished) | (weights == before)
    assert once.reshape(-1, 8).all()  # every block is untouched or finished


def test_a_callback_may_call_the_library_and_fail_there():
    failures = []

    def nested(elements):
        with sk.Context("serial") as inner:
            norm = sk.BlockSpec(elements.copy(), 4).norms(context=inner)[0]
            try:
                sk.BlockSpec(elements, 3)
            except sk.ShapeMismatchError as error:
                failures.append(error)
        return norm

    norms = sk.BlockSpec(ones(8), 4).reduce(None, nested)
    assert norms.tolist() == [2, 2] and len(failures) == 2


def test_the_same_context_inside_its_callback_is_refused():
    block = sk.BlockSpec(ones(4))
    with pytest.raises(sk.InvalidArgumentError):
        block.reduce(None, lambda elements: block.norms()[0])


# --- contexts ---


def test_contexts():
    serial = sk.Context("serial")
    assert (serial.executor, serial.threads) == ("serial", 1)
    assert repr(serial) == "Context('serial', 1)"
    serial.trim()
    with pytest.raises(sk.InvalidArgumentError, match="serial, tbb, openmp"):
        sk.Context("cuda")
    with pytest.raises(sk.SparseKitError):
        sk.Context("serial", threads=-1)
    assert sk.executor_available("serial") and not sk.executor_available("cuda")


@pytest.mark.parametrize("executor", ["serial", "tbb", "openmp"])
def test_every_executor_gives_the_same_bits(executor):
    if not sk.executor_available(executor):
        with pytest.raises(sk.UnavailableError):
            sk.Context(executor)
        return
    weights = np.random.default_rng(0).normal(size=(256, 1024)).astype(np.float32)
    with sk.Context(executor, 2) as context:
        norms = sk.BlockSpec(weights, (1, 16)).norms(context=context)
    np.testing.assert_array_equal(norms, sk.BlockSpec(weights, (1, 16)).norms())


# --- closing ---


def closable():
    weights = ones(4, 4)
    view = sk.View(weights)
    block = sk.BlockSpec(view, (1, 4))
    scope = sk.ScopeSpec(block)
    decay = sk.LinearDecay(0.5, 10)
    masking = sk.Masking(decay)
    context = sk.Context("serial")
    return {
        "view": (view, lambda: view.shape),
        "block": (block, block.norms),
        "coupling": (block, lambda: sk.BlockCoupling([block])),
        "scope": (scope, lambda: scope.get_masks(1)),
        "decay": (decay, decay.rate),
        "masking": (masking, masking.update),
        "context": (context, lambda: block.norms(context=context)),
        "trim": (context, context.trim),
    }


@pytest.mark.parametrize("name", closable())
def test_closed_objects_are_refused(name):
    thing, use = closable()[name]
    if name != "masking":  # which has no layers to update yet
        use()
    assert not thing.closed
    thing.close()
    thing.close()
    assert thing.closed and "closed" in repr(thing)
    with pytest.raises(sk.InvalidArgumentError):
        use()


def test_what_was_built_on_a_closed_object_lives_on():
    with sk.View(ones(4, 4)) as view, sk.BlockSpec(view, (1, 4)) as block:
        scope = sk.ScopeSpec(block)
    assert scope.block_norms().tolist() == [[[2, 2, 2, 2]]]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_objects_die_in_any_order(order):
    view = sk.View(ones(4, 4))
    block = sk.BlockSpec(view, (1, 4))
    coupling = sk.BlockCoupling([block])
    things = [view, block, coupling, sk.ScopeSpec(coupling)]
    before = sk.live_handles()
    del view, block, coupling
    for number in order:
        things[number] = None
        gc.collect()
    assert sk.live_handles() == before - 4


def test_cycles_through_callbacks_are_collected():
    def make():
        context = sk.Context("serial")
        context.progress_owner = context
        context._progress = lambda done, total: context.closed
        masking = sk.Masking(lambda t: 0.1, prune=lambda *arguments: masking.stats())
        return weakref.ref(context), weakref.ref(masking)

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


class Weights(np.ndarray):
    """An array that can have attributes."""


class Interface:
    """An array by __array_interface__."""

    def __init__(self):
        self.array = ones(2, 2)
        self.__array_interface__ = self.array.__array_interface__


@pytest.mark.parametrize("make", [lambda: ones(2, 2).view(Weights), Interface])
def test_cycles_through_arrays_are_collected(make):
    array = make()
    array.rows = sk.BlockSpec(array, (1, -1))
    array.copy_of_it = array.rows.view.beside(array)
    dead = weakref.ref(array)
    del array
    gc.collect()
    assert dead() is None


def test_a_function_outlives_what_it_was_given_to():
    decay = sk.CustomDecay(lambda t: 0.25)
    masking = sk.Masking(decay)
    decay.close()
    del decay
    gc.collect()
    weights = np.arange(1, 9, dtype=np.float32)
    masking.add("w", weights.reshape(2, 4))
    masking.initialise(mode="lottery_ticket")
    assert masking.update().removed == 2


# --- threads ---


def test_other_threads_run_while_the_library_works():
    block = sk.BlockSpec(np.random.default_rng(0).normal(size=(1024, 1024)), (1, 64))
    done = threading.Event()
    ticks = []

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    def longest_silence(context):
        """The share of a long call in which the other thread did not run."""
        start = time.perf_counter()
        block.norms(p=2.5, context=context)
        end = time.perf_counter()
        times = [start, *(time for time in ticks if start < time < end), end]
        return max(np.diff(times)) / (end - start)

    ticking = threading.Thread(target=tick)
    ticking.start()
    with sk.Context("serial") as context:
        silences = []
        while len(silences) < 5 and min(silences, default=1) > 0.5:  # a machine may be busy
            silences.append(longest_silence(context))
    done.set()
    ticking.join()
    assert min(silences) <= 0.5


def test_objects_are_shared_by_threads():
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    block = sk.BlockSpec(weights, (1, 8))
    scope = sk.ScopeSpec(block, (1, 4))
    expected, mask = block.norms(), scope.get_masks(2)
    failures = []

    def work():
        try:
            for _ in range(50):
                np.testing.assert_array_equal(block.norms(), expected)
                np.testing.assert_array_equal(scope.get_masks(2), mask)
                sums = block.reduce(None, lambda elements: elements.sum())
                np.testing.assert_allclose(sums.sum(), weights.sum(), rtol=1e-3)
                with pytest.raises(Thrown):
                    block.reduce(None, throw)
                with pytest.raises(sk.OverlapError):
                    sk.View(weights, (3, 3), (1, 1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_objects_die_on_other_threads():
    things = [sk.BlockSpec(ones(4)), sk.Masking(lambda t: 0.1), sk.Context(progress=throw)]
    thread = threading.Thread(target=things.clear)
    thread.start()
    thread.join()
    assert things == []


def run(program):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return ended.returncode, ended.stderr.decode()


def test_a_fork_may_go_on():
    program = """
import os, warnings, numpy as np, sparsekit as sk
warnings.simplefilter("ignore")  # of threads, which Python sees and the library knows about
block = sk.BlockSpec(np.ones((256, 1024), np.float32), (1, 16))
block.norms()
child = os.fork()
if child == 0:
    os._exit(0 if (block.norms() == 4).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    assert run(program) == (0, "")


def test_the_interpreter_ends_with_objects_alive():
    program = """
import numpy as np, sparsekit as sk
block = sk.BlockSpec(np.ones((256, 256), np.float32), (1, 8))
masking = sk.Masking(lambda t: 0.1)
context = sk.Context(progress=lambda done, total: False)
block.norms(context=context)
"""
    assert run(program) == (0, "")


# --- the rest ---


def test_specs_are_keys():
    view = sk.View(ones(4))
    block, other = sk.BlockSpec(view), sk.BlockSpec(view)
    assert len({view: 1, block: 2, other: 3, sk.ScopeSpec(block): 4}) == 4


def test_version_and_build():
    assert sk.version() == sk.__version__ == "0.1.0"
    assert sk.build_info().startswith("sparsekit 0.1.0; executors: serial")


def public_things():
    for name in sk.__all__:
        thing = getattr(sk, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value
        elif inspect.ismodule(thing):
            for member, value in vars(thing).items():
                if inspect.isfunction(value) and value.__module__ == thing.__name__:
                    yield f"{name}.{member}", value


# Words that say all there is to say.
SELF_EXPLAINING = {
    "ndim",
    "grid_ndim",
    "shape",
    "closed",
    "view",
    "block",
    "decay",
    "position",
    "layer_name",
}


def test_everything_is_documented():
    missing = [name for name, thing in public_things() if not inspect.getdoc(thing)]
    assert [name for name in missing if name.split(".")[-1] not in SELF_EXPLAINING] == []


def test_the_package_is_typed():
    assert os.path.exists(os.path.join(os.path.dirname(sk.__file__), "py.typed"))
    for name, thing in public_things():
        if inspect.isfunction(thing):
            assert "return" in thing.__annotations__, name
