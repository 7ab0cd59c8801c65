"""Write a study as a Provenance Run RO-Crate 0.5: a folder to archive or share, that other tools can read.

The crate holds the workflow, the code of every job, the results (as hard links, which take no space) and the
logs of jobs that failed; its metadata say which job made what from what, when, with which settings. Dates are
those of Snakemake's measurements. A damaged artefact is not exported.
"""

import argparse
import json
import mimetypes
import os
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workflow_scripts.audit.disk import collect, look_at_all
from workflow_scripts.audit.jobs import Job, jobs_of, last_words
from workflow_scripts.audit.reading import console, is_outside, made_by, name_of, print_json
from workflow_scripts.audit.verify import REPORT, Judge, studies_of
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import sha256_of

METADATA = "ro-crate-metadata.json"
_RO_CRATE = "https://w3id.org/ro/crate/1.1"  # the version that the profiles of runs extend
_WORKFLOW_RO_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    _WORKFLOW_RO_CRATE: ("Workflow RO-Crate", "1.0"),
}
_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_SNAKEMAKE = "https://snakemake.github.io"
_COMPLETED, _FAILED = "http://schema.org/CompletedActionStatus", "http://schema.org/FailedActionStatus"
_WORKFLOW = {"@id": "Snakefile"}
_REQUIREMENTS = "requirements.lock"
_LICENSE = "LICENSE"
_ABOUT = (_LICENSE, "README.md", _REQUIREMENTS, "pyproject.toml")
_FORMS = {
    ".parquet": "application/vnd.apache.parquet",
    ".md": "text/markdown",
    ".smk": "text/x-python",
    ".safetensors": "application/octet-stream",
}

Reference = dict[str, str]


class Crate:
    """The metadata and the files of one study."""

    def __init__(self, judge: Judge, study: str, jobs: list[Job]) -> None:
        self.judge, self.study, self.jobs = judge, study, jobs
        self.files: dict[str, Path] = {}
        """Name in the crate to the file it is."""
        self.entities: dict[str, dict[str, Any]] = {}
        self._describe_workflow()
        self._describe_run([self._describe_job(job) for job in jobs])
        self._describe_root()

    def metadata(self) -> dict[str, Any]:
        """The content of the metadata file."""
        about = {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": [{"@id": _RO_CRATE}, {"@id": _WORKFLOW_RO_CRATE}],
        }
        described = [
            {key: _single(value) for key, value in entity.items()} for entity in self.entities.values()
        ]
        return {"@context": [f"{_RO_CRATE}/context", _TERMS], "@graph": [about, *described]}

    # Entities

    def _add(self, identifier: str, kind: str | list[str], /, **properties: Any) -> Reference:
        """Add an entity, the first time that it is named."""
        known = {key: value for key, value in properties.items() if value not in (None, [])}
        self.entities.setdefault(identifier, {"@id": identifier, "@type": kind, **known})
        return {"@id": identifier}

    def _add_file(
        self, file: str, place: Path, kind: str | list[str] = "File", /, **properties: Any
    ) -> Reference:
        if file not in self.files:
            self.files[file] = place
            form = _FORMS.get(place.suffix) or mimetypes.guess_type(file)[0] or "text/plain"
            described = {"name": file, "sha256": sha256_of(place), "contentSize": str(place.stat().st_size)}
            self._add(file, kind, **{**described, "encodingFormat": form, **properties})
        return {"@id": file}

    def _append(self, owner: Reference, key: str, value: Reference) -> None:
        """Add to a property that holds several."""
        present = self.entities[owner["@id"]].setdefault(key, [])
        if value not in present:
            present.append(value)

    def _parameter(self, owner: Reference, key: str, role: str, kind: str) -> Reference:
        """What a tool or the workflow takes (``input``) or gives (``output``)."""
        name = f"{role} of {self.entities[owner['@id']]['name']}"
        made = self._add(
            f"#{key}/{owner['@id']}/{role}",
            "FormalParameter",
            name=role,
            description=name,
            additionalType=kind,
        )
        self._append(owner, key, made)
        return made

    def _exemplify(self, given: Reference, owner: Reference, key: str, role: str) -> None:
        """Say which parameter something was given for; folders and files are parameters of their own."""
        kind = "Dataset" if self.entities[given["@id"]]["@type"] == "Dataset" else "File"
        role = f"{role} folder" if kind == "Dataset" else role
        self._append(given, "exampleOfWork", self._parameter(owner, key, role, kind))

    # The workflow

    def _describe_workflow(self) -> None:
        records = self.judge.records.values()
        commits = sorted({f"{r.commit}{' with changes' * r.dirty}" for r in records if r.commit})
        place, files = ROOT / _WORKFLOW["@id"], [ROOT / name for name in _ABOUT]
        for file in (file for file in files if file.exists()):
            self._add_file(file.name, file, about={"@id": "./"} if file.name == "README.md" else None)
        self._add_file(
            place.name,
            place,
            ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
            name="Semblance",
            description="Snakemake workflow from raw text to report",
            version=", ".join(commits) or "outside a repository",
            programmingLanguage=self._add(
                "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
                "ComputerLanguage",
                name="Snakemake",
                identifier={"@id": _SNAKEMAKE},
                url={"@id": _SNAKEMAKE},
            ),
            softwareRequirements=[{"@id": _REQUIREMENTS}] if _REQUIREMENTS in self.files else None,
        )
        for file in sorted((ROOT / "rules").glob("*.smk")):
            self._append(_WORKFLOW, "softwareRequirements", self._add_file(name_of(file, ROOT), file))

    def _describe_rule(self, rule: str) -> Reference:
        """The entry script of a rule, as the tool, and its step of the workflow; returns the tool."""
        name = f"workflow_scripts/{rule}.py"
        kinds = ["File", "SoftwareSourceCode"]
        place = ROOT / name
        if place.exists():
            about = f"entry script of rule {rule}"
            tool = self._add_file(
                name, place, kinds, name=rule, description=about, version=sha256_of(place)[:12]
            )
        else:  # a rule that is no more
            tool = self._add(f"#tool/{rule}", "SoftwareApplication", name=rule)
        position = str(len(self.entities[_WORKFLOW["@id"]].get("step", [])) + 1)
        step = self._add(f"#step/{rule}", "HowToStep", name=rule, position=position, workExample=tool)
        self._append(_WORKFLOW, "step", step)
        self._append(_WORKFLOW, "hasPart", tool)
        return tool

    # Jobs

    def _describe_job(self, job: Job) -> Reference:
        """One job as an action, controlled by a step of the workflow; returns the control."""
        tool = self._describe_rule(job.rule)
        name = f"{job.rule}/{job.name}"
        action = self._add(
            f"#job/{name}",
            "CreateAction",
            name=f"job {made_by(job.record) if job.record else name}",
            description=f"What rule {job.rule} asks for {job.name}",
            instrument=tool,
            startTime=_text(job.start),
            endTime=_text(job.end),
            **(self._done(job, name, tool) if job.record else self._broken_off(job)),
        )
        return self._add(
            f"#control/{name}",
            "ControlAction",
            name=f"start of {name}",
            instrument={"@id": f"#step/{job.rule}"},
            object=action,
        )

    def _done(self, job: Job, name: str, tool: Reference) -> dict[str, Any]:
        assert job.record is not None
        settings = self._add(
            f"#settings/{name}",
            "PropertyValue",
            name="config",
            value=json.dumps(job.record.settings, sort_keys=True),
            exampleOfWork=self._parameter(tool, "input", "config", "Text"),
        )
        read, wrote = [settings], [self._artefact(path) for path in job.record.outputs]
        for role, given in sorted(job.record.inputs.items()):
            outside = is_outside(given.path)
            one = self._source(given.path, given.sha256) if outside else self._artefact(given.path)
            self._exemplify(one, tool, "input", role.partition("/")[0])
            read.append(one)
        for one in wrote:
            self._exemplify(one, tool, "output", "artefact")
        for file in sorted(job.record.code):
            if (ROOT / file).is_file() and sha256_of(ROOT / file) == job.record.code[file]:
                self._append(tool, "softwareRequirements", self._add_file(file, ROOT / file))
        return {"object": read, "result": wrote, "actionStatus": _COMPLETED}

    def _broken_off(self, job: Job) -> dict[str, Any]:
        assert job.log is not None
        log = self._add_file(name_of(job.log, self.judge.tree.root), job.log)
        return {"actionStatus": _FAILED, "error": last_words(job.log), "subjectOf": log}

    def _artefact(self, path: str) -> Reference:
        """A file or a model folder inside the pipeline; one of another study is named, not copied."""
        root, name = self.judge.tree.root, self.judge.unit(path)
        if name in self.judge.tree.models:
            parts = [self._add_file(part, root / part) for part in sorted(self.judge.tree.parts[name])]
            return self._add(f"{name}/", "Dataset", name=name, description="Encoder", hasPart=parts)
        if name in self.judge.looks or (name.startswith("resources/") and (root / name).is_file()):
            return self._add_file(name, root / name)
        return self._source(path, None)

    def _source(self, path: str, sha256: str | None) -> Reference:
        """Something that this run did not make; a revision of the Hub is shorter than a sha256."""
        known = sha256 if sha256 and len(sha256) == 64 else None
        given = self._add(f"#source/{path}", "CreativeWork", name=path, identifier=path, sha256=known)
        self._exemplify(given, _WORKFLOW, "input", "source")
        return given

    # The run

    def _describe_run(self, controls: list[Reference]) -> None:
        starts, ends = [job.start for job in self.jobs if job.start], self._ends()
        failed = [f"{job.rule}/{job.name}" for job in self.jobs if job.failed]
        report = f"{self.study}/{REPORT}"
        made = [{"@id": name} for name in ([report] if report in self.files else self.files)]
        made = [one for one in made if one["@id"].startswith(f"{self.study}/")]
        for one in made:
            self._exemplify(one, _WORKFLOW, "output", "report")
        run = self._add(
            "#run",
            "CreateAction",
            name=f"run of study {Path(self.study).name}",
            description="All jobs that made the results, and those that failed",
            instrument=_WORKFLOW,
            object=[{"@id": name} for name in self.entities if name.startswith("#source/")],
            result=made,
            startTime=_text(min(starts, default=None)),
            endTime=_text(max(ends, default=None)),
            actionStatus=_FAILED if failed else _COMPLETED,
            error=f"failed: {', '.join(failed)}" if failed else None,
        )
        engine = self._add(
            _SNAKEMAKE,
            "SoftwareApplication",
            name="Snakemake",
            version=version("snakemake"),
            url={"@id": _SNAKEMAKE},
        )
        name = "run of Snakemake"
        self._add(
            "#orchestration", "OrganizeAction", name=name, instrument=engine, object=controls, result=run
        )

    def _ends(self) -> list[datetime]:
        return [job.end for job in self.jobs if job.end]

    def _describe_root(self) -> None:
        profiles = [
            self._add(uri, "CreativeWork", name=name, version=number)
            for uri, (name, number) in _PROFILES.items()
        ]
        folders = [name for name, entity in self.entities.items() if entity["@type"] == "Dataset"]
        self._add(
            "./",
            "Dataset",
            name=f"Semblance: study {Path(self.study).name}",
            description="Sentence encoders, trained and evaluated, with all that made each number",
            datePublished=max(self._ends(), default=datetime.now(UTC)).isoformat(timespec="seconds"),
            license={"@id": _LICENSE}
            if _LICENSE in self.files
            else self._add("https://spdx.org/licenses/MIT", "CreativeWork", name="MIT License"),
            conformsTo=profiles,
            mainEntity=_WORKFLOW,
            mentions=[
                {"@id": name} for name, entity in self.entities.items() if entity["@type"] == "CreateAction"
            ],
            hasPart=[{"@id": name} for name in (*self.files, *folders)],
        )


def _single(value: Any) -> Any:
    """A list of one as its only member, as RO-Crate 1.1 recommends."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(date: datetime | None) -> str | None:
    return date.isoformat(timespec="seconds") if date else None


def export(root: Path, study: Path, folder: Path) -> Crate:
    """Write the crate of one study into ``folder``, which must not be there.

    Raises:
        DataError: if the folder is there, an artefact is damaged, or there is none.
    """
    if folder.exists():
        raise DataError(f"{folder}: there already. Name another folder after --to, or remove it.")
    tree = collect(root, [study])
    looks = look_at_all(tree, lambda _bytes: None)
    judge = Judge(tree, looks, [name_of(study, root)])
    if damaged := sorted(judge.damage):
        raise DataError(
            f"{damaged[0]}: damaged. Run python -m workflow_scripts.audit verify, mend, and export again."
        )
    if not judge.records:
        raise DataError(f"{study}: no artefact in it. Run the pipeline first: snakemake.")
    name = judge.studies[0]
    crate = Crate(judge, name, jobs_of(judge, name))
    for target, place in crate.files.items():
        _link(place, folder / target)
    text = json.dumps(crate.metadata(), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / METADATA).write_text(f"{text}\n", "utf-8")
    return crate


def _link(place: Path, target: Path) -> None:
    """The same file under a second name; a copy where the file system has no such links, or of code."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_relative_to(ROOT) or _is_ours(place):
        try:
            os.link(place, target, follow_symlinks=True)
        except OSError:
            pass
        else:
            return
    shutil.copyfile(place, target)


def _is_ours(place: Path) -> bool:
    """Whether only the pipeline writes the file, and never in place."""
    return "results" in place.parts


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the study and the folder to write."""
    parser.add_argument("study", type=Path, help="folder of the study: results/<study>")
    parser.add_argument("--to", type=Path, help="folder to write; default: crates/<study>")


def run(args: argparse.Namespace) -> int:
    """Write the crate and say what is in it; exit code 0, also of a study with failed jobs."""
    (study,) = studies_of(args.root, [args.study])
    folder = args.to or args.root / "crates" / study.name
    crate = export(args.root, study, folder)
    counts = {
        "files": len(crate.files),
        "jobs": len(crate.jobs),
        "failed": sum(job.failed for job in crate.jobs),
    }
    if args.json:
        print_json({"crate": folder.as_posix(), **counts})
    else:
        said = f"{folder}: {counts['files']} files, {counts['jobs']} jobs, {counts['failed']} of them failed"
        console().print(said, style="green", soft_wrap=True)
    return 0
