"""Following a page of ``docs/adding``: write the files that its fenced blocks hold, run its commands.

A block's info string says what it is: ``python title=path`` (any language) is a file to write, ``yaml append=path``
text to add at the end of a file, ``sh`` commands to run. Other blocks are there to be read.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Literal, NamedTuple

Use = Literal["write", "append", "run", "read"]
_FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: what is done with it, the file it is for (a path below the root) and its text."""

    use: Use
    path: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a Markdown page that name a language, in their order."""
    return [_block(*found) for found in _FENCE.findall(page)]


def _block(language: str, info: str, text: str) -> Block:
    named = dict(item.split("=", 1) for item in shlex.split(info))
    if "title" in named:
        return Block("write", named["title"], text)
    if "append" in named:
        return Block("append", named["append"], text)
    return Block("run" if language == "sh" else "read", "", text)


def follow(page: Path, root: Path, **environment: str) -> list[str]:
    """Do in ``root`` what ``page`` says, in its order; returns the paths of the files that it writes or adds to.

    Raises:
        AssertionError: if a file to write is there already, one to add to is not, or a command fails.
    """
    touched: dict[str, None] = {}
    for use, path, text in blocks(page.read_text()):
        if use == "write":
            assert not (root / path).exists(), f"{page}: {path} is there already"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        elif use == "append":
            assert (root / path).exists(), f"{page}: there is no {path} to add to"
            with (root / path).open("a") as file:
                file.write(text)
        elif use == "run":
            run(text, root, **environment)
        if path:
            touched[path] = None
    return list(touched)


def run(commands: str, root: Path, **environment: str) -> str:
    """Run shell commands in ``root`` with this Python's programs first; returns what they printed.

    Raises:
        AssertionError: if one of them fails, with all that was printed.
    """
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=root,
        env=os.environ | {"PATH": programs, "PYTHONPATH": str(root)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}"
    return done.stdout
