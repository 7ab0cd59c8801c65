"""One screen for a study: what runs, what has failed, and how far trainings are."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.planning import DEMO, ROOT, run
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import ConfigError
from workflow_scripts.planning.graph import Job, study_in
from workflow_scripts.tools import watch
from workflow_scripts.training.live import Live, write_live

RUN = "simcse.minilm_mlm.wiki_extract"


def history(*scores):
    rows = [
        {"step": n, "loss": 1 / n, "learning_rate": 0.1, "gradient_norm": 1.0, "dev_score": score}
        for n, score in enumerate(scores, start=1)
    ]
    return pa.Table.from_pylist(rows, schema=HISTORY)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(rule, name, output="scores.parquet"):
    return Job(rule, {"run": name}, {}, [], [f"results/demo/{rule}/{name}/{output}"], 0, 1,
               log=f"logs/demo/{rule}/{name}.log")  # fmt: skip


def write(path, text, age=0.0):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - age, time.time() - age))


@pytest.fixture
def process():
    """A process that looks like a job's, and one that does not."""
    started = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
        for name in ("workflow_scripts.jobs.toy", "another program")
    ]
    yield started
    for one in started:
        one.kill()
        one.wait()


def test_jobs_are_sorted_by_what_their_files_say(here, process):
    jobs = {name: job("toy", name) for name in ("ended", "broken", "alive", "gone", "new", "again")}
    host = watch.socket.gethostname()
    for name, one in jobs.items():
        if name != "new":
            write(one.log, f"first\nlast of {name}\n\n", age=50)
    write(f"{jobs['alive'].log}.lock", f"process {process[0].pid} on {host}")
    write(f"{jobs['gone'].log}.lock", f"process {process[1].pid} on {host}")
    write("benchmarks/demo/toy/ended.tsv", "")
    write("benchmarks/demo/toy/before.tsv", "", age=1000)
    write("benchmarks/demo/toy/again.tsv", "", age=30)  # it ended well, and an edit brings it back
    state = watch.look("demo", list(jobs.values()), time.time() - 20)
    assert state.done == {"toy": 2} and state.left == {"toy": 2}
    assert [one.wildcards["run"] for one in state.running] == ["alive"]
    assert [one.wildcards["run"] for one in state.failed] == ["broken", "gone"]
    assert watch.last_line(Path(jobs["broken"].log)) == "last of broken"


def test_seeds_side_by_side_are_looked_at_one_by_one(here, process):
    names = ("model/record.json", "history.parquet")
    outputs = [f"results/demo/runs/a/seed{seed}/{name}" for name in names for seed in (1, 2, 3)]
    logs = [f"logs/demo/train_encoder/a/seed{seed}.log" for seed in (1, 2, 3)]
    both = Job("train_encoder_seeds1_2_3", {"run": "a"}, {}, [], outputs, 1, 9, script="train_encoder",
               log=logs[0], logs=logs, times="benchmarks/demo/train_encoder/a/seeds1_2_3.tsv",
               seeds=["1", "2", "3"])  # fmt: skip
    host = watch.socket.gethostname()
    for log, holder in zip(logs, process[::-1] + process[1:], strict=True):  # the second of them lives
        write(log, "said\n", age=50)
        write(f"{log}.lock", f"process {holder.pid} on {host}", age=50)
    for output in outputs[::3]:
        write(output, "made")
    write("benchmarks/demo/train_encoder/b/seeds1_2.tsv", "", age=1000)  # of a run that was finished before
    write("benchmarks/demo/train_encoder/b/seed2.tsv", "", age=2000)  # and once alone

    def seen():
        state = watch.look("demo", [both], time.time() - 20)
        return state.done, *(
            [job.wildcards["seed"] for job in jobs] for jobs in (state.running, state.failed)
        )

    assert seen() == ({"train_encoder": 2 + 1}, ["2"], ["3"])
    assert watch.checkpoints_of(both.apart()[1]) == Path("results/demo/runs/a/seed2/model.checkpoints")
    write(both.times, "")
    assert seen() == ({"train_encoder": 2 + 3}, [], [])


def test_a_job_of_another_machine_runs_as_long_as_it_says_something(here):
    one = job("train_encoder", "a", "model/record.json")
    write(one.log, "", age=3000)
    write(f"{one.log}.lock", "process 1 on elsewhere", age=3000)
    assert not watch.is_running(one)
    assert watch.checkpoints_of(one) == Path("results/demo/train_encoder/a/model.checkpoints")
    write_live(watch.checkpoints_of(one), history(None), 10, 0.5)
    assert watch.is_running(one)
    write(one.outputs[0], "{}")
    assert not watch.is_running(one)


def test_a_training_says_how_far_it_is():
    live = Live(history(None, 0.5, None, 0.4), 1000, 0.5)
    found = watch.progress(live, 64)
    assert found == "step 4 of 1,000, loss 0.2500, dev 0.4000 (best 0.5000), 128 sentences/s, 8 min left"
    assert watch.progress(Live(history(), 10, 0.0), None) == "step 0 of 10, 0 s left"
    assert watch.duration(7200) == "2.0 h"


def test_the_screen_has_everything(here):
    study = study_in(ROOT, [str(ROOT / DEMO)])
    training = job("train_encoder", RUN, "model/record.json")
    write_live(watch.checkpoints_of(training), history(0.5), 8, 0.1)
    broken = job("evaluate_sts", "toy")
    write(broken.log, "DataError: sts.parquet: no such file.\n")
    state = watch.State(watch.Counter(a=3), [training], [broken], watch.Counter(b=2))
    console = watch.Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(watch.screen(study, state))
    shown = console.export_text()
    assert "demo: 3 jobs done, 1 running, 1 failed, 2 to come" in shown
    assert f"running train_encoder {RUN}: step 1 of 8, loss 1.0000, dev 0.5000" in shown
    assert (
        "failed evaluate_sts toy: DataError: sts.parquet: no such file. (logs/demo/evaluate_sts/toy.log)"
        in shown
    )


def test_a_study_is_found_by_its_name():
    assert watch.configfiles("paper", []) == []
    assert watch.configfiles("demo", []) == [str(ROOT / DEMO)]
    assert watch.configfiles("mine", ["mine.yaml"]) == ["mine.yaml"]
    with pytest.raises(ConfigError, match=r"mine: neither paper nor a file .*config/mine\.yaml"):
        watch.configfiles("mine", [])


def test_histories_are_those_of_finished_trainings_and_of_running_ones(here):
    folder = Path(f"results/demo/runs/{RUN}")
    (folder / "seed1").mkdir(parents=True)
    pq.write_table(history(0.1), folder / "seed1/history.parquet")
    write_live(folder / "seed2/model.checkpoints", history(0.1, 0.2), 9, 0.1)
    found = {name: len(table) for name, table in watch.histories("demo")}
    assert found == {f"{RUN}/seed1": 1, f"{RUN}/seed2": 2}


def test_event_files_get_each_step_once(here, monkeypatch):
    """With a writer of our own, since TensorBoard is not among the pinned packages."""
    written = []

    class Writer:
        def __init__(self, folder):
            self.name = folder

        def add_scalar(self, name, value, step):
            written.append((self.name, name, value, step))

        def flush(self):
            pass

    events = watch.Events.__new__(watch.Events)
    events._folder, events._open = Path("events"), Writer
    events._writers, events._written = {}, watch.Counter()
    for scores in ((None,), (None, 0.5), (None, 0.5)):
        events.write([("a", history(*scores))])
    assert [entry for entry in written if entry[1] == "training/loss"] == [
        ("events/a", "training/loss", 1.0, 1),
        ("events/a", "training/loss", 0.5, 2),
    ]
    assert ("events/a", "training/dev_score", 0.5, 2) in written


def test_the_tool_prints_a_study_that_has_not_begun(tmp_path):
    answer = run(ROOT, "-m", "workflow_scripts.tools.watch", "no_such_study")
    assert answer.returncode == 1 and "Give its file by --configfile" in answer.stderr
