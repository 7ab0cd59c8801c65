"""Seeds that are trained side by side: which jobs there are, and that Snakemake makes nothing again for it."""

import json
from pathlib import Path

import pytest

from tests.planning import DEMO, ROOT, copy_tree, planned_jobs, pretend_finished, run, snakemake
from workflow_scripts.audit.plan import plan

TWINS = 2  # JTCSE's seeds, each of which starts from models of its own
ALONE = {"train_encoder": 12}
BOTH = {"train_encoder_seeds1_2": 5, "train_encoder": TWINS}


def beside(number):
    return "--config", f"training={{together: {number}}}"


def trainings(planned):
    return {rule: jobs for rule, jobs in planned.items() if rule.startswith("train_encoder")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as if each of its seeds had been trained alone."""
    folder = copy_tree(tmp_path_factory.mktemp("finished"))
    pretend_finished(folder)
    return folder


@pytest.mark.parametrize(("number", "jobs"), [(1, ALONE), (2, BOTH), (5, BOTH)])
def test_a_job_trains_as_many_seeds_as_are_asked_for(number, jobs):
    assert trainings(planned_jobs(ROOT, "--forceall", *beside(number))) == jobs


def test_seeds_that_are_left_over_are_trained_alone_and_a_run_may_have_its_own_number(tmp_path):
    folder = copy_tree(tmp_path)
    grid = folder / "config/experiments/demo.yaml"
    grid.write_text(grid.read_text().replace("seeds: [1, 2]", "seeds: [1, 2, 7]"))
    overlay = folder / "config/side.yaml"
    overlay.write_text("training: {together: 2}\nmethods: {simcse_3r: {training: {together: 3}}}\n")
    jobs = trainings(planned_jobs(folder, "config/side.yaml"))
    assert jobs == {"train_encoder_seeds1_2_7": 1, "train_encoder_seeds1_2": 4, "train_encoder": 4 + 3}


def test_what_was_trained_alone_is_not_made_again_side_by_side_nor_the_other_way_round(finished):
    for number in (2, 3):
        assert planned_jobs(finished, *beside(number)) == {}
    code, printed = snakemake(
        finished, "--touch", "--forceall", "--cores", "1", "--configfile", DEMO, *beside(2)
    )
    assert code == 0, printed
    recorded = [path.read_text() for path in (finished / ".snakemake/metadata").iterdir()]
    assert sum('"train_encoder_seeds1_2"' in text for text in recorded) == 5 * 2 * 5
    for number in (1, 2, 3):
        assert planned_jobs(finished, *beside(number)) == {}


def test_a_model_that_is_missing_or_a_changed_setting_brings_back_its_job(finished):
    model = finished / "results/demo/runs/simcse.minilm_mlm.wiki_extract/seed2/model/record.json"
    target = "--", model.relative_to(finished).as_posix()
    away = model.rename(model.with_name("away.json"))
    assert planned_jobs(finished, *beside(2), *target) == {"train_encoder_seeds1_2": 1}
    assert planned_jobs(finished, *target) == {"train_encoder": 1}
    away.rename(model)
    assert planned_jobs(finished, *beside(2), *target) == {}
    changed = "--config", "training={together: 2, weight_decay: 0.5}"
    assert trainings(planned_jobs(finished, *changed)) == BOTH


def test_the_audit_finds_the_very_same_jobs_in_other_company(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "config/side.yaml").write_text("training: {together: 2}\n")
    alone, together = (
        {job.arguments["record"][0]: job for job in plan(folder, files) if job.rule == "train_encoder"}
        for files in ([DEMO], [DEMO, "config/side.yaml"])
    )
    assert len(alone) == 12
    assert together == alone


PLANNED = """
import json
from workflow_scripts.planning.graph import planned
kinds = ("rule", "wildcards", "settings", "outputs", "log", "trainings")
for files in (["config/demo.yaml"], ["config/demo.yaml", "config/side.yaml"]):
    jobs = [job for job in planned([], files).jobs if job.work == "train_encoder"]
    told = ([getattr(part, kind) for kind in kinds] for job in jobs for part in job.apart())
    print(json.dumps(sorted(told, key=json.dumps)))
    asked = ([job.queued[name] for name in ("gpu", "mem_mb", "runtime")] for job in jobs)
    print(json.dumps(sorted([job.trainings, *one] for job, one in zip(jobs, asked))))
"""


def test_a_plan_takes_a_job_apart_and_knows_that_it_asks_for_one_card_and_all_their_memory(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "config/side.yaml").write_text("training: {together: 2}\n")
    asked = run(folder, "-c", PLANNED)
    assert asked.returncode == 0, asked.stderr
    alone, needs, together, shared = map(json.loads, asked.stdout.splitlines())
    assert together == alone and len(alone) == 12
    assert needs == [[1, 1, 16_000, 480]] * 12
    assert (
        shared == [[1, 1, 16_000, 480]] * TWINS + [[2, 1, 32_000, 960]] * 5
    )  # nothing is gained, until measured
