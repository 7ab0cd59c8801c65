"""A step of SimCSE three ways: the training job's loop, sentence-transformers' trainer, and a bare loop.

All train the same modules (for [CLS], the head that SimCSE trains) on the same sentences, from texts to updated
weights: tokenising, forward, backward, clipping, fused AdamW with a linear schedule. Ours is the training job's loop in
its deterministic mode, which the peers do not use. The bare loop calls the encoder twice, as sentence-transformers'
loss does, without a trainer around it.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import sentence_transformers as st
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import nn
from transformers import PrinterCallback

from tests.support.toy_methods import blocks
from workflow_scripts.methods import simcse
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.settings.methods import Contrastive
from workflow_scripts.settings.methods import SimCSE as Config
from workflow_scripts.settings.training import Training
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import prepare, train
from workflow_scripts.training.sampler import Sampler

POOLERS = {"cls": "cls", "avg": "mean"}
"""Names of poolers in sentence-transformers, by our names."""

Way = Callable[[], object]


class Step(NamedTuple):
    """Material and settings of all ways."""

    folder: Path
    """Folder of the encoder."""
    texts: list[str]
    settings: Training
    method: Contrastive
    pooler: str
    device: torch.device

    @property
    def steps(self) -> int:
        """Return the number of steps: one for each batch of the texts."""
        return len(self.texts) // self.settings.batch_size


def recipe(pooler: str) -> Contrastive:
    """Return SimCSE's settings with this pooler."""
    block = blocks()["simcse"]
    return Config.parse(block | {"readout": block["readout"] | {"pooler": pooler}}, "methods.simcse")


def ours(step: Step, *, deterministic: bool = True) -> Way:
    """Return the training job without loading and saving its encoder."""
    prepare(step.settings, seed=1)
    tokenizer = load_tokenizer(step.folder)
    encoder = simcse.build(step.method, tokenizer, load_backbone(step.folder, **step.method.overrides))
    encoder.to(step.device)
    torch.use_deterministic_algorithms(False)

    def work() -> None:
        prepare(step.settings, seed=1)
        torch.use_deterministic_algorithms(deterministic)
        sampler = Sampler(len(step.texts), step.settings.batch_size, seed=1)
        columns, settings = {"anchor": step.texts}, step.settings
        data = TrainingData(columns, tokenizer, settings.max_tokens, sampler, chunk=settings.chunk)
        objective = simcse.Objective(step.method, encoder, data)
        with tempfile.TemporaryDirectory() as folder:
            train(
                objective, step.settings, step.steps, seed=1, development=None, checkpoints=Path(folder), fingerprint=""
            )  # fmt: skip
        torch.use_deterministic_algorithms(False)  # the peers run without them

    return work


def peer(step: Step) -> st.SentenceTransformer:
    """Return the same encoder, readout and head, as modules of sentence-transformers."""
    transformer = Transformer(str(step.folder), max_seq_length=step.settings.max_tokens)
    width = transformer.get_embedding_dimension()
    modules = [transformer, Pooling(width, POOLERS[step.pooler])]
    if step.method.readout.has_head:
        modules.append(Dense(width, width, activation_function=nn.Tanh()))
    return st.SentenceTransformer(modules=modules, device=str(step.device))


def trainer(step: Step, rounds: int) -> Way:
    """Return sentence-transformers' trainer on pairs (x, x), its documented recipe for SimCSE."""
    model, settings = peer(step), step.settings
    arguments = st.SentenceTransformerTrainingArguments(
        tempfile.gettempdir(), max_steps=step.steps, per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate, lr_scheduler_type=settings.schedule, warmup_steps=0,
        weight_decay=settings.weight_decay, max_grad_norm=settings.max_gradient_norm, optim="adamw_torch_fused",
        report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
        use_cpu=step.device.type == "cpu", bf16=settings.precision == "bfloat16",
    )  # fmt: skip
    data = Dataset.from_dict({"anchor": step.texts, "positive": step.texts})
    loss = MultipleNegativesRankingLoss(model, scale=1 / step.method.temperature)
    trainers = [
        st.SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
        for _round in range(rounds)
    ]
    for st_trainer in trainers:
        st_trainer.remove_callback(PrinterCallback)
    return lambda: trainers.pop().train()


def two_calls(step: Step) -> Way:
    """Return a bare loop, written by hand."""
    model, settings = peer(step), step.settings

    def work() -> None:
        model.train()
        optimiser = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, total_iters=step.steps)
        order = torch.randperm(len(step.texts)).view(-1, settings.batch_size)
        for rows in order:
            features = model.preprocess([step.texts[row] for row in rows])
            features = {
                name: value.to(step.device)
                for name, value in features.items()
                if isinstance(value, torch.Tensor)
            }
            with mixed_precision(settings.precision, step.device):
                first, second = (
                    nn.functional.normalize(model(dict(features))["sentence_embedding"]) for _call in range(2)
                )
                cosines = first @ second.T / step.method.temperature
                loss = nn.functional.cross_entropy(cosines, torch.arange(len(rows), device=step.device))
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), settings.max_gradient_norm)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()

    return work
