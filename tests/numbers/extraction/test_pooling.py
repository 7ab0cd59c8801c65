import numpy as np
import pytest
import torch

from tests.support.toys import KINDS, sentences
from workflow_scripts.extraction.representations import pool_layers
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise


def opened(folder):
    """An encoder and texts in its tokens."""
    return load_backbone(folder), tokenise(load_tokenizer(folder), sentences(30), 32)


def even(text):
    return np.repeat(1 / text.lengths, text.lengths).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_gives_every_layer_and_weighting(tiny_models, kind):
    """One pass gives every layer and weighting as a pass of its own would."""
    backbone, text = opened(tiny_models[kind])
    first = np.zeros(len(text.ids), np.float32)
    first[text.starts[:-1]] = 1
    means, firsts = [], []
    for row in range(len(text)):
        with torch.no_grad():
            states = backbone(input_ids=text.batch([row]).ids_BT, output_hidden_states=True).hidden_states
        means.append([layer[0].mean(dim=0).numpy() for layer in states])
        firsts.append([layer[0, 0].numpy() for layer in states])
    expected = {
        (str(layer), name): np.array(own)[:, layer]
        for name, own in (("avg", means), ("cls", firsts))
        for layer in range(3)
    }
    expected["1+last", "avg"] = (expected["1", "avg"] + expected["2", "avg"]) / 2
    expected["last", "cls"] = expected.pop(("2", "cls"))
    found = pool_layers(backbone, text, {"avg": even(text), "cls": first}, list(expected), "float32")
    assert found.keys() == expected.keys()
    for pair, vectors in expected.items():
        np.testing.assert_allclose(found[pair], vectors, atol=1e-5)


def test_the_input_table_is_averaged_like_a_layer(tiny_bert):
    """The input table is averaged with layers like one of them."""
    backbone, text = opened(tiny_bert)
    names = [(name, "avg") for name in ("static", "1", "last", "static+1+last")]
    found = pool_layers(backbone, text, {"avg": even(text)}, names, "float32")
    mean = sum(found[pair] for pair in names[:3]) / 3
    np.testing.assert_allclose(found["static+1+last", "avg"], mean, atol=1e-6)
    assert not np.allclose(found["static", "avg"], found["1", "avg"], atol=0.1)
