"""The page on a study of one's own, with text and an encoder as it asks for, from text to table."""

import pytest

from tests.support import doc_blocks, toys
from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, snakemake
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import read_table


@pytest.mark.slow
def test_an_encoder_learns_from_lines_in_chunks_of_a_batch(tmp_path):
    """An encoder learns from lines of text in chunks of a batch."""
    folder = copy_tree(tmp_path)
    for step in doc_blocks.steps((ROOT / "docs/your_own_study.md").read_text("utf-8")):
        if step.use == "write":
            (folder / step.note).parent.mkdir(exist_ok=True)
            (folder / step.note).write_text(step.text, "utf-8")
    toys.write_model(folder / "mine/my_bert", "bert", max_position_embeddings=256)
    (folder / "mine/sentences.txt").write_text("\n".join(toys.sentences(200)))
    study = ["--quiet", "rules", "--configfile", DEMO, "config/mine.yaml", "--config", "training={chunk: 5}"]
    code, printed = snakemake(folder, "--cores", "2", *study)
    assert code == 0, printed[-3000:]
    cells = read_table(folder / "results/mine/tables/mine.parquet", TABLE).to_pylist()
    assert (
        "development.dataset: my_dev selects checkpoints, but has at most 4 pairs" in printed
    )  # one is the heading
    assert [row["note"] for row in cells] == [None, "its checkpoint was chosen by 3 pairs"]
    assert [row["seeds"] for row in cells] == [1, 2]
    assert cells[0]["mean"] != cells[1]["mean"]
