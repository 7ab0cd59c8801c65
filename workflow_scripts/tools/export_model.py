"""Copy a finished model to share it: python -m workflow_scripts.tools.export_model RUN_FOLDER NEW_FOLDER.

The copy has the model's card as its README.md, with scores if rule write_model_card made one, and can go to the Hub as
it is.
"""

import argparse
import shutil
from pathlib import Path

from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.artefacts import RECORD_FILE, check_model_folder, verify_checksum
from workflow_scripts.reporting.usage import README_FILE, readme


def export_model(run: Path, target: Path) -> None:
    """Copy the model of one run and seed, and its card, into a new folder.

    Raises:
        DataError: if model or card are not what the pipeline wrote, or ``target`` exists.
    """
    model, card = run / "model", run / README_FILE
    record = check_model_folder(model)
    if target.exists():
        raise DataError(f"{target}: exists. Name a folder that does not.")
    for name in (*record.files, RECORD_FILE):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(model / name, target / name)
    if card.exists():
        verify_checksum(card)
        shutil.copyfile(card, target / README_FILE)
    else:
        (target / README_FILE).write_text(readme(model), "utf-8")


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
    print(f"{arguments.target}: upload it with `hf upload <name> {arguments.target}`.")  # noqa: T201


if __name__ == "__main__":
    with one_line_errors():
        main()
