"""Columns of a grid: a block that lists tasks stands for a column of each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workflow_scripts.graph.slices import Config


def numbered_columns(grid: Mapping[str, Any]) -> Iterator[tuple[int, Config]]:
    """Every column, with the number of the block in the grid's file that asks for it."""
    for number, block in enumerate(grid["columns"]):
        for column in written_out(block):
            yield number, column


def one_column_a_task(grid: Mapping[str, Any]) -> Config:
    """The grid as if every column had been written out."""
    return {**grid, "columns": [column for _, column in numbered_columns(grid)]}


def written_out(block: Config) -> list[Config]:
    """Columns of the tasks that a block lists, headed by their names, or gives by heading."""
    if "tasks" not in block:
        return [block]
    tasks, shared = block["tasks"], {key: value for key, value in block.items() if key != "tasks"}
    headed = tasks if isinstance(tasks, Mapping) else {task: task for task in tasks}
    return [{"heading": heading, "task": task} | shared for heading, task in headed.items()]


def scored_columns(columns: Iterable[Mapping[str, Any]], heading: str) -> list[Mapping[str, Any]]:
    """The columns that one heading of a grid is computed from, itself if it is computed from no other."""
    by_heading = {column["heading"]: column for column in columns}
    column = by_heading[heading]
    behind = column.get("mean_of") or column.get("ratio_of") or [*filter(None, [column.get("gain_of")])]
    if not behind:
        return [column]
    return [one for part in behind for one in scored_columns(by_heading.values(), part)]
