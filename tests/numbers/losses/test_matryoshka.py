"""Matryoshka: losses at several widths, against values by hand and against sentence-transformers."""

import math

import pytest
import torch

from tests import material, walk
from tests.steps import loss_of, views_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.losses.matryoshka import at_widths, matryoshka
from workflow_scripts.models.dropout import keyed, keys_of
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.start import Size, Start
from workflow_scripts.settings.suites import Sts as Suite


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


def found(folder, block, chunk=None):
    """Loss of a step, and the gradients of what is trained."""
    objective = material.prepared(
        block, walk.bert(folder).parent, walk.SIZE, walk.CPU, walk.ROWS, chunk=chunk
    ).objective
    module = objective.module.double().train()
    torch.manual_seed(2)
    with keyed(keys_of(1, 1)):
        loss = loss_of(objective, 1)
    loss.backward()
    return {
        "": loss.detach(),
        **{name: part.grad for name, part in module.named_parameters() if part.grad is not None},
    }


@pytest.mark.parametrize("name", BLOCKS)
def test_a_method_is_plain_at_the_whole_width_and_learns_at_others(folder, name):
    plain, whole, narrow = (found(folder, at(BLOCKS[name], *widths)) for widths in ((), (32,), (8, 20)))
    assert plain.keys() == whole.keys() == narrow.keys()
    assert all(torch.equal(plain[part], whole[part]) for part in plain)
    assert narrow[""] > plain[""]
    assert any(not torch.allclose(narrow[part], plain[part]) for part in plain if part)


@pytest.mark.parametrize("name", ["simcse", "simcse_3r", "sscl", "promptbert", "jtcse"])
def test_chunks_change_nothing(folder, name):
    whole, chunked = (found(folder, at(BLOCKS[name], 8), chunk) for chunk in (None, 5))
    for part, value in whole.items():
        torch.testing.assert_close(chunked[part], value, rtol=1e-9, atol=1e-9, msg=part)


@pytest.mark.parametrize("name", ["informin_cl", "sscl", "supervised_simcse"])
def test_the_whole_loss_of_a_method_is_taken_at_each_width(folder, name):
    """InforMin-CL's second term is a mean over the entries that are left, SSCL's layers are cut like its vectors."""
    objective = material.prepared(
        at(BLOCKS[name], 8, 20), walk.bert(folder).parent, walk.SIZE, walk.CPU, walk.ROWS
    ).objective
    objective.module.eval()
    views = objective.encoder.project(views_of(objective, 1))
    expected = sum(objective.contrast(views[..., :width]) for width in (8, 20, 32))
    torch.testing.assert_close(loss_of(objective, 1), expected)


def pooled(pooler):
    return {"matryoshka": [8], "readout": {"kind": "pooling", "pooler": pooler, "layers": None}}


DROPPED = (
    "methods.matryoshka: given; what orders the entries, a head, is dropped at test. Set head_at_test: true, or "
    "take a readout without a head."
)
REFUSED = {
    "twice": (
        BLOCKS["informin_cl"] | {"matryoshka": [8, 8]},
        "methods.matryoshka: [8, 8]. Give each width once.",
    ),
    "none": (
        BLOCKS["informin_cl"] | {"matryoshka": [0]},
        "methods.matryoshka.0: Input should be greater than 0; found 0.",
    ),
    "a head that is dropped": (BLOCKS["informin_cl"] | pooled("cls"), DROPPED),
    "a projector that is dropped": (
        BLOCKS["diffcse"] | pooled("cls_before_pooler") | {"projector": "batch_norm"},
        DROPPED,
    ),
}


@pytest.mark.parametrize("block, line", REFUSED.values(), ids=REFUSED)
def test_widths_without_a_meaning_are_refused(block, line):
    with pytest.raises(ConfigError) as raised:
        read_method(block, "methods")
    assert str(raised.value) == line


def test_more_than_an_encoder_has_is_refused():
    config = read_method(at(BLOCKS["simcse"], 8, 33), "methods")
    start = Start(encoder="tiny", sizes=[Size(2, 32, drops=True)])
    assert [*config.misfits(start)] == ["method.matryoshka: 33; tiny is 32 wide. Lower it."]


def test_a_suite_names_a_width_once():
    with pytest.raises(ConfigError) as raised:
        Suite.parse({"datasets": ["lee"], "max_tokens": 32, "widths": [8, 8]}, "suites.sts.lee")
    assert str(raised.value) == "suites.sts.lee.widths: [8, 8]. Give each once."
