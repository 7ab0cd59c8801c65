import pytest

from workflow_scripts.apis.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "answers.sqlite") as opened:
        yield opened
