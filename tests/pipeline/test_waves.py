"""A wave of jobs stops where nothing has changed, though Snakemake has planned it to the end, and wherever it is made."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.fork_server import programs
from tests.support.short_demo import CONFIGS, plan
from tests.support.snakemake_plans import run
from workflow_scripts.provenance.artefacts import identity, read_record, read_trailer
from workflow_scripts.provenance.job import cache_key

SCRIPT = Path("workflow_scripts/data/words.py")
EXEMPLARS = "results/demo/exemplars/wiki_extract_extractive.parquet"
COUNTS = Path("results/demo/corpora/wiki_extract/words.parquet")
READERS = {"pick_exemplars": 1, "train_encoder": 1, "make_table": 1, "judge_claims": 1, "write_report": 1}
"""Some of the jobs behind the counts, which 3R reads."""
ONE_OF_EACH_KIND = (
    "results/demo/scores/sts/lee/simcse.minilm_mlm.wiki_extract/seed1.parquet",
    "results/demo/scores/sts/lee/frozen_avg.minilm/seed0.parquet",
)
"""Files behind jobs that read text, adapt, pool, train and score."""


def commit(folder: Path, message: str) -> None:
    """Commit everything but what runs made, or nothing."""
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    (folder / ".gitignore").write_text("results/\nlogs/\nbenchmarks/\n.snakemake/\n__pycache__/\n")
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", message], check=True)


def artefacts(folder: Path) -> dict[str, bytes]:
    """Every file below results but for the cache."""
    files = (path for path in (folder / "results/demo").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def identities(folder: Path) -> dict[str, str | bytes]:
    """Every file by its contents, without the machine in its record, which differs where more libraries are loaded."""
    trailers = {path: read_trailer(folder / path) for path in artefacts(folder)}
    return {
        path: trailer.identity if trailer else (folder / path).read_bytes()
        for path, trailer in trailers.items()
    }


def count_again(folder: Path, *arguments: str) -> None:
    """Make the counts again, though they are cached, and all that Snakemake plans behind them."""
    key = cache_key(read_record(folder / COUNTS), portable=False)
    shutil.rmtree(folder / "results/.cache" / key[:2] / key)
    finished = run(
        folder, "-m", "snakemake", "--cores", "2", "--quiet", "host", "--forcerun", "count_words",
        "--configfile", *CONFIGS, *arguments,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]


def test_equal_contents_change_nothing_behind_them(smoke_copy):
    """After an edit that is other code and counts as before."""
    before, was = artefacts(smoke_copy), identity(smoke_copy / COUNTS)
    script = smoke_copy / SCRIPT
    script.write_text(f"{script.read_text()}\nEDITED = True\n")
    commit(smoke_copy, "an edit")
    planned = plan(smoke_copy, "--forcerun", "count_words")
    assert READERS.items() <= planned.items()
    count_again(smoke_copy)
    after = artefacts(smoke_copy)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {COUNTS.as_posix()}
    assert identity(smoke_copy / COUNTS) == was
    made = read_record(smoke_copy / COUNTS)
    assert made is not None
    assert made.origin.commit is not None
    (log,) = (smoke_copy / "logs/demo/train_encoder").rglob("*simcse_3r*/seed1.log")
    assert "restored from results/.cache/" in log.read_text()
    assert plan(smoke_copy) == {}


def whole(folder: Path, *targets: str) -> None:
    """Run everything that Snakemake plans."""
    command = ["--cores", "2", "--quiet", "host", "--configfile", *CONFIGS, "--", *targets]
    finished = run(folder, "-m", "snakemake", *command)
    assert finished.returncode == 0, finished.stderr[-3000:]


def test_copied_results_with_their_cache_are_not_computed(bare):
    """Snakemake, which has no notes of them, plans by dates."""
    before = artefacts(bare)
    shutil.rmtree(bare / "logs")
    assert len(plan(bare)) > 10
    whole(bare, *ONE_OF_EACH_KIND)
    logs = [*(bare / "logs").rglob("*.log")]
    assert len(logs) > 5
    assert [log for log in logs if "restored from" not in log.read_text()] == []
    assert artefacts(bare) == before


@pytest.mark.slow
def test_a_killed_wave_taken_up_ends_in_the_same_bytes(bare):
    """Most parts of the wave are cached; the rest is computed."""
    before, draw = identities(bare), random.Random(1)
    shutil.rmtree(bare / "results/demo")
    entries = sorted((bare / "results/.cache").glob("??/*"))
    for entry in draw.sample(entries, len(entries) // 4):
        shutil.rmtree(entry)
    environment = os.environ | {"PATH": f"{programs()}:{os.environ['PATH']}"}
    command = [programs() / "snakemake", "--cores", "2", "--quiet", "all", "--configfile", *CONFIGS]
    for _ in range(2):
        started = subprocess.Popen(command, cwd=bare, env=environment)
        time.sleep(draw.uniform(3, 9))
        started.kill()  # and with it all that it has started
        started.wait()
        run(bare, "-m", "snakemake", "--unlock", "--configfile", *CONFIGS)
    whole(bare)
    assert identities(bare) == before
    assert plan(bare) == {}
    verified = run(bare, "-m", "workflow_scripts", "verify")
    assert verified.returncode == 0, verified.stdout
