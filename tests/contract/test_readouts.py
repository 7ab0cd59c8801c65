"""Rules for every readout that a block of config/methods.yaml, or one of its readings, names."""

from contextlib import nullcontext

import pytest
import torch
from pydantic import TypeAdapter
from transformers import LlamaModel

from tests.support import small_methods, toys
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import attend_both_ways, hidden_states, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import check_not_collapsed
from workflow_scripts.models.readouts.base import ReadoutModule
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.settings.readouts import AnyReadout

READOUTS = small_methods.readouts()
LABEL = "a vector depends on the other sentences of its batch"
OF_BATCH = {
    "simcse_s2sent.code": LABEL,
    "simcse_s2sent.code_dct": LABEL,
    "simcse_s2sent.code_gate": LABEL,
}
"""Readings of a paper's code whose vectors change with the batch, and the part of their label that says so."""
MEETING = {*OF_BATCH, "simcse_s2sent.code_norm"}
"""Those whose vectors in training are normalised over a batch, too."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoders")


def test_every_kind_is_walked():
    kinds = {readout["kind"] for readout in READOUTS.values()}
    assert kinds | small_methods.OF_A_FOLDER == {*small_methods.READOUTS}


@pytest.fixture(params=READOUTS)
def name(request):
    return request.param


@pytest.fixture
def encoder(folder, name):
    return small_methods.encoder_with(folder, READOUTS[name])


@pytest.fixture
def batch_of(folder, encoder):
    """A function that makes a batch of some rows of the texts."""
    tokenizer = load_tokenizer(small_methods.bert(folder))
    return tokenise_in(encoder.template, tokenizer, small_methods.TEXTS[:6], small_methods.SIZE.tokens).batch


def test_vectors_are_as_wide_as_the_readout_says(encoder, batch_of):
    assert isinstance(encoder.readout, ReadoutModule)
    vectors = encoder.read(batch_of(range(3)))
    assert vectors.shape == (3, encoder.readout.width)
    assert encoder.readout.width % small_methods.SIZE.width == 0
    assert (vectors[0] - vectors[1]).abs().max() > 1e-3


def test_neither_padding_nor_neighbours_change_a_vector(folder, encoder, name):
    """Neither padding nor other sentences change a vector unless a label says so."""
    dependent = small_methods.depends_on_batch(encoder, load_tokenizer(small_methods.bert(folder)))
    assert dependent == (name in OF_BATCH)
    assert dependent == any(LABEL in label for label in encoder.readout_settings.labels)


def test_a_gradient_reaches_every_parameter_of_a_readout(encoder, batch_of):
    torch.manual_seed(0)
    vectors = encoder.train().read(batch_of(range(6)))
    (vectors * torch.randn_like(vectors)).sum().backward()
    still = [n for n, p in encoder.readout.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []


def test_a_readout_is_exact_with_an_encoder_in_bfloat16(encoder, batch_of):
    """A readout computes as exactly beside an encoder in bfloat16."""
    batch = batch_of(range(3))
    states = hidden_states(encoder.backbone, batch, encoder.readout.reads, None)
    exact = encoder.readout.read(states, *batch[:2])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(encoder.readout.read(states, *batch[:2]), exact)


def test_sentences_read_along_change_nothing_of_the_others(encoder, batch_of, name):
    """O-62: in training, with all that a readout draws; known are those where sentences of a batch meet."""
    batch, more = batch_of(range(3)), batch_of(range(3, 6))
    torch.manual_seed(0)
    alone = encoder.train().read(batch)
    torch.manual_seed(0)
    vectors = encoder.read(batch.followed_by(more))[:3]
    assert encoder.readout_settings.is_independent == (name not in MEETING)
    if encoder.readout_settings.is_independent:
        torch.testing.assert_close(vectors, alone, rtol=1e-5, atol=1e-6)


def test_a_readout_needs_no_states_but_those_that_it_asks_for(encoder, batch_of):
    batch = batch_of(range(3))
    before = encoder.read(batch)
    more = {"first": ["last", "all"], "last": ["all"], "all": ["padded"], "padded": []}
    for reads in more[encoder.readout.reads]:
        encoder.readout.reads = reads
        torch.testing.assert_close(encoder.read(batch), before, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def decoder():
    """A decoder of two layers: a token attends only to tokens before it."""
    return toys.make_backbone("llama", len(toys.make_tokenizer("llama")))


def test_a_causal_decoder_is_refused_if_all_vectors_are_one(decoder, name):
    """Where its first token alone is read, which attends to no other."""
    block, tokenizer = READOUTS[name], toys.make_tokenizer("bert")
    readout = TypeAdapter(AnyReadout).validate_python(block)
    encoder = SentenceEncoder(
        decoder, tokenizer, readout, head=False, head_at_test=False, template=small_methods.PROMPT
    )
    alone = block.get("pooler", block.get("pooling")) in (
        "cls",
        "cls_before_pooler",
        "cls_last",
        "attention_cls",
    )
    with pytest.raises(ConfigError, match="have one vector") if alone else nullcontext():
        check_not_collapsed(encoder.eval())


def test_a_bidirectional_decoder_is_read_by_its_first_token(decoder):
    """A decoder that attends both ways may be read by its first token."""
    both = LlamaModel(decoder.config)
    attend_both_ways(both)
    readout = TypeAdapter(AnyReadout).validate_python(
        {"kind": "pooling", "pooler": "cls_before_pooler", "layers": None}
    )
    encoder = SentenceEncoder(both, toys.make_tokenizer("llama"), readout, head=False, head_at_test=False)
    check_not_collapsed(encoder.eval())
