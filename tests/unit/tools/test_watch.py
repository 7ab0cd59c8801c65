"""One screen for a study: what runs, what has failed, and how far trainings are."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.planning import DEMO, ROOT, run
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.notes import asked_last, note_asked
from workflow_scripts.graph.queue import Queued, target_of
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
        for name in ("workflow_scripts.jobs.toy", "another program", "workflow_scripts.jobs evaluate_sts")
    ]
    while not all(Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in started):
        time.sleep(0.01)
    yield started
    for one in started:
        one.kill()
        one.wait()


def test_jobs_are_sorted_by_what_their_files_say(here, process):
    jobs = {name: job("toy", name) for name in ("ended", "broken", "alive", "gone", "joint", "new", "again")}
    host = watch.socket.gethostname()
    for name, one in jobs.items():
        if name != "new":
            write(one.log, f"first\nlast of {name}\n\n", age=50)
    write(f"{jobs['alive'].log}.lock", f"process {process[0].pid} on {host}")
    write(f"{jobs['gone'].log}.lock", f"process {process[1].pid} on {host}")
    write(f"{jobs['joint'].log}.lock", f"process {process[2].pid} on {host}")
    write("benchmarks/demo/toy/ended.tsv", "")
    write("benchmarks/demo/toy/before.tsv", "", age=1000)
    write("benchmarks/demo/toy/again.tsv", "", age=30)  # it ended well, and an edit brings it back
    state = watch.look("demo", list(jobs.values()), time.time() - 20, {}, None)
    assert state.done == {"toy": 2} and state.left == {"toy": 2}
    assert [one.wildcards["run"] for one in state.running] == ["alive", "joint"]
    assert [one.wildcards["run"] for one in state.failed] == ["broken", "gone"]
    assert watch.last_line(Path(jobs["broken"].log)) == "last of broken"


def test_a_file_that_is_removed_during_the_look_counts_as_none(here, monkeypatch):
    """Seen a moment ago, it has no date any more."""
    monkeypatch.setattr(Path, "rglob", lambda folder, _: [folder / "toy/gone.tsv"])
    monkeypatch.setattr(Path, "exists", lambda _: True)
    state = watch.look("demo", [job("toy", "new")], 0.0, {}, None)
    assert state.done == {} and state.left == {"toy": 1}


def test_seeds_side_by_side_are_looked_at_one_by_one(here, process):
    names = ("model/record.json", "history.parquet")
    outputs = [f"results/demo/runs/a/seed{seed}/{name}" for name in names for seed in (1, 2, 3)]
    logs = [f"logs/demo/train_encoder/a/seed{seed}.log" for seed in (1, 2, 3)]
    both = Job("train_encoder_seeds1_2_3", {"run": "a"}, {}, [], outputs, 1, 9, script="train_encoder",
               log=logs[0], logs=logs, times="benchmarks/demo/train_encoder/a/seeds1_2_3.tsv",
               seeds=["1", "2", "3"])  # fmt: skip
    host = watch.socket.gethostname()
    for log, holder in zip(
        logs, (process[1], process[0], process[1]), strict=True
    ):  # the second of them lives
        write(log, "said\n", age=50)
        write(f"{log}.lock", f"process {holder.pid} on {host}", age=50)
    for output in outputs[::3]:
        write(output, "made")
    write("benchmarks/demo/train_encoder/b/seeds1_2.tsv", "", age=1000)  # of a run that was finished before
    write("benchmarks/demo/train_encoder/b/seed2.tsv", "", age=2000)  # and once alone

    def seen():
        state = watch.look("demo", [both], time.time() - 20, {}, None)
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


def test_an_encoder_is_adapted_in_batches_of_its_own(here):
    study = study_in(ROOT, [str(ROOT / DEMO)])
    adapting = Job("continue_mlm", {"encoder": "minilm_mlm"}, {}, [], ["results/a/record.json"], 0, 30)
    write_live(watch.checkpoints_of(adapting), history(0.5), 8, 0.1)
    study.config["encoders"]["minilm_mlm"]["adapt"] |= {"training": {"batch_size": 7}}
    assert " 70 sentences/s" in watch.doing(study, adapting)


def printed(group):
    with Path("printed").open("w") as file:
        Console(width=200, file=file).print(group)
    return Path("printed").read_text()


def test_the_screen_has_everything(here):
    study = study_in(ROOT, [str(ROOT / DEMO)])
    training = job("train_encoder", RUN, "model/record.json")
    write_live(watch.checkpoints_of(training), history(0.5), 8, 0.1)
    broken = job("evaluate_sts", "toy")
    write(broken.log, "DataError: sts.parquet: no such file.\n")
    state = watch.State(watch.Counter(a=3), [training], [], [broken], [], watch.Counter(b=2))
    shown = printed(watch.screen(study, state))
    assert "demo: 3 jobs done, 1 running, 1 failed, 2 to come" in shown
    assert f"running train_encoder {RUN}: step 1 of 8, loss 1.0000, dev 0.5000" in shown
    assert (
        "failed evaluate_sts toy: DataError: sts.parquet: no such file. (logs/demo/evaluate_sts/toy.log)"
        in shown
    )


def queued(number, state, attempt, *jobs):
    targets = frozenset(target_of(one.rule, one.wildcards) for one in jobs)
    return Queued(number, state, "rule_x", targets, attempt)


def test_jobs_in_slurms_queue_are_not_failed(here):
    """Whatever an earlier try has left: its log, and the lock of a process on the node that ran it."""
    waits, again, starts, gone = (job("toy", name) for name in ("waits", "again", "starts", "gone"))
    for one in (again, gone):
        write(one.log, "RuntimeError: the first try\n")
        write(f"{one.log}.lock", "process 1 on elsewhere")
        write(f"logs/slurm/rule_toy/{one.wildcards['run']}/7.log", "said\n")
    queue = [
        queued("8", "PENDING", 1, waits),
        queued("9", "RUNNING", 3, again),
        queued("10", "RUNNING", 1, starts),
    ]
    state = watch.look("demo", [waits, again, starts, gone], time.time(), {}, queue)
    assert [one.wildcards["run"] for one in state.running] == ["again"]
    assert [one.wildcards["run"] for one in state.queued] == ["waits", "starts"]
    assert [one.wildcards["run"] for one in state.failed] == ["gone"]  # though it wrote a moment ago
    shown = printed(watch.screen(study_in(ROOT, [str(ROOT / DEMO)]), state))
    assert "demo: 0 jobs done, 1 running, 2 queued, 1 failed, 0 to come" in shown
    assert "running toy again: restarted 2 times, RuntimeError: the first try" in shown
    assert "queued toy waits: SLURM job 8 is pending" in shown
    assert "queued toy starts: SLURM job 10 is running" in shown


def test_a_job_of_this_machine_runs_whatever_slurm_did_before(here, process):
    one = job("toy", "alive")
    write(one.log, "said\n")
    write(f"{one.log}.lock", f"process {process[0].pid} on {watch.socket.gethostname()}")
    write("logs/slurm/rule_toy/alive/7.log", "an earlier try\n")
    assert watch.look("demo", [one], time.time(), {}, []).running == [one]


def test_jobs_of_a_group_are_looked_for_one_by_one(here):
    first, second, other = (job("evaluate_sts", name) for name in ("first", "second", "other"))
    state = watch.look("demo", [first, second, other], 0.0, {}, [queued("8", "PENDING", 1, first, second)])
    assert state.queued == [first, second] and state.left == {"evaluate_sts": 1}


def test_a_cancelled_job_is_no_failed_one(here):
    """By itself, by SLURM's log of a job of its own, and by that of a group; a limit of time is a failure."""
    stopped, cancelled, grouped, late = (
        job("toy", name) for name in ("stopped", "cancelled", "grouped", "late")
    )
    write(stopped.log, "first\nPreempted: stopped after step 8 of 9; run the job again to go on.\n")
    for one in (cancelled, grouped, late):
        write(one.log, "")
    ended = "slurmstepd-vm: error: *** STEP 5.0 ON vm CANCELLED AT 2026-11-23T00:31:49"
    write(
        "logs/slurm/rule_toy/cancelled/5.log",
        f"{ended} ***\nsrun: error: vm: task 0: Terminated\n{'command ' * 2000}\n",
    )
    write("logs/slurm/group_toys_toy/6.log", f"    log: {grouped.log}\n{ended} DUE TO PREEMPTION ***\n")
    write(
        "logs/slurm/rule_toy/late/7.log",
        f"{ended} DUE TO TIME LIMIT ***\nsrun: error: vm: task 0: Terminated\n{'command ' * 2000}\n",
    )
    state = watch.look("demo", [stopped, cancelled, grouped, late], 0.0, {}, [])
    assert state.cancelled == [stopped, cancelled, grouped] and state.failed == [late]
    assert watch.why(late) == f"{ended} DUE TO TIME LIMIT *** (logs/slurm/rule_toy/late/7.log)"
    assert watch.why(cancelled) == f"{ended} *** (logs/slurm/rule_toy/cancelled/5.log)"
    assert watch.why(stopped).startswith("Preempted: stopped after step 8 of 9")


def test_a_failed_job_shows_its_error_and_not_what_came_after(here):
    broken = job("toy", "broken")
    write(
        broken.log,
        "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA\nwarning: a worker was left\n\n",
    )
    assert watch.why(broken) == f"torch.OutOfMemoryError: CUDA ({broken.log})"
    write(broken.log, "")
    assert watch.why(broken) == f"nothing written ({broken.log})"
    write(
        "logs/slurm/rule_toy/broken/5.log",
        "slurmstepd: error: StepId=5.0 exceeded memory limit, being killed\nWorkflowError:\n",
    )
    assert watch.why(broken) == (
        "slurmstepd: error: StepId=5.0 exceeded memory limit, being killed (logs/slurm/rule_toy/broken/5.log)"
    )


def test_rules_have_the_names_that_snakemake_prints(here):
    """Encoders are scored and measured by one rule, and figures drawn by one, whose files lie in folders of others."""
    study = study_in(ROOT, [str(ROOT / DEMO)])
    named = watch.names_of(study)
    joint = {"evaluate_lee_with_lee_space", "draw_figures_as_in_demo"}
    assert {*named.values()} == joint
    for rule in joint:
        write(next(path for path, name in named.items() if name == rule), "", age=100)
    state = watch.look("demo", [], time.time(), named, None)
    assert state.done == dict.fromkeys(joint, 1)


def test_a_study_is_read_as_it_was_run_last(here):
    assert watch.asked_of("paper", []).configfiles == []
    assert watch.asked_of("demo", []).configfiles == [str(ROOT / DEMO)]
    Path("warmer.yaml").write_text("training: {max_steps: 3}\n")
    note_asked("demo", [ROOT / DEMO, Path("warmer.yaml").absolute()], {"offline": True})
    assert (
        watch.asked_of("demo", [])
        == asked_last("demo")
        == ([str(ROOT / DEMO), "warmer.yaml"], {"offline": True})
    )
    assert watch.asked_of("demo", [str(ROOT / DEMO)]).configfiles == [str(ROOT / DEMO)]
    with pytest.raises(
        ConfigError, match=r"mine: the base configuration is the configuration of paper. Give"
    ):
        watch.asked_of("mine", [])
    with pytest.raises(ConfigError, match=r"results/demo: .* by --configfile\. Known: demo\."):
        watch.asked_of("results/demo", [])
    with pytest.raises(ConfigError, match=r"dmeo: .* by --configfile\. Did you mean demo\?"):
        watch.asked_of("dmeo", [])
    with pytest.raises(ConfigError, match=r"paper: .*demo\.yaml is the configuration of demo. Give"):
        watch.asked_of("paper", [str(ROOT / DEMO)])


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
    assert answer.returncode == 1 and "Give this study's by --configfile" in answer.stderr


def no_answer():
    raise ConfigError("SLURM: squeue: no answer. Wait.")


def test_a_pipe_gets_whole_lines(capsys, here, monkeypatch):
    """Eighty columns would cut the rest of a line; the last line ends, and says that the queue does not answer."""
    monkeypatch.delenv("COLUMNS", raising=False)
    one = job("toy", "a")
    error = f"RuntimeError: {'found ' * 60}at the very end"
    write(one.log, f"{error}\n")
    monkeypatch.setattr(watch.shutil, "which", lambda _name: "squeue")
    monkeypatch.setattr(watch, "queued_here", no_answer)
    monkeypatch.setattr(watch, "planned", lambda *_targets, **_options: SimpleNamespace(jobs=[one]))
    monkeypatch.setattr(sys, "argv", ["watch", "demo"])
    watch.main()
    shown = capsys.readouterr().out
    assert f"failed toy a: {error} ({one.log})" in shown
    assert shown.endswith("What waits in a queue is not shown. SLURM: squeue: no answer. Wait.\n")


def test_who_has_seen_enough_presses_ctrl_c(capsys, here, monkeypatch):
    def stopped(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", stopped)
    monkeypatch.setattr(watch, "in_queue", lambda: (None, ""))
    monkeypatch.setattr(watch, "planned", lambda *_targets, **_options: SimpleNamespace(jobs=[]))
    monkeypatch.setattr(sys, "argv", ["watch", "demo", "--every", "10"])
    watch.main()
    assert "demo: 0 jobs done" in capsys.readouterr().out
