import pytest
import torch

from workflow_scripts.models.readouts.pooling import pool
from workflow_scripts.settings.readouts import pooling as pooling_readout
from workflow_scripts.settings.readouts.pooling import LAYERS


def pooling(pooler, layers=None):
    return pooling_readout.Config(kind="pooling", pooler=pooler, layers=layers)


@pytest.fixture
def states():
    """Hidden states of an encoder of four layers: two sentences, three tokens, width 2."""
    return tuple(torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(layer)) for layer in range(5))


MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])


def test_means_count_every_token_and_no_padding_worked_by_hand():
    last = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], [[1.0, 0.0], [2.0, 6.0], [99.0, 99.0]]])
    pooled = pool([last], MASK, pooling("avg"))
    torch.testing.assert_close(pooled, torch.tensor([[3.0, 5.0], [1.5, 3.0]]))


def test_cls_is_the_first_token_of_the_last_layer(states):
    for pooler in ("cls", "cls_before_pooler"):
        torch.testing.assert_close(pool(states, MASK, pooling(pooler)), states[-1][:, 0])


def test_first_and_last_are_layer_1_and_the_last_by_hand():
    """O-08: layer 0, which one paper's 56.70 takes for the first, gives another vector than layer 1, which gives 60.73."""
    h0 = torch.full((1, 3, 2), 9.0)  # [CLS] a [SEP]
    h1, last = torch.tensor([[[0.0, 6], [3, 0], [0, 0]]]), torch.tensor([[[3.0, 0], [0, 3], [0, 0]]])
    mask = torch.ones(1, 3, dtype=torch.int64)

    def pooled(*layers):
        return pool([h0, h1, last], mask, pooling("avg", layers)).tolist()

    assert pooled(1, -1) == [[1.0, 1.5]]
    assert pooled(0, -1) == [[5.0, 5.0]]


def test_a_layer_named_twice_weighs_twice(states):
    averages = [pool([state], MASK, pooling("avg")) for state in states]
    pooled = pool(states, MASK, pooling("avg", (2, 2, 0)))
    torch.testing.assert_close(pooled, (2 * averages[2] + averages[0]) / 3)


def test_only_cls_is_followed_by_a_head():
    assert [pooler for pooler in LAYERS if pooling(pooler).has_head] == ["cls"]
    assert [pooler for pooler in LAYERS if pooling(pooler).takes_cls] == ["cls", "cls_before_pooler"]
