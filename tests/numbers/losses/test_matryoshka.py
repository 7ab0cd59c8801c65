"""Matryoshka: losses at several widths, against values by hand and against sentence-transformers."""

import math

import pytest
import torch

from tests import material, walk
from tests.steps import loss_of, views_of
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.losses.matryoshka import at_widths, matryoshka
from workflow_scripts.models.dropout import keyed, keys_of


def of_views(views):
    return infonce(views[0], views[1], 0.5)


def test_by_hand():
    """Two sentences and two entries, temperature .5.

    Of both entries: a = (1, 0), b = (0, 1), a+ = a, b+ = b; cosines 1 and 0: log(1 + e^-2) each. Of the first alone:
    rows 1 and 0 against 1 and 0, cosines 1, 0 and 0, 0: (log(1 + e^-2) + log 2) / 2.
    """
    views = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    both, first = math.log1p(math.exp(-2)), (math.log1p(math.exp(-2)) + math.log(2)) / 2
    assert matryoshka(of_views, views, ()).item() == pytest.approx(both, rel=1e-12)
    assert matryoshka(of_views, views, (1,)).item() == pytest.approx(first + both, rel=1e-12)


def test_the_whole_width_counts_once_whether_it_is_named_or_not():
    vectors = torch.randn(3, 8)
    for widths, found in (((), [8]), ((8,), [8]), ((2, 4), [2, 4, 8]), ((8, 2), [8, 2])):
        assert [one.shape[-1] for one in at_widths(vectors, widths)] == found


def test_it_equals_the_loss_of_sentence_transformers_and_so_do_its_gradients():
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss

    ours, theirs = (
        torch.randn(
            2, 8, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64
        ).requires_grad_()
        for _ in range(2)
    )

    class Model(torch.nn.Module):
        """Features are the vectors."""

        def forward(self, features):
            return {"sentence_embedding": features["view"]}

        def get_embedding_dimension(self):
            return 12

    model = Model()
    peer = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model=model, scale=2.0), [3, 7, 12])
    expected = peer([{"view": theirs[0]}, {"view": theirs[1]}], None)
    loss = matryoshka(of_views, ours, (7, 3))
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    loss.backward()
    expected.backward()
    assert ours.grad[..., :3].abs().min() > 0
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-12)


# Every contrastive method

BLOCKS = {
    name: block
    for name, block in walk.blocks().items()
    if material.is_trained(block) and block["module"] != "distil"
}


def at(block, *widths):
    """A block at several widths; a head stays, so that what is contrasted is the embedding."""
    if "base" in block:
        return block | {"base": at(block["base"], *widths)}
    kept = {"head_at_test": True} if "head_at_test" in block else {}
    return block | kept | {"matryoshka": widths} | ({"projector": "head"} if "projector" in block else {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def found(folder, block):
    """Loss of a step, and the gradients of what is trained."""
    objective = walk.made(folder, block).objective
    module = objective.module.double().train()
    torch.manual_seed(2)
    with keyed(keys_of(1, 1)):
        loss = loss_of(objective, 1)
    loss.backward()
    return {
        "": loss.detach(),
        **{name: part.grad for name, part in module.named_parameters() if part.grad is not None},
    }


QUICK = ("simcse", "sscl", "simcse_3r", "jtcse", "diffcse")
"""One method of each way to contrast; others are slow."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in BLOCKS]
)
def test_a_method_is_plain_at_the_whole_width_and_learns_at_others(folder, name):
    plain, whole, narrow = (found(folder, at(BLOCKS[name], *widths)) for widths in ((), (32,), (8, 20)))
    assert plain.keys() == whole.keys() == narrow.keys()
    assert all(torch.equal(plain[part], whole[part]) for part in plain)
    assert narrow[""] > plain[""]
    assert any(not torch.allclose(narrow[part], plain[part]) for part in plain if part)


@pytest.mark.parametrize("name", ["informin_cl", "sscl", "supervised_simcse"])
def test_the_whole_loss_of_a_method_is_taken_at_each_width(folder, name):
    """InforMin-CL's second term is a mean over the entries that are left, SSCL's layers are cut like its vectors."""
    objective = walk.made(folder, at(BLOCKS[name], 8, 20)).objective
    objective.module.eval()
    views = objective.encoder.project(views_of(objective, 1))
    expected = sum(objective.contrast(views[..., :width]) for width in (8, 20, 32))
    torch.testing.assert_close(loss_of(objective, 1), expected)
