"""How fast a card trains and encodes, against sentence-transformers and a bare loop on the same card, in turns.

All train the same modules (for [CLS], the head that SimCSE trains) on the same sentences, from texts to updated
weights: tokenising, forward, backward, clipping, fused AdamW with a linear schedule. Ours is the training job's loop in
its deterministic mode; the peers have no need of it. The bare loop calls the encoder twice, as sentence-transformers'
loss does, without a trainer around it.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import sentence_transformers as st
import torch
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import nn
from transformers import PrinterCallback
from workflow_scripts.gpu_check.lines import Line

from tests.material import Size, blocks, sentences, training
from workflow_scripts.methods import simcse
from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.methods.simcse import Config
from workflow_scripts.settings.training import Training
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import prepare, train
from workflow_scripts.training.sampler import Sampler

PART = "fast"
POOLERS = {"cls": "cls", "avg": "mean"}
"""Our name to sentence-transformers'."""
ROUNDS = 5
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "RTX 4090": 165e12}
"""Dense bfloat16 operations a second, by NVIDIA's data sheets."""

Way = Callable[[], object]


class Step(NamedTuple):
    """What all ways train on, and how."""

    folder: Path
    """Of the encoder."""
    texts: list[str]
    settings: Training
    method: Contrastive
    pooler: str
    device: torch.device

    @property
    def steps(self) -> int:
        """As many as the texts are batches."""
        return len(self.texts) // self.settings.batch_size


def recipe(pooler: str) -> Contrastive:
    """SimCSE's settings, read by ``pooler``."""
    block = blocks()["simcse"]
    return Config.parse(block | {"readout": block["readout"] | {"pooler": pooler}}, "methods.simcse")


def ours(step: Step, *, deterministic: bool = True) -> Way:
    """The training job between loading its encoder and writing it."""
    prepare(step.settings, seed=1)
    encoder = simcse.build(step.method, load_backbone(step.folder, **step.method.overrides))
    tokenizer = load_tokenizer(step.folder)
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
        torch.use_deterministic_algorithms(False)  # which the peers do without

    return work


def peer(step: Step) -> st.SentenceTransformer:
    """The same encoder, readout and head, of sentence-transformers' modules."""
    transformer = Transformer(str(step.folder), max_seq_length=step.settings.max_tokens)
    width = transformer.get_embedding_dimension()
    modules = [transformer, Pooling(width, POOLERS[step.pooler])]
    if step.method.readout.has_head:
        modules.append(Dense(width, width, activation_function=nn.Tanh()))
    return st.SentenceTransformer(modules=modules, device=str(step.device))


def trainer(step: Step, rounds: int) -> Way:
    """sentence-transformers' trainer on pairs (x, x), the recipe that its documentation gives for SimCSE."""
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
    made = [
        st.SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
        for _round in range(rounds)
    ]
    for one in made:
        one.remove_callback(PrinterCallback)
    return lambda: made.pop().train()


def two_calls(step: Step, compiled_by: str | None = None) -> Way:
    """The loop that one writes by hand, its encoder as it is or compiled by a backend of ``torch.compile``."""
    model, settings = peer(step), step.settings
    if compiled_by:
        model.compile(backend=compiled_by, dynamic=True)

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
                name: one.to(step.device) for name, one in features.items() if isinstance(one, torch.Tensor)
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


def check(folder: Path, device: torch.device, size: Size, steps: int) -> Iterator[Line]:
    """Steps on [CLS] and on averages, then encoding."""
    for pooler in POOLERS:
        settings = training(size, max_steps=steps, precision="bfloat16", checkpoint_minutes=60)
        step = Step(
            folder / "bert", sentences(steps * size.batch, size), settings, recipe(pooler), pooler, device
        )
        ways = {"ours": ours(step), "trainer": trainer(step, ROUNDS + 1), "two calls": two_calls(step)}
        if device.type == "cuda":
            torch._dynamo.config.suppress_errors = True  # what fails runs as it is
            ways["two calls, compiled"] = two_calls(step, "inductor")
        seconds = in_turns(ways, device)
        yield from _lines(f"a step on {pooler}", seconds, {"trainer": 2.0 if pooler == "cls" else 1.5})
        mine = median(seconds["ours"]) / steps
        yield Line(PART, f"steps a second on {pooler}", f"{1 / mine:.1f}", "", "measured")
        yield _share_of_peak(pooler, step, size, mine)
    yield from _encoding(folder, device, size, steps)


def _share_of_peak(pooler: str, step: Step, size: Size, seconds: float) -> Line:
    """Tokens a second of both views, and their share of the card's peak, at six operations a weight and token."""
    name = torch.cuda.get_device_name(step.device) if step.device.type == "cuda" else "a CPU"
    peak = next((peak for card, peak in PEAKS.items() if card in name), None)
    weights = size.layers * (4 * size.width**2 + 2 * size.width * size.feed_forward)
    lengths = [min(len(text.split()) + 2, size.tokens) for text in step.texts[: size.batch]]
    tokens = 2 * sum(lengths)
    share = (
        f"{6 * weights * tokens / seconds / peak:.0%} of {name}'s peak"
        if peak
        else f"no peak is known of {name}"
    )
    return Line(PART, f"tokens a second on {pooler}", f"{tokens / seconds:,.0f}, {share}", "", "measured")


def _encoding(folder: Path, device: torch.device, size: Size, steps: int) -> Iterator[Line]:
    texts = sentences(20_000 if device.type == "cuda" else steps * size.batch, size, seed=5)
    settings = training(size)
    step = Step(folder / "bert", texts, settings, recipe("avg"), "avg", device)
    encoder = simcse.build(step.method, load_backbone(step.folder)).to(device)
    tokenizer, model = load_tokenizer(step.folder), peer(step)
    ways: Mapping[str, Way] = {
        "ours": lambda: encode(encoder, tokenizer, texts, size.tokens),
        "sentence-transformers": lambda: model.encode(texts, batch_size=128, show_progress_bar=False),
    }
    yield from _lines(
        f"encoding {len(texts):,} sentences", in_turns(ways, device), {"sentence-transformers": 1.5}
    )


def in_turns(ways: Mapping[str, Way], device: torch.device, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of each way in each round, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def _lines(what: str, seconds: Mapping[str, list[float]], wanted: Mapping[str, float]) -> Iterator[Line]:
    for name in seconds:
        if name == "ours":
            continue
        ratios = [theirs / mine for theirs, mine in zip(seconds[name], seconds["ours"], strict=True)]
        found = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) times as fast as {name}"
        yield Line(PART, what, found, f"aim: {wanted[name]:g}" if name in wanted else "", "measured")
