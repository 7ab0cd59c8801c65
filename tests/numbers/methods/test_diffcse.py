from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from transformers import AutoConfig, AutoModelForMaskedLM

from tests.support import small_methods, toys
from tests.support.steps_by_hand import loss_of
from workflow_scripts.errors import DataError
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.methods import diffcse
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.packed import packs, unpacked
from workflow_scripts.models.tokens import TokenBatch, tokenise
from workflow_scripts.training import mlm
from workflow_scripts.training.mlm import load_masked_language_model, places_of
from workflow_scripts.training.sampler import Sampler

OURS = {
    "dropout": 0.0,
    "mlm_probability": 0.3,
    "filled": "chosen",
    "generator_dropout": False,
    "projector": "head",
}
BLOCK = small_methods.blocks()["diffcse"] | OURS
ROWS = Sampler(small_methods.ROWS, small_methods.SIZE.batch, 3).rows_of(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an encoder and its head, as continue_mlm writes them."""
    return tmp_path_factory.mktemp("adapted")


def make(folder, rows=range(20), **changes):
    """The objective, and a batch of rows of its corpus."""
    _, objective, tokenizer = small_methods.made(folder, BLOCK | changes)
    objective.module.train()
    return objective, tokenise(tokenizer, small_methods.TEXTS, small_methods.SIZE.tokens).batch(rows)


def test_the_loss_is_simcses_and_a_share_of_the_discriminators(folder):
    objective, _ = make(folder, ROWS, weight=0.5)
    inputs = objective.inputs(1)
    batch, chosen = inputs.batch, inputs.places_M
    vectors = objective.project(objective.encoder.read(batch))
    filled = objective.fill(inputs)
    scores = objective.discriminator(batch._replace(ids_BT=filled), vectors)
    labels = ((filled != batch.ids_BT) & (batch.mask_BT == 1)).long()
    assert 0 < labels.sum() <= len(chosen)
    told = F.cross_entropy(scores.flatten(0, 1), labels.flatten())
    expected = infonce(*vectors.chunk(2), 0.05) + 0.5 * told
    torch.testing.assert_close(loss_of(objective, 1), expected, rtol=1e-5, atol=1e-6)


def test_chosen_words_are_masks_alone_where_that_is_asked_for(folder):
    """80/10/10 is masked language modelling's own (test_mlm)."""
    objective, batch = make(folder, masking="mask")
    shown, chosen = objective.mask(batch.ids_BT, 1)
    assert chosen.any()
    mask = load_tokenizer(small_methods.bert(folder)).mask_token_id
    assert torch.equal(shown, batch.ids_BT.masked_fill(chosen, mask))
    assert torch.equal(make(folder)[0].mask(batch.ids_BT, 1)[1], chosen)


@pytest.mark.parametrize("dropout", [True, False])
def test_the_generator_learns_nothing_and_drops_out_if_it_is_to(folder, dropout):
    objective, batch = make(folder, generator_dropout=dropout)
    loss_of(objective, 1).backward()
    assert all(p.grad is None for p in objective.generator.parameters())
    shown, chosen = objective.mask(batch.ids_BT, 1)
    shown = batch._replace(ids_BT=shown)
    one, other = (objective.generator(shown, places_of(chosen)) for _ in range(2))
    assert torch.equal(one, other) != dropout


def test_chosen_words_are_filled_with_the_likeliest(folder):
    """The generator's head on the states of its input, written out; words that were not chosen stay."""
    objective, _ = make(folder)
    inputs = objective.inputs(1)
    batch, shown = inputs.batch, inputs.masked_BT
    _, chosen = objective.mask(batch.ids_BT, 1)
    generator = load_masked_language_model(small_methods.bert(folder))
    with torch.no_grad():
        states = generator.backbone(input_ids=shown, attention_mask=batch.mask_BT).last_hidden_state
        words = generator.backbone.get_input_embeddings().weight
        scores = generator.norm(F.gelu(generator.dense(states))) @ words.T + generator.bias
    likeliest = scores.argmax(dim=-1)
    assert not torch.equal(likeliest[chosen], shown[chosen])
    filled = objective.fill(inputs)
    assert torch.equal(filled, torch.where(chosen, likeliest, batch.ids_BT))


def test_the_generator_rewrites_every_token_but_special_ones(folder):
    """The code's three lines on the generator's scores of all tokens; sentences of several lengths are padded."""
    objective, _ = make(folder, ROWS, filled="all", weight=0.5)
    inputs = objective.inputs(1)
    batch, shown = inputs.batch, inputs.batch._replace(ids_BT=inputs.masked_BT)
    with torch.no_grad():
        scores = objective.generator(shown, torch.arange(batch.ids_BT.numel())).view(*batch.ids_BT.shape, -1)
    predicted = scores.argmax(dim=-1)
    predicted[:, 0] = batch.ids_BT[0, 0]
    replaced = (predicted != batch.ids_BT).long() * batch.mask_BT
    separators = (torch.arange(len(batch.ids_BT)), batch.mask_BT.sum(dim=1) - 1)
    assert replaced[separators].all()
    assert not replaced[:, 0].any()
    assert (batch.mask_BT == 0).any()
    filled = objective.fill(inputs)
    assert torch.equal(filled * batch.mask_BT, predicted * batch.mask_BT)
    vectors = objective.project(objective.encoder.read(batch))
    told = objective.discriminator(batch._replace(ids_BT=predicted * batch.mask_BT), vectors)
    expected = infonce(*vectors.chunk(2), 0.05) + 0.5 * F.cross_entropy(
        told.flatten(0, 1), replaced.flatten()
    )
    torch.testing.assert_close(loss_of(objective, 1), expected, rtol=1e-5, atol=1e-6)


def test_the_discriminator_reads_the_vector_in_place_of_cls(folder):
    objective, batch = make(folder, [0, 1])
    one, other = torch.zeros(2, small_methods.SIZE.width), torch.ones(2, small_methods.SIZE.width)
    first, second = (objective.discriminator(batch, v) for v in (one, other))
    assert (first - second).abs().max() > 1e-3
    changed = batch.ids_BT.clone()
    changed[:, 0] = load_tokenizer(small_methods.bert(folder)).mask_token_id  # nobody reads it
    torch.testing.assert_close(objective.discriminator(batch._replace(ids_BT=changed), one), first)


@pytest.mark.parametrize("kind", toys.KINDS)
def test_the_discriminator_is_that_of_transformers(tiny_models, kind):
    """Scores and gradients of a padded batch, packed, and by Transformers with its hook."""
    torch.manual_seed(0)
    discriminator = diffcse.Discriminator(load_backbone(tiny_models[kind], dropout=0.0)).train()
    tokenizer = load_tokenizer(tiny_models[kind])
    batch = tokenise(tokenizer, ["one", "a river of stone in the old town"], 12).batch([0, 1])
    assert (batch.mask_BT == 0).any()
    vectors = torch.randn(2, discriminator.backbone.config.hidden_size)
    found = []
    for way in (nullcontext, unpacked):
        with way():
            assert packs(discriminator.backbone) == (way is nullcontext)
            own = vectors.clone().requires_grad_()
            discriminator.zero_grad()
            scores = discriminator(batch, own)
            F.cross_entropy(scores.flatten(0, 1), (torch.arange(scores[..., 0].numel()) % 2)).backward()
            named = discriminator.named_parameters()
            gradients = {name: p.grad.clone() for name, p in named if p.grad is not None}
            found.append({"scores": scores.detach(), "vectors": own.grad} | gradients)
    assert found[0]["vectors"].abs().min() > 0
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)


def test_a_generator_needs_a_head(tiny_bert):
    with pytest.raises(DataError, match="no masked-language-model head"):
        load_masked_language_model(tiny_bert)


HEADS = {
    "bert": ("bert", {}),
    "an epsilon of its own": ("bert", {"layer_norm_eps": 1e-7}),
    "relu": ("bert", {"hidden_act": "relu"}),
    "gelu_new": ("bert", {"hidden_act": "gelu_new"}),
    "words untied": ("bert", {"tie_word_embeddings": False}),
    "roberta": ("roberta", {"layer_norm_eps": 1e-7}),
    "roberta untied": ("roberta", {"tie_word_embeddings": False}),
    "camembert": ("camembert", {}),
    "mpnet": ("mpnet", {}),
}


@pytest.mark.parametrize("head", HEADS)
def test_published_heads_score_as_in_transformers(tmp_path, head):
    """Against AutoModelForMaskedLM; on states so small that LayerNorm's epsilon counts."""
    kind, settings = HEADS[head]
    published, ids, mask = published_head(tmp_path, kind, **settings)
    chosen = torch.zeros_like(ids, dtype=torch.bool)
    chosen[0, 2] = chosen[1, 5] = True
    ours = load_masked_language_model(tmp_path)
    with torch.inference_mode():
        expected = published(input_ids=ids, attention_mask=mask).logits[chosen]
        scores = ours(TokenBatch(ids, mask), places_of(chosen))
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)


def published_head(folder, kind, **settings):
    """Write a language model with random weights; it, and some tokens."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=70, **sizes, **settings)
    published = AutoModelForMaskedLM.from_config(config).eval()
    for name, parameter in published.named_parameters():
        parameter.data.normal_(std=1e-3 if ".dense." in name and name.startswith(("cls", "lm_")) else 0.3)
    published.save_pretrained(folder)
    ids = torch.randint(5, 60, (2, 7))
    return published, ids, torch.ones_like(ids)


def test_a_head_that_scores_otherwise_is_refused(tmp_path, monkeypatch):
    """A head that scores otherwise than in transformers is refused."""
    published_head(tmp_path, "bert")
    score = mlm.PublishedLanguageModel.forward
    monkeypatch.setattr(mlm.PublishedLanguageModel, "forward", lambda *given: 1.01 * score(*given))
    with pytest.raises(DataError, match=r"head scores words 1\.0\d% away from Transformers"):
        load_masked_language_model(tmp_path)
