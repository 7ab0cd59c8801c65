"""A SimCSE step against sentence-transformers' trainer: same encoder, sentences, batch, loss and optimiser."""

import argparse
import tempfile
import time
from pathlib import Path

import sentence_transformers as st
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from benchmarks.material import minilm, wikipedia_sentences
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.readouts import pooling as pooling_readout
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import train
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.settings import Training

STEPS, BATCH, MAX_TOKENS = 8, 32, 32
ROUNDS = 2
SETTINGS = Training(
    epochs=None, max_steps=STEPS, batch_size=BATCH, max_tokens=MAX_TOKENS, learning_rate=3e-5, schedule="linear",
    rate_at_end=0.0, warmup_steps=0, weight_decay=0.0, max_gradient_norm=1.0, precision="float32",
    checkpoint_every=1000, gpus=1, cpu_threads=2,
)  # fmt: skip
METHOD = simcse.Config(
    module="simcse",
    readout=pooling_readout.Config(kind="pooling", pooler="avg", layers=None),
    head_at_test=False,
    temperature=0.05,
    dropout=None,
)


def ours(sentences: list[str]) -> float:
    """Seconds of our loop, tokenising included."""
    encoder = simcse.build(METHOD, load_backbone(minilm()))
    tokenizer = load_tokenizer(minilm())
    started = time.perf_counter()
    sampler = Sampler(len(sentences), BATCH, seed=1)
    objective = simcse.Objective(
        METHOD, encoder, TrainingData({"anchor": sentences}, tokenizer, MAX_TOKENS, sampler)
    )
    with tempfile.TemporaryDirectory() as folder:
        train(objective, SETTINGS, STEPS, development=None, checkpoints=Path(folder), fingerprint="")
    return time.perf_counter() - started


def theirs(sentences: list[str]) -> float:
    """Seconds of their trainer on pairs (x, x), the recipe its documentation gives for SimCSE."""
    model = st.SentenceTransformer(str(minilm()), device="cpu")
    model.max_seq_length = MAX_TOKENS
    with tempfile.TemporaryDirectory() as folder:
        arguments = st.SentenceTransformerTrainingArguments(
            folder, max_steps=STEPS, per_device_train_batch_size=BATCH, learning_rate=3e-5, warmup_steps=0,
            report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True, logging_strategy="no",
        )  # fmt: skip
        data = Dataset.from_dict({"anchor": sentences, "positive": sentences})
        loss = MultipleNegativesRankingLoss(model, scale=20.0)
        trainer = st.SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
        started = time.perf_counter()
        trainer.train()
        return time.perf_counter() - started


def main() -> None:
    """Train in turns, print the ratio of the fastest rounds."""
    torch.set_num_threads(2)
    sentences = wikipedia_sentences(STEPS * BATCH)
    rounds = [(ours(sentences), theirs(sentences)) for _ in range(ROUNDS)]
    mine, peer = (min(times) for times in zip(*rounds, strict=True))
    print(
        f"bench training_step {peer / mine:.2f} times-as-fast semblance-against-sentence-transformers-trainer"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
