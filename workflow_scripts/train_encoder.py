"""Fine-tune one sentence encoder on one corpus (rule train_encoder)."""

import shutil

from workflow_scripts.artefacts import read_table, write_table, writing_model_folder
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.methods import labels_of, load_method, method_modules
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.models.loading import shared_tokenizer
from workflow_scripts.models.readouts import set_mask_token
from workflow_scripts.models.saving import save_encoder
from workflow_scripts.schemas import PAIRS
from workflow_scripts.training import ranks
from workflow_scripts.training.loop import train
from workflow_scripts.training.material import Material, read_beside, read_columns, read_teacher
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.session import development_score, prepare, try_again_when_stopped, write_speed
from workflow_scripts.training.settings import Development, Training


def main() -> None:
    """Load, train, keep the best by the development set, write model, history and speed."""
    job = parse_job(
        "train_encoder",
        __doc__,
        wildcards=["run", "seed"],
        inputs=["corpus", "dev"],
        many=["encoder"],
        optional=["exemplars", "words", "teacher"],
        outputs=["record", "history", "watched"],
        timings=["speed"],
    )
    seed = int(job.wildcards["seed"])
    training = Training.parse(job.settings["training"], "training")
    method = load_method(job.settings["method"]["module"])
    config = method.Config.parse(job.settings["method"], f"methods ({job.wildcards['run']})")
    record = job.record(
        modules=method_modules(job.settings["method"]),
        labels=[*job.settings.get("labels", []), *labels_of(config)],
    )
    device = prepare(training, seed)
    folders = [path.parent for path in job.many("encoder")]
    tokenizer = shared_tokenizer(folders)
    columns = read_columns(job.inputs["corpus"])
    columns |= read_beside(job.many("exemplars"), job.many("words"), job.settings["method"].get("words"))
    rows = len(columns["anchor"])
    backbones = [load_backbone(folder, **method.overrides(config)) for folder in folders]
    encoder = method.build(config, *backbones).to(device)
    set_mask_token(encoder, tokenizer)
    development = Development.parse(job.settings["development"], "development")
    pairs = read_table(job.inputs["dev"], PAIRS)
    dev_score = development_score(encoder, tokenizer, pairs, development.max_tokens)
    place = job.outputs["record"].parent
    checkpoints = place.with_name(f"{place.name}.checkpoints")
    outcome = train(
        method.Objective(
            config,
            encoder,
            Material(
                columns,
                tokenizer,
                training.max_tokens,
                Sampler(rows, training.batch_size, seed),
                read_teacher(job.many("teacher"), rows),
            ),
        ),
        training,
        training.steps(rows),
        development=(development.every, dev_score),
        checkpoints=checkpoints,
        fingerprint=record.fingerprint(),
    )
    if ranks.rank() > 0:
        return
    if hasattr(method, "finish"):
        method.finish(config, encoder)
    with writing_model_folder(place, record) as model:
        save_encoder(model, encoder.cpu(), tokenizer, training.max_tokens)
    write_table(job.outputs["history"], outcome.history, record)
    write_table(job.outputs["watched"], outcome.watched, record)
    write_speed(job.timings["speed"], outcome.seconds, training.batch_size)
    shutil.rmtree(checkpoints, ignore_errors=True)


if __name__ == "__main__":
    with one_line_errors(), try_again_when_stopped(), ranks.joined():
        main()
