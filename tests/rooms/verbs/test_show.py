"""A missing table of a study."""

from pathlib import Path

import pytest

from tests.rooms.verbs.conftest import STUDY
from tests.verbs import printed
from workflow_scripts.errors import DataError


def test_a_missing_table_is_named_with_the_command_that_makes_it(root, capsys):
    Path(STUDY, "tables/main.parquet").unlink()
    assert printed("show", "study")[0] == 1
    missing = f"{STUDY}/tables/main.parquet: no such file. Make it: snakemake --cores all {STUDY}/tables/main"
    assert capsys.readouterr().err.startswith(missing)
    with pytest.raises(DataError, match=f"^{missing}"):
        printed("show", f"{STUDY}/tables/main.parquet")
