"""Hours, gigabytes and requests of jobs, worked out by hand from round numbers."""

from math import isnan

import pytest
import yaml

from workflow_scripts.planning.graph import Graph, PlannedJob
from workflow_scripts.planning.plan import Amount, Estimator, by, by_rule, read_from, requests, row_of
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.rates import Rates


def rate(value, basis="measured"):
    return {"value": value, "basis": basis, "source": "here"}


RATES = Rates.parse(
    {
        "gpu_tflops": rate(1, "assumed"),
        "gpu_encoding_tflops": rate(0.5, "assumed"),
        "hours": {"encode_teacher": rate(0.25)},
        "list_tokens": {"mine": rate(1000)},
        "encoders": {
            "toy": {
                "layers": 2,
                "width": 10,
                "feed_forward": 800,
                "parameters_millions": 100,
                "source": "here",
            }
        },
        "rows": {},
        "step_cost": {"simcse": rate(1), "three_r": rate(1.5), "jtcse": rate(3)},
        "readout_cost": {"pooling": rate(1), "s2sent": rate(2)},
        "kilobytes": {"evaluate_sts": rate(250)},
        "bytes_per_row": {"split_corpus": rate(50), "read_dataset": rate(50)},
    },
    "rates",
)
POOLED = {"module": "simcse", "readout": {"kind": "pooling"}}
TRAINING = {
    "epochs": 1,
    "max_steps": None,
    "batch_size": 64,
    "last_batch": "drop",
    "max_tokens": 10,
    "gpus": 1,
}
"""Of 10 tokens, one forward pass is 2 x 10 x 2 x (400 + 800 + 200) = 56,000."""
FORWARD = 56_000


def job(rule, outputs, inputs=(), settings=None, gpus=0, minutes=60, operational=None, **wildcards):
    queued = {"gpu": gpus, "runtime": minutes, "mem_mb": 16_000}
    return PlannedJob(rule, wildcards, settings or {}, list(inputs), list(outputs), operational or {}, queued)


def training(name, inputs, method=POOLED):
    settings = {"method": method, "training": TRAINING, "development": {"every": 1000}}
    outputs = [f"r/runs/{name}/seed1/model/record.json", f"r/runs/{name}/seed1/model/modules.json"]
    return job("train_encoder", outputs, inputs, settings, gpus=1, minutes=480, run=name, seed="1")


def promising(name, **contract):
    """The job that reads a dataset with this contract."""
    asked = {"contract": {"contract": contract}}
    return job("read_dataset", [f"r/datasets/{name}.parquet"], operational=asked, dataset=name)


SOURCES = [
    job("fetch_encoder", ["r/encoders/toy/record.json", "r/encoders/toy/model.safetensors"], encoder="toy"),
    promising("text", rows=6400),
    promising("vague"),
    job("split_corpus", ["r/corpora/wiki/train.parquet"], ["r/datasets/text.parquet"], corpus="wiki"),
    job("split_corpus", ["r/corpora/vague/train.parquet"], ["r/datasets/vague.parquet"], corpus="vague"),
    promising("least", min_rows=5000),
]
WIKI = ["r/encoders/toy/record.json", "r/corpora/wiki/train.parquet"]


def estimator(*jobs):
    return Estimator(Graph([*SOURCES, *jobs]), RATES)


def test_hours_of_a_training_are_views_and_passes_over_the_speed_of_the_gpu():
    """6,400 sentences, two views, a forward pass and twice its work backwards, at 10^12 operations a second.

    Of the development set, 2 x 6,400 sentences are encoded every fifty of 100 steps.
    """
    run, looking = training("simcse", WIKI), training("simcse", [*WIKI, TEXT])
    looking.settings["development"]["every"] = 50
    for job, texts in ((run, 6400 * 2 * 3), (looking, 6400 * 2 * 3 + 2 * 2 * 6400)):
        assert estimator(job).gpu_hours(job) == pytest.approx(texts * FORWARD / 1e12 / 3600)


def test_a_method_that_wraps_another_costs_the_product():
    wrapped = {"module": "three_r", "base": {"module": "simcse", "readout": {"kind": "s2sent"}}}
    assert estimator().step_cost(wrapped) == 3.0


def test_what_nobody_knows_is_unknown_and_not_nothing():
    """An encoder, a method or a corpus without a number; a GPU rule that no rate describes."""
    runs = [
        training("encoder", ["r/encoders/huge/record.json", WIKI[1]]),
        training("method", WIKI, {"module": "new", "readout": {"kind": "pooling"}}),
        training("corpus", [WIKI[0], "r/corpora/vague/train.parquet"]),
        job("extract_scores", ["r/extraction/scores/a.parquet"], gpus=1),
    ]
    known = training("simcse", WIKI)
    found = estimator(*runs, known)
    assert by(runs, found.gpu_hours) == Amount(None, 4)
    assert by([*runs, known], found.gpu_hours) == Amount(found.gpu_hours(known), 4)


def test_a_twin_is_saved_as_two_encoders_and_its_student_as_one():
    sub_encoders = [training(name, WIKI) for name in ("a", "b")]
    models = [f"r/runs/{name}/seed1/model/record.json" for name in ("a", "b")]
    twin = training("twin", [*models, WIKI[1]], {"module": "jtcse", "readout": {"kind": "pooling"}})
    student = training("student", [*WIKI, "r/teachers/twin/wiki/seed1.parquet"], POOLED)
    found = estimator(*sub_encoders, twin, student)
    assert [found.gigabytes(one) for one in (sub_encoders[0], twin, student)] == pytest.approx(
        [0.4, 0.8, 0.4]
    )
    corpus, least = (found.gigabytes(SOURCES[place]) for place in (3, -1))
    assert (corpus, least) == pytest.approx((6400 * 50 / 1e9, 5000 * 50 / 1e9))
    assert isnan(found.gigabytes(SOURCES[4]))


def test_requests_of_a_pool_lie_between_what_it_needs_and_where_it_gives_up():
    pool = {"llm": "writer", "sentences": 64, "sentences_per_call": 5, "max_calls": 400}
    asked = job("write_exemplars", ["r/exemplars/p.parquet"], settings={"pool": pool}, pool="p")
    assert estimator(asked).requests(asked) == ("llms.writer", 13, 400)


@pytest.mark.parametrize(
    ("changed", "service", "requests_of_all"),
    [
        ({}, {"calls": {}}, 2 * 6400),
        ({"max_sentences": 800}, {}, 1600),
        ({"corpus": "vague"}, {"calls": {}}, None),
    ],
)
def test_translations_go_there_and_back_and_shards_share_them(changed, service, requests_of_all):
    translation = {"translator": "google", "max_sentences": changed.get("max_sentences")}
    settings = {"translation": translation, "limits": {"shards": 8}}
    inputs = [f"r/corpora/{changed.get('corpus', 'wiki')}/train.parquet"]
    outputs = [f"r/corpora/fr/round_trip/{n}-of-8.parquet" for n in range(8)]
    operational = {"service": {"translator": service}}
    shards = [job("translate_shard", [one], inputs, settings, operational=operational) for one in outputs]
    (row,) = requests(shards, estimator(*shards))
    assert (row["service"], row["jobs"], row["most"]) == ("translators.google", 8, requests_of_all)


def test_a_pool_takes_as_many_calls_as_it_needs_at_least_and_may_take_at_most():
    pool = {"llm": "toy", "sentences": 100, "sentences_per_call": 30, "max_calls": 9}
    asking = [
        job("write_exemplars", [f"r/exemplars/{name}.parquet"], settings={"pool": pool}) for name in "ab"
    ]
    assert requests(asking, estimator(*asking)) == [
        {"service": "llms.toy", "jobs": 2, "least": 8, "most": 18}
    ]


TEXT, SHARD = "r/datasets/text.parquet", "r/corpora/fr/round_trip/1-of-1.parquet"


@pytest.mark.parametrize(
    ("rule", "inputs", "settings", "rows"),
    [
        ("split_corpus", [TEXT], {"corpus": {"max_sentences": 1000}}, 1000),
        ("split_corpus", [TEXT, TEXT], {"corpus": {"max_sentences": 1000}}, 1000 + 6400),
        ("split_corpus", [TEXT], {"max_sentences": 1000}, 1000),
        ("gather_round_trips", [TEXT, SHARD], {"shape": {"form": "pairs"}, "max_sentences": 1000}, 1000),
        ("gather_round_trips", [TEXT, SHARD], {"shape": {"form": "expanded"}, "max_sentences": 1000}, 2000),
    ],
)
def test_a_corpus_is_cut_before_it_is_added_to_and_round_trips_may_come_on_top(rule, inputs, settings, rows):
    made = job(rule, ["r/corpora/fr/train.parquet"], inputs, settings, corpus="fr")
    assert estimator(made).rows("r/corpora/fr/train.parquet") == rows


def test_rows_of_the_plan_add_up_to_the_last_one():
    jobs = [*SOURCES, training("simcse", WIKI), training("other", WIKI)]
    found = estimator(*jobs[len(SOURCES) :])
    total, rows = row_of(jobs, found), by_rule(jobs, found)
    for name in ("jobs", "trainings", "GPU h", "unknown GB"):
        assert total[name] == pytest.approx(sum(row[name] or 0 for row in rows)) and total[name]
    assert (total["memory, GB"], total["h at most"]) == (16, 8)


def test_a_plan_says_what_is_read_from_where(monkeypatch):
    monkeypatch.setenv("SEMBLANCE_DATA", "/data")
    sources = {
        "text": "local:mine/a.tsv sha256:12ab; local:mine/b.tsv sha256:34cd",
        "none": "not reached: hub:team/toy@0000",
    }
    jobs = [job("read_dataset", [], settings={"source": one}, dataset=name) for name, one in sources.items()]
    files = "local:mine/bert/1_Pooling/config.json sha256:0; local:mine/bert/config.json sha256:1; local:mine/bert/model.safetensors sha256:2"
    for name, source in (("toy", files), ("bert", "hub:google/bert@1111 or hub:other@2222")):
        jobs.append(job("fetch_encoder", [], settings={"source": source}, encoder=name))
    assert read_from([*jobs, training("simcse", WIKI)]) == [
        {"of": "bert", "read from": "hub:google/bert@1111 or hub:other@2222"},
        {"of": "none", "read from": "not reached: hub:team/toy@0000"},
        {"of": "text", "read from": "/data/mine/a.tsv, /data/mine/b.tsv"},
        {"of": "toy", "read from": "/data/mine/bert"},
    ]


def test_every_encoder_and_readout_of_the_configuration_has_a_rate():
    rates, encoders, methods = (
        yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())
        for name in ("rates", "encoders", "methods")
    )
    fetched = {name for name, block in encoders["encoders"].items() if "fetch" in block}
    kinds = {block["readout"]["kind"] for block in methods["methods"].values() if "readout" in block}
    assert len(fetched) > 9 and fetched <= set(rates["encoders"])
    assert {"pooling", "s2sent"} <= kinds <= set(rates["readout_cost"])


def test_an_evaluation_by_mteb_takes_the_time_of_encoding():
    """1,000 tokens of 4,880 operations each, at half a teraflop; other jobs take what their rule says."""
    made, read = training("simcse.toy", WIKI), ["r/runs/simcse.toy/seed1/model/record.json"]
    counted, other = (
        job("evaluate_mteb", ["r/a"], read, {"mteb": {"lists": {name: {} for name in lists}}}, gpus=1)
        for lists in (["mine", "not_counted"], ["not_counted"])
    )
    found = estimator(made, counted, other)
    assert found.gpu_hours(counted) == pytest.approx(1000 * 2 * 2 * (400 + 800 + 20) / 0.5e12 / 3600)
    assert isnan(found.gpu_hours(other)) and found.gpu_hours(other._replace(queued={})) == 0.0
    assert found.gpu_hours(job("encode_teacher", ["r/b"], gpus=1)) == 0.25
