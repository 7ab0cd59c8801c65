"""The audit's questions, asked of a study that the whole graph made, with Snakemake's own records gone."""

import shutil
from collections import Counter

import pyarrow.parquet as pq
import yaml

from tests.support.short_demo import CONFIGS, SMOKE, plan
from tests.support.snakemake_plans import run
from tests.support.verb_answers import data, parts_of

CANARY = "canary-51d0c9e2ab"


def audit(folder, *arguments, **environment):
    """Exit code and data of one command."""
    asked = run(folder, "-m", "workflow_scripts", *arguments, "--json", **environment)
    assert "Traceback" not in asked.stderr, asked.stderr
    return asked.returncode, parts_of(asked.stdout) if asked.stdout else asked.stderr


def text_of(path):
    """Contents of a file, tables as they are read."""
    if path.suffix != ".parquet":
        return path.read_bytes().decode(errors="replace")
    return f"{pq.read_metadata(path).metadata} {pq.read_table(path).to_pylist()}"


def test_every_question_is_answered_from_the_artefacts_alone(bare, monkeypatch):
    monkeypatch.chdir(bare)
    table = "results/demo/tables/demo.parquet"
    for question in (
        ["verify"], ["explain", table], ["explain", table, "--into"], ["diff", table, table],
        ["show", table], ["lock"],
    ):  # fmt: skip
        code, found = data(*question)
        assert code == 0, (question, found)
        assert found, question
        assert found.get("good", True), question
    for question in ("stale", "rebuild"):  # which ask Snakemake
        code, found = audit(bare, question, *[table] * (question == "rebuild"), "--configfile", *CONFIGS)
        assert code == 0, found
        assert found, question
        assert found.get("good", True), found


def test_stale_agrees_with_what_snakemake_would_run(smoke_copy):
    """A setting of the training, and a module that two rules of evaluation import."""
    overlay = yaml.safe_load(SMOKE)
    overlay["training"]["learning_rate"] = 0.01
    (smoke_copy / "config/smoke.yaml").write_text(yaml.safe_dump(overlay))
    module = smoke_copy / "workflow_scripts/evaluation/geometry.py"
    module.write_text(module.read_text() + "\nANOTHER_VERSION = True\n")
    code, found = audit(smoke_copy, "stale", "--configfile", *CONFIGS)
    assert code == 1
    jobs = {row["job"] for row in found["artefacts"] if row["state"] == "stale"}
    assert Counter(job.partition("(")[0] for job in jobs) == plan(smoke_copy)
    kinds = {row["section"] for row in found["reasons"]}
    assert kinds == {"setting", "code"} == {row["what"] for row in found["causes"]}
    assert max(row["behind"] for row in found["causes"]) > 10


def test_a_wrong_number_is_found_by_rebuilding(bare):
    """Checksummed anew, so that no hash tells."""
    forge = (
        "import sys, pyarrow.parquet as pq, pyarrow.compute as pc\n"
        "from pathlib import Path\n"
        "from workflow_scripts.provenance.artefacts import read_record, write_table\n"
        "path = Path('results/demo/tables/demo.parquet'); table = pq.read_table(path)\n"
        "at = table.schema.get_field_index('mean')\n"
        "write_table(path, table.set_column(at, 'mean', pc.add(table['mean'], 1.0)), read_record(path))\n"
    )
    assert run(bare, "-c", forge).returncode == 0
    code, made = audit(bare, "rebuild", "results/demo/tables/demo.parquet", "--configfile", *CONFIGS)
    assert code == 1
    assert [one["contents"] for one in made["rebuilt"]] == ["differ"]
    assert {change["section"] for change in made["changes"]} <= {"machine"}


def test_after_a_failed_job_the_api_key_is_nowhere(bare):
    """A dataset that breaks its contract stops its own jobs, and is the last thing printed."""
    broken = {"datasets": {"lee": {"contract": {"rows": 1226}}}}
    (bare / "config/broken.yaml").write_text(yaml.safe_dump(broken))
    for made in ("demo/datasets", ".cache"):
        shutil.rmtree(bare / "results" / made)
    sets = [f"results/demo/datasets/{name}.parquet" for name in ("lee", "wiki_extract")]
    failed = run(
        bare, "-m", "snakemake", "--cores", "1", "--printshellcmds", "--configfile", *CONFIGS, "config/broken.yaml",
        "--", *sets, LLM_API_KEY=CANARY,
    )  # fmt: skip
    assert failed.returncode == 1
    assert CANARY not in failed.stdout + failed.stderr
    *_, sentence, log = failed.stderr.splitlines()
    assert sentence.startswith("DataError: datasets.lee: rows 1225; its contract says 1226")
    assert log == "    log: logs/demo/read_dataset/lee.log"
    assert [(bare / path).exists() for path in sets] == [False, True]
    written = [
        path for top in ("results", "logs", "benchmarks", ".snakemake") for path in (bare / top).rglob("*")
    ]
    files = [path for path in written if path.is_file() and path.suffix != ".safetensors"]
    assert len(files) > 100
    assert [path for path in files if CANARY in text_of(path)] == []
