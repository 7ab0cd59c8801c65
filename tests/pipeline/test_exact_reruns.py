"""A change brings back the jobs that depend on it: not one fewer, not one more.

The full demo graph is pretended to be finished; each case is then a dry run. What a change should bring
back is written down by hand, stage by stage, never taken from the code that decides it.
"""

import base64
import copy
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.snakemake_plans import (
    DEMO,
    ROOT,
    copy_tree,
    holding,
    merged_config,
    pretend_finished,
    set_at,
)
from tests.support.snakemake_plans import planned_by_experiment as planned_jobs

# The demo: three frozen runs; SimCSE, S2Sent, LayerAttPooler, 3R and JTCSE with two seeds each, and one more
# sub-encoder behind JTCSE.
REPORT = {"write_report": 1}
FIGURES, OF_EXTRACTION = {"draw_figures:demo": 1}, {"draw_figures:extraction": 1}
JUDGED = {"judge_claims": 1, "draw_claims": 1}  # in both of the demo's tables
TABLE = {"make_table": 1} | JUDGED
SCORED = FIGURES | TABLE | REPORT
DRAWN = FIGURES | OF_EXTRACTION | {"draw_claims": 1}


def evaluated(runs: int) -> dict[str, int]:
    """Jobs that score pairs and measure the space of this number of runs and seeds."""
    return {"evaluate_sts": runs}


ALL_EVALUATED = evaluated(13) | SCORED
TRAINED = {"train_encoder": 12, **evaluated(10)} | SCORED
NOT_S2SENT = TRAINED | {
    "train_encoder": 10,
    **evaluated(8),
}  # it has a recipe of its own
PLAIN = {"train_encoder": 8, **evaluated(6)} | SCORED  # nor LayerAttPooler
THREE_R = {"train_encoder": 2, **evaluated(2)} | SCORED
JTCSE = {"train_encoder": 2, **evaluated(2)} | SCORED
S2SENT = JTCSE
LAYER_POOLER = S2SENT
POOLED = {"build_frozen": 3, **evaluated(3)} | SCORED
POOLED_AND_TRAINED = {"build_frozen": 3, "train_encoder": 12} | ALL_EVALUATED
ADAPTED = {"continue_mlm": 1, "build_frozen": 2, "train_encoder": 12} | evaluated(12) | SCORED
EVERY_ENCODER = {"continue_mlm": 1, "pick_exemplars": 1} | POOLED_AND_TRAINED
FROM_CORPUS = {"split_corpus": 1, "count_words": 1, "pick_exemplars": 1} | ADAPTED
TEXT = {"read_dataset": 1} | FROM_CORPUS
JUDGEMENTS = {"read_dataset": 1} | ALL_EVALUATED
NOTHING: dict[str, int] = {}

# Its slice of the extraction study: the plain encoder and random vectors on one set.
EXTRACTION_TABLE = {"tabulate_extraction": 1} | JUDGED | REPORT
EXTRACTED = OF_EXTRACTION | EXTRACTION_TABLE
SCORED_AGAIN = {"extract_scores": 2} | EXTRACTED
LEARNT_AGAIN = {"fit_wikitext": 2} | SCORED_AGAIN
COUNTED = {"count_tokens": 1} | LEARNT_AGAIN
AVERAGED = {
    "average_tokens": 1,
    "fit_wikitext": 1,
    "extract_scores": 1,
} | EXTRACTED
ONE_REPRESENTATION = {"fit_wikitext": 1, "extract_scores": 1} | EXTRACTED
FROM_TEXT = AVERAGED | COUNTED

READERS: dict[str, dict[str, int]] = {
    "data_root": NOTHING,  # where a file lies decides nothing: its bytes are pinned
    "training": TRAINED,
    "training.batch_size": NOT_S2SENT,
    "training.learning_rate": NOT_S2SENT,
    "training.max_steps": JTCSE
    | {"train_encoder": 4, **evaluated(4)},  # of SimCSE, which is a sub_encoder too
    "methods.simcse.dropout": PLAIN | {"train_encoder": 6},  # and a dropout of its own
    "development.every": NOT_S2SENT,  # LayerAttPooler has an interval of its own, as JTCSE itself has
    "development.max_tokens": TRAINED,
    "continue_mlm": ADAPTED,
    "training.checkpoint_minutes": NOTHING,  # a training that goes on from elsewhere ends with the same bytes
    "continue_mlm.training.checkpoint_minutes": NOTHING,
    "encoders.minilm.fetch.licence": NOTHING,
    "encoders.minilm.fetch.hub": NOTHING,  # which only cards read
    "evaluation.on_gpu": NOTHING,
    "suites.sts.lee": {"evaluate_sts": 13} | SCORED | SCORED_AGAIN,
    "suites.sts.lee.positives": {"evaluate_sts": 13} | SCORED,  # which the extraction study does not read
    "suites.sts.lee.samples": {"evaluate_sts": 13} | SCORED,
    "encoders.minilm.fetch": {"fetch_encoder": 1, "pick_exemplars": 1} | EVERY_ENCODER | FROM_TEXT,
    "encoders.minilm_mlm.adapt.label": ADAPTED,
    "corpora.wiki_extract": FROM_CORPUS,
    "words": {"count_words": 1, "pick_exemplars": 1} | THREE_R,
    "datasets.wiki_extract": TEXT | FROM_TEXT,
    "datasets.lee": JUDGEMENTS | SCORED_AGAIN,
    "datasets.wiki_extract.contract": NOTHING,  # which refuses, and makes no row
    "datasets.lee.contract": NOTHING,
    "datasets.wiki_extract.about": NOTHING,  # for people
    "datasets.lee.about": NOTHING,
    "significance": SCORED,
    "claims": JUDGED | REPORT,
    "claims.scale": {"judge_claims": 1}
    | REPORT,  # the demo has no table of another scale, so nothing is drawn
    "report.learning_curves": FIGURES | REPORT,
    "report.cosine_density.edges": FIGURES | REPORT,
    "report.cosine_density.bandwidth": FIGURES | REPORT,
    "report.layer_attention": FIGURES | REPORT,
    "report.page": REPORT,
    "exemplars.wiki_extract_extractive": {"pick_exemplars": 1} | THREE_R,
    "methods.simcse": PLAIN,
    "methods.simcse.readings": JTCSE | {"train_encoder": 4},  # one of the sub-encoders, and the twins
    "methods.simcse_s2sent": S2SENT,
    "methods.simcse_s2sent.readings": NOTHING,
    "methods.simcse_layerattpooler": LAYER_POOLER,
    "methods.simcse_layerattpooler.readings": NOTHING,
    "methods.simcse_3r": THREE_R,
    "methods.jtcse": JTCSE,
    "methods.jtcse.readings": NOTHING,
    "encoders.demo_twin.label": JTCSE,
    "methods.frozen_avg": {"build_frozen": 2, **evaluated(2)} | SCORED,
    "extraction.wikitext": COUNTED,
    "extraction.averages": AVERAGED,
    "extraction.representations.plain": ONE_REPRESENTATION,
    "extraction.representations.random": ONE_REPRESENTATION,
    "extraction.weightings.avg": LEARNT_AGAIN,
    "extraction.weightings.idf_wikitext": LEARNT_AGAIN,
    "extraction.weightings.idf_task": LEARNT_AGAIN,
    "extraction.weightings.unbiased": LEARNT_AGAIN,
    "extraction.weightings.avg_without_specials": NOTHING,
    "extraction.postprocessings.none": SCORED_AGAIN,
    "extraction.postprocessings.quantile_uniform": SCORED_AGAIN,
    "extraction.postprocessings.quantile_uniform_wikitext": LEARNT_AGAIN,
    "methods.frozen_cls": {"build_frozen": 1, **evaluated(1)} | SCORED,
}
"""Longest prefix of a key to the jobs that changing it brings back; a key with no prefix here brings back none."""

STRUCTURE = {  # keys that name other blocks, or the study: changing one asks for another graph, tested apart
    "name",
    "experiments",
    "development.dataset",
    "methods.simcse_3r.base",
    "methods.simcse_3r.pool",
    "encoders.minilm_mlm.adapt.base",
    "encoders.minilm_mlm.adapt.corpus",
    "corpora.wiki_extract.dataset",
    "exemplars.wiki_extract_extractive.corpus",
    "exemplars.wiki_extract_extractive.encoder",
    "exemplar_pools",
    "report.cosine_density.task",
    "suites.sts.lee.positives.lee_space.dataset",
    "suites.sts.lee.samples.documents.dataset",
    "suites.sts.lee.datasets",
    "extraction.encoder",
    "extraction.bias_list",
    "extraction.suites.sts",
    "extraction.wikitext.dataset",
    "extraction.averages.dataset",
    "extraction.weightings.avg.label",  # rows of tables, which claims name
    "extraction.weightings.idf_wikitext.label",
    "extraction.postprocessings.none.label",
    "mteb.lists.jtcse_bitext_mining.BUCC.v2",  # the dot is part of the task's name
    "mteb.lists.jtcse_sts22.STS22.v2",
}
"""Not mutated in place."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as if it had run: placeholders for its outputs and Snakemake's records of making them."""
    folder = copy_tree(tmp_path_factory.mktemp("finished"))
    pretend_finished(folder)
    assert planned_jobs(folder) == {}
    return folder


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value of every leaf; a list is one leaf."""
    if isinstance(value, dict) and value and not path.endswith("sha256"):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path, value


CONFIG = merged_config(DEMO)
SHOWN = {"models", "measures", "tables", "figures"}  # of extraction: names with dots; tested apart
LEAVES = dict(
    leaves(
        CONFIG
        | {"extraction": {key: value for key, value in CONFIG["extraction"].items() if key not in SHOWN}}
    )
)

# Values, or how they follow from the old one, that a rule of thumb cannot find: those that must be one of a few.
OTHER_VALUES: dict[str, Any] = {
    "epochs": None,  # excludes max_steps, which is walked
    "max_sentences": 5000,
    "dev_sentences": lambda value: value + 1 if value else None,  # triples and lines can hold out none
    "dropout": 0.2,
    "layers": [-1],
    "warmup_steps": 3,
    "pooler": "avg_top2",
    "comparison": "above",
    "kind": None,  # as for module
    "reader": None,  # another one takes other files
    "data_root": "resources",  # a folder that is there
    "classifier": "exact",
    "llms.deepseek_v3.response_format": "json_schema",
    "llms.local.response_format": "text",
    "methods.frozen_whitened.whitening.corpus": "wiki1m",
    "methods.sscl.negative_layers": [-2],
    "methods.promptbert_s2sent.readings.mask.method.readout.pooling": "avg",
    "layer": 0,
    "readout.weights": "ratio",
    "methods.llm2vec.weights": "float32",
    "continue_mlm.training.gpus": None,  # one alone
    "claims.scale": "laboratory",
    "about.url": "https://elsewhere.example/",
    "fetch.size": "huge",
    "unit": "pieces",
    "generator": None,
    "engine": None,  # another engine has other keys
    "unchanged": "drop",
    "offline": None,  # decides whether a job may ask, not what it makes
    "answer_store": "elsewhere.sqlite",
    "key_variable": "ANOTHER_KEY",
    "url": "http://127.0.0.1:1/",
    "as_of": "2026-01-01",
    "source": "de",
    "tokens_parameter": "max_completion_tokens",
    "pivot_language": "it",
    "temperature": 0.5,
    "squeeze": "gap",
    "frequencies": 8,
    "frequency_set": "fcanet",
    "dct": "sum",
    "activation": "tanh",
    "gate": "linear",
    "projection": "linear",
    "divisor": "sqrt_width",
    "projector": "head",
    "masking": "mask",
    "last_batch": "keep",
    "filled": "chosen",
    "truncate": "with_specials",
    "bias_positions": "zero",
    "select_checkpoint_with": "test",
    "surrogate": "soft",
    "identify": "both_views",
    "subtract": "own",
    "position": "before_head",
    "start": 0.5,
    "min_lr_ratio": 0.5,
    "cross_mode": "literal",
    "direction": "forward",
    "modulus_of": "cls",
    "target": "mean",
    "module": None,  # naming another module asks for other keys; covered by the test of modules
    "form": None,  # likewise
    "training_text": None,  # likewise
    "fusion": "average",
    "documents": None,  # likewise
    "fit": None,  # likewise
    "formula": "tokens",
    "unseen": "zero",
    "text": lambda value: f"{value}x",
    "document_text": "templated",
    "schedule": lambda value: "constant" if value == "linear" else "linear",
    "repeated": lambda value: "each" if value == "once" else "once",
    "precision": lambda value: "bfloat16" if value == "float32" else "float32",
    "readout.pooling": lambda value: "cls" if value == "avg" else "attention_avg",
    "threshold": lambda value: value / 4,  # within half the range of scores
    "score_range": lambda value: [value[0], value[1] * 0.75],
    "sources": None,
    "on_gpu": ["sts"],
}


TOGETHER: dict[str, dict[str, Any]] = {"methods.simcse_3r.subtract": {"methods.simcse_3r.pool": None}}
"""What else must change with a key for its other value to make sense."""
NAMING = {
    "dataset", "datasets", "base", "add_sentences_of", "encoder", "llm", "pool", "prompt", "corpus", "translator", "template",
}  # fmt: skip
"""Keys whose values name other blocks: another name would have to exist."""


def another(path: str, value: Any) -> Any:
    """A valid value that differs from ``value``; None where there is none."""
    *_, section, key = f".{path}".split(".")
    if named := [name for name in (path, f"{section}.{key}", key) if name in OTHER_VALUES]:
        other = OTHER_VALUES[named[0]]
        return other(value) if callable(other) else other
    match value:
        case {"model.safetensors": _}:  # hashes of files, whose names have dots
            return value | {"tokenizer.json": value["tokenizer.json"][::-1]}
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value / 2 if value else 0.01
        case str() if len(value) == 64:
            return value[::-1]
        case str():
            return f"{value}x"
        case list() if value and isinstance(value[0], int | float):
            return [value[0] - 1, *value[1:]]
    return None


def setting(values: dict[str, Any]) -> dict[str, Any]:
    """An overlay that sets some keys, given by their dotted paths; lists are replaced whole."""
    overlay: dict[str, Any] = {}
    for path, value in values.items():
        set_at(overlay, path.replace(".", "/"), value)
    return overlay


def expected(path: str) -> dict[str, int]:
    """Jobs that a key brings back by the hand-written table: the entry of its longest prefix."""
    parts = path.split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((READERS[prefix] for prefix in prefixes if prefix in READERS), NOTHING)


def plan_with(folder: Path, overlay: dict[str, Any], tmp_path: Path) -> dict[str, int]:
    """Jobs that the demo would rerun with ``overlay`` laid over its configuration."""
    file = tmp_path / "overlay.yaml"
    text = yaml.safe_dump(overlay)
    file.write_text(re.sub(r"'([\d.]+e[+-]?\d+)'", r"\1", text))  # which YAML 1.1 takes for text, and quotes
    return planned_jobs(folder, str(file))


def reached() -> list[str]:
    """Keys that the demo reads, and that have another valid value."""
    keys = [path for path, value in LEAVES.items() if another(path, value) is not None]
    return [path for path in keys if path not in STRUCTURE and expected(path) != NOTHING]


def one_of_each() -> list[Any]:
    """Every key that the demo reads; all but the first of those that bring back the same are slow."""
    seen: list[dict[str, int]] = []
    cases = []
    for path in reached():
        cases.append(pytest.param(path, marks=[pytest.mark.slow] if expected(path) in seen else []))
        seen.append(expected(path))
    assert len(seen) > 60
    return cases


@pytest.mark.parametrize("path", one_of_each())
def test_a_changed_key_reruns_what_reads_it(finished, tmp_path, path):
    overlay = setting({path: another(path, LEAVES[path])} | TOGETHER.get(path, {}))
    assert plan_with(finished, overlay, tmp_path) == expected(path), overlay


def test_keys_that_the_demo_does_not_read_rerun_nothing(finished, tmp_path):
    """All of them at once: what none of them brings back, no single one does."""
    unread = {
        path: other
        for path, value in LEAVES.items()
        if expected(path) == NOTHING and path not in STRUCTURE and path.rsplit(".", 1)[-1] not in NAMING
        if (other := another(path, value)) is not None
    }
    assert len(unread) > 100
    unread |= {
        f"{path.removesuffix('subtract')}pool": None for path in unread if path.endswith("_3r.subtract")
    }
    assert plan_with(finished, setting(unread), tmp_path) == {}


def with_source(table: str, name: str, **changes: Any) -> dict[str, Any]:
    """An overlay that changes the only source of a dataset or encoder; lists are replaced whole."""
    block = copy.deepcopy(CONFIG[table][name])
    (block.get("fetch") or block)["sources"][0] |= changes
    return {table: {name: block}}


LEE, DUMP = (CONFIG["datasets"][name]["sources"][0] for name in ("lee", "wiki_extract"))
AS_WIKITEXT = with_source(
    "datasets",
    "wiki_extract",
    reader="wikitext",
    files={"train": DUMP["files"]["dump"]},
    options={"unknown": "[UNK]", "min_characters": 10},
)
DAMAGED = {"ratings": LEE["files"]["ratings"] | {"sha256": LEE["files"]["ratings"]["sha256"][::-1]}}
OVERLAYS = {
    "the encoders of a twin in another order": (
        {"encoders": {"demo_twin": {"runs": CONFIG["encoders"]["demo_twin"]["runs"][::-1]}}},
        JTCSE,
    ),
    "a number that is spelled otherwise and is another": (
        {"methods": {"simcse": {"temperature": "4e-2"}}},
        expected("methods.simcse.temperature"),
    ),
    "a file of other bytes": (
        with_source("datasets", "lee", files=LEE["files"] | DAMAGED),
        expected("datasets.lee"),
    ),
    "a folder of an encoder": (
        with_source("encoders", "minilm", path="another"),
        expected("encoders.minilm.fetch"),
    ),
    "an option of a reader": (
        with_source(
            "datasets",
            "wiki_extract",
            options=DUMP["options"] | {"min_words": DUMP["options"]["min_words"] + 1},
        ),
        expected("datasets.wiki_extract"),
    ),
    "a reader": (AS_WIKITEXT, expected("datasets.wiki_extract")),
    "a title of a table": (
        {"extraction": {"tables": {"extraction_demo": {"title": "Another"}}}},
        EXTRACTION_TABLE,
    ),
    "a weight of a model": ({"extraction": {"models": {"BERT": {"mixing_weight": 0.5}}}}, EXTRACTION_TABLE),
    "a measure": ({"extraction": {"measures": {"STS": {"scale": 1}}}}, EXTRACTED),
    "what is not shown": (
        {
            "extraction": {
                "models": {"T4": {"mixing_weight": 0.5}},
                "measures": {"clustering": {"scale": 1}},
                "figures": {"extraction_figure5": {"title": "Another"}},
            }
        },
        NOTHING,
    ),
    "a title of a figure": (
        {"extraction": {"figures": {"extraction_figure4": {"title": "Another"}}}},
        OF_EXTRACTION | REPORT,
    ),
    "fewer figures": ({"extraction": {"show": {"figures": []}}}, REPORT),
}


@pytest.mark.parametrize(("overlay", "reruns"), OVERLAYS.values(), ids=OVERLAYS)
def test_another_structure_or_source_reruns_what_reads_it(finished, tmp_path, overlay, reruns):
    assert plan_with(finished, overlay, tmp_path) == reruns


DEMO_GRID = yaml.safe_load((ROOT / "config/experiments/demo.yaml").read_text("utf-8"))
TOKENS = DEMO_GRID["token_similarity"]
GRID_CHANGES = [
    ({"seeds": [1, 2, 3]}, {"train_encoder": 6, **evaluated(5)} | SCORED),
    ({"seeds": DEMO_GRID["seeds"][::-1]}, NOTHING),
    ({"title": "Another"}, SCORED),
    ({"baseline": None}, SCORED),
    ({"token_similarity": TOKENS | {"max_tokens": 16}}, FIGURES | REPORT),
    ({"runs": DEMO_GRID["runs"][::-1]}, SCORED),  # runs are drawn in their order
    ({"scatter": {"x": "alignment", "y": "Spearman"}}, FIGURES | REPORT),
    ({"modulus_surface": {"longest": 3.0, "steps": 61}}, FIGURES | REPORT),
]


@pytest.mark.parametrize(("change", "reruns"), GRID_CHANGES)
def test_a_changed_grid_reruns_what_it_asks_for(finished, change, reruns):
    file = finished / "config/experiments/demo.yaml"
    with holding(file, yaml.safe_dump(DEMO_GRID | change)):
        assert planned_jobs(finished) == reruns


# Modules


JOBS = ALL_EVALUATED | {
    "fetch_encoder": 1, "read_dataset": 2, "split_corpus": 1, "count_words": 1, "pick_exemplars": 1, "continue_mlm": 1, "build_frozen": 3,
    "train_encoder": 12,
} | FROM_TEXT  # fmt: skip
"""Every job of the demo."""
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "workflow_scripts").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "workflow_scripts").rglob("[a-z]*.py")
)


def file_of(module: str) -> Path:
    """The file that holds ``module``, below the repository's root."""
    stem = Path("workflow_scripts", *module.split("."))
    return stem / "__init__.py" if (ROOT / stem).is_dir() else stem.with_suffix(".py")


@pytest.fixture(scope="module")
def recorded(finished: Path) -> dict[str, tuple[str, set[str]]]:
    """Rule, inputs and modules of every file of the demo, as Snakemake's own records tell."""
    made = {}
    for path in (finished / ".snakemake/metadata").iterdir():
        record = json.loads(path.read_text())
        lists = [finished / name for name in record["input"] if name.startswith(".snakemake/code/")]
        modules = {module for file in lists for module in json.loads(file.read_text())}
        output = base64.b64decode(path.name).decode()
        drawn = record["rule"] == "draw_figures"
        rule = f"draw_figures:{Path(output).parent.name}" if drawn else record["rule"]
        made[output] = (rule, {*record["input"], *modules})
    return made


def edited(folder: Path, modules: Iterable[str], addition: str) -> ExitStack:
    """The modules with ``addition`` at their ends, as long as it lasts."""
    edits = ExitStack()
    for file in (folder / file_of(module) for module in modules):
        edits.enter_context(holding(file, f"{file.read_text()}\n{addition}\n"))
    return edits


REAL = "EDITED = True"


def test_a_comment_and_a_string_in_every_module_rerun_nothing(finished):
    with edited(finished, MODULES, '\n\n\n# a comment\n"""A docstring."""'):
        assert planned_jobs(finished) == {}


def test_an_edit_under_its_old_date_is_seen_and_may_be_waived(finished):
    """An edit that keeps its old date is seen and may be waived."""
    file = finished / file_of("methods.three_r")
    date = file.stat().st_mtime
    with edited(finished, ["methods.three_r"], REAL):
        os.utime(file, (date, date))
        assert planned_jobs(finished) == THREE_R
        assert planned_jobs(finished, "--consider-ancient", "train_encoder=code") == {}


EDITS = {  # module to the jobs that a real edit of it brings back
    "errors": NOTHING,  # these can stop a job or describe it
    "provenance.job": NOTHING,
    "provenance.key": NOTHING,
    "columns:CLAIMS": JUDGED | REPORT,  # tables by the columns that a job's code names
    "columns:ATTENTION": FIGURES | REPORT,
    "columns:TASKS": NOTHING,  # the demo has no task of mteb
    "data.readers.rows": JUDGEMENTS | SCORED_AGAIN,
    "data.readers.sentences": TEXT | FROM_TEXT,
    "evaluation.sts": ALL_EVALUATED | SCORED_AGAIN,
    "figures.curves": FIGURES | REPORT,
    "figures.extraction": OF_EXTRACTION | REPORT,
    "figures.modulus_surface": NOTHING,  # the demo has none
    "losses.infonce": TRAINED | {"train_encoder": 12},
    "losses.modulus": JTCSE,
    "losses.reduction": THREE_R,
    "methods.jtcse": JTCSE,
    "methods.simcse": TRAINED,
    "methods.three_r": THREE_R,
    "models.ensemble": JTCSE,
    "models.readouts.encoder_sum": JTCSE,
    "models.readouts.layer_attention": LAYER_POOLER,
    "models.readouts.pooling": POOLED | PLAIN,
    "models.readouts.s2sent": S2SENT,
    "figures.base": DRAWN | REPORT,
    "settings.methods:Frozen": POOLED,  # settings by the classes that a job's code names
    "settings.methods:ThreeR": THREE_R,
    "settings.methods:Contrastive": TRAINED,
    "settings.readouts:S2Sent": S2SENT,
    "settings.readouts:Pooling": POOLED | PLAIN | LEARNT_AGAIN,
    "settings.suites:Clustering": NOTHING,
    "training.mlm": ADAPTED,
}


@pytest.mark.parametrize("module", EDITS)
def test_a_module_is_an_input_of_the_jobs_that_compute_with_it(recorded, module):
    """As Snakemake has noted; that a job imports nothing else is held by ``tests/rooms/provenance``."""
    file, _, named = module.partition(":")
    changed = {f"{file_of(file).as_posix()}:{named}" if named else file_of(file).as_posix()}
    while more := {path for path, (_rule, inputs) in recorded.items() if inputs & changed} - changed:
        changed |= more
    assert {recorded[path][0] for path in changed & recorded.keys()} == {*EDITS[module]}


@pytest.mark.parametrize("module", ["data.readers.rows", "provenance.key", "losses.modulus", "figures.base"])
def test_an_edit_reruns_as_many_jobs(finished, module):
    with edited(finished, [module], REAL):
        assert planned_jobs(finished) == EDITS[module]


@pytest.mark.parametrize(
    ("module", "was", "becomes", "planned"),
    [
        ("columns", '("printed_ours", pa.float64())', '("printed_ours", pa.float32())', JUDGED | REPORT),
        ("settings.methods", 'description="Dropout of hidden', 'description="Rate of hidden', NOTHING),
        (
            "settings.methods",
            'ge=0, lt=1, description="Dropout of hidden',
            'ge=0, lt=2, description="Dropout of hidden',
            NOTHING,
        ),
        (
            "settings.training",
            "restart_every: int | None = Field(\n        default=None",
            "restart_every: int | None = Field(\n        default=99",
            ADAPTED,
        ),
    ],
    ids=["a column", "words", "a range", "a default"],
)
def test_a_column_or_default_reruns_what_may_read_it(finished, module, was, becomes, planned):
    """A column or default reruns what may read it and what only refuses reruns nothing."""
    file = finished / file_of(module)
    text = file.read_text()
    assert text.count(was) == 1
    with holding(file, text.replace(was, becomes)):
        assert planned_jobs(finished) == planned
