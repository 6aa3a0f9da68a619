# SPDX-License-Identifier: Apache-2.0
"""What schedules and maskings have to compute, slowly, from the meaning in training.h alone."""
import copy
import math

from model import Model, ints, listed
from numbers_of import ceil_count, floor_count, round_count


def numbers(*values):
    return "numbers " + ",".join(repr(float(v)) for v in values)


class Schedule:
    def __init__(self, kind, prune_rate=0.3, t_max=1, eta_min=0.0, last_epoch=-1, initial=0.0,
                 final=0.0, t_start=0, interval=1, fn=None):
        self.kind, self.t_max, self.t_start, self.interval = kind, t_max, t_start, interval
        self.first, self.last = prune_rate, eta_min
        self.initial, self.final, self.fn = initial, final, fn
        self.position = last_epoch + 1

    def cumulative(self, t):
        if t <= self.t_start:
            return self.initial
        if t >= self.t_max:
            return self.final
        way = (t - self.t_start) / (self.t_max - self.t_start)
        return self.final + (self.initial - self.final) * (1 - way) ** 3

    def rate(self):
        t = self.position
        if self.kind == "cosine":
            if t >= self.t_max:
                return self.last
            left = (1 + math.cos(math.pi * t / self.t_max)) / 2
            return self.last + (self.first - self.last) * left
        if self.kind == "linear":
            return max(0.0, self.first * (1 - t / self.t_max))
        if self.kind == "magnitude":
            return max(0.0, self.cumulative(t) - self.cumulative(t - self.interval))
        return 1 / (2 + t)


# --- random places ------------------------------------------------------------------------------

MASK32 = 2**32 - 1


def philox(counter, key):
    """Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): four numbers of 32 bits."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = (second >> 32) ^ b ^ low, second & MASK32
        c, d = (first >> 32) ^ d ^ high, first & MASK32
        low, high = (low + 0x9E3779B9) & MASK32, (high + 0xBB67AE85) & MASK32
    return a, b, c, d


assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)  # published
INITIAL, GROWTH = 0, 1  # purposes


def random_words(seed, layer, purpose, draw, count):
    key = seed & MASK32, seed >> 32 & MASK32
    words = (philox((layer, purpose, draw, i), key) for i in range(count))
    return [high << 32 | low for low, high, _, _ in words]


# --- densities ----------------------------------------------------------------------------------

def erdos_renyi(shapes, density, kernel):
    """Of layers that stay."""
    raw = [sum(s) / math.prod(s) if kernel else sum(s[:2]) / math.prod(s[:2]) for s in shapes]
    sizes = [math.prod(s) for s in shapes]
    dense = [False] * len(shapes)
    while not all(dense):
        places = sum(-floor_count((1 - density) * n) if full else floor_count(density * n)
                     for n, full in zip(sizes, dense))
        eps = places / sum(p * n for p, n, full in zip(raw, sizes, dense) if not full)
        largest = max(p for p, full in zip(raw, dense) if not full)
        if eps * largest <= 1:
            return [1.0 if full else eps * p for p, full in zip(raw, dense)]
        dense = [full or p == largest for p, full in zip(raw, dense)]
    return [1.0] * len(shapes)


def leaves_masking(mode, shape, first):
    return first if mode == "random" else mode.startswith("struct") and len(shape) <= 2


def densities_of(shapes, mode, density):
    """One per layer; 1 for those that leave."""
    leaving = [leaves_masking(mode, s, i == 0) for i, s in enumerate(shapes)]
    staying = [s for s, left in zip(shapes, leaving) if not left]
    if mode.startswith("struct"):
        n_conv = sum(math.prod(s) for s in staying)
        n_fc = sum(math.prod(s) for s, left in zip(shapes, leaving) if left)
        density = (density * (n_conv + n_fc) - n_fc) / n_conv
    own = iter([density] * len(staying))
    if "erdos_renyi" in mode:
        own = iter(erdos_renyi(staying, density, mode.endswith("kernel")))
    return [1.0 if left else next(own) for left in leaving]


# --- handing out --------------------------------------------------------------------------------

def hand_out(total, shares, caps, units):
    """`total` places in proportion to shares, none above its cap, whole units; fractions by largest
    remainder, lower ones first."""
    parts = [s * total for s in shares]
    while True:
        over = sum(max(0.0, p - cap) for p, cap in zip(parts, caps))
        parts = [min(p, float(cap)) for p, cap in zip(parts, caps)]
        below = [i for i, cap in enumerate(caps) if parts[i] < cap]
        if over == 0 or not below:
            break
        for i in below:
            parts[i] += over / len(below)
    wholes = [math.floor(p / u + 1e-9) for p, u in zip(parts, units)]
    fractions = [round(p / u - w, 7) for p, u, w in zip(parts, units, wholes)]
    given = [w * u for w, u in zip(wholes, units)]
    left = total - sum(given)
    for i in sorted(range(len(parts)), key=lambda i: -fractions[i]):
        if units[i] <= left and given[i] + units[i] <= caps[i]:
            given[i] += units[i]
            left -= units[i]
    return given


# --- layers -------------------------------------------------------------------------------------

class Layer:
    """A layer's arrays, read and written row-major in the shape of its view."""

    def __init__(self, name, view, mask, gradient=None, momentum=None, adam_m1=None, adam_m2=None):
        self.name, self.view, self.mask = name, view, mask
        self.given = {"gradient": gradient, "momentum": momentum, "adam_m1": adam_m1,
                      "adam_m2": adam_m2}
        self.belongs, self.draws, self.requested_density = True, 0, 1.0
        self.nonzeros = self.numel
        self.kernel = math.prod(view.shape[2:])
        self.last = Last()

    @property
    def numel(self):
        return self.view.numel

    def read(self, array):
        return [float(x) for x in array.values[self.view.where.ravel()]]

    def weights(self):
        return self.read(self.view.array)

    def gradient(self):
        return self.read(self.given["gradient"])

    def momentum(self):
        if self.given["momentum"] is not None:
            return self.read(self.given["momentum"])
        moments = zip(self.read(self.given["adam_m1"]), self.read(self.given["adam_m2"]))
        return [m1 / (math.sqrt(m2) + 1e-8) for m1, m2 in moments]

    def active(self):
        return [i for i, keep in enumerate(self.mask.values) if keep]

    def inactive(self):
        return [i for i, keep in enumerate(self.mask.values) if not keep]

    def count(self):
        self.nonzeros = len(self.active())

    def apply(self, arrays):
        """Zeroes what the mask forbids."""
        places = self.view.where.ravel()[self.inactive()]
        for array in arrays:
            if array is not None:
                array.values[places] = 0.0

    def states(self):
        return [self.given[key] for key in ("momentum", "adam_m1", "adam_m2")]

    def kernels(self):
        """The places of each kernel."""
        return [list(range(k, k + self.kernel)) for k in range(0, self.numel, self.kernel)]


class Last:
    """What the last update did to a layer."""

    def __init__(self):
        self.statistic = self.rate = 0.0
        self.requested_removed = self.removed = self.requested_grown = self.grown = 0


CRITERIA = {"mean": lambda x: math.fsum(x) / len(x), "max": max, "min": min, "criterion": sum}


def criterion(mode, values):
    """|criterion| of a kernel's values; NaN if it holds one."""
    if any(math.isnan(x) for x in values):
        return math.nan
    return abs(CRITERIA[mode.rsplit("_", 1)[1]](values))


def weakest(scores, candidates, count):
    """Of equal ones the higher place first, NaN last."""
    def key(i):
        return (math.isnan(scores[i]), 0 if math.isnan(scores[i]) else scores[i], -i)
    return sorted(candidates, key=key)[:max(0, count)]


def strongest(scores, candidates, count):
    """Of equal ones the lower place first, NaN never."""
    fit = [i for i in candidates if not math.isnan(scores[i])]
    return sorted(fit, key=lambda i: (-scores[i], i))[:max(0, count)]


class Masking:
    def __init__(self, schedule, seed=0, prune="magnitude", redistribute="none", grow="none",
                 dense_gradients=0, fn=None):
        self.schedule, self.seed = schedule, seed
        self.prune, self.redistribute, self.grow = prune, redistribute, grow
        self.dense_gradients, self.throws = dense_gradients, fn == "throw"
        self.layers, self.baseline, self.adjusted_growth, self.residuals = [], 0, 0.0, []

    def members(self):
        return [layer for layer in self.layers if layer.belongs]

    # --- initialisation ---

    def initialise(self, mode, density, draw, counts):
        planned = None
        if mode not in ("resume", "lottery_ticket", "lottery_ticket_dist"):
            planned = densities_of([layer.view.shape for layer in self.layers], mode, density)
        for i, layer in enumerate(self.layers):
            if planned and leaves_masking(mode, layer.view.shape, i == 0):
                layer.mask.values[:] = 1
                layer.belongs = False
                continue
            if planned:
                layer.requested_density = planned[i]
                self.draw_mask(i, layer, mode, planned[i], draw)
            elif mode == "lottery_ticket_dist":
                self.place(i, layer, counts[i], 1)
                layer.requested_density = counts[i] / layer.numel
            elif mode == "resume":
                layer.mask.values[:] = [int(w != 0) for w in layer.weights()]
            layer.apply([layer.view.array])
            layer.count()
            if mode in ("resume", "lottery_ticket"):
                layer.requested_density = layer.nonzeros / layer.numel
        self.baseline = sum(layer.nonzeros for layer in self.members())
        self.adjusted_growth, self.residuals = 0.0, []

    def draw_mask(self, i, layer, mode, density, draw):
        unit = layer.kernel if mode.startswith("struct") else 1
        if draw == "exact":
            return self.place(i, layer, round_count(density * (layer.numel // unit)), unit)
        words = random_words(self.seed, i, INITIAL, layer.draws, layer.numel // unit)
        layer.draws += 1
        keep = [int(word < density * 2**64) for word in words]
        layer.mask.values[:] = [k for k in keep for _ in range(unit)]
        return None

    def place(self, i, layer, count, unit):
        """`count` units where the words are smallest."""
        words = random_words(self.seed, i, INITIAL, layer.draws, layer.numel // unit)
        layer.draws += 1
        layer.mask.values[:] = 0
        for k in sorted(range(len(words)), key=lambda k: words[k])[:count]:
            layer.mask.values[k * unit:(k + 1) * unit] = 1

    # --- updates ---

    def update(self):
        members = self.members()
        self.take_statistics(members)
        rate = self.schedule.rate()
        by_schedule = self.schedule.kind == "magnitude"
        if by_schedule:
            numel = sum(layer.numel for layer in members)
            zeros = numel - sum(layer.nonzeros for layer in members)
            missing = max(0, ceil_count(self.schedule.cumulative(self.schedule.position) * numel)
                          - zeros)
            rate = max(0.0, self.schedule.cumulative(self.schedule.position) - zeros / numel)
        for layer in members:
            layer.last.rate = rate
            if not by_schedule and self.prune != "global_magnitude":
                layer.last.rate = self.guarded(layer, rate, len(members))
        if self.prune == "global_magnitude":
            total = missing if by_schedule else ceil_count(rate * self.baseline)
            self.prune_together(members, total)
        else:
            asked = [ceil_count(layer.last.rate * layer.nonzeros) for layer in members]
            if by_schedule:
                asked = hand_out(missing, [layer.numel / numel for layer in members],
                                 [layer.nonzeros for layer in members], [1] * len(members))
            for layer, count in zip(members, asked):
                self.prune_layer(layer, count)
        self.share_growth(members)
        for layer in members:
            self.grow_layer(layer)
            gradients = [] if self.dense_gradients else layer.states() + [layer.given["gradient"]]
            layer.apply([layer.view.array] + gradients)
            layer.count()
        nonzeros = sum(layer.nonzeros for layer in members)
        residual = self.baseline - nonzeros
        self.residuals.append(residual)
        self.adjusted_growth = (self.adjusted_growth / 4 + 0.75 * residual +
                                sum(self.residuals) / len(self.residuals))

        def total_of(what):
            return sum(getattr(layer.last, what) for layer in members)
        return numbers(rate, total_of("requested_removed"), total_of("removed"),
                       total_of("requested_grown"), total_of("grown"), nonzeros, residual)

    def take_statistics(self, members):
        raw = [self.statistic(layer) if layer.nonzeros else 0.0 for layer in members]
        for layer, value in zip(members, raw):
            layer.last = Last()
            layer.last.statistic = value / sum(raw) if sum(raw) else 0.0

    def statistic(self, layer):
        if self.redistribute == "nonzero":
            return float(layer.nonzeros)
        if self.redistribute == "callback":
            return 1.0 + self.layers.index(layer)
        if self.redistribute == "none":
            return 0.0
        values = layer.momentum() if self.redistribute == "momentum" else layer.gradient()
        return math.fsum(abs(values[i]) for i in layer.active()) / layer.nonzeros

    @staticmethod
    def guarded(layer, rate, count):
        sparsity = 1 - layer.nonzeros / layer.numel
        matters = layer.last.statistic > 1 / count
        return min(sparsity, rate) if sparsity < 0.2 and matters else rate

    def prune_together(self, members, total):
        places = [(layer, i) for layer in members for i in range(layer.numel)]
        scores = [abs(w) for layer in members for w in layer.weights()]
        active = [k for k, (layer, i) in enumerate(places) if layer.mask.values[i]]
        for k in weakest(scores, active, total):
            layer, i = places[k]
            layer.mask.values[i] = 0
            layer.last.removed += 1
        for layer in members:
            layer.last.requested_removed = layer.last.removed

    def prune_layer(self, layer, count):
        active = layer.active()
        if self.prune == "callback":
            gone = active[:count]
        elif self.prune == "magnitude":
            gone = weakest([abs(w) for w in layer.weights()], active, count)
        else:
            wanted = -(-count // layer.kernel)
            count = wanted * layer.kernel
            gone = self.weakest_kernels(layer, wanted)
        layer.last.requested_removed, layer.last.removed = count, len(gone)
        layer.mask.values[gone] = 0

    def weakest_kernels(self, layer, wanted):
        """Active places of the weakest kernels that have one."""
        weights, kernels = layer.weights(), layer.kernels()
        scores = [criterion(self.prune, [weights[i] for i in k]) for k in kernels]
        alive = [k for k, places in enumerate(kernels) if layer.mask.values[places].any()]
        return [i for k in weakest(scores, alive, wanted) for i in kernels[k]
                if layer.mask.values[i]]

    def share_growth(self, members):
        """How many places each layer is to grow."""
        if self.grow == "none":
            return
        units = [layer.kernel if self.grow.startswith("struct") else 1 for layer in members]
        given = [layer.last.removed // u * u for layer, u in zip(members, units)]
        shares = [layer.last.statistic for layer in members]
        if self.redistribute not in ("none", "nonzero") and sum(shares):
            total = max(0, sum(layer.last.removed for layer in members) +
                        round_count(self.adjusted_growth))
            caps = [floor_count(0.99 * len(layer.inactive())) // u * u
                    for layer, u in zip(members, units)]
            given = hand_out(total, shares, caps, units)
        for layer, count in zip(members, given):
            layer.last.requested_grown = count

    def grow_layer(self, layer):
        count, free = layer.last.requested_grown, layer.inactive()
        if self.grow == "none" or count == 0:
            return
        if self.grow == "random":
            i = self.layers.index(layer)
            words = random_words(self.seed, i, GROWTH, layer.draws, layer.numel)
            layer.draws += 1
            new = sorted(free, key=lambda place: words[place])[:count]
        elif self.grow == "callback":
            new = free[:count]
        elif self.grow.startswith("struct"):
            new = self.strongest_kernels(layer, count // layer.kernel)
        else:
            values = layer.gradient() if self.grow == "gradient" else layer.momentum()
            new = strongest([abs(x) for x in values], free, count)
        layer.apply([layer.view.array])  # what was pruned, before it may grow again
        layer.mask.values[new] = 1
        layer.last.grown = len(new)

    def strongest_kernels(self, layer, wanted):
        gradient, kernels = layer.gradient(), layer.kernels()
        scores = [criterion(self.grow, [gradient[i] for i in k]) for k in kernels]
        empty = [k for k, places in enumerate(kernels) if not layer.mask.values[places].any()]
        return [i for k in strongest(scores, empty, wanted) for i in kernels[k]]

    # --- facts ---

    def stats_of(self, layers):
        numel = sum(layer.numel for layer in layers)
        nonzeros = sum(layer.nonzeros for layer in layers)

        def mean(what):
            return sum(what(layer) * layer.numel for layer in layers) / numel

        def total_of(what):
            return sum(getattr(layer.last, what) for layer in layers)
        return numbers(numel, nonzeros, numel - nonzeros, nonzeros / numel,
                       mean(lambda layer: layer.requested_density), total_of("statistic"),
                       mean(lambda layer: layer.last.rate), total_of("requested_removed"),
                       total_of("removed"), total_of("requested_grown"), total_of("grown"))


class TrainingModel(Model):
    """The commands of schedules and maskings."""

    def schedule(self, name, kind, **options):
        self.names[name] = Schedule(kind, **options)
        return "ok"

    def schedule_step(self, name, t=None):
        self[name].position = self[name].position + 1 if t is None else t
        return "ok"

    def position(self, name):
        return ints(self[name].position)

    def rate(self, name, current=None):
        schedule = self[name]
        if schedule.fn == "throw":
            return "error callback"
        if current is None:
            return numbers(schedule.rate())
        return numbers(max(0.0, schedule.cumulative(schedule.position) - current))

    def cumulative_sparsity(self, name, t):
        return numbers(self[name].cumulative(t))

    # --- maskings ---

    def masking(self, name, schedule, **options):
        self.names[name] = Masking(self[schedule], **options)
        return "ok"

    def add(self, masking, name, view, **arrays):
        layers = self[masking].layers
        given = {key: self[array] for key, array in arrays.items()}
        layers.append(Layer(name, self[view], **given))
        self[masking].baseline += layers[-1].numel
        return ints(len(layers) - 1)

    def leave(self, masking, layers):
        """The baseline becomes the nonzeros of those that remain."""
        for layer in layers:
            layer.belongs = False
        masking.baseline = sum(layer.nonzeros for layer in masking.members())

    def remove(self, masking, name):
        m = self[masking]
        self.leave(m, [layer for layer in m.members() if layer.name == name])
        return "ok"

    def remove_matching(self, masking, part):
        m = self[masking]
        found = [layer for layer in m.members() if part in layer.name]
        self.leave(m, found)
        return ints(len(found))

    def has_layer(self, masking, layer):
        layers = self[masking].layers
        return ints(0 <= layer < len(layers) and layers[layer].belongs)

    def layer_name(self, masking, layer):
        return "text " + self[masking].layers[layer].name

    def find(self, masking, name):
        names = [layer.name for layer in self[masking].layers]
        return ints(names.index(name) if name in names else -1)

    def layer_count(self, masking):
        return ints(len(self[masking].layers))

    def initialise(self, masking, mode, density=0.0, draw="exact", counts=None):
        self[masking].initialise(mode, density, draw, counts)
        return "ok"

    def densities(self, masking, density, mode):
        shapes = [layer.view.shape for layer in self[masking].layers]
        return numbers(*densities_of(shapes, mode, density))

    def apply(self, masking, what):
        for layer in self[masking].members():
            named = {"weights": [layer.view.array], "momentum": layer.states(),
                     "gradients": [layer.given["gradient"]]}
            layer.apply([array for part in listed(what) for array in named[part]])
        return "ok"

    def step(self, masking):
        m = self[masking]
        for layer in m.members():
            layer.apply([layer.view.array] + ([] if m.dense_gradients else layer.states()))
        m.schedule.position += 1
        return "ok"

    def update(self, masking):
        m = self[masking]
        return "error callback" if m.throws or m.schedule.fn == "throw" else m.update()

    def stats(self, masking, layer=None):
        m = self[masking]
        return m.stats_of(m.members() if layer is None else [m.layers[layer]])

    def baseline(self, masking):
        return ints(self[masking].baseline)

    def adjusted_growth(self, masking):
        return numbers(self[masking].adjusted_growth)

    def state_save(self, masking, array):
        """The blob stands for the state itself: how it is written is the library's own matter."""
        m = self[masking]
        layers = [(layer.belongs, layer.draws, layer.requested_density, layer.nonzeros,
                   copy.copy(layer.last)) for layer in m.layers]
        self.names[array] = (m.seed, m.baseline, m.adjusted_growth, list(m.residuals),
                             m.schedule.position, layers)
        return "ok"

    def state_restore(self, masking, array):
        m = self[masking]
        m.seed, m.baseline, m.adjusted_growth, residuals, m.schedule.position, layers = self[array]
        m.residuals = list(residuals)
        for layer, state in zip(m.layers, layers):
            layer.belongs, layer.draws, layer.requested_density, layer.nonzeros, last = state
            layer.last = copy.copy(last)
        return "ok"
