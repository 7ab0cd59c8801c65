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

from workflow_scripts.data.encoders import copy_files
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.graph.call import command
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.provenance.closure import PACKAGE, ROOT


class Evil:
    """A pickle that leaves a mark when it is opened."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "owned"


def test_the_evil_pickle_would_act(mark):
    pickle.loads(pickle.dumps(Evil(mark)))
    assert mark.exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "model.pt"])
def test_a_pickle_of_a_strangers_is_refused_and_not_opened(tmp_path, tiny_bert, mark, name):
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Evil(mark)))
    with pytest.raises(DataError, match=str(folder)):
        load_backbone(folder)
    torch.save({"weight": Evil(mark)}, folder / name)
    with pytest.raises(DataError, match=str(folder)):
        load_backbone(folder)
    assert not mark.exists()


def test_code_that_a_model_folder_brings_along_is_not_run(tmp_path, tiny_bert, mark):
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    code = f"open({str(mark)!r}, 'w')\nclass Model: ...\nclass Module: ...\n"
    for name in ("modeling_evil.py", "evil.py", "tokenization_evil.py"):
        (folder / name).write_text(code)
    config = json.loads((folder / "config.json").read_text())
    maps = {"auto_map": {"AutoModel": "modeling_evil.Model", "AutoConfig": "modeling_evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config | maps))
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Module"}])
    )
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["auto_map"] = {"AutoTokenizer": ["tokenization_evil.Model", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    for load in (load_backbone, load_tokenizer):
        try:
            load(folder)
        except DataError as error:
            assert str(folder) in str(error)
    assert not mark.exists()
    assert not {"evil", "modeling_evil", "tokenization_evil"} & sys.modules.keys()


def test_of_a_strangers_model_folder_no_code_and_no_pickle_is_taken(tmp_path, tiny_bert, mark):
    """What fetch_encoder hands on to every other job, though its configuration still asks for the code."""
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    for name in ("modeling_evil.py", "setup.py", "model/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"open({str(mark)!r}, 'w')\n")
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "tokenizer.pkl"):
        (folder / name).write_bytes(pickle.dumps(Evil(mark)))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"auto_map": {"AutoModel": "modeling_evil.Model"}})
    )
    taken = tmp_path / "taken"
    taken.mkdir()
    copy_files(folder, taken)
    assert {path.suffix for path in taken.rglob("*")} <= {".safetensors", ".json", ".txt"}
    assert (taken / "model.safetensors").exists()
    load_backbone(taken)
    assert not mark.exists()


FORBIDDEN = [
    r"^\s*(import|from) (pickle|dill|cloudpickle|joblib\.numpy_pickle|marshal|shelve)\b",
    r"\btorch\.load\(", r"\bpickle\.", r"\bnp\.load\(", r"allow_pickle",
    r"trust_remote_code\s*=\s*(?!False)", r"\byaml\.(unsafe_load|full_load)\b", r"\bUnsafeLoader\b",
    r"(?<![\w.])(eval|exec)\(", r"shell\s*=\s*True", r"os\.system\(", r"\bautoescape\s*=\s*False",
]  # fmt: skip


ARGUED = {
    "extraction/word_vectors.py": ["np.load(path, allow_pickle=False)"],
    "models/readouts/encoder_sum.py": ["trust_remote_code=trust_remote_code"],
    "evaluation/mteb_tasks.py": ["trust_remote_code=ours"],
    "reporting/model_card.py": ['", trust_remote_code=True" if own', "only with `trust_remote_code=True`"],
}
"""Word vectors of a package are an array, which is refused where it holds a pickle; a saved ensemble hands on to its sub-encoders what its caller gave to
SentenceTransformer; mteb is given folders of which every file has the hash that their record names; a model's card
says which folders need it."""


def test_no_module_opens_pickles_or_runs_what_it_reads():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 80
    for file in files:
        text = file.read_text()
        for argued in ARGUED.get(file.relative_to(PACKAGE).as_posix(), []):
            assert text.count(argued) == 1, f"{file}: {argued} is argued for once"
            text = text.replace(argued, "")
        assert not [form for form in FORBIDDEN if re.search(form, text, re.MULTILINE)], file


def test_no_value_of_a_job_is_read_by_its_shell(tmp_path):
    """The call stands in a here-document that is taken as it is; the path of the log alone is a word, and quoted."""
    text = command("read_dataset")
    line, *call, end = text.splitlines()
    assert line.endswith("<<'END'") and end == "END" and re.findall(r"\{([^}]*)\}", line) == ["log:q"]
    nasty = {"a": "$(touch broken) `touch broken` 'END' \\ \" \n END\nEND\n {settings}"}
    given = {"settings": json.dumps(nasty), "packages": "{}", "files": "{}"}
    filled = "\n".join(call).format(params=SimpleNamespace(**given))
    script = f"cat <<'END'\n{filled}\nEND\n"
    said = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(said)["settings"] == nasty and list(tmp_path.iterdir()) == []


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)


def read_apart(file):
    """Read and check a configuration in a process that may use 2 GB and 60 seconds."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "from pathlib import Path\n"
        "from workflow_scripts.graph.configuration import load_config\n"
        "from workflow_scripts.graph.study import open_study\n"
        "from workflow_scripts.errors import one_line_errors\n"
        "with one_line_errors():\n"
        "    open_study(load_config(Path(), [sys.argv[1]]), Path())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, file],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LAUGHS, id="billion laughs"),
        pytest.param("a: 'x" + "y" * 10_000_000 + "'\n", id="ten megabytes"),
        pytest.param("a: !!python/object/apply:os.system ['true']\n", id="a tag of Python's"),
        pytest.param("a:\n\tb: 1\n", id="a tab"),
        pytest.param("a: 1\na: 2\n", id="a key twice"),
        pytest.param("- a\n", id="a list"),
        pytest.param("a: &a [*a]\n", id="a list in itself"),
    ],
)
def test_a_configuration_that_is_an_attack_ends_in_one_short_line(tmp_path, text):
    file = tmp_path / "evil.yaml"
    file.write_text(text)
    read = read_apart(file)
    assert read.returncode == 1
    assert "Traceback" not in read.stderr, read.stderr[-2000:]
    assert read.stderr.startswith("ConfigError: ") and len(read.stderr) < 2000


def test_tags_of_python_are_refused_before_they_act(tmp_path, mark):
    file = tmp_path / "evil.yaml"
    file.write_text(f"a: !!python/object/apply:builtins.open ['{mark}', 'w']\n")
    with pytest.raises(ConfigError, match=f"{file}:1"):
        read_yaml(file)
    assert not mark.exists()
