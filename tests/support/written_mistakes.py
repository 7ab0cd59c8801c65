"""Mistakes as data: what a user writes, and the lines that are printed."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import checked, read_grids
from workflow_scripts.graph.configuration import read_mapping


def read_cases(files: Iterable[Path]) -> dict[str, Mapping[str, Any]]:
    """The cases of YAML files by their titles, which differ."""
    cases = [case for file in sorted(files) for case in read_mapping(file).items()]
    assert cases
    assert len(cases) == len(dict(cases))
    return dict(cases)


@cache
def sound_study(overlay: str = DEMO) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration and the grids of a study of this repository, not to be changed."""
    config = merged_config(overlay)
    return config, read_grids(config, ROOT / "config")[0]


def printed_of(config: dict[str, Any], grids: dict[str, Any], data_root: Path | None = None) -> list[str]:
    """The lines that are printed of a study's mistakes."""
    with_data = config | {"data_root": data_root and str(data_root)}
    return [*map(str, checked(with_data, grids, ROOT)[1])]


def laid_over(part: Any, above: Any) -> Any:
    """A part of a configuration with another one laid over it, as Snakemake's files are; a number is an item's."""
    if not isinstance(above, dict):
        return above
    if isinstance(part, list):
        return [laid_over(item, above[n]) if n in above else item for n, item in enumerate(part)]
    merged = dict(part) if isinstance(part, dict) else {}
    for key, value in above.items():
        if key.endswith("+"):
            merged[key[:-1]] = [*merged[key[:-1]], *value]
        else:
            merged[key] = laid_over(merged.get(key), value)
    return merged


def abridged(lines: Iterable[str], printed: Iterable[str]) -> list[str]:
    """The lines, each in the words of the first of ``printed`` that is the same; … is any text within a line."""
    patterns = {text: ".*".join(map(re.escape, text.split("…"))) for text in printed}
    return [next((text for text in patterns if re.fullmatch(patterns[text], line)), line) for line in lines]
