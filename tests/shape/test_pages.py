"""Every page that is written has what readers of screens go by."""

from tests.shape.tree import PROJECT


def test_every_page_says_which_part_of_it_is_the_content():
    pages = [path for path in (PROJECT / "themis").rglob("*.html") if "<body" in path.read_text(encoding="utf-8")]

    assert len(pages) > 5
    assert [str(path.relative_to(PROJECT)) for path in pages if "<main" not in path.read_text(encoding="utf-8")] == []
