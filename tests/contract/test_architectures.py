"""Three families of encoders by what can be done with them, as their rows of the table in docs/encoders.md say."""

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

from tests import material, walk
from tests.contract.test_every_method_loads import TinySTS, scored
from tests.steps import loss_of
from tests.tiny import save
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.methods import frozen
from workflow_scripts.models import packed
from workflow_scripts.models.encoder import load_tokenizer
from workflow_scripts.models.encoding import check_tells_apart, encode
from workflow_scripts.models.packed import packs
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import METHODS, read_method
from workflow_scripts.settings.readouts import READOUTS
from workflow_scripts.settings.start import Start

PAGE = ROOT / "docs/encoders.md"
FAMILIES = ("bert", "distilbert", "llama")
"""One that is computed on packed tokens, one that is not, and a causal decoder."""
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
        AutoConfig.for_model(family, vocab_size=walk.SIZE.vocabulary, **sizes, **ids)
    )


def make(folder, family):
    """A family's encoder where ``material.prepared`` looks for one, with the tokens that its tokenisers add."""
    place = material.write_encoder(folder, walk.SIZE)
    tiny(family).save_pretrained(place)
    tokenizer = load_tokenizer(place)
    if family == "llama":  # one token in front, and no [MASK]
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
    config = read_method(block, "methods")
    return next(iter(config.misfits(Start(sizes=[size] * (2 if config.starts_from == "pair" else 1)))), None)


def trained(folder, block):
    """An encoder after a step, its tokeniser, and whether it was packed."""
    encoder, objective, tokenizer = material.prepared(block, folder, walk.SIZE, walk.CPU, walk.ROWS)
    objective.module.train()
    is_packed = packs(encoder.leaves[0].backbone)
    loss_of(objective, 1).backward()
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
    config = read_method(PUBLISHED, "methods")
    assert planned(place, PUBLISHED) is None
    encoder, tokenizer = frozen.load(config, place)
    np.testing.assert_allclose(encode(encoder, tokenizer, TEXTS, 64), theirs.encode(TEXTS), atol=1e-5)
    return encoder, tokenizer, False


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
    return type(encoder), leaf.readout_settings, getattr(leaf, "head_at_test", None), leaf.template


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


def rows():
    """Cells of the page's table by family, each note in full, without what it says of the family itself."""
    table = PAGE.read_text("utf-8").partition("<!-- walked -->")[2].partition("<!-- /walked -->")[0]
    notes = dict(re.findall(r"^(\d+)\. (.*)$", table, re.MULTILINE))
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    full = [[re.sub(r"^\[(\d+)\]$", lambda note: notes[note[1]], cell) for cell in line] for line in lines]
    return {family: cells for family, *cells in full}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_does_what_its_row_says(tmp_path, family):
    found = [cell.removeprefix("refused: ").replace("|", "/") for cell in cells(tmp_path, family)]
    assert [cell.replace(f"one of {family}", "another") for cell in found] == rows()[family]


def test_the_table_has_every_method_and_readout_and_says_which_families_are_packed():
    table = rows()
    assert table["family"] == [*columns()]
    assert {family for family, row in table.items() if "packed" in row} == {*packed.FAMILIES} & {*table}
    below = [block.get("base", block) for block in columns().values()]
    assert {block["module"] for block in [*columns().values(), *below]} == {*METHODS} - {*OF_RUNS}
    assert {block["readout"]["kind"] for block in below} == {*READOUTS}
