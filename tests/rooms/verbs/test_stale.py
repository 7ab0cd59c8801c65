"""A change of configuration, code, packages or inputs: stale names the artefacts and the keys."""

import copy
import hashlib
import math
import os
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.rooms.verbs.conftest import STUDY, TIMES, reseal
from tests.support.verb_answers import data, printed
from workflow_scripts.provenance.artefacts import read_record
from workflow_scripts.provenance.record import as_list
from workflow_scripts.verbs import stale
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.records import ABSENT, Records

WORDS = "workflow_scripts/data/words.py"
DAMAGED = [{"section": "record", "key": "", "a": "damaged or altered", "b": "see verify"}]


def planned_like(record):
    """The job that would make the artefacts of a record."""
    roles = {}
    for role, given in record.inputs.items():
        files = [file.path for file in as_list(given)]
        if not any(":" in file for file in files):
            roles |= {role: files if isinstance(given, list) else files[0]}
    timings = [f"benchmarks/study/{record.rule}.times.parquet"]
    return PlannedJob(
        record.rule, dict(record.wildcards), copy.deepcopy(record.settings), [], [*record.outputs, *timings],
        roles=roles, timings=timings, code_hashes=dict(record.meaning), packages=dict(record.packages),
    )  # fmt: skip


def jobs():
    """The jobs that would make the study as it is."""
    records = Records([Path(STUDY)]).by_file.values()
    return {(record.rule, *record.outputs): planned_like(record) for record in records}


def answer(changed, *words):
    """Artefacts by their state with their jobs, reasons and causes, if Snakemake plans these jobs."""
    with patch.object(stale, "planned", lambda *_: [*changed.values()]):
        code, said = data("stale", *words)
    states = {state: {} for state in ("stale", "missing", "not asked for", "up to date")}
    for row in said["artefacts"]:
        states[row["state"]][row["path"]] = row["job"]
    assert code == bool(states["stale"] or states["missing"])
    return said | states


def own(said):
    """Reasons of an artefact's own, by its path in the study."""
    found = defaultdict(list)
    for row in said["reasons"]:
        assert row["path"] in said["stale"]
        found[row.pop("path").removeprefix(f"{STUDY}/")].append(row)
    return found


def test_a_missing_part_of_a_folder_is_a_reason_of_its_own(root):
    """Snakemake looks at the record alone, and would make neither weights nor pictures again."""
    record = "runs/plain/seed1/model/record.json"
    part = next(iter(read_record(Path(STUDY, record)).files))
    Path(STUDY, record).parent.joinpath(part).unlink()
    said = answer(jobs())
    assert own(said) == {record: [{"section": "file", "key": part, "a": "as recorded", "b": "missing"}]}
    assert f"{STUDY}/scores/sts/suite/plain/seed1.parquet" in said["stale"]


def test_a_changed_setting_is_named_with_its_key(root):
    """A changed setting is named with its key and makes artefacts behind it stale."""
    changed = jobs()
    for (rule, *_), job in changed.items():
        if rule == "train_encoder" and job.wildcards["run"] == "plain":
            job.settings["method"]["temperature"] = 0.1
    said = answer(changed)
    reasons = [{"section": "setting", "key": "method.temperature", "a": 0.05, "b": 0.1}]
    made = [f"{STUDY}/runs/plain/seed1/{name}" for name in ("history.parquet", "model/record.json")]
    assert own(said) == {name.removeprefix(f"{STUDY}/"): reasons for name in made}
    downstream = [
        "figures/main.svg",
        "report.html",
        "scores/sts/suite/plain/seed1.parquet",
        "tables/main.parquet",
    ]
    assert said["stale"].keys() == {*made, *(f"{STUDY}/{name}" for name in downstream)}
    assert said["stale"][made[1]] == "train_encoder(run=plain, seed=1)"
    cause = {"what": "setting", "key": "method.temperature", "was": "0.05", "now": "0.1"}
    assert said["causes"] == [cause | {"of_rule": "train_encoder", "artefacts": 2, "behind": 4}]


@pytest.mark.parametrize(
    ("rule", "change", "expected"),
    [
        ("train_encoder", lambda job: job.settings["training"].update(steps=3.0), []),
        ("make_table", lambda job: job.roles["scores"].reverse(), [("input", "order", "as configured")]),
        ("make_table", lambda job: job.code_hashes.update({WORDS: "f" * 64}), [("code", WORDS, "f" * 64)]),
        ("make_table", lambda job: job.code_hashes.pop(WORDS), [("code", WORDS, ABSENT)]),
        ("make_table", lambda job: job.packages.update(pyarrow="1.0"), [("package", "pyarrow", "1.0")]),
        ("read_dataset", lambda job: job.wildcards.clear(), [("wildcard", "dataset", ABSENT)]),
        (
            "train_encoder",
            lambda job: job.settings.update(method={"module": 0.05, "temperature": "simcse"}),
            [("setting", "method.module", 0.05), ("setting", "method.temperature", "simcse")],
        ),
        (
            "make_table",
            lambda job: job.roles.update(scores=["resources/prompt.txt", *job.roles["scores"][1:]]),
            [
                ("input", "scores/scores/sts/suite/simcse/seed1.parquet", ABSENT),
                ("input", "scores/resources/prompt.txt", hashlib.sha256(b"A sentence means").hexdigest()),
            ],
        ),
    ],
)
def test_a_change_of_a_job_is_named(root, rule, change, expected):
    changed = jobs()
    job = next(job for (name, *_), job in changed.items() if name == rule)
    change(job)
    reasons = own(answer(changed))
    assert {f"{STUDY}/{path}" for path in reasons} <= {*job.outputs}
    found = {(one["section"], one["key"], one["b"]) for changes in reasons.values() for one in changes}
    assert found == {*expected}


def test_an_input_that_was_made_again_is_named(root, study):
    study.write_dataset(score=4.5)
    (change,) = own(answer(jobs()))["scores/sts/suite/plain/seed1.parquet"]
    assert (change["section"], change["key"]) == ("input", "datasets/datasets/stsb.parquet")


def test_what_was_made_from_a_missing_file_is_stale(root, study):
    """A missing file is missing and what was made from it is stale."""
    study.write_times()
    changed = jobs() | {
        ("times",): PlannedJob("tabulate_times", {"experiment": "main"}, {}, [], [TIMES.as_posix()])
    }
    assert not answer(changed)["stale"]
    TIMES.unlink()
    said = answer(changed)
    assert list(said["missing"]) == [TIMES.as_posix()]
    assert list(said["stale"]) == [f"{STUDY}/report.html"]
    Path(STUDY, "report.html").unlink()  # from which nothing was made
    assert {*answer(changed)["missing"]} == {TIMES.as_posix(), f"{STUDY}/report.html"}


def test_a_table_cut_short_under_its_old_date_is_stale(root):
    """A table cut short under its old date is stale and so is what was made from it."""
    asked, path = jobs(), Path(STUDY, "scores/sts/suite/plain/seed1.parquet")
    date = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, ns=(date, date))
    said = answer(asked)
    assert own(said) == {"scores/sts/suite/plain/seed1.parquet": DAMAGED}
    assert f"{STUDY}/tables/main.parquet" in said["stale"]
    assert said["stale"][path.as_posix()].startswith("evaluate_sts(")


def test_an_artefact_outside_the_study_is_listed(root):
    """An artefact that no job of the whole study writes is listed without a failure."""
    some = {key: job for key, job in jobs().items() if key[0] != "write_report"}
    assert list(answer(some)["not asked for"]) == [f"{STUDY}/report.html"]
    assert answer(some, f"{STUDY}/tables/main.parquet")["not asked for"] == {}


def test_an_altered_record_is_stale_for_this_reason_alone(root):
    """Though its key is still that of the job."""
    asked, path = jobs(), Path(STUDY, "runs/plain/seed1/history.parquet")
    reseal(path, settings={"training": {"steps": 4}})
    assert own(answer(asked)) == {"runs/plain/seed1/history.parquet": DAMAGED}


def test_artefacts_are_counted_by_folder_and_rule(root):
    changed = {key: job for key, job in jobs().items() if key[0] != "write_report"}
    for (rule, *_), job in changed.items():
        if rule == "train_encoder" and job.wildcards["run"] == "plain":
            job.settings["method"]["temperature"] = 0.1
    with patch.object(stale, "planned", lambda *_: [*changed.values()]):
        _, said = data("stale")
    rows = {
        (row["folder"], row["rule"]): (row["stale"], row["missing"], row["not_asked_for"])
        for row in said["by_folder"]
    }
    assert rows == {
        (f"{STUDY}/runs", "train_encoder"): (2, 0, 0),
        (f"{STUDY}/scores", "evaluate_sts"): (1, 0, 0),
        (f"{STUDY}/tables", "make_table"): (1, 0, 0),
        (f"{STUDY}/figures", "draw_figures"): (1, 0, 0),
        (STUDY, "write_report"): (0, 0, 1),
    }
    assert sum(map(sum, rows.values())) == len(
        [one for one in said["artefacts"] if one["state"] != "up to date"]
    )


def test_many_paths_are_one_line_unless_all_are_asked_for():
    few = [f"results/study/scores/{number}.parquet" for number in range(40)]
    assert stale._listed({"missing": few}, 40) == [f"missing: {path}" for path in few]
    more = {"missing": few, "stale": ["results/study/report.html"]}
    assert stale._listed(more, 40) == ["41 paths are missing or not asked for: --all prints them"]
    assert stale._listed(more, math.inf)[39:] == [f"missing: {few[-1]}", "stale: results/study/report.html"]


def test_all_paths_are_printed_if_asked_for(root):
    changed = jobs()
    next(job for (rule, *_), job in changed.items() if rule == "make_table").roles["scores"].reverse()
    with patch.object(stale, "planned", lambda *_: [*changed.values()]):
        _, shown = printed("stale", "--all")
        _, brief = printed("stale")
    assert f"stale: {STUDY}/tables/main.parquet\n" in shown
    assert f"stale: {STUDY}" not in brief
