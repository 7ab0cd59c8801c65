"""STS13 and STS-B test, from texts to correlations, against mteb and sentence-transformers on the same files.

The benchmark is skipped if SEMBLANCE_DATA is not set.
"""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import mteb
import pyarrow as pa
import sentence_transformers as st
import yaml
from datasets import Dataset as HubDataset
from datasets import DatasetDict
from mteb.abstasks import AbsTaskSTS
from mteb.models import SentenceTransformerEncoderWrapper
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import minilm
from workflow_scripts.data.datasets import load
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.task_by_task import SharedTexts
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.readouts import Pooling
from workflow_scripts.settings.sources import DatasetBlock

CODE = (
    "workflow_scripts/evaluation/sts.py",
    "workflow_scripts/evaluation/correlation.py",
    "workflow_scripts/evaluation/task_by_task.py",
    "workflow_scripts/models",
)
MAX_TOKENS = 256
TASKS = {"sts13": "STS13", "stsb_test": "STSBenchmark"}
"""Names of tasks in mteb, by our names."""
SCORES_AGREE = 1e-4


def measure(timing: Timing) -> Iterator[Measured]:
    """Check that the scores agree, then yield the ratios of evaluation."""
    if not (folder := os.environ.get("SEMBLANCE_DATA")):
        print("# sts_evaluation skipped: SEMBLANCE_DATA is not set.", file=sys.stderr)
        return
    tables = {name: read(name, Path(folder)).slice(0, 40 if timing.small else None) for name in TASKS}
    peer = st.SentenceTransformer(str(minilm()), device="cpu")
    peer.max_seq_length = MAX_TOKENS
    tasks = [local_task(name, table) for name, table in tables.items()]
    evaluators = {name: evaluator(table) for name, table in tables.items()}
    pooling = Pooling(kind="pooling", pooler="avg", layers=None)
    encoder = SentenceEncoder(
        load_backbone(minilm()), load_tokenizer(minilm()), pooling, head=False, head_at_test=False
    )
    vectors_of = partial(encoder.encode, max_tokens=MAX_TOKENS)

    def ours() -> dict[str, float]:
        config = sts.Config(datasets=list(tables), max_tokens=MAX_TOKENS)
        tasks = {name: sts.load(name, table, config) for name, table in tables.items()}
        texts = SharedTexts(vectors_of, {name: task.columns for name, task in tasks.items()})
        scores = [score for name, task in tasks.items() for score in task.score(*texts.vectors(name))]
        return {s.task: s.value for s in scores if (s.aggregation, s.metric) == ("all", "spearman")}

    ways = {
        "semblance": ours,
        "mteb": lambda: by_mteb(peer, tasks),
        "sentence-transformers": lambda: by_sentence_transformers(peer, evaluators),
    }
    scores = [way() for way in ways.values()]
    for task in TASKS:
        assert max(each[task] for each in scores) - min(each[task] for each in scores) < SCORES_AGREE, scores
    seconds = timing.interleaved(ways)
    for name in ("mteb", "sentence-transformers"):
        label = f"sts_evaluation_{name.replace('-', '_')}"
        yield Measured(
            label, ratios(seconds, name, "semblance"), "times-as-fast", f"semblance-against-{name}"
        )


def read(name: str, folder: Path) -> pa.Table:
    """Return a dataset as read by the pipeline, checked against its contract."""
    block = yaml.safe_load((ROOT / "config/datasets.yaml").read_text("utf-8"))["datasets"][name]
    parsed, _origin = load(name, DatasetBlock.parse(block, f"datasets.{name}"), folder)
    return parsed.table


def columns(table: pa.Table) -> dict[str, list[str] | list[float]]:
    """Return a table's columns, for the peers."""
    return {name: table[name].to_pylist() for name in ("sentence1", "sentence2", "score")}


def local_task(name: str, table: pa.Table) -> AbsTaskSTS:
    """Return a task of mteb with our rows."""
    known = type(mteb.get_task(TASKS[name]))

    class Local(known):  # type: ignore[misc, valid-type]
        def load_data(self, **_: object) -> None:
            self.dataset = DatasetDict({"test": HubDataset.from_dict(columns(table))})
            self.data_loaded = True

    return Local()


def evaluator(table: pa.Table) -> EmbeddingSimilarityEvaluator:
    """Return the evaluator of sentence-transformers for scored pairs."""
    pairs = columns(table)
    return EmbeddingSimilarityEvaluator(
        pairs["sentence1"], pairs["sentence2"], pairs["score"], main_similarity="cosine", write_csv=False
    )


def by_mteb(model: st.SentenceTransformer, tasks: list[AbsTaskSTS]) -> dict[str, float]:
    """Return the Spearman correlation of each task; nothing is cached between calls."""
    results = mteb.evaluate(
        SentenceTransformerEncoderWrapper(model),
        tasks,
        cache=None,
        co2_tracker=False,
        show_progress_bar=False,
        encode_kwargs={"show_progress_bar": False},
    )
    scores = {result.task_name: result.get_score() for result in results.task_results}
    return {name: scores[TASKS[name]] for name in TASKS}


def by_sentence_transformers(
    model: st.SentenceTransformer, evaluators: dict[str, EmbeddingSimilarityEvaluator]
) -> dict[str, float]:
    """Return the Spearman correlation of each task."""
    return {name: judge(model)["spearman_cosine"] for name, judge in evaluators.items()}
