"""Formats take texts apart, or decline them."""

import pytest

from epsilometer.outputs.text_formats import MAX_CHARACTERS, Format, ParsedText, format_from_dict


class TestJson:
    def test_leaves_by_their_paths(self):
        text = '{"a": 1, "b": {"c": "x", "d": [true, null, {"e": 2.5}]}}'
        assert ParsedText(text).json_fields == {
            "=a": 1.0,
            "=b.c": "x",
            "#b.d": 3.0,
            "=b.d[0]": True,
            "=b.d[2].e": 2.5,
        }

    def test_the_last_of_two_equal_keys_counts(self):
        assert ParsedText('{"a": 1, "a": 2}').json_fields == {"=a": 2.0}

    @pytest.mark.parametrize("text", ["", "3", '"x"', "{", "[1,]", "{'a': 1}", "[" * 5000, "nul"])
    def test_anything_else_is_declined(self, text):
        assert ParsedText(text).json_fields is None

    def test_few_fields_of_a_long_list_are_kept(self):
        fields = ParsedText("[" + "1," * 4000 + "1]").json_fields
        assert fields["#"] == 4001.0
        assert len(fields) <= 256


class TestPairs:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("rows=3 total=104.2", {"=rows": "3", "=total": "104.2"}),
            ("a: 3, b: x", {"=a": "3", "=b": "x"}),
            ("user=al&n=3", {"=user": "al", "=n": "3"}),
            ("x = 3 ; y='a b'", {"=x": "3", "=y": "a b"}),
            ("k=", {"=k": ""}),
            ("s=1,2.5,3 k=x|y", {"=s": "1,2.5,3", "=k": "x|y"}),
            ("s=1|2&k=3", {"=s": "1|2", "=k": "3"}),
            ("a=x:1,b:2", {"=a": "x:1", "=b": "2"}),
        ],
    )
    def test_values_by_their_keys(self, text, fields):
        assert ParsedText(text).pairs == fields

    @pytest.mark.parametrize("text", ["", "x", "a=1 b", "12:30", "=3", "a=1,,b=2", "a='x"])
    def test_anything_else_is_declined(self, text):
        assert ParsedText(text).pairs is None


class TestFieldsWithFormats:
    """Values that are lists, or numbers with a unit, are taken apart in turn."""

    form = Format(
        "pairs",
        nested=(
            ("=s", Format("list", separator="|")),
            ("=mass", Format("tokens", kinds="nw", literals=("", " ", ""), words=(None, "kg"))),
        ),
    )

    def test_parts_stand_beside_their_field(self):
        assert self.form.fields(ParsedText("s=4|x; mass='2.5 kg'")) == {
            "=s": "4|x",
            "=mass": "2.5 kg",
            "=s / #": 2.0,
            "=s / 0": "4",
            "=s / 1": "x",
            "=mass / 0": "2.5",
        }

    def test_what_has_another_format_has_no_parts(self):
        assert self.form.fields(ParsedText("s=; mass=heavy")) == {"=s": "", "=mass": "heavy"}

    def test_a_list_may_have_one_entry_or_many(self):
        assert self.form.fields(ParsedText("s=4")) == {"=s": "4", "=s / #": 1.0, "=s / 0": "4"}
        fields = self.form.fields(ParsedText("s=" + "|".join("7" * 1000)))
        assert fields["=s / #"] == 1000.0
        assert len(fields) < 20

    def test_numbers_in_json_are_left_alone(self):
        form = Format("json", nested=(("=a", Format("list", separator=",")),))
        assert form.fields(ParsedText('{"a": 3}')) == {"=a": 3.0}

    def test_plain_data(self):
        assert format_from_dict(self.form.to_dict()) == self.form

    @pytest.mark.parametrize(
        "inner",
        [
            {"kind": "pairs"},
            {"kind": "list", "separator": "x"},
            {"kind": "list", "separator": "|", "nested": [["=a", {"kind": "text"}]]},
        ],
    )
    def test_data_that_no_format_could_have_written(self, inner):
        with pytest.raises((ValueError, KeyError)):
            format_from_dict({"kind": "pairs", "nested": [["=s", inner]]})


class TestLines:
    def test_entries(self):
        line = Format("line", separator=",", size=3)
        assert line.fields(ParsedText("a,2,\n")) == {"0": "a", "1": "2", "2": ""}
        assert line.fields(ParsedText('"a, b",2,3')) == {"0": "a, b", "1": "2", "2": "3"}

    @pytest.mark.parametrize("text", ["a", "a,b", "a,b,c,d", "a,b\nc,d,e", "a,\0,b"])
    def test_other_numbers_of_entries_and_lines_are_declined(self, text):
        assert Format("line", separator=",", size=3).fields(ParsedText(text)) is None


class TestTokens:
    form = Format(
        "tokens",
        kinds="wnw",
        literals=("", "=", " ", "!"),
        words=("rows", None, None),
    )

    def test_what_varies_by_its_place(self):
        assert self.form.fields(ParsedText("rows=3 al!")) == {"1": "3", "2": "al"}

    @pytest.mark.parametrize("text", ["rows=3 al", "cols=3 al!", "rows=x al!", "rows= 3 al!", ""])
    def test_other_words_and_literals_are_declined(self, text):
        assert self.form.fields(ParsedText(text)) is None

    def test_example(self):
        assert self.form.example == "rows=# …!"


def test_long_texts_are_texts_only():
    parsed = ParsedText("1" * (MAX_CHARACTERS + 1))
    assert parsed.tokens(grouped=False) is None
    assert parsed.pairs is None
    assert ParsedText("[" + "1," * MAX_CHARACTERS + "1]").json_fields is None
    assert parsed.entries(",") is None
    assert Format("text").fields(parsed) == {"": parsed.text}


@pytest.mark.parametrize(
    "form",
    [
        Format("text"),
        Format("json"),
        Format("pairs"),
        Format("line", separator=";", size=2),
        Format("tokens", "", 0, True, "nw", ("\ud800", " ", ""), (None, "x")),
    ],
)
def test_round_trip(form):
    assert format_from_dict(form.to_dict()) == form


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "regex"},
        {"kind": "line", "separator": "x", "size": 3},
        {"kind": "line", "separator": ",", "size": 1},
        {"kind": "line", "separator": ",", "size": 2.0},
        {"kinds": "n"},
        {"literals": ["", ""]},
        {"words": [None]},
        {"kinds": "", "literals": [""], "words": []},
        {"grouped": 1},
        {"kinds": 2},
    ],
)
def test_forged_data_is_refused(change):
    good = Format("tokens", "", 0, False, "nw", ("", " ", ""), (None, "x")).to_dict()
    with pytest.raises(ValueError, match="texts"):
        format_from_dict(good | change)
