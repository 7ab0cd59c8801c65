"""Families of encoders by what can be done with them: the table of docs/encoders.md, written by walking them.

``python -m pytest tests/contract/test_architectures.py`` compares; with SEMBLANCE_WRITE=1 it writes the table.
"""

import os
import re

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import processors
from transformers import AutoConfig, AutoModel

from tests import walk
from tests.contract.test_every_method_loads import TinySTS, scored
from tests.tiny import save
from workflow_scripts.config import names_in
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.gpu_check import material
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.methods import frozen
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import check_tells_apart, encode
from workflow_scripts.models.packed import packs
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.start import Start

PAGE = ROOT / "docs/encoders.md"
GROUPED = {"head_dim": 8, "num_key_value_heads": 2}
FAMILIES = {
    "bert": {}, "roberta": {}, "xlm-roberta": {}, "mpnet": {}, "distilbert": {}, "electra": {"embedding_size": 32},
    "albert": {"embedding_size": 16}, "deberta-v2": {},
    "modernbert": {"cls_token_id": 2, "sep_token_id": 3, "attention_dropout": 0.1}, "eurobert": {},
    "nomic_bert": {"rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}}, "jina_embeddings_v3": {},
    "gemma3_text": GROUPED | {"use_bidirectional_attention": True}, "qwen3": GROUPED, "llama": {}, "gpt2": {},
}  # fmt: skip
"""Model types, and what a tiny one needs beyond its size."""
DECODERS = ("gemma3_text", "qwen3", "llama", "gpt2")
POOLERS = {
    "first token": "cls",
    "mean": "avg",
    "last token": "last_token",
    "weighted": "weighted_avg",
    "max": "max",
}
NAMED = {
    "S2Sent": "simcse_s2sent", "LayerAttPooler": "simcse_layerattpooler", "PromptBERT": "promptbert",
    "InforMin-CL": "informin_cl", "SSCL": "sscl", "DiffCSE": "diffcse", "supervised": "supervised_simcse",
    "pairs": "simcse_round_trips", "distil": "distil", "3R": "simcse_3r", "JTCSE": "jtcse", "LLM2Vec": "llm2vec",
}  # fmt: skip
"""Blocks of config/methods.yaml; those that pool are given the mean, which all families have."""
PUBLISHED = {"module": "frozen", "readout": {"kind": "as_published", "prompt": None}}
OF_RUNS = ("ensemble", "repooled")
"""Methods that no family makes a difference to."""
TEXTS = [" ".join(text.split()[:4]) for text in walk.TEXTS[:12]]


class Pairs(TinySTS):
    """A task of mteb's on sentences that tiny encoders know."""

    def load_data(self, num_proc=None, *, timer=None, **_):
        columns = {"sentence1": TEXTS[:6], "sentence2": TEXTS[6:], "score": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
        self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
        self.data_loaded = True


def pooled(block, pooler):
    if "base" in block:
        return block | {"base": pooled(block["base"], pooler)}
    block = block | ({"dropout": 0.1} if "dropout" in block else {})
    pooling = {"kind": "pooling", "pooler": pooler, "layers": None}
    return block | ({"readout": pooling} if block["readout"]["kind"] == "pooling" else {})


def columns():
    """Heading to a block."""
    blocks = walk.blocks()
    found = {heading: pooled(blocks["simcse"], pooler) for heading, pooler in POOLERS.items()}
    return (
        {"frozen": PUBLISHED} | found | {name: pooled(blocks[block], "avg") for name, block in NAMED.items()}
    )


def tiny(family):
    """A family's encoder with random weights."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "initializer_range": walk.SIZE.spread}
    torch.manual_seed(0)
    return AutoModel.from_config(
        AutoConfig.for_model(family, vocab_size=walk.SIZE.vocabulary, **sizes, **ids, **FAMILIES[family])
    )


def make(folder, family):
    """A family's encoder where ``material.prepared`` looks for one, with the tokens that its tokenisers add."""
    place = material.write_encoder(folder, walk.SIZE)
    tiny(family).save_pretrained(place)
    tokenizer = load_tokenizer(place)
    if family in DECODERS:  # one token in front, and no [MASK]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A", special_tokens=[("[CLS]", tokenizer.cls_token_id)]
        )
        tokenizer.mask_token = None
    tokenizer.save_pretrained(place)
    (folder / "llama").symlink_to(place)
    return place


def planned(place, block):
    """What is found before any job."""
    encoders = {"mine": {"fetch": {"sources": [{"kind": "local", "path": place.name}]}}}
    size = Sizes({"name": "x", "encoders": encoders}, place.parent).of("mine")
    config = MethodConfig.parse(block, "methods")
    return next(iter(config.misfits(Start(sizes=[size] * (2 if config.starts_from == "pair" else 1)))), None)


def trained(folder, block):
    """An encoder after a step, its tokeniser, and whether it was packed."""
    encoder, objective, tokenizer = material.prepared(block, folder, walk.SIZE, walk.CPU, walk.ROWS)
    objective.module.train()
    is_packed = packs(encoder.leaves[0].backbone)
    objective.loss(1).backward()
    learnt = [one for one in objective.module.parameters() if one.grad is not None]
    assert learnt and all(torch.isfinite(one.grad).all() for one in learnt)
    for parameter in learnt:
        parameter.data -= 1e-3 * parameter.grad
    objective.finish()
    return encoder.eval(), tokenizer, is_packed


def published(folder):
    """An encoder with a Dense layer behind it, read as it was published, its tokeniser, and whether it is packed."""
    place = folder / "theirs"
    modules = [Transformer(str(folder / "bert")), Pooling(32, "mean"), Dense(32, 8)]
    theirs = SentenceTransformer(modules=modules, prompts={"query": "w1 w2 "}, device="cpu")
    theirs.save_pretrained(str(place), create_model_card=False)
    config = MethodConfig.parse(PUBLISHED, "methods")
    assert planned(place, PUBLISHED) is None
    encoder, tokenizer = frozen.build(config, load_backbone(place)).eval(), load_tokenizer(place)
    np.testing.assert_allclose(encode(encoder, tokenizer, TEXTS, 64), theirs.encode(TEXTS), atol=1e-5)
    return encoder, tokenizer, packs(encoder.backbone)


def saved_alike(place, encoder, tokenizer):
    """Whether sentence-transformers gives a saved model's vectors."""
    save(place, encoder, tokenizer)
    saved = SentenceTransformer(str(place), device="cpu", trust_remote_code=True)
    vectors = encode(encoder, tokenizer, TEXTS, 64)
    np.testing.assert_allclose(saved.encode(TEXTS, batch_size=4), vectors, atol=1e-5)


def scored_alike(place, encoder, tokenizer):
    """Whether mteb gives a saved model's score."""
    found = scored(place, Pairs(), 64, place.parent / "mteb")
    vectors = encode(encoder, tokenizer, TEXTS, 64)
    own = spearman(np.arange(6.0), cosine(vectors[:6], vectors[6:]))
    assert f"{100 * found:.2f}" == f"{100 * own:.2f}"


def shape(encoder):
    """What its folder is made of."""
    leaf = encoder.leaves[0]
    return type(encoder), type(leaf.backbone), leaf.readout_settings, leaf.head_at_test, leaf.template


def cells(folder, family):
    """What comes of a step of training; each kind of model is saved and loaded by sentence-transformers once."""
    place, shapes = make(folder, family), set()
    for heading, block in columns().items():
        found = None if block is PUBLISHED else planned(place, block)
        try:
            encoder, tokenizer, is_packed = (
                published(folder) if block is PUBLISHED else trained(folder, block)
            )
        except ConfigError as error:
            assert found in (None, str(error))
            yield f"refused: {error}{'' if found else ' *'}"
            continue
        assert found is None
        check_tells_apart(encoder, tokenizer)
        if shape(encoder) not in shapes:
            shapes.add(shape(encoder))
            saved_alike(folder / heading, encoder, tokenizer)
        if heading == "mean":
            scored_alike(folder / heading, encoder, tokenizer)
        yield "packed" if is_packed else "works"


def rows(folder):
    """Lines of the table, and notes on what is refused, by number."""
    notes = {}
    for family in FAMILIES:
        (folder / family).mkdir()
        found = [*cells(folder / family, family)]
        for number, text in enumerate(found):
            if text.startswith("refused: "):
                note = text.removeprefix("refused: ").replace("|", "/").replace(f"one of {family}", "another")
                found[number] = f"[{notes.setdefault(note, len(notes) + 1)}]"
        yield f"| {family} | {' | '.join(found)} |"
    yield from (f"{number}. {note}" for note, number in notes.items())


def table_of(page):
    return re.findall(
        r"^(?:\| (?!family|---|fol).*\||\d+\. .*)$", page.partition("<!-- /walked -->")[0], re.MULTILINE
    )


@pytest.mark.slow
def test_the_table_is_what_the_walk_finds(tmp_path):
    found = [*rows(tmp_path)]
    page = PAGE.read_text("utf-8")
    if os.environ.get("SEMBLANCE_WRITE"):
        head = f"| family | {' | '.join(columns())} |\n|{' --- |' * (1 + len(columns()))}"
        lines = [head, *(one for one in found if one[0] == "|"), "", *(one for one in found if one[0] != "|")]
        before, _, rest = page.partition("<!-- walked -->")
        after = rest.partition("<!-- /walked -->")[2]
        text = "\n".join(lines)
        page = f"{before}<!-- walked -->\n{text}\n<!-- /walked -->{after}"
        PAGE.write_text(page, "utf-8")
    assert table_of(page) == found


def test_the_table_has_every_family_method_and_readout_and_says_which_are_packed():
    page = PAGE.read_text("utf-8")
    assert f"| family | {' | '.join(columns())} |" in page
    lines = [line for line in table_of(page) if line[0] == "|"]
    assert {line.split(" | ")[0].strip("| "): "packed" in line for line in lines} == {
        family: packs(tiny(family)) for family in FAMILIES
    }
    below = [block.get("base", block) for block in columns().values()]
    assert {block["module"] for block in [*columns().values(), *below]} == {
        *names_in("workflow_scripts.settings.methods")
    } - {*OF_RUNS}
    assert {block["readout"]["kind"] for block in below} == {*names_in("workflow_scripts.settings.readouts")}
