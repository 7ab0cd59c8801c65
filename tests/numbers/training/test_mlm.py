import math

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from tests.support import toys
from tests.support.steps_by_hand import loss_of
from workflow_scripts.errors import ConfigError, TrainingError
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.sources import Sizes
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.training.mlm import (
    MaskedLanguageModel,
    Objective,
    from_scratch,
    load_masked_language_model,
)
from workflow_scripts.training.sampler import Sampler

SHARE = 0.15
TEXTS = toys.sentences(200)


def make(folder, texts=TEXTS, batch_size=50, seed=3, share=SHARE, tokenizer=None, model=None):
    tokenizer = tokenizer or load_tokenizer(folder)
    block = {"mlm_probability": share, "seed": seed, "training": toys.TRAINING | {"batch_size": batch_size}}
    torch.manual_seed(0)
    model = model or MaskedLanguageModel(load_backbone(folder))
    text = tokenise(tokenizer, texts, 24)
    sampler = Sampler(len(text), batch_size, seed)
    return (
        Objective(model, text, sampler, tokenizer, ContinueMlm.parse(block, "continue_mlm")),
        text,
        tokenizer,
    )


def within(count, trials, share, deviations=5):
    return abs(count - trials * share) < deviations * math.sqrt(trials * share * (1 - share))


@pytest.mark.parametrize("kind", toys.KINDS)
def test_shares_are_those_of_bert(tiny_models, kind):
    """15% chosen; of these 80% masked, 10% random, 10% kept: each within five binomial deviations."""
    objective, text, tokenizer = make(tiny_models[kind])
    ids_BT, mask_BT, _ = text.batch(range(len(text)))
    special = torch.isin(ids_BT, torch.tensor(tokenizer.all_special_ids))
    words = chosen = masked = kept = swapped = 0
    for step in range(1, 41):
        chosen_BT, masked_BT = objective.mask(ids_BT, step)
        assert chosen_BT.dtype == torch.bool
        assert not (chosen_BT & special).any()
        assert not (chosen_BT & (mask_BT == 0)).any()
        assert torch.equal(masked_BT[~chosen_BT], ids_BT[~chosen_BT])
        words += int((~special).sum())
        chosen += int(chosen_BT.sum())
        is_mask = masked_BT == tokenizer.mask_token_id
        masked += int((is_mask & chosen_BT).sum())
        kept += int((chosen_BT & (masked_BT == ids_BT)).sum())
        swapped += int((chosen_BT & (masked_BT != ids_BT) & ~is_mask).sum())
    vocabulary = len(tokenizer)
    assert words > 60_000
    assert within(chosen, words, SHARE)
    assert within(masked, chosen, 0.8 + 0.1 / vocabulary)
    assert within(kept, chosen, 0.1 + 0.1 / vocabulary)
    assert within(swapped, chosen, 0.1 - 0.2 / vocabulary)


@pytest.mark.parametrize("texts", [["x", "y"], ["town", ""], ["the old town", "x", "river"]])
def test_at_least_one_position_is_chosen(tiny_bert, texts):
    objective, text, tokenizer = make(tiny_bert, texts=texts, batch_size=len(texts), share=0.01)
    ids_BT, _, _ = text.batch(range(len(texts)))
    for step in range(1, 100):
        chosen_BT, _ = objective.mask(ids_BT, step)
        assert chosen_BT.sum() >= 1
        assert not set(ids_BT[chosen_BT].tolist()) & set(tokenizer.all_special_ids)


def test_sentences_without_a_word_are_an_error(tiny_bert):
    """Sentences without a word are an error, not a loss of nothing."""
    objective, text, _ = make(tiny_bert, texts=["", "\u200b"], batch_size=2)
    assert text.lengths.tolist() == [2, 2]
    with pytest.raises(TrainingError, match="no token to predict at step 1"):
        loss_of(objective, 1)


def test_a_tokeniser_without_a_mask_is_an_error(tiny_bert):
    tokenizer = load_tokenizer(tiny_bert)
    tokenizer.mask_token = None
    with pytest.raises(ConfigError, match="the tokeniser has no mask"):
        make(tiny_bert, tokenizer=tokenizer)


def test_the_loss_at_chosen_positions_is_that_of_all(tiny_bert, tmp_path):
    """BertForMaskedLM, which scores every position, as independent implementation; its gradients too."""
    torch.manual_seed(1)
    theirs = BertForMaskedLM(BertConfig.from_pretrained(tiny_bert)).eval()
    for parameter in theirs.parameters():
        parameter.data += 0.15 * torch.randn_like(parameter)
    theirs.save_pretrained(tmp_path)
    load_tokenizer(tiny_bert).save_pretrained(tmp_path)
    ours = load_masked_language_model(tmp_path)
    objective, text, _ = make(tmp_path, model=ours)
    ids_BT, mask_BT, _ = text.batch(Sampler(len(text), 50, 3).rows_of(2))
    chosen_BT, masked_BT = objective.mask(ids_BT, 2)
    labels_BT = ids_BT.masked_fill(~chosen_BT, -100)
    expected = theirs(input_ids=masked_BT, attention_mask=mask_BT, labels=labels_BT).loss
    loss = loss_of(objective, 2)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    loss.backward()
    expected.backward()
    pairs = {
        "words": (ours.backbone.embeddings, theirs.bert.embeddings),
        "layer": (ours.backbone.encoder.layer[0], theirs.bert.encoder.layer[0]),
        "dense": (ours.head.transform.dense, theirs.cls.predictions.transform.dense),
    }
    for one, two in pairs.values():
        for first, second in zip(one.parameters(), two.parameters(), strict=True):
            torch.testing.assert_close(first.grad, second.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", toys.KINDS)
def test_every_parameter_learns_but_the_unused_pooler(tiny_models, kind):
    objective, _, _ = make(tiny_models[kind])
    objective.module.train()
    loss_of(objective, 1).backward()
    without = {
        name
        for name, parameter in objective.module.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    }
    pooler = {"backbone.pooler.dense.weight", "backbone.pooler.dense.bias"}
    assert without == pooler
    frozen = {name for name, parameter in objective.module.named_parameters() if not parameter.requires_grad}
    assert frozen == without


SIZES = {"layers": 3, "width": 24, "heads": 2, "feed_forward": 40}


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_an_encoder_from_scratch_has_the_sizes_asked_for(tiny_models, tmp_path, kind):
    """An encoder from scratch has the sizes that were asked for and the vocabulary of its base."""
    torch.manual_seed(1)
    model = from_scratch(tiny_models[kind], Sizes.parse(SIZES, "adapt.from_scratch"))
    model.save_pretrained(tmp_path)
    again = load_backbone(tmp_path)
    shapes = {name: tuple(value.shape) for name, value in again.state_dict().items()}
    vocabulary = len(load_tokenizer(tiny_models[kind]))
    assert shapes["embeddings.word_embeddings.weight"] == (vocabulary, 24)
    assert shapes["encoder.layer.2.intermediate.dense.weight"] == (40, 24)
    assert "encoder.layer.3.intermediate.dense.weight" not in shapes
    assert again.config.num_attention_heads == 2
    assert again.pooler is None
