import numpy as np
import pytest
import torch

from tests.tiny import KINDS, sentences
from workflow_scripts.extraction.representations import pool_layers
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.readouts import pooling as pooling_readout

TEXTS = sentences(30)


def opened(folder):
    return load_backbone(folder), load_tokenizer(folder)


def even(text):
    return np.repeat(1 / text.lengths, text.lengths).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_gives_every_layer_as_a_pass_of_its_own_would(tiny_models, kind):
    backbone, tokenizer = opened(tiny_models[kind])
    text = tokenise(tokenizer, TEXTS, 32)
    found = pool_layers(
        backbone, text, {"avg": even(text)}, [(name, "avg") for name in ("0", "1", "2", "1+last")], "float32"
    )
    hidden = []
    for row in range(len(text)):
        batch = text.batch([row])
        with torch.no_grad():
            states = backbone(input_ids=batch.ids_BT, output_hidden_states=True).hidden_states
        hidden.append([layer[0].mean(dim=0).numpy() for layer in states])
    expected = np.array(hidden)
    for layer in range(3):
        np.testing.assert_allclose(found[str(layer), "avg"], expected[:, layer], atol=1e-5)
    np.testing.assert_allclose(found["1+last", "avg"], expected[:, 1:3].mean(axis=1), atol=1e-5)


def test_the_input_table_is_averaged_with_layers_like_one_of_them(tiny_bert):
    backbone, tokenizer = opened(tiny_bert)
    text = tokenise(tokenizer, TEXTS, 32)
    names = [(name, "avg") for name in ("static", "1", "last", "static+1+last")]
    found = pool_layers(backbone, text, {"avg": even(text)}, names, "float32")
    mean = sum(found[pair] for pair in names[:3]) / 3
    np.testing.assert_allclose(found["static+1+last", "avg"], mean, atol=1e-6)
    assert not np.allclose(found["static", "avg"], found["1", "avg"], atol=0.1)


def test_the_plain_average_of_first_and_last_is_the_pooler_of_that_name(tiny_bert):
    backbone, tokenizer = opened(tiny_bert)
    text = tokenise(tokenizer, TEXTS, 32)
    ours = pool_layers(backbone, text, {"avg": even(text)}, [("1+last", "avg")], "float32")["1+last", "avg"]
    encoder = SentenceEncoder(backbone, pooling("avg_first_last"), head=False, head_at_test=False)
    np.testing.assert_allclose(ours, encode(encoder, tokenizer, TEXTS, 32), atol=1e-5)


def pooling(pooler):
    return pooling_readout.Config(kind="pooling", pooler=pooler, layers=None)


def test_weightings_share_a_pass_and_keep_apart(tiny_bert):
    backbone, tokenizer = opened(tiny_bert)
    text = tokenise(tokenizer, TEXTS, 32)
    first = np.zeros(len(text.ids), np.float32)
    first[text.starts[:-1]] = 1
    weights = {"avg": even(text), "cls": first}
    together = pool_layers(
        backbone, text, weights, [("1", "cls"), ("last", "avg"), ("last", "cls")], "float32"
    )
    assert set(together) == {("1", "cls"), ("last", "avg"), ("last", "cls")}
    apart = pool_layers(backbone, text, {"cls": first}, [("last", "cls")], "float32")
    np.testing.assert_allclose(together["last", "cls"], apart["last", "cls"], atol=1e-6)
    batch = text.batch([3])
    with torch.no_grad():
        states = backbone(input_ids=batch.ids_BT).last_hidden_state
    np.testing.assert_allclose(together["last", "cls"][3], states[0, 0].numpy(), atol=1e-5)
