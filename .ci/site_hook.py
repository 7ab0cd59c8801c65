"""Hook of MkDocs: pages of the menu, and the files that they link to, at their paths in the repository."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w+) +(?:(?:title|append)=(\S+)|.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:\s]+)\)|src=\"([^\":]+)\"")


def on_files(files: Files, *, config: Any) -> Files:
    """Replace the files of ``docs`` by the pages of the menu and the files that they link to."""
    theme = [file for file in files if file.generated_by or not file.src_dir]
    pages = list(_pages(config.nav))
    linked = {target for page in pages for target in _targets(ROOT / page)}
    names = sorted({*pages, *linked})
    made = [File(name, str(ROOT), config.site_dir, config.use_directory_urls) for name in names]
    return Files([*theme, *made])


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Take from code blocks what only tests read, such as ``dry``; the name of a file becomes the block's title."""
    return _FENCE.sub(lambda found: f"```{found[1]}" + (f' title="{found[2]}"' if found[2] else ""), markdown)


def _pages(menu: Any) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for entry in menu.values() if isinstance(menu, dict) else menu:
            yield from _pages(entry)


def _targets(page: Path) -> Iterator[str]:
    for found in _LINK.finditer(page.read_text("utf-8")):
        target = (page.parent / (found[1] or found[2])).resolve()
        if target.is_file():
            yield target.relative_to(ROOT).as_posix()
