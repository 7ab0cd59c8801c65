"""LayerAttPooler against its equations, written out, and their limits."""

import pytest
import torch
from torch import nn
from transformers import BertConfig

from tests.support import toys
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts import build_readout
from workflow_scripts.models.readouts.layer_attention import POOLINGS
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.readouts import LayerAttention

BLOCK = {
    "kind": "layer_attention", "pooling": "attention_cls_avg", "weights": "softmax", "projection": "rrelu",
    "embeddings": True, "divisor": "layers", "first_layer": 0,
}  # fmt: skip
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
BATCH = TokenBatch(torch.full_like(MASK, 7), MASK)
ATTENTIVE = [name for name, (sides, _) in POOLINGS.items() if sides]


def fresh(width=8, depth=12, **changes):
    torch.manual_seed(0)
    config = LayerAttention.parse(BLOCK | changes, "readout")
    backbone = BertConfig(hidden_size=width, num_hidden_layers=depth, num_attention_heads=1)
    return build_readout(config, backbone).double().eval()


def make(*arguments, **changes):
    """A readout with ten times the initial weights, so that layers differ."""
    readout = fresh(*arguments, **changes)
    for weight in readout.parameters():
        weight.data *= 10
    return readout


def states(depth=12, width=8, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(2, 4, width, generator=draw, dtype=torch.float64) for _ in range(depth + 1))


def means(hidden):
    """[CLS] and average of every layer, (B, L, D), sentence by sentence."""
    averages = [torch.stack([state[0].mean(0), state[1, :3].mean(0)]) for state in hidden]
    return torch.stack([state[:, 0] for state in hidden], 1), torch.stack(averages, 1)


def alpha(readout, hidden):
    return readout.attention(*readout.layers(hidden, MASK))


def test_equations_1_to_3_written_out_as_loops():
    readout, hidden = make(), states()
    cls, avg = means(hidden)
    found = readout.read(hidden, *BATCH[:2])
    phi = nn.RReLU().eval()
    for row in range(2):
        queries = [phi(readout.query.weight @ cls[row, i]) for i in range(13)]
        keys = [phi(readout.key.weight @ avg[row, j]) for j in range(13)]
        values = [phi(readout.value.weight @ avg[row, j]) for j in range(13)]
        read = []
        for query in queries:
            scores = torch.stack([torch.exp(query @ key / 13) for key in keys])
            weights = scores / scores.sum()
            read.append(sum(weight * value for weight, value in zip(weights, values, strict=True)))
        torch.testing.assert_close(found[row], torch.stack(read).mean(dim=0))


def test_weights_of_a_layer_sum_to_1():
    """O-53: 13 of them, positive under the softmax; a ratio may be negative, as printed they sum to anything."""
    weights = alpha(make(), states())
    assert weights.shape == (2, 13, 13)
    assert (weights > 0).all()
    ones = torch.ones(2, 13, dtype=torch.float64)
    torch.testing.assert_close(weights.sum(dim=-1), ones)
    ratio = alpha(make(weights="ratio", projection="linear"), states())
    torch.testing.assert_close(ratio.sum(dim=-1), ones)
    assert (ratio < 0).any()
    printed = alpha(make(weights="diagonal", projection="linear"), states())
    torch.testing.assert_close(printed[:, 0], ratio.diagonal(dim1=1, dim2=2))
    torch.testing.assert_close(printed, printed[:, :1].expand(-1, 13, -1))


def test_without_queries_all_layers_weigh_the_same():
    """O-54."""
    readout, hidden = make(), states()
    readout.query.weight.data.zero_()
    torch.testing.assert_close(alpha(readout, hidden), torch.full((2, 13, 13), 1 / 13, dtype=torch.float64))
    values = readout.activation(readout.value(means(hidden)[1]))
    torch.testing.assert_close(readout.read(hidden, *BATCH[:2]), values.mean(dim=1))


def test_where_all_averages_are_equal_the_queries_do_not_matter():
    """O-55."""
    readout, hidden = make(), states()
    same = [hidden[0].clone() for _ in hidden]
    for layer, state in enumerate(same):  # another [CLS], and a second token that keeps the average
        state[:, 0] += layer
        state[:, 1] -= layer
    expected = readout.activation(readout.value(means(same)[1][:, 0]))
    torch.testing.assert_close(readout.read(same, *BATCH[:2]), expected)


def test_the_order_of_the_layers_does_not_matter():
    """O-56; the concatenated vector is that of the last layer by its place."""
    readout, hidden = make(), states()
    order = torch.randperm(13, generator=torch.Generator().manual_seed(1)).tolist()
    shuffled = [hidden[layer] for layer in order]
    torch.testing.assert_close(
        readout.read(shuffled, *BATCH[:2]), readout.read(hidden, *BATCH[:2]), rtol=0, atol=1e-10
    )
    concatenated = make(pooling="cls_last_and_attention_cls_avg")
    found = concatenated.read(shuffled, *BATCH[:2])
    torch.testing.assert_close(found[:, :8], shuffled[-1][:, 0])
    torch.testing.assert_close(found[:, 8:], concatenated.read(hidden, *BATCH[:2])[:, 8:], rtol=0, atol=1e-10)


@pytest.mark.parametrize("projection", ["rrelu", "rrelu_per_query"])
def test_slopes_are_random_while_training_and_11_48ths_at_test(projection):
    """O-57."""
    readout, hidden = make(projection=projection), states()
    assert torch.equal(readout.read(hidden, *BATCH[:2]), readout.read(hidden, *BATCH[:2]))
    negative = readout.activation(torch.tensor([-1.0]))
    assert negative.item() == pytest.approx(-11 / 48)
    readout.train()
    assert not torch.equal(readout.read(hidden, *BATCH[:2]), readout.read(hidden, *BATCH[:2]))
    torch.testing.assert_close(
        make(projection="rrelu_per_query").read(hidden, *BATCH[:2]), make().read(hidden, *BATCH[:2])
    )


def test_the_codes_queries_each_see_slopes_of_their_own():
    """B2: 13 activations of the keys in place of one; without randomness they are the same."""
    readout = make(projection="rrelu_per_query").train()
    calls = []
    readout.activation.register_forward_hook(lambda _m, inputs, _o: calls.append(tuple(inputs[0].shape)))
    readout.read(states(), *BATCH[:2])
    assert calls == [(2, 13, 8), (2, 13, 13, 8), (2, 13, 13, 8)]
    readout.activation = nn.LeakyReLU(11 / 48)
    torch.testing.assert_close(readout.read(states(), *BATCH[:2]), make().read(states(), *BATCH[:2]))


def test_shapes_and_parameters_at_the_width_of_bert(tiny_bert):
    """O-58: three projections, and an MLP from 1536 to 768."""
    readout = make(width=768, pooling="cls_last_and_attention_cls_avg").float()
    assert [tuple(p.shape) for p in readout.parameters()] == [(768, 768)] * 3
    assert sum(p.numel() for p in readout.parameters()) == 1_769_472
    assert readout.width == 1536
    config = LayerAttention.parse(BLOCK | {"pooling": "cls_last_and_attention_cls_avg"}, "readout")
    encoder = SentenceEncoder(
        load_backbone(tiny_bert), load_tokenizer(tiny_bert), config, head=True, head_at_test=True
    )
    assert tuple(encoder.head.dense.weight.shape) == (toys.WIDTH, 2 * toys.WIDTH)
    assert encoder.width == toys.WIDTH
    assert 1536 * 768 + 768 == 1_180_416
    assert 1_769_472 + 1_180_416 == 2_949_888


def test_the_divisor_is_the_number_of_layers():
    """O-61: scores that are 13 times as large and divided by 13 are the reported ones; a root of the width is not."""
    readout, hidden = make(), states()
    other = make(divisor="sqrt_width")
    assert (alpha(other, hidden) - alpha(readout, hidden)).abs().max() > 1e-3
    other.query.weight.data *= 8**0.5 / 13  # RReLU is positively homogeneous
    torch.testing.assert_close(alpha(other, hidden), alpha(readout, hidden))
    fewer = make(embeddings=False)
    assert alpha(fewer, hidden).shape == (2, 12, 12)


def test_the_nine_poolings_of_table_2():
    """Each against a version made by hand; those with attention against their own queries and keys."""
    hidden = states()
    cls, avg = means(hidden)
    ends = (avg[:, 0] + avg[:, -1]) / 2
    fixed = {
        "cls_last": cls[:, -1],
        "avg_last": avg[:, -1],
        "avg_first_last": ends,
        "avg_last_and_avg_first_last": torch.cat([avg[:, -1], ends], dim=1),
        "cls_last_and_avg_last": torch.cat([cls[:, -1], avg[:, -1]], dim=1),
    }
    assert len(fixed) + len(ATTENTIVE) == len(POOLINGS) == 9
    for name, expected in fixed.items():
        torch.testing.assert_close(make(pooling=name).read(hidden, *BATCH[:2]), expected)
    simcse = make(pooling="avg_first_last", first_layer=1).read(hidden, *BATCH[:2])
    torch.testing.assert_close(simcse, (avg[:, 1] + avg[:, -1]) / 2)
    for name, (query_states, key_states) in {
        "attention_cls": (cls, cls),
        "attention_avg": (avg, avg),
    }.items():
        readout = make(pooling=name)
        torch.testing.assert_close(
            readout.read(hidden, *BATCH[:2]), readout.attended(query_states, key_states)
        )
