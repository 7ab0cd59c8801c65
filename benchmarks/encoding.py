"""Encoding of 400 sentences, with and without 200 repeats as in an STS suite, against sentence-transformers."""

from collections.abc import Iterator

import numpy as np
import sentence_transformers as st

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from workflow_scripts.evaluation.task_by_task import SharedTexts
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.readouts import Pooling

MAX_TOKENS = 128
CODE = ("workflow_scripts/models", "workflow_scripts/evaluation/task_by_task.py")


def measure(timing: Timing) -> Iterator[Measured]:
    """Check that the vectors agree, then yield the ratios of encoding from texts to vectors, at batches of 32."""
    unique = wikipedia_sentences(32 if timing.small else 400)
    repeated = unique + unique[: len(unique) // 2]
    readout = Pooling(kind="pooling", pooler="avg", layers=None)
    encoder = SentenceEncoder(
        load_backbone(minilm()), load_tokenizer(minilm()), readout, head=False, head_at_test=False
    )
    peer = st.SentenceTransformer(str(minilm()), device="cpu")
    peer.max_seq_length = MAX_TOKENS

    def ours(texts: list[str]) -> np.ndarray:
        shared = SharedTexts(lambda asked: encoder.encode(asked, MAX_TOKENS), {"task": [texts]})
        return shared.vectors("task")[0]

    def theirs(texts: list[str]) -> np.ndarray:
        return peer.encode(texts, batch_size=32, show_progress_bar=False)

    mine = ours(repeated)
    mine /= np.linalg.norm(mine, axis=1, keepdims=True)  # like the peer's modules
    assert np.abs(mine - theirs(repeated)).max() < 1e-5
    for name, texts in {"encode_unique": unique, "encode_with_repeats": repeated}.items():
        seconds = timing.interleaved(
            {
                "semblance": lambda texts=texts: ours(texts),
                "sentence-transformers": lambda texts=texts: theirs(texts),
            }
        )
        faster = ratios(seconds, "sentence-transformers", "semblance")
        yield Measured(name, faster, "times-as-fast", "semblance-against-sentence-transformers")
