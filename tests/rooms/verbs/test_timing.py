"""Times of jobs: from finished jobs, from steps that are timed, on the measured GPU; and of all jobs together."""

import json
import math
from pathlib import Path

import pytest

from tests.support import toy_methods
from tests.support.snakemake_plans import DEMO, ROOT, study_in
from workflow_scripts.graph.lengths import Length
from workflow_scripts.verbs import timing
from workflow_scripts.verbs.measuring import Stopwatch, measure, sentences_of
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.preflight import capacity_of
from workflow_scripts.verbs.timing import FINISHED, MEASURED, ON_CARD, UNKNOWN, Capacity, in_words

HERE = Capacity(2, 0)
SIMCSE = "simcse.minilm_mlm.wiki_extract"
LOOKED_AT = 240
"""Sentences of the demo's development set."""


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [ROOT / DEMO])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def finished(rule, *parts, seconds, log="", study="demo"):
    """Write the benchmark file and the log of a job."""
    bench, logged = Path("benchmarks", study, rule, *parts), Path("logs", study, rule, *parts)
    for path, text in ((bench, f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\t12.5\n"), (logged, log)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}.{'tsv' if path is bench else 'log'}").write_text(text)


def lines(*steps, total=16):
    """The log of a training: finished steps and seconds."""
    return "".join(f"train: {n} of {total} steps, {s} s, loss 0.1\n" for n, s in steps)


def training(study, run=SIMCSE, seed="1"):
    settings = {"training": study.runs[run].training.result_fields()}
    bench = f"benchmarks/demo/train_encoder/{run}/seed{seed}.tsv"
    wildcards = {"run": run, "seed": seed}
    return PlannedJob("train_encoder", wildcards, settings, [], [], queued={"gpu": 1}, benchmark=bench)


def other(rule, *parts, packages=(), **wildcards):
    bench = "/".join(("benchmarks/demo", rule, *parts))
    return PlannedJob(
        rule, wildcards, {}, [], [], packages=dict.fromkeys(packages, "1"), benchmark=f"{bench}.tsv"
    )


def estimate(study, *jobs, capacity=HERE, measured=None):
    found = timing.estimates(study, jobs, timing.read_finished(), capacity, measured)
    return [(None if math.isnan(one.seconds) else one.seconds, one.source) for one in found]


def test_a_job_that_has_run_takes_as_long_again(study):
    finished("train_encoder", SIMCSE, "seed1", seconds=44.5, log=lines((0, 0), (16, 32)))
    finished("count_words", "wiki_extract", seconds=1.5)
    jobs = (
        training(study),
        other("count_words", "wiki_extract", corpus="wiki_extract"),
        other("make_table", "x"),
    )
    assert estimate(study, *jobs) == [(44.5, FINISHED), (1.5, FINISHED), (None, UNKNOWN)]


def test_the_time_of_a_job_that_the_cache_spared_is_none(study):
    said = "train_encoder: restored from results/.cache/ab; delete this entry to run the job again\n"
    finished("count_words", "wiki_extract", seconds=1.0, log=said.replace("train_encoder", "count_words"))
    finished("train_encoder", SIMCSE, "seed1", seconds=1.0, log=f"{said}{lines((0, 0), (16, 1))}")
    words = other("count_words", "wiki_extract", corpus="wiki_extract")
    assert estimate(study, training(study), words) == [(None, UNKNOWN)] * 2


def test_a_resumed_training_took_the_steps_of_its_log(study):
    """Half of the steps and one of two looks in 10 s, and 5 s around them: 25 s for all."""
    finished("train_encoder", SIMCSE, "seed1", seconds=15.0, log=lines((8, 2), (16, 12)))
    ((seconds, _),) = estimate(study, training(study))
    assert seconds == pytest.approx(25)


def test_a_longer_training_is_scaled_by_steps_and_looks(study):
    """A step has 32 sentences of 32 tokens; a look 240 of 64, at a sixth of the price for a sentence."""
    done = {
        "training": study.runs[SIMCSE].training.result_fields() | {"max_steps": 4},
        "development": {"every": 2},
    }
    place = Path("results/demo/runs", SIMCSE, "seed1/model")
    place.mkdir(parents=True)
    (place / "record.json").write_text(json.dumps({"record": {"settings": done}}))
    finished("train_encoder", SIMCSE, "seed1", seconds=20.0, log=lines((0, 0), (4, 10), total=4))
    run = study.runs[SIMCSE]
    step, look = 32 * 32, LOOKED_AT * run.development.max_tokens / 6
    assert (run.training.max_steps, run.training.max_tokens, run.development.every) == (16, 32, 8)
    ((seconds, _),) = estimate(study, training(study))
    assert seconds == pytest.approx(10 + 10 * (16 * step + 2 * look) / (4 * step + 2 * look))


def test_the_nearest_training_of_the_same_encoder_is_taken(study):
    """Another seed of the run before another method on its encoder; a twin is another encoder."""
    finished(
        "train_encoder",
        "simcse_3r.minilm_mlm.wiki_extract",
        "seed1",
        seconds=9,
        log=lines((0, 0), (6, 6), total=6),
    )
    ((only, source),) = estimate(study, training(study))
    assert source == FINISHED
    assert only > 3 + 2 * 6
    finished("train_encoder", SIMCSE, "seed2", seconds=44.5, log=lines((0, 0), (16, 32)))
    twin = training(study, "jtcse.demo_twin.wiki_extract")
    assert estimate(study, training(study), twin) == [(44.5, FINISHED), (None, UNKNOWN)]


def test_a_time_without_a_gpu_says_nothing_of_one_with(study):
    log = (
        f"this job requested a GPU, but the machine has none: training on the CPU\n{lines((0, 0), (16, 32))}"
    )
    finished("train_encoder", SIMCSE, "seed1", seconds=44.5, log=log)
    assert estimate(study, training(study)) == [(44.5, FINISHED)]
    ((seconds, source),) = estimate(study, training(study), capacity=Capacity(2, 1))
    assert source == ON_CARD
    assert seconds == pytest.approx(16 / 2 * 0.0185)


def test_a_training_of_unknown_length_has_an_unknown_time(study, monkeypatch):
    """The contract of its dataset promises no number of rows, and it is trained by epochs."""
    finished("train_encoder", SIMCSE, "seed1", seconds=44.5, log=lines((0, 0), (16, 32)))
    monkeypatch.setattr(timing, "length", lambda *_: Length("base", math.nan, math.nan))
    assert estimate(study, training(study)) == [(None, UNKNOWN)]


def test_other_jobs_take_the_median_of_the_nearest(study):
    """Of a suite those of the same suite; a corpus of as many rows; the start of PyTorch is not scaled."""
    for number, seconds in enumerate((8.0, 9.0, 12.0)):
        finished("evaluate_sts", "lee", f"run{number}", "seed1", seconds=seconds)
    job = other("evaluate_sts", "lee", "new", "seed1", packages=["torch"], suite="lee", run="new", seed="1")
    assert estimate(study, job) == [(9.0, FINISHED)]
    finished("split_corpus", "wiki_extract", seconds=2.0)
    asked = study.settings.corpora["wiki_extract"].model_copy(update={"max_sentences": 1_687})
    small = study.settings.model_copy(update={"corpora": study.settings.corpora | {"small": asked}})
    less = type(study)(small, study.blocks, study.root)
    ((seconds, _),) = estimate(less, other("split_corpus", "small", corpus="small"))
    assert seconds == pytest.approx(2.0 * 1_687 / (17_111 - 240), rel=0.01)


def test_a_corpus_of_which_no_row_is_promised_is_not_scaled(study):
    """All rows that the contract promises are held out for development."""
    asked = study.settings.corpora["wiki_extract"].model_copy(update={"dev_sentences": 17_111})
    corpora = study.settings.corpora | {"wiki_extract": asked}
    unknown = type(study)(study.settings.model_copy(update={"corpora": corpora}), study.blocks, study.root)
    finished("split_corpus", "wiki_extract", seconds=2.0)
    job = other("split_corpus", "wiki_extract", corpus="wiki_extract")
    assert estimate(unknown, job) == [(2.0, FINISHED)]


def test_measured_steps_come_before_the_card(study):
    """Measured steps come after finished jobs and before the card."""
    job = training(study)
    measured = {job.benchmark: 30.0}
    assert estimate(study, job, capacity=Capacity(2, 1), measured=measured) == [(30.0, MEASURED)]
    finished("train_encoder", SIMCSE, "seed1", seconds=44.5, log=lines((0, 0), (16, 32)))
    assert estimate(study, job, measured=measured) == [(44.5, FINISHED)]


def chain(name, threads=1, gpu=0, after=()):
    return PlannedJob(name, {}, {}, [*after], [name], queued={"gpu": gpu} if gpu else {}, threads=threads)


@pytest.mark.parametrize(
    ("capacity", "wall"),
    [
        (Capacity(1, 0), 19),
        (Capacity(2, 0), 13),
        (Capacity(2, 1), 17),
        (Capacity(9, 2), 9),
        (Capacity(9, math.inf, queued=True), 9),
    ],
)
def test_jobs_together_take_the_time_of_chains_and_cores(capacity, wall):
    """a (2) before b (6) and c (4), both before f (1); d (2) beside them; e (4) takes two cores. b and c ask for a GPU."""
    jobs = [chain("a"), chain("b", gpu=1, after="a"), chain("c", gpu=1, after="a"), chain("d"), chain("e", 2)]
    assert timing.wall_seconds([*jobs, chain("f", after="bc")], [2, 6, 4, 2, 4, 1], capacity) == wall


def test_the_job_before_the_longest_chain_begins_first():
    jobs = [chain("a"), chain("b"), chain("c"), chain("d"), chain("e", after="d")]
    assert timing.wall_seconds(jobs, [1, 1, 1, 1, 3], HERE) == 4


def test_nothing_is_said_of_gpus_that_no_job_gets():
    jobs = [chain("a", 4), chain("b", gpu=1, after="a"), chain("c")]
    found = [timing.Estimate(10, FINISHED), timing.Estimate(20, FINISHED), timing.Estimate(math.nan, UNKNOWN)]
    (without,) = timing.in_all(jobs, found, HERE, 1)
    (printed,) = timing.shown([without])
    assert not [key for key in printed if "GPU" in key]
    assert printed["wall time"] == "31 s"
    assert (without["CPU seconds"], without["wall seconds"]) == (2 * 10 + 20, 1 + 10 + 20)
    assert [row["time"] for row in timing.shown(timing.by_rule(jobs, found))] == ["20 s", "10 s", ""]
    (with_one,) = timing.in_all(jobs, found, Capacity(2, 1), 1)
    assert (with_one["CPU seconds"], with_one["GPU seconds"], with_one["jobs of unknown time"]) == (20, 20, 1)
    assert timing.in_all(jobs, [found[2]] * 3, HERE, 1) == []
    rules = timing.by_rule(jobs, found)
    assert [row["rule"] for row in rules] == ["b", "a", "c"]
    assert math.isnan(rules[2]["seconds"])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "< 1 s"), (45, "45 s"), (130, "2 min 10 s"), (3599.9, "1 h"), (7_800, "2 h 10 min"), (86_399, "1 day"),
     (270_000, "3 days 3 h"), (math.nan, "")],
)  # fmt: skip
def test_a_time_has_its_two_largest_units(seconds, words):
    assert in_words(seconds) == words


def test_the_place_is_this_machine_or_a_queue(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert capacity_of(None, 3) == Capacity(3, 0)
    assert capacity_of("slurm", None) == Capacity(100, math.inf, queued=True)


def test_each_distinct_training_is_measured_once(study, monkeypatch, tmp_path):
    """Each distinct training is measured once and leaves nothing."""
    monkeypatch.setattr("workflow_scripts.verbs.measuring.SECONDS_EACH", 0)
    monkeypatch.setattr("workflow_scripts.verbs.measuring._TEXTS", 64)
    jobs = [training(study, seed=seed)._replace(
        settings={"training": {}, "method": study.runs[SIMCSE].method.model_dump(mode="json")}
    ) for seed in ("1", "2")]  # fmt: skip
    lost = training(study)._replace(settings={"training": {}, "method": {"module": "nosuch"}})
    found = measure(study, [*jobs, lost], imports=5)
    assert len({*found.seconds.values()}) == 1
    assert found.seconds.keys() == {job.benchmark for job in jobs}
    assert 5 < found.seconds[jobs[0].benchmark] < 500
    assert any("nosuch" in note for note in found.notes)
    assert not [*tmp_path.iterdir()]


def test_a_method_scored_without_its_bias_is_measured(study, monkeypatch):
    """PromptBERT's checkpoints are scored by an encoder that is never saved."""
    monkeypatch.setattr("workflow_scripts.verbs.measuring.SECONDS_EACH", 0)
    monkeypatch.setattr("workflow_scripts.verbs.measuring._TEXTS", 64)
    settings = {"training": {}, "method": toy_methods.blocks()["promptbert"]}
    found = measure(study, [training(study)._replace(settings=settings)], imports=5)
    assert len(found.seconds) == 1
    assert not [note for note in found.notes if SIMCSE in note]


def test_made_up_sentences_are_as_long_as_those_of_wikipedia(study):
    counts = [len(text.split()) for text in sentences_of(study, "wiki_extract", 500)]
    assert 27 < sum(counts) / 500 < 31
    assert min(counts) >= 12
    assert max(counts) <= 46


def test_time_of_other_programs_is_not_counted(monkeypatch):
    """Time that other programs take is not counted on a busy CPU."""
    import torch

    clocks = {"monotonic": [0.0, 10.0] * 3, "process_time": [0.0, 4.0] * 3}
    for name, values in clocks.items():
        monkeypatch.setattr(
            f"workflow_scripts.verbs.measuring.time.{name}", lambda values=values: values.pop(0)
        )
    assert Stopwatch(torch.device("cpu"), 2, busy=True).seconds() == 2.0
    assert Stopwatch(torch.device("cpu"), 2, busy=False).seconds() == 10.0
    assert Stopwatch(torch.device("cuda"), 2, busy=True).seconds() == 10.0
