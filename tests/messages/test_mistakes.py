"""Deliberate mistakes, each found before the first job, in one line: where, what was found, what to do.

Most are asked of the check itself, which the Snakefile makes whenever it is read; the last tests ask Snakemake.
"""

import copy
import functools
import json
from pathlib import Path

import pytest

from tests.support.snakemake_plans import (
    DEMO,
    ROOT,
    copy_tree,
    holding,
    merged_config,
    set_at,
    settings_with,
    snakemake,
)
from workflow_scripts.data.hub import snapshot
from workflow_scripts.graph.checks import checked, read_grids
from workflow_scripts.graph.needs import need_errors
from workflow_scripts.graph.study import Study


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """An environment without data and keys."""
    for name in ("SEMBLANCE_DATA", "SEMBLANCE_OFFLINE", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


STEPS = {"training": {"epochs": None}}
"""For methods whose block has epochs, where the demo has steps."""
BLOCK = {"encoder": "minilm_mlm", "corpus": "wiki_extract", "tag": "wrong"}
SCORES = {"suite": "lee", "aggregation": "all", "metric": "spearman", "scale": 1, "digits": 2}
RUN = "({0}.minilm_mlm.wiki_extract.wrong): "


@functools.cache
def study(overlay=DEMO):
    """A sound study: its configuration and grids, not to be changed."""
    config = merged_config(overlay)
    return config, read_grids(config, ROOT / "config")[0]


def findings(change, overlay=DEMO, data_root=None):
    """Findings after ``change(config, grids)``."""
    config, grids = copy.deepcopy(study(overlay))
    change(config, grids)
    config["data_root"] = data_root and str(data_root)
    return [*map(str, checked(config, grids, ROOT)[1])]


def put(path, value):
    """A change of one key of the configuration, ``grid.`` in front of one of the demo's grid."""
    in_grid = path.removeprefix("grid/")
    return lambda config, grids: set_at(config if in_grid == path else grids["demo"], in_grid, value)


def run(method, **block):
    """A run more in the demo's grid."""
    return lambda _config, grids: grids["demo"]["runs"].append(BLOCK | {"method": method} | block)


def method_of(name, **settings):
    """A run more whose method is overridden."""
    return run(name, overrides={"method": settings})


def training_of(name, **settings):
    return run(name, overrides={"training": settings})


def added(**column):
    """A column more in the demo's grid, or a block of several."""
    return lambda _config, grids: grids["demo"]["columns"].append(column)


def column(**changes):
    """A column more of scores."""
    return added(**(SCORES | {"heading": "wrong", "task": "lee"} | changes))


def timed_column(**changes):
    """A column more in the demo's grid, of a time."""
    time = {
        "suite": "cost",
        "task": "cost",
        "aggregation": "batch:32",
        "metric": "latency_ratio",
        "measured": True,
    }
    return both(put("grid/suites/cost", ["cost"]), column(**time | changes))


def both(*changes):
    def change(config, grids):
        for one in changes:
            one(config, grids)

    return change


WIDE = put("encoders/large_one", {"adapt": {
    "base": "minilm", "corpus": "wiki_extract", "label": "odd",
    "from_scratch": {"layers": 12, "width": 768, "heads": 12, "feed_forward": 3072},
}})  # fmt: skip
"""An encoder of BERT-base's size, which is known before it is made."""
NARROW = {"adapt": {
    "base": "minilm", "corpus": "wiki_extract", "label": "odd",
    "from_scratch": {"layers": 6, "width": 24, "heads": 4, "feed_forward": 48},
}}  # fmt: skip
HELD_OUT = put("development/dataset", "lee")
"""For runs on corpora that hold no sentences out for choosing checkpoints."""


def twin(*runs, method="jtcse", **settings):
    """A method on an encoder that consists of ``runs``."""
    return both(
        put("encoders/wrong_twin", {"label": None, "runs": list(runs)}),
        run(method, encoder="wrong_twin", overrides={"method": settings}),
    )


SIMCSE = {"method": "simcse", "encoder": "minilm_mlm", "corpus": "wiki_extract"}
OTHER = SIMCSE | {"tag": "other", "overrides": {"method": {"dropout": 0.2}}}

TRIP = study()[0]["corpora"]["wiki_spa"]["round_trip"]

MISTAKES = {
    # claims; what is wrong with their tables is in tests/rooms/graph/test_claims.py
    "a paper without a file of claims": (
        put("claims/papers", ["s2sent", "jtsce"]),
        "claims.papers: no file jtsce.csv in config/claims. Did you mean jtcse?",
    ),
    "a heading that a claim names": (
        put("grid/columns/0/heading", "rho"),
        "config/claims/s2sent.csv: line 2 (simcse_bert): demo_heading: Spearman is not defined.",
    ),
    # overrides, readings and sweeps: keys, types, ranges
    "a misspelt key of the training": (
        training_of("simcse", max_step=5),
        "runs.4.overrides.training.max_step: unknown key. Did you mean max_steps?",
    ),
    "a misspelt key of a reading that no run has": (
        put("methods/simcse/readings", {"mine": {"training": {"max_step": 5}}}),
        "methods.simcse.readings.mine.training.max_step: unknown key. Did you mean max_steps?",
    ),
    "a misspelt name of a method, among its settings": (
        put("methods/simcs", {"training": {"max_steps": 5}}),
        "methods.simcs.module: missing. Add it, or check the block's name.",
    ),
    "a setting of trainings at the top": (
        put("max_steps", 5),
        "max_steps: unknown key. Did you mean training.max_steps?",
    ),
    "a setting of the method in its readout": (
        method_of("simcse", readout={"temperature": 0.1}),
        "method.readout.temperature: unknown key. Did you mean method.temperature?",
    ),
    "a misspelt key of the readout": (
        method_of("simcse_s2sent", readout={"freqencies": 4}),
        RUN.format("simcse_s2sent") + "method.readout.freqencies: unknown key. Did you mean frequencies?",
    ),
    "a number of frequencies that does not exist": (
        method_of("simcse_s2sent", readout={"frequencies": 3}),
        "method.readout.frequencies: must be 1, 2, 4, 8 or 16; found 3 (Number m",
    ),
    "text for a number": (
        training_of("simcse", learning_rate="small"),
        "training.learning_rate: must be a number; found 'small' (Peak learning rate of AdamW).",
    ),
    "an unknown schedule": (
        training_of("simcse", schedule="linaer"),
        "training.schedule: must be 'linear' or 'constant'; found 'linaer' (Schedule of the learning rate; linear decays to min_lr_ratio, "
        "which step n + 1 of n would reach). Did you mean linear?",
    ),
    "an unknown module": (
        method_of("simcse", module="simce"),
        "method.module: must be one of 'frozen', ",
    ),
    "an unknown kind of readout": (
        method_of("simcse", readout={"kind": "s2snt"}),
        "must be one of 'pooling', 'layer_attention', 's2sent', 'mask_token', 'as_published'; found 's2snt'. Did you mean s2sent?",
    ),
    "a number for a readout": (
        method_of("simcse", readout=5),
        "method.readout: must be a block of keys; found 5.",
    ),
    "another kind of readout with the keys of the first": (
        method_of("simcse", readout={"kind": "mask_token"}),
        "method.readout.layers: unknown key. Choose from: kind.",
    ),
    "a sweep over a key that is none": (
        run("simcse_s2sent", sweep={"method.readout.block": [1, 2]}),
        "simcse_s2sent.minilm_mlm.wiki_extract.wrong.block2): method.readout.block: unknown key. Did you mean blocks?",
    ),
    "a sweep over a setting without its section": (
        run("simcse", sweep={"temperature": [0.05, 0.1]}),
        "sweep.temperature: not a dotted setting. Begin it with `method.` or `training.`.",
    ),
    "a sweep with a value out of range": (
        run("simcse", sweep={"method.temperature": [0.05, 2]}),
        "wrong.temperature2): method.temperature: must be less than or equal to 1; found 2",
    ),
    "a key of a method underneath": (
        method_of("simcse_3r", base={"temprature": 1}),
        "method.base.temprature: unknown key. Did you mean temperature?",
    ),
    "a reading that the method lacks": (
        run("simcse", reading="more_droput"),
        "reading: more_droput is not a reading of methods.simcse. Did you mean more_dropout?",
    ),
    "a reading of a method without any": (
        run("frozen_cls", reading="paper", corpus=None),
        "reading: paper is not a reading of methods.frozen_cls. None is defined.",
    ),
    "a reading with a section that nobody reads": (
        both(put("methods/simcse/readings/odd", {"mehtod": {"dropout": 0.1}}), run("simcse", reading="odd")),
        "readings.odd.mehtod: unknown key. Did you mean method?",
    ),
    "a mistake in the runs behind an encoder": (
        twin(SIMCSE, OTHER | {"overrides": {"training": {"max_step": 5}}}),
        "encoders.wrong_twin.runs.1.overrides.training.max_step: unknown key.",
    ),
    # settings that exclude each other
    "neither epochs nor max_steps": (
        training_of("simcse", max_steps=None),
        "training.epochs: null with max_steps null. Set one of them",
    ),
    "epochs with max_steps by merging an encoder's settings": (
        both(put("encoders/minilm_mlm/training", {"epochs": 1}), run("simcse")),
        "training.epochs: 1 with max_steps 16. Set one of them",
    ),
    "epochs of masked words where steps stay": (
        put("continue_mlm/training/epochs", 1),
        "continue_mlm.training.epochs: 1 with max_steps 120. Set one of them",
    ),
    "epochs of an adapted encoder's own where steps stay": (
        put("encoders/minilm_mlm/adapt/training", {"epochs": 1}),
        "encoders.minilm_mlm.adapt.training.epochs: 1 with max_steps 120. Set one of them",
    ),
    "a step in chunks whose discriminator reads the batch again": (
        run("diffcse", overrides={"training": {"epochs": None, "chunk": 8}}),
        "training.chunk: diffcse's discriminator reads the batch again. Set it to null for this method.",
    ),
    "an adapted encoder's step in chunks": (
        put("continue_mlm/training/chunk", 8),
        "continue_mlm.training.chunk: 8, but this training has no contrastive loss. "
        "Remove `chunk`; to save memory, reduce batch_size.",
    ),
    "masked words on several GPUs": (
        put("continue_mlm/training/gpus", 2),
        "continue_mlm.training.gpus: 2; processes would mask different numbers of tokens. Set it to 1.",
    ),
    "an adaptation that ends by a development set": (
        put("continue_mlm/training/patience", 3),
        "continue_mlm.training.patience: 3, but this training has no development set. Remove `patience`.",
    ),
    "a training that ends before its first evaluation": (
        put("training/patience", 0),
        "training.patience: must be greater than 0; found 0",
    ),
    "an encoder from scratch whose heads do not share its width": (
        put(
            "encoders/minilm_mlm/adapt/from_scratch",
            {"layers": 6, "width": 128, "heads": 5, "feed_forward": 8},
        ),
        "encoders.minilm_mlm.adapt.from_scratch.width: 128 is not a multiple of the 5 heads. Set it to 130, for example.",
    ),
    "an interval of a method that is none": (
        both(put("methods/simcse/development", {"every": 0}), run("simcse")),
        "methods.simcse.development.every: must be greater than 0; found 0",
    ),
    "a development set of a run's own": (
        run("simcse", overrides={"development": {"dataset": "lee"}}),
        "development.dataset: unknown key. Choose from: every, max_tokens.",
    ),
    "a GPU for what is measured on processors": (
        put("evaluation/on_gpu", ["cost"]),
        "evaluation.on_gpu.0: must be 'clustering', 'mteb', 'search', 'sts', 'transfer' or 'extraction'; found 'cost'",
    ),
    "a batch that the GPUs cannot share": (
        training_of("simcse", gpus=3),
        "training.batch_size: 32 is not a multiple of the 3 GPUs. Set it to 33, for example.",
    ),
    "a frozen threshold that learns": (
        method_of("simcse_3r", threshold={"surrogate": "frozen"}),
        "method.threshold.lr_budget: 0.75 with surrogate frozen. Set it to 0.",
    ),
    "a learning threshold that goes nowhere": (
        method_of("simcse_3r", threshold={"lr_budget": 0}),
        "method.threshold.lr_budget: 0 with surrogate straight_through.",
    ),
    "exemplars from no pool": (
        method_of("simcse_3r", pool=None),
        "method.pool: null with subtract exemplars. Set it to a block",
    ),
    "a pool that nothing reads": (
        method_of("simcse_3r", subtract="own"),
        "method.pool: wiki_extract_extractive with subtract own.",
    ),
    "words that nothing reads": (method_of("simcse_3r", words=300), "method.words: 300 with identify batch"),
    "no words where they are read": (
        method_of("simcse_3r", identify="words_at_start"),
        "method.words: null with identify words_at_start",
    ),
    "no words where they are subtracted": (
        method_of("simcse_3r", subtract="words", pool=None),
        "method.words: null with identify batch and subtract words",
    ),
    "a pool that is not defined": (
        method_of("simcse_3r", pool="wiki_extract_extractiv"),
        "method.pool: wiki_extract_extractiv is not defined. Did you mean wiki_extract_extractive?",
    ),
    "more exemplars than the pool has": (
        method_of("simcse_3r", k=100),
        "method.k: 100 exemplars a step; pool wiki_extract_extractive has 64. Set it to 64 or less.",
    ),
    "batch_norm without a squeeze": (
        method_of("simcse_s2sent", readout={"squeeze": "none", "batch_norm": True}),
        "method.readout.batch_norm: true, but BatchNorm is not defined for squeeze none",
    ),
    "a projector of batch_norm at test": (
        run("diffcse", overrides=STEPS | {"method": {"head_at_test": True}}),
        "method.projector: batch_norm, which cannot be part of an embedding.",
    ),
    "[MASK] without a template": (
        method_of("simcse_s2sent", readout={"pooling": "mask"}),
        "method.readout.pooling: mask reads [MASK], but the method puts sentences into no template.",
    ),
    "[MASK] of a frozen encoder": (
        both(
            put("methods/frozen_mask", {"module": "frozen", "readout": {"kind": "mask_token"}}),
            run("frozen_mask", corpus=None),
        ),
        "readout.kind: mask_token reads [MASK]",
    ),
    # the encoder's depth and width
    "more blocks than layers": (
        method_of("simcse_s2sent", readout={"blocks": 12}),
        "method.readout.blocks: 12; minilm_mlm has 6 layers. Set it to 6 or less.",
    ),
    "a bottleneck of no feature": (
        method_of("simcse_s2sent", readout={"reduction": 385}),
        "method.readout.reduction: 385; minilm_mlm has a width of 384. Set it to 384 or less.",
    ),
    "frequencies among which the width cannot be divided": (
        both(
            put("encoders/narrow", NARROW),
            run("simcse_s2sent", encoder="narrow", overrides={"method": {"readout": {"frequencies": 16}}}),
        ),
        "method.readout.frequencies: 16; the width of narrow, 24, is no multiple of it. Set it to 8.",
    ),
    "a layer that the encoder lacks": (
        method_of("simcse", readout={"pooler": "avg", "layers": [0, 12]}),
        "method.readout.layers: 12; minilm_mlm has hidden states 0 to 6.",
    ),
    "a layer of negatives that the encoder lacks": (
        method_of("sscl", negative_layers=[-9]),
        "method.negative_layers: -9; minilm_mlm has hidden states 0 to 6.",
    ),
    "SSCL with two layers": (
        method_of("sscl", readout={"layers": [1, 2]}),
        "method.readout: sscl needs a pooling readout of a single layer.",
    ),
    "cross-attention in every fifth of six layers": (
        twin(SIMCSE, OTHER, cross_every=5),
        "method.cross_every: 5; the number of layers of wrong_twin, 6, is no multiple of it. Set it to a divisor of 6, or null.",
    ),
    "more LayerNorms left out than layers": (
        twin(SIMCSE, OTHER, bypassed_layernorms=7),
        "method.bypassed_layernorms: 7; wrong_twin has 6 layers.",
    ),
    # what a run starts from
    "JTCSE on one encoder": (
        run("jtcse"),
        "encoder: jtcse joins two different runs; minilm_mlm consists of no runs. Choose an encoder with two runs in `runs`.",
    ),
    "JTCSE on one run twice": (
        twin(SIMCSE, SIMCSE),
        "encoder: jtcse joins two different runs; wrong_twin consists of 1 run.",
    ),
    "JTCSE on one run under two names, which checkpoints at other times": (
        twin(SIMCSE, OTHER | {"overrides": {"training": {"checkpoint_minutes": 3}}}),
        "encoder: jtcse joins two different runs; simcse.minilm_mlm.wiki_extract and "
        "simcse.minilm_mlm.wiki_extract.other have the same settings. Change one in `runs` of wrong_twin.",
    ),
    "JTCSE on a run that is not trained": (
        twin(SIMCSE, {"method": "frozen_cls", "encoder": "minilm_mlm"}),
        "encoder: jtcse joins trained runs; frozen_cls.minilm_mlm trains nothing. Replace it in `runs` of wrong_twin.",
    ),
    "JTCSE on encoders of two sizes": (
        both(WIDE, twin(SIMCSE, SIMCSE | {"encoder": "large_one"})),
        "encoder: the runs of wrong_twin have encoders of several sizes: 6 layers of 384, 12 layers of 768.",
    ),
    "SimCSE on two runs": (
        twin(SIMCSE, OTHER, method="simcse"),
        "encoder: simcse starts from one encoder; wrong_twin consists of 2 runs.",
    ),
    "an ensemble of no runs": (
        run("ensemble", corpus=None),
        "encoder: ensemble adds up runs, but minilm_mlm has none.",
    ),
    "weights for two of three runs": (
        both(
            put("encoders/wrong_three", {"label": None, "runs": [SIMCSE, OTHER, SIMCSE | {"tag": "third"}]}),
            run("uc_bert", encoder="wrong_three", corpus=None, per_seed=True),
        ),
        "method.weights: 2 weights; wrong_three consists of 3 runs.",
    ),
    "another readout of two runs": (
        run("pooled_avg", encoder="demo_twin", corpus=None, per_seed=True),
        "encoder: repooled needs exactly one run; demo_twin has 2 runs.",
    ),
    "an encoder that starts from itself": (
        put("encoders/circle", {"label": None, "runs": [SIMCSE | {"encoder": "circle"}]}),
        "encoders.circle: it starts from itself",
    ),
    "SimCSE without a corpus": (
        run("simcse", corpus=None),
        "corpus: missing, but simcse trains on a corpus.",
    ),
    "a frozen encoder with a corpus": (
        run("frozen_cls"),
        "corpus: wiki_extract, but frozen trains nothing.",
    ),
    "supervised SimCSE on plain sentences": (
        run("supervised_simcse", overrides=STEPS),
        "corpus: supervised_simcse reads the column positive, but wiki_extract has only anchor.",
    ),
    "hard negatives of round trips": (
        both(run("supervised_simcse", corpus="wiki_spa", overrides=STEPS), HELD_OUT),
        "corpus: supervised_simcse reads the column negative, but wiki_spa has only anchor, positive.",
    ),
    "3R on a method without pairs": (
        both(
            put("methods/odd_3r", study()[0]["methods"]["simcse_3r"] | {"base": "diffcse"}),
            run("odd_3r", overrides=STEPS),
        ),
        "method.base: diffcse compares no pairs of vectors that could be reduced. Set it to a contrastive method",
    ),
    "3R on a method whose vectors are read at a mask": (
        both(
            put("methods/odd_3r", study()[0]["methods"]["simcse_3r"] | {"base": "promptbert"}),
            run("odd_3r", overrides=STEPS),
        ),
        "method.base: exemplars and words have no template, whose [MASK] promptbert reads. Set it to a method without",
    ),
    "distillation without a teacher": (
        run("distil"),
        "teacher: missing, but distil learns the vectors of a teacher.",
    ),
    "a teacher that nobody learns from": (
        both(put("encoders/one", {"label": None, "runs": [OTHER]}), run("simcse", teacher="one")),
        "teacher: one, but simcse has no teacher.",
    ),
    "an encoder that is not defined": (
        run("simcse", encoder="minilm_mml"),
        "config/experiments/demo.yaml: runs.4.encoder: minilm_mml is not defined. Did you mean minilm_mlm?",
    ),
    "a method in capitals": (
        run("SimCSE"),
        "config/experiments/demo.yaml: runs.4.method: SimCSE is not defined. Did you mean simcse?",
    ),
    "seeds of a run that is not trained": (
        run("frozen_cls", corpus=None, seeds=[1, 2]),
        "config/experiments/demo.yaml: runs.4.seeds: 1, 2, but these runs have no corpus and are not trained. Remove "
        "`seeds`, or add a `corpus`.",
    ),
    "seeds of an encoder's run": (
        put("encoders/one", {"label": None, "runs": [SIMCSE | {"seeds": [1]}]}),
        "encoders.one.runs.0.seeds: unknown key. Did you mean per_seed?",
    ),
    "a seed twice": (
        put("grid/seeds", [1, 2, 1]),
        "config/experiments/demo.yaml: seeds: 1 is listed twice. Remove one.",
    ),
    "a key of many runs": (
        run(["simcse", "sscl"], encoder=["minilm", "minilm_mlm"], overrides={"method": {"temperature": -1}}),
        "(simcse.minilm.wiki_extract.wrong, simcse.minilm_mlm.wiki_extract.wrong and 2 more): method.temperature: ",
    ),
    "a run twice": (
        both(run("simcse"), run("simcse")),
        "two runs are named simcse.minilm_mlm.wiki_extract.wrong. Remove one.",
    ),
    # columns, figures
    "a suite that is not there, which columns name": (
        put("grid/suites/sts", ["le"]),
        "config/experiments/demo.yaml: suites.sts: le is not defined. Did you mean lee?",
    ),
    "a dataset of a suite that is not there, which columns name": (
        put("suites/sts/lee/datasets", ["leee"]),
        "suites.sts.lee.datasets: leee is not defined. Did you mean lee?",
    ),
    "a metric that no suite writes": (
        column(metric="spearmann"),
        "columns.5.metric (wrong): spearmann, but suite lee writes no such metric of lee. Did you mean spearman?",
    ),
    "a task that is not in the suite": (
        column(task="le"),
        "columns.5.task (wrong): le, which is not a task of suite lee. Did you mean lee?",
    ),
    "an aggregation that nobody writes": (
        column(aggregation="al"),
        'columns.5.aggregation (wrong): suite lee has no "al" of spearman. Choose from: "all", "mean"',
    ),
    "a metric of another measure": (
        column(task="lee_space", aggregation="", metric="isoscore"),
        "isoscore, but suite lee writes no such metric of lee_space. Choose from: alignment, uniformity.",
    ),
    "a suite that the grid does not ask for": (
        column(suite="sts"),
        "columns.5.suite: sts is not defined.",
    ),
    "one of several tasks that is not in the suite": (
        both(added(**SCORES, tasks=["lee"]), added(**SCORES, tasks={"A": "lee", "B": "le"})),
        "columns.6.task (B): le, which is not a task of suite lee. Did you mean lee?",
    ),
    "a heading among several tasks twice": (
        added(**SCORES, tasks={"A": "lee", "Spearman": "lee"}),
        "columns.5.heading (Spearman): another column has that heading.",
    ),
    "tasks in words": (
        added(**SCORES, tasks="lee"),
        "config/experiments/demo.yaml: columns.5.tasks: must be a block of keys or a list; found 'lee'",
    ),
    "a heading of several tasks": (
        added(**SCORES, tasks=["lee"], heading="A"),
        "config/experiments/demo.yaml: columns.5.heading: unknown key.",
    ),
    "no tasks": (
        added(**SCORES, tasks=[]),
        "config/experiments/demo.yaml: columns.5.tasks: must be a block of keys or name at least one; found []",
    ),
    "a mean of a column that is none": (
        added(heading="mean", mean_of=["Spearman", "Pearsn"], digits=2),
        "columns.5.mean_of: Pearsn is not defined. Did you mean Pearson?",
    ),
    "a ratio of a column that is none": (
        added(heading="ratio", ratio_of=["Pearsn", "Spearman"], digits=2),
        "columns.5.ratio_of: Pearsn is not defined. Did you mean Pearson?",
    ),
    "a gain in a column that is none": (
        added(heading="gain", gain_of="Pearsn", digits=2),
        "columns.5.gain_of: Pearsn is not defined. Did you mean Pearson?",
    ),
    "a headline that is no column": (
        put("grid/headline", "Spearmann"),
        "config/experiments/demo.yaml: headline: Spearmann is not defined. Did you mean Spearman?",
    ),
    "a scatter of no column": (
        put("grid/scatter", {"x": "Spearman", "y": "uniformty"}),
        "scatter.y: uniformty is not defined. Did you mean uniformity?",
    ),
    "a plot of a setting that nobody sweeps": (
        put("grid/sweep/plots", [{"setting": "method.temperature", "label": "t"}]),
        "sweep.plots.0.setting: method.temperature is not defined. None is defined.",
    ),
    "a plot of no column": (
        both(
            run("simcse", sweep={"method.temperature": [0.1]}),
            put("grid/sweep/plots", [{"setting": "method.temperature", "label": "t", "heading": "Pearsn"}]),
        ),
        "sweep.plots.0.heading: Pearsn is not defined. Did you mean Pearson?",
    ),
    "words compared in a run that is not there": (
        put("grid/token_similarity/runs", ["simcse.minilm.wiki_extract"]),
        "token_similarity.runs: simcse.minilm.wiki_extract is not defined. Did you mean simcse.minilm_mlm",
    ),
    "a baseline that is no run": (
        put("grid/baseline", "frozen_cls.minilm_mml"),
        "baseline: frozen_cls.minilm_mml is not defined. Did you mean frozen_cls.minilm_mlm?",
    ),
    "a baseline of a block that is no run": (
        run("simcse", baseline="frozen_csl.{encoder}"),
        "baseline: frozen_csl.minilm_mlm is not defined. Did you mean frozen_cls.minilm_mlm?",
    ),
    "a baseline with an axis that is none": (
        run("simcse", baseline="frozen_cls.{encodr}"),
        "baseline frozen_cls.{encodr}: 'encodr' is not an axis. Choose from: method, encoder, corpus, reading, teacher.",
    ),
    "a time that is not said to be measured": (
        timed_column(measured=False),
        "columns.5.measured (wrong): latency_ratio of suite cost is a time. Write measured: true.",
    ),
    "a score that is said to be measured": (
        column(measured=True),
        "columns.5.measured (wrong): spearman of suite lee is no time. Write measured: false.",
    ),
    "a time of a batch that is not timed": (
        timed_column(aggregation="batch:7"),
        'columns.5.aggregation (wrong): suite cost has no "batch:7" of latency_ratio. Choose from: "batch:1", "batch:32".',
    ),
    "a headline that is measured": (
        both(timed_column(), put("grid/headline", "wrong")),
        "headline: wrong is not defined.",
    ),
    "a scatter of a measured column": (
        both(timed_column(), put("grid/scatter", {"x": "wrong", "y": "uniformity"})),
        "scatter.x: wrong is not defined.",
    ),
    "two runs of one name": (
        both(run("simcse"), training_of("simcse", max_steps=3)),
        "two runs are named simcse.minilm_mlm.wiki_extract.wrong. Add a `tag` to one.",
    ),
    "a plane of a task without positive pairs": (
        put("grid/alignment_uniformity/task", "documents"),
        "alignment_uniformity.task: documents is not defined. Choose from: lee_space.",
    ),
    "densities of a task that is not there": (
        put("report/cosine_density/task", "leee"),
        "report.cosine_density.task: leee is not defined. Did you mean lee?",
    ),
    "power that chance alone has": (
        put("significance/power", 0.05),
        "significance.power: 0.05, but a test has at least the power alpha, 0.05, by chance. Set it above 0.05; 0.8 is usual.",
    ),
    "checkpoints that nothing chooses": (
        put("corpora/wiki_extract/dev_sentences", 0),
        "development.dataset: null, but no sentence of the corpus is held out. Set it to a dataset of pairs, or "
        "corpora.wiki_extract.dev_sentences to 1000",
    ),
    "a column of an aggregation that its suite has not": (
        column(aggregation="all@32"),
        'aggregation (wrong): suite lee has no "all@32" of spearman. Choose from: "all", "mean"',
    ),
    "longer sentences of a training than the encoder takes": (
        training_of("simcse", max_tokens=513),
        RUN.format("simcse")
        + "training.max_tokens: 513, but minilm_mlm accepts at most 512 tokens. Set it to 512 or less.",
    ),
    "longer sentences of a development set than the encoder takes": (
        run("simcse", overrides={"development": {"max_tokens": 99999}}),
        RUN.format("simcse")
        + "development.max_tokens: 99999, but minilm_mlm accepts at most 512 tokens. Set it to 512 or less.",
    ),
    "a seed that no generator takes": (
        put("grid/seeds", [2**32]),
        "config/experiments/demo.yaml: seeds.0: must be less than 4294967296; found 4294967296",
    ),
    "groups of judgements that do not rise": (
        put("report/cosine_density/edges", [0, 0.5, 0.5, 1]),
        "report.cosine_density.edges: 0, 0.5, 0.5, 1 do not increase. Sort them, without repeats.",
    ),
    "a template without the sentence": (
        put("extraction/templates/t0/text", "means [MASK]."),
        "extraction.templates.t0.text: the place of the sentence, [X], occurs 0 times. Write it once.",
    ),
    "a template with the sentence twice": (
        put("methods/frozen_sncse/template/text", "[X], [X] means [MASK]."),
        "methods.frozen_sncse.template.text: the place of the sentence, [X], occurs 2 times. Write it once.",
    ),
    "vectors of a layer that the encoder lacks": (
        put("extraction/blocks/0/layers", ["1+9"]),
        "extraction.blocks.0.layers (plain): layers 1+9: '9' is not a layer of the encoder. Choose from static, 0 to 6, last.",
    ),
    "vectors of a layer named twice": (
        put("extraction/blocks/0/layers", ["6+last"]),
        "extraction.blocks.0.layers (plain): layers 6+last: one layer occurs twice. Remove one.",
    ),
    "layers of random vectors": (
        put("extraction/blocks/2/layers", ["last"]),
        "extraction.blocks.2.layers (random): the representation has no layers. Set layers to [static]",
    ),
    "the mask of plain sentences": (
        put("extraction/blocks/0/weightings", ["avg", "masks"]),
        "extraction.blocks.0.weightings (plain): the representation's template has no mask. Remove masks",
    ),
    "maps of layers that the encoder lacks": (
        put("grid/suites/attention", ["attention"]),
        "config/experiments/demo.yaml: suites.attention.attention.maps.layers: 7; minilm",
    ),
    # names that the blocks of the configuration use
    "a dataset of a suite that is not there": (
        put("suites/clustering/short_texts/datasets", ["agnew"]),
        "suites.clustering.short_texts.datasets: agnew is not defined. Did you mean agnews?",
    ),
    "a graded task that is not in the suite": (
        put("suites/transfer/senteval/graded", ["mrr"]),
        "suites.transfer.senteval.graded: mrr is not defined. Did you mean mr?",
    ),
    "a list of tasks that is not there": (
        put("suites/mteb/mteb_tasks/lists", ["jtcse_sts2"]),
        "suites.mteb.mteb_tasks.lists: jtcse_sts2 is not defined. Did you mean jtcse_sts22?",
    ),
    "a search among scored pairs": (
        put("suites/search/quora_search/datasets", ["lee"]),
        "suites.search.quora_search.datasets: lee has the form pairs; this key needs labelled. Choose from: ",
    ),
    "two suites of one name": (
        put("suites/sts/senteval", {"datasets": ["lee"], "max_tokens": 256}),
        "also contains this name. Rename one: tables identify suites by name.",
    ),
    "a method underneath that is not there": (
        put("methods/simcse_3r/base", "simce"),
        "methods.simcse_3r.base: simce is not defined. Did you mean simcse?",
    ),
    "a method underneath that has one underneath": (
        put("methods/odd_3r", study()[0]["methods"]["simcse_3r"] | {"base": "simcse_3r"}),
        "methods.odd_3r.base: simcse_3r has the form methods with a base; this key needs methods without a base.",
    ),
    "a pool of a method that is not there": (
        put("methods/simcse_3r/pool", "toy"),
        "methods.simcse_3r.pool: toy is not defined.",
    ),
    "a method of runs behind an encoder that is not there": (
        put("encoders/wrong_twin", {"label": None, "runs": [SIMCSE | {"method": "simcs"}]}),
        "encoders.wrong_twin.runs.0.method: simcs is not defined.",
    ),
    "seeds of a run behind an encoder that is trained": (
        put("encoders/wrong_twin", {"label": None, "runs": [SIMCSE | {"per_seed": True}]}),
        "encoders.wrong_twin.runs.0.per_seed: true, but only frozen runs of encoders that consist of runs need it",
    ),
    "a frozen run of runs without their seeds": (
        run("ensemble", encoder="demo_twin", corpus=None),
        "per_seed: missing, but demo_twin consists of runs, and this run of it is frozen. Set it to true.",
    ),
    "a teacher behind an encoder that is no run": (
        put("encoders/wrong_twin", {"label": None, "runs": [SIMCSE | {"teacher": "minilm"}]}),
        "encoders.wrong_twin.runs.0.teacher: minilm has the form single encoders; this key needs single runs.",
    ),
    # data of a form that is not read, and encoders that are no single one
    "a development set of texts with classes": (
        put("development/dataset", "mr"),
        "development.dataset: mr has the form labelled; this key needs pairs. Choose from: ",
    ),
    "an alignment of sentences": (
        put("suites/sts/lee/positives/lee_space/dataset", "wiki_extract"),
        "suites.sts.lee.positives.lee_space.dataset: wiki_extract has the form sentences; this key needs pairs.",
    ),
    "an isotropy of texts with classes": (
        put("suites/sts/lee/samples/documents/dataset", "mr"),
        "suites.sts.lee.samples.documents.dataset: mr has the form labelled; this key needs sentences or pairs",
    ),
    "an energy of texts with classes": (
        put("suites/attention/attention/energy/dataset", "mr"),
        "suites.attention.attention.energy.dataset: mr has the form labelled; this key needs sentences or pairs.",
    ),
    "frequencies of pairs": (
        put("extraction/wikitext/dataset", "lee"),
        "extraction.wikitext.dataset: lee has the form pairs; this key needs sentences. Choose from: ",
    ),
    "averages of pairs": (
        put("extraction/averages/dataset", "lee"),
        "extraction.averages.dataset: lee has the form pairs; this key needs sentences. Choose from: ",
    ),
    "vectors without training of runs": (
        put("extraction/encoder", "demo_twin"),
        "extraction.encoder: demo_twin has the form several runs; this key needs single encoders. Choose from: ",
    ),
    "exemplars in the tokens of runs": (
        put("exemplars/wiki1m_300/encoder", "demo_twin"),
        "exemplars.wiki1m_300.encoder: demo_twin has the form several runs; this key needs single encoders. Choose from: ",
    ),
    "an encoder adapted from runs": (
        put(
            "encoders/mine", {"adapt": study()[0]["encoders"]["minilm_mlm"]["adapt"] | {"base": "demo_twin"}}
        ),
        "encoders.mine.adapt.base: demo_twin has the form several runs; this key needs single encoders. Choose from: ",
    ),
    # no target without a producer
    "a list of tokens that is not there": (
        put("extraction/bias_list", "bert_typo"),
        "extraction.bias_list: no file resources/tokens/bert_typo.json. Did you mean bert?",
    ),
    "a printed table that is not there": (
        put("grid/published", ["jtcse_table99"]),
        "config/experiments/demo.yaml: published: no file resources/published/jtcse_table99.csv. Did you mean jtcse_table9?",
    ),
    "a prompt that is not there": (
        put("exemplars/wiki1m_300/prompt", "three_r_exemplar"),
        "exemplars.wiki1m_300.prompt: no file resources/prompts/three_r_exemplar.txt. Did you mean three_r_exemplars?",
    ),
    "a name of a dataset that cannot be a file": (
        put("datasets/lee-2", study()[0]["datasets"]["lee"]),
        "datasets.lee-2: not a name. Use small letters, digits and underscores.",
    ),
    "a name of a suite that cannot be a file": (
        put("suites/sts/lee-docs", study()[0]["suites"]["sts"]["lee"]),
        "suites.sts.lee-docs: not a name.",
    ),
    "a seed below zero": (
        put("grid/seeds", [-1]),
        "config/experiments/demo.yaml: seeds.0: must be greater than or equal to 0; found -1",
    ),
    "a table of the extraction study that is not there": (
        put("extraction/show/tables", ["extraction_table99"]),
        "extraction.show.tables: extraction_table99 is not defined. Did you mean extraction_table9?",
    ),
    **{
        f"a name in the extraction study's {path}": (
            put(f"extraction/{path}", value),
            f"extraction.{path.replace('/', '.')}{finding}",
        )
        for path, value, finding in [
            ("models/GloVe/representation", "glve", ": glve is not defined. Did you mean glove?"),
            ("measures/STS12/tasks", ["sts112"], ": sts112 is not defined. Did you mean sts12?"),
            ("measures/STS/metrics", ["spearmann"], ": spearmann is not defined. Did you mean spearman?"),
            ("measures/IsoScore/metrics", ["isoscor"], ": isoscor is not defined. Did you mean isoscore?"),
            (
                "measures/alignment/aggregation",
                "all",
                ': geometry has no "all" of alignment. Choose from: "".',
            ),
            (
                "measures/IsoScore/aggregation",
                "mean",
                ': isotropy has no "mean" of isoscore. Choose from: "".',
            ),
            ("tables/extraction_demo/models", ["BRT"], ": BRT is not defined. Did you mean BERT?"),
            ("tables/extraction_demo/measures", ["STSS"], ": STSS is not defined. Did you mean STS?"),
            (
                "tables/extraction_demo/variants",
                [{"weightings": ["unbiasd"], "postprocessings": ["none"]}],
                ".0.weightings: unbiasd is not defined. Did you mean unbiased?",
            ),
            (
                "figures/extraction_figure1/variants",
                [{"weightings": ["avg"], "postprocessings": ["non"]}],
                ".0.postprocessings: non is not defined. Did you mean none?",
            ),
            ("figures/extraction_figure1/x", "IsoScor", ": IsoScor is not defined. Did you mean IsoScore?"),
            ("figures/extraction_figure1/below", "table4", ": table4 is not defined. Choose from: "),
            (
                "figures/extraction_figure4/series/0/weighting",
                "agv",
                ": agv is not defined. Did you mean avg?",
            ),
            (
                "figures/extraction_figure5/representation",
                "plan",
                ": plan is not defined. Did you mean plain?",
            ),
            (
                "statistics/extraction_table2/rows/0/dataset",
                "agnew",
                ": agnew is not defined. Did you mean agnews?",
            ),
        ]
    },
    # sources of datasets: readers, their files and options
    "a reader that is not there": (
        put("datasets/lee/sources/0/reader", "leee"),
        "datasets.lee.sources.0.reader: leee is not defined. Did you mean lee?",
    ),
    "a kind of source that is none": (
        put("datasets/lee/sources", [{"kind": "ftp"}]),
        "datasets.lee.sources.0.kind: must be one of 'local'",
    ),
    # corpora and pools of translators and language models
    "a corpus of pairs": (
        put("corpora/wiki1m/dataset", "lee"),
        "lee has the form pairs; this key needs sentences or triples",
    ),
    "a corpus of a dataset that is not there": (
        put("corpora/wiki_extract/dataset", "wiki_extrac"),
        "corpora.wiki_extract.dataset: wiki_extrac is not defined. Did you mean wiki_extract?",
    ),
    "a round trip of triples": (
        put("corpora/wiki_spa/round_trip/corpus", "nli"),
        "corpora.wiki_spa.round_trip.corpus: nli has the form triples",
    ),
    "a round trip of a round trip": (
        both(
            put("corpora/wiki_spa/round_trip/form", "corpus"),
            put("corpora/twice", {"label": "x", "round_trip": TRIP | {"corpus": "wiki_spa"}}),
        ),
        "corpora.twice.round_trip.corpus: wiki_spa has the form round trips",
    ),
    "a translator that is not there": (
        put("corpora/wiki_spa/round_trip/translator", "apertum"),
        "Did you mean apertium?",
    ),
    "a language model that is not there": (
        put("exemplars/wiki1m_300/llm", "deepseek"),
        "Did you mean deepseek_v3?",
    ),
    "a pool that is asked for and not there": (
        put("exemplar_pools", ["tooy"]),
        "exemplar_pools: tooy is not defined.",
    ),
    # bad values
    "a name outside the results": (
        put("name", "../../etc"),
        "name: must match the pattern ^[a-z0-9_]+$; found '../../etc' (Name of the study, a folder below results",
    ),
    "a batch in words": (
        put("training/batch_size", "many"),
        "training.batch_size: must be a whole number; found 'many'",
    ),
    "a misspelt key of a section": (
        put("training/batch_siz", 3),
        "training.batch_siz: unknown key. Did you mean batch_size?",
    ),
    "a misspelt section": (put("trainin", {}), "trainin: unknown key. Did you mean training?"),
    "a number that is none": (
        put("training/weight_decay", float("nan")),
        "training.weight_decay: must be a finite number; found nan (Weight decay of AdamW",
    ),
    "an infinite number in a grid": (
        put("grid/columns/0/scale", float("inf")),
        "config/experiments/demo.yaml: columns.0.scale: must be a finite number; found inf (Factor by which scores",
    ),
    "an encoder outside the study": (
        lambda config, _grids: config["encoders"].update({"../x": config["encoders"]["minilm"]}),
        "encoders.../x: not a name.",
    ),
    "answers outside the study": (
        put("answer_store", "../answers.sqlite"),
        r"answer_store: must match the pattern ^\w[\w.-]*(/\w[\w.-]*)*$; found '../answers.sqlite' (File of stored answers",
    ),
    "answers at the root": (
        put("answer_store", "/tmp/answers.sqlite"),
        "; found '/tmp/answers.sqlite' (File of stored answers",
    ),
    "a misspelt key of a reading that no grid uses": (
        put("methods/jtcse/readings/odd", {"method": {"temprature": 0.1}}),
        "methods.jtcse.readings.odd.method.temprature: unknown key. Did you mean temperature?",
    ),
    "a wrong value in a reading that no grid uses": (
        put("methods/simcse_3r/readings/odd", {"method": {"base": {"temperature": "warm"}}}),
        "methods.simcse_3r.readings.odd.method.base.temperature: must be a number; found 'warm'",
    ),
    "a misspelt key of an encoder's run that no grid uses": (
        put(
            "encoders/odd",
            {
                "label": None,
                "runs": [
                    {
                        "method": "simcse",
                        "encoder": "minilm_mlm",
                        "corpus": "wiki_extract",
                        "overrides": {"method": {"temprature": 0.1}},
                    },
                ],
            },
        ),
        "encoders.odd.runs.0 (simcse.minilm_mlm.wiki_extract): method.temprature: unknown key.",
    ),
    "a heading without a text": (
        column(heading=" "),
        "config/experiments/demo.yaml: columns.5.heading: must be a text that is not blank; found ' '.",
    ),
    "a substitution without a text": (
        put("encoders/odd", {"adapt": {"base": "minilm", "corpus": "wiki_extract", "label": ""}}),
        "encoders.odd.adapt.label: must be a text that is not blank; found ''",
    ),
    "a warm-up that is longer than the training": (
        put("training", {**study()[0]["training"], "max_steps": 40, "epochs": None, "warmup_steps": 41}),
        "training.warmup_steps: 41, but max_steps is 40. Set it to 40 or less.",
    ),
    "a warm-up that is longer than a schedule": (
        training_of("simcse", restart_every=3, warmup_steps=4),
        RUN.format("simcse") + "training.warmup_steps: 4, but restart_every is 3. Set it to 3 or less.",
    ),
    "a range of scores that ends before it begins": (
        put("datasets/lee/contract/score_range", [5, 0]),
        "datasets.lee.contract.score_range: from 5 to 0. Write the minimum first, then the maximum.",
    ),
    "rows that contradict each other": (
        put("datasets/lee/contract", {"rows": 5, "min_rows": 6}),
        "datasets.lee.contract.rows: 5, but min_rows is 6. Remove `min_rows`: `rows` is exact.",
    ),
    "an experiment that is listed twice": (
        put("experiments", ["demo", "demo"]),
        "experiments: demo is listed twice. Remove one.",
    ),
    "a term that is listed twice": (
        put("methods/jtcse/terms", ["nce", "nce"]),
        "methods.jtcse.terms: nce is listed twice. Remove one.",
    ),
    "a term that a run lists twice": (
        method_of("jtcse", terms=["nce", "nce"]),
        "config/experiments/demo.yaml: runs.4.overrides.method.terms: nce is listed twice. Remove one.",
    ),
    "a column that a mean counts twice": (
        added(heading="wrong", mean_of=["Spearman", "Spearman"], digits=2),
        "config/experiments/demo.yaml: columns.5.mean_of: Spearman is listed twice. Remove one.",
    ),
    "a layer that is mapped twice": (
        put("suites/attention/attention/maps/layers", [1, 1]),
        "suites.attention.attention.maps.layers: 1 is listed twice. Remove one.",
    ),
    "a cache that is a file": (
        put("cache", str(ROOT / "README.md")),
        "README.md is not a folder. Set it to a folder, such as results/.cache.",
    ),
    "a cache among other things": (
        put("cache", str(ROOT)),
        "which is no entry of a cache. Set it to a folder of its own, such as results/.cache.",
    ),
    "a cache that is the folder of studies": (
        put("cache", "results"),
        "cache: results is a folder of studies. Set it to a folder of its own, such as results/.cache.",
    ),
}

SEVERAL = {
    MISTAKES[name][1]
    for name in (
        "epochs with max_steps by merging an encoder's settings",  # each of the settings that it is merged with
        "maps of layers that the encoder lacks",  # each encoder
        "a heading that a claim names",  # each claim, and each side of it
        "checkpoints that nothing chooses",  # the grid, and each encoder of runs
        "another kind of readout with the keys of the first",  # each key
    )
}
"""Mistakes with several lines."""


UNUSED = put(
    "encoders/unused", {"adapt": study()[0]["encoders"]["minilm_mlm"]["adapt"] | {"training": {"gpus": 2}}}
)


STUDIES = ("config/config.yaml", "config/minilm.yaml", "config/mpnet.yaml", DEMO)


@pytest.mark.parametrize(("overlay", "change"), [*((study, both()) for study in STUDIES), (DEMO, UNUSED)])
def test_studies_of_this_repository_are_sound(overlay, change):
    """Studies of this repository are sound and held to no encoder that they do not use."""
    assert findings(change, overlay) == []


@pytest.mark.parametrize(("change", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_place_and_remedy(change, message):
    """A mistake is one line that says where, what and the remedy."""
    root = Path("/nowhere") if "/nowhere" in message else None
    found = findings(change, data_root=root)
    assert any(message in line for line in found), found
    assert len(found) == 1 or message in SEVERAL, found
    assert all("\n" not in line for line in found)


MPNET = {"model_type": "mpnet", "num_hidden_layers": 6, "hidden_size": 384, "max_position_embeddings": 514}
MINE = SIMCSE | {"encoder": "mine"}
OF_A_FOLDER = {
    "a suite of longer sentences than an encoder takes": (
        MPNET | {"max_position_embeddings": 130},
        run("frozen_cls", encoder="mine", corpus=None),
        "config/experiments/demo.yaml: suites.sts.lee.max_tokens: 256, but mine accepts at most 128 tokens. Set it to 128 or less.",
    ),
    "an extraction study of longer sentences than its encoder takes": (
        MPNET | {"max_position_embeddings": 130},
        put("extraction/encoder", "mine"),
        "extraction: suites.sts.lee.max_tokens: 256, but mine accepts at most 128 tokens. Set it to 128 or less.",
    ),
    "a teacher of longer sentences than it takes": (
        MPNET,
        both(
            put("teacher/max_tokens", 513),
            put("encoders/one", {"label": None, "runs": [MINE]}),
            run("distil", teacher="one"),
        ),
        "teacher.max_tokens: 513, but one accepts at most 512 tokens. Set it to 512 or less.",
    ),
    "JTCSE on encoders that cannot attend across": (
        MPNET,
        twin(MINE, MINE | {"tag": "other", "overrides": {"method": {"dropout": 0.2}}}),
        "encoder: jtcse attends across encoders built as BERT (bert, roberta, xlm-roberta, camembert); "
        "wrong_twin has one of type mpnet. Choose runs on such encoders.",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder of local data with an encoder's files, which nobody reads but config.json."""
    (tmp_path / "mine").mkdir()
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (tmp_path / "mine" / name).write_text('{"model_type": "bert"}')
    return tmp_path


FETCHED = put("encoders/mine", {"fetch": {"licence": "none", "sources": [{"kind": "local", "path": "mine"}]}})


@pytest.mark.parametrize(("about", "change", "message"), OF_A_FOLDER.values(), ids=OF_A_FOLDER)
def test_what_an_encoder_of_a_folder_cannot_do_is_one_line(about, change, message, folder):
    (folder / "mine/config.json").write_text(json.dumps(about))
    found = findings(both(FETCHED, change), data_root=folder)
    assert [message.format(folder=folder) in line for line in found] == [True], found


def test_all_mistakes_are_found_at_once():
    names = ("a key of many runs", "a metric that no suite writes", "SimCSE without a corpus")
    changes, messages = zip(*map(MISTAKES.get, (*names, "a list of tokens that is not there")), strict=True)
    found = findings(both(*changes))
    assert len(found) == 4
    assert all(any(message in line for line in found) for message in messages)


# Only what is asked for is required: keys, engines, data of the jobs that are to run.


def needs(*jobs, data_root=None, **changes):
    settings = settings_with("config/config.yaml", **changes)
    workplace = Study(settings, {}, ROOT).workplace.model_copy(update={"data_root": data_root})
    return [*map(str, need_errors(settings, jobs, workplace))]


POOL, TRIP_MADE = ("llms.deepseek_v3", "pool wiki1m_300"), ("translators.apertium", "corpus wiki_spa")
ON_DRIVE, TEXT = (
    ("encoders.consert_bert", "encoder consert_bert"),
    ("datasets.wiki_sentences", "dataset wiki_sentences"),
)
ONE_LOCAL = {"stsb": {
    "form": "pairs", "contract": {}, "about": {"origin": "x", "url": "https://example.org/data",
    "language": "en", "licence": "x", "citation": "x"}, "sources": [{"kind": "local", "reader": "delimited",
    "files": {"all": {"path": "here.tsv", "sha256": None}}, "options": {}}],
}}  # fmt: skip
BERT = ("encoders.bert_base", "encoder bert_base")
NEEDS = {
    "nothing": ([], None),
    "a key, once": ([POOL, POOL], "llms.deepseek_v3: pool wiki1m_300 needs it, but environment variable DEEPSEEK_API_KEY"),
    "a key of several jobs": ([POOL, ("llms.deepseek_v3", "pool wiki1m_176")], "llms.deepseek_v3: pool wiki1m_300 and 1 more need it,"),
    "an engine": ([TRIP_MADE], "translators.apertium: corpus wiki_spa needs apertium, which is not installed."),
    "data": ([TEXT], "datasets.wiki_sentences: no source found: no data root is set for corpus/wiki_sentences.txt.gz. Put it there"),
    "what the Hub has": ([("datasets.wiki1m", ""), ("datasets.lee", ""), BERT], None),
    "a folder on a drive": ([ON_DRIVE, ("encoders.esimcse_bert", "encoder esimcse_bert")], "encoders.consert_bert: no source found"),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "message"), NEEDS.values(), ids=NEEDS)
def test_what_a_job_needs_is_asked_for_by_that_job_alone(bare, jobs, message):
    bare.setenv("PATH", "/nowhere")
    bare.setattr("workflow_scripts.graph.source_plans.answers", lambda: True)
    found = needs(*jobs)
    assert len(found) == bool(message)
    assert all(line.startswith(message) for line in found)


def test_kept_answers_need_no_key_and_a_missing_file_is_named(bare, tmp_path):
    (found,) = needs(TEXT, data_root=tmp_path)
    assert f"{tmp_path}/corpus/wiki_sentences.txt.gz does not exist" in found
    (page,) = needs(("datasets.stsb", "dataset stsb"), data_root=tmp_path, datasets=ONE_LOCAL)
    assert "/here.tsv does not exist. Put it there (https://example.org/data), set data_root" in page
    bare.setenv("SEMBLANCE_OFFLINE", "1")
    assert needs(POOL) == []


def test_an_unmounted_data_root_is_no_gap(bare, tmp_path):
    """It matters only to a job that would read it: an optional dataset may be missing, but not its whole disk."""
    gap = ("datasets.sick_e", "dataset sick_e")
    assert needs(gap, data_root=tmp_path) == needs(data_root=tmp_path / "unmounted") == []
    (found,) = needs(gap, data_root=tmp_path / "unmounted")
    assert found.startswith(
        f"datasets.sick_e: {tmp_path}/unmounted, the folder of local data, does not exist,"
    )
    assert findings(lambda *_: None, data_root=tmp_path / "unmounted") == []


def test_a_hub_that_does_not_answer_is_found_before_any_job(bare, tmp_path):
    """The Hub is not asked for copies on this machine, or for data that no job needs."""
    bare.setattr("workflow_scripts.graph.source_plans.answers", lambda: False)
    bare.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    (found,) = needs(BERT, ("datasets.lee", "dataset lee"))
    assert found.startswith("encoders.bert_base: no source found: no data root is set for ")
    host = "https://huggingface.co"
    assert (
        f"no network from this machine to {host}, which does not answer. Run make fetch on a machine" in found
    )
    sources = study("config/config.yaml")[0]["encoders"]["bert_base"]["fetch"]["sources"]
    source = next(one for one in sources if one["kind"] == "hub")
    snapshot(source["repository"], source["revision"], "model").mkdir(parents=True)
    assert needs(BERT) == []


# Asked of Snakemake itself


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the repository to make mistakes in."""
    return copy_tree(tmp_path_factory.mktemp("mistakes"))


def plan(tree, *arguments):
    files = [DEMO, *(["config/overlay.yaml"] if (tree / "config/overlay.yaml").exists() else [])]
    return snakemake(tree, "-n", "--quiet", "all", "--configfile", *files, *arguments)


OVERLAY, GRID = "config/overlay.yaml", "config/experiments/demo.yaml"
SOUND_GRID = (ROOT / GRID).read_text("utf-8")
WRONG_RUN = "  - {method: simcse, encoder: minilm_mlm, corpus: wiki_extract, tag: x, overrides: {training: {max_step: 1}}}\n"
RUNS = SOUND_GRID.splitlines().index("runs:") + 1
FILES = {
    "a package in a package": (
        (OVERLAY, "encoders: {minilm: {fetch: {sources: [{kind: package, package: a.b, path: x}]}}}\n"),
        [
            "ConfigError: config/overlay.yaml:1: encoders.minilm.fetch.sources.0.package: must match the pattern ^\\w[\\w-]*$; found 'a.b'"
        ],
    ),
    "modules that are paths": (
        (OVERLAY, "methods: {simcse: {module: a.b}, distil: {readout: {kind: ../x}}}\n"),
        [
            "ConfigError: config/overlay.yaml:1: methods.simcse.module: must be one of",
            "\nconfig/overlay.yaml:1: methods.distil.readout.kind: must be one of",
        ],
    ),
    "two mistakes": (
        (OVERLAY, "extraction: {bias_list: brt}\ncache: config\n"),
        [
            "ConfigError: config/overlay.yaml:2: cache: config contains README.md, which is no entry of a cache.",
            "\nconfig/overlay.yaml:1: extraction.bias_list: no file resources/tokens/brt.json. Did you mean bert?",
        ],
    ),
    "a grid that is not there": (
        (OVERLAY, "experiments: [dmo]\n"),
        [
            "ConfigError: config/overlay.yaml:1: experiments: no file dmo.yaml in config/experiments. Did you mean demo?"
        ],
    ),
    "a grid that is no YAML": ((GRID, "a: 1\nb: [1,\n"), ["config/experiments/demo.yaml:3: "]),
    "a run of a grid": (
        (GRID, SOUND_GRID.replace("\nruns:\n", f"\nruns:\n{WRONG_RUN}")),
        [f"config/experiments/demo.yaml:{RUNS + 1}: runs.0.overrides.training.max_step: unknown key"],
    ),
    "an empty grid": (
        (GRID, ""),
        ["config/experiments/demo.yaml: empty. Write keys with their values."],
    ),
    "a part of the configuration that is no YAML": (
        ("config/methods.yaml", "methods: !new {}\n"),
        ["config/methods.yaml:1: could not determine a constructor for the tag '!new'"],
    ),
    "a grid with the name of the extraction study": (
        ("config/experiments/extraction.yaml", SOUND_GRID),
        [
            "ConfigError: config/experiments/extraction.yaml: this name is reserved for the extraction study. Rename"
        ],
    ),
    "a grid with the name of a rule": (
        (
            "config/experiments/model_cards_table1.yaml",
            SOUND_GRID,
            "--config",
            "experiments=[model_cards_table1]",
        ),
        ["CreateRuleException in file", "The name model_cards is already used by another rule"],
    ),
    "a grid with the name of a table": (
        ("config/experiments/extraction_demo.yaml", SOUND_GRID, "--config", "experiments=[extraction_demo]"),
        [
            "config/experiments/extraction_demo.yaml: a table of the extraction study has this name. Rename the file."
        ],
    ),
}


@pytest.mark.parametrize(("written", "messages"), FILES.values(), ids=FILES)
def test_snakemake_stops_before_the_graph_and_names_the_file(tree, written, messages):
    file, text, *arguments = written
    with holding(tree / file, text):
        code, printed = plan(tree, *arguments)
    assert code == 1
    assert "Building DAG" not in printed
    assert "Traceback" not in printed
    assert [message for message in messages if message not in printed] == []


ARGUMENTS = {
    "dmo": "ConfigError: dmo: no rule makes it. Did you mean demo?",
    "results/demo/tables/dem.parquet": "makes it. Did you mean results/demo/tables/demo.parquet?",
    "README.md": "ConfigError: README.md: no rule makes it.",
    "results/demo/scores/sts/leee/frozen_cls.minilm_mlm/seed0.parquet": "makes it. Did you mean results/demo/scores/sts/lee/",
    "results/demo/runs/frozen_cls.minilm_mml/seed0/model/": "Did you mean results/demo/runs/frozen_cls.minilm_mlm/seed0/model/record.json?",
    "results/demo/figures/demo/attention_maps.svg": "attention_maps.svg: no rule makes it.",
    **{
        f"results/demo/scores/{suite_of_another_kind}/frozen_cls.minilm_mlm/seed0.parquet": "no rule makes it."
        for suite_of_another_kind in (
            "sts/senteval",
            "transfer/lee",
            "clustering/senteval",
            "cost/lee",
            "mteb/lee",
        )
    },
    "results/demo/mteb/lee.parquet": "mteb/lee.parquet: no rule makes it.",
}


@pytest.mark.parametrize(("target", "message"), ARGUMENTS.items())
def test_an_unknown_target_is_refused_even_if_the_file_exists(tree, target, message):
    """An unknown target is refused though such a file may be there."""
    code, printed = plan(tree, "--", target)
    assert code == 1
    assert message in printed


def test_a_target_without_its_configuration_is_told_so(tree):
    """A target of the demo without its configuration is told that none is given."""
    code, printed = snakemake(tree, "-n", "--", "results/demo/tables/demo.parquet")
    assert code == 1
    assert "demo.parquet: no rule makes it. " in printed
    assert "No --configfile is given." in printed


def test_words_on_the_command_line_are_read_as_in_a_file(tree):
    """Words on the command line are what they are in a file and braces no wildcards."""
    numbers = ["offline=true", "training={max_steps: 7, learning_rate: 1.0e-4}", "data_root=null"]
    words = ["report={page: {shows: 'the set {a, b}'}}"]
    code, printed = plan(tree, "--config", *numbers, *words, "--", "./results/demo/report.html")
    assert code == 0, printed
    code, printed = plan(tree, "--config", "training={max_steps: seven}")
    assert code == 1
    assert (
        "ConfigError: --config: training.max_steps: must be a whole number; found 'seven' (Number of optimiser steps; null if"
        in printed
    )
