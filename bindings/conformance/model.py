# SPDX-License-Identifier: Apache-2.0
"""What views, blocks and scopes have to compute, slowly, from the meaning in sparsekit.h alone.

Each command of a case is a method here. It gives the step's expected result and changes the arrays
as the library has to.
"""
import itertools
import math
from fractions import Fraction

import numpy

from numbers_of import (EPSILON, encode, euclidean, floor_count, nearest, norm, norm_ulps,
                        square_root)


def number_type(dtype):
    """Integers stay integers: doubles hold those below 2^53 only."""
    return "<i8" if dtype in ("u8", "i64") else "<f8"


class Array:
    """An array of a driver: its numbers as doubles (or integers), and how exact they must be."""

    def __init__(self, dtype, values, ulps=0):
        self.dtype = dtype
        self.values = numpy.array(values, dtype=number_type(dtype)).ravel()
        self.ulps = ulps

    def words(self):
        return encode(self.dtype, self.values)


class View:
    def __init__(self, dtype, array, shape, stride=None, offset=0):
        self.dtype, self.array, self.shape, self.offset = dtype, array, tuple(shape), offset
        self.stride = tuple(stride) if stride is not None else contiguous(shape)
        self.where = numpy.full(self.shape, offset, dtype="<i8")
        for axis, step in enumerate(self.stride):
            along = [1] * len(self.shape)
            along[axis] = -1
            self.where += (numpy.arange(self.shape[axis]) * step).reshape(along)

    @property
    def numel(self):
        return math.prod(self.shape)

    def text(self):
        return text_of(self.shape, self.stride, self.offset)


def contiguous(shape):
    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))


def text_of(shape, stride, offset=0):
    def tuple_of(numbers):
        return "(" + ",".join(map(str, numbers)) + ")"
    return f"{tuple_of(shape)}:{tuple_of(stride)}" + (f"+{offset}" if offset else "")


def cut_text(shape, stride, offset, part, reorder):
    """Text of a view whose dimensions are cut in parts: (B0,b0,B1,b1,...), or (B0,...,b0,...)."""
    outer = [(whole // inner, step * inner) for whole, step, inner in zip(shape, stride, part)]
    inner = list(zip(part, stride))
    dims = outer + inner if reorder else [d for pair in zip(outer, inner) for d in pair]
    return text_of([d[0] for d in dims], [d[1] for d in dims], offset)


def cut(array, part):
    """An array of any numbers cut into equal parts: (grid..., elements of a part)."""
    split = [n for whole, inner in zip(array.shape, part) for n in (whole // inner, inner)]
    axes = list(range(0, len(split), 2)) + list(range(1, len(split), 2))
    pieces = array.reshape(split).transpose(axes)
    return pieces.reshape(pieces.shape[:len(part)] + (-1,))


def spanned(part, shape):
    """A shape of blocks or scopes with the dimensions that it spans or leaves out filled in."""
    part = list(part) + [-1] * (len(shape) - len(part))
    return tuple(whole if inner <= 0 else inner for inner, whole in zip(part, shape))


class Leaf:
    """One block spec: `where` its elements lie in the array, and at which `places` of the view's
    shape, both (grid..., elements of a block)."""

    def __init__(self, view, shape, where, places):
        self.view, self.shape, self.where, self.places = view, shape, where, places

    def permuted(self, order):
        axes = list(order) + [len(order)]
        return Leaf(self.view, self.shape, self.where.transpose(axes), self.places.transpose(axes))

    def block(self, b):
        return self.where.reshape(-1, self.where.shape[-1])[b]

    def block_places(self, b):
        return self.places.reshape(-1, self.places.shape[-1])[b]


class Block:
    def __init__(self, name, leaves):
        self.name, self.leaves = name, leaves
        self.grid = leaves[0].where.shape[:-1]

    @staticmethod
    def of(view, shape=(), name="block"):
        shape = spanned(shape, view.shape) if shape else (1,) * len(view.shape)
        places = numpy.arange(view.numel).reshape(view.shape)
        return Block(name, [Leaf(view, shape, cut(view.where, shape), cut(places, shape))])

    @property
    def numblk(self):
        return math.prod(self.grid)

    @property
    def numel_per_block(self):
        return sum(leaf.where.shape[-1] for leaf in self.leaves)

    @property
    def score_dtype(self):
        return "f64" if any(leaf.view.dtype == "f64" for leaf in self.leaves) else "f32"

    def parts(self, b, arrays=None):
        """The elements of block b, a list of doubles per leaf."""
        arrays = arrays or [leaf.view.array for leaf in self.leaves]
        return [[float(x) for x in array.values[leaf.block(b)]]
                for leaf, array in zip(self.leaves, arrays)]

    def elements(self, b, arrays=None):
        return list(itertools.chain(*self.parts(b, arrays)))


class Scope:
    """Members are (block, blocks): the block indices that it brings, (grid..., blocks)."""

    def __init__(self, name, members):
        self.name, self.members = name, members
        self.grid = members[0][1].shape[:-1]

    @staticmethod
    def of(block, shape=(), name="scope"):
        shape = spanned(shape, block.grid)
        indices = cut(numpy.arange(block.numblk).reshape(block.grid), shape)
        return Scope(name, [(block, indices)])

    @property
    def numscope(self):
        return math.prod(self.grid)

    @property
    def numblk_per_scope(self):
        return sum(blocks.shape[-1] for _, blocks in self.members)

    @property
    def numel_per_scope(self):
        return sum(block.numel_per_block * blocks.shape[-1] for block, blocks in self.members)

    @property
    def leaves(self):
        return [leaf for block, _ in self.members for leaf in block.leaves]

    @property
    def score_dtype(self):
        return "f64" if any(leaf.view.dtype == "f64" for leaf in self.leaves) else "f32"

    def members_with(self, arrays):
        """(block, blocks by scope, its share of arrays, one per leaf) of each member."""
        at = 0
        for block, blocks in self.members:
            own = arrays[at:at + len(block.leaves)] if arrays else None
            at += len(block.leaves)
            yield block, blocks.reshape(-1, blocks.shape[-1]), own

    def blocks(self, s):
        """(member, block index) of the blocks of scope s, in order."""
        return [(m, int(b)) for m, (_, blocks) in enumerate(self.members)
                for b in blocks.reshape(-1, blocks.shape[-1])[s]]


# --- selection ----------------------------------------------------------------------------------

def rank_key(score):
    return math.inf if math.isnan(score) else score, math.isnan(score)


def ranking(scores):
    """Positions, largest score first, NaN above all, equal ones by position."""
    # A stable sort that is reversed keeps equal ones in order.
    return sorted(range(len(scores)), key=lambda i: rank_key(scores[i]), reverse=True)


def same_rank(a, b):
    return rank_key(a) == rank_key(b)


def check_clear(a, b, dtype):
    """The library's norms may be an ulp or two off: a decision may not hang on that."""
    if same_rank(a, b) or not (math.isfinite(a) and math.isfinite(b)):
        return
    unit = 2.0**-20 if dtype == "f32" else 2.0**-48
    assert abs(a - b) > unit * max(abs(a), abs(b)), f"{a} and {b} are too near each other"


def select(scores, count, keep_all, dtype):
    """Which positions are kept, and how many tie at the cut."""
    order = ranking(scores)
    ties = 0
    kept = count
    if 0 < count < len(order):
        last, first = scores[order[count - 1]], scores[order[count]]
        check_clear(last, first, dtype)
        if same_rank(last, first):
            tied = [rank for rank, i in enumerate(order) if same_rank(scores[i], last)]
            ties = len(tied)
            if keep_all:
                kept = tied[-1] + 1
    return set(order[:kept]), ties


# --- soft thresholds ----------------------------------------------------------------------------

UNCHANGED, DEAD = "unchanged", "dead"


def check_alive(size, threshold):
    """Near the threshold the problem is ill-conditioned: keep away, but for small integers."""
    if size.denominator == 1 and threshold.denominator == 1:
        return
    assert abs(size - threshold) > size / 64, "a norm is too near its threshold"


def shrink(parts, threshold, eps):
    """Euclidean: UNCHANGED, DEAD or the new parts as Fractions."""
    size = euclidean([x for part in parts for x in part])
    if isinstance(size, float) and math.isnan(size):
        return UNCHANGED
    if threshold == math.inf:
        return DEAD
    if size == math.inf:
        return UNCHANGED
    check_alive(size, threshold)
    if size <= threshold:
        return DEAD
    factor = 1 - threshold / (size + eps)
    return [[Fraction(x) * factor for x in part] for part in parts]


def conditioned_root(products, metric, threshold):
    """mu with mu ||h.w / (h + mu)|| = t, by bisection."""
    def excess(mu):
        terms = ((float(p) / (float(h) + mu)) ** 2 for p, h in zip(products, metric))
        return mu * math.sqrt(math.fsum(terms)) - threshold
    size = math.sqrt(math.fsum(float(p) ** 2 for p in products))
    low = threshold * float(min(metric)) / (size - threshold) / 2
    high = threshold * float(max(metric)) / (size - threshold) * 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def shrink_conditioned(parts, metrics, threshold):
    """The minimiser for a diagonal metric: UNCHANGED, DEAD or the new parts."""
    elements = [x for part in parts for x in part]
    metric = [Fraction(h) for part in metrics for h in part]
    if any(math.isnan(x) for x in elements):
        return UNCHANGED
    if threshold == math.inf:
        return DEAD
    if threshold == 0 or any(math.isinf(x) for x in elements):
        return UNCHANGED
    products = [Fraction(x) * h for x, h in zip(elements, metric)]
    size = square_root(sum((p * p for p in products), Fraction(0)))
    check_alive(size, threshold)
    if size <= threshold:
        return DEAD
    mu = Fraction(conditioned_root(products, metric, float(threshold)))
    solved = iter([p / (h + mu) for p, h in zip(products, metric)])
    return [[next(solved) for _ in part] for part in parts]


# --- the commands -------------------------------------------------------------------------------

class Model:
    """Names of one case and what they stand for."""

    def __init__(self):
        self.names = {}
        self.context = None

    def __getitem__(self, name):
        return self.names[name]

    def arrays(self, names):
        return [self.names[n] for n in listed(names)]

    def give(self, name, dtype, values, ulps=0):
        self.names[name] = Array(dtype, values, ulps)
        return "ok"

    # --- arrays, contexts, views ---

    def zeros(self, name, dtype, count):
        return self.give(name, dtype, [0] * count)

    def readonly(self, name):
        return "ok"

    def address(self, name):
        return ints(1)

    def context_(self, name, executor=None, threads=None, progress=None):
        self.names[name] = None
        return "ok"

    def view(self, name, dtype, array, text=None, shape=None, stride=None, offset=0):
        if text is not None:
            shape, stride, offset = parsed(text)
        self.names[name] = View(dtype, self.names[array], listed(shape),
                                None if stride is None else listed(stride), offset)
        return "ok"

    def format(self, view):
        return "text " + self[view].text()

    def dtype(self, view):
        return "text " + self[view].dtype

    def shape(self, view):
        return ints(*self[view].shape)

    def stride(self, view):
        return ints(*self[view].stride)

    def offset(self, view):
        return ints(self[view].offset)

    def numel(self, name):
        thing = self[name]
        return ints(thing.numel if isinstance(thing, View) else
                    thing.numblk * thing.numel_per_block)

    def cosize(self, view):
        v = self[view]
        return ints(1 + sum((n - 1) * abs(s) for n, s in zip(v.shape, v.stride)))

    def linear_offset(self, view, index):
        return ints(int(self[view].where[tuple(listed(index))]))

    def to_param_rc(self, view, index, cols):
        return ints(*divmod(int(self[view].where[tuple(listed(index))]), cols))

    # --- blocks and scopes ---

    def block(self, name, view, /, shape=(), **kw):
        self.names[name] = Block.of(self[view], listed(shape), kw.get("name", "block"))
        return "ok"

    def couple(self, name, /, members, orders=None, **kw):
        members = self.arrays(members)
        orders = orders or [range(len(m.grid)) for m in members]
        leaves = [leaf.permuted(order) for m, order in zip(members, orders) for leaf in m.leaves]
        assert len({leaf.where.shape[:-1] for leaf in leaves}) == 1
        self.names[name] = Block(kw.get("name", "coupling"), leaves)
        return "ok"

    def scope(self, name, block, /, shape=(), **kw):
        self.names[name] = Scope.of(self[block], listed(shape), kw.get("name", "scope"))
        return "ok"

    def couple_scopes(self, name, /, members, orders=None, **kw):
        scopes = self.arrays(members)
        orders = orders or [range(len(s.grid)) for s in scopes]
        joined = [(block, blocks.transpose(list(order) + [len(order)]))
                  for s, order in zip(scopes, orders) for block, blocks in s.members]
        assert len({blocks.shape[:-1] for _, blocks in joined}) == 1
        self.names[name] = Scope(kw.get("name", "coupling"), joined)
        return "ok"

    def close(self, name):
        return "ok"

    def grid_shape(self, name):
        return ints(*self[name].grid)

    def numblk(self, block):
        return ints(self[block].numblk)

    def numel_per_block(self, block):
        return ints(self[block].numel_per_block)

    def score_dtype(self, name):
        return "text " + self[name].score_dtype

    def leaf_count(self, name):
        return ints(len(self[name].leaves))

    def name(self, name):
        return "text " + self[name].name

    def leaf(self, block, index):
        return ints(*self[block].leaves[index].shape)

    def numscope(self, scope):
        return ints(self[scope].numscope)

    def numblk_per_scope(self, scope):
        return ints(self[scope].numblk_per_scope)

    def numel_per_scope(self, scope):
        return ints(self[scope].numel_per_scope)

    def member_count(self, scope):
        return ints(len(self[scope].members))

    def sparsity_to_nnz(self, scope, sparsity):
        n = self[scope].numblk_per_scope
        return ints(n - floor_count(sparsity * n))

    # --- measuring ---

    def scores(self, block, p=2, values=None):
        return [norm(block.elements(b, values), p, block.score_dtype) for b in range(block.numblk)]

    def norms(self, block, p, out, values=None):
        x = self[block]
        values = self.arrays(values) if values else None
        return self.give(out, x.score_dtype, self.scores(x, p, values),
                         norm_ulps(p, x.score_dtype))

    def extreme(self, block, out, pick):
        x = self[block]
        found = []
        for b in range(x.numblk):
            elements = x.elements(b)
            bad = any(math.isnan(e) for e in elements)
            found.append(math.nan if bad else nearest(x.score_dtype, pick(elements)) + 0.0)
        return self.give(out, x.score_dtype, found)

    def min(self, block, out):
        return self.extreme(block, out, min)

    def max(self, block, out):
        return self.extreme(block, out, max)

    def nnz(self, block, eps=1e-8, out=None):
        x = self[block]
        counts = [sum(1 for e in x.elements(b) if math.isnan(e) or abs(e) > eps)
                  for b in range(x.numblk)]
        if out:
            self.give(out, "i64", counts)
        return ints(sum(counts))

    def reduce(self, block, fn, out):
        x = self[block]
        if fn == "throw":
            return "error callback"
        if fn == "stop":
            return "error SPK_CANCELLED "
        sums = []
        for b in range(x.numblk):
            total = 0.0
            for e in x.elements(b):
                total += e
            sums.append(nearest(x.score_dtype, total))
        return self.give(out, x.score_dtype, sums)

    # --- writing ---

    def rewrite(self, block, into, fn, ulps=None):
        """Writes fn(block index, parts), which may be UNCHANGED or DEAD, to the leaves or into."""
        targets = into or [leaf.view.array for leaf in block.leaves]
        sources = [block.parts(b) for b in range(block.numblk)]
        kept = 0
        for b, parts in enumerate(sources):
            new = fn(b, parts)
            kept += 0 if new is DEAD else 1
            for i, (leaf, target) in enumerate(zip(block.leaves, targets)):
                dtype = leaf.view.dtype
                if new is UNCHANGED or new is DEAD:
                    stored = parts[i] if new is UNCHANGED else [0.0] * len(parts[i])
                else:
                    # A zero that is scaled keeps its sign.
                    stored = [old if old == 0 and y == 0 else nearest(dtype, y)
                              for old, y in zip(parts[i], new[i])]
                    target.ulps = max(target.ulps, ulps(dtype) if ulps else 0)
                target.values[leaf.block(b)] = stored
        return kept

    def masked(self, block, mask, into, dies):
        mask = self[mask].values
        into = self.arrays(into) if into else None
        self.rewrite(block, into, lambda b, _: DEAD if dies(mask[b]) else UNCHANGED)
        return "ok"

    def apply_mask(self, block, mask, into=None):
        return self.masked(self[block], mask, into, lambda m: m != 0)

    def apply_keep_mask(self, block, mask, into=None):
        return self.masked(self[block], mask, into, lambda m: m == 0)

    def multiplied(self, block, multiplier, into):
        scale = [float(m) for m in self[multiplier].values]

        def product(b, parts):
            if scale[b] == 0:
                return DEAD
            return [[exact_product(x, scale[b]) for x in part] for part in parts]
        self.rewrite(block, self.arrays(into) if into else None, product)
        return "ok"

    def apply_multiplier(self, block, multiplier, into=None):
        return self.multiplied(self[block], multiplier, into)

    def view_apply_mask(self, view, shape, mask, into=None):
        return self.masked(Block.of(self[view], listed(shape)), mask, into, lambda m: m != 0)

    def view_apply_keep_mask(self, view, shape, mask, into=None):
        return self.masked(Block.of(self[view], listed(shape)), mask, into, lambda m: m == 0)

    def view_apply_multiplier(self, view, shape, multiplier, into=None):
        return self.multiplied(Block.of(self[view], listed(shape)), multiplier, into)

    def per_member(self, name, given):
        """(block, a number per block, index of its first leaf) of a block, or of a scope's members.
        `given` holds a number for all, or one per block or scope."""
        thing = self[name]
        if isinstance(thing, Block):
            numbers = given * thing.numblk if len(given) == 1 else given
            return [(thing, numbers, 0)]
        given = given * thing.numscope if len(given) == 1 else given
        result = []
        first = 0
        for block, blocks, _ in thing.members_with(None):
            numbers = [None] * block.numblk
            for s, own in enumerate(blocks):
                for b in own:
                    numbers[int(b)] = given[s]
            result.append((block, numbers, first))
            first += len(block.leaves)
        return result

    def hard_threshold(self, name, thresholds, values=None, into=None):
        total = kept = 0
        values = self.arrays(values) if values else None
        into = self.arrays(into) if into else None
        given = [float(t) for t in self[thresholds].values]
        for block, limits, first in self.per_member(name, given):
            last = first + len(block.leaves)
            own = values[first:last] if values else None
            dtype = self[name].score_dtype
            scores = [norm(block.elements(b, own), 2, dtype) for b in range(block.numblk)]
            for b, score in enumerate(scores):
                check_clear(score, limits[b], dtype)
            kept += self.rewrite(block, into[first:last] if into else None,
                                 lambda b, _: DEAD if scores[b] < limits[b] else UNCHANGED)
            total += block.numblk
        return ints(total, -1, kept, 0, 0)

    def soft_threshold(self, name, thresholds, conditioners=None, eps=-1.0, atol=-1.0, max_iter=0,
                       scale=0, into=None):
        total = kept = 0
        metric = self.arrays(conditioners) if conditioners else None
        into = self.arrays(into) if into else None
        eps = EPSILON[self[name].score_dtype] if eps < 0 else Fraction(eps)
        given = [float(t) for t in self[thresholds].values]
        for block, limits, first in self.per_member(name, given):
            last = first + len(block.leaves)
            own = metric[first:last] if metric else None
            factor = square_root(Fraction(block.numel_per_block)) if scale else 1

            def solved(b, parts):
                t = limits[b] if limits[b] == math.inf else Fraction(limits[b]) * factor
                if own:
                    return shrink_conditioned(parts, block.parts(b, own), t)
                return shrink(parts, t, eps)
            ulps = conditioned_ulps(atol) if own else euclidean_ulps
            kept += self.rewrite(block, into[first:last] if into else None, solved, ulps)
            total += block.numblk
        return ints(total, -1, kept, 0, 0)

    def set_data(self, block, source):
        for leaf, array in zip(self[block].leaves, self.arrays(source)):
            read = array.values[leaf.view.where]
            leaf.view.array.values[leaf.view.where] = numpy.array(
                [nearest(leaf.view.dtype, float(x)) for x in read.ravel()]).reshape(read.shape)
        return "ok"

    # --- rearranging ---

    def spread(self, block, per_block, out, dtype, ulps=0):
        """A number per block, repeated over its elements."""
        for leaf, name in zip(block.leaves, listed(out)):
            values = numpy.zeros(leaf.view.numel, dtype=number_type(dtype))
            for b in range(block.numblk):
                values[leaf.block_places(b)] = per_block[b]
            self.give(name, dtype, values, ulps)
        return "ok"

    def block_masks(self, block, mask, out):
        return self.spread(self[block], [int(m != 0) for m in self[mask].values], out, "u8")

    def block_view(self, block, reorder):
        leaf, = self[block].leaves
        v = leaf.view
        return "text " + cut_text(v.shape, v.stride, v.offset, leaf.shape, reorder)

    def broadcast_fake(self, block):
        shape = [n for extent in self[block].grid for n in (extent, 1)]
        return "text " + text_of(shape, contiguous(shape))

    def expand_block_tensor(self, block):
        grid = self[block].grid
        return "text " + text_of(grid, contiguous(grid))

    def gathered(self, block, out):
        dtypes = {leaf.view.dtype for leaf in block.leaves}
        dtype = dtypes.pop() if len(dtypes) == 1 else block.score_dtype
        rows = [nearest(dtype, x) for b in range(block.numblk) for x in block.elements(b)]
        return self.give(out, dtype, rows)

    def merged(self, block, out):
        return self.gathered(self[block], out)

    def broadcast(self, block, values, out):
        given = self[values]
        return self.spread(self[block], given.values, out, given.dtype, given.ulps)

    def view_block_view(self, view, shape, reorder):
        v = self[view]
        return "text " + cut_text(v.shape, v.stride, v.offset, spanned(shape, v.shape), reorder)

    def view_merged(self, view, shape, out):
        return self.gathered(Block.of(self[view], listed(shape)), out)

    def view_broadcast(self, view, shape, values, out):
        given = self[values]
        return self.spread(Block.of(self[view], listed(shape)), given.values, out, given.dtype)

    # --- scopes ---

    def scope_scores(self, scope, p=2, values=None, scores=None):
        """Per scope, the scores of its blocks in order."""
        n = scope.numblk_per_scope
        if scores:
            given = [float(x) for x in self[scores].values]
            return [given[s * n:(s + 1) * n] for s in range(scope.numscope)]
        arrays = self.arrays(values) if values else None
        rows = [[] for _ in range(scope.numscope)]
        for block, blocks, own in scope.members_with(arrays):
            for s, indices in enumerate(blocks):
                rows[s] += [norm(block.elements(int(b), own), p, scope.score_dtype)
                            for b in indices]
        return rows

    def scope_norms(self, scope, p, out):
        x = self[scope]
        return self.give(out, x.score_dtype, sum(self.scope_scores(x, p), []),
                         norm_ulps(p, x.score_dtype))

    def block_to_scope(self, scope, values, out):
        x = self[scope]
        given = self.arrays(values)
        rows = [[given[m].values[b] for m, b in x.blocks(s)] for s in range(x.numscope)]
        return self.give(out, given[0].dtype, rows, given[0].ulps)

    def scope_to_block(self, scope, values, out):
        x = self[scope]
        given = self[values]
        for m, name in enumerate(listed(out)):
            numbers = numpy.zeros(x.members[m][0].numblk, dtype=number_type(given.dtype))
            for s in range(x.numscope):
                numbers[[b for member, b in x.blocks(s) if member == m]] = given.values[s]
            self.give(name, given.dtype, numbers, given.ulps)
        return "ok"

    def block_to_scope_view(self, scope, reorder):
        (block, blocks), = self[scope].members
        part = [whole // outer for whole, outer in zip(block.grid, blocks.shape[:-1])]
        return "text " + cut_text(block.grid, contiguous(block.grid), 0, part, reorder)

    def kth(self, scope, k, out, values, scores, number):
        x = self[scope]
        k = listed(k)
        k = k * x.numscope if len(k) == 1 else k
        found = [number(row, [row[i] for i in ranking(row)], k[s])
                 for s, row in enumerate(self.scope_scores(x, 2, values, scores))]
        return self.give(out, x.score_dtype, found, 0 if scores else norm_ulps(2, x.score_dtype))

    def kth_largest(self, scope, k, out, values=None, scores=None):
        return self.kth(scope, k, out, values, scores, lambda _, ranked, k: ranked[k - 1])

    def kth_mid(self, scope, k, out, k_weight=1.0, values=None, scores=None):
        dtype = self[scope].score_dtype

        def middle(_, ranked, k):
            upper, lower = ranked[k - 1], ranked[k]
            if math.isnan(lower):
                return math.nan
            if math.isnan(upper):
                return math.inf
            if math.isinf(upper) or math.isinf(lower):
                return upper
            weight = Fraction(k_weight)
            exact = (weight * Fraction(upper) + Fraction(lower)) / (weight + 1)
            mid = nearest(dtype, exact)
            assert mid == exact or mid > lower or upper == lower
            return mid
        result = self.kth(scope, k, out, values, scores, middle)
        self[out].ulps = max(1, self[out].ulps)
        return result

    def selected(self, scope, counts, values, scores, keep_all):
        """Kept blocks as a set of (member, block), and the report."""
        counts = listed(counts)
        counts = counts * scope.numscope if len(counts) == 1 else counts
        kept = set()
        ties = 0
        for s, row in enumerate(self.scope_scores(scope, 2, values, scores)):
            chosen, tied = select(row, counts[s], keep_all, scope.score_dtype)
            blocks = scope.blocks(s)
            kept |= {blocks[i] for i in chosen}
            ties += tied
        total = scope.numscope * scope.numblk_per_scope
        return kept, ints(total, sum(counts), len(kept), ties, 0)

    def keep(self, scope, kept, into):
        first = 0
        for m, (block, _) in enumerate(scope.members):
            last = first + len(block.leaves)
            self.rewrite(block, into[first:last] if into else None,
                         lambda b, _: UNCHANGED if (m, b) in kept else DEAD)
            first = last

    def keep_top(self, scope, counts, values=None, scores=None, ties=None, into=None):
        x = self[scope]
        kept, report = self.selected(x, counts, values, scores, ties == "keep_all")
        self.keep(x, kept, self.arrays(into) if into else None)
        return report

    def masks(self, scope, out, counts=None, values=None, scores=None, block_mask=None, ties=None):
        x = self[scope]
        if block_mask:
            given = self[block_mask].values.reshape(x.numscope, -1)
            kept = {place for s in range(x.numscope) for i, place in enumerate(x.blocks(s))
                    if given[s][i] != 0}
            report = ints(x.numscope * x.numblk_per_scope, len(kept), len(kept), 0, 0)
        else:
            kept, report = self.selected(x, counts, values, scores, ties == "keep_all")
        names = iter(listed(out))
        for m, (block, _) in enumerate(x.members):
            per_block = [int((m, b) in kept) for b in range(block.numblk)]
            self.spread(block, per_block, [next(names) for _ in block.leaves], "u8")
        return report

    # --- conveniences ---

    def prune_nm(self, view, axis, n, m, into=None):
        v = self[view]
        shape = [1] * len(v.shape)
        shape[axis] = m
        scope = Scope.of(Block.of(v), shape)
        kept, report = self.selected(scope, [n], None, None, False)
        self.keep(scope, kept, self.arrays(into) if into else None)
        return report

    def prune_unstructured(self, view, sparsity, into=None):
        scope = Scope.of(Block.of(self[view]))
        stay = self[view].numel - floor_count(sparsity * self[view].numel)
        kept, report = self.selected(scope, [stay], None, None, False)
        self.keep(scope, kept, self.arrays(into) if into else None)
        return report

    def soft_threshold_blocks(self, view, shape, threshold, into=None):
        block = Block.of(self[view], listed(shape))
        eps = EPSILON[block.score_dtype]
        t = threshold if threshold == math.inf else Fraction(threshold)
        kept = self.rewrite(block, self.arrays(into) if into else None,
                            lambda _, parts: shrink(parts, t, eps), euclidean_ulps)
        return ints(block.numblk, -1, kept, 0, 0)


def exact_product(x, y):
    """A Fraction, or a float where it is none."""
    if math.isfinite(x) and math.isfinite(y):
        return Fraction(x) * Fraction(y) if x != 0 else math.copysign(0.0, x) * y
    return x * y


def euclidean_ulps(dtype):
    """Double arithmetic before one rounding; that of f64 data shows."""
    return 16 if dtype == "f64" else 1


def conditioned_ulps(atol):
    """The default tolerance of 1e-8 shows in f64 alone."""
    return lambda dtype: (64 if atol == 0 else 2**27) if dtype == "f64" else 2


def ints(*numbers):
    return "ints " + ",".join(str(int(n)) for n in numbers)


def listed(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def parsed(text):
    """Shape, stride (or None) and offset of a view's text."""
    text = text.replace(" ", "")
    text, _, offset = text.partition("+")
    shape, _, stride = text.partition(":")

    def numbers(part):
        return [int(n) for n in part.strip("()").split(",")]
    return numbers(shape), numbers(stride) if stride else None, int(offset or 0)
