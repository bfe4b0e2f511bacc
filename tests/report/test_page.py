import base64
import re
from html.parser import HTMLParser

import pytest

from cumulant import Certificate, plotting
from cumulant.certificates import assume
from cumulant.report import Section, Table, page, save_page


class Reader(HTMLParser):
    """The tags, the text and the addresses of a page; fails on a tag that is never closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words, self.sources = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


@pytest.fixture
def picture(tmp_path):
    return plotting.save(plotting.figure()[0], tmp_path / "curve.png")


def test_a_page_holds_everything_and_needs_nothing_else(picture):
    certificate = Certificate("f(x) - f*", 0.5, "a theorem", (assume("the data are independent"),))
    section = Section(
        "Found",
        ["Some words."],
        [Table(("a", "b"), [(1, 2), (3, 4)], "numbers")],
        [certificate],
        [(picture, "A curve")],
    )
    reader = read(page("A title", [section], lead="In short"))
    words = " ".join(reader.words)
    for expected in (
        "A title",
        "In short",
        "Found",
        "Some words.",
        "numbers",
        "f(x) - f* <= 0.5",
        "independent",
        "A curve",
    ):
        assert expected in words
    assert reader.tags.count("td") == 4
    (source,) = reader.sources
    kind, data = source.split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == picture.read_bytes()
    assert not {"script", "link", "iframe"} & set(reader.tags)


def test_everything_from_outside_is_escaped(picture):
    nasty = "<script>alert('\"&')</script>"
    section = Section(
        nasty, [nasty], [Table((nasty,), [(nasty,)], nasty)], [Certificate(nasty, 1.0, nasty)], [(picture, nasty)]
    )
    text = page(nasty, [section], lead=nasty)
    reader = read(text)
    assert "script" not in reader.tags
    assert reader.words.count(nasty) >= 7
    assert not re.search(r'alt="[^"]*<', text)


def test_a_page_is_written_and_its_folder_made(tmp_path):
    path = save_page(tmp_path / "deep" / "index.html", "T", [])
    assert path.read_text() == page("T", [])


def test_an_uneven_table_is_refused():
    with pytest.raises(ValueError, match="row 1 of a table with 2 headings has 3 cells"):
        Table(("a", "b"), [(1, 2), (1, 2, 3)])


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path):
    (tmp_path / "movie.mp4").write_bytes(b"")
    with pytest.raises(ValueError, match=r"movie\.mp4"):
        page("T", [Section("S", pictures=[(tmp_path / "movie.mp4", "")])])
