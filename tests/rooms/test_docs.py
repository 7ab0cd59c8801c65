"""Links, names, commands and tests that the documentation names exist."""

import ast
import re
import shutil
import subprocess
import sys

import pytest

from tests.support import doc_blocks
from tests.support.snakemake_plans import ROOT
from workflow_scripts.__main__ import VERBS

MARKDOWN = sorted(
    path for path in ROOT.rglob("*.md") if not {"results", ".venv"} & set(path.relative_to(ROOT).parts)
)
names = pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())


@names
def test_links_lead_somewhere(page):
    for target in doc_blocks.links(page.read_text()):
        if re.match("https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page}: {target}"
        assert not anchor or anchor in doc_blocks.anchors(file.read_text()), f"{page}: {target}"


@names
def test_files_and_commands_that_a_page_names_are_there(page):
    text = page.read_text()
    quoted = re.findall(r"`((?:config|docs|resources|rules|tests|workflow_scripts|slurm)/[\w./-]*)`", text)
    written = (
        {step.note for step in doc_blocks.steps(text) if step.use == "write"}
        if page in doc_blocks.PAGES
        else set()
    )
    missing = [path for path in quoted if path not in written and not (ROOT / path).exists()]
    assert missing == []
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(targets)
    assert set(re.findall(r"python -m workflow_scripts (\w[\w-]*)", text)) <= VERBS.keys() | {"VERB"}
    for module in re.findall(r"python -m (workflow_scripts[\w.]*|tests[\w.]*|benchmarks)", text):
        stem = ROOT.joinpath(*module.split("."))
        assert stem.with_suffix(".py").exists() or (stem / "__main__.py").exists(), f"{page}: {module}"


@pytest.mark.parametrize("page", doc_blocks.PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_command_escapes_the_tests(page):
    """A block that is neither run nor written to a file says what it is, and code is fenced, not indented."""
    text = page.read_text()
    for step in doc_blocks.steps(text):
        assert step.use != "read" or step.language in doc_blocks.READ_LANGUAGES, f"{page}: ```{step.language}"
    assert not re.search(r"^ {4,}(make|python|snakemake|pip|source) ", doc_blocks.prose(text), re.MULTILINE)
    assert doc_blocks.prose(text).count("```") == 0


ADDING = pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/adding").glob("*.md")), ids=lambda path: path.stem
)


def defined_in(source):
    """Names that a module defines or imports at its top level."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found |= {one.asname or one.name for one in node.names}
        else:
            found |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found


@ADDING
def test_code_that_a_page_adds_fits_the_code(page, tmp_path):
    """Its edits apply, and every name is defined, or exists in the module that it is imported from."""
    for step in doc_blocks.steps(page.read_text()):
        if step.use in ("edit", "write", "append"):
            copy = tmp_path / step.note
            if (ROOT / step.note).exists() and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / step.note, copy)
            doc_blocks.do(step, page, tmp_path)
    added = [*tmp_path.rglob("*.py")]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821"]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    imports = [node for file in added for node in ast.walk(ast.parse(file.read_text()))]
    for node in imports:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workflow_scripts."):
            place = node.module.replace(".", "/")
            files = [root / f"{place}.py" for root in (tmp_path, ROOT)]
            source = next((file.read_text() for file in files if file.exists()), "")
            modules = {file.stem for file in (ROOT / place).glob("*.py")}
            assert {one.name for one in node.names} <= defined_in(source) | modules, node.module


@ADDING
def test_what_is_added_is_registered_beside_its_class(page):
    """No file of the graph, of jobs or of rules knows the names of methods, readouts, readers, evaluators and figures."""
    changed = [
        step.note for step in doc_blocks.steps(page.read_text()) if step.use in ("edit", "write", "append")
    ]
    assert [
        path
        for path in changed
        if path.startswith(("workflow_scripts/graph", "workflow_scripts/jobs", "rules"))
    ] == []


def test_a_run_that_a_page_shows_says_on_how_many_cores():
    """Snakemake refuses one that names neither cores nor a profile, which no dry run tells."""
    texts = {page: page.read_text() for page in doc_blocks.PAGES}
    inline = [
        code for text in texts.values() for code in re.findall(r"`(snakemake [^`]*)`", doc_blocks.prose(text))
    ]
    blocks = [step.text.splitlines() for text in texts.values() for step in doc_blocks.steps(text)]
    commands = [*inline, *(line for lines in blocks for line in lines if line.startswith("snakemake "))]
    runs = [one for one in commands if len(one.split()) > 2 and not re.search(r" (--dry-run|-n) ", one)]
    assert len(runs) > 10
    assert [one for one in runs if not re.search(r" --(cores|profile) ", one)] == []


def test_every_test_that_the_table_of_guarantees_names_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "tests/README.md").read_text())
    assert len(named) > 10
    wanted = [(ROOT / file, f"def {test}(" if test else "def test_") for file, test in named]
    missing = [(file, line) for file, line in wanted if line not in file.read_text()]
    assert missing == []


def test_every_test_that_the_page_of_the_papers_names_is_there():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/papers.md").read_text()))
    code = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 20
    assert not {name for name in named if f"def {name}(" not in code}


def test_generated_tables_are_those_that_would_be_written_now():
    assert (ROOT / "config/README.md").read_text().count("<!-- table: ") == 1
    stale = [page.relative_to(ROOT).as_posix() for page, _ in doc_blocks.out_of_date()]
    assert stale == [], "python -m tests.support.doc_blocks --write"
