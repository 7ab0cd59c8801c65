"""A stranger's path: another user than root, a fresh clone, no key, no data, compute nodes without a network.

The login node reaches a mirror of the Hub until everything is fetched, and then nothing. What goes wrong on clusters goes
wrong on the way: a pre-emption, a driver that is killed, a node that fails.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.hub import mirror
from tests.hub_content import MINILM, add_minilm, add_stsb
from tests.slurm.node import HOST_ADDRESS, Node, UnavailableError, wait_for
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
    """The user, with a clone and what a site fills in."""
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
    words = ["python", "-m", "workflow_scripts", "preflight", "simcse", *study, "--profile", "slurm"]
    return stranger.run(*words, HF_ENDPOINT=NOBODY)


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
    assert (results / "datasets/stsb_test.parquet").exists() and (results / "mteb/outside.parquet").exists()
    assert all(map(stranger.owns, results.rglob("*.parquet")))
    assert (stranger.home / "hub").is_dir()


def test_then_the_queue_is_ready(stranger, study):
    answer = preflight(stranger, study)
    assert answer.returncode == 0, answer.stdout
    assert "cluster: sbatch --test-only takes what jobs ask for" in answer.stdout


def drive(stranger, study):
    """Start `snakemake --profile slurm simcse`, without a network; where there is accounting, sacct tells of jobs."""
    command = ["snakemake", "--profile", "slurm", "--slurm-status-command", "sacct", "--latency-wait", "10"]
    printed = stranger.clone / "printed"
    return stranger.start(*command, *study, "--", "simcse", printed=printed, HF_ENDPOINT=NOBODY)


def training_log(stranger):
    return stranger.clone / f"logs/small/train_encoder/{RUN}/seed1.log"


def steps_so_far(stranger):
    """Steps of the training as its log has them."""
    log = training_log(stranger)
    found = re.findall(r"train: ([\d,]+) of", log.read_text()) if log.exists() else []
    return int(found[-1].replace(",", "")) if found else 0


def test_the_table_is_made_whatever_happens_on_the_way(stranger, study, node):
    driver = drive(stranger, study)
    wait_for(lambda: steps_so_far(stranger) > 20, WAIT, "steps")
    words = ["python", "-m", "workflow_scripts", "status", "small", "simcse"]
    watched = stranger.run(*words, HF_ENDPOINT=NOBODY)
    assert f"running train_encoder {RUN} 1: " in watched.stdout, watched

    # Pre-emption: the training saves what it has, and the queue starts it again.
    urgent = ["sbatch", "--partition", "urgent", "--exclusive", "--mem", "0", "--wrap", "sleep 1"]
    subprocess.run([*urgent, "--output", "/dev/null"], check=True, capture_output=True, cwd="/")

    def jobs(rule):
        return [job for job in node.jobs(stranger.name) if job.name.startswith(rule)]

    def wait_for_state(state, seconds=WAIT):
        wait_for(lambda: jobs("rule_train_encoder")[0].state == state, seconds, state)

    (training,) = jobs("rule_train_encoder")

    checkpoints = stranger.clone / f"results/small/runs/{RUN}/seed1/model.checkpoints"
    wait_for(lambda: list(checkpoints.glob("step*/COMPLETE.json")), WAIT, "the checkpoint of the pre-emption")
    wait_for_state("PENDING")
    wait_for_state("RUNNING")

    # The driver is killed while the training goes on; another one waits until it is gone.
    driver.kill()
    driver.wait()
    wait_for_state("COMPLETED", seconds=600)
    assert jobs("rule_train_encoder") == [training._replace(state="COMPLETED")]
    unlocked = stranger.run("snakemake", "--profile", "slurm", "--unlock", *study, HF_ENDPOINT=NOBODY)
    assert unlocked.returncode == 0

    # The node fails under the evaluations, and comes back.
    driver = drive(stranger, study)
    wait_for(lambda: "RUNNING" in {job.state for job in jobs("rule_evaluat")}, WAIT, "an evaluation")
    node.crash()
    subprocess.run(["scontrol", "update", f"NodeName={node.host}", "State=DOWN", "Reason=crash"], check=True)
    time.sleep(2)
    node.start_slurmd()
    # Refused where the node has come back by itself.
    subprocess.run(["scontrol", "update", f"NodeName={node.host}", "State=RESUME"], check=False)
    code, text = driver.wait(timeout=900), (stranger.clone / "printed").read_text()
    assert code == 0, text[-3000:]
    assert (stranger.clone / "results/small/tables/simcse_table_small.parquet").exists()
    assert len(jobs("rule_train_encoder")) == 1


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
