"""Steps, hours, gigabytes and requests of jobs, worked out by hand from round numbers."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.snakemake_plans import ROOT, merged_config, settings_with
from workflow_scripts.graph import lengths
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import Run
from workflow_scripts.training import step
from workflow_scripts.verbs import estimate
from workflow_scripts.verbs.plan import PlannedJob

RUN = Run("simcse", "base", "wiki", "default", {}, (1,), None)
REAL = merged_config("config/config.yaml")


def fetched(path, size="base"):
    return {"fetch": {"sources": [{"kind": "local", "path": path}], "licence": "x", "size": size}}


def asked(of_api, **limits):
    return of_api | {"calls": of_api["calls"] | {"per_day": None, "per_second": None} | limits}


def trip(translator, form, most):
    made = {"corpus": "wiki", "source": "en", "pivot_language": "fr", "unchanged": "keep"}
    return {
        "round_trip": made | {"translator": translator, "training_text": form, "max_sentences": most},
        "label": None,
    }


ADAPTED = {"base": "base", "corpus": "wiki", "label": "x"}
TWIN = [{"method": "simcse", "encoder": "base", "corpus": corpus} for corpus in ("wiki", "cut")]
PRICE = {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0, "as_of": "2026-01-01"}
SECTIONS = {
    "encoders": {
        "base": fetched("absent"),
        "adapted": {"adapt": ADAPTED},
        "large": fetched("absent", "large"),
        "twin": {"label": None, "runs": TWIN},
    },
    "datasets": {
        name: REAL["datasets"]["wiki1m"] | {"contract": contract}
        for name, contract in (("text", {"rows": 6400}), ("least", {"min_rows": 5000}), ("vague", {}))
    },
    "corpora": {
        name: {"dataset": dataset, "dev_sentences": 0, "max_sentences": None} | more
        for name, dataset, more in (
            ("wiki", "text", {}),
            ("cut", "text", {"max_sentences": 1000, "add_sentences_of": "least"}),
            ("held_out", "text", {"dev_sentences": 400}),
            ("vague", "vague", {}),
        )
    }
    | {
        "fr": trip("google", "pairs", None),
        "fr_expanded": trip("apertium", "expanded", 800),
        "fr_slow": trip("slow", "pairs", 800),
    },
    "round_trip": REAL["round_trip"] | {"shards": 8},
    "data_root": None,
    "exemplars": {
        "pool": REAL["exemplars"]["wiki1m_300"]
        | {"llm": "paid", "sentences": 64, "sentences_per_call": 5, "max_calls": 400}
    },
    "translators": {
        "google": asked(REAL["translators"]["google"], per_day=1000, per_second=5),
        "apertium": REAL["translators"]["apertium"] | {"batch_sentences": 16},
        "slow": asked(REAL["translators"]["google"], per_second=1),
    },
    "llms": {
        "paid": asked(REAL["llms"]["deepseek_v3"], per_second=1)
        | {"max_completion_tokens": 100, "price": PRICE}
    },
}


SETTINGS = settings_with("config/config.yaml", **SECTIONS)


@pytest.fixture
def study():
    runs = {
        "one": RUN,
        "two": RUN,
        "long": RUN._replace(encoder="large"),
        "both": RUN._replace(encoder="twin"),
        "vague": RUN._replace(corpus="vague"),
    }
    training = SETTINGS.training.model_copy(update={"epochs": 1, "max_steps": None, "batch_size": 64})
    of_two = training.model_copy(update={"max_steps": 10, "batch_size": 512})
    made = {
        name: SimpleNamespace(
            encoder=run.encoder, corpus=run.corpus, training=of_two if name == "two" else training
        )
        for name, run in runs.items()
    }
    return SimpleNamespace(
        settings=SETTINGS, data_root=None, runs=made, encoders=Study(SETTINGS, {}, ROOT).encoders
    )


SLICES = {"train_encoder": {"training": {}}, "continue_mlm": {"adapt": {}}}
MODELS = ("fetch_encoder", "continue_mlm", "train_encoder", "build_frozen", "build_ensemble")
OUTSIDE = {"fetch_encoder": "encoders.{encoder}", "read_dataset": "datasets.{dataset}"}


def job(rule, inputs=(), queued=None, settings=None, outside="", **wildcards):
    return PlannedJob(
        rule,
        wildcards,
        settings or SLICES.get(rule, {}),
        [*inputs],
        ["model/record.json"] if rule in MODELS else [],
        queued=queued or {},
        outside=outside or OUTSIDE.get(rule, "").format(**wildcards),
    )


def test_on_the_measured_gpu_a_training_takes_its_steps(study):
    """100 steps of 64, and 10 of 512, which count as 80, each 18.5 ms; of a large encoder nothing was measured."""
    one, two, long, vague = (lengths.length(study, {"run": name}) for name in ("one", "two", "long", "vague"))
    assert (one.steps, two.steps, long.steps) == (100, 10, 100)
    assert [one.card_seconds, two.card_seconds] == pytest.approx([1.85, 80 * 0.0185])
    assert (one.size, long.size) == ("base", "large")
    assert math.isnan(long.card_seconds)
    assert math.isnan(vague.steps)
    assert math.isnan(vague.card_seconds)


@pytest.mark.parametrize(
    ("corpus", "most"),
    [("wiki", 6400), ("cut", math.inf), ("held_out", 6000), ("vague", math.inf), ("fr_expanded", 1600)],
)
def test_a_corpus_has_at_most_the_rows_of_contracts_and_limits(corpus, most):
    """`cut` adds a set of which the least number is promised; an expanded round trip has two rows a sentence."""
    assert estimate.most_rows(SETTINGS, corpus) == most


def test_a_corpus_has_at_most_the_lines_of_its_file(tmp_path):
    """A contract of the least number of rows says nothing of the largest."""
    (tmp_path / "mine.txt").write_text("The river rose.\n" * 20)
    source = {"kind": "local", "files": {"text": {"path": "mine.txt", "sha256": None}}, "reader": "lines"}
    mine = REAL["datasets"]["wiki1m"] | {"contract": {"min_rows": 10}, "sources": [source]}
    settings = settings_with(
        "config/config.yaml", **SECTIONS | {"datasets": SECTIONS["datasets"] | {"text": mine}}
    )
    assert estimate.most_rows(settings, "wiki", tmp_path) == 20
    assert estimate.most_rows(settings, "fr_expanded", tmp_path) == 40


def test_a_long_training_takes_the_time_of_compiled_layers(study):
    """As training.step decides by sentences, of which SimCSE reads each twice."""
    long = study.runs["two"].training.model_copy(update={"max_steps": 1_000, "batch_size": 512})
    study.runs["two"].training = long
    plain, compiled = (lengths.length(study, {"run": name}) for name in ("one", "two"))
    assert plain.card_seconds == pytest.approx(100 * 0.0185)
    assert compiled.card_seconds == pytest.approx(8_000 * 0.0122)
    assert lengths.COMPILED_FROM * 64 * 2 == step.COMPILED_FROM


def test_weights_on_this_machine_count_as_they_are(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/model.safetensors").write_bytes(b"x" * 2000)
    here = fetched("absent")
    here["fetch"]["sources"].append({"kind": "local", "path": "mine"})
    encoders = {"mine": here, "adapted": {"adapt": ADAPTED | {"base": "mine"}}}
    study = Study(settings_with(encoders=encoders, data_root=str(tmp_path)), {}, ROOT)
    assert estimate.gigabytes(study, job("continue_mlm", encoder="adapted")) == 2e-6


def test_a_twin_is_saved_as_two_encoders(study):
    sizes = [estimate.gigabytes(study, job("train_encoder", run=name)) for name in ("one", "long", "both")]
    assert sizes == pytest.approx([0.44, 1.4, 0.88])
    assert estimate.gigabytes(study, job("fetch_encoder", encoder="large")) == 1.4
    assert estimate.gigabytes(
        study, job("encode_teacher", settings={"teacher": {}}, corpus="wiki")
    ) == pytest.approx(6400 * 9480e-9)
    assert estimate.gigabytes(study, job("encode_teacher", settings={"teacher": {}}, corpus="vague")) == 0
    assert lengths.corpus_rows(SETTINGS, "fr_expanded") == 1600  # both sentences of 800 pairs


@pytest.mark.parametrize(
    ("corpus", "service", "requests", "days"),
    [
        ("fr", "translators.google", 12_800, 12.8),
        ("fr_expanded", "translators.apertium", 100, None),
        ("fr_slow", "translators.slow", 1600, 1600 / 86_400),
    ],
)
def test_translations_are_two_requests_and_have_days(study, corpus, service, requests, days):
    """Translations are two requests and have days at the limits of their service."""
    shards = [job("translate_shard", outside=service, corpus=corpus) for _ in range(8)]
    (row,) = estimate.requests(SETTINGS, shards)
    assert (row["service"], row["jobs"], row["most"]) == (service, 8, requests)
    assert row["days at its limits"] == (days and pytest.approx(days))


def test_a_pool_needs_a_range_of_requests_and_has_a_price(tmp_path):
    """A prompt of 400 characters is 100 tokens, and 32 are put into it."""
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("x" * 400)
    (row,) = estimate.requests(
        SETTINGS, [job("write_exemplars", [str(prompt)], outside="llms.paid", pool="pool")]
    )
    assert (row["service"], row["least"], row["most"]) == ("llms.paid", 13, 400)
    assert row["USD at most"] == pytest.approx(400 * (132 * 1 + 100 * 2) / 1e6)


def test_every_source_is_listed_with_its_place():
    sources = {
        "text": {"kind": "files", "files": {"local:mine/b.tsv": "34cd", "local:mine/a.tsv": "12ab"}},
        "away": {"kind": "unreachable", "repositories": [{"name": "team/toy", "revision": "0000"}]},
        "lacking": {"kind": "none"},
        "open": {"kind": "hub", "repositories": [{"name": "team/toy", "revision": None}]},
    }
    jobs = [
        job("read_dataset", settings={"source": one, "dataset": {"optional": name == "away"}}, dataset=name)
        for name, one in sources.items()
    ]
    files = {"local:mine/bert/1_Pooling/config.json": "0", "local:mine/bert/model.safetensors": "2"}
    jobs.append(job("fetch_encoder", settings={"source": {"kind": "files", "files": files}}, encoder="toy"))
    optional = {"source": {"kind": "none"}, "dataset": {"optional": True}}
    jobs.append(job("read_dataset", settings=optional, dataset="spare"))
    found = estimate.read_from(SETTINGS, [*jobs, job("train_encoder", run="one")], Path("/data"))
    assert {row["of"]: row["read from"] for row in found} == {
        "away": "not reached: hub:team/toy@0000: a gap",
        "lacking": "no source found",
        "open": "hub:team/toy (no revision set)",
        "spare": "no source found: a gap",
        "text": "/data/mine/a.tsv, /data/mine/b.tsv",
        "toy": "/data/mine/bert",
    }
    (line,) = map(str, estimate.without_revision(jobs))
    assert line.startswith("datasets.open: no revision is set for hub:team/toy; its job would stop")
