"""Fine-tune one sentence encoder on one corpus (rule train_encoder)."""

import shutil

from workflow_scripts.columns import PAIRS
from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_backbone, shared_tokenizer
from workflow_scripts.models.encoding import check_not_collapsed
from workflow_scripts.models.probe import check_large
from workflow_scripts.provenance.artefacts import read_table, write_table, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import merged_labels
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.training import Development, Training
from workflow_scripts.training import ranks
from workflow_scripts.training.data import TrainingData, read_auxiliary, read_columns, read_teacher
from workflow_scripts.training.loop import (
    development_score,
    prepare,
    train,
    try_again_when_stopped,
)
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import shapes_for


@try_again_when_stopped()
@ranks.joined()
def train_encoder(job: Job) -> None:
    """Train, keep the best weights on the development set, and write model, history and metrics."""
    seed = int(job.wildcards["seed"])
    how = {name: value for name, value in job.operational.items() if name in Training.model_fields}
    training = Training.parse(job.settings["training"] | how, "training")
    method = load_method(job.settings["method"]["module"])
    config = read_method(job.settings["method"], f"methods ({job.wildcards['run']})")
    device = prepare(training, seed)
    folders = [path.parent for path in job.inputs("encoder")]
    for folder in folders:
        check_large(folder)
    tokenizer = shared_tokenizer(folders)
    columns = read_columns(job.input("corpus"))
    columns |= read_auxiliary(
        job.inputs("exemplars"), job.inputs("words"), job.settings["method"].get("words")
    )
    rows = len(columns["anchor"])
    backbones = [load_backbone(folder, **config.overrides) for folder in folders]
    encoder = method.build(config, tokenizer, *backbones).to(device)
    record = job.record(labels=[*job.settings.get("labels", []), *config.labels, *encoder.labels])
    model_folder = job.outputs["record"].parent
    development = Development.parse(job.settings["development"], "development")
    pairs = read_table(job.input("dev"), PAIRS)
    checkpoints = model_folder.with_name(f"{model_folder.name}.checkpoints")
    sampler = Sampler(rows, training.batch_size, seed, training.last_batch)
    teacher = read_teacher(job.inputs("teacher"), rows)
    shapes = shapes_for(device, encoder, training.chunk)
    objective = method.Objective(
        config,
        encoder,
        TrainingData(columns, tokenizer, training.max_tokens, sampler, teacher, training.chunk, shapes),
    )
    scored = objective.scored or encoder
    dev_score = development_score(scored, pairs, development.max_tokens)
    check_not_collapsed(scored)
    outcome = train(
        objective,
        training,
        training.steps(rows),
        seed=seed,
        development=(development.every, dev_score),
        checkpoints=checkpoints,
        fingerprint=job.key,
        shapes=shapes,
        log=job.log,
    )
    if ranks.rank() > 0:
        return
    objective.finish()
    labelled = record.model_copy(
        update={"labels": merged_labels(record.labels, objective.labels(outcome.paths))}
    )
    with writing_model_folder(model_folder, labelled) as model:
        encoder.cpu().save(model)
    write_table(job.outputs["history"], outcome.history, labelled)
    write_table(job.outputs["metrics"], outcome.metrics, labelled)
    shutil.rmtree(checkpoints, ignore_errors=True)
