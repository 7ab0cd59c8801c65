"""A stranger's path: another user than root, a fresh clone, no key, no data, compute nodes without a network.

The login node reaches a mirror of the Hub until everything is fetched, and then nothing. What goes wrong on clusters goes
wrong on the way: a full disk, a pre-emption, a driver that is killed, a node that fails.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.hub import mirror
from tests.hub_content import MINILM, add_minilm, add_stsb
from tests.slurm.conftest import jobs_of
from tests.slurm.node import ACCOUNT, HOST_ADDRESS, Node, UnavailableError, wait_for
from tests.slurm.stranger import STEPS, Stranger, small_study

WAIT = 300
RUN = "simcse.minilm_hub.wiki_extract"
NOBODY = "http://127.0.0.1:9"
LOAD = """
import json, sys
import mteb
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(sys.argv[1], device="cpu", trust_remote_code=True)
model.max_seq_length = 512
task = mteb.get_task("STSBenchmark")
from workflow_scripts.data.hub import at_commit
with at_commit(task.metadata.dataset["revision"], offline=True):
    task.load_data()
(result,) = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False).task_results
print(json.dumps(result.get_score()))
"""


@pytest.fixture(scope="module")
def stranger(node: Node) -> Iterator[Stranger]:
    """The user, with a clone and what a site fills in; its results lie on a disk of their own."""
    if not node.apart:
        pytest.skip("this machine makes no network namespaces, so jobs cannot be cut off")
    if not (data := os.environ.get("SEMBLANCE_DATA")) or not Path(data, "stsb").is_dir():
        pytest.skip("the mirror serves the STS benchmark of SEMBLANCE_DATA, which is not set")
    made: Stranger | None = None
    try:
        made = Stranger(f"semblance{os.getpid()}", node.folder)
        node.add_user(made.name)
        made.get_clone()
        yield made
    except UnavailableError as reason:
        pytest.skip(f"no stranger on this machine: {reason}")
    finally:
        if made is not None:
            subprocess.run(
                ["umount", "--lazy", str(made.clone / "results")], check=False, capture_output=True
            )
            made.remove()


@pytest.fixture(scope="module")
def study(stranger: Stranger, node: Node) -> list[str]:
    """The study's files, and snakemake's options for it."""
    hub = node.folder / "hub"
    revision = add_minilm(hub)
    add_stsb(hub, Path(os.environ["SEMBLANCE_DATA"]))
    options = small_study(stranger.clone, MINILM, revision)
    (stranger.clone / "slurm/partitions.yaml").write_text("partitions:\n  main: {}\n  gpu: {max_gpu: 2}\n")
    subprocess.run(["chown", "--recursive", f"{stranger.name}:", str(stranger.clone)], check=True)
    return options


def preflight(stranger, study):
    return stranger.run(
        "python",
        "-m",
        "workflow_scripts",
        "preflight",
        "simcse",
        *study,
        "--profile",
        "slurm",
        HF_ENDPOINT=NOBODY,
    )


def test_what_is_missing_is_said_before_anything_is_queued(stranger, study, node):
    answer = preflight(stranger, study)
    assert answer.returncode == 1
    red = [line for line in answer.stdout.splitlines() if line.startswith("no ")]
    missing = f"no network from this machine to {NOBODY}, which does not answer. Run make fetch on a machine"
    assert red and all(missing in line for line in red), answer.stdout
    begun = time.monotonic()
    refused = stranger.run("snakemake", "--profile", "slurm", *study, "--", "simcse", HF_ENDPOINT=NOBODY)
    assert refused.returncode == 1 and "encoders.minilm_hub: no source is there" in refused.stderr, (
        refused.stderr
    )
    assert time.monotonic() - begun < 60
    assert not node.jobs(stranger.name)


def test_everything_is_fetched_once_where_there_is_a_network(stranger, study, node):
    with mirror(node.folder / "hub") as address:
        fetched = stranger.run(
            "snakemake", "--cores", "1", *study, "--until", "fetch_encoder", "fetch_tasks", "read_dataset",
            "--", "simcse", HF_ENDPOINT=address,
        )  # fmt: skip
    assert fetched.returncode == 0, fetched.stderr[-3000:]
    assert not node.jobs(stranger.name)
    results = stranger.clone / "results/small"
    made = sorted(
        path.relative_to(results).as_posix()
        for path in results.rglob("*.parquet")
        if ".kept" not in path.parts
    )
    assert "datasets/stsb_test.parquet" in made and "mteb/outside.parquet" in made
    assert all(map(stranger.owns, results.rglob("*.parquet")))
    assert (stranger.home / "hub").is_dir()


def test_a_wrong_account_is_a_line_within_seconds(stranger, study, node):
    begun = time.monotonic()
    refused = stranger.run(
        "snakemake", "--profile", "slurm", "--default-resources", "slurm_account=none", *study, "--", "simcse",
        HF_ENDPOINT=NOBODY,
    )  # fmt: skip
    assert refused.returncode == 1
    found = f"slurm_account: accounting knows no account none; {stranger.name} has {ACCOUNT}. Name another in"
    assert found in refused.stderr, refused.stderr
    assert time.monotonic() - begun < 60
    assert not node.jobs(stranger.name)


def test_then_the_queue_is_ready(stranger, study):
    answer = preflight(stranger, study)
    assert answer.returncode == 0, answer.stdout
    assert "cluster: sbatch --test-only takes what jobs ask for" in answer.stdout


def drive(stranger, study, *options):
    """Start `snakemake --profile slurm simcse`, without a network; where there is accounting, sacct tells of jobs."""
    printed = stranger.clone / "printed"
    command = ["snakemake", "--profile", "slurm", "--slurm-status-command", "sacct", "--latency-wait", "10"]
    return stranger.start(
        *command, *options, *study, "--", "simcse", printed=printed, HF_ENDPOINT=NOBODY
    ), printed


def ended(driver, printed, seconds=900):
    try:
        return driver.wait(timeout=seconds), printed.read_text()
    except subprocess.TimeoutExpired:
        driver.kill()
        raise AssertionError(f"runs after {seconds} s:\n{printed.read_text()[-3000:]}") from None


def training_log(stranger):
    return stranger.clone / f"logs/small/train_encoder/{RUN}/seed1.log"


def steps_so_far(stranger):
    """Steps of the training as its log has them."""
    log = training_log(stranger)
    found = re.findall(r"train: ([\d,]+) of", log.read_text()) if log.exists() else []
    return int(found[-1].replace(",", "")) if found else 0


def test_a_full_disk_ends_jobs_with_a_line_and_keeps_what_is_done(stranger, study, node):
    """Sixty megabytes for checkpoints of a model that has ninety; then the site gives more."""
    results = stranger.clone / "results"
    kept = stranger.clone / "kept"
    results.rename(kept)
    results.mkdir()
    used = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    options = f"size={used + 60_000_000},uid={stranger.entry.pw_uid},mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(results)], check=True)
    subprocess.run(["cp", "--archive", f"{kept}/.", str(results)], check=True)
    shutil.rmtree(kept)
    code, printed = ended(*drive(stranger, study, "--restart-times", "0"))
    assert code == 1
    assert "No space left on device. Free some space and run again" in printed, printed[-3000:]
    assert (results / "small/datasets/stsb_test.parquet").exists()
    subprocess.run(["mount", "-o", "remount,size=4G", str(results)], check=True)


def test_the_table_is_made_whatever_happens_on_the_way(stranger, study, node):
    before = len(jobs_of(node, "rule_train_encoder"))
    training_log(stranger).unlink(missing_ok=True)
    driver, printed = drive(stranger, study)
    wait_for(
        lambda: len(jobs_of(node, "rule_train_encoder")) > before and steps_so_far(stranger) > 20,
        WAIT,
        "steps",
    )

    watched = stranger.run(
        "python", "-m", "workflow_scripts", "status", "small", "simcse", HF_ENDPOINT=NOBODY
    )
    assert f"running train_encoder {RUN} 1: " in watched.stdout, watched

    # Pre-emption: the training saves what it has, and the queue starts it again.
    urgent = ["sbatch", "--partition", "urgent", "--exclusive", "--mem", "0", "--wrap", "sleep 1"]
    subprocess.run([*urgent, "--output", "/dev/null"], check=True, capture_output=True, cwd="/")
    training = jobs_of(node, "rule_train_encoder")[-1]
    checkpoints = stranger.clone / f"results/small/runs/{RUN}/seed1/model.checkpoints"
    wait_for(lambda: list(checkpoints.glob("step*/COMPLETE.json")), WAIT, "the checkpoint of the pre-emption")
    wait_for(lambda: jobs_of(node, "rule_train_encoder")[-1].state == "PENDING", WAIT, "the pre-emption")
    wait_for(
        lambda: jobs_of(node, "rule_train_encoder")[-1].state == "RUNNING", WAIT, "the training to go on"
    )

    # The driver is killed while the training goes on; another one waits until it is gone.
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_for(
        lambda: jobs_of(node, "rule_train_encoder")[-1].state not in ("RUNNING", "COMPLETING"), 600, "its end"
    )
    assert jobs_of(node, "rule_train_encoder")[-1] == training._replace(state="COMPLETED")
    assert (
        stranger.run("snakemake", "--profile", "slurm", "--unlock", *study, HF_ENDPOINT=NOBODY).returncode
        == 0
    )

    # The node fails under the evaluations, and comes back.
    driver, printed = drive(stranger, study)
    wait_for(
        lambda: [job for job in jobs_of(node, "rule_evaluat") if job.state == "RUNNING"],
        WAIT,
        "an evaluation",
    )
    node.crash()
    subprocess.run(["scontrol", "update", f"NodeName={node.host}", "State=DOWN", "Reason=crash"], check=True)
    time.sleep(2)
    node.start_slurmd()
    # Refused where the node has come back by itself.
    subprocess.run(["scontrol", "update", f"NodeName={node.host}", "State=RESUME"], check=False)
    code, text = ended(driver, printed)
    assert code == 0, text[-3000:]
    assert (stranger.clone / "results/small/tables/simcse_table_small.parquet").exists()
    assert len(jobs_of(node, "rule_train_encoder")) == before + 1


def test_jobs_reached_the_controller_and_nothing_else(stranger, node):
    """What the training saw of the network, asked in a job of the same user."""
    asked = f"ping -c1 -W2 {HOST_ADDRESS} >/dev/null 2>&1 || (exec 3<>/dev/tcp/{HOST_ADDRESS}/{node.ports['port']}) && echo controller; "
    asked += "(exec 3<>/dev/tcp/1.1.1.1/443) 2>/dev/null && echo Internet; true"
    done = stranger.run("srun", "--time", "1", "bash", "-c", asked, cwd=stranger.home)
    assert done.stdout.split() == ["controller"], done


def test_the_model_gives_the_tables_number_to_the_digit(stranger):
    """Loaded as its user would, and evaluated by mteb, which knows nothing of this project."""
    table = pq.read_table(stranger.clone / "results/small/tables/simcse_table_small.parquet").to_pylist()
    cells = {cell["heading"]: cell["mean"] for cell in table if cell["run"] == RUN}
    model = stranger.clone / f"results/small/runs/{RUN}/seed1/model"
    loaded = stranger.run("python", "-c", LOAD, str(model), HF_HUB_OFFLINE="1")
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    score = 100 * json.loads(loaded.stdout.splitlines()[-1])
    assert f"{score:.2f}" == f"{cells['STS-B']:.2f}" == f"{cells['mteb']:.2f}"


def test_the_training_ends_as_one_that_nothing_happened_to(stranger):
    """Its history has every step once."""
    history = pq.read_table(stranger.clone / f"results/small/runs/{RUN}/seed1/history.parquet")
    assert history["step"].to_pylist() == list(range(1, STEPS + 1))
