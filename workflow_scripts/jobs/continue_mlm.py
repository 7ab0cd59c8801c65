"""Train an encoder to predict masked words of a corpus, from another's weights or from scratch (rule continue_mlm)."""

import shutil
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from workflow_scripts.columns import SENTENCES
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import read_table, write_table, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.sources import Sizes
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.training.loop import prepare, train, try_again_when_stopped
from workflow_scripts.training.mlm import MaskedLanguageModel, Objective, from_scratch, save_head
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import shapes_for


@try_again_when_stopped()
def continue_mlm(job: Job) -> None:
    """Train the encoder with a prediction head, and write both."""
    block = job.settings["continue_mlm"]
    every = {"checkpoint_minutes": job.operational["checkpoint_minutes"]}
    settings = ContinueMlm.parse(block | {"training": block["training"] | every}, "continue_mlm")
    training = settings.training
    record = job.record(labels=[job.settings["adapt"]["label"]])
    folder = job.outputs["record"].parent
    device = prepare(training, settings.seed)
    base = job.input("base").parent
    check_large(base)
    tokenizer = load_tokenizer(base)
    text = tokenise(
        tokenizer, read_table(job.input("corpus"), SENTENCES)["sentence"].to_pylist(), training.max_tokens
    )
    model = MaskedLanguageModel(_backbone(base, job.settings["adapt"])).to(device)
    sampler = Sampler(len(text), training.batch_size, settings.seed, training.last_batch)
    shapes = shapes_for(device, model, training.chunk)
    checkpoints = folder.with_name(f"{folder.name}.checkpoints")
    outcome = train(
        Objective(model, text, sampler, tokenizer, settings, shapes),
        training,
        training.steps(len(text)),
        seed=settings.seed,
        development=None,
        checkpoints=checkpoints,
        fingerprint=job.key,
        shapes=shapes,
        log=job.log,
    )
    with writing_model_folder(folder, record) as temporary:
        model.backbone.save_pretrained(temporary)
        save_head(temporary, model)
        tokenizer.save_pretrained(temporary)
    write_table(job.outputs["history"], outcome.history, record)
    shutil.rmtree(checkpoints, ignore_errors=True)


def _backbone(base: Path, adapt: dict[str, Any]) -> PreTrainedModel:
    if sizes := adapt.get("from_scratch"):
        return from_scratch(base, Sizes.parse(sizes, "adapt.from_scratch"))
    return load_backbone(base)
