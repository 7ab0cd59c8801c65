"""Time and memory that evaluations ask for, against speeds that were measured."""

from functools import cache
from types import SimpleNamespace

import pytest

from tests.planning import ROOT, snakemake
from workflow_scripts.graph.memory import Memory
from workflow_scripts.graph.study import open_study
from workflow_scripts.graph.times import Times
from workflow_scripts.graph.workloads import Workloads
from workflow_scripts.planning.evaluations import Work, work_of
from workflow_scripts.planning.graph import planned, study_in
from workflow_scripts.planning.rates import Rates, read_rates

LEAST = {"sts": 30, "geometry": 30, "clustering": 240, "transfer": 240, "search": 60, "mteb": 24 * 60}
BERT_TOKENS_A_SECOND = 29.3 * 16
"""BERT-base on one thread of an AMD EPYC, 16 tokens a sentence."""
TOKENS = {"pairs": 26, "labelled": 25, "sentences": 25}
"""Of a row, as most sets have them."""
BERT, LARGE, LLAMA = "frozen_cls.bert_base", "frozen_cls.roberta_large", "llm2vec.llama2_7b_mntp.wiki1m"


def opened(**changes):
    return open_study(study_in(ROOT, []).config | changes, [], ROOT)


@pytest.fixture(scope="module")
def study():
    return opened()


def minutes(study, kind, suite, run, attempt=1):
    times = Times(study, Workloads(study))
    return times.evaluating(LEAST[kind], kind)(SimpleNamespace(suite=suite, run=run), attempt)


@cache
def known_rates():
    return read_rates(ROOT / "config/rates.yaml")


def behind(study, encoder):
    """Names of the fetched encoders that an encoder consists of."""
    block = study.config["encoders"][encoder]
    if "adapt" in block:
        return behind(study, block["adapt"]["base"])
    if study.has_runs(encoder):
        return [name for run in study.members(encoder).values() for name in behind(study, run.encoder)]
    return [encoder]


def encoding_seconds(study, suite, run):
    """Of the datasets of a suite on one thread, by speed that was measured and the size of the encoder."""
    sizes = known_rates().encoders
    bert = sizes["bert_base"].forward_flops(16)
    slower = sum(sizes[name].forward_flops(16) for name in behind(study, study.runs[run].encoder)) / bert
    blocks = [study.config["datasets"][name] for name in suite["datasets"]]
    most = suite.get("max_pairs") or float("inf")
    tokens = sum(min(block["contract"]["rows"], most) * TOKENS[block["form"]] for block in blocks)
    return tokens * slower / BERT_TOKENS_A_SECOND


def test_every_evaluation_of_the_paper_scale_fits_its_request_with_a_margin():
    """On one thread, whose speed was measured; a GPU is as fast as config/rates.yaml assumes."""
    study = opened(evaluation={"on_gpu": []})
    times = Times(study, Workloads(study))
    asked = 0
    for run in study.runs:
        for kind in ("sts", "clustering", "transfer", "search"):
            for name, suite in study.config["suites"][kind].items():
                wildcards = SimpleNamespace(suite=name, run=run)
                given = 60 * times.evaluating(LEAST[kind], kind)(wildcards, 1)
                assert given >= 1.5 * encoding_seconds(study, suite, run), (run, kind, name)
                assert given >= 2 * times.seconds(kind, name, run)
                asked += 1
    assert asked > 4000


def test_no_request_is_below_what_the_rule_takes(study):
    assert minutes(study, "sts", "stsb_dev_only", BERT) == 30
    assert minutes(study, "geometry", "stsb_space", BERT) == 30
    for kind, least in LEAST.items():
        for suite in study.config["suites"][kind]:
            assert minutes(study, kind, suite, BERT) >= least


def test_a_slow_encoder_asks_for_more_and_a_gpu_for_less(study):
    """RoBERTa-large encodes SentEval's sets in more than four hours on one thread."""
    without = opened(evaluation={"on_gpu": []})
    assert minutes(without, "transfer", "senteval", LARGE) > 2 * 240
    assert (
        240 <= minutes(study, "transfer", "senteval", LARGE) < minutes(without, "transfer", "senteval", LARGE)
    )
    assert minutes(study, "sts", "sts", LLAMA) == minutes(without, "sts", "sts", LLAMA)
    assert (
        minutes(opened(evaluation={"on_gpu": ["sts"]}), "sts", "sts", LLAMA)
        < minutes(study, "sts", "sts", LLAMA) / 20
    )


def averaging(study, shards):
    study.config["extraction"] = study.config["extraction"] | {"shards": shards}
    return Times(study, Workloads(study)).averaging(60)(SimpleNamespace(), 1)


def test_averages_over_wikitext_fit_their_request_with_a_margin():
    """120 million tokens of BERT-base: on one thread by the speed that was measured, on a GPU within the least."""
    tokens, on_thread = 3_000_000 * 40, opened(evaluation={"on_gpu": []})
    for shards in (8, 32):
        assert 60 * averaging(on_thread, shards) >= 1.5 * tokens / shards / BERT_TOKENS_A_SECOND
    assert averaging(on_thread, 8) > 3 * averaging(on_thread, 32)
    assert averaging(opened(evaluation={"on_gpu": ["extraction"]}), 8) == 60


def test_each_attempt_has_more_time(study):
    assert [minutes(study, "sts", "stsb_dev_only", BERT, attempt) for attempt in (1, 2, 3)] == [30, 60, 90]


def test_an_encoder_that_nobody_can_size_asks_for_what_the_rule_takes(study):
    work = Workloads(study)
    work.sizes = lambda run: []
    assert (
        Times(study, work).evaluating(240, "transfer")(SimpleNamespace(suite="senteval", run=BERT), 1) == 240
    )


def test_memory_grows_with_the_vectors_of_a_suite(study):
    memory = Memory(study, Workloads(study))
    asked = [
        memory.evaluating(16, "transfer")(SimpleNamespace(suite=suite, run=run))
        for run, suite in ((BERT, "senteval"), (LLAMA, "senteval"), (LLAMA, "twelve_tasks"))
    ]
    assert asked[0] == "16GB"
    assert 31 < int(asked[1].removesuffix("GB")) < int(asked[2].removesuffix("GB"))


def rate(value):
    return {"value": value, "basis": "measured", "source": "here"}


def test_the_work_of_a_suite_is_that_of_its_rows():
    own = {
        "rows": {},
        "row_tokens": {"pairs": rate(30), "long": rate(1000), "sentences": rate(10)},
        "scoring_seconds": {"clustering": rate(0.5)},
        "list_tokens": {"mine": rate(7)},
    }
    rates = Rates.model_validate(known_rates().model_dump() | own)
    blocks = {
        "short": {"form": "pairs", "contract": {"rows": 100}},
        "long": {"form": "pairs", "contract": {"min_rows": 10}},
        "wiki": {"form": "sentences", "contract": {"rows": 5000}},
        "unknown": {"form": "pairs", "contract": {}},
    }
    suite = {"datasets": ["short", "long", "unknown"], "max_tokens": 64}
    assert work_of("sts", suite, blocks, rates) == Work(110, 100 * 30 + 10 * 128, 0)
    clusters = {"datasets": ["short"], "max_tokens": 64, "max_texts": 20, "seeds": 3, "n_init": 2}
    assert work_of("clustering", clusters, blocks, rates) == Work(20, 600, 20 * 0.5 * 6)
    space = {
        "max_tokens": 64,
        "positives": {"one": {"dataset": "short"}, "two": {"dataset": "short"}},
        "samples": {
            "few": {"dataset": "wiki", "max_sentences": 5},
            "many": {"dataset": "wiki", "max_sentences": 50},
        },
    }
    assert work_of("geometry", space, blocks, rates) == Work(150, 100 * 30 + 50 * 10, 0)
    assert work_of("mteb", {"lists": ["mine", "not_counted"]}, blocks, rates).tokens == 7


def test_jobs_are_given_what_was_asked_for(tmp_path, monkeypatch):
    overlay = tmp_path / "gpu.yaml"
    overlay.write_text("evaluation: {on_gpu: [transfer]}")
    target = f"results/paper/scores/transfer/senteval/{LARGE}/seed0.parquet"
    monkeypatch.chdir(ROOT)
    (job,) = [job for job in planned([target], [str(overlay)]).jobs if target in job.outputs]
    asked = minutes(opened(evaluation={"on_gpu": ["transfer"]}), "transfer", "senteval", LARGE)
    assert (job.gpus, job.minutes) == (1, asked)
    command = ("--dry-run", "--cores", "1", "--printshellcmds", "--configfile", str(overlay), "--", target)
    code, printed = snakemake(ROOT, *command)
    assert code == 0 and '"operational": {"gpu": 1}' in printed


@pytest.mark.parametrize(("kinds", "gpus"), [([], 0), (["extraction"], 1)])
def test_sums_of_token_states_ask_for_a_gpu_where_the_configuration_says_so(
    tmp_path, monkeypatch, kinds, gpus
):
    overlay = tmp_path / "gpu.yaml"
    overlay.write_text(f"evaluation: {{on_gpu: {kinds}}}")
    monkeypatch.chdir(ROOT)
    jobs = planned(["results/paper/extraction/averages.parquet"], [str(overlay)]).jobs
    summing = [job for job in jobs if job.rule == "average_tokens"]
    shards = opened().config["extraction"]["shards"]
    asked = averaging(opened(evaluation={"on_gpu": kinds}), shards)
    assert [(job.gpus, job.minutes) for job in summing] == [(gpus, asked)] * shards
