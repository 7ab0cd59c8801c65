"""Bad input that a job meets ends in one line: where, what was found, what to do; finished work is kept."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from tests.jobs import call_of
from tests.planning import DEMO, copy_tree, run, snakemake
from tests.smoke import SMOKE


def entry(folder: Path, rule: str, settings: dict, **named: object):
    """Run a job as its rule does."""
    call = json.dumps(call_of(rule, settings, **named))
    return run(folder, "-m", "workflow_scripts.jobs", rule, call, PYTHONPATH=str(folder))


def one_line(process) -> str:
    """The error that a failed job printed, which must be one line without a traceback."""
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    (line,) = [line for line in process.stderr.splitlines() if "Error:" in line]
    return line


def test_a_dataset_that_breaks_its_contract_stops_its_own_jobs_only_and_is_the_last_thing_printed(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "config/smoke.yaml").write_text(SMOKE)
    (folder / "config/broken.yaml").write_text("datasets: {lee: {contract: {rows: 1226}}}\n")
    made = ("results/demo/datasets/lee.parquet", "results/demo/corpora/wiki_extract/words.parquet")
    code, printed = snakemake(
        folder, "--cores", "2", "--configfile", DEMO, "config/smoke.yaml", "config/broken.yaml", "--", *made
    )
    *others, sentence, log = printed.splitlines()
    assert code == 1 and log == "    log: logs/demo/read_dataset/lee.log"
    assert re.match(r"DataError: datasets\.lee: rows 1225; its contract says 1226", sentence)
    assert not any("-m workflow_scripts" in line or "DataError" in line for line in others)
    assert pq.read_metadata(folder / made[1]).num_rows > 100
    assert not (folder / made[0]).exists()


def damage(path: Path) -> None:
    """Change one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


CORPUS = "results/demo/corpora/wiki_extract"


def test_an_empty_corpus_and_a_damaged_table_are_named_and_nothing_is_written(smoke_copy):
    corpus = {"dataset": "wiki_extract", "dev_sentences": 100_000, "max_sentences": None}
    before = (smoke_copy / CORPUS / "train.parquet").read_bytes()
    process = entry(
        smoke_copy, "split_corpus", {"corpus": corpus}, corpus="wiki_extract",
        sentences="results/demo/datasets/wiki_extract.parquet", train="out/train.parquet", dev="out/dev.parquet",
    )  # fmt: skip
    assert "leaves none to train on. Lower dev_sentences." in one_line(process)
    assert (smoke_copy / CORPUS / "train.parquet").read_bytes() == before
    damage(smoke_copy / CORPUS / "train.parquet")
    process = entry(
        smoke_copy, "count_words", {"words": {"peak_window": 5}}, corpus="wiki_extract",
        sentences=f"{CORPUS}/train.parquet", counts="out/words.parquet",
    )  # fmt: skip
    assert f"{CORPUS}/train.parquet: changed since it was written" in one_line(process)
    assert list(smoke_copy.glob("out/*.parquet")) == []


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
    message = one_line(run(smoke_copy, "-c", script, "split_corpus", json.dumps(call)))
    assert "out/train.parquet" in message and "Free some space" in message
    assert list((smoke_copy / "out").iterdir()) == []


def test_a_second_run_in_the_same_folder_is_refused(smoke_copy):
    locks = smoke_copy / ".snakemake/locks"
    shutil.rmtree(smoke_copy / "results/demo/figures")
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("results/demo/report.html\nresults/demo/tables/demo.parquet\n")
    code, printed = snakemake(smoke_copy, "--cores", "1", "--configfile", DEMO, "config/smoke.yaml")
    assert code == 1 and "LockException" in printed and "--unlock" in printed
