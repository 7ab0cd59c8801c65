"""Encode the sentences of a corpus with a finished run, for its students (rule encode_teacher)."""

import pyarrow as pa
from pydantic import Field

from workflow_scripts.artefacts import write_table
from workflow_scripts.config import Slice
from workflow_scripts.errors import one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.schemas import TEACHER
from workflow_scripts.training.material import read_columns


class Teacher(Slice):
    """Section ``teacher`` of the configuration."""

    max_tokens: int = Field(gt=2, description="Longer sentences are cut before the teacher reads them.")


def main() -> None:
    """Load, encode, write."""
    job = parse_job(
        "encode_teacher",
        __doc__,
        wildcards=["teacher", "corpus", "seed"],
        inputs=["model", "sentences"],
        outputs=["vectors"],
    )
    settings = Teacher.parse(job.settings["teacher"], "teacher")
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    vectors_ND = encode(
        encoder, tokenizer, read_columns(job.inputs["sentences"])["anchor"], settings.max_tokens
    )
    count, width = vectors_ND.shape
    encoders = len(encoder.leaves) if isinstance(encoder, Ensemble) else 1
    columns = [
        pa.FixedSizeListArray.from_arrays(pa.array(vectors_ND.ravel()), width).cast(
            TEACHER.field("vector").type
        ),
        pa.array([encoders] * count, TEACHER.field("encoders").type),
    ]
    record = job.record(modules=encoder.modules_by_name)
    write_table(job.outputs["vectors"], pa.table(columns, schema=TEACHER), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
