"""The whole graph from raw text to report, cut short, on the real encoder, text and judgements."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.fork_server import programs
from tests.support.short_demo import CONFIGS, plan
from tests.support.snakemake_plans import copy_tree, snakemake
from tests.support.verb_answers import printed
from workflow_scripts.graph.notes import Call
from workflow_scripts.verbs import rebuild
from workflow_scripts.verbs.records import Records, audited_studies


@pytest.mark.slow
def test_a_job_of_every_rule_writes_the_same_bytes_elsewhere(smoke, monkeypatch):
    """A job of every rule writes the same bytes in another folder."""
    monkeypatch.chdir(smoke)
    call = Call([*CONFIGS], {})
    jobs = rebuild.planned([], call)
    monkeypatch.setattr(rebuild, "planned", lambda *_, **__: jobs)  # which takes longer than most of the jobs
    monkeypatch.setattr("sys.executable", str(programs() / "python"))  # forks, as the first jobs were
    found = Records(audited_studies([]), hashing=False).by_file
    one_each = {record.rule: smoke / path for path, record in found.items()}
    assert one_each.keys() == {job.rule for job in jobs}
    with ThreadPoolExecutor(2) as pool:
        rebuilt = pool.map(lambda path: rebuild.rebuild(path, call), one_each.values())
        differing = [
            artefact.path for made in rebuilt for artefact in made if artefact["record"] != "identical"
        ]
    assert differing == []


def test_a_second_run_a_copy_and_touched_files_plan_nothing(smoke, smoke_copy):
    assert plan(smoke) == plan(smoke_copy) == {}
    for path in sorted(smoke_copy.rglob("*")):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert plan(smoke_copy) == {}


def flip_a_bit(path: Path) -> None:
    """Change one bit somewhere in a file, the place given by its name."""
    content = path.read_bytes()
    place = int(hashlib.sha256(path.name.encode()).hexdigest(), 16) % len(content)
    path.unlink()  # it may be the original, by another name
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


@pytest.mark.parametrize("records", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_audit_names_each_file_whose_bit_is_flipped(smoke_copy, monkeypatch, records):
    """Apart, because without its record nothing is known of a model folder's other files."""
    everything = [path for path in sorted((smoke_copy / "results/demo").rglob("*")) if path.is_file()]
    files = [path for path in everything if (path.name == "record.json") == records]
    assert len(files) >= 7
    for path in files:
        flip_a_bit(path)
    monkeypatch.chdir(smoke_copy)
    code, said = printed("verify", "--json")
    assert code == 1
    assert [path for path in files if path.relative_to(smoke_copy).as_posix() not in said] == []


@pytest.mark.slow
def test_the_paper_scale_is_planned_without_a_network(tmp_path):
    copy_tree(tmp_path)
    code, printed = snakemake(tmp_path, "-n", "--profile", "slurm")
    assert code == 0, printed
    assert re.search(r"train_encoder +1\d{3}\b", printed)
