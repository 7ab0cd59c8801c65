"""Whatever changes in configuration, code, packages or inputs, stale names the artefacts and the keys."""

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from snakemake.utils import format

from tests.unit.audit.conftest import RUNS, STUDY, TIMES
from tests.verbs import printed
from workflow_scripts.audit.compare import ABSENT, Change
from workflow_scripts.audit.stale import stale
from workflow_scripts.audit.verify import unchecked
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.call import command
from workflow_scripts.planning.graph import Graph, Job, _job
from workflow_scripts.provenance.artefacts import read_record, write_table
from workflow_scripts.provenance.record import sha256_of


def planned_like(record):
    """The job that would make what a record tells of."""
    roles = {}
    for role, given in record.inputs.items():
        if ":" not in given.path:
            name, several, _path = role.partition("/")
            roles = roles | {name: [*roles.get(name, []), given.path] if several else given.path}
    timings = [f"benchmarks/study/{record.rule}.speed.parquet"]
    return Job(
        record.rule, dict(record.wildcards), copy.deepcopy(record.settings), [], [*record.outputs, *timings],
        roles=roles, timings=timings, meaning=dict(record.meaning), packages=dict(record.packages),
    )  # fmt: skip


def jobs():
    """The jobs that would make the study as it is."""
    records = unchecked([Path(STUDY)]).records.values()
    return {(record.rule, *record.outputs): planned_like(record) for record in records}


def found(root, changed=None):
    return stale(Graph((changed or jobs()).values()))


def own(outcome):
    """Reasons of an artefact's own, by its path in the study."""
    return {name.removeprefix(f"{STUDY}/"): reasons for name, reasons in outcome.stale.items() if reasons}


def test_what_the_configuration_would_make_again_is_up_to_date(root):
    outcome = found(root)
    assert outcome.stale == {} and outcome.missing == [] and outcome.unasked == []
    assert len(outcome.fresh) == 15 and not outcome.red


def test_a_changed_setting_is_named_with_its_key_and_reaches_what_is_downstream(root):
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder" and job.wildcards["run"] == "plain":
            job.settings["method"]["temperature"] = 0.1
    outcome = found(root, changed)
    reason = Change("setting", "method.temperature", 0.05, 0.1)
    assert own(outcome) == {
        "runs/plain/seed1/model/record.json": [reason],
        "runs/plain/seed1/history.parquet": [reason],
    }
    upstream = {name.removeprefix(f"{STUDY}/") for name in outcome.stale} - own(outcome).keys()
    assert upstream == {
        "scores/sts/suite/plain/seed1.parquet",
        "tables/main.parquet",
        "figures/main.svg",
        "report.html",
    }
    assert (
        outcome.red
        and outcome.asked[f"{STUDY}/runs/plain/seed1/model/record.json"] == "train_encoder(run=plain, seed=1)"
    )
    cause = {"what": "setting", "key": "method.temperature", "was": "0.05", "now": "0.1"}
    of = {"of rule": "train_encoder", "artefacts": 2, "behind": 4}
    assert outcome.causes() == [cause | of]


def test_values_that_trade_places_are_two_changes(root):
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder":
            settings = job.settings
            settings["method"]["temperature"], settings["training"]["steps"] = 3, 0.05
    assert {len(reasons) for reasons in own(found(root, changed)).values()} == {2}


WORDS = "workflow_scripts/data/words.py"


def test_changed_code_is_named_file_by_file(root):
    changed = jobs()
    for job in changed.values():
        job.meaning[WORDS] = "f" * 64
    outcome = found(root, changed)
    assert len(own(outcome)) == 15
    assert {reason.key for reasons in own(outcome).values() for reason in reasons} == {WORDS}


def test_files_that_the_code_has_lost_or_gained_are_named(root):
    changed = jobs()
    (job,) = (job for (rule, *_), job in changed.items() if rule == "make_table")
    del job.meaning[WORDS]
    job.meaning["workflow_scripts/data/more_words.py"] = "1" * 64
    reasons = own(found(root, changed))["tables/main.parquet"]
    assert [(reason.key, reason.b) for reason in reasons] == [
        ("workflow_scripts/data/more_words.py", "1" * 64),
        (WORDS, ABSENT),
    ]


def test_another_version_of_a_package_is_named(root):
    changed = jobs()
    (job,) = (job for (rule, *_), job in changed.items() if rule == "make_table")
    installed = job.packages["pyarrow"]
    job.packages["pyarrow"] = "1.0"
    assert own(found(root, changed)) == {
        "tables/main.parquet": [Change("package", "pyarrow", installed, "1.0")]
    }


def test_a_wildcard_that_a_rule_has_lost_is_named(root):
    changed = jobs()
    (job,) = (job for (rule, *_), job in changed.items() if rule == "read_dataset")
    del job.wildcards["dataset"]
    assert own(found(root, changed)) == {
        "datasets/stsb.parquet": [Change("wildcard", "dataset", "stsb", "(absent)")]
    }


def test_inputs_in_another_order_are_another_job(root):
    changed = jobs()
    (job,) = (job for (rule, *_), job in changed.items() if rule == "make_table")
    assert len(job.roles["scores"]) > 1
    job.roles["scores"].reverse()
    assert own(found(root, changed)) == {
        "tables/main.parquet": [Change("input", "order", "another", "as configured")]
    }


def test_numbers_that_are_spelled_otherwise_are_no_change(root):
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder":
            job.settings["training"]["steps"] = float(job.settings["training"]["steps"])
    assert not found(root, changed).red


def test_inputs_added_left_out_and_made_anew_are_named(root, study):
    study.write_dataset(score=4.5)
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "make_table":
            job.roles["scores"][0] = "resources/prompt.txt"
    reasons = own(found(root, changed))
    prompt = sha256_of(Path("resources/prompt.txt"))
    assert {(r.key, r.b) for r in reasons["tables/main.parquet"]} == {
        (f"scores/{study.score_files()[0]}", ABSENT),
        ("scores/resources/prompt.txt", prompt),
    }
    assert {r.key for r in reasons["scores/sts/suite/plain/seed1.parquet"]} == {
        "datasets/datasets/stsb.parquet"
    }


def test_a_missing_file_is_missing_and_what_was_made_from_it_is_stale(root):
    shutil.rmtree(Path(STUDY, "runs/plain/seed1/model"))
    record = f"{STUDY}/runs/plain/seed1/model/record.json"
    changed = jobs() | {("extra",): Job("extra", {}, {}, [], [record])}
    outcome = found(root, changed)
    assert outcome.missing == [f"{STUDY}/runs/plain/seed1/model/record.json"]
    assert f"{STUDY}/scores/sts/suite/plain/seed1.parquet" in outcome.stale


def test_a_missing_table_of_times_that_the_page_shows_is_missing(root, study):
    study.write_times()
    asked = jobs() | {("times",): Job("tabulate_times", {"experiment": "main"}, {}, [], [TIMES.as_posix()])}
    assert not found(root, asked).red
    TIMES.unlink()
    outcome = found(root, asked)
    assert outcome.missing == [TIMES.as_posix()] and list(outcome.stale) == [f"{STUDY}/report.html"]


def test_an_artefact_that_no_job_writes_is_said_and_is_no_failure(root):
    changed = {key: job for key, job in jobs().items() if key[0] != "write_report"}
    outcome = found(root, changed)
    assert outcome.unasked == [f"{STUDY}/report.html"] and not outcome.red


def test_a_configuration_without_a_study_is_an_error(root):
    with pytest.raises(ConfigError, match="runs no job"):
        stale(Graph([]))


def test_a_command_of_snakemakes_is_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("code.json").write_text('{"a.py": "1"}')
    inputs = {"files": ["a.parquet", "b c.parquet"], "none": [], "code": "code.json"}
    files = {"wildcards": {"run": "r"}, "inputs": inputs, "outputs": {"out": "o.svg", "speed": "s.parquet"}}
    call = {
        "settings": {"name": "it's"},
        "packages": {"torch": "2"},
        "files": files | {"operational": {"min_rows": 3}},
    }
    params = SimpleNamespace(**{name: json.dumps(part) for name, part in call.items()})
    told = SimpleNamespace(rule_name="draw", input=["a.parquet"], output=["o.svg"], log=["l.log"], benchmark="b.tsv",
                           resources={"gpu": 1, "runtime": 5},
                           shellcmd=format(command("draw"), log="l.log", params=params))  # fmt: skip
    job = _job(told, lambda code: json.loads(Path(code).read_text()))
    assert (job.settings, job.meaning, job.packages) == ({"name": "it's"}, {"a.py": "1"}, {"torch": "2"})
    assert job.roles == {"files": ["a.parquet", "b c.parquet"], "none": []} and job.timings == ["s.parquet"]
    assert (job.wildcards, job.operational) == ({"run": "r"}, {"min_rows": 3})
    assert job.queued == {"gpu": 1, "runtime": 5}
    assert json.loads(job.call) == call


def test_every_artefact_of_the_study_has_a_job_here(root):
    assert len(jobs()) == 2 + 1 + 2 * len(RUNS) + 3


def test_a_record_that_was_altered_and_sealed_anew_is_stale(root):
    """Though its key is still that of the job: it says what the job did not do."""
    asked, path = jobs(), Path(STUDY, "runs/plain/seed1/history.parquet")
    record = read_record(path)
    altered = record.settings | {"training": {"steps": 4}}
    write_table(path, pq.read_table(path), record.model_copy(update={"settings": altered}))
    assert own(found(root, asked)) == {
        "runs/plain/seed1/history.parquet": [Change("setting", "training.steps", 4, 3)]
    }


def test_causes_come_first_with_what_follows_from_each_in_a_hundred_columns(root, monkeypatch):
    """One row for a file of code that many jobs import, one for all files of a role; the rest is a number."""
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder":
            job.settings["method"]["temperature"] = 0.1
            job.meaning[WORDS] = "f" * 64
        if rule == "make_table":
            job.roles["scores"] = ["resources/prompt.txt"]
    monkeypatch.setattr("workflow_scripts.audit.stale.planned", lambda *_: Graph(changed.values()))
    monkeypatch.setenv("COLUMNS", "100")
    code, said = printed("stale")
    lines = said.splitlines()
    assert code == 1 and max(map(len, lines)) <= 100
    rows = [[cell.strip() for cell in line.split("│")] for line in lines if "│" in line]
    assert rows == [
        ["code", WORDS, "", "", "train_encoder", "6", "6"],
        ["setting", "method.temperature", "0.05", "0.1", "train_encoder", "6", "6"],
        ["input", "scores", "", "", "make_table", "1", "2"],
    ]
    assert lines[-1] == "12 jobs: 3 artefacts up to date, 12 stale, 0 files missing"
