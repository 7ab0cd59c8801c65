"""Model folders that carry a readout or a prompt of their own along."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests import tiny
from workflow_scripts.artefacts import job_record, writing_model_folder
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.readouts import _module, set_mask_token
from workflow_scripts.models.saving import save_encoder
from workflow_scripts.models.templates import Template

MAX_TOKENS = 12
TEXTS = [*tiny.sentences(9, seed=4), "x", "The school by the river " * 4]
TEMPLATE = Template(text='The word of "[X]" is [MASK].', dot=True)
SELECTOR = {
    "kind": "s2sent", "blocks": 2, "last_block": True, "form": "stack", "pooling": "avg", "squeeze": "dct",
    "frequencies": 4, "frequency_set": "figure", "dct": "mean", "reduction": 4, "activation": "relu",
    "bias": False, "batch_norm": False, "gate": "softmax",
}  # fmt: skip
POOLER = {
    "kind": "layer_attention", "pooling": "cls_last_and_attention_cls_avg", "weights": "softmax",
    "projection": "rrelu_per_query", "embeddings": True, "divisor": "layers", "first_state": 0,
}  # fmt: skip
CASES = {
    "selector": (SELECTOR, False, None),
    "selector with norm": (SELECTOR | {"batch_norm": True, "bias": True}, False, None),
    "templated selector": (SELECTOR | {"pooling": "mask"}, False, TEMPLATE),
    "pooler": (POOLER, True, None),
    "pooler without head": (POOLER, False, None),
    "mask token": ({"kind": "mask_token"}, False, TEMPLATE),
    "templated average": ({"kind": "pooled", "pooler": "avg", "layers": None}, False, TEMPLATE),
}


def save(place, folder, block, head, template):
    torch.manual_seed(0)
    config = _module(block["kind"]).Config.parse(block, "readout")
    encoder = SentenceEncoder(load_backbone(folder), config, head=head, head_at_test=head, template=template)
    tokenizer = load_tokenizer(folder)
    set_mask_token(encoder.readout, tokenizer)
    made = job_record("train_encoder", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, made) as inside:
        save_encoder(inside, encoder, tokenizer, MAX_TOKENS)
    return encode(encoder.eval(), tokenizer, TEXTS, MAX_TOKENS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_sentence_transformers_gives_the_vectors_of_the_pipeline(tiny_models, tmp_path, kind, case):
    from sentence_transformers import SentenceTransformer

    vectors = save(tmp_path / "model", tiny_models[kind], *CASES[case])
    assert vectors.shape[1] == (2 * tiny.WIDTH if case == "pooler without head" else tiny.WIDTH)
    ours, tokenizer = load_encoder(tmp_path / "model")
    np.testing.assert_allclose(encode(ours, tokenizer, TEXTS, MAX_TOKENS), vectors, atol=1e-6)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-6)
    assert theirs.get_embedding_dimension() == vectors.shape[1]


def test_code_of_a_folder_needs_nothing_of_this_project_and_runs_for_who_trusts_it_alone(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    place = tmp_path / "model"
    vectors = save(place, tiny_bert, *CASES["templated selector"])
    code = sorted(path.name for path in place.rglob("*.py"))
    assert code == ["semblance_prompt.py", "semblance_readout.py"]
    assert not any("workflow_scripts" in path.read_text() for path in place.rglob("*.py"))
    assert not list(place.rglob("__pycache__"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(place), device="cpu")
    script = (
        "import sys, json; from sentence_transformers import SentenceTransformer as S;"
        f"v = S({str(place)!r}, device='cpu', trust_remote_code=True).encode({TEXTS!r});"
        "assert 'workflow_scripts' not in sys.modules; print(json.dumps(v.tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(json.loads(done.stdout.splitlines()[-1]), vectors, atol=1e-6)


def test_without_the_selector_a_folder_is_a_plain_encoder(tiny_bert, tmp_path):
    save(tmp_path / "model", tiny_bert, *CASES["selector"])
    plain, before = AutoModel.from_pretrained(tmp_path / "model"), load_backbone(tiny_bert)
    assert type(plain).__name__ == "BertModel"
    for name, weight in before.state_dict().items():
        assert torch.equal(plain.state_dict()[name], weight)


def test_long_sentences_are_cut_and_the_template_stays_whole(tiny_bert):
    from workflow_scripts.models.templates import pieces, tokenise_in

    tokenizer = load_tokenizer(tiny_bert)
    before, after = pieces(TEMPLATE, tokenizer)
    long = "the town " * 40
    (row,) = tokenise_in(TEMPLATE, tokenizer, [long], MAX_TOKENS).batch([0]).ids_BT.tolist()
    assert row[: len(before)] == before
    assert row[-len(after) :] == after
    inner = tokenizer("the town " * 5, add_special_tokens=False)["input_ids"]
    assert len(inner) == MAX_TOKENS - 2
    dot = tokenizer(".", add_special_tokens=False)["input_ids"]
    assert row == before + inner + dot + after  # its own full stop comes on top


def test_a_pooler_removed_at_search_time_leaves_cls_of_the_last_layer(tiny_bert, tmp_path):
    """O-59: bit-equal, whatever the pooler's and the head's weights are."""
    from workflow_scripts.models.readouts import pooled

    config = pooled.Config(kind="pooled", pooler="cls_before_pooler", layers=None)
    save(tmp_path / "model", tiny_bert, *CASES["pooler"])
    encoder, tokenizer = load_encoder(tmp_path / "model", config)
    found = encode(encoder, tokenizer, TEXTS, MAX_TOKENS)
    plain = SentenceEncoder(load_backbone(tiny_bert), config, head=False, head_at_test=False)
    assert np.array_equal(found, encode(plain, tokenizer, TEXTS, MAX_TOKENS))
    own, _ = load_encoder(tmp_path / "model")
    assert np.abs(encode(own, tokenizer, TEXTS, MAX_TOKENS) - found).max() > 1e-3
