"""Files and settings from a stranger: nothing of theirs is run, and names stay inside."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.support.training_jobs import NOWHERE
from workflow_scripts.data.published import copy_files, files_of
from workflow_scripts.errors import DataError
from workflow_scripts.graph.job_specs import JobSpec
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.workplace import Workplace


class Evil:
    """A pickle that leaves a mark when it is opened."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


@pytest.fixture
def mark(tmp_path):
    """The file that such a pickle makes, as is tried once."""
    mark = tmp_path / "owned"
    pickle.loads(pickle.dumps(Evil(mark)))
    mark.unlink()
    return mark


@pytest.fixture
def folder(tmp_path, tiny_bert):
    """A model that a stranger may add to."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "model"))


def edit(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "model.pt"])
def test_a_pickle_of_a_strangers_is_refused_and_not_opened(folder, mark, name):
    (folder / "model.safetensors").unlink()
    for write in (
        lambda path: path.write_bytes(pickle.dumps(Evil(mark))),
        lambda path: torch.save(Evil(mark), path),
    ):
        write(folder / name)
        with pytest.raises(DataError, match=str(folder)):
            load_backbone(folder)
    assert not mark.exists()


@pytest.fixture
def with_code(folder, mark):
    """The model with modules, and a configuration that asks for them."""
    for name in ("modeling_evil.py", "evil.py", "model/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"open({str(mark)!r}, 'w')\nclass Model: ...\n")
    edit(
        folder / "config.json",
        auto_map={"AutoModel": "modeling_evil.Model", "AutoConfig": "modeling_evil.Model"},
    )
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["modeling_evil.Model", None]})
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Model"}])
    )
    return folder


def test_code_that_a_model_folder_brings_along_is_not_run(with_code, mark):
    for load in (load_backbone, load_tokenizer):
        try:
            load(with_code)
        except DataError as error:
            refusal = str(error)
        else:
            continue
        assert str(with_code) in refusal
    assert not mark.exists()
    assert not {"evil", "modeling_evil"} & sys.modules.keys()


def test_no_code_and_no_pickle_of_a_stranger_is_taken(tmp_path, with_code, mark):
    """The folder that fetch_encoder hands on to other jobs, though its configuration still asks for the code."""
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "tokenizer.pkl"):
        (with_code / name).write_bytes(pickle.dumps(Evil(mark)))
    taken = tmp_path / "taken"
    taken.mkdir()
    copy_files(with_code, taken, files_of(with_code))
    assert {path.suffix for path in taken.rglob("*")} <= {".safetensors", ".json", ".txt"}
    load_backbone(taken)
    assert not mark.exists()


def test_no_value_of_a_job_is_read_by_its_shell(tmp_path):
    """The call stands in a here-document that is taken as it is; the path of the log alone is a word, and quoted."""
    text = JobSpec(
        "data.datasets.read_dataset", settings="{}", workplace=Workplace.model_validate(NOWHERE)
    ).shell
    line, *call, end = text.splitlines()
    assert line.endswith("<<'END'")
    assert end == "END"
    assert re.findall(r"\{([^}]*)\}", line) == ["log:q"]
    nasty = {"a": "$(touch broken) `touch broken` 'END' \\ \" \n END\nEND\n {settings}"}
    given = {"settings": json.dumps(nasty), "packages": "{}", "outside": "datasets.a", "files": "{}"}
    filled = "\n".join(call).format(params=SimpleNamespace(**given))
    said = subprocess.check_output(["bash", "-c", f"cat <<'END'\n{filled}\nEND\n"], cwd=tmp_path, text=True)
    assert json.loads(said)["settings"] == nasty
    assert list(tmp_path.iterdir()) == []


ATTACKS = [
    "a: 'x" + "y" * 10_000_000 + "'\n",
    "a: !!python/object/apply:builtins.open [MARK, 'w']\n",
    "a:\n\tb: 1\n",
    "a: 1\na: 2\n",
    "- a\n",
]
READING = """
import resource, sys
from pathlib import Path
from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.graph.checks import open_study

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
for file in sys.argv[1:]:
    try:
        with one_line_errors():
            open_study(load_config(Path(), [file]), Path())
    except SystemExit as stopped:
        print(stopped)
"""


def test_a_configuration_that_is_an_attack_ends_in_one_line(tmp_path, mark):
    """In a process that may use 2 GB and 60 seconds; a tag of Python is refused before it acts."""
    files = [tmp_path / f"evil{number}.yaml" for number in range(len(ATTACKS))]
    for file, text in zip(files, ATTACKS, strict=True):
        file.write_text(text.replace("MARK", str(mark)))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.check_output(
        [sys.executable, "-c", READING, *files], cwd=ROOT, env=environment, timeout=60, text=True
    )
    lines = said.splitlines()
    assert len(lines) == len(files)
    assert all(line.startswith("ConfigError: ") and len(line) < 2000 for line in lines)
    assert not mark.exists()
