"""Templates: CRF++'s own examples, a reference that expands token by token, and errors that name the line."""

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumulant.errors import FileFormatError
from cumulant.sequences.data.templates import CHUNKING, NER, Template, template

# The example of the manual of CRF++ (section "Preparing feature templates"); the current token is the third.
SENTENCE = [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("current", "JJ"), ("account", "NN")]


@pytest.mark.parametrize(
    ("macro", "expanded"),
    [
        ("%x[0,0]", "the"),
        ("%x[0,1]", "DT"),
        ("%x[-1,0]", "reckons"),
        ("%x[-2,1]", "PRP"),
        ("%x[0,0]/%x[0,1]", "the/DT"),
        ("ABC%x[0,1]123", "ABCDT123"),
    ],
)
def test_the_examples_of_the_manual_of_crfpp(macro, expanded):
    assert Template(f"U02:{macro}")(SENTENCE)[2] == [f"U02:{expanded}"]


def test_the_tokens_outside_the_sentence_are_numbered_from_its_ends():
    window = Template("\n".join(f"U{row}:%x[{row},0]" for row in (-4, -2, -1, 1, 2, 4)))
    assert window([("a",), ("b",)]) == [
        ["U-4:_B-4", "U-2:_B-2", "U-1:_B-1", "U1:b", "U2:_B+1", "U4:_B+3"],
        ["U-4:_B-3", "U-2:_B-1", "U-1:a", "U1:_B+1", "U2:_B+2", "U4:_B+4"],
    ]
    assert Template("U:%shape[-1,0]|%lower[+1,0]")([("Ab",)]) == [["U:_B-1|_B+1"]], "functions leave them alone"
    assert window([]) == []


@pytest.mark.parametrize(
    ("macro", "word", "value"),
    [
        ("%lower[0,0]", "Mid-1990S", "mid-1990s"),
        ("%prefix[0,0,3]", "London", "Lon"),
        ("%prefix[0,0,3]", "at", "at"),
        ("%suffix[0,0,3]", "London", "don"),
        ("%suffix[0,0,3]", "at", "at"),
        ("%shape[0,0]", "Mid-1990s", "Xxx-ddddx"),
        ("%shape[0,0]", "Élan's", "Xxxx'x"),
        ("%runs[0,0]", "Mid-1990s", "Xx-dx"),
        ("%runs[0,0]", "IBM", "X"),
        ("%runs[0,0]", "...", "."),
        ("%runs[0,0]", "", ""),
        ("%isupper[0,0]", "U.S.", "1"),
        ("%isupper[0,0]", "1990", "0"),
        ("%istitle[0,0]", "London", "1"),
        ("%istitle[0,0]", "IBM", "0"),
        ("%isdigit[0,0]", "1990", "1"),
        ("%isdigit[0,0]", "1,990", "0"),
        ("%isdigit[0,0]", "", "0"),
    ],
)
def test_the_functions_of_a_word(macro, word, value):
    assert Template(f"U={macro}")([(word,)]) == [[f"U={value}"]]


def test_comments_blank_lines_transitions_and_repeated_names():
    bag = Template("# a bag of words\r\n\r\nU:%x[-1,0]\r\n  U:%x[1,0]\r\nU\n\nB\nB00\n")
    assert len(bag) == 3
    assert bag.n_columns == 1
    assert bag([("a",), ("b",), ("a",)])[1] == ["U:a", "U:a", "U"], "an attribute may come twice; U alone is a constant"
    assert Template("U1\nU2").n_columns == 0
    assert Template("U1\nU2")([(), ()]) == [["U1", "U2"]] * 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X00:%x[0,0]", "a line must begin with U, B or #; got 'X00"),
        ("U00:%x[0,0", r"expected a function such as %x\[0,0\] at '%x\[0,0'"),
        ("U00:100%", "expected a function such as .* at '%'"),
        ("U00:%[0,0]", "expected a function"),
        ("U00:%x[0]", r"expected %x\[row,column\] with whole numbers; got '%x\[0\]'"),
        ("U00:%x[0,0,1]", r"expected %x\[row,column\]"),
        ("U00:%x[a,0]", "with whole numbers"),
        ("U00:%x[0.5,0]", "with whole numbers"),
        ("U00:%x[1_0,0]", "with whole numbers"),
        ("U00:%x[0,-1]", "the column must be 0 or more"),
        ("U00:%suffix[0,0]", r"expected %suffix\[row,column,n\]"),
        ("U00:%prefix[0,0,0]", "the number of characters must be 1 or more"),
        ("U00:%stem[0,0]", "there is no function %stem; there are %x, %lower"),
        ("B01:%x[0,0]", "transitions cannot depend on the words"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    text = f"# words\nU00:%x[0,0]\n{line}\nB\n"
    with pytest.raises(FileFormatError, match=f"template, line 3: .*{message}"):
        Template(text)
    path = tmp_path / "chunk.template"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=rf"chunk\.template, line 3: .*{message}"):
        template(path)


def test_a_template_without_attributes_is_refused():
    for text in ("", "# nothing\n", "B\n"):
        with pytest.raises(FileFormatError, match="has no line that begins with U"):
            Template(text)


def test_a_sentence_that_does_not_fit_is_refused():
    pairs = Template("U:%x[0,0]/%x[0,1]")
    with pytest.raises(ValueError, match=r"the template needs 2 columns; token 1 has 1: \('b',\)"):
        pairs([("a", "x"), ("b",)])
    with pytest.raises(TypeError, match=r"token 0 must be a tuple of columns, such as \('ab',\); got the string 'ab'"):
        pairs(["ab", "cd"])
    with pytest.raises(TypeError, match=r"the columns of token 1 must be strings; got \('b', None\)"):
        pairs([("a", "x"), ("b", None)])
    assert pairs([("a", "x", None)]) == [["U:a/x"]], "columns that are not used are not looked at"


def test_where_templates_come_from(tmp_path):
    assert template("chunking") is CHUNKING
    assert template("ner") is NER
    assert template(CHUNKING) is CHUNKING
    path = tmp_path / "mine"
    path.write_bytes(b"U00:%x[0,0]\r\nB\r\n")
    for source in (path, str(path), "U00:%x[0,0]", "# one\nU00:%x[0,0]\n"):
        assert template(source)([("a",)]) == [["U00:a"]]
    with pytest.raises(
        ValueError, match=r"'chunks' is neither a file nor the text of a template nor one of 'chunking'"
    ):
        template("chunks")
    with pytest.raises(TypeError, match="a template must be a name, a file or a text; got int"):
        template(3)


def test_templates_compare_by_text_and_survive_pickling():
    assert Template("U:%x[0,0]") == Template("U:%x[0,0]", "another name")
    assert Template("U:%x[0,0]") != Template("U:%x[1,0]")
    assert pickle.loads(pickle.dumps(NER))(SENTENCE) == NER(SENTENCE)


# The 19 attributes of CRFsuite's tutorial on chunking, as pairs (column, row).
TUTORIAL = [
    *([("w", row)] for row in (-2, -1, 0, 1, 2)),
    *([("w", row), ("w", row + 1)] for row in (-1, 0)),
    *([("pos", row)] for row in (-2, -1, 0, 1, 2)),
    *([("pos", row), ("pos", row + 1)] for row in (-2, -1, 0, 1)),
    *([("pos", row), ("pos", row + 1), ("pos", row + 2)] for row in (-2, -1, 0)),
]


def test_chunking_is_the_set_of_the_tutorial_of_crfsuite():
    assert len(CHUNKING) == len(TUTORIAL) == 19
    for t, attributes in enumerate(CHUNKING(SENTENCE)):
        expected = []
        for attribute in TUTORIAL:
            if all(0 <= t + row < len(SENTENCE) for _, row in attribute):
                values = [SENTENCE[t + row][("w", "pos").index(column)] for column, row in attribute]
                expected.append("|".join(f"{c}[{row}]" for c, row in attribute) + "=" + "|".join(values))
        inside = [name.removeprefix("U") for name in attributes if "_B" not in name]
        assert inside == expected


def test_ner_sees_the_word_its_form_and_its_neighbours():
    attributes = NER([("in", "IN"), ("Londonderry", "NNP"), (",", ",")])[1]
    assert len(attributes) == len(NER) == len(set(attributes)) == 31
    assert NER.n_columns == 2
    assert {
        "Uw[0]=Londonderry",
        "Ulower[0]=londonderry",
        "Uprefix4=Lond",
        "Usuffix3=rry",
        "Ushape[0]=Xxxxxxxxxxx",
        "Uruns[-1]|runs[0]|runs[1]=x|Xx|,",
        "Uistitle[0]=1",
        "Uisupper[0]=0",
        "Uisdigit[0]=0",
        "Ulower[-2]=_B-1",
        "Ulower[2]=_B+1",
        "Upos[1]=,",
    } <= set(attributes)


def test_the_names_of_the_lines_of_a_built_in_template_differ():
    for built_in in (CHUNKING, NER):
        heads = [line.split("=")[0] for line in built_in.text.split("\n") if line.startswith("U")]
        assert len(set(heads)) == len(heads) == len(built_in)


def expanded(text, sentence, t):
    """The attributes of token t, macro by macro."""

    def value(call):
        function, *arguments = re.fullmatch(r"%(\w+)\[(.*)\]", call[0])[1], *map(int, call[1].split(","))
        at = t + arguments[0]
        if at < 0:
            return f"_B-{-at}"
        if at >= len(sentence):
            return f"_B+{at - len(sentence) + 1}"
        word = sentence[at][arguments[1]]
        if function == "prefix":
            return "".join(c for i, c in enumerate(word) if i < arguments[2])
        if function == "suffix":
            return "".join(c for i, c in enumerate(word) if i >= len(word) - arguments[2])
        return word.lower() if function == "lower" else word

    return [re.sub(r"%\w+\[([^\]]*)\]", value, line) for line in text.split("\n")]


macros = st.builds("%{}[{},{}]".format, st.sampled_from(["x", "lower"]), st.integers(-6, 6), st.integers(0, 1)) | (
    st.builds("%{}[{},{},{}]".format, st.sampled_from(["prefix", "suffix"]), st.integers(-3, 3), st.just(0), st.just(2))
)
texts = st.sampled_from(["", "/", "|", "a", ":", "{0}", "\\"])
lines = st.lists(st.tuples(macros, texts), max_size=5).map(lambda parts: "U" + "".join(m + text for m, text in parts))
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(lines, min_size=1, max_size=4).map("\n".join), st.lists(st.tuples(words, words), min_size=1, max_size=6)
)
def test_a_template_is_expanded_as_its_definition_says(text, sentence):
    assert Template(text)(sentence) == [expanded(text, sentence, t) for t in range(len(sentence))]
