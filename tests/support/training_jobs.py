"""Training jobs in a folder, called as their rules call them; heavy imports wait until a job runs."""

import atexit
import contextlib
import copy
import gc
import hashlib
import json
import multiprocessing
import os
import re
import resource
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

STEPS = 12
NOWHERE = {
    "cache": None,
    "cache_gigabytes": 1,
    "answer_store": "answers/answers.sqlite",
    "data_root": None,
    "offline": False,
}
"""The workplace of a job without a cache and local data."""
SEED = "1"
MODEL = Path("run/model")
"""Where both rules put their model; the history stands beside it."""

_TRAINING = {
    "epochs": None,
    "max_steps": STEPS,
    "batch_size": 8,
    "last_batch": "drop",
    "max_tokens": 16,
    "learning_rate": 0.003,
    "schedule": "linear",
    "min_lr_ratio": 0.0,
    "warmup_steps": 2,
    "weight_decay": 0.01,
    "max_gradient_norm": 1.0,
    "precision": "float32",
    "checkpoint_minutes": 0,
    "gpus": 1,
    "cpu_threads": 1,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "train_encoder": {
        "method": {
            "module": "simcse",
            "readout": {"kind": "pooling", "pooler": "cls", "layers": None},
            "head_at_test": False,
            "temperature": 0.05,
            "dropout": None,
        },
        "training": _TRAINING,
        "development": {"every": 3, "max_tokens": 16},
    },
    "continue_mlm": {
        "continue_mlm": {"mlm_probability": 0.15, "seed": 5, "training": _TRAINING},
        "adapt": {"base": "tiny", "corpus": "toy", "label": "a tiny encoder stands in for a real one"},
    },
}


def config(rule: str, **training: Any) -> dict[str, Any]:
    """The slice of ``rule`` with some settings of its training changed."""
    made = copy.deepcopy(CONFIGS[rule])
    (made if rule == "train_encoder" else made["continue_mlm"])["training"] |= training
    return made


def planned_code(rule: str, *modules: str) -> tuple[str, dict[str, str]]:
    """Code and packages of a job as its rule passes them: of its script and of ``modules``, imported by name."""
    from workflow_scripts.provenance.closure import code_hashes, packages

    script = module_of(rule)
    text = json.dumps(code_hashes("jobs", script, *modules))
    folder = Path(tempfile.gettempdir(), f"semblance-code-{os.getuid()}")
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(file)  # a job of another process that shares the tests may be reading it
    return str(file), packages(script, *modules)


@cache
def text_of(rule: str) -> str:
    """A rule as it is written."""
    files = (Path(__file__).parents[2] / "rules").glob("*.smk")
    (text,) = (
        found
        for file in files
        for found in re.findall(rf"^rule {rule}:$.*?(?=^rule |\Z)", file.read_text(), re.M | re.S)
    )
    return text


def module_of(rule: str) -> str:
    """The module of a rule's function."""
    files = (Path(__file__).parents[2] / "rules").glob("*.smk")
    found = (re.search(rf"^{rule} = JobSpec\(\s*\"([\w.]+)\.\w+\"", file.read_text(), re.M) for file in files)
    return next(filter(None, found))[1]


@cache
def roles(rule: str) -> dict[str, list[str]]:
    """Roles of a rule's inputs and outputs, as its text has them."""
    text = text_of(rule)
    blocks = {
        kind: re.search(rf"^    {kind}:\n((?:        .*\n)+)", text, re.M)[1] for kind in ("input", "output")
    }
    return {kind: re.findall(r"^        (\w+)=", block, re.M) for kind, block in blocks.items()}


def call_of(rule: str, settings: dict[str, Any], modules: Iterable[str] = (), **named: Any) -> dict[str, Any]:
    """The call of a job as its rule makes it, of its wildcards, files and what it is told besides, by their names."""
    from workflow_scripts.graph.job_specs import OPERATIONAL

    code, packages = planned_code(rule, *modules)
    files: dict[str, dict[str, Any]] = {
        "wildcards": {},
        "inputs": {"code": code},
        "outputs": {},
        "operational": {"workplace": NOWHERE},
    }
    kinds = dict.fromkeys((*OPERATIONAL, "workplace"), "operational")
    kinds |= {role: f"{kind}s" for kind, names in roles(rule).items() for role in names}
    for name, value in named.items():
        several = isinstance(value, list | tuple)
        is_file = several or isinstance(value, Path)  # of a rule that spreads a lookup of several roles
        kind = kinds.get(name, "inputs" if is_file else "wildcards")
        files[kind][name] = value if kind == "operational" else [*map(str, value)] if several else str(value)
    flags = {"cached": True, "portable": rule in CONFIGS, "outside": ""}
    return flags | {"module": module_of(rule), "settings": settings, "packages": packages, "files": files}


def training_call(rule: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The call of a training in a folder of ``make_inputs``; its paths are relative, so that folders are interchangeable."""
    from workflow_scripts.methods import method_modules
    from workflow_scripts.settings.methods import read_method

    inputs = {
        "train_encoder": {
            "run": "simcse",
            "seed": SEED,
            "encoder": "encoder/record.json",
            "dev": "corpus/dev.parquet",
        },
        "continue_mlm": {"encoder": "tiny_mlm", "base": "encoder/record.json"},
    }[rule]
    outputs = {"record": MODEL / "record.json", "history": "run/history.parquet"}
    if rule == "train_encoder":
        outputs["metrics"] = "run/metrics.parquet"
    modules = method_modules(read_method(settings["method"], "methods")) if rule == "train_encoder" else []
    settings = copy.deepcopy(settings)
    training = (settings if rule == "train_encoder" else settings["continue_mlm"])["training"]
    asked = {name: training.pop(name, None) for name in ("checkpoint_minutes", "chunk")}
    files = inputs | {"corpus": "corpus/train.parquet"} | outputs
    return call_of(rule, settings, modules, **asked, **files)


def make_inputs(folder: Path, texts: int = 40, pairs: int = 16) -> Path:
    """Write a checksummed encoder, a corpus and development pairs below ``folder``."""
    import numpy as np
    import pyarrow as pa

    from tests.support import toys
    from workflow_scripts.columns import PAIRS, SENTENCES
    from workflow_scripts.provenance.artefacts import job_record, write_table, writing_model_folder

    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    with writing_model_folder(folder / "encoder", record) as place:
        toys.write_model(place, "bert")
    made = toys.sentences(texts) if texts else []
    columns = [made, np.arange(texts), np.zeros(texts)]
    corpus = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, SENTENCES, strict=True)], schema=SENTENCES
    )
    left, right = toys.sentences(pairs or 1, seed=1)[:pairs], toys.sentences(pairs or 1, seed=2)[:pairs]
    columns = [[""] * pairs, left, right, np.random.default_rng(0).random(pairs)]
    dev = pa.table([pa.array(c, f.type) for c, f in zip(columns, PAIRS, strict=True)], schema=PAIRS)
    write_table(folder / "corpus/train.parquet", corpus, record)
    write_table(folder / "corpus/dev.parquet", dev, record)
    return folder


def run_here(rule: str, settings: dict[str, Any]) -> None:
    """Run the training ``rule`` in this process and folder, to its end."""
    from workflow_scripts.errors import one_line_errors

    with one_line_errors():
        begin_here(rule, training_call(rule, settings))


def begin_here(rule: str, call: dict[str, Any]) -> None:
    """Run a job in this process and folder, whose errors are raised."""
    from workflow_scripts.jobs.__main__ import main

    main([rule, json.dumps(call)])


def call(script: str, settings: dict[str, Any], modules: Iterable[str] = (), **named: Any) -> None:
    """Call an entry script in this process as its rule does; ``modules`` are those that it imports by name."""
    from workflow_scripts.errors import one_line_errors

    with one_line_errors():
        begin_here(script, call_of(script, settings, modules, **named))


_FORK = multiprocessing.get_context("fork")


def in_child(act: Callable[[], None], log: Path) -> int | None:
    """Exit code of a fork of this process that does something, or less than 0 after a signal; it prints to ``log``."""
    process = started_child(act, log)
    process.join()
    return process.exitcode


def started_child(act: Callable[[], None], log: Path) -> multiprocessing.process.BaseProcess:
    """A fork of this process that does something, started; it prints to ``log``."""
    import torch

    def child() -> None:
        torch.set_num_threads(1)  # a fork has none of its parent's threads, and would wait for them for ever
        gc.disable()  # each collection would look at, and so copy, all that the parent has loaded
        with log.open("a") as file:
            _print_to(file.fileno())
        act()

    process = _FORK.Process(target=child)
    process.start()
    return process


def _print_to(file: int) -> None:
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.stdout, sys.stderr = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))  # noqa: SIM115


class Started:
    """A job in a fork of this process, to which Python and the packages of others are no news.

    The project's modules are loaded anew, as the first thing of a process of its own would be. It has of
    ``subprocess.Popen`` what tests ask for; both streams are one.
    """

    def __init__(self, rule: str, call: dict[str, Any], folder: Path, environment: Mapping[str, str]):
        _prepare()
        self._printed = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = _FORK.Process(
            target=_become, args=(rule, call, folder, dict(environment), self._printed.fileno())
        )
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """The exit code, or less than 0 after a signal; None as long as it runs."""
        return self._process.exitcode

    poll = returncode.fget

    def send_signal(self, number: int) -> None:
        """Send a signal to a process that runs."""
        if self.poll() is None:
            os.kill(self._process.pid, number)

    def communicate(self) -> tuple[str, None]:
        """Wait for the end; returns all that it printed."""
        self._process.join()
        self._printed.seek(0)
        return self._printed.read(), None


@cache
def _prepare() -> None:
    """Unpack the detector of languages, which each job that asks for one would do again."""
    from py3langid import langid

    langid.LanguageIdentifier.from_model_file = cache(langid.LanguageIdentifier.from_model_file)
    langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def _become(rule: str, call: dict[str, Any], folder: Path, environment: dict[str, str], printed: int) -> None:
    gc.disable()  # as a job does while it loads
    _print_to(printed)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name in [name for name in sys.modules if name.split(".")[0] == "workflow_scripts"]:
        del sys.modules[name]
    atexit._clear()  # what this process was to do at its end is the other's
    sys.argv = ["jobs", rule, json.dumps(call)]
    try:
        runpy.run_module("workflow_scripts.jobs", run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # which a child of multiprocessing does not do by itself


@contextlib.contextmanager
def full_disk(size: int = 100_000) -> Iterator[None]:
    """Let no file of this process grow beyond ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_of(folder: Path) -> dict[str, str]:
    """Hash of every file below ``folder``."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }
