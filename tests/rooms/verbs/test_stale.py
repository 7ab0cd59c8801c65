"""Whatever changes in configuration, code, packages or inputs, stale names the artefacts and the keys."""

import copy
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.rooms.verbs.conftest import RUNS, STUDY, TIMES
from workflow_scripts.columns.training import DROPPED_FILE
from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.artefacts import read_record, write_table
from workflow_scripts.provenance.record import sha256_of
from workflow_scripts.verbs.compare import ABSENT, Change
from workflow_scripts.verbs.plan import Graph, PlannedJob
from workflow_scripts.verbs.records import Records
from workflow_scripts.verbs.stale import stale

WORDS, MORE = "workflow_scripts/data/words.py", "workflow_scripts/data/more_words.py"


def planned_like(record):
    """The job that would make what a record tells of."""
    roles = {}
    for role, given in record.inputs.items():
        if ":" not in given.path:
            name, several, _path = role.partition("/")
            roles = roles | {name: [*roles.get(name, []), given.path] if several else given.path}
    timings = [f"benchmarks/study/{record.rule}.speed.parquet"]
    return PlannedJob(
        record.rule, dict(record.wildcards), copy.deepcopy(record.settings), [], [*record.outputs, *timings],
        roles=roles, timings=timings, meaning=dict(record.meaning), packages=dict(record.packages),
    )  # fmt: skip


def jobs():
    """The jobs that would make the study as it is."""
    records = Records([Path(STUDY)]).by_file.values()
    return {(record.rule, *record.outputs): planned_like(record) for record in records}


def found(changed):
    return stale(Graph(changed.values()))


def own(outcome):
    """Reasons of an artefact's own, by its path in the study."""
    return {name.removeprefix(f"{STUDY}/"): reasons for name, reasons in outcome.stale.items() if reasons}


def test_what_the_configuration_would_make_again_is_up_to_date(root):
    assert len(jobs()) == 2 + 1 + 2 * len(RUNS) + 3
    outcome = found(jobs())
    assert (outcome.stale, outcome.missing, outcome.unasked) == ({}, [], [])
    assert len(outcome.fresh) == 15 and not outcome.red


def test_a_part_of_a_folder_that_is_gone_is_a_reason_of_its_own(root):
    """Snakemake looks at the record alone, and would make neither weights nor pictures again."""
    folder = Path(STUDY, "runs/plain/seed1/model")
    part = next(iter(read_record(folder / "record.json").files))
    (folder / part).unlink()
    outcome = found(jobs())
    assert own(outcome) == {
        "runs/plain/seed1/model/record.json": [Change("file", part, "as recorded", "missing")]
    }
    assert f"{STUDY}/scores/sts/suite/plain/seed1.parquet" in outcome.stale


def test_weights_that_were_dropped_are_missed_by_nothing(root, study):
    study.drop_weights("plain")
    outcome = found(jobs())
    assert f"{STUDY}/runs/plain/{DROPPED_FILE}" in outcome.fresh and not outcome.red


def test_a_changed_setting_is_named_with_its_key_and_reaches_what_is_downstream(root):
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder" and job.wildcards["run"] == "plain":
            job.settings["method"]["temperature"] = 0.1
    outcome = found(changed)
    reasons = [Change("setting", "method.temperature", 0.05, 0.1)]
    model, history = "runs/plain/seed1/model/record.json", "runs/plain/seed1/history.parquet"
    assert own(outcome) == {model: reasons, history: reasons}
    downstream = [
        "figures/main.svg",
        "report.html",
        "scores/sts/suite/plain/seed1.parquet",
        "tables/main.parquet",
    ]
    assert sorted(outcome.stale.keys() - {f"{STUDY}/{name}" for name in (model, history)}) == [
        f"{STUDY}/{name}" for name in downstream
    ]  # fmt: skip
    assert outcome.red and outcome.asked[f"{STUDY}/{model}"] == "train_encoder(run=plain, seed=1)"
    cause = {"what": "setting", "key": "method.temperature", "was": "0.05", "now": "0.1"}
    assert outcome.causes() == [cause | {"of rule": "train_encoder", "artefacts": 2, "behind": 4}]


def put_other_words(job):
    del job.meaning[WORDS]
    job.meaning[MORE] = "1" * 64


@pytest.mark.parametrize(
    ("rule", "change", "expected"),
    [
        ("train_encoder", lambda job: job.settings["training"].update(steps=3.0), []),
        ("make_table", lambda job: job.roles["scores"].reverse(), [("input", "order", "as configured")]),
        ("make_table", lambda job: job.meaning.update({WORDS: "f" * 64}), [("code", WORDS, "f" * 64)]),
        ("make_table", put_other_words, [("code", MORE, "1" * 64), ("code", WORDS, ABSENT)]),
        ("make_table", lambda job: job.packages.update(pyarrow="1.0"), [("package", "pyarrow", "1.0")]),
        ("read_dataset", lambda job: job.wildcards.clear(), [("wildcard", "dataset", ABSENT)]),
        (
            "train_encoder",
            lambda job: job.settings.update(method={"module": 0.05, "temperature": "simcse"}),
            [("setting", "method.module", 0.05), ("setting", "method.temperature", "simcse")],
        ),
    ],
)
def test_what_a_job_would_do_otherwise_is_named(root, rule, change, expected):
    changed = jobs()
    job = next(job for (name, *_), job in changed.items() if name == rule)
    change(job)
    reasons = own(found(changed))
    assert {f"{STUDY}/{path}" for path in reasons} <= {*job.outputs}
    assert {(one.section, one.key, one.b) for changes in reasons.values() for one in changes} == {*expected}


def test_inputs_added_left_out_and_made_anew_are_named(root, study):
    study.write_dataset(score=4.5)
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "make_table":
            job.roles["scores"][0] = "resources/prompt.txt"
    reasons = own(found(changed))
    prompt = sha256_of(Path("resources/prompt.txt"))
    assert {(one.key, one.b) for one in reasons["tables/main.parquet"]} == {
        (f"scores/{study.score_files()[0]}", ABSENT),
        ("scores/resources/prompt.txt", prompt),
    }
    (change,) = reasons["scores/sts/suite/plain/seed1.parquet"]
    assert change.key == "datasets/datasets/stsb.parquet"


def test_a_missing_file_is_missing_and_what_was_made_from_it_is_stale(root, study):
    study.write_times()
    changed = jobs() | {
        ("times",): PlannedJob("tabulate_times", {"experiment": "main"}, {}, [], [TIMES.as_posix()])
    }
    assert not found(changed).red
    TIMES.unlink()
    outcome = found(changed)
    assert outcome.missing == [TIMES.as_posix()] and list(outcome.stale) == [f"{STUDY}/report.html"]
    shutil.rmtree(Path(STUDY, "runs/plain/seed1/model"))
    outcome = found(changed)
    assert f"{STUDY}/runs/plain/seed1/model/record.json" in outcome.missing
    assert f"{STUDY}/scores/sts/suite/plain/seed1.parquet" in outcome.stale


def test_a_table_cut_short_under_its_old_date_is_stale_and_so_is_what_was_made_from_it(root):
    asked, path = jobs(), Path(STUDY, "scores/sts/suite/plain/seed1.parquet")
    date = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, ns=(date, date))
    outcome = found(asked)
    assert own(outcome) == {
        "scores/sts/suite/plain/seed1.parquet": [Change("record", "", "damaged or altered", "see verify")]
    }
    assert f"{STUDY}/tables/main.parquet" in outcome.stale and outcome.asked[path.as_posix()].startswith(
        "evaluate_sts("
    )


def test_an_artefact_that_no_job_writes_is_said_and_is_no_failure(root):
    outcome = found({key: job for key, job in jobs().items() if key[0] != "write_report"})
    assert outcome.unasked == [f"{STUDY}/report.html"] and not outcome.red
    with pytest.raises(ConfigError, match="runs no job"):
        stale(Graph([]))


@pytest.mark.parametrize(
    "altered", [{"settings": {"training": {"steps": 4}}}, {"packages": {"pyarrow": "1"}}]
)
def test_a_record_that_was_altered_is_stale_and_blames_nothing_else(root, altered):
    """Though its key is still that of the job: it says what the job did not do."""
    asked, path = jobs(), Path(STUDY, "runs/plain/seed1/history.parquet")
    write_table(path, pq.read_table(path), read_record(path).model_copy(update=altered))
    damaged = Change("record", "", "damaged or altered", "see verify")
    assert own(found(asked)) == {"runs/plain/seed1/history.parquet": [damaged]}
