# SPDX-License-Identifier: Apache-2.0
"""PyTorch's CPU tensors, in place by DLPack."""

import pytest

import sparsekit as sk


@pytest.fixture
def torch():
    # Not before the first test: collecting garbage among its objects makes other tests slow.
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_torch_tensors(torch, dtype):
    kind = getattr(torch, dtype)
    weights = torch.tensor([[4.0, -3, 2, 1], [1, 2, -3, 4]], dtype=kind)
    view = sk.View(weights)
    assert view.address == weights.data_ptr()
    sk.prune_nm(view, 2, 4)
    assert weights.tolist() == [[4, -3, 0, 0], [0, 0, -3, 4]]


def test_torch_parameters_and_strides(torch):
    parameter = torch.nn.Parameter(torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    view = sk.View(parameter.T)
    assert view.shape == (3, 2) and view.stride == (1, 3)
    sk.BlockSpec(view, (1, 2)).apply_mask([[1], [0], [0]])
    assert parameter.tolist() == [[0, 2, 3], [0, 5, 6]]
    assert sk.View(parameter).param is parameter


def test_torch_operands_and_into(torch):
    weights = torch.tensor([[3.0, 4], [6, 8]])
    target = torch.zeros(2, 2)
    block = sk.BlockSpec(weights, (1, 2))
    report = block.hard_threshold(torch.tensor([6.0, 6.0]), into=target)
    assert report.achieved == 1
    assert target.tolist() == [[0, 0], [6, 8]] and weights.tolist() == [[3, 4], [6, 8]]


def test_torch_gradient_with_its_history(torch):
    weights = torch.nn.Parameter(torch.tensor([1.0, 2, 3, 4]))
    (weights * torch.tensor([4.0, 3, 2, 1])).sum().backward()
    scope = sk.ScopeSpec(sk.BlockSpec(weights))
    scope.hard_threshold(nnz=2, values=weights.grad)
    assert weights.tolist() == [1, 2, 0, 0]


def test_torch_of_another_device(torch):
    with pytest.raises(sk.UnavailableError):
        sk.View(torch.zeros(4, device="meta"))


def test_torch_layers(torch):
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 8)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    masking = sk.Masking(sk.CosineDecay(0.3, 20), grow="gradient", dense_gradients=True)
    masking.add("fc", model.weight, gradient=lambda: model.weight.grad)
    masking.initialise(0.25, "erdos_renyi")
    inputs, targets = torch.randn(32, 16), torch.randn(32, 8)
    losses = []
    for t in range(1, 21):
        optimiser.zero_grad()
        loss = ((model(inputs) - targets) ** 2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if t % 5 == 0:
            masking.update()
        masking.step()
        assert int((model.weight != 0).sum()) <= masking.baseline == 32
    assert losses[-1] < losses[0]
