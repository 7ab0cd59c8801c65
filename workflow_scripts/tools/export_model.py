"""Copy a finished model to share it: python -m workflow_scripts.tools.export_model RUN_FOLDER NEW_FOLDER.

The copy has the model's card as its README.md, with scores if rule write_model_card made one, and can go to the Hub as
it is.
"""

import argparse
import shutil
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from workflow_scripts.audit.lookup import check_place
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.artefacts import RECORD_FILE, check_model_folder, verify_checksum
from workflow_scripts.reporting.usage import README_FILE, readme


def export_model(run: Path, target: Path) -> None:
    """Copy the model of one run and seed, and its card, into a new folder, all of it or nothing.

    Raises:
        DataError: if model or card are not what the pipeline wrote, or ``target`` exists or cannot be made.
    """
    model, card = run / "model", run / README_FILE
    if not (model / RECORD_FILE).is_file():
        raise DataError(f"{run}: no model/{RECORD_FILE}. Name a results/<study>/runs/<run>/seed<seed>.")
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


def main() -> None:
    """Copy, and say what to do with the copy."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.export_model", description=__doc__
    )
    parser.add_argument(
        "run", type=Path, help="folder of a run and seed: results/<study>/runs/<run>/seed<seed>"
    )
    parser.add_argument("target", type=Path, help="folder to make")
    arguments = parser.parse_args()
    export_model(arguments.run, arguments.target)
    print(f"{arguments.target}: upload it with `hf upload <name> {quote(str(arguments.target))}`.")  # noqa: T201


if __name__ == "__main__":
    with one_line_errors():
        main()
