"""Copy results to share them: a study as a Provenance Run RO-Crate 0.5, or one finished model as a folder.

A crate holds workflow, code and results, and says which job made what from what, when, and with which settings; of
models it holds the records, which name weights by their hash. A study with a damaged artefact is not exported. The copy
of a model has the model's card as its README.md, with scores if rule write_model_card made one, and can go to the Hub
as it is.

  python -m workflow_scripts export results/demo
  python -m workflow_scripts export results/demo/runs/simcse.minilm_mlm.wiki_extract/seed1 --to my_model
"""

import argparse
import shutil
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from rich.filesize import decimal

from workflow_scripts.audit.crate import write_crate
from workflow_scripts.audit.lookup import check_place
from workflow_scripts.audit.printing import Answer
from workflow_scripts.audit.verify import studies_of
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, check_model_folder, verify_checksum
from workflow_scripts.reporting.usage import README_FILE, readme


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what export takes."""
    parser.add_argument(
        "path", type=Path, help="results/<study>, or of a model results/<study>/runs/<run>/seed<seed>"
    )
    parser.add_argument("--to", type=Path, help="folder to make; of a study, default: crates/<study>")


def answer(args: argparse.Namespace) -> Answer:
    """What was written."""
    if (args.path / "model" / RECORD_FILE).is_file():
        if args.to is None:
            raise DataError(f"{args.path}: a model. Name the folder to make: --to FOLDER.")
        export_model(args.path, args.to)
        return Answer(f"{args.to}: upload it with `hf upload <name> {quote(str(args.to))}`.")
    (study,) = studies_of([args.path])
    if study.parent != Path("results"):
        raise DataError(f"{study}: no study. Name one, such as results/demo.")
    folder = args.to or Path("crates", study.name)
    crate = write_crate(study, folder)
    size = decimal(sum(place.stat().st_size for place in crate.files.values()))
    return Answer(f"{folder}: {len(crate.files)} files, {size}", data={"crate": folder.as_posix()})


def export_model(run: Path, target: Path) -> None:
    """Copy the model of one run and seed, and its card, into a new folder, all of it or nothing.

    Raises:
        DataError: if model or card are not what the pipeline wrote, or ``target`` exists or cannot be made.
    """
    model, card = run / "model", run / README_FILE
    record = check_model_folder(model)
    if target.exists():
        raise DataError(f"{target}: exists. Name a folder that does not.")
    check_place(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        copy = Path(temporary, "model")
        for name in (*record.files, RECORD_FILE):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model / name, copy / name)
        if card.exists():
            verify_checksum(card)
            shutil.copyfile(card, copy / README_FILE)
        else:
            (copy / README_FILE).write_text(readme(model), "utf-8")
        copy.rename(target)
