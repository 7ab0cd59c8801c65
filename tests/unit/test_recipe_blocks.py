"""The reader of ``docs/adding`` itself."""

import pytest

from tests import recipes

PAGE = """# A page

```python title=new/thing.py
VALUE = 3
```

```yaml append=config.yaml
b: 2
```

```sh
python -c 'from new.thing import VALUE; print(VALUE)' > printed
```

```text
what it prints
```

```
a block without a language
```
"""


def test_blocks_are_files_to_write_texts_to_add_commands_and_the_rest():
    assert recipes.blocks(PAGE) == [
        ("write", "new/thing.py", "VALUE = 3\n"),
        ("append", "config.yaml", "b: 2\n"),
        ("run", "", "python -c 'from new.thing import VALUE; print(VALUE)' > printed\n"),
        ("read", "", "what it prints\n"),
    ]


def test_a_page_is_followed_in_its_order(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "config.yaml").write_text("a: 1\n")
    assert recipes.follow(tmp_path / "page.md", tmp_path) == ["new/thing.py", "config.yaml"]
    assert (tmp_path / "config.yaml").read_text() == "a: 1\nb: 2\n"
    assert (tmp_path / "printed").read_text() == "3\n"


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```sh\necho said so\nfalse\n```\n", "said so"),
        ("```yaml append=missing.yaml\na: 1\n```\n", "no missing.yaml"),
        ("```text title=page.md\nhere\n```\n", "there already"),
    ],
)
def test_a_page_that_does_not_work_as_written_is_noticed(tmp_path, page, complaint):
    (tmp_path / "page.md").write_text(page)
    with pytest.raises(AssertionError, match=complaint):
        recipes.follow(tmp_path / "page.md", tmp_path)
