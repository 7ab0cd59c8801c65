"""Three families of encoders by what can be done with them, as their rows of the table in docs/encoders.md say."""

import re

import pytest
import torch
from tokenizers import processors
from transformers import AutoConfig, AutoModel

from tests.support import small_methods, toy_methods, toys
from tests.support.snakemake_plans import settings_with
from tests.support.steps_by_hand import loss_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.study import Study
from workflow_scripts.models import packed
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.encoding import check_not_collapsed
from workflow_scripts.models.packed import packs
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.readouts import StartingPoint

PAGE = ROOT / "docs/encoders.md"
FAMILIES = ("bert", "distilbert", "llama")
"""One that is computed on packed tokens, one that is not, and a causal decoder."""
POOLERS = {
    "first token": "cls",
    "mean": "avg",
    "last token": "last_token",
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


def pooled(block, pooler):
    if "base" in block:
        return block | {"base": pooled(block["base"], pooler)}
    block = block | ({"dropout": 0.1} if "dropout" in block else {})
    pooling = {"kind": "pooling", "pooler": pooler, "layers": None}
    return block | ({"readout": pooling} if block["readout"]["kind"] == "pooling" else {})


def columns():
    """Heading to a block."""
    blocks = small_methods.blocks()
    found = {heading: pooled(blocks["simcse"], pooler) for heading, pooler in POOLERS.items()}
    return (
        {"frozen": PUBLISHED} | found | {name: pooled(blocks[block], "avg") for name, block in NAMED.items()}
    )


def tiny(family):
    """A family's encoder with random weights."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    ids = {
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "initializer_range": small_methods.SIZE.spread,
    }
    torch.manual_seed(0)
    return AutoModel.from_config(
        AutoConfig.for_model(family, vocab_size=small_methods.SIZE.vocabulary, **sizes, **ids)
    )


def make(folder, family):
    """A family's encoder where ``toy_methods.prepared`` looks for one, with the tokens that its tokenisers add."""
    place = toys.write_random_encoder(folder, small_methods.SIZE)
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
    """The first misfit that is known before any job."""
    source = {"kind": "local", "path": place.name}
    encoders = {"mine": {"fetch": {"sources": [source], "licence": "x"}}}
    size = (
        Study(settings_with(encoders=encoders, data_root=str(place.parent)), {}, ROOT).encoders["mine"].size
    )
    config = read_method(block, "methods")
    start = StartingPoint(sizes=[size] * (2 if config.starts_from == "pair" else 1))
    return next(map(str, config.size_errors(start)), None)


def trained(folder, block):
    """Train for a step; whether the encoder is packed."""
    encoder, objective, _ = toy_methods.prepared(
        block, folder, small_methods.SIZE, small_methods.CPU, small_methods.ROWS
    )
    objective.module.train()
    is_packed = packs(encoder.backbones[0])
    loss_of(objective, 1).backward()
    learnt = [one for one in objective.module.parameters() if one.grad is not None]
    assert learnt
    assert all(torch.isfinite(one.grad).all() for one in learnt)
    objective.finish()
    check_not_collapsed(encoder.eval())
    return is_packed


def cells(folder, family):
    """The result of a step of each method, or its refusal."""
    place = make(folder, family)
    for block in columns().values():
        if block is PUBLISHED:
            continue
        found = planned(place, block)
        try:
            outcome, refusal = "packed" if trained(folder, block) else "works", None
        except ConfigError as error:
            refusal = str(error)
            outcome = f"refused: {refusal}{'' if found else ' *'}"
        assert found in (None, refusal)
        yield outcome


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
    assert [cell.replace(f"of type {family}", "of another type") for cell in found] == rows()[family][1:]


def test_the_table_has_every_method_and_says_what_is_packed():
    """The table has every method and readout and says which families are packed."""
    table = rows()
    assert table["family"] == [*columns()]
    assert {family for family, row in table.items() if "packed" in row} == {*packed.FAMILIES} & {*table}
    below = [block.get("base", block) for block in columns().values()]
    assert {block["module"] for block in [*columns().values(), *below]} == {*small_methods.METHODS} - {
        *OF_RUNS
    }
    assert {block["readout"]["kind"] for block in below} == {*small_methods.READOUTS}
