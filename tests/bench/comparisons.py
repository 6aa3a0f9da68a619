"""The operations of the side-by-side, each as a user of another library would write it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np
import torch

from library import Blocks, Library

# Each works on the weights in place, or gives an array of its own.
NumpyFunction = Callable[[np.ndarray], np.ndarray]
TorchFunction = Callable[[torch.Tensor], torch.Tensor]
EPS = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Comparison:
    name: str
    sparsekit: NumpyFunction
    torch: dict[str, TorchFunction]
    numpy: dict[str, NumpyFunction]
    # Blocks live or die: a tie, or a norm at the threshold, may be settled otherwise by a peer.
    decides: bool = False


@dataclass(frozen=True)
class Layout:
    """Blocks of a square matrix, and views of it whose axes `..._dims` run inside a block."""

    name: str
    blocks: Blocks
    grid: int
    numel_per_block: int
    torch: Callable[[torch.Tensor], torch.Tensor]
    numpy: Callable[[np.ndarray], np.ndarray]
    torch_dims: tuple[int, ...]
    numpy_dims: tuple[int, ...]


def rows_of_64(library: Library, side: int) -> Layout:
    return Layout("rows 1x64", Blocks(library, (side, side), (1, 64)), side * side // 64, 64,
                  lambda w: w.view(side, side // 64, 64),
                  lambda w: w.reshape(side, side // 64, 64), (2,), (2,))


def tiles(library: Library, side: int) -> Layout:
    return Layout("tiles 16x16", Blocks(library, (side, side), (16, 16), scope=()),
                  side * side // 256, 256,
                  lambda w: w.view(side, side).unfold(0, 16, 16).unfold(1, 16, 16),
                  lambda w: w.reshape(side // 16, 16, side // 16, 16), (2, 3), (1, 3))


def columns(library: Library, side: int) -> Layout:
    return Layout("columns", Blocks(library, (side, side), (side, 1)), side, side,
                  lambda w: w.view(side, side), lambda w: w.reshape(side, side), (0,), (0,))


def strided_pairs(library: Library, side: int) -> Layout:
    shape, stride = (side, side // 16, 8, 2), (side, 16, 1, 8)
    return Layout("strided pairs", Blocks(library, shape, (1, 1, 1, 2), stride),
                  side * side // 2, 2,
                  lambda w: torch.as_strided(w, shape, stride),
                  lambda w: np.lib.stride_tricks.as_strided(w, shape, [4 * s for s in stride]),
                  (3,), (3,))


# --- PyTorch ------------------------------------------------------------------------------------


def torch_norms(x: torch.Tensor, inside: tuple[int, ...], keep: bool = False) -> torch.Tensor:
    return torch.linalg.vector_norm(x, 2, dim=inside, keepdim=keep)


def torch_soft(w: torch.Tensor, layout: Layout, threshold: float) -> torch.Tensor:
    x = layout.torch(w)
    norms = torch_norms(x, layout.torch_dims, keep=True)
    x.mul_((1 - threshold / (norms + EPS)).clamp_(min=0))
    return w


def torch_hard(w: torch.Tensor, layout: Layout, threshold: float) -> torch.Tensor:
    x = layout.torch(w)
    x.mul_(torch_norms(x, layout.torch_dims, keep=True) >= threshold)
    return w


def torch_keep_by_topk(w: torch.Tensor, scope: int, count: int) -> torch.Tensor:
    x = w.view(-1, scope)
    kept = x.abs().topk(count, dim=1, sorted=False).indices
    x.mul_(torch.zeros_like(x).scatter_(1, kept, 1))
    return w


def torch_keep_by_argsort(w: torch.Tensor, scope: int, count: int) -> torch.Tensor:
    x = w.view(-1, scope)
    x.scatter_(1, torch.argsort(x.abs(), dim=1)[:, : scope - count], 0)
    return w


def torch_keep_by_kthvalue(w: torch.Tensor, scope: int, count: int) -> torch.Tensor:
    x = w.view(-1, scope)
    magnitudes = x.abs()
    last_pruned = magnitudes.kthvalue(scope - count, dim=1, keepdim=True).values
    x.mul_(magnitudes > last_pruned)
    return w


def torch_keep_tiles(w: torch.Tensor, layout: Layout, count: int) -> torch.Tensor:
    x = layout.torch(w)
    norms = torch_norms(x, layout.torch_dims)
    keep = torch.zeros(norms.numel()).scatter_(0, norms.flatten().topk(count).indices, 1)
    x.mul_(keep.view(*norms.shape, 1, 1))
    return w


def torch_conditioned(w: torch.Tensor, h: torch.Tensor, layout: Layout,
                      threshold: float) -> torch.Tensor:
    """Bisection for mu ||h w / (h + mu)|| = t, to the last bit of float."""
    x, metric = layout.torch(w), layout.torch(h)
    scaled = x * metric
    norms = torch_norms(scaled, layout.torch_dims, keep=True)
    excess = (norms - threshold).clamp_(min=0)
    low = threshold * metric.amin(dim=layout.torch_dims, keepdim=True) / excess
    high = threshold * metric.amax(dim=layout.torch_dims, keepdim=True) / excess
    for _ in range(24):
        middle = (low + high) / 2
        shrunk = scaled / (metric + middle)
        above = middle * torch_norms(shrunk, layout.torch_dims, keep=True) > threshold
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    x.copy_(torch.where(excess > 0, scaled / (metric + (low + high) / 2), torch.zeros(())))
    return w


# --- NumPy --------------------------------------------------------------------------------------


def numpy_norms(x: np.ndarray, inside: tuple[int, ...], keep: bool = False) -> np.ndarray:
    return np.sqrt(np.sum(x * x, axis=inside, keepdims=keep))


def numpy_soft(w: np.ndarray, layout: Layout, threshold: float) -> np.ndarray:
    x = layout.numpy(w)
    norms = numpy_norms(x, layout.numpy_dims, keep=True)
    x *= np.maximum(1 - np.float32(threshold) / (norms + np.float32(EPS)), 0)
    return w


def numpy_hard(w: np.ndarray, layout: Layout, threshold: float) -> np.ndarray:
    x = layout.numpy(w)
    x *= numpy_norms(x, layout.numpy_dims, keep=True) >= threshold
    return w


def numpy_mask_by_copy(w: np.ndarray, prune: np.ndarray) -> np.ndarray:
    np.copyto(w, 0, where=prune)
    return w


def numpy_mask_by_multiply(w: np.ndarray, keep: np.ndarray) -> np.ndarray:
    w *= keep
    return w


def numpy_keep_by_argsort(w: np.ndarray, scope: int, count: int) -> np.ndarray:
    x = w.reshape(-1, scope)
    np.put_along_axis(x, np.argsort(np.abs(x), axis=1)[:, : scope - count], 0, axis=1)
    return w


def numpy_keep_by_argpartition(w: np.ndarray, scope: int, count: int) -> np.ndarray:
    x = w.reshape(-1, scope)
    pruned = np.argpartition(np.abs(x), scope - count - 1, axis=1)[:, : scope - count]
    np.put_along_axis(x, pruned, 0, axis=1)
    return w


def numpy_keep_by_partition(w: np.ndarray, scope: int, count: int) -> np.ndarray:
    x = w.reshape(-1, scope)
    magnitudes = np.abs(x)
    last_pruned = np.partition(magnitudes, scope - count - 1, axis=1)[:, scope - count - 1]
    x *= magnitudes > last_pruned[:, None]
    return w


# --- the comparisons ----------------------------------------------------------------------------


def norm_comparison(layout: Layout) -> Comparison:
    out = np.empty(layout.grid, np.float32)
    return Comparison(
        f"norms p=2, {layout.name}",
        lambda w: layout.blocks.norms(w, 2.0, out),
        {"PyTorch": lambda w: torch_norms(layout.torch(w), layout.torch_dims)},
        {"NumPy": lambda w: numpy_norms(layout.numpy(w), layout.numpy_dims)})


def soft_comparison(layout: Layout) -> Comparison:
    threshold = math.sqrt(layout.numel_per_block)
    return Comparison(
        f"soft_threshold, {layout.name}",
        lambda w: layout.blocks.soft_threshold(w, threshold),
        {"PyTorch": lambda w: torch_soft(w, layout, threshold)},
        {"NumPy": lambda w: numpy_soft(w, layout, threshold)})


def hard_comparison(layout: Layout) -> Comparison:
    threshold = math.sqrt(layout.numel_per_block)
    return Comparison(
        f"hard_threshold, {layout.name}",
        lambda w: layout.blocks.hard_threshold(w, threshold),
        {"PyTorch": lambda w: torch_hard(w, layout, threshold)},
        {"NumPy": lambda w: numpy_hard(w, layout, threshold)}, decides=True)


def conditioned_comparison(layout: Layout, side: int) -> Comparison:
    spread = np.random.default_rng(1).standard_normal(side * side, dtype=np.float32)
    conditioners = np.exp2(2 * spread)
    metric = torch.from_numpy(conditioners)
    threshold = math.sqrt(layout.numel_per_block)
    return Comparison(
        f"conditioned soft_threshold, {layout.name}",
        lambda w: layout.blocks.soft_threshold(w, threshold, conditioners),
        {"PyTorch, bisection": lambda w: torch_conditioned(w, metric, layout, threshold)}, {})


def multiplier_comparison(layout: Layout) -> Comparison:
    factors = np.random.default_rng(2).uniform(0.5, 1.5, layout.grid).astype(np.float32)
    tensor = torch.from_numpy(factors)

    def with_torch(w: torch.Tensor) -> torch.Tensor:
        x = layout.torch(w)
        x.mul_(tensor.view(*x.shape[:-1], 1))
        return w

    def with_numpy(w: np.ndarray) -> np.ndarray:
        x = layout.numpy(w)
        x *= factors.reshape(*x.shape[:-1], 1)
        return w

    return Comparison(f"apply_multiplier, {layout.name}",
                      lambda w: layout.blocks.apply_multiplier(w, factors),
                      {"PyTorch": with_torch}, {"NumPy": with_numpy})


def mask_comparison(library: Library, side: int) -> Comparison:
    prune = np.random.default_rng(3).random(side * side) < 0.5
    blocks = Blocks(library, (side, side), ())
    keep = ~prune
    prune_tensor, keep_tensor = torch.from_numpy(prune), torch.from_numpy(keep)
    return Comparison("apply_mask, elements",
                      lambda w: blocks.apply_mask(w, prune.view(np.uint8)),
                      {"PyTorch, masked_fill_": lambda w: w.masked_fill_(prune_tensor, 0),
                       "PyTorch, mul_": lambda w: w.mul_(keep_tensor)},
                      {"NumPy, copyto": lambda w: numpy_mask_by_copy(w, prune),
                       "NumPy, multiply": lambda w: numpy_mask_by_multiply(w, keep)})


def nm_comparison(library: Library, side: int, m: int) -> Comparison:
    blocks = Blocks(library, (side, side), (), scope=(1, m))
    n = m // 2
    return Comparison(
        f"keep {n}:{m}, contiguous", lambda w: blocks.keep_top(w, n),
        {"PyTorch, topk": lambda w: torch_keep_by_topk(w, m, n),
         "PyTorch, argsort": lambda w: torch_keep_by_argsort(w, m, n)},
        {"NumPy, argsort": lambda w: numpy_keep_by_argsort(w, m, n),
         "NumPy, argpartition": lambda w: numpy_keep_by_argpartition(w, m, n)}, decides=True)


def top_comparison(library: Library, side: int, name: str, rows: int) -> Comparison:
    """Half of the elements of each group of `rows` rows."""
    blocks = Blocks(library, (side, side), (), scope=(rows, side))
    scope = rows * side
    count = scope // 2
    return Comparison(
        f"keep_top 50 %, {name}", lambda w: blocks.keep_top(w, count),
        {"PyTorch, kthvalue": lambda w: torch_keep_by_kthvalue(w, scope, count),
         "PyTorch, topk": lambda w: torch_keep_by_topk(w, scope, count)},
        {"NumPy, partition": lambda w: numpy_keep_by_partition(w, scope, count)}, decides=True)


def tiles_comparison(layout: Layout) -> Comparison:
    count = layout.grid // 2
    return Comparison(f"keep_top 50 %, all {layout.name}",
                      lambda w: layout.blocks.keep_top(w, count),
                      {"PyTorch, topk": lambda w: torch_keep_tiles(w, layout, count)}, {},
                      decides=True)


def all_comparisons(library: Library, side: int) -> list[Comparison]:
    rows, squares = rows_of_64(library, side), tiles(library, side)
    pairs = strided_pairs(library, side)
    return [
        *(norm_comparison(layout) for layout in (rows, squares, columns(library, side), pairs)),
        *(soft_comparison(layout) for layout in (rows, squares, pairs)),
        hard_comparison(rows),
        hard_comparison(squares),
        conditioned_comparison(rows, side),
        multiplier_comparison(rows),
        mask_comparison(library, side),
        nm_comparison(library, side, 4),
        nm_comparison(library, side, 16),
        top_comparison(library, side, "per row", 1),
        top_comparison(library, side, "all elements", side),
        tiles_comparison(squares),
    ]
