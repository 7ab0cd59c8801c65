"""Tasks that suites evaluate, known before any job: mteb's lists, or the tasks of a benchmark.

mteb takes seconds to import, so that the answer is noted below .snakemake, by mteb's version and what is asked. A study
that names no benchmark never imports it.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workflow_scripts.graph.place import read_note, write_note
from workflow_scripts.graph.schema import Configuration
from workflow_scripts.graph.slices import as_json
from workflow_scripts.settings.suites import Mteb
from workflow_scripts.settings.suites import MtebSelection as Selection

NOTES = Path(".snakemake/benchmarks.json")
"""Below the working directory: types of tasks by their names, by what was asked."""


def task_lists(settings: Configuration, suite: str) -> dict[str, dict[str, str]]:
    """Lists of a suite of the kind ``mteb``: those that it names, or all tasks of its benchmark and those of each type.

    Raises:
        ConfigError: if mteb does not know what is asked of a benchmark.
    """
    block = settings.suites.mteb[suite]
    if not (chosen := selection(block)):
        return {name: settings.mteb.lists[name] for name in block.lists or ()}
    lists: dict[str, dict[str, str]] = {chosen["benchmark"]: {}}
    for task, kind in _types(chosen, f"suites.mteb.{suite}").items():
        for name in (chosen["benchmark"], kind):
            lists.setdefault(name, {})[task] = task
    return lists


def selection(block: Mteb) -> dict[str, Any]:
    """A suite's choice from a benchmark; nothing if the suite names lists."""
    return block.model_dump(include={*Selection.model_fields}, exclude_none=True)


def _types(chosen: dict[str, Any], place: str) -> dict[str, str]:
    """The tasks that are chosen, with their types."""
    asked = f"mteb {version('mteb')} {as_json(chosen)}"
    noted: dict[str, dict[str, str]] = read_note(NOTES)
    if asked not in noted:
        from workflow_scripts.evaluation.benchmarks import select  # imports mteb

        found = select(Selection.parse(chosen, place), place)
        noted[asked] = {task.metadata.name: task.metadata.type for task in found}
        write_note(NOTES, json.dumps(noted))
    return noted[asked]
