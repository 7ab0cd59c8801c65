"""Copy one finished model to share it.

The copy holds the model, its record, which lists the hash of every file, and the model's card as its README.md if
rule write_model_card made one; it can go to the Hub as it is.

  python -m workflow_scripts export results/demo/runs/simcse.minilm_mlm.wiki_extract/seed1 --to my_model
"""

import shutil
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from workflow_scripts.audit.printing import Answer, argument
from workflow_scripts.audit.records import study_folder
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, check_model_folder, verify_checksum

ARGUMENTS = (
    argument("run", type=study_folder, help="results/<study>/runs/<run>/seed<seed>"),
    argument("--to", type=Path, required=True, help="folder to make"),
)


def answer(run: Path, to: Path) -> Answer:
    """What was written."""
    if not (run / "model" / RECORD_FILE).is_file():
        raise DataError(f"{run}: no finished model. Name results/<study>/runs/<run>/seed<seed>.")
    export_model(run, to)
    return Answer(f"{to}: upload it with `hf upload <name> {quote(str(to))}`.")


def export_model(run: Path, target: Path) -> None:
    """Copy the model of one run and seed, and its card, into a new folder, all of it or nothing.

    Raises:
        DataError: if model or card are not what the pipeline wrote, or ``target`` exists.
    """
    model, card = run / "model", run / "README.md"
    record = check_model_folder(model)
    if target.exists():
        raise DataError(f"{target}: exists. Name a folder that does not.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        copy = Path(temporary, "model")
        for name in (*record.files, RECORD_FILE):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model / name, copy / name)
        if card.exists():
            verify_checksum(card)
            shutil.copyfile(card, copy / "README.md")
        copy.rename(target)
