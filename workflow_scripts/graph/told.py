"""What a run of Snakemake says of its study before it plans it."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from workflow_scripts.graph.notes import from_here
from workflow_scripts.graph.place import is_in_job
from workflow_scripts.graph.study import Study
from workflow_scripts.graph.yaml_files import read_yaml


def tell(study: Study, configfiles: Iterable[str | Path]) -> None:
    """Print on the terminal what is worth knowing of a study; nothing where Snakemake runs one of its jobs."""
    if not is_in_job():
        print("\n".join(lines_of(study, configfiles)), file=sys.stderr)  # noqa: T201


def lines_of(study: Study, configfiles: Iterable[str | Path]) -> Iterator[str]:
    """The study that is planned, files whose name for it is another one, and threads that this machine lacks.

    Args:
        study: The study.
        configfiles: As after --configfile; the last to name a study gives it its name.
    """
    name = study.config["name"]
    names = {from_here(file): (read_yaml(Path(file)) or {}).get("name", name) for file in configfiles}
    others = [f"{file} names {other}, which is overruled" for file, other in names.items() if other != name]
    yield "; ".join([f"Study {name}, in {study.folder}", *others])
    threads = max((study.settings(run)["training"]["cpu_threads"] for run in study.trained), default=0)
    if threads > (cores := os.cpu_count() or threads):
        yield f"training.cpu_threads is {threads}, and this machine has {cores}: here, fewer are faster."
