"""Every entry script of the training half as a rule starts it: from a dump and a folder to runs."""

import bz2
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests import jobs, tiny
from workflow_scripts.columns.corpora import DROPPED, PAIRS, SENTENCES, WORD_COUNTS
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import EXIT_TRY_AGAIN
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_record, read_table
from workflow_scripts.provenance.closure import ROOT

STEPS = 120
TRAINING = {"max_steps": STEPS, "checkpoint_minutes": 0}
LABEL = "a tiny encoder stands in for BERT-base"
ENCODER = {"label": LABEL, "sources": [{"kind": "local", "path": "models/tiny"}]}
DATASET = {
    "form": "sentences",
    "sources": [
        {
            "kind": "local",
            "files": {"dump": {"path": "dump.bz2", "sha256": None}},
            "reader": "wikipedia_xml",
            "options": {"min_words": 4, "max_words": 50},
        }
    ],
    "contract": {},
}
CORPUS = {"dataset": "toy", "dev_sentences": 12, "max_sentences": None}
METHOD = {"module": "frozen", "readout": {"kind": "pooling", "pooler": "avg_first_last", "layers": None}}


def write_sources(folder):
    """An encoder and a dump of ten articles of six sentences, below a data root."""
    tiny.write_model(folder / "models/tiny", "bert")
    texts = tiny.sentences(60)
    articles = [" ".join(texts[start : start + 6]) for start in range(0, 60, 6)]
    pages = [
        f"<page><title>P{n}</title><ns>0</ns><id>{n}</id><revision><id>1</id><text>{escape(text)}</text></revision></page>"
        for n, text in enumerate([*articles, "#REDIRECT [[P1]]"])
    ]
    xml = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">{"".join(pages)}</mediawiki>'
    (folder / "dump.bz2").write_bytes(bz2.compress(xml.encode()))


BY_NAME = ["data.readers.wikipedia_xml", "models.readouts.pooling"]
"""What these jobs import by the names in their settings."""


class Workshop:
    """A working directory in which entry scripts are started."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "SEMBLANCE_DATA": str(folder / "data"),
            "GIT_DIR": os.devnull,  # somebody may commit meanwhile
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }

    def start(self, rule, call):
        command = [sys.executable, "-m", "workflow_scripts.jobs", rule, json.dumps(call)]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, rule, settings, **files):
        process = self.start(rule, jobs.call_of(rule, settings, BY_NAME, **files))
        _, errors = process.communicate()
        assert process.returncode == 0, errors[-3000:]


def identities_of(folder):
    """Of every file below ``folder``."""
    return {name: identity(folder / name) for name in jobs.files_of(folder)}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The folder after all scripts but ``train_encoder`` have run in it."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "data").mkdir()
    write_sources(folder / "data")
    shop = Workshop(folder)
    shop.run(
        "fetch_encoder", {"encoder": ENCODER, "source": "none"}, encoder="tiny", record="encoder/record.json"
    )
    shop.run(
        "read_dataset",
        {"dataset": DATASET, "source": "none"},
        dataset="toy",
        min_rows=50,
        table="toy.parquet",
        dropped="toy.dropped.parquet",
    )
    parts = {"train": "corpus/train.parquet", "dev": "corpus/dev.parquet"}
    shop.run("split_corpus", {"corpus": CORPUS}, corpus="toy", sentences="toy.parquet", **parts)
    shop.run(
        "count_words",
        {"words": {"peak_window": 5}},
        corpus="toy",
        sentences="corpus/train.parquet",
        counts="corpus/words.parquet",
    )
    adapt = jobs.config("continue_mlm")
    outputs = {
        "record": "tiny_mlm/record.json",
        "history": "tiny_mlm.history.parquet",
        "speed": "speed.parquet",
    }
    files = {"encoder": "tiny_mlm", "base": "encoder/record.json", "corpus": "corpus/train.parquet"} | outputs
    shop.run("continue_mlm", adapt, checkpoint_minutes=0.5, **files)
    pooled = {"method": METHOD, "max_tokens": 16}
    files = {
        "run": "frozen",
        "seed": "1",
        "encoder": "tiny_mlm/record.json",
        "record": "pooled/record.json",
    }
    shop.run("pool_encoder", pooled, **files)
    return shop


def test_sources_become_an_encoder_and_sentences(workshop):
    folder = workshop.folder
    record = check_model_folder(folder / "encoder")
    assert set(record.files) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert record.inputs["model.safetensors"].path == "local:models/tiny/model.safetensors"
    assert str(folder) not in (folder / "encoder/record.json").read_text()
    sentences = read_table(folder / "toy.parquet", SENTENCES)
    assert sentences["sentence"].to_pylist() == tiny.sentences(60)
    assert sentences["document"].to_pylist() == [number // 6 for number in range(60)]
    dropped = read_table(folder / "toy.dropped.parquet", DROPPED).to_pylist()
    assert dropped == [{"reason": "redirect, empty or no article", "count": 1}]


def test_sentences_become_a_corpus_with_words_and_a_development_set(workshop):
    folder = workshop.folder
    train, dev = (
        read_table(folder / "corpus/train.parquet", SENTENCES),
        read_table(folder / "corpus/dev.parquet", PAIRS),
    )
    assert train["sentence"].to_pylist() == tiny.sentences(60)[:48]
    held_out = tiny.sentences(60)[48:]
    assert set(dev["sentence1"].to_pylist()) | set(dev["sentence2"].to_pylist()) <= set(held_out)
    assert dev["score"].to_pylist() == [1.0] * 10 + [0.0] * 10
    words = read_table(folder / "corpus/words.parquet", WORD_COUNTS)
    assert sum(words["count"].to_pylist()) == sum(len(s.split()) for s in train["sentence"].to_pylist())


def test_labels_of_stand_ins_reach_every_run(workshop):
    folder = workshop.folder
    adapted = jobs.CONFIGS["continue_mlm"]["adapt"]["label"]
    assert read_record(folder / "encoder").labels == [LABEL]
    assert read_record(folder / "tiny_mlm").labels == sorted([LABEL, adapted])
    assert read_record(folder / "pooled").labels == sorted([LABEL, adapted])
    assert read_record(folder / "tiny_mlm.history.parquet").labels == sorted([LABEL, adapted])


def test_a_training_asked_to_stop_leaves_with_75_and_goes_on_to_the_same_bytes(
    workshop, tmp_path, monkeypatch, torch_settings
):
    """SIGTERM to the real command; the comparison is made by this process, which never stopped.

    Identities are compared, not bytes: this process has loaded more packages, which each file's origin says.
    """
    settings = jobs.config("train_encoder", **TRAINING)
    call = jobs.training_call("train_encoder", settings)
    training = workshop.start("train_encoder", call)
    checkpoints = workshop.folder / "run/model.checkpoints"
    while training.poll() is None and not list(checkpoints.glob("*/COMPLETE.json")):
        time.sleep(0.005)
    training.send_signal(signal.SIGTERM)
    _, errors = training.communicate()
    assert training.returncode == EXIT_TRY_AGAIN, errors[-3000:]
    assert errors.splitlines()[-1].startswith("Preempted: stopped after step ")
    assert "Traceback" not in errors
    assert [path.name for path in (workshop.folder / "run").iterdir()] == ["model.checkpoints"]
    assert len(list(checkpoints.iterdir())) == 1

    again = workshop.start("train_encoder", call)
    _, errors = again.communicate()
    assert again.returncode == 0, errors[-3000:]

    for name in ("encoder", "corpus"):
        shutil.copytree(workshop.folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    jobs.run_here("train_encoder", settings)
    whole = identities_of(tmp_path / "run")
    assert len(whole) == 13
    assert identities_of(workshop.folder / "run") == whole
    assert len(read_table(Path("run/history.parquet"), HISTORY)) == STEPS
