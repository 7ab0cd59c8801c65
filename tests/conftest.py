"""Shared fixtures: tiny encoders, made once a session. Heavy imports wait until they are needed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from workflow_scripts.provenance.cache import Cache

os.environ.pop(
    "COLUMNS", None
)  # processes that share the tests are told 80, and print tables as narrow as that
settings.register_profile("semblance", deadline=None)  # 200 ms an example tell how busy the machine is
settings.load_profile("semblance")
gc.disable()  # imports make no garbage, and looking for it takes a fifth of their time


def pytest_collection_finish() -> None:
    """Keep Python from looking for garbage, test by test, among the packages that are loaded by now."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a tiny encoder of each kind; tests must leave them as they are."""
    from tests.support import toys

    folder = tmp_path_factory.mktemp("tiny")
    return {kind: toys.write_model(folder / kind, kind) for kind in toys.KINDS}


@pytest.fixture(scope="session")
def tiny_bert(tiny_models: dict[str, Path]) -> Path:
    """Folder of the BERT-like encoder."""
    return tiny_models["bert"]


@pytest.fixture
def cached(tmp_path: Path) -> Cache:
    """A cache of the test's own, which is empty."""
    from workflow_scripts.provenance.cache import Cache

    return Cache(tmp_path / "cache", 1)


@pytest.fixture
def torch_settings() -> Iterator[None]:
    """Put back the threads and the choice of algorithms that a training fixes for its whole process."""
    import torch

    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
