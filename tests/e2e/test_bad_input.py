"""Bad input ends in one line: where, what was found, what to do; exit code not 0, finished work kept."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.e2e.conftest import SMOKE
from tests.jobs import call_of
from tests.planning import DEMO, ROOT, copy_tree, run, snakemake
from workflow_scripts.provenance.artefacts import read_record

OVERLAYS = [
    ({"trainin": {}}, r"ConfigError: trainin: unknown key\. Did you mean training\?"),
    (
        {"training": {"batch_siz": 3}},
        r"ConfigError: training\.batch_siz: unknown key\. Did you mean batch_size\?",
    ),
    (
        {"training": {"learning_rate": "small"}},
        r"ConfigError: training\.learning_rate: 'small' is not a number",
    ),
    ({"training": {"batch_size": 1}}, r"ConfigError: training\.batch_size: 1 is not above 1"),
    (
        {"training": {"batch_size": "many"}},
        r"ConfigError: training\.batch_size: 'many' is not a whole number",
    ),
    (
        {"methods": {"simcse": {"module": "simce"}}},
        r"methods\.simcse\.module: 'simce' .*Did you mean simcse\?",
    ),
    (
        {"methods": {"simcse": {"readout": {"pooler": "max"}}}},
        r"methods\.simcse\.readout\.pooler: 'max' is none of",
    ),
    (
        {"experiments": ["dmo"]},
        r"ConfigError: experiments: no file dmo\.yaml in config/experiments\. Did you mean demo\?",
    ),
    (
        {"corpora": {"wiki_extract": {"dataset": "wiki_extrac"}}},
        r"corpora\.wiki_extract\.dataset: .*Did you mean wiki_extract\?",
    ),
    ({"name": "../../etc"}, r"ConfigError: name: .*does not match"),
    (
        {"datasets": {"lee": {"sources": [{"kind": "ftp"}]}}},
        r"datasets\.lee\.sources\.0\.kind: 'ftp' is none of",
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline, nothing run."""
    return copy_tree(tmp_path_factory.mktemp("tree"))


@pytest.mark.parametrize(("overlay", "message"), OVERLAYS)
def test_a_wrong_setting_stops_before_any_job(tree, tmp_path, overlay, message):
    file = tmp_path / "overlay.yaml"
    file.write_text(yaml.safe_dump(overlay))
    code, printed = snakemake(tree, "-n", "--configfile", DEMO, str(file))
    assert code != 0
    errors = [line for line in printed.splitlines() if "Error" in line]
    assert len(errors) == 1
    assert re.search(message, errors[0])


def test_a_key_that_stands_twice_is_named_with_its_line(tree, tmp_path):
    file = tmp_path / "twice.yaml"
    file.write_text("training:\n  batch_size: 8\n  batch_size: 16\n")
    code, printed = snakemake(tree, "-n", "--configfile", DEMO, str(file))
    assert code != 0
    assert f"ConfigError: {file}:3: key 'batch_size' occurs twice" in printed


def test_the_error_of_a_failed_job_is_the_last_thing_that_is_printed(tree, tmp_path):
    file = tmp_path / "overlay.yaml"
    file.write_text("datasets: {lee: {contract: {rows: 3}}}\n")
    made = "results/demo/datasets/lee.parquet"
    code, printed = snakemake(tree, "--cores", "1", "--configfile", DEMO, str(file), "--", made)
    *others, sentence, log = printed.splitlines()
    assert code == 1 and log == "    log: logs/demo/read_dataset/lee.log"
    assert re.match(r"DataError: datasets\.lee: rows \d+; its contract says 3", sentence)
    assert not any("-m workflow_scripts" in line or "DataError" in line for line in others)


def entry(
    folder: Path, rule: str, settings: dict, modules: tuple[str, ...] = (), data: str = "", **named: object
):
    """Run a job as its rule does."""
    call = json.dumps(call_of(rule, settings, modules, **named))
    return run(folder, "-m", "workflow_scripts.jobs", rule, call, SEMBLANCE_DATA=data, PYTHONPATH=str(folder))


def one_line(process) -> str:
    """The error that a failed job printed, which must be one line without a traceback."""
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    lines = [line for line in process.stderr.splitlines() if "Error:" in line]
    assert len(lines) == 1
    return lines[0]


def block(**changes: object) -> dict:
    """A dataset block whose file is below the data root."""
    files = {"all": {"path": "toy.tsv", "sha256": None}}
    options = {"columns": {name: name for name in ("sentence1", "sentence2", "score")}}
    return {
        "form": "pairs", "contract": {"rows": 2, "score_range": [0, 5]},
        "sources": [{"kind": "local", "files": files, "reader": "delimited", "options": options}],
    } | changes  # fmt: skip


def reading(tmp_path: Path, text: str | None, config: dict) -> subprocess.CompletedProcess[str]:
    """The job read_dataset on a toy file; None is no file."""
    if text is not None:
        (tmp_path / "toy.tsv").write_text(text)
    outputs = {"table": tmp_path / "t.parquet", "dropped": tmp_path / "d.parquet"}
    modules = ("data.readers.delimited",)
    return entry(ROOT, "read_dataset", config, modules, str(tmp_path), dataset="toy", min_rows=1, **outputs)


def read_toy(tmp_path: Path, text: str | None, **changes: object) -> str:
    """What read_dataset says about a toy file that it refuses."""
    message = one_line(reading(tmp_path, text, {"dataset": block(**changes), "source": "none"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == (["toy.tsv"] if text is not None else [])
    return message


def test_a_missing_file_names_every_place_that_was_tried(tmp_path):
    message = read_toy(tmp_path, None)
    assert "datasets.toy: no source is available" in message
    assert "toy.tsv does not exist" in message


def test_a_broken_contract_says_what_was_promised_and_what_was_found(tmp_path):
    message = read_toy(tmp_path, "score\tsentence1\tsentence2\n1\ta\tb\n")
    assert "datasets.toy: rows 1; its contract says 2" in message


def test_a_broken_contract_is_a_gap_of_this_set_where_that_is_wanted(tmp_path):
    config = {"dataset": block(optional=True), "source": "none", "broken": "gap"}
    process = reading(tmp_path, "score\tsentence1\tsentence2\n1\ta\tb\n", config)
    assert process.returncode == 0, process.stderr
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0
    (label,) = read_record(tmp_path / "t.parquet").labels
    assert label.startswith("gap: toy: broken: datasets.toy: rows 1; its contract says 2")


def test_a_score_out_of_range_breaks_the_contract(tmp_path):
    message = read_toy(tmp_path, "score\tsentence1\tsentence2\n1\ta\tb\n9\ta\tb\n")
    assert "scores from 1.0 to 9.0" in message


def test_a_line_with_a_column_too_few_is_named(tmp_path):
    assert "toy.tsv:2: 2 columns" in read_toy(tmp_path, "score\tsentence1\tsentence2\n1\ta\n")


JUDGING = {"alpha": 0.05, "power": 0.8, "resamples": 9, "seed": 0}


def judged(folder: Path, claim: dict, **files: object) -> str:
    """What judging a claim says once it has failed."""
    config = {"held": {"claims": [claim]}, "significance": JUDGING}
    written = folder / "claims.parquet"
    message = one_line(entry(ROOT, "judge_claims", config, **files, verdicts=written))
    assert not written.exists()
    return message


def test_a_claim_without_its_sides_is_named(tmp_path):
    claim = {"paper": "toys", "name": "one", "where": "Table 1", "says": "So.", "expects": "higher"}
    line = judged(tmp_path, claim | {"compared": "No such run is here."})
    assert "claims.claims.0.printed: Field required" in line


def test_a_table_that_is_none_is_named_by_the_job_that_judges_claims(tmp_path):
    table = tmp_path / "table.parquet"
    table.write_text("no table")
    line = judged(tmp_path, {}, tables=[table])
    assert f"{table}: truncated, or not written by this pipeline" in line


def test_an_empty_corpus_has_nothing_to_train_on(smoke_copy):
    corpus = {"dataset": "wiki_extract", "dev_sentences": 100_000, "max_sentences": None}
    before = (smoke_copy / "results/demo/corpora/wiki_extract/train.parquet").read_bytes()
    process = entry(
        smoke_copy, "split_corpus", {"corpus": corpus}, corpus="wiki_extract",
        sentences="results/demo/datasets/wiki_extract.parquet", train="train.parquet", dev="dev.parquet",
    )  # fmt: skip
    assert "leaves none to train on. Lower dev_sentences." in one_line(process)
    assert not (smoke_copy / "train.parquet").exists()
    assert (smoke_copy / "results/demo/corpora/wiki_extract/train.parquet").read_bytes() == before


def test_a_damaged_input_is_named_by_the_job_that_reads_it(smoke_copy):
    path = smoke_copy / "results/demo/datasets/lee.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    process = entry(
        smoke_copy, "evaluate_sts", {"suite": {"datasets": ["lee"], "max_tokens": 64}}, suite="lee",
        run="frozen_avg.minilm", seed="0", datasets=["results/demo/datasets/lee.parquet"],
        model="results/demo/runs/frozen_avg.minilm/seed0/model/record.json", gpu=0,
        scores="s.parquet", pairs="p.parquet",
    )  # fmt: skip
    assert "results/demo/datasets/lee.parquet: changed since it was written" in one_line(process)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(smoke_copy):
    script = (
        "import resource, runpy, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "runpy.run_module('workflow_scripts.jobs', run_name='__main__')"
    )
    config = {"corpus": {"dataset": "wiki_extract", "dev_sentences": 60, "max_sentences": 10_000}}
    call = call_of(
        "split_corpus", config, corpus="wiki_extract", sentences="results/demo/datasets/wiki_extract.parquet",
        train="out/train.parquet", dev="out/dev.parquet",
    )  # fmt: skip
    process = run(smoke_copy, "-c", script, "split_corpus", json.dumps(call))
    message = one_line(process)
    assert "out/train.parquet" in message
    assert "Free some space" in message
    assert list((smoke_copy / "out").iterdir()) == []


def test_a_second_run_in_the_same_folder_is_refused(smoke_copy):
    locks = smoke_copy / ".snakemake/locks"
    shutil.rmtree(smoke_copy / "results/demo/figures")
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("results/demo/report.html\nresults/demo/tables/demo.parquet\n")
    code, printed = snakemake(smoke_copy, "--cores", "1", "--configfile", DEMO, "config/smoke.yaml")
    assert code == 1
    assert "LockException" in printed
    assert "--unlock" in printed


def test_a_dataset_that_breaks_its_contract_stops_its_own_jobs_only(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "config/smoke.yaml").write_text(SMOKE)
    broken = {"datasets": {"lee": {"contract": {"rows": 1226}}}}
    (folder / "config/broken.yaml").write_text(yaml.safe_dump(broken))
    process = run(
        folder, "-m", "snakemake", "--cores", "2", "--configfile", DEMO, "config/smoke.yaml",
        "config/broken.yaml", "--", "results/demo/datasets/lee.parquet", "results/demo/corpora/wiki_extract/words.parquet",
    )  # fmt: skip
    assert process.returncode == 1
    assert "datasets.lee: rows 1225; its contract says 1226" in process.stdout + process.stderr
    assert pq.read_metadata(folder / "results/demo/corpora/wiki_extract/words.parquet").num_rows > 100
    assert not (folder / "results/demo/datasets/lee.parquet").exists()


@pytest.fixture(scope="module")
def workplace(smoke: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What jobs read that ask a language model, and the report; cheaper than a copy of the finished folder."""
    folder = copy_tree(tmp_path_factory.mktemp("workplace"))
    for part in (CORPUS, "results/demo/encoders/minilm", "results/demo/datasets"):
        shutil.copytree(smoke / part, folder / part, copy_function=os.link)
    return folder


def configured(file: str, *path: str) -> dict:
    """A block of the configuration."""
    found = yaml.safe_load((ROOT / "config" / file).read_text("utf-8"))
    for key in path:
        found = found[key]
    return found


LLM = configured("apis.yaml", "llms", "deepseek_v3") | {"key_variable": None}
POOL = next(one for one in configured("exemplars.yaml", "exemplars").values() if one["generator"] == "llm")
TRANSLATOR = {"engine": "llm", "llm": "toy", "prompt": "toy"}
LIMITS = configured("apis.yaml", "round_trip")
TRANSLATION = {"corpus": "toy", "translator": "toy", "source": "English", "via": "French", "max_sentences": 5}
CORPUS = "results/demo/corpora/wiki_extract"


def asked(changes: dict) -> dict:
    """Who translates or writes, and how, in which something is wrong."""
    return {"translator": TRANSLATOR, "limits": LIMITS, "llm": LLM} | changes


def translating(folder: Path, service: dict, prompt: str):
    """The translation of a few sentences by a language model."""
    deciding = {name: value for name, value in LIMITS.items() if name != "refused_share"}
    settings = {"translation": TRANSLATION, "translator": TRANSLATOR, "limits": deciding, "llm": {}}
    return entry(
        folder, "translate_shard", settings, service=service, corpus="toy", scatteritem="1-of-2",
        sentences=f"{CORPUS}/train.parquet", prompt=prompt, trips="t.parquet",
    )  # fmt: skip


def writing(folder: Path, service: dict, prompt: str):
    """A pool of a language model."""
    return entry(
        folder, "write_exemplars", {"pool": POOL, "llm": {}}, service=service, pool="toy", words=f"{CORPUS}/words.parquet",
        encoder="results/demo/encoders/minilm/record.json", prompt=prompt,
        exemplars="e.parquet", dropped="d.parquet", usage="u.parquet",
    )  # fmt: skip


def reporting(folder: Path, lost: str):
    """A page about nothing but a corpus and what was lost of it."""
    many = ("tables", "extraction", "figures", "captions", "datasets", "dropped", "development", "words")
    empty = {name: [] for name in (*many, "contamination", "exemplars")}
    settings = {"name": "demo", "experiments": [], "page": configured("config.yaml", "report", "page")}
    template = "resources/report/report.html.j2"
    train = [f"{CORPUS}/train.parquet"]
    return entry(
        folder, "write_report", settings, template=template, train=train, lost=[lost], report="out/report.html", **empty
    )  # fmt: skip


ASKED_OUTSIDE = [
    (
        translating,
        {"llm": LLM | {"calls": LLM["calls"] | {"workers": 0}}},
        "$text",
        "llms.toy.calls.workers: ",
    ),
    (
        translating,
        {"translator": TRANSLATOR | {"url": "x"}},
        "$text",
        "translators.toy.translator.llm.url: Extra inputs",
    ),
    (translating, {"limits": {"refused_share": 1}}, "$text", "round_trip.refused_share: "),
    (translating, {}, "Translate.", "translators.toy: prompt: no placeholder $text. Add it."),
    (translating, {}, "$text $txt", "translators.toy: prompt: 'txt'; it knows $source, $target and $text."),
    (translating, {}, None, "prompt.txt: no such file."),
    (writing, {"llm": LLM | {"base_url": "deepseek"}}, "$words", f"llms.{POOL['llm']}.base_url: "),
    (writing, {}, "Write.", f"exemplars.toy: prompt {POOL['prompt']} has no placeholder $words. Add it."),
    (writing, {}, None, "prompt.txt: no such file."),
]


@pytest.mark.parametrize(("job", "service", "prompt", "message"), ASKED_OUTSIDE)
def test_a_wrong_service_or_prompt_asks_nobody(workplace, job, service, prompt, message):
    """The server would answer with other words than these."""
    (workplace / "prompt.txt").unlink(missing_ok=True)
    if prompt is not None:
        (workplace / "prompt.txt").write_text(prompt)
    assert message in one_line(job(workplace, asked(service), "prompt.txt"))
    assert not [name for name in ("t", "e", "d", "u") if (workplace / f"{name}.parquet").exists()]


def damaged(folder: Path) -> str:
    """A table of what was dropped, with a byte of another value."""
    content = bytearray((folder / "results/demo/datasets/wiki_extract.dropped.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "damaged.parquet").write_bytes(content)
    return "damaged.parquet"


LOST = [
    (lambda _: "lost.parquet", "lost.parquet: no such file."),
    (damaged, "damaged.parquet: changed since it was written"),
    (lambda _: f"{CORPUS}/train.parquet", "train.parquet: columns sentence string, "),
]


@pytest.mark.parametrize(("lost", "message"), LOST)
def test_a_page_without_what_was_lost_of_a_corpus_is_not_written(workplace, lost, message):
    assert message in one_line(reporting(workplace, lost(workplace)))
    assert not (workplace / "out/report.html").exists()
