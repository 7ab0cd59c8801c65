import subprocess

import pytest

from workflow_scripts.data.readers.class_files import Config, read


def read_one(path, escapes):
    parsed = read({"positive": path}, Config(escapes=escapes))
    return parsed.table["text1"].to_pylist(), parsed.dropped


def test_the_role_is_the_label_and_the_order_of_the_configuration_does_not_matter(tmp_path):
    (tmp_path / "p").write_text("good \nfine\n", "utf-8")
    (tmp_path / "n").write_text("bad\n", "utf-8")
    files = {"positive": tmp_path / "p", "negative": tmp_path / "n"}
    table = read(files, Config(escapes="keep")).table
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("", "bad", None, "negative"),
        ("", "good", None, "positive"),
        ("", "fine", None, "positive"),
    ]
    assert read(dict(reversed(files.items())), Config(escapes="keep")).table.equals(table)


def test_blank_lines_are_kept_and_counted(tmp_path):
    (tmp_path / "p").write_text("good\n\n \nfine\n\n", "utf-8")
    texts, counted = read_one(tmp_path / "p", "keep")
    assert texts == ["good", "", "", "fine", ""]
    assert counted == {"kept: blank line": 3}


def test_escapes_are_counted_and_decoded_on_request_only(tmp_path):
    (tmp_path / "p").write_text("clichM-is pile up M-^E\nup ^ down\n", "utf-8")
    assert read_one(tmp_path / "p", "keep") == (
        ["clichM-is pile up M-^E", "up ^ down"],
        {"kept: escapes of cat -v (keep)": 1},
    )
    assert read_one(tmp_path / "p", "decode") == (
        ["clichés pile up …", "up ^ down"],
        {"kept: escapes of cat -v (decode)": 1},
    )


def test_decoding_undoes_cat_v_for_every_high_byte(tmp_path):
    high = bytes(range(0x80, 0x100))
    escaped = subprocess.run(
        ["cat", "-v"],
        input=b"<" + b" ".join(bytes([b]) for b in high) + b">\n",
        capture_output=True,
        check=True,
    )
    (tmp_path / "p").write_bytes(escaped.stdout)
    expected = " ".join(bytes([b]).decode("cp1252", "ignore") or chr(b) for b in high)
    assert read_one(tmp_path / "p", "decode")[0] == [f"<{expected}>"]


@pytest.mark.parametrize("escapes", ["keep", "decode"])
def test_no_row_is_lost_with_either_choice(tmp_path, escapes):
    (tmp_path / "p").write_text("a\n\nM- \nb\n", "utf-8")
    assert len(read_one(tmp_path / "p", escapes)[0]) == 4
