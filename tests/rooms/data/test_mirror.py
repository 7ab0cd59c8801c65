"""The Hub's own client and this project's code against a mirror on this machine, and against none."""

import shutil
import time
from pathlib import Path

import pytest

from benchmarks.material import minilm
from tests.hub import commit, mirror
from tests.planning import ROOT, run_alone

MINILM = "mirror/all-MiniLM-L6-v2"
OLD, NEW = commit("old"), commit("new")
ROWS = {OLD: 2, NEW: 3}
NOBODY = "http://127.0.0.1:9"

READ = """
import sys
from workflow_scripts.data.encoders import Fetch, locate
from workflow_scripts.data.sources import Dataset, load
from workflow_scripts.errors import DataError

columns = {name: name for name in ("sentence1", "sentence2", "score")}
hub = {"kind": "hub", "repository": "team/toy", "splits": ["test"], "columns": columns}
for asked in sys.argv[1:]:
    repository, revision = asked.split("@")
    try:
        if repository == "team/toy":
            block = {"form": "pairs", "sources": [hub | {"revision": revision}], "contract": {}}
            rows, origin = load("toy", Dataset.parse(block, "toy"), None)
            print(len(rows.table), origin["hub"].path, origin["hub"].sha256)
        else:
            source = {"kind": "hub", "repository": repository, "revision": revision}
            _, files = locate("toy", Fetch.parse({"sources": [source]}, "toy"), None)
            print(*(f"{file.path} {file.sha256}" for file in files.values()))
    except DataError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A dataset at two commits, and an encoder."""
    folder = tmp_path_factory.mktemp("hub")
    for revision, rows in ROWS.items():
        file = folder / "datasets/team/toy" / revision / "test.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text('{"sentence1": "one", "sentence2": "two", "score": 3.5}\n' * rows)
    shutil.copytree(minilm(), folder / "models" / MINILM / commit(MINILM))
    return folder


@pytest.fixture
def ask(tmp_path):
    """What a program says of repositories and commits, asking the Hub at an address, with a cache of the test's own."""

    def lines(address, *asked):
        home = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}
        done = run_alone(ROOT, "-c", READ, *asked, **home)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if "hub:" in line]

    return lines


def test_what_was_read_from_the_hub_is_read_again_without_it_at_once_and_never_another_commit(
    hub, ask, tmp_path
):
    """The client by itself would take the newest copy, after half a minute."""
    first, second, never = (f"team/toy@{revision}" for revision in (OLD, NEW, commit("never")))
    encoder = f"{MINILM}@{commit(MINILM)}"
    with mirror(hub) as address:
        denied, absent, *online = ask(address, never, f"team/none@{commit('x')}", first, second, encoder)
    assert [line.split()[:2] for line in online[:2]] == [["2", f"hub:{first}"], ["3", f"hub:{second}"]]
    assert f"hub:{encoder}/model.safetensors 53aa51172d142c89" in online[2]
    assert denied.startswith(f"MissingError: datasets.toy: no source is available: hub:{never}")
    assert absent.startswith("MissingError: encoders.toy: ") and "team/none" in absent
    assert (tmp_path / "home/hub").is_dir()  # HF_HOME is where it goes
    assert Path(hub / "requests.log").read_text().count("model.safetensors") == 2  # its head, and the file
    begun = time.monotonic()
    refused, *offline = ask(NOBODY, never, first, second, encoder)
    assert offline == online
    assert refused.startswith(f"UnreachableError: datasets.toy: no source is available: hub:{never}")
    assert time.monotonic() - begun < 40
