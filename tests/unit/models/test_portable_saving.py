"""Model folders that carry a readout or a prompt of their own along."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests import tiny
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.readouts import set_mask_token
from workflow_scripts.models.saving import save_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.provenance.closure import PACKAGE
from workflow_scripts.settings.readouts import parse_readout
from workflow_scripts.settings.templates import Template

MAX_TOKENS = 12
TEXTS = [*tiny.sentences(9, seed=4), "x", "The school by the river " * 4]
TEMPLATE = Template(text='The word of "[X]" is [MASK].', add_period=True)
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
    "templated average": ({"kind": "pooling", "pooler": "avg", "layers": None}, False, TEMPLATE),
}


def save(place, folder, block, head, template):
    torch.manual_seed(0)
    config = parse_readout(block)
    encoder = SentenceEncoder(load_backbone(folder), config, head=head, head_at_test=head, template=template)
    tokenizer = load_tokenizer(folder)
    set_mask_token(encoder.readout, tokenizer)
    made = job_record("train_encoder", settings={}, inputs={}, outputs=[place])
    with writing_model_folder(place, made) as inside:
        save_encoder(inside, encoder, tokenizer)
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
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-6)
    assert theirs.get_embedding_dimension() == vectors.shape[1]


def test_code_of_a_folder_needs_nothing_of_this_project_and_runs_for_who_trusts_it_alone(tiny_bert, tmp_path):
    from sentence_transformers import SentenceTransformer

    place = tmp_path / "model"
    vectors = save(place, tiny_bert, *CASES["templated selector"])
    code = sorted(path.name for path in place.rglob("*.py"))
    assert code == [
        f"{name}.py"
        for name in (
            "own_code",
            "prompt",
            "prompted_transformer",
            "readout_module",
            "s2sent",
            "s2sent_module",
        )
    ]
    for name in code:  # verbatim
        assert (place / name).read_bytes() == (PACKAGE / "models/portable" / name).read_bytes()
        assert "workflow_scripts" not in (place / name).read_text()
    assert not list(place.rglob("__pycache__"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(place), device="cpu")
    script = (
        "import sys, json; from sentence_transformers import SentenceTransformer as S;"
        f"m = S({str(place)!r}, device='cpu', trust_remote_code=True); m.max_seq_length = {MAX_TOKENS};"
        f"v = m.encode({TEXTS!r});"
        "assert 'workflow_scripts' not in sys.modules; print(json.dumps(v.tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(json.loads(done.stdout.splitlines()[-1]), vectors, atol=1e-6)


def test_an_encoder_without_its_selector_is_refused_by_auto_model_and_kept_in_a_folder_below(
    tiny_bert, tmp_path
):
    save(tmp_path / "model", tiny_bert, *CASES["selector"])
    with pytest.raises(
        ValueError,
        match="more than a Transformers model",
    ):
        AutoModel.from_pretrained(tmp_path / "model")
    before, after = load_backbone(tiny_bert), load_backbone(tmp_path / "model")
    for name, weight in before.state_dict().items():
        assert torch.equal(after.state_dict()[name], weight)


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
    from workflow_scripts.models.readouts import pooling as pooling_readout

    config = pooling_readout.Config(kind="pooling", pooler="cls_before_pooler", layers=None)
    save(tmp_path / "model", tiny_bert, *CASES["pooler"])
    encoder, tokenizer = load_encoder(tmp_path / "model", config)
    found = encode(encoder, tokenizer, TEXTS, MAX_TOKENS)
    plain = SentenceEncoder(load_backbone(tiny_bert), config, head=False, head_at_test=False)
    assert np.array_equal(found, encode(plain, tokenizer, TEXTS, MAX_TOKENS))
    own, _ = load_encoder(tmp_path / "model")
    assert np.abs(encode(own, tokenizer, TEXTS, MAX_TOKENS) - found).max() > 1e-3


OWN_SETTINGS = """
from typing import Literal

from workflow_scripts.settings.readouts import ReadoutConfig


class Config(ReadoutConfig):
    kind: Literal["last_token"]
    scale: float
"""
OWN = """
import torch
from torch import nn

from workflow_scripts.models.readouts import Readout


class LastToken(Readout):
    def __init__(self, width, scale):
        super().__init__(width)
        self.mix = nn.Linear(width, width)
        self.scale = scale

    def forward(self, hidden_states, batch):
        last = batch.mask_BT.sum(dim=1) - 1
        return self.scale * self.mix(hidden_states[-2][torch.arange(len(last)), last])


def build(config, backbone_config):
    return LastToken(backbone_config.hidden_size, config.scale)
"""


def test_a_readout_that_knows_nothing_of_saving_is_saved_and_needs_the_project_to_load(
    tiny_bert, tmp_path, monkeypatch
):
    from sentence_transformers import SentenceTransformer

    from workflow_scripts.models import readouts
    from workflow_scripts.settings import readouts as settings

    for package, text in ((readouts, OWN), (settings, OWN_SETTINGS)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "last_token.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    place = tmp_path / "model"
    vectors = save(place, tiny_bert, {"kind": "last_token", "scale": 2.0}, True, None)
    ours, tokenizer = load_encoder(place)
    np.testing.assert_allclose(encode(ours, tokenizer, TEXTS, MAX_TOKENS), vectors, atol=1e-6)
    theirs = SentenceTransformer(str(place), device="cpu", trust_remote_code=True)
    theirs.max_seq_length = MAX_TOKENS
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-6)
    script = f"from sentence_transformers import SentenceTransformer as S; S({str(place)!r}, trust_remote_code=True)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "workflow_scripts" in done.stderr.splitlines()[-1]  # which package is missing


@pytest.mark.parametrize("case", ["templated selector", "pooler", "mask token", "templated average"])
def test_a_folder_that_sentence_transformers_saved_again_is_the_same_model(tiny_bert, tmp_path, case):
    from sentence_transformers import SentenceTransformer

    save(tmp_path / "model", tiny_bert, *CASES[case])
    first = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    first.max_seq_length = MAX_TOKENS
    first.save_pretrained(str(tmp_path / "again"))
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    assert again.max_seq_length == MAX_TOKENS
    np.testing.assert_allclose(again.encode(TEXTS), first.encode(TEXTS), atol=1e-6)
