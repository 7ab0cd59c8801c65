"""Search everything that runs wrote for secrets: results, records, logs, measurements, crates, answers.

Looks for the values of environment variables that hold keys (by their names: ..._KEY, ..._TOKEN and the like, and
those that a configuration here or a job of Snakemake names as key_variable), and for what has the form of a well-known
key. Tables are searched as they are read, not as they are packed; of weights only the header can hold text. What is
found is never printed. Exit code 1 where anything is found.
"""

import argparse
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from workflow_scripts.audit.lookup import name_of
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.errors import DataError

PLACES = ("results", "logs", "benchmarks", "crates", "answers", ".snakemake")
"""Folders that runs write to, below the folder where snakemake ran."""
_HOLDS_A_KEY = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?$")
_KEY_VARIABLE = re.compile(rb"key_variable\W{1,8}([A-Z][A-Z0-9_]*)")  # in YAML, or JSON quoted once or twice
_SHORTEST_KEY = 8  # a shorter value would match by chance
_FORMS = {
    "OpenAI or Anthropic key": rb"\bsk-[A-Za-z0-9_-]{20,}",
    "Hugging Face token": rb"\bhf_[A-Za-z0-9]{30,}",
    "GitHub token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    "AWS key": rb"\bAKIA[0-9A-Z]{16}\b",
    "Slack token": rb"\bxox[abprs]-[A-Za-z0-9-]{20,}",
    "authorisation header": rb"Bearer [A-Za-z0-9._~+/-]{20,}",
    "private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "password in a URL": rb"\b[a-z][a-z0-9+.-]*://[^/\s:@'\"<>]+:[^/\s:@'\"<>]+@",
}


class Secret(NamedTuple):
    """A secret in a file where it should not be."""

    path: str
    what: str
    """The name of the variable or the form; never the value."""
    place: str
    """Byte offset or column."""


def secrets(
    root: Path, variables: Mapping[str, str], places: Iterable[str] = PLACES
) -> tuple[int, list[Secret]]:
    """The number of files searched, and what was found in them.

    Args:
        root: Folder where snakemake ran.
        variables: Environment variables whose values are searched for.
        places: Folders below ``root``; those that do not exist are skipped.
    """
    searcher = Searcher(variables)
    files = [
        path
        for place in places
        for path in sorted((root / place).rglob("*"))
        if path.is_file() and path.stat().st_size
    ]
    found = [Secret(name_of(path, root), *hit) for path in files for hit in searcher.search(path)]
    return len(files), found


def key_variables(root: Path) -> set[str]:
    """Variables that hold keys by what configurations and jobs below ``root`` say."""
    files = [*root.glob("*.y*ml"), *root.glob("config/**/*.y*ml"), *root.glob(".snakemake/metadata/**/*")]
    contents = (path.read_bytes() for path in files if path.is_file())
    return {name.decode() for content in contents for name in _KEY_VARIABLE.findall(content)}


def keys_of(
    environment: Mapping[str, str], named: Iterable[str], configured: Iterable[str] = ()
) -> dict[str, str]:
    """Variables that hold keys, to judge by their names, those in ``named``, and those ``configured`` that are set.

    Raises:
        DataError: if one of ``named`` is not set, so that its value cannot be searched for.
    """
    for name in named:
        if len(environment.get(name, "")) < _SHORTEST_KEY:
            raise DataError(
                f"{name}: not set, or shorter than {_SHORTEST_KEY} characters. Set it, or omit --variable {name}."
            )
    names = {*named, *configured, *(name for name in environment if _HOLDS_A_KEY.search(name.upper()))}
    return {name: environment[name] for name in names if len(environment.get(name, "")) >= _SHORTEST_KEY}


class Searcher:
    """Searches files of any kind for keys."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._names = [*(f"value of {name}" for name in sorted(variables)), *_FORMS]
        forms = [*(re.escape(variables[name].encode()) for name in sorted(variables)), *_FORMS.values()]
        self._pattern = re.compile(b"|".join(b"(%s)" % form for form in forms))

    def search(self, path: Path) -> Iterator[tuple[str, str]]:
        """Yield what was found in a file, and where."""
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            end = len(content)
            if path.suffix == ".safetensors":  # a length, a header in JSON, then only numbers
                end = min(end, 8 + int.from_bytes(content[:8], "little"))
            for match in self._pattern.finditer(content, 0, end):
                yield self._what(match), f"byte {match.start()}"
        if path.suffix == ".parquet":
            yield from self._in_table(path)

    def _what(self, match: re.Match[bytes]) -> str:
        return self._names[(match.lastindex or 1) - 1]

    def _in_table(self, path: Path) -> Iterator[tuple[str, str]]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    for name, column in zip(batch.schema.names, batch.columns, strict=True):
                        for text in _texts(column):
                            if match := self._pattern.search(text.encode()):
                                yield self._what(match), f"column {name}"
        except (OSError, ValueError):  # damaged, which verify reports; its bytes have been searched
            return


def _texts(column: pa.Array) -> Iterator[str]:
    """The distinct texts of a column, including those in lists."""
    while pa.types.is_list(column.type):
        column = column.flatten()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        yield from (text for text in pc.unique(column).to_pylist() if text)


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit secrets`` takes."""
    parser.add_argument(
        "--variable",
        action="append",
        default=[],
        metavar="NAME",
        help="another environment variable that holds a key",
    )


def run(args: argparse.Namespace) -> int:
    """Search and print; exit code 1 if anything was found."""
    variables = keys_of(os.environ, args.variable, key_variables(args.root))
    files, found = secrets(args.root, variables)
    if not files:
        raise DataError(f"{args.root}: no files written by runs. Run the pipeline first: snakemake.")
    if args.json:
        data = {"green": not found, "files": files, "variables": sorted(variables)}
        print_json({**data, "found": [secret._asdict() for secret in found]})
    else:
        show(files, variables, found, console())
    return 1 if found else 0


def show(files: int, variables: Iterable[str], found: list[Secret], out: Console) -> None:
    """Print what was found, without the secrets themselves."""
    if found:
        shown = table("path", "holds", "where")
        for secret in dict.fromkeys(found):
            shown.add_row(*secret)
        out.print(shown)
        out.print("Revoke each key where it was issued, then delete these files.", style="bold")
    looked = ", ".join(sorted(variables)) or "no variable that holds a key is set"
    out.print(
        f"{files} files searched for {len(_FORMS)} kinds of keys and the values of variables ({looked}): "
        f"{len(found)} found",
        style="red" if found else "green",
        soft_wrap=True,
    )
