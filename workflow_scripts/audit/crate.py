"""A study as a Provenance Run RO-Crate 0.5, a folder to archive or share that other tools can read.

The crate holds the workflow, the code of every job, the results (as hard links, which take no space) and the logs of
failed jobs; its metadata say which job made what from what, when, and with which settings. Weights and results above
5 MB, which are nearly all of a study's bytes, are named by their hash and place in the study and left out, unless the
whole is wanted. Dates are taken from Snakemake's measurements. A study with a damaged artefact is not exported.
"""

import json
import mimetypes
import os
import shutil
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workflow_scripts.audit.disk import collect, inspect_all
from workflow_scripts.audit.jobs import Job, jobs_of, last_words
from workflow_scripts.audit.lookup import check_place, is_outside, made_by, name_of
from workflow_scripts.audit.verify import REPORT, Verifier
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import ROOT, UNKEYED_FILES, meaning_now
from workflow_scripts.provenance.record import sha256_of

METADATA = "ro-crate-metadata.json"
_RO_CRATE = "https://w3id.org/ro/crate/1.1"  # the version that the run profiles extend
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
_WEIGHTS = ".safetensors"
_LARGE_BYTES = 5_000_000
"""Of a result that a light crate names by its hash; of weights, each does."""
NAMED_BY_HASH = "ni:///sha-256;"
"""How the name of a file begins that is not in the crate."""
_FORMS = {
    ".parquet": "application/vnd.apache.parquet",
    ".md": "text/markdown",
    ".smk": "text/x-python",
    _WEIGHTS: "application/octet-stream",
}

Reference = dict[str, str]


class Crate:
    """The metadata and files of one study."""

    def __init__(self, verifier: Verifier, study: str, jobs: list[Job], *, whole: bool) -> None:
        self.verifier, self.study, self.jobs, self.whole = verifier, study, jobs, whole
        self.files: dict[str, Path] = {}
        """Name in the crate to the file on disk."""
        self.left_out: dict[str, int] = {}
        """Large files that are named by their hash alone, and their size in bytes."""
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
        """Add an entity unless it exists already."""
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

    def _name_large(self, file: str, place: Path) -> Reference:
        """Name a file that is not in the crate by its hash, and by where it lies in the study."""
        digest = self.verifier.inspections[file].sha256 or sha256_of(place)
        self.left_out[file] = place.stat().st_size
        named = self._add(
            named_by_hash(digest),
            "File",
            name=f"{place.name} {digest[:12]}",
            description="Not in this crate: it is in the study, below the names given, or made again by its job",
            sha256=digest,
            contentSize=str(self.left_out[file]),
            encodingFormat=_FORMS.get(place.suffix),
        )
        self._append(named, "alternateName", file)
        return named

    def _result(self, file: str) -> Reference:
        """A file that a job wrote, in the crate or named by its hash."""
        place = self.verifier.inventory.root / file
        is_large = place.suffix == _WEIGHTS or place.stat().st_size > _LARGE_BYTES
        return self._name_large(file, place) if is_large and not self.whole else self._add_file(file, place)

    def _append(self, owner: Reference, key: str, value: Reference | str) -> None:
        """Add a value to a property that holds a list."""
        present = self.entities[owner["@id"]].setdefault(key, [])
        if value not in present:
            present.append(value)

    def _parameter(self, owner: Reference, key: str, role: str, kind: str) -> Reference:
        """A parameter of a tool or of the workflow; ``key`` is ``input`` or ``output``."""
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
        """Link an entity to the parameter that it is a value of; folders and files have parameters of their own."""
        kind = "Dataset" if self.entities[given["@id"]]["@type"] == "Dataset" else "File"
        role = f"{role} folder" if kind == "Dataset" else role
        self._append(given, "exampleOfWork", self._parameter(owner, key, role, kind))

    # The workflow

    def _describe_workflow(self) -> None:
        records = self.verifier.records.values()
        commits = sorted(
            {f"{r.origin.commit}{' with changes' * r.origin.dirty}" for r in records if r.origin.commit}
        )
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
        """Describe a rule's entry script (the tool) and its step of the workflow; returns the tool."""
        name = f"workflow_scripts/jobs/{rule}.py"
        kinds = ["File", "SoftwareSourceCode"]
        place = ROOT / name
        if place.exists():
            about = f"entry script of rule {rule}"
            tool = self._add_file(
                name, place, kinds, name=rule, description=about, version=sha256_of(place)[:12]
            )
        else:  # a rule that no longer exists
            tool = self._add(f"#tool/{rule}", "SoftwareApplication", name=rule)
        position = str(len(self.entities[_WORKFLOW["@id"]].get("step", [])) + 1)
        step = self._add(f"#step/{rule}", "HowToStep", name=rule, position=position, workExample=tool)
        self._append(_WORKFLOW, "step", step)
        self._append(_WORKFLOW, "hasPart", tool)
        return tool

    # Jobs

    def _describe_job(self, job: Job) -> Reference:
        """Describe a job as an action that a step of the workflow controls; returns the control action."""
        tool = self._describe_rule(job.rule)
        name = f"{job.rule}/{job.name}"
        action = self._add(
            f"#job/{name}",
            "CreateAction",
            name=f"job {made_by(job.record) if job.record else name}",
            description=f"rule {job.rule} for {job.name}",
            instrument=tool,
            startTime=_text(job.start),
            endTime=_text(job.end),
            **(self._finished(job, name, tool) if job.record else self._failed(job)),
        )
        return self._add(
            f"#control/{name}",
            "ControlAction",
            name=f"start of {name}",
            instrument={"@id": f"#step/{job.rule}"},
            object=action,
        )

    def _finished(self, job: Job, name: str, tool: Reference) -> dict[str, Any]:
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
        unchanged = {file for file, meaning in job.record.meaning.items() if meaning_now(file) == meaning}
        for file in sorted(unchanged.union(UNKEYED_FILES)):
            self._append(tool, "softwareRequirements", self._add_file(file, ROOT / file))
        return {"object": read, "result": wrote, "actionStatus": _COMPLETED}

    def _failed(self, job: Job) -> dict[str, Any]:
        assert job.log is not None
        log = self._add_file(name_of(job.log, self.verifier.inventory.root), job.log)
        return {"actionStatus": _FAILED, "error": last_words(job.log), "subjectOf": log}

    def _artefact(self, path: str) -> Reference:
        """A file or model folder inside the pipeline; those of other studies are referred to, not copied."""
        root, name = self.verifier.inventory.root, self.verifier.artefact_of(path)
        if name in self.verifier.inventory.models:
            parts = [self._result(part) for part in sorted(self.verifier.inventory.parts[name])]
            return self._add(f"{name}/", "Dataset", name=name, description="Encoder", hasPart=parts)
        if name in self.verifier.inspections:
            return self._result(name)
        if name.startswith("resources/") and (root / name).is_file():
            return self._add_file(name, root / name)
        return self._source(path, None)

    def _source(self, path: str, sha256: str | None) -> Reference:
        """Something that this run did not make; the hash of a Hub revision is too short for a sha256."""
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
        others = [
            name
            for name, entity in self.entities.items()
            if entity["@type"] in ("Dataset", "File") and name not in self.files
        ]
        self._add(
            "./",
            "Dataset",
            name=f"Semblance: study {Path(self.study).name}",
            description="Trained and evaluated sentence encoders, with the provenance of every number",
            datePublished=max(self._ends(), default=datetime.now(UTC)).isoformat(timespec="seconds"),
            license={"@id": _LICENSE}
            if _LICENSE in self.files
            else self._add("https://spdx.org/licenses/MIT", "CreativeWork", name="MIT License"),
            conformsTo=profiles,
            mainEntity=_WORKFLOW,
            mentions=[
                {"@id": name} for name, entity in self.entities.items() if entity["@type"] == "CreateAction"
            ],
            hasPart=[{"@id": name} for name in (*self.files, *others)],
        )


def named_by_hash(sha256: str) -> str:
    """The name of a file by its hash (RFC 6920); empty for what is no sha256."""
    try:
        digest = bytes.fromhex(sha256)
    except ValueError:
        return ""
    return NAMED_BY_HASH + urlsafe_b64encode(digest).decode().rstrip("=")


def _single(value: Any) -> Any:
    """The only member of a list of one, as RO-Crate 1.1 recommends; other values as they are."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(date: datetime | None) -> str | None:
    return date.isoformat(timespec="seconds") if date else None


def write_crate(study: Path, folder: Path, *, whole: bool = False) -> Crate:
    """Write the crate of one study into a new folder, with its large files if it is to be ``whole``.

    Raises:
        DataError: if the folder exists, an artefact is damaged, or there is no artefact.
    """
    if folder.exists():
        raise DataError(f"{folder}: exists already. Name another folder after --to, or remove this one.")
    check_place(folder)
    inventory = collect([study])
    inspections = inspect_all(inventory, lambda _bytes: None)
    verifier = Verifier(inventory, inspections, [name_of(study)])
    if damaged := verifier.not_as_written():
        raise DataError(
            f"{damaged[0]}: damaged. Run python -m workflow_scripts verify, repair it, and export again."
        )
    if not verifier.records:
        raise DataError(f"{study}: no artefact in this folder. Run the pipeline first: snakemake.")
    name = verifier.studies[0]
    crate = Crate(verifier, name, jobs_of(verifier, name), whole=whole)
    for target, place in crate.files.items():
        _bring(place, folder / target, link=Path(target).parts[0] == "results")
    text = json.dumps(crate.metadata(), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / METADATA).write_text(f"{text}\n", "utf-8")
    return crate


def _bring(place: Path, target: Path, *, link: bool) -> None:
    """Hard-link a result, which is never changed in place; copy what people edit, and what cannot be linked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        with suppress(OSError):
            os.link(place, target, follow_symlinks=True)
            return
    shutil.copyfile(place, target)
