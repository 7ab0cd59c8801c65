"""A training step of SimCSE as users run it, against sentence-transformers' trainer and against a bare loop.

All three train the same modules (for [CLS], the head that SimCSE trains) on the same sentences, from texts to updated
weights: tokenising, forward, backward, clipping, fused AdamW with a linear schedule. Loading the encoder and making
sentence-transformers' trainer are left out. Ours is the training job's loop in its deterministic mode; the peers have
no need of it, and what it costs has a row of its own. The bare loop calls the encoder twice, as sentence-transformers'
loss does, without a trainer around it.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import sentence_transformers as st
import torch
import yaml
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.harness import THREADS, Measured, Timing, ratios, run
from benchmarks.material import minilm, wikipedia_sentences
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.training import Training
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import prepare, train
from workflow_scripts.training.sampler import Sampler

CODE = (
    "config/methods.yaml",
    "workflow_scripts/losses",
    "workflow_scripts/methods/base.py",
    "workflow_scripts/methods/simcse.py",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
POOLERS = {"cls": "cls", "avg": "mean"}
"""Our name to sentence-transformers'."""
SHARES = {
    "products": r"aten::(addmm|mm|bmm|baddbmm|matmul|linear|mkldnn.*|_mkl.*)$",
    "attention": r"aten::.*(scaled_dot_product|softmax).*",
    "dropout": r"aten::(.*dropout.*|bernoulli_.*|bitwise_.*|__rshift__|ge)$",
    "embedding and its gradient": r"aten::(embedding.*|index_select|index_add.*|index_put.*)",
    "zero-filling": r"aten::(zero_|zeros.*|fill_)",
    "activations and norms": r"aten::(gelu.*|native_layer_norm.*|tanh.*)",
    "optimiser and clipping": r"(aten::(_fused_adam.*|_foreach_.*|linalg_vector_norm)|Optimizer\..*)",
    "copies": r"aten::(copy_|cat|index|clone|repeat|contiguous)$",
}
"""What operations of a step are for, by their names."""


class Step:
    """What all ways train on, and how."""

    def __init__(self, pooler: str, *, small: bool) -> None:
        self.steps, batch = (1, 8) if small else (3, 64)
        block = yaml.safe_load((ROOT / "config/config.yaml").read_text("utf-8"))["training"]
        config = {name: value for name, value in block.items() if name in Training.model_fields}
        changes = {"epochs": None, "max_steps": self.steps, "batch_size": batch, "cpu_threads": THREADS}
        self.settings = Training.parse(config | changes, "training")
        self.sentences = wikipedia_sentences(self.steps * batch)
        block = yaml.safe_load((ROOT / "config/methods.yaml").read_text("utf-8"))["methods"]["simcse"]
        block["readout"]["pooler"] = pooler
        self.method = MethodConfig.parse(block, "methods.simcse")
        self.pooler = pooler


def ours(step: Step, *, deterministic: bool = True) -> Callable[[], None]:
    """The training job between loading its encoder and writing it."""
    prepare(step.settings, seed=1)
    encoder = simcse.build(step.method, load_backbone(minilm(), **step.method.overrides))
    tokenizer = load_tokenizer(minilm())
    torch.use_deterministic_algorithms(False)

    def work() -> None:
        prepare(step.settings, seed=1)
        torch.use_deterministic_algorithms(deterministic)
        sampler = Sampler(len(step.sentences), step.settings.batch_size, seed=1)
        data = TrainingData({"anchor": step.sentences}, tokenizer, step.settings.max_tokens, sampler)
        objective = simcse.Objective(step.method, encoder, data)
        with tempfile.TemporaryDirectory() as folder:
            train(
                objective,
                step.settings,
                step.steps,
                seed=1,
                development=None,
                checkpoints=Path(folder),
                fingerprint="",
            )
        torch.use_deterministic_algorithms(False)  # which the peers do without

    return work


def peer(step: Step) -> st.SentenceTransformer:
    """The same encoder, readout and head, of sentence-transformers' modules."""
    transformer = Transformer(str(minilm()), max_seq_length=step.settings.max_tokens)
    width = transformer.get_embedding_dimension()
    modules = [transformer, Pooling(width, POOLERS[step.pooler])]
    if step.method.readout.has_head:
        modules.append(Dense(width, width, activation_function=nn.Tanh()))
    return st.SentenceTransformer(modules=modules, device="cpu")


def trainer(step: Step, rounds: int) -> Callable[[], None]:
    """sentence-transformers' trainer on pairs (x, x), the recipe that its documentation gives for SimCSE."""
    model = peer(step)
    settings = step.settings
    arguments = st.SentenceTransformerTrainingArguments(
        tempfile.gettempdir(), max_steps=step.steps, per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate, lr_scheduler_type=settings.schedule, warmup_steps=0,
        weight_decay=settings.weight_decay, max_grad_norm=settings.max_gradient_norm, optim="adamw_torch_fused",
        report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    data = Dataset.from_dict({"anchor": step.sentences, "positive": step.sentences})
    loss = MultipleNegativesRankingLoss(model, scale=1 / step.method.temperature)
    made = [
        st.SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
        for _round in range(rounds)
    ]
    return lambda: made.pop().train()


def two_calls(step: Step) -> Callable[[], None]:
    """The loop that one writes by hand."""
    model = peer(step)
    settings = step.settings

    def work() -> None:
        model.train()
        optimiser = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, total_iters=step.steps)
        order = torch.randperm(len(step.sentences)).split(settings.batch_size)
        for rows in order:
            features = model.preprocess([step.sentences[row] for row in rows])
            first, second = (
                nn.functional.normalize(model(dict(features))["sentence_embedding"]) for _call in range(2)
            )
            cosines = first @ second.T / step.method.temperature
            nn.functional.cross_entropy(cosines, torch.arange(len(rows))).backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.max_gradient_norm)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()

    return work


def measure(timing: Timing) -> Iterator[Measured]:
    """Train with the pooler of SimCSE's paper, and with the mean of the tokens."""
    for pooler in POOLERS:
        step = Step(pooler, small=timing.small)
        ways = {
            "semblance": ours(step),
            "any algorithms": ours(step, deterministic=False),
            "trainer": trainer(step, timing.rounds + 1),
            "two calls": two_calls(step),
        }
        seconds = timing.interleaved(ways)
        for way, against in (
            ("trainer", "semblance-against-sentence-transformers-trainer"),
            ("two calls", "semblance-against-a-bare-loop-of-two-calls"),
        ):
            name = f"training_step_{pooler}" + ("" if way == "trainer" else "_bare")
            yield Measured(name, ratios(seconds, way, "semblance"), "times-as-fast", against)
        yield Measured(
            f"training_step_{pooler}_deterministic",
            ratios(seconds, "semblance", "any algorithms"),
            "times-the-time",
            "deterministic-algorithms-against-any",
        )


def explain(timing: Timing) -> None:
    """Print what a step's time is spent on, ours and the bare loop's."""
    for pooler in POOLERS:
        step = Step(pooler, small=timing.small)
        for name, work in {"semblance": ours(step), "two calls": two_calls(step)}.items():
            work()
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                work()
            print(f"{pooler}, {name}: {shares(profiled)}", file=sys.stderr)


def shares(profiled: profile) -> str:
    """The shares of ``SHARES``, and the largest operations that are in none of them."""
    spent = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    whole = sum(spent.values())
    rest = dict(spent)
    parts = []
    for part, pattern in SHARES.items():
        own = [rest.pop(key) for key in list(rest) if re.match(pattern, key)]
        parts.append(f"{part} {sum(own) / whole:.1%}")
    largest = sorted(rest.items(), key=lambda item: -item[1])[:6]
    others = ", ".join(f"{key} {taken / whole:.1%}" for key, taken in largest)
    return f"{', '.join(parts)}; the rest {sum(rest.values()) / whole:.1%}: {others}"


if __name__ == "__main__":
    run(__doc__, measure, explain)
