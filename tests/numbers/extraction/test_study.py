"""The grid of one job, its entry scripts on a tiny encoder, and random embeddings on the real sets."""

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.material import minilm
from tests.support import toys
from tests.support.evaluation_jobs import dataset as written
from tests.support.evaluation_jobs import made, run
from tests.support.local_datasets import dataset
from tests.support.snakemake_plans import ROOT, settings_with
from workflow_scripts.columns import EXTRACTION, LABELLED, PAIRS, SENTENCES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.base import Task
from workflow_scripts.extraction.representations import TableVectors, Tokens, random_tables
from workflow_scripts.extraction.study import (
    ReadyRepresentation,
    evaluate,
    plan,
    sentence_vectors,
    texts_of,
    token_weights,
)
from workflow_scripts.extraction.vocabulary import read_vocabulary
from workflow_scripts.graph.extraction import job_settings, wikitext_settings
from workflow_scripts.graph.slices import as_json
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.provenance.artefacts import read_record, read_table, writing_model_folder
from workflow_scripts.settings.extraction import Block, Idf, RandomRepresentation

DATA = os.environ.get("SEMBLANCE_DATA")
PAPER = settings_with("config/config.yaml").extraction
BIASES = ROOT / "resources/tokens/bert.json"
TEXTS = toys.sentences(60, seed=3)


def load_sts(name, pairs):
    return sts.load(name, pairs, sts.Config(datasets=[name], max_tokens=32))


def study(representations, **axes):
    """The paper's definitions with one block."""
    block = {
        "kinds": ["sts", "clustering", "transfer", "geometry", "isotropy"], "representations": representations,
        "mixing_weights": [0], "layers": ["last"], "weightings": ["avg"], "postprocessings": ["none"],
    }  # fmt: skip
    return PAPER.model_copy(update={"blocks": [Block(**block | axes)]})


def plain(settings):
    """Settings as a job reads them."""
    return json.loads(as_json(settings))


def settings_of(extraction, representation):
    return job_settings(extraction, "sts", representation)


# The jobs in their order, on a tiny encoder.

GRID = {
    "mixing_weights": [0, 0.5, 1],
    "layers": ["0", "1+last"],
    "weightings": ["avg", "idf_wikitext", "idf_task", "unbiased"],
    "postprocessings": ["none", "normalise", "quantile_uniform_wikitext", "zscore"],
}


@pytest.fixture(scope="module")
def place(tiny_bert, tmp_path_factory):
    """A folder with an encoder, a corpus, its averages and document frequencies, and what Wikitext taught."""
    folder = tmp_path_factory.mktemp("extraction")
    with writing_model_folder(folder / "encoder", made(folder / "encoder")) as place:
        toys.write_model(place, "bert")
    sentences = [{"sentence": text, "document": n, "position": 0} for n, text in enumerate(TEXTS)]
    corpus = written(folder, "corpus", SENTENCES, sentences)
    encoder = folder / "encoder/record.json"
    averages = {
        "dataset": "corpus",
        "max_sentences": None,
        "max_tokens": 32,
        "precision": "float32",
        "block": 16,
        "label": "toy averages",
    }
    run(
        "average_tokens", {"averages": averages}, {},
        encoder=encoder, sentences=corpus, averages=folder / "averages.parquet", gpu=0,
    )  # fmt: skip
    wikitext = {"wikitext": {"dataset": "corpus", "max_sentences": 40, "max_tokens": 32, "label": None}}
    run(
        "count_tokens", wikitext, {"vocabulary": "pieces"},
        sentences=corpus, encoder=encoder, words=[], documents=folder / "documents.parquet",
    )  # fmt: skip
    run(
        "fit_wikitext", wikitext | plain(wikitext_settings(study(["plain"], **GRID), "plain")), {"representation": "plain"},
        encoder=encoder, biases=BIASES, sentences=corpus, words=[], documents=folder / "documents.parquet",
        averages=folder / "averages.parquet", fitted=folder / "plain.parquet", scores=folder / "isotropy.parquet",
        gpu=0,
    )  # fmt: skip
    return folder


def extract(place, kind, suite, dataset, out, task="toy", extraction=None):
    run(
        "extract_scores",
        {"job": plain(job_settings(extraction or study(["plain"], **GRID), kind, "plain")), "suite": suite | {"max_tokens": 32}},
        {"kind": kind, "representation": "plain", "task": task},
        encoder=place / "encoder/record.json", biases=BIASES, dataset=dataset, words=[],
        documents=place / "documents.parquet", averages=place / "averages.parquet",
        fitted=place / "plain.parquet", scores=out, gpu=0,
    )  # fmt: skip
    return read_table(out, EXTRACTION).to_pylist()


PAIR_ROWS = [
    {"subset": "ab"[n % 2], "sentence1": one, "sentence2": two, "score": float(n % 6)}
    for n, (one, two) in enumerate(zip(TEXTS[:30], TEXTS[30:], strict=True))
]
CLASS_ROWS = [
    {"split": "", "text1": text, "text2": None, "label": f"{n % 2}"} for n, text in enumerate(TEXTS)
]
CELLS = 3 * 2 * 4 * 4
AXES = ("mixing_weight", "layers", "weighting", "postprocess")
MEASURE = {"dataset": "toy", "comparison": "at_least", "threshold": 5, "normalise": False}
STS = {"datasets": ["toy"]}


@pytest.mark.parametrize(
    ("kind", "suite", "metric", "aggregation"),
    [
        ("sts", STS, "spearman", "all"),
        ("clustering", {"datasets": ["toy"], "seeds": 2, "n_init": 1, "label": None}, "accuracy", "mean"),
        ("geometry", {"positives": {"toy": MEASURE}}, "alignment", ""),
    ],
)
def test_every_kind_scores_every_cell_of_its_grid(place, tmp_path, kind, suite, metric, aggregation):
    form, rows = (LABELLED, CLASS_ROWS) if kind == "clustering" else (PAIRS, PAIR_ROWS)
    found = extract(place, kind, suite, written(tmp_path, "toy", form, rows), tmp_path / "scores.parquet")
    found = [row for row in found if (row["metric"], row["aggregation"]) == (metric, aggregation)]
    assert len({tuple(row[axis] for axis in AXES) for row in found}) == len(found) == CELLS
    assert all(row["value"] is not None and row["kind"] == kind for row in found)
    assert [*map(str, read_record(tmp_path / "scores.parquet").labels)] == ["toy averages"]


def test_isotropy_is_measured_on_wikitext_alone(place):
    rows = read_table(place / "isotropy.parquet", EXTRACTION).to_pylist()
    assert len(rows) == CELLS
    assert {(row["metric"], row["n"]) for row in rows} == {("isoscore", 40)}
    assert all(0 <= row["value"] <= 1 for row in rows)


def test_a_dataset_that_is_not_there_is_one_gap(place, tmp_path):
    (row,) = extract(place, "sts", STS, written(tmp_path, "toy", PAIRS), tmp_path / "sts.parquet")
    assert row["value"] is None
    assert row["note"].startswith("no source")


def test_a_cell_does_not_depend_on_what_else_a_job_asks_for(place, tmp_path):
    """One pass for the whole grid gives what a job of one cell gives."""
    pairs = written(tmp_path, "toy", PAIRS, PAIR_ROWS)
    axes = {
        "layers": ["1+last"],
        "mixing_weights": [0.5],
        "weightings": ["idf_task"],
        "postprocessings": ["zscore"],
    }
    one = study(["plain"], **axes)
    whole = extract(place, "sts", STS, pairs, tmp_path / "whole.parquet")
    alone = extract(place, "sts", STS, pairs, tmp_path / "one.parquet", extraction=one)
    same = [row for row in whole if all(row[axis] == alone[0][axis] for axis in AXES)]
    assert len(alone) == len(same) > 4
    for ours, theirs in zip(alone, same, strict=True):
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-5)


# Random embeddings, which need no weights.


def random_study(weightings, draws=1, postprocessings=("none",), width=768):
    extraction = study(
        ["random"], layers=["static"], weightings=list(weightings), postprocessings=list(postprocessings)
    )
    random = PAPER.representations["random"].model_copy(update={"draws": draws, "width": width})
    defined = PAPER.representations | {"random": random}
    return settings_of(extraction.model_copy(update={"representations": defined}), "random")


def opened_random(settings):
    tokenizer = load_tokenizer(minilm())
    vocabulary = read_vocabulary(tokenizer, **json.loads(BIASES.read_text()))
    tables = random_tables(settings.representation, len(vocabulary.tokens))
    return ReadyRepresentation(
        TableVectors(lambda texts, most: tokenise(tokenizer, texts, most), tables), vocabulary, None, 0
    )


def spearman_of(name, *weightings):
    settings = random_study(weightings)
    found = evaluate(
        settings, plan(settings, 0), load_sts(name, dataset(name)), 512, opened_random(settings), {}
    )
    return {
        key.weighting: 100 * score.value
        for key, _, score in found
        if (score.aggregation, score.metric) == ("all", "spearman")
    }


@pytest.mark.skipif(not DATA, reason="SEMBLANCE_DATA is not set: the STS sets are not here")
def test_random_embeddings_come_near_the_bag_of_wordpieces():
    """O-84 to O-86: within 1.5 of the limit of infinite width. The paper's idf^T row (67.0) does not agree with its
    Equation 4 (F9); log(tokens / df) comes nearer.
    """
    found = spearman_of("stsb_test", "avg_without_specials", "unbiased", "idf_task", "idf_task_tokens")
    assert found["avg_without_specials"] == pytest.approx(47.0, abs=1.5)
    assert found["unbiased"] == pytest.approx(66.9, abs=1.5)
    assert found["idf_task"] == pytest.approx(70.1, abs=1.5)
    assert found["idf_task_tokens"] < found["idf_task"] - 2


@pytest.mark.skipif(not DATA, reason="SEMBLANCE_DATA is not set: the STS sets are not here")
def test_every_sample_as_a_document_is_nearer_to_the_printed_row():
    """Tables 9 and 11, RE, in the row that follows from a task's own documents (idf^W)."""
    found = spearman_of("sts15", "idf_task", "idf_task_repeated")
    assert abs(found["idf_task"] - 74.4) + 0.1 < abs(found["idf_task_repeated"] - 74.4)


def test_scores_of_a_grid_are_those_of_scikit_learn_and_scipy():
    """Vectors of all representations, compared with independent code for the remaining steps."""

    def without(principal, vectors):
        centred = vectors - principal.mean_
        return centred - centred @ principal.components_.T @ principal.components_

    def by_rank(fitted_on, vectors):
        """Fewer texts than quantiles: places among them, the middle of equal ones, but for the ends."""
        places = (rankdata(fitted_on, axis=0) - 1) / (len(fitted_on) - 1)
        places[fitted_on == fitted_on.max(axis=0)] = 1
        places[fitted_on == fitted_on.min(axis=0)] = 0
        return places[[list(texts.occurrences_N).index(number) for number in range(len(vectors))]]

    shapes = {
        "none": lambda fitted_on, vectors: vectors,
        "normalise": lambda fitted_on, vectors: normalize(vectors),
        "zscore": lambda fitted_on, vectors: StandardScaler().fit(fitted_on).transform(vectors),
        "whiten": lambda fitted_on, vectors: PCA(whiten=True).fit(fitted_on).transform(vectors),
        "abtt2": lambda fitted_on, vectors: without(PCA(2).fit(fitted_on), vectors),
        "quantile_uniform": by_rank,
    }  # fmt: skip

    settings = random_study(["avg", "unbiased"], 2, shapes, width=12)  # fewer than texts: all directions vary
    pairs = pa.Table.from_pylist([*PAIR_ROWS, *PAIR_ROWS[:5]], schema=PAIRS)
    task = load_sts("toy", pairs)
    texts = texts_of(task, by_group=False)
    opened = opened_random(settings)
    cells = plan(settings, 0)
    made = {one.key: one.vectors_UD for one in sentence_vectors(settings, cells, texts, 32, opened)}
    found = list(evaluate(settings, cells, task, 32, opened, {}))
    subset, gold = pairs["subset"].to_numpy(), pairs["score"].to_numpy()
    left, right = texts.columns
    parts = {"all": slice(None)} | {f"subset:{name}": subset == name for name in "ab"}
    seen = 0
    for key, name, score in found:
        if score.aggregation in parts:
            vectors = made[key].astype(np.float64)
            unit = normalize(shapes[name](vectors[texts.occurrences_N], vectors))
            part = parts[score.aggregation]
            cosines = (unit[left] * unit[right]).sum(axis=1)[part]
            peer = {"spearman": spearmanr, "pearson": pearsonr}[score.metric](gold[part], cosines).statistic
            assert score.value == pytest.approx(peer, abs=1e-12 if score.metric == "spearman" else 1e-7)
            seen += 1
    assert seen == 2 * 2 * len(shapes) * len(parts) * 2


OF_2, OF_4, LOG3 = np.log(3 / 2), np.log(5 / 4), np.log(3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # [CLS] the river king town [MASK] [SEP], each by the logarithm of documents over those that contain it
        ({}, [0, LOG3, LOG3, OF_2, 0, LOG3, 0]),  # "the" and [MASK] are in no text
        ({"unseen": "zero"}, [0, 0, LOG3, OF_2, 0, 0, 0]),
        ({"document_text": "templated"}, [0, 0, LOG3, OF_2, 0, 0, 0]),  # in every text
        ({"document_text": "templated", "repeated": "each"}, [0, 0, np.log(5), OF_4, 0, 0, 0]),
        ({"document_text": "templated", "documents": "subset"}, [0, 0, np.log(2), 0, 0, 0, 0]),
        (
            {"document_text": "templated", "documents": "subset", "repeated": "each"},
            [0, 0, np.log(4), 0, 0, 0, 0],
        ),
    ],
)
def test_documents_of_a_task_are_its_texts(tiny_bert, changes, expected):
    """F7, F8 and how often a repeated text counts, by hand: the second text occurs three times, the third is the only
    one of its subset.
    """
    tokenizer = load_tokenizer(tiny_bert)
    texts = ["river king town", "king town", "town"]
    prompted = [f"the {text} {tokenizer.mask_token}" for text in texts]
    tokens = Tokens(tokenise(tokenizer, texts, 16), tokenise(tokenizer, prompted, 16))
    occurring = [texts[number] for number in (0, 1, 1, 1, 2)]
    numbered = texts_of(Task([occurring], lambda _: [], groups=[*"aaaab"]), by_group=True)
    block = {
        "kind": "idf", "label": "x", "documents": "task", "document_text": "raw", "formula": "documents", "unseen": "max",
        "repeated": "once",
    }  # fmt: skip
    opened = ReadyRepresentation(None, read_vocabulary(tokenizer, [], []), None, 2)
    found = token_weights([("idf", Idf(**block | changes))], tokens, numbered, opened)["idf"]
    np.testing.assert_allclose(found.weights_F[:7], np.array(expected) / sum(expected), rtol=1e-6)


def test_a_subset_by_itself_scores_as_with_an_idf_of_its_own():
    settings = random_study(["idf_task", "idf_task_subset"], width=12)
    opened, cells = opened_random(settings), plan(settings, 0)

    def scores(rows):
        task = load_sts("toy", pa.Table.from_pylist(rows, schema=PAIRS))
        return {
            (key.weighting, score.aggregation, score.metric): score.value
            for key, _, score in evaluate(settings, cells, task, 32, opened, {})
        }

    rows = [*PAIR_ROWS, *PAIR_ROWS[:5]]
    whole, part = scores(rows), scores([row for row in rows if row["subset"] == "a"])
    assert whole["idf_task_subset", "subset:a", "pearson"] == part["idf_task", "all", "pearson"]
    assert whole["idf_task", "subset:a", "pearson"] != part["idf_task", "all", "pearson"]


def test_random_vectors_have_the_lengths_of_their_distribution():
    """O-83: E|v| is .1 sqrt(768); ten tokens average to .8764; texts that share m of n tokens have cosine m/n."""
    representation = RandomRepresentation(kind="random", width=768, sd=0.1, draws=2, seed=0)
    one, other = random_tables(representation, 6000)
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(one, random_tables(representation.model_copy(update={"draws": 1}), 6000)[0])
    assert np.linalg.norm(one, axis=1).mean() == pytest.approx(2.7713, abs=0.01)
    means = one.reshape(600, 10, 768).mean(axis=1)
    assert np.linalg.norm(means, axis=1).mean() == pytest.approx(0.8764, abs=0.01)
    shared = one[:3000].reshape(300, 10, 768)
    mixed = np.concatenate([shared[:, :4], one[3000:4800].reshape(300, 6, 768)], axis=1)
    cosines = (
        (shared.mean(1) * mixed.mean(1)).sum(1)
        / np.linalg.norm(shared.mean(1), axis=1)
        / np.linalg.norm(mixed.mean(1), axis=1)
    )
    assert cosines.mean() == pytest.approx(0.4, abs=0.01)
    assert cosines.std() == pytest.approx(0.036, abs=0.01)


def test_notes_on_vectors_reach_every_score_of_a_task():
    """Ten texts with 768 features: whitened, they have fixed distances."""
    settings = random_study(["avg"], postprocessings=("none", "whiten"))
    task = load_sts("toy", pa.Table.from_pylist(PAIR_ROWS[:5], schema=PAIRS))
    found = list(evaluate(settings, plan(settings, 0), task, 32, opened_random(settings), {}))
    notes = {name: {score.note for _, other, score in found if other == name} for name in ("none", "whiten")}
    assert notes["none"] == {None}
    assert notes["whiten"] == {
        "10 different vectors whitened in 9 directions: distances do not depend on the vectors"
    }


def test_a_text_without_tokens_is_refused():
    """A tokeniser without special tokens makes none of an empty text."""
    settings = random_study(["avg"])
    nothing = TokenisedText(np.array([5, 6], np.int32), np.array([0, 2, 2]), 0)
    opened = opened_random(settings)._replace(
        vectors=TableVectors(lambda texts, most: nothing, random_tables(settings.representation, 9))
    )
    texts = texts_of(Task([["a b", ""]], list), by_group=False)
    with pytest.raises(DataError, match=r"'' has no token\. Remove it from the data"):
        list(sentence_vectors(settings, plan(settings, 0), texts, 32, opened))
