from queue import Queue
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toys
from workflow_scripts.errors import ConfigError
from workflow_scripts.models import encoding
from workflow_scripts.models.encoding import batches_by_length
from workflow_scripts.models.tokens import tokenise

TEXTS = [*toys.sentences(40), "x", "", "The town."]


@pytest.fixture
def encoder(tiny_bert):
    return toys.encoder(tiny_bert)


def test_vectors_come_in_the_order_of_the_sentences(encoder):
    vectors = encoder.encode(TEXTS, 32)
    assert vectors.shape == (len(TEXTS), toys.WIDTH)
    assert vectors.dtype == np.float32
    one_by_one = np.concatenate([encoder.encode([text], 32) for text in TEXTS])
    np.testing.assert_allclose(vectors, one_by_one, atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-2


def test_each_sentence_is_read_once_within_the_budget(encoder, monkeypatch):
    """O-22, by the functions that evaluation calls."""
    vectors = encoder.encode(TEXTS, 32)
    monkeypatch.setattr(encoding, "TOKENS_PER_BATCH", 50)
    seen, forward = [], encoder.forward

    def note(ids_BT, mask_BT, packing):
        seen.append(mask_BT)
        return forward(ids_BT, mask_BT, packing)

    monkeypatch.setattr(encoder, "forward", note)
    order = np.random.default_rng(0).integers(len(TEXTS), size=3 * len(TEXTS))
    again = encoder.encode([TEXTS[place] for place in order], 32)
    np.testing.assert_allclose(again, vectors[order], atol=1e-5)
    assert sum(len(mask_BT) for mask_BT in seen) == len(order)
    assert max(mask_BT.numel() for mask_BT in seen) <= 50
    assert len(seen) > 3


def test_dropout_is_off_while_encoding_and_back_on_after(encoder):
    encoder.train()
    once, twice = (encoder.encode(TEXTS, 32) for _ in range(2))
    assert np.array_equal(once, twice)
    assert encoder.training
    encoder.eval()
    encoder.encode(TEXTS, 32)
    assert not encoder.training


def test_sentences_tokenised_meanwhile_have_the_same_vectors(encoder):
    """Sentences that are tokenised meanwhile have the vectors of their parts."""
    parts = [TEXTS[start : start + 9] for start in range(0, len(TEXTS), 9)]
    tokenised = encoding.prefetched(lambda part: tokenise(encoder.tokenizer, part, 32), parts)
    vectors = encoding._encode(encoder, tokenised, len(TEXTS))
    assert len(parts) == 5
    assert np.array_equal(vectors, np.concatenate([encoder.encode(part, 32) for part in parts]))


def test_the_next_part_is_made_while_one_is_used():
    begun, release = Queue(), Event()

    def make(part):
        begun.put(part)
        assert part == 0 or release.wait(60)
        return 10 * part

    made = encoding.prefetched(make, range(3))
    assert next(made) == 0
    assert [begun.get(timeout=60), begun.get(timeout=60)] == [0, 1]
    release.set()
    assert [*made] == [10, 20]


class OnGpu:
    """Stands in for a result on a GPU, and notes what happens to it."""

    is_cuda = True

    def __init__(self, number, events):
        self.number, self.events = number, events

    def to(self, device, *, non_blocking):
        assert (device, non_blocking) == ("cpu", True)
        self.events.append(f"copy {self.number}")
        return self

    def numpy(self):
        self.events.append(f"read {self.number}")
        return self.number


def test_a_gpu_computes_the_next_batch_while_the_last_is_read(monkeypatch):
    """A copy is behind its own batch and not behind the next, and nobody waits for it before the next is launched."""
    events = []
    copied = SimpleNamespace(record=lambda: events.append("mark"), synchronize=lambda: events.append("wait"))
    monkeypatch.setattr(torch.cuda, "Event", lambda: copied)

    def launched():
        for number in range(3):
            events.append(f"launch {number}")
            yield number, OnGpu(number, events)

    assert [*encoding.on_the_host(launched())] == [(0, 0), (1, 1), (2, 2)]
    first = ["launch 0", "copy 0", "mark"]
    then = ["launch 1", "copy 1", "mark", "wait", "read 0", "launch 2", "copy 2", "mark", "wait", "read 1"]
    assert events == [*first, *then, "wait", "read 2"]


def test_no_sentences_are_no_vectors(encoder):
    assert encoder.encode([], 32).shape == (0, toys.WIDTH)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
def test_more_tokens_than_positions_are_an_error(tiny_models, kind):
    """More tokens than the encoder has positions for are an error."""
    encoder = toys.encoder(tiny_models[kind])
    long = "the town " * 40
    cut = encoder.encode([long], 64)
    assert np.array_equal(encoder.encode([long], 65), cut)  # as long as it was published for
    encoder.tokenizer.model_max_length = 100
    with pytest.raises(ConfigError, match=r"65 tokens.*accepts at most 64"):
        encoder.encode([long], 65)


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
