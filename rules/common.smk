"""Shared by all rules: checks the configuration, names the study's folders, and what several rules look up."""

import os
import re
from pathlib import Path

from workflow_scripts.closure import sources
from workflow_scripts.config_check import base_of, check_keys, check_references, checked, datasets_in
from workflow_scripts.dag import (
    all_runs,
    as_json,
    config_slice,
    members_of,
    paper_of,
    read_experiments,
    run_settings,
    runs_of,
    versions,
)
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.blocks import (
    datasets_of as extraction_datasets,
    files_of_figure,
    files_of_table,
    job_settings,
    names as extraction_names,
    needs_averages,
    needs_documents,
    needs_shaping,
    only_task,
    single_tables,
    suite_of as extraction_suite,
    tasks_of as extraction_tasks,
    wikitext_settings,
)
from workflow_scripts.methods import method_modules, readout_modules

BASE = Path(workflow.basedir)
with one_line_errors():
    checked(config, workflow.configfiles, BASE / "config")
    EXPERIMENTS = read_experiments(config, BASE / "config/experiments")
    check_references(config, EXPERIMENTS)
    RUNS = all_runs(EXPERIMENTS, config["encoders"])

if config["data_root"]:
    os.environ.update(SEMBLANCE_DATA=str(config["data_root"]))
if config["offline"]:
    os.environ.update(SEMBLANCE_OFFLINE="1")
os.environ.setdefault("SEMBLANCE_ANSWERS", config["answers"])


pathvars:
    results=f"results/{config['name']}",
    logs=f"logs/{config['name']}",
    benchmarks=f"benchmarks/{config['name']}",


TRAINED = [name for name, run in RUNS.items() if run.corpus]
UNTRAINED = [name for name, run in RUNS.items() if not run.corpus]
JOINED = [name for name in UNTRAINED if "runs" in config["encoders"][RUNS[name].encoder]]
FETCHED = [name for name, block in config["encoders"].items() if "fetch" in block]
OF_RUNS = [name for name, block in config["encoders"].items() if "runs" in block]
ADAPTED = [name for name, block in config["encoders"].items() if "adapt" in block]
CUT = [name for name, block in config["corpora"].items() if "dataset" in block]
WRITTEN_POOLS = [name for name, block in config["exemplars"].items() if block["generator"] == "llm"]
PICKED_POOLS = [name for name, block in config["exemplars"].items() if block["generator"] == "extractive"]
ROUND_TRIPS = [name for name, block in config["corpora"].items() if "round_trip" in block]


onstart:
    with one_line_errors():
        check_keys(config, asked_corpora(), asked_pools(), f"results/{config['name']}")


def one_of(names):
    """A wildcard constraint that matches exactly ``names``."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    dataset="[a-z0-9_]+",
    corpus="[a-z0-9_]+",
    encoder="[a-z0-9_]+",
    experiment=one_of(EXPERIMENTS),
    suite="[a-z0-9_]+",
    kind="[a-z0-9_]+",
    pool="[a-z0-9_]+",
    run=one_of(RUNS),
    seed="[0-9]+",


def encoder_of(wildcards):
    """The encoder that a run starts from, or the models of the runs that it joins."""
    encoder = RUNS[wildcards.run].encoder
    if encoder in OF_RUNS:
        return models_of(encoder, wildcards.seed)
    return f"<results>/encoders/{encoder}/record.json"


def models_of(encoder, seed):
    """Models of the runs that an encoder consists of, each by the same seed."""
    members = [(name, RUNS[name]) for name in members_of(config["encoders"], encoder, [int(seed)])]
    return [f"<results>/runs/{name}/seed{run.seed_for(int(seed))}/model/record.json" for name, run in members]


def single_encoder_of(wildcards):
    """The encoder that a run starts from; behind joined runs, that of the first."""
    encoder = RUNS[wildcards.run].encoder
    while encoder in OF_RUNS:
        first = next(iter(members_of(config["encoders"], encoder, [0])))
        encoder = RUNS[first].encoder
    return f"<results>/encoders/{encoder}/record.json"


def teacher_of(wildcards):
    """Vectors of a student's teacher, if it has one."""
    run = RUNS[wildcards.run]
    return (
        [f"<results>/teachers/{run.teacher}/{run.corpus}/seed{wildcards.seed}.parquet"] if run.teacher else []
    )


def corpus_of(wildcards):
    """The sentences that a run trains on."""
    return f"<results>/corpora/{RUNS[wildcards.run].corpus}/train.parquet"


def exemplars_of(wildcards):
    """The pool of exemplars that a run's method reads, if any."""
    pool = method_of(wildcards).get("pool")
    return [f"<results>/exemplars/{pool}.parquet"] if pool else []


def words_of(wildcards):
    """Word counts of the corpus, where a run's method reads frequent words."""
    counts = f"<results>/corpora/{RUNS[wildcards.run].corpus}/words.parquet"
    return [counts] if method_of(wildcards).get("words") else []


def development_of(wildcards):
    """The pairs by which a run chooses its checkpoint: a dataset's, or the corpus's own held-out text."""
    dataset = config["development"]["dataset"]
    if dataset:
        return f"<results>/datasets/{dataset}.parquet"
    return dev_part_of(RUNS[wildcards.run].corpus)


def dev_part_of(corpus):
    """Held-out text of a corpus, or of the one that it is a round trip of."""
    return f"<results>/corpora/{base_of(config, corpus)}/dev.parquet"


def settings_of(wildcards):
    """Settings of a trained run."""
    development = {key: config["development"][key] for key in ("every", "max_tokens")}
    run = RUNS[wildcards.run]
    return as_json(run_settings(config, run) | {"development": development} | labels_of_encoder(run))


def gpus_of(wildcards):
    """GPUs that share the training of a run."""
    return run_settings(config, RUNS[wildcards.run])["training"]["gpus"]


def launcher_of(wildcards):
    """What starts the training of a run: Python, or torchrun where several processes share it."""
    gpus = gpus_of(wildcards)
    return "python -m" if gpus == 1 else f"torchrun --standalone --nproc-per-node={gpus} -m"


def untrained_settings_of(wildcards):
    """Settings of an untrained run: its method, and the length that the saved model cuts at."""
    run = RUNS[wildcards.run]
    settings = run_settings(config, run)
    read = {"method": settings["method"], "max_tokens": settings["training"]["max_tokens"]}
    return as_json(read | labels_of_encoder(run))


def method_of(wildcards):
    """Settings of a run's method."""
    return run_settings(config, RUNS[wildcards.run])["method"]


def training_code(script):
    """An input function: code of a script that makes a run."""
    return lambda wildcards: sources(script, *method_modules(method_of(wildcards)))


def training_packages(script):
    """A param function: versions of the packages that ``training_code`` imports."""
    return lambda wildcards: versions(script, *method_modules(method_of(wildcards)))


def loading_modules(name):
    """Modules that whoever loads a run's model imports by name; a run that is made of others has theirs."""
    own = readout_modules(run_settings(config, RUNS[name])["method"])
    members = members_of(config["encoders"], RUNS[name].encoder, [0])
    return own or sorted({module for member in members for module in loading_modules(member)})


def loading_code(script):
    """An input function: code of a script that loads a run's model."""
    return lambda wildcards: sources(script, *loading_modules(wildcards.run))


def loading_packages(script):
    """A param function: versions of the packages that ``loading_code`` imports."""
    return lambda wildcards: versions(script, *loading_modules(wildcards.run))


def joining_modules(wildcards):
    """Modules that joining runs imports by name: the method's, and those of the runs."""
    behind = modules_behind(RUNS[wildcards.run].encoder)
    return sorted({*method_modules(method_of(wildcards)), *behind})


def labels_of_encoder(run):
    """Substitutions that a run made of runs declares, as an entry of its settings; most have none."""
    label = config["encoders"][run.encoder].get("label")
    return {"labels": [label]} if label else {}


def modules_behind(encoder):
    """Modules that whoever loads the runs of an encoder imports by name."""
    members = members_of(config["encoders"], encoder, [0])
    return sorted({module for member in members for module in loading_modules(member)})


def datasets_of(kind):
    """An input function: the datasets of a suite of ``kind``."""
    return lambda wildcards: [
        f"<results>/datasets/{name}.parquet" for name in datasets_in(config["suites"][kind][wildcards.suite])
    ]


def evaluation_sets():
    """Names of all datasets that the study evaluates on, the development set among them."""
    suites = {
        (kind, suite)
        for grid in EXPERIMENTS.values()
        for kind, names in grid["suites"].items()
        for suite in names
    }
    evaluated = {name for kind, suite in suites for name in datasets_in(config["suites"][kind][suite])}
    development = {config["development"]["dataset"]} if TRAINED else set()
    return sorted(evaluated | (development - {None}))


def of_runs(pattern, runs):
    """``pattern`` filled with every run and seed."""
    return [pattern.format(run=name, seed=seed) for name, run in runs.items() for seed in run.seeds]


def suites_of(grid, suffix):
    """Score files of every suite, run and seed of a grid."""
    return [
        file
        for kind, suites in grid["suites"].items()
        for suite in suites
        for file in of_runs(f"<results>/scores/{kind}/{suite}/{{run}}/seed{{seed}}{suffix}", runs_of(grid))
    ]


def scores_of(wildcards):
    """Every score file of one experiment."""
    return suites_of(EXPERIMENTS[wildcards.experiment], ".parquet")


def similarities_of(wildcards):
    """Cosines beside judgements of every run of one experiment, for its suites of scored pairs."""
    grid = EXPERIMENTS[wildcards.experiment]
    return suites_of(grid | {"suites": {"sts": grid["suites"].get("sts", [])}}, ".pairs.parquet")


def histories_of(wildcards):
    """Training history of every trained run of one experiment."""
    trained = {name: run for name, run in runs_of(EXPERIMENTS[wildcards.experiment]).items() if run.corpus}
    return of_runs("<results>/runs/{run}/seed{seed}/history.parquet", trained)


def maps_of(wildcards):
    """Attention weights of every run of one experiment."""
    grid = EXPERIMENTS[wildcards.experiment]
    return suites_of(grid | {"suites": {"attention": grid["suites"]["attention"]}}, ".maps.parquet")


def has_threshold(run):
    """Whether a run learns, or is given, a threshold of redundant dimensions."""
    return run_settings(config, run)["method"]["module"] == "three_r"


def watched_of(wildcards):
    """What every run of one experiment that has a threshold watched."""
    runs = {
        name: run for name, run in runs_of(EXPERIMENTS[wildcards.experiment]).items() if has_threshold(run)
    }
    return of_runs("<results>/runs/{run}/seed{seed}/watched.parquet", runs)


def readers_of(wildcards):
    """Modules of the readers that one dataset's sources name."""
    readers = {
        source["reader"] for source in config["datasets"][wildcards.dataset]["sources"] if "reader" in source
    }
    return sorted(f"data.readers.{reader}" for reader in readers)


def sentences_of(wildcards):
    """The dataset that a corpus is cut from."""
    return f"<results>/datasets/{config['corpora'][wildcards.corpus]['dataset']}.parquet"


def also_of(wildcards):
    """The pairs whose sentences a corpus takes in, if any."""
    also = config["corpora"][wildcards.corpus].get("also")
    return [f"<results>/datasets/{also}.parquet"] if also else []


def asked_corpora():
    """Corpora that the study's runs train on."""
    return sorted({run.corpus for run in RUNS.values() if run.corpus})


def asked_pools():
    """Pools of exemplars that the study makes, for its runs or without any."""
    read = {run_settings(config, run)["method"].get("pool") for run in RUNS.values()}
    return sorted({*config["exemplar_pools"], *read} - {None})


def base_corpus_of(wildcards):
    """The sentences that a round trip starts from."""
    return f"<results>/corpora/{base_of(config, wildcards.corpus)}/train.parquet"


def translation_of(wildcards):
    """Settings of a translation: what decides the text, and not what is made of it later."""
    trip = config["corpora"][wildcards.corpus]["round_trip"]
    translation = {key: trip[key] for key in ("corpus", "translator", "source", "via", "max_sentences")}
    translator = config["translators"][trip["translator"]]
    return as_json({"translation": translation, "translator": translator, "limits": config["round_trip"]})


def shape_of(wildcards):
    """Settings of what is made of a translation."""
    block = config["corpora"][wildcards.corpus]
    shape = {key: block["round_trip"][key] for key in ("form", "unchanged")}
    return as_json(
        {"shape": shape, "max_sentences": block["round_trip"]["max_sentences"], "label": block["label"]}
    )


def pool_of(wildcards):
    """The block of a pool of exemplars."""
    return config["exemplars"][wildcards.pool]


def written_pool_of(wildcards):
    """Settings of a pool that a language model writes."""
    pool = pool_of(wildcards)
    return as_json({"pool": pool, "llm": config["llms"][pool["llm"]]})


def dataset_of_energy(wildcards):
    """The sentences over which an attention suite averages the energy of [CLS]."""
    return f"<results>/datasets/{config['suites']['attention'][wildcards.suite]['energy']['dataset']}.parquet"


def mteb_settings_of(wildcards):
    """Settings of an mteb suite, and the lists it names: a change of other lists reruns nothing."""
    suite = config["suites"]["mteb"][wildcards.suite]
    lists = {name: config["mteb"]["lists"][name] for name in suite["lists"]}
    return as_json({"suite": suite, "mteb": {"lists": lists, "not_in_this_mteb": {}}})


def below_results(files):
    """Files named below the study's folder of results."""
    return [f"<results>/{file}" for file in files]


def printed(tables):
    """Files of a paper's numbers, of those of its tables that have one."""
    files = [Path("resources/published", f"{table}.csv") for table in dict.fromkeys(tables)]
    return [str(file) for file in files if (BASE / file).exists()]


def published_extraction(wildcards):
    """The paper's numbers of one table, and of the tables that show its tasks alone."""
    return printed([wildcards.table, *single_tables(config, wildcards.table).values()])


def needed(path, needs):
    """An input function: ``path`` where a job's settings need it, and nothing otherwise."""
    return lambda wildcards: [path] if needs(extraction_settings(wildcards)) else []


def extraction_settings(wildcards):
    """What a job of one source reads, of one kind of task where it has one."""
    if "kind" in wildcards.keys():
        return job_settings(config["extraction"], wildcards.kind, wildcards.source)
    return wikitext_settings(config["extraction"], wildcards.source)["learnt"]


def documents_of(wildcards):
    """Document frequencies in the vocabulary of a source, where a weighting asks for them."""
    if not needs_documents(extraction_settings(wildcards)):
        return []
    words = config["extraction"]["sources"][wildcards.source]["kind"] == "words"
    return [f"<results>/extraction/documents/{wildcards.source if words else 'pieces'}.parquet"]


def word_vectors_of(wildcards):
    """The word vectors of a source that has some."""
    words = config["extraction"]["sources"][wildcards.source]["kind"] == "words"
    return [f"<results>/extraction/words/{wildcards.source}.parquet"] if words else []


def task_dataset(wildcards):
    """The dataset of one task."""
    suite = extraction_suite(config, wildcards.kind)
    return f"<results>/datasets/{extraction_tasks(suite)[wildcards.task]}.parquet"


def task_settings(wildcards):
    """Settings of one job: its representations, and the suite without its other tasks."""
    suite = only_task(extraction_suite(config, wildcards.kind), wildcards.task)
    return as_json({"job": extraction_settings(wildcards), "suite": suite})


def described_datasets(wildcards):
    """Datasets that one table describes."""
    rows = config["extraction"]["statistics"][wildcards.statistics]["rows"]
    return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(row["dataset"] for row in rows)]


def published_statistics(wildcards):
    """The paper's numbers of a table that describes datasets, where it has some."""
    return printed([wildcards.statistics])


def table_settings(wildcards):
    """Settings of one table of the extraction study."""
    table = config["extraction"]["tables"][wildcards.table]
    shown = {"names": extraction_names(config["extraction"], table)}
    return as_json(shown | {"table": table, "single": single_tables(config, wildcards.table)})


def drawing_kind(wildcards):
    """The module that draws one figure of the extraction study."""
    return config["extraction"]["figures"][wildcards.drawing]["kind"]


def drawing_settings(wildcards):
    """Settings of one figure of the extraction study."""
    drawing = config["extraction"]["figures"][wildcards.drawing]
    shown = {"names": extraction_names(config["extraction"], drawing), "figure": config["report"]["figure"]}
    return as_json(shown | {"drawing": drawing})


def published_of(wildcards):
    """Tables of papers that one experiment names."""
    tables = EXPERIMENTS[wildcards.experiment].get("published", [])
    return [f"resources/published/{table}.csv" for table in tables]


def attending(grid):
    """Runs of a grid whose readout attends over layers."""
    return {
        name: run
        for name, run in runs_of(grid).items()
        if (readout := run_settings(config, run)["method"].get("readout"))
        if readout["kind"] == "layer_attention" and "attention" in readout["pooling"]
    }


def attending_models_of(wildcards):
    """Models of one experiment whose readout attends over layers."""
    return of_runs(
        "<results>/runs/{run}/seed{seed}/model/record.json", attending(EXPERIMENTS[wildcards.experiment])
    )


def compared_models_of(wildcards):
    """Models of the runs of one experiment whose words are compared."""
    grid = EXPERIMENTS[wildcards.experiment]
    named = {run: runs_of(grid)[run] for run in grid["token_similarity"]["runs"]}
    return of_runs("<results>/runs/{run}/seed{seed}/model/record.json", named)


def compared_modules(wildcards):
    """Modules that whoever loads those models imports by name."""
    named = EXPERIMENTS[wildcards.experiment]["token_similarity"]["runs"]
    return sorted({module for run in named for module in loading_modules(run)})


ASKED_BY = {"sweep": "plots"} | {name: name for name in ("token_similarity", "scatter", "modulus_surface")}


def has_figure(figure, grid):
    """Whether a grid holds what a figure shows."""
    if key := ASKED_BY.get(figure):
        return bool(grid.get(key))
    if figure == "learning_curves":
        return any(run.corpus for run in runs_of(grid).values())
    if figure == "attention_maps":
        return "attention" in grid["suites"]
    if figure == "threshold_path":
        return any(has_threshold(run) for run in runs_of(grid).values())
    if figure == "layer_attention":
        return bool(attending(grid))
    if figure == "cosine_density":
        task = config["report"]["cosine_density"]["task"]
        suites = [config["suites"]["sts"][suite] for suite in grid["suites"].get("sts", [])]
        return any(task in datasets_in(suite) for suite in suites)
    return config["report"]["alignment_uniformity"]["suite"] in grid["suites"].get("geometry", [])


def development_sets():
    """Files of the pairs by which the study's runs choose their checkpoints."""
    if not TRAINED:
        return []
    if config["development"]["dataset"]:
        return [f"<results>/datasets/{config['development']['dataset']}.parquet"]
    return sorted({dev_part_of(RUNS[name].corpus) for name in TRAINED})


def datasets_of_study():
    """Names of all datasets that the study reads."""
    trained = {config["corpora"][base_of(config, corpus)]["dataset"] for corpus in CORPORA}
    return sorted(trained | set(evaluation_sets()) | set(extraction_datasets(config)))
