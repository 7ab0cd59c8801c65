"""A job, with everything that its rule passes: settings, code, packages, wildcards, inputs and outputs.

The call of a job is JSON (``graph.job_specs``). ``settings`` is the slice of the configuration that the job reads,
``packages`` contains versions, and ``files`` contains ``wildcards``, ``inputs`` and ``outputs`` by role, and
``operational``, the settings that change no result. The value of an input is the path of a file, or a list of paths.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.provenance.artefacts import (
    RECORD_FILE,
    give_record,
    job_record,
    read_table,
    write_table,
)
from workflow_scripts.provenance.cache import Cache
from workflow_scripts.provenance.closure import (
    COLUMNS,
    PACKAGE,
    ROOT,
    SETTINGS,
    UNKEYED_FILES,
    check_code,
    check_packages,
)
from workflow_scripts.provenance.record import Input, Label, Record, as_list, current_origin, merged_labels
from workflow_scripts.provenance.running import acquire_lock, beside, own_log
from workflow_scripts.settings.workplace import Workplace

TIMINGS = ("times",)
"""Roles of outputs with times, which are no artefacts because they differ between executions."""


class Job(NamedTuple):
    """A job: everything that a rule passes to its function."""

    start: Record
    """Record of the job's artefacts before it starts."""
    input_files: Mapping[str, list[Path]]
    """Paths of outputs by role, in the order of the rule."""
    outputs: dict[str, Path]
    operational: dict[str, Any]
    """Settings that change no result (``settings.base.OPERATIONAL``) and are not in the key."""
    workplace: Workplace
    """Places of finished work, answers and local data."""
    failed: dict[str, str]
    """Failed parts, with reasons; if any part failed, the outputs are not cached."""
    cached: bool = True
    """Whether the outputs are restored from the cache, and cached."""
    portable: bool = False
    """Whether other studies can use the cached outputs, because they depend on no path."""

    @property
    def rule(self) -> str:
        """Return the name of the rule."""
        return self.start.rule

    @property
    def key(self) -> str:
        """Return the hash of everything that determines the job's result (``provenance.key``)."""
        return self.start.key

    @property
    def settings(self) -> dict[str, Any]:
        """Return the slice of the configuration that the job reads."""
        return self.start.settings

    @property
    def wildcards(self) -> dict[str, str]:
        """Return the values that distinguish the job from others of its rule."""
        return self.start.wildcards

    @property
    def artefacts(self) -> list[Path]:
        """Return the outputs that contain a record; a model folder stands for its files."""
        return [path for role, path in self._outputs.items() if role not in TIMINGS]

    @property
    def _outputs(self) -> dict[str, Path]:
        """Return the files and model folders that the job writes, by role."""
        return {
            role: path.parent if path.name == RECORD_FILE else path for role, path in self.outputs.items()
        }

    @property
    def cache(self) -> Cache:
        """Return the cache of finished work."""
        return Cache(self.workplace.cache, self.workplace.cache_gigabytes)

    @property
    def log(self) -> Path | None:
        """Return the log, to which the rule redirects standard output; None for a job that was started by hand."""
        return own_log()

    def restore(self) -> bool:
        """Restore the outputs of an earlier job with the same key, and return whether they were cached."""
        if not self.cached or not self.cache.restore(self.cache_key, self._outputs):
            return False
        if self.portable:
            for path in self.artefacts:
                give_record(path, self.start)
        if self.log:  # the log is now that of a job that trains nothing
            table, events = beside(self.log)
            table.unlink(missing_ok=True)
            shutil.rmtree(events, ignore_errors=True)
        entry = self.cache.entry_folder(self.cache_key)
        print(f"{self.rule}: restored from {entry}; delete this entry to run the job again")  # noqa: T201
        return True

    def keep(self) -> None:
        """Cache all outputs unless a part of the job failed."""
        if self.cached and not self.failed:
            self.cache.put(self.cache_key, self._outputs)

    @property
    def cache_key(self) -> str:
        """Return the key of the outputs in the cache: the job's key without paths and, unless portable, all paths."""
        return cache_key(self.start, portable=self.portable)

    def record(
        self, *, external: Mapping[str, Input] | None = None, labels: Sequence[Label | str | None] = ()
    ) -> Record:
        """Return the record of all artefacts that this job writes.

        Args:
            external: External source by role (a package's file, a Hub revision).
            labels: Substitutions of this job itself, as texts, and gaps; None and empty texts are skipped. Labels of
                inputs are inherited.
        """
        more = {
            "inputs": self.start.inputs | dict(external or {}),
            "labels": merged_labels(self.start.labels, labels),
            "origin": current_origin(),
        }
        return self.start.model_copy(update=more)

    def read(self, role: str, schema: Any, names: list[str] | None = None) -> Any:
        """Return the verified table of an input (``artefacts.read_table``), with all columns of ``schema`` or some."""
        return read_table(self.input(role), schema, names)

    def write(
        self,
        tables: Mapping[str, Any],
        *,
        external: Mapping[str, Input] | None = None,
        labels: Sequence[Label | str | None] = (),
    ) -> None:
        """Write tables by the role of their output, with the record of this job."""
        record = self.record(external=external, labels=labels)
        for role, table in tables.items():
            write_table(self.outputs[role], table, record)

    def input(self, role: str) -> Path:
        """Return the file of an input role that has exactly one."""
        (path,) = self.input_files[role]
        return path

    def inputs(self, role: str) -> list[Path]:
        """Return all files of an input role, in the order of the rule; empty if the job has no such role."""
        return self.input_files.get(role, [])


def paths_by_role(roles: Mapping[str, str | Sequence[str]]) -> dict[str, Path | list[Path]]:
    """Return the input files of a call by role, without roles that have no files."""
    return {
        role: Path(paths) if isinstance(paths, str) else [Path(path) for path in dict.fromkeys(paths)]
        for role, paths in roles.items()
        if paths
    }


def begin(rule: str, call: Mapping[str, Any]) -> Job:
    """Return the job of a call, locked, with checked code, packages and inputs.

    Raises:
        DataError: if the same job is already running, if an input is missing, damaged or written for another path, or
            if code or packages differ from the planned ones.
    """
    acquire_lock()
    files = call["files"]
    inputs = paths_by_role({role: paths for role, paths in files["inputs"].items() if role != "code"})
    outputs = {role: Path(path) for role, path in files["outputs"].items()}
    code_hashes = json.loads(Path(files["inputs"]["code"]).read_text("utf-8"))
    check_code(code_hashes)
    check_packages(call["packages"])
    start = job_record(
        rule,
        wildcards=files["wildcards"],
        settings=call["settings"],
        inputs=inputs,
        outputs=[path for role, path in outputs.items() if role not in TIMINGS],
        code_hashes=code_hashes,
        versions=call["packages"],
    )
    by_role = {role: as_list(paths) for role, paths in inputs.items()}
    operational = dict(files["operational"])
    workplace = Workplace.parse(operational.pop("workplace"), "workplace")
    return Job(start, by_role, outputs, operational, workplace, {}, call["cached"], call["portable"])


def check_loaded(files: Iterable[str]) -> None:
    """Assert that all loaded modules of this package are in ``files``, or affect no result.

    Any other module is a bug: the graph has forgotten a module that is imported by name.
    """
    module_files = (
        module.__file__ for name, module in sys.modules.items() if name.startswith(f"{PACKAGE.name}.")
    )
    loaded = {Path(str(file)).relative_to(ROOT).as_posix() for file in module_files}
    unplanned = loaded - {*files, *UNKEYED_FILES, COLUMNS}
    forgotten = sorted(file for file in unplanned if not file.startswith(SETTINGS))
    assert not forgotten, f"{forgotten[0]}: loaded, but not in the planned code of the job"


def cache_key(record: Record, *, portable: bool) -> str:
    """Return the key of a job's outputs in the cache: the job's key without paths, and, unless portable, all paths."""
    by_role = {role: as_list(given) for role, given in record.internal.items()}
    identities = {
        role: {str(number): file.sha256 for number, file in enumerate(files)}
        for role, files in by_role.items()
    }
    paths = [] if portable else [record.outputs, [file.path for file in record.inner_files]]
    return hashlib.sha256(json.dumps([record.key_with(identities), *paths]).encode()).hexdigest()
