"""Copy results to share them: a study as a Provenance Run RO-Crate 0.5, or one finished model as a folder.

A crate holds the workflow, the code of every job that is as it was, and the results (as hard links, which take no
space); its metadata say which job made what from what, when, and with which settings. Of a model it holds the record,
which lists the hash of every file, weights included: they are nearly all of a study's bytes. Dates are taken from
Snakemake's measurements. A study with a damaged artefact is not exported. The copy of a model has the model's card as
its README.md, with scores if rule write_model_card made one, and can go to the Hub as it is.

  python -m workflow_scripts export results/demo
  python -m workflow_scripts export results/demo/runs/simcse.minilm_mlm.wiki_extract/seed1 --to my_model
"""

import json
import mimetypes
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

from rich.filesize import decimal

from workflow_scripts.audit.cost import Job, jobs_of
from workflow_scripts.audit.printing import Answer, argument
from workflow_scripts.audit.records import Records, made_by, studies_of, study_folder
from workflow_scripts.audit.verify import not_as_written
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, check_model_folder, verify_checksum
from workflow_scripts.provenance.closure import ROOT, UNKEYED_FILES, meaning_now
from workflow_scripts.provenance.kept import link_or_copy
from workflow_scripts.provenance.record import Record, sha256_of
from workflow_scripts.reporting.model_card import README_FILE, readme

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
_MIT = "https://spdx.org/licenses/MIT"
_COMPLETED = "http://schema.org/CompletedActionStatus"
_WORKFLOW = "Snakefile"
_ABOUT = ("LICENSE", "README.md", "requirements.lock", "pyproject.toml")
_FORMS = {".parquet": "application/vnd.apache.parquet", ".md": "text/markdown"}

Reference = dict[str, str]


class Crate:
    """The files of a crate, and what its metadata say."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        """Name in the crate to the file on disk."""
        self.entities: dict[str, dict[str, Any]] = {}

    def add(self, identifier: str, kind: str | list[str], /, **properties: Any) -> Reference:
        """Describe something, unless it is described already; what is None or empty is left out."""
        known = {key: value for key, value in properties.items() if value}
        self.entities.setdefault(identifier, {"@id": identifier, "@type": kind, **known})
        return {"@id": identifier}

    def add_file(
        self, name: str, place: Path, kind: str | list[str] = "File", /, **properties: Any
    ) -> Reference:
        """Take in a file and describe it, unless it is there already."""
        if name not in self.files:
            self.files[name] = place
            form = _FORMS.get(place.suffix) or mimetypes.guess_type(name)[0] or "text/plain"
            known = {"name": name, "sha256": sha256_of(place), "contentSize": str(place.stat().st_size)}
            self.add(name, kind, **known | {"encodingFormat": form} | properties)
        return {"@id": name}

    def add_given(self, path: str, sha256: str | None = None) -> Reference:
        """A file that a job read or wrote, or the name of a source that is none."""
        if Path(path).is_file():
            return self.add_file(path, Path(path))
        return self.add(f"#source/{path}", "CreativeWork", name=path, identifier=path, sha256=sha256)

    def add_job(self, job: Job) -> Reference:
        """A job as an action of its rule's entry script, under the control of its step; returns the control."""
        record = job.record
        name = "/".join([record.rule, *record.wildcards.values()])
        inputs = [self.add_given(one.path, one.sha256) for one in record.inputs.values()]
        settings = json.dumps(record.settings, sort_keys=True)
        given = self.add(f"#settings/{name}", "PropertyValue", name="config", value=settings)
        action = self.add(
            f"#job/{name}",
            "CreateAction",
            name=made_by(record),
            description=f"a job of rule {record.rule}",
            instrument=self._add_rule(record.rule),
            object=[given, *inputs],
            result=[self.add_given(path) for path in (*record.outputs, *_pictures(record))],
            endTime=job.end and job.end.isoformat(timespec="seconds"),
            actionStatus=_COMPLETED,
        )
        for file, meaning in record.meaning.items():
            if meaning_now(file) == meaning:
                self.add_file(file, ROOT / file)
        step = {"@id": f"#step/{record.rule}"}
        return self.add(
            f"#control/{name}", "ControlAction", name=f"start of {name}", instrument=step, object=action
        )

    def _add_rule(self, rule: str) -> Reference:
        """A rule's entry script, and the step of the workflow that runs it."""
        script = f"workflow_scripts/jobs/{rule}.py"
        tool = self.add_file(
            script,
            ROOT / script,
            ["File", "SoftwareSourceCode"],
            name=rule,
            version=sha256_of(ROOT / script)[:12],
            description=f"entry script of rule {rule}",
        )
        steps, tools = (self.entities[_WORKFLOW].setdefault(key, []) for key in ("step", "hasPart"))
        if tool not in tools:
            tools.append(tool)
            position = str(len(tools))
            steps.append(
                self.add(f"#step/{rule}", "HowToStep", name=rule, position=position, workExample=tool)
            )
        return tool

    def add_workflow(self, commits: Iterable[str]) -> None:
        """The Snakefile, its rules, and what is written about them."""
        for name in (*_ABOUT, *UNKEYED_FILES):
            if (ROOT / name).exists():
                self.add_file(name, ROOT / name, about={"@id": "./"} if name == "README.md" else None)
        snakemake = {"name": "Snakemake", "identifier": {"@id": _SNAKEMAKE}, "url": {"@id": _SNAKEMAKE}}
        self.add_file(
            _WORKFLOW,
            ROOT / _WORKFLOW,
            ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
            name="Semblance",
            description="Snakemake workflow from raw text to report",
            version=", ".join(commits),
            programmingLanguage=self.add(f"{_WORKFLOW_RO_CRATE}#snakemake", "ComputerLanguage", **snakemake),
            softwareRequirements=[
                self.add_file(f"rules/{file.name}", file) for file in sorted((ROOT / "rules").glob("*.smk"))
            ],
        )

    def add_run(self, study: str, jobs: list[Job]) -> None:
        """The run of Snakemake that controlled all jobs, and the crate itself."""
        controls = [self.add_job(job) for job in jobs]
        made = [{"@id": name} for name in self.files if name.startswith(f"{study}/")]
        sources = [{"@id": name} for name in self.entities if name.startswith("#source/")]
        ends = [job.end for job in jobs if job.end]
        last = max(ends, default=datetime.now(UTC)).isoformat(timespec="seconds")
        workflow = {"@id": _WORKFLOW}
        run = self.add(
            "#run",
            "CreateAction",
            name=f"run of study {Path(study).name}",
            description="All jobs that made the results",
            instrument=workflow,
            object=sources,
            result=made,
            endTime=last,
            actionStatus=_COMPLETED,
        )
        engine = self.add(
            _SNAKEMAKE,
            "SoftwareApplication",
            name="Snakemake",
            version=version("snakemake"),
            url={"@id": _SNAKEMAKE},
        )
        name = "run of Snakemake"
        self.add(
            "#orchestration", "OrganizeAction", name=name, instrument=engine, object=controls, result=run
        )
        actions = [one for one in self.entities.values() if one["@type"] == "CreateAction"]
        self.add(
            "./",
            "Dataset",
            name=f"Semblance: study {Path(study).name}",
            description="Trained and evaluated sentence encoders, with the provenance of every number",
            datePublished=last,
            license=self.add(_MIT, "CreativeWork", name="MIT License"),
            conformsTo=[
                self.add(uri, "CreativeWork", name=name, version=number)
                for uri, (name, number) in _PROFILES.items()
            ],
            mainEntity=workflow,
            mentions=[{"@id": one["@id"]} for one in actions],
            hasPart=[{"@id": name} for name in self.files],
        )

    def write(self, folder: Path) -> None:
        """Bring the files and the metadata to a new folder."""
        for name, place in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            is_result = name.startswith(
                "results/"
            )  # which is never changed in place, unlike what people edit
            (link_or_copy if is_result else shutil.copyfile)(str(place), str(folder / name))
        described = {"about": {"@id": "./"}, "conformsTo": [{"@id": _RO_CRATE}, {"@id": _WORKFLOW_RO_CRATE}]}
        about = {"@id": METADATA, "@type": "CreativeWork", **described}
        content = {"@context": [f"{_RO_CRATE}/context", _TERMS], "@graph": [about, *self.entities.values()]}
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / METADATA).write_text(f"{text}\n", "utf-8")


def _pictures(record: Record) -> list[str]:
    """The figures that a record vouches for, and their data."""
    folders = [Path(path).parent for path in record.outputs]
    shown = [file for file in record.files if file.endswith((".svg", ".parquet"))]
    return [(folder / file).as_posix() for folder in folders for file in shown]


def write_crate(study: Path, folder: Path) -> Crate:
    """Write the crate of one study into a new folder.

    Raises:
        DataError: if the folder exists, an artefact is damaged, or there is no artefact.
    """
    if folder.exists():
        raise DataError(f"{folder}: exists already. Name another folder after --to, or remove this one.")
    records = Records([study])
    if damaged := not_as_written(records):
        raise DataError(
            f"{damaged[0]}: damaged. Run python -m workflow_scripts verify, repair it, and export again."
        )
    if not records.by_file:
        raise DataError(f"{study}: no artefact in this folder. Run the pipeline first: snakemake.")
    crate = Crate()
    crate.add_workflow(sorted({str(record.origin.commit) for record in records.by_file.values()}))
    crate.add_run(records.folders[0], jobs_of(records, records.folders[0]))
    crate.write(folder)
    return crate


ARGUMENTS = (
    argument(
        "path", type=study_folder, help="results/<study>, or of a model results/<study>/runs/<run>/seed<seed>"
    ),
    argument("--to", type=Path, help="folder to make; of a study, default: crates/<study>"),
)


def answer(path: Path, to: Path | None) -> Answer:
    """What was written."""
    if (path / "model" / RECORD_FILE).is_file():
        if to is None:
            raise DataError(f"{path}: a model. Name the folder to make: --to FOLDER.")
        export_model(path, to)
        return Answer(f"{to}: upload it with `hf upload <name> {quote(str(to))}`.")
    (study,) = studies_of([path])
    if study.parent != Path("results"):
        raise DataError(f"{study}: no study. Name one, such as results/demo.")
    folder = to or Path("crates", study.name)
    crate = write_crate(study, folder)
    size = decimal(sum(place.stat().st_size for place in crate.files.values()))
    return Answer(f"{folder}: {len(crate.files)} files, {size}", data={"crate": folder.as_posix()})


def export_model(run: Path, target: Path) -> None:
    """Copy the model of one run and seed, and its card, into a new folder, all of it or nothing.

    Raises:
        DataError: if model or card are not what the pipeline wrote, or ``target`` exists.
    """
    model, card = run / "model", run / README_FILE
    record = check_model_folder(model)
    if target.exists():
        raise DataError(f"{target}: exists. Name a folder that does not.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        copy = Path(temporary, "model")
        for name in (*record.files, RECORD_FILE):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model / name, copy / name)
        if card.exists():
            verify_checksum(card)
            shutil.copyfile(card, copy / README_FILE)
        else:
            (copy / README_FILE).write_text(readme(model), "utf-8")
        copy.rename(target)
