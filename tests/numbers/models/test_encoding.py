import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import tiny
from workflow_scripts.errors import ConfigError
from workflow_scripts.models import encoding
from workflow_scripts.models.encoder import load_tokenizer
from workflow_scripts.models.encoding import batches_by_length, encode

TEXTS = [*tiny.sentences(40), "x", "", "The town."]


@pytest.fixture
def encoder(tiny_bert):
    return tiny.encoder(tiny_bert)


@pytest.fixture
def tokenizer(tiny_bert):
    return load_tokenizer(tiny_bert)


def test_vectors_come_in_the_order_of_the_sentences(encoder, tokenizer):
    vectors = encode(encoder, tokenizer, TEXTS, 32)
    assert vectors.shape == (len(TEXTS), tiny.WIDTH)
    assert vectors.dtype == np.float32
    one_by_one = np.concatenate([encode(encoder, tokenizer, [text], 32) for text in TEXTS])
    np.testing.assert_allclose(vectors, one_by_one, atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-2


def test_each_sentence_is_read_once_within_the_budget_whatever_stands_beside_it(
    encoder, tokenizer, monkeypatch
):
    """O-22, by the functions that evaluation calls."""
    vectors = encode(encoder, tokenizer, TEXTS, 32)
    monkeypatch.setattr(encoding, "TOKENS_PER_BATCH", 50)
    seen, forward = [], encoder.forward

    def note(ids_BT, mask_BT, packing):
        seen.append(mask_BT)
        return forward(ids_BT, mask_BT, packing)

    monkeypatch.setattr(encoder, "forward", note)
    order = np.random.default_rng(0).integers(len(TEXTS), size=3 * len(TEXTS))
    again = encode(encoder, tokenizer, [TEXTS[place] for place in order], 32)
    np.testing.assert_allclose(again, vectors[order], atol=1e-5)
    assert sum(len(mask_BT) for mask_BT in seen) == len(order)
    assert max(mask_BT.numel() for mask_BT in seen) <= 50
    assert len(seen) > 3


def test_dropout_is_off_while_encoding_and_back_on_after(encoder, tokenizer):
    encoder.train()
    once, twice = (encode(encoder, tokenizer, TEXTS, 32) for _ in range(2))
    assert np.array_equal(once, twice)
    assert encoder.training
    encoder.eval()
    encode(encoder, tokenizer, TEXTS, 32)
    assert not encoder.training


def test_no_sentences_are_no_vectors(encoder, tokenizer):
    assert encode(encoder, tokenizer, [], 32).shape == (0, tiny.WIDTH)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
def test_more_tokens_than_the_encoder_has_positions_for_are_an_error(tiny_models, kind):
    encoder, tokenizer = tiny.encoder(tiny_models[kind]), load_tokenizer(tiny_models[kind])
    long = "the town " * 40
    cut = encode(encoder, tokenizer, [long], 64)
    assert np.array_equal(encode(encoder, tokenizer, [long], 65), cut)  # as long as it was published for
    tokenizer.model_max_length = 100
    with pytest.raises(ConfigError, match=r"65 tokens.*takes 64"):
        encode(encoder, tokenizer, [long], 65)


@given(lengths=st.lists(st.integers(1, 60), min_size=1, max_size=80), budget=st.integers(1, 200))
def test_batches_hold_every_row_once_and_keep_to_the_budget(lengths, budget):
    batches = list(batches_by_length(np.array(lengths), budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        longest = max(lengths[row] for row in rows)
        assert len(rows) * longest <= budget or len(rows) == 1
    assert [max(lengths[row] for row in rows) for rows in batches] == sorted(
        (max(lengths[row] for row in rows) for rows in batches), reverse=True
    )
