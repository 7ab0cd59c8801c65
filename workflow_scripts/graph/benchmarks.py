"""Tasks that suites evaluate, known before any job: mteb's lists, or the tasks of a benchmark.

mteb takes seconds to import, so that the answer is noted below .snakemake, by mteb's version and the benchmark. A study
that names no benchmark never imports it.
"""

import json
from importlib.metadata import version
from pathlib import Path

from workflow_scripts.errors import ConfigError, advice
from workflow_scripts.graph.place import read_note, write_note
from workflow_scripts.graph.schema import Configuration

NOTES = Path(".snakemake/benchmarks.json")
"""Below the working directory: types of tasks by their names, by benchmark."""


def task_lists(settings: Configuration, suite: str) -> dict[str, dict[str, str]]:
    """Lists of a suite of the kind ``mteb``: those that it names, or all tasks of its benchmark and those of each type.

    Raises:
        ConfigError: if mteb does not know the benchmark.
    """
    block = settings.suites.mteb[suite]
    if not block.benchmark:
        return {name: settings.mteb.lists[name] for name in block.lists or ()}
    lists: dict[str, dict[str, str]] = {block.benchmark: {}}
    for task, kind in _types(block.benchmark, f"suites.mteb.{suite}").items():
        for name in (block.benchmark, kind):
            lists.setdefault(name, {})[task] = task
    return lists


def _types(benchmark: str, place: str) -> dict[str, str]:
    """The tasks of a benchmark, with their types."""
    asked = f"mteb {version('mteb')} {benchmark}"
    noted: dict[str, dict[str, str]] = read_note(NOTES)
    if asked not in noted:
        import mteb

        try:
            tasks = mteb.get_benchmark(benchmark).tasks
        except KeyError as error:
            known = advice(benchmark, [one.name for one in mteb.get_benchmarks()])
            problem = f"{place}.benchmark: mteb {mteb.__version__} has no benchmark {benchmark}"
            raise ConfigError(f"{problem}. {known}") from error
        noted[asked] = {task.metadata.name: task.metadata.type for task in tasks}
        write_note(NOTES, json.dumps(noted))
    return noted[asked]
