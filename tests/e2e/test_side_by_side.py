"""A seed that is asked for beside a finished one: Snakemake runs both as one job, which trains the new one alone."""

import csv

from tests.jobs import files_of
from tests.planning import planned_jobs, run

RUN = "simcse.minilm_mlm.wiki_extract"
CONFIGS = ("config/demo.yaml", "config/smoke.yaml", "config/side.yaml")


def test_a_new_seed_is_trained_in_the_company_of_a_finished_one_and_may_be_looked_at_alone(smoke_copy):
    (smoke_copy / "config/side.yaml").write_text("training: {together: 2}\n")
    grid = smoke_copy / "config/experiments/demo.yaml"
    grid.write_text(grid.read_text().replace("seeds: [1]", "seeds: [1, 2]"))
    folder = smoke_copy / "results/demo/runs" / RUN
    before, target = files_of(folder), f"results/demo/runs/{RUN}/seed2/model/record.json"
    assert "seed1/history.parquet" in before

    command = ["-m", "snakemake", "--cores", "2", "--quiet", "rules", "--configfile", *CONFIGS, "--", target]
    finished = run(smoke_copy, *command)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]

    after = files_of(folder)
    assert before.items() <= after.items()
    assert {name.replace("seed2/", "seed1/") for name in after.keys() - before.keys()} >= {
        name for name in before if ".kept/" not in name
    }
    logs = {
        seed: (smoke_copy / f"logs/demo/train_encoder/{RUN}/seed{seed}.log").read_text() for seed in (1, 2)
    }
    assert "done before by the same job, put back" in logs[1]
    assert f"train_encoder {RUN} 2: wrote record" in logs[2]
    times = smoke_copy / f"benchmarks/demo/train_encoder/{RUN}/seeds1_2.tsv"
    (measured,) = csv.DictReader(times.read_text().splitlines(), delimiter="\t")
    assert float(measured["s"]) > 0

    for number in (1, 2):
        side = ("--config", f"training={{together: {number}}}", "--", target)
        assert planned_jobs(smoke_copy, *CONFIGS[1:], *side, configfile=CONFIGS[0]) == {}
    audit = run(smoke_copy, "-m", "workflow_scripts", "verify")
    assert audit.returncode == 0, audit.stdout + audit.stderr
