from workflow_scripts.data.readers.class_files import Config, read


def test_the_role_is_the_label_and_the_order_of_the_configuration_does_not_matter(tmp_path):
    (tmp_path / "p").write_text("good \nfine\n", "utf-8")
    (tmp_path / "n").write_text("bad\n", "utf-8")
    files = {"positive": tmp_path / "p", "negative": tmp_path / "n"}
    table = read(files, Config()).table
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("", "bad", None, "negative"),
        ("", "good", None, "positive"),
        ("", "fine", None, "positive"),
    ]
    assert read(dict(reversed(files.items())), Config()).table.equals(table)


def test_blank_lines_and_escapes_are_kept_and_counted(tmp_path):
    (tmp_path / "p").write_text("good\n\n \nclichM-is pile up M-^E M-^E\nup ^ down\nM- \n", "utf-8")
    table, counted = read({"positive": tmp_path / "p"}, Config())
    assert table["text1"].to_pylist() == ["good", "", "", "clichM-is pile up M-^E M-^E", "up ^ down", "M-"]
    assert counted == {"kept: blank line": 2, "kept: escapes of cat -v": 2}
