# SPDX-License-Identifier: Apache-2.0
"""Cases of schedules and maskings."""
import itertools
import math

from cases_blocks import BAD, DTYPES, mixed
from training_model import numbers

PRUNES = ("magnitude", "global_magnitude", "struct_magnitude_mean", "struct_magnitude_max",
          "struct_magnitude_min", "struct_criterion", "callback")
REDISTRIBUTIONS = ("none", "nonzero", "momentum", "gradient", "callback")
GROWTHS = ("none", "random", "gradient", "momentum", "struct_gradient_mean", "struct_gradient_max",
           "struct_gradient_min", "struct_criterion", "callback")
COSINE = ("cosine", {"prune_rate": 0.3, "t_max": 100})


# --- schedules ----------------------------------------------------------------------------------

def published(c, value, command, *arguments, **options):
    """A number from the literature, to its ten digits; then once more, as the model has it."""
    c.step([command, *arguments], options, numbers(value), "1e-10")
    c.do(command, *arguments, rule="1e-14", **options)


def cases_schedules(suite):
    c = suite.case("schedule_cosine")
    c.do("schedule", "s", "cosine", prune_rate=0.3, t_max=1000, eta_min=0.05)
    c.check("ints 0", "position", "s")
    c.check("numbers 0.3", "rate", "s")
    for t, rate in ((100, 0.2938820645), (500, 0.175), (1000, 0.05), (123456, 0.05)):
        c.do("schedule_step", "s", t=t)
        published(c, rate, "rate", "s")
    c.do("schedule_step", "s")
    c.check("ints 123457", "position", "s")
    c = suite.case("schedule_cosine_last_epoch")
    c.do("schedule", "s", "cosine", prune_rate=0.3, t_max=1000, eta_min=0.05, last_epoch=99)
    c.check("ints 100", "position", "s")
    published(c, 0.2938820645, "rate", "s")
    c = suite.case("schedule_linear")
    c.do("schedule", "s", "linear", prune_rate=0.3, t_max=1000)
    for t in (0, 1, 500, 1000, 2000):
        c.do("schedule_step", "s", t=t)
        c.do("rate", "s", rule="1e-15")
    c = suite.case("schedule_magnitude")
    c.do("schedule", "s", "magnitude", initial=0.0, final=0.8, t_max=65000, t_start=700,
         interval=100)
    for t, sparsity in ((0, 0.0), (700, 0.0), (5000, 0.1500037975), (25000, 0.6074085325),
                        (65000, 0.8), (10**12, 0.8)):
        published(c, sparsity, "cumulative_sparsity", "s", t=t)
    c.do("schedule_step", "s", t=900)
    published(c, 0.0037151105, "rate", "s")
    c.do("schedule_step", "s", t=5000)
    published(c, 0.0500037975, "rate", "s", current=0.1)
    published(c, 0.0, "rate", "s", current=0.2)
    c = suite.case("schedule_custom")
    c.do("schedule", "s", "custom", fn="half")
    c.check("numbers 0.5", "rate", "s")
    c.do("schedule_step", "s")
    c.do("rate", "s", rule="1e-15")
    c.do("schedule_step", "s", t=8)
    c.check("numbers 0.1", "rate", "s")
    c = suite.case("schedule_custom_throw")
    c.do("schedule", "s", "custom", fn="throw")
    c.do("rate", "s")
    c.check("ints 0", "position", "s")
    c = suite.case("schedule_refused")
    c.fails(BAD, "prune_rate", "schedule", "s", "cosine", prune_rate=1.5, t_max=10)
    c.fails(BAD, "eta_min", "schedule", "s", "cosine", prune_rate=0.5, t_max=10, eta_min=math.nan)
    c.fails(BAD, "t_max", "schedule", "s", "cosine", prune_rate=0.5, t_max=0)
    c.fails(BAD, "last_epoch", "schedule", "s", "cosine", prune_rate=0.5, t_max=9, last_epoch=-2)
    c.fails(BAD, "t_max", "schedule", "s", "linear", prune_rate=0.5, t_max=-5)
    c.fails(BAD, "final", "schedule", "s", "magnitude", initial=0.0, final=1.5, t_max=9, t_start=0,
            interval=1)
    c.fails(BAD, "interval", "schedule", "s", "magnitude", initial=0.0, final=0.5, t_max=9,
            t_start=0, interval=0)
    c.do("schedule", "s", "linear", prune_rate=0.5, t_max=10)
    c.fails(BAD, "", "schedule_step", "s", t=-1)
    c.fails(BAD, "", "cumulative_sparsity", "s", t=1)
    c.fails(BAD, "", "rate", "s", current=0.5)
    c.check("ints 0", "position", "s")


# --- nets ---------------------------------------------------------------------------------------

# A convolution, a matrix that lies column-major with a gap, another convolution. Dtypes differ.
NET = (("conv1", "f32", "(4,3,2,2)", 48), ("fc", "f64", "(8,6):(1,8)+3", 51),
       ("conv2", "bf16", "(6,4,3,1):(12,3,1,1)", 72))
DENSE = (("a", "f32", "(10,10)", 100), ("b", "f32", "(10,20)", 200), ("c", "f16", "(5,8)", 40))


def masking_of(c, net=NET, schedule=COSINE, gives=("gradient", "momentum"), **modes):
    """A masking M over a net: weights w0, masks m0, gradients g0, momenta v0, and so on."""
    kind, options = schedule
    c.do("schedule", "s", kind, **options)
    c.do("masking", "M", "s", **modes)
    for i, (name, dtype, layout, size) in enumerate(net):
        add_layer(c, i, name, dtype, layout, size, gives)


def add_layer(c, i, name, dtype, layout, size, gives):
    c.array(f"w{i}", dtype, mixed(f"w {name}", size))
    c.do("view", f"V{i}", dtype, f"w{i}", layout)
    c.do("zeros", f"m{i}", "u8", c.model[f"V{i}"].numel)
    arrays = {"mask": f"m{i}"}
    for letter, key in zip("gvab", ("gradient", "momentum", "adam_m1", "adam_m2")):
        if key not in gives:
            continue
        values = mixed(f"{key} {name}", size)
        c.array(f"{letter}{i}", "f32", [abs(x) for x in values] if key == "adam_m2" else values)
        arrays[key] = f"{letter}{i}"
    c.check(f"ints {i}", "add", "M", name, f"V{i}", **arrays)


def tell_all(c, layers=3):
    """Everything a masking tells."""
    c.do("baseline", "M")
    c.do("adjusted_growth", "M")
    c.do("stats", "M")
    for i in range(layers):
        if c.model["M"].layers[i].belongs:
            c.do("stats", "M", layer=i)


def save_net(c, letters="wm", layers=3):
    c.save(*(f"{letter}{i}" for letter in letters for i in range(layers)))


# --- layers -------------------------------------------------------------------------------------

def cases_layers(suite):
    c = suite.case("masking_layers")
    masking_of(c)
    c.check("ints 3", "layer_count", "M")
    c.check("ints 1", "find", "M", "fc")
    c.check("ints -1", "find", "M", "nobody")
    c.check("text conv2", "layer_name", "M", 2)
    c.check("ints 1", "has_layer", "M", 2)
    c.check("ints 0", "has_layer", "M", 3)
    tell_all(c)
    c = suite.case("masking_removal")
    masking_of(c)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi_kernel")
    c.do("remove", "M", "fc")
    c.check("ints 0", "has_layer", "M", 1)
    c.check("ints 3", "layer_count", "M")
    tell_all(c)
    c.check("ints 2", "remove_matching", "M", "conv")
    c.check("ints 0", "baseline", "M")
    c.fails(BAD, "conv", "remove_matching", "M", "conv")
    c.fails(BAD, "fc", "remove", "M", "fc")
    c = suite.case("masking_refused")
    masking_of(c)
    c.fails(BAD, "fc", "add", "M", "fc", "V0", mask="m0")
    c.fails("SPK_OUT_OF_BOUNDS", "7", "stats", "M", layer=7)
    c.fails("SPK_OUT_OF_BOUNDS", "", "layer_name", "M", 3)
    c.fails(BAD, "density", "initialise", "M", density=1.5, mode="erdos_renyi")
    c.fails(BAD, "initialis", "update", "M")
    c.fails(BAD, "density", "densities", "M", density=math.nan, mode="erdos_renyi")
    c.fails(BAD, "momentum", "masking", "N", "s", grow="momentum")
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.fails(BAD, "initialis", "add", "M", "late", "V0", mask="m0")
    c = suite.case("masking_missing_buffers")
    masking_of(c, gives=(), grow="gradient")
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.fails(BAD, "conv1", "update", "M")
    save_net(c)
    c = suite.case("masking_overlapping_buffers")
    c.do("schedule", "s", "linear", prune_rate=0.5, t_max=10)
    c.do("masking", "M", "s")
    c.do("zeros", "w", "f32", 12)
    c.do("zeros", "m", "u8", 12)
    c.do("view", "V", "f32", "w", "(3,4)")
    c.do("add", "M", "one", "V", mask="m", gradient="w")
    c.fails("SPK_OVERLAP", "gradient", "apply", "M", what=["weights", "gradients"])


# --- initialisation -----------------------------------------------------------------------------

CIFAR = (("conv1", (16, 3, 3, 3)), ("b1", (32, 16, 3, 3)), ("b2", (32, 32, 3, 3)),
         ("b3", (64, 32, 3, 3)), ("b4", (128, 64, 1, 1)), ("fc", (10, 128)))
PUBLISHED = (("erdos_renyi_kernel", 0.1,
              (0.418295, 0.084705, 0.054901, 0.039999, 0.171174, 0.779283)),
             ("erdos_renyi_kernel", 0.2, (0.929827, 0.188290, 0.122040, 0.088915, 0.380503, 1.0)),
             ("erdos_renyi_kernel", 0.5, (1.0, 0.579508, 0.375607, 0.273656, 1.0, 1.0)),
             ("erdos_renyi", 0.2, (1.0, 0.340557, 0.227038, 0.170278, 0.085139, 0.391640)))


def cases_densities(suite):
    c = suite.case("densities_published")
    c.do("schedule", "s", "linear", prune_rate=0.3, t_max=10)
    c.do("masking", "M", "s")
    for name, shape in CIFAR:
        n = math.prod(shape)
        c.do("zeros", f"w_{name}", "f32", n)
        c.do("zeros", f"m_{name}", "u8", n)
        c.do("view", f"V_{name}", "f32", f"w_{name}", shape=shape)
        c.do("add", "M", name, f"V_{name}", mask=f"m_{name}")
    for mode, density, values in PUBLISHED:
        c.step(["densities", "M"], {"density": density, "mode": mode}, numbers(*values), "5.1e-7")
        c.do("densities", "M", density=density, mode=mode)
    for mode in ("random", "struct_random", "struct_erdos_renyi", "struct_erdos_renyi_kernel"):
        c.do("densities", "M", density=0.3, mode=mode)
    c.fails(BAD, "density", "densities", "M", density=0.001, mode="struct_random")


def cases_initialisation(suite):
    for mode in ("random", "erdos_renyi", "erdos_renyi_kernel", "struct_random",
                 "struct_erdos_renyi", "struct_erdos_renyi_kernel"):
        c = suite.case(f"initialise_{mode}")
        masking_of(c, seed=2**40 + 17)
        c.do("densities", "M", density=0.6, mode=mode)
        c.do("initialise", "M", density=0.6, mode=mode)
        tell_all(c)
        save_net(c)
    # A place is drawn if its word is below density 2^64.
    c = suite.case("initialise_bernoulli")
    masking_of(c, seed=5)
    c.do("initialise", "M", density=0.25, mode="erdos_renyi", draw="bernoulli")
    tell_all(c)
    save_net(c)
    for density in (0.0, 1.0):
        c = suite.case(f"initialise_density_{density:.0f}")
        masking_of(c)
        c.do("initialise", "M", density=density, mode="erdos_renyi_kernel")
        tell_all(c)
        save_net(c)
    c = suite.case("initialise_again_draws_afresh")
    masking_of(c, seed=1)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    save_net(c)
    c = suite.case("initialise_largest_seed")
    masking_of(c, seed=2**53 - 1)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    save_net(c)
    c = suite.case("initialise_resume")
    c.do("schedule", "s", "linear", prune_rate=0.3, t_max=10)
    c.do("masking", "M", "s")
    c.array("w0", "f32", [0, 1, -0.0, math.nan, -2, 2.0**-149])
    c.array("m0", "u8", [1, 0, 1, 0, 1, 0])
    c.do("view", "V", "f32", "w0", "(2,3)")
    c.do("add", "M", "one", "V", mask="m0")
    c.do("initialise", "M", mode="resume")
    tell_all(c, 1)
    c.save("m0", "w0")
    c = suite.case("initialise_lottery_ticket")
    c.do("schedule", "s", "linear", prune_rate=0.3, t_max=10)
    c.do("masking", "M", "s")
    c.array("w0", "f32", mixed(1, 6))
    c.array("m0", "u8", [1, 0, 255, 0, 1, 2])
    c.do("view", "V", "f32", "w0", "(2,3)")
    c.do("add", "M", "one", "V", mask="m0")
    c.do("initialise", "M", mode="lottery_ticket")
    tell_all(c, 1)
    c.save("m0", "w0")
    c = suite.case("initialise_lottery_ticket_dist")
    masking_of(c, seed=3)
    c.do("initialise", "M", mode="lottery_ticket_dist", counts=[5, 48, 0])
    tell_all(c)
    save_net(c)
    c.fails("SPK_SHAPE_MISMATCH", "", "initialise", "M", mode="lottery_ticket_dist", counts=[5, 6])


# --- training -----------------------------------------------------------------------------------

def cases_apply_and_step(suite):
    for name, what in (("weights", ["weights"]), ("momentum", ["momentum"]),
                       ("gradients", ["gradients"]), ("all", ["weights", "momentum", "gradients"])):
        c = suite.case(f"masking_apply_{name}")
        masking_of(c)
        for i, (_, _, _, size) in enumerate(NET):
            c.array(f"new{i}", NET[i][1], mixed(f"new {i}", size))
        c.do("initialise", "M", density=0.4, mode="erdos_renyi")
        for i in range(3):
            c.do("block", f"B{i}", f"V{i}")
            c.do("set_data", f"B{i}", source=f"new{i}")
        c.do("apply", "M", what=what)
        save_net(c, "wgv")
    for dense in (0, 1):
        c = suite.case(f"masking_step_dense_{dense}")
        masking_of(c, gives=("gradient", "adam_m1", "adam_m2"), dense_gradients=dense)
        c.do("initialise", "M", density=0.4, mode="erdos_renyi")
        c.do("step", "M")
        c.do("step", "M")
        c.check("ints 2", "position", "s")
        c.do("rate", "s", rule="1e-15")
        save_net(c, "wgab")


def gives_for(redistribute, grow):
    """Buffers that the modes read."""
    gives = []
    if redistribute == "gradient" or "gradient" in grow or grow == "struct_criterion":
        gives.append("gradient")
    if redistribute == "momentum" or grow == "momentum":
        gives.append("momentum")
    return tuple(gives)


def train(c, rounds=2):
    """Updates and steps, with numbers told in between."""
    for _ in range(rounds):
        c.do("update", "M")
        tell_all(c)
        c.do("step", "M")


def cases_updates(suite):
    for prune in PRUNES:
        c = suite.case(f"update_prune_{prune}")
        masking_of(c, prune=prune, grow="gradient", dense_gradients=1, seed=4)
        c.do("initialise", "M", density=0.6, mode="erdos_renyi_kernel")
        train(c)
        save_net(c)
    for redistribute in REDISTRIBUTIONS:
        c = suite.case(f"update_redistribute_{redistribute}")
        masking_of(c, redistribute=redistribute, grow="random", dense_gradients=1, seed=6)
        c.do("initialise", "M", density=0.5, mode="erdos_renyi")
        train(c, 3)
        save_net(c)
    for grow in GROWTHS:
        c = suite.case(f"update_grow_{grow}")
        gives = gives_for("none", grow) or ("gradient",)
        masking_of(c, gives=gives, grow=grow, dense_gradients=1, seed=8)
        c.do("initialise", "M", density=0.5, mode="struct_random" if "struct" in grow else
             "erdos_renyi")
        train(c)
        save_net(c)
    c = suite.case("update_whole_kernels")
    masking_of(c, prune="struct_magnitude_mean", redistribute="gradient",
               grow="struct_gradient_mean", dense_gradients=1)
    c.do("initialise", "M", density=0.6, mode="struct_erdos_renyi_kernel")
    train(c, 3)
    save_net(c)
    c = suite.case("update_masks_gradients")
    masking_of(c, grow="gradient")
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    train(c)
    save_net(c, "wmgv")
    c = suite.case("update_adam")
    masking_of(c, gives=("gradient", "adam_m1", "adam_m2"), redistribute="momentum",
               grow="momentum", dense_gradients=1)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    train(c)
    save_net(c)
    c = suite.case("update_removed_layer")
    masking_of(c, redistribute="gradient", grow="random", dense_gradients=1)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.do("remove", "M", "fc")
    train(c)
    save_net(c)
    c = suite.case("update_low_sparsity_guard")
    masking_of(c, redistribute="nonzero", grow="gradient", dense_gradients=1)
    c.do("initialise", "M", mode="lottery_ticket_dist", counts=[20, 45, 30])
    train(c)
    save_net(c)
    for prune in ("magnitude", "global_magnitude"):
        c = suite.case(f"update_gradual_{prune}")
        masking_of(c, schedule=("magnitude", {"initial": 0.1, "final": 0.9, "t_max": 8,
                                              "t_start": 1, "interval": 1}), prune=prune)
        c.do("initialise", "M", density=1.0, mode="erdos_renyi")
        for _ in range(10):
            c.do("update", "M")
            c.do("step", "M")
        c.do("stats", "M")
        save_net(c)
    c = suite.case("update_custom_schedule")
    masking_of(c, schedule=("custom", {"fn": "half"}), grow="random", seed=9)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    train(c)
    save_net(c)
    for dtype in DTYPES:
        c = suite.case(f"update_rigl_{dtype}")
        net = tuple((name, dtype, layout, size) for name, _, layout, size in DENSE)
        masking_of(c, net=net, grow="gradient", dense_gradients=1)
        c.do("initialise", "M", density=0.2, mode="erdos_renyi")
        train(c, 3)
        save_net(c)


def cases_callbacks_that_throw(suite):
    for kind, mode in (("prune", "callback"), ("prune", "struct_criterion"),
                       ("redistribute", "callback"), ("grow", "callback"),
                       ("grow", "struct_criterion")):
        c = suite.case(f"update_throw_{kind}_{mode}")
        masking_of(c, fn="throw", dense_gradients=1, **{"grow": "random", kind: mode})
        c.do("initialise", "M", density=0.5, mode="erdos_renyi")
        c.check("error callback", "update", "M")
    c = suite.case("update_throw_schedule")
    masking_of(c, schedule=("custom", {"fn": "throw"}), grow="random")
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.check("error callback", "update", "M")
    save_net(c)


# --- save and restore ---------------------------------------------------------------------------

def cases_states(suite):
    for redistribute, grow in itertools.product(("none", "momentum"), ("random", "gradient")):
        c = suite.case(f"restore_{redistribute}_{grow}")
        modes = {"redistribute": redistribute, "grow": grow, "dense_gradients": 1}
        masking_of(c, seed=77, **modes)
        c.do("initialise", "M", density=0.5, mode="erdos_renyi")
        train(c, 1)
        c.do("state_save", "M", "blob")
        # Another masking, with another seed, takes over where the first one was.
        c.do("close", "M")
        c.do("schedule", "s2", "cosine", prune_rate=0.3, t_max=100)
        c.do("masking", "M2", "s2", seed=1, **modes)
        for i, (name, _, _, _) in enumerate(NET):
            c.do("add", "M2", name, f"V{i}", mask=f"m{i}", gradient=f"g{i}", momentum=f"v{i}")
        c.do("state_restore", "M2", "blob")
        c.check("ints 1", "position", "s2")
        for _ in range(2):
            c.do("update", "M2")
            c.do("stats", "M2")
            c.do("step", "M2")
        c.do("adjusted_growth", "M2")
        save_net(c)
    c = suite.case("restore_refused")
    masking_of(c)
    c.do("initialise", "M", density=0.5, mode="erdos_renyi")
    c.do("state_save", "M", "blob")
    c.array("damaged", "u8", [115, 112, 107, 0, 1, 2, 3, 4])
    c.fails(BAD, "blob", "state_restore", "M", "damaged")
    c.do("schedule", "s2", "linear", prune_rate=0.3, t_max=100)
    c.do("masking", "M2", "s2")
    c.fails(BAD, "", "state_restore", "M2", "blob")
    c.do("stats", "M")
