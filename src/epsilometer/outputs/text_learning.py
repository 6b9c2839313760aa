"""Learns from training draws how the texts among the outputs are read.

Only what the texts look like decides, not which side they came from, with one exception: their
length becomes a column wherever it differs between the sides. Learning is bounded: a sample of the
distinct texts is parsed, each once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from epsilometer.arrays import Integers
from epsilometer.outputs.columns import Block, Labels, Outputs
from epsilometer.outputs.shapes import FEATURED, READ, leaves_of
from epsilometer.outputs.text_formats import (
    INSIDE,
    MAX_CHARACTERS,
    N_ENTRIES,
    SEPARATORS,
    WHOLE,
    FieldValue,
    Format,
    ParsedText,
)
from epsilometer.outputs.text_reading import (
    MAX_COMBINATIONS,
    MAX_TEMPLATES,
    MAX_VIEWS,
    TEXT_KINDS,
    ColumnReading,
    ShapeReading,
    Template,
    TextReading,
    column_kinds,
    shown,
    text_of_label,
)
from epsilometer.outputs.text_values import (
    NUMBER,
    WORD,
    clock_of,
    compact_day_of,
    day_of,
    is_whole,
    moment_of,
    number_of,
)
from epsilometer.outputs.text_views import MAX_WIDTH, TextView

# Training draws per side below which texts stay texts.
_FEWEST_DRAWS = 20
# Up to this many distinct texts are categories: each is an outcome, and there is nothing to read.
_FEW_TEXTS = 12
# Distinct texts that are looked at to learn a reading; more would not change it.
_MOST_TEXTS = 1024
# Rows per side in which they are looked for.
_MOST_ROWS = 1 << 16
# A text that occurs this often in the training draws is an outcome, not a coincidence.
_REPEATS = 5
# A single text that has this fraction of the draws makes the text a column.
_FREQUENT_FRACTION = 0.01
# The fraction of the draws in labels that do not repeat, from which parts of them are columns.
_SINGLE_FRACTION = 0.01
# The least fraction of the draws that a template must have.
_TEMPLATE_FRACTION = 0.02
# If templates of tokens have less than this fraction of the texts, parts of them say more;
_COVERED_FRACTION = 0.9
# unless a template has at least this fraction.
_LARGE_TEMPLATE_FRACTION = 0.2
# The least fraction of the texts that must be lines with the same number of entries.
_LINE_FRACTION = 0.8
# The least fraction of the entries of some column of these lines that must be numbers.
_NUMBERS_IN_LINE = 0.8
# Formats whose fields may have formats of their own.
_NESTING_KINDS = ("json", "pairs", "line")
# A field that fewer of the texts of a template have gets no column.
_FIELD_FRACTION = 0.01
# The fraction of the values of a field that must be numbers, or dates, to be read as such.
_MAIN_FRACTION = 0.5
# The fraction of the values of a field that must be dates without hyphens. Of numbers of eight
# digits, two in a hundred begin with 19 or 20, and of these one in thirty is a date.
_COMPACT_DATES_FRACTION = 0.95
# The fraction of texts that must have one width to be a code of fixed width.
_SAME_WIDTH_FRACTION = 0.95
# Letters that stand together in a code are one label if they take at most this many values.
_MOST_PART_LABELS = 128
# Parts of a code that take more values than this are also read character by character.
_FEW_PART_LABELS = 16
# Runs of digits in a code up to this length are also read digit by digit.
_SHORT_RUN = 4
# Characters of a prefix, for texts of different lengths.
_PREFIX_LENGTHS = (1, 3)
# The two-sample Kolmogorov–Smirnov statistic, in units of √(1/n + 1/m), from which lengths differ:
# by chance they do so once in a million times. Differences of the format are far larger, and the
# digits that floats need depend a little on their size.
_DIFFERENT_LENGTHS = 2.7
# Most templates of each column of texts, by the number of such columns in a shape: combinations of
# templates are shapes of their own.
_TEMPLATES_BY_COLUMNS = {1: MAX_TEMPLATES, 2: 3, 3: 2}
# Columns of texts of one shape that are read.
_MOST_TEXT_COLUMNS = 12


def learn_text_reading(left: Outputs, right: Outputs) -> TextReading | None:
    """Learns how texts are read.

    Args:
        left: training outputs.
        right: training outputs.

    Returns:
        None if there are no texts, or nothing to read in them.
    """
    shapes = []
    right_blocks = {block.shape: block for block in right.blocks}
    for block in left.blocks:
        other = right_blocks.get(block.shape)
        if other is None or f"{FEATURED}{{" in block.shape or block.shape.startswith(f"{READ}["):
            continue
        reading = _learn_shape(block, other)
        if reading is not None:
            shapes.append(reading)
    return TextReading(tuple(shapes)) if shapes else None


def _learn_shape(left: Block, right: Block) -> ShapeReading | None:
    """Learns how the texts of one shape are read; None if they stay texts."""
    kinds = column_kinds(left.shape)
    if len(kinds) != len(left.columns) or min(left.size, right.size) < _FEWEST_DRAWS:
        return None
    paths = [leaf.path for leaf in leaves_of(left.shape) for _ in range(leaf.n_columns)]
    texts = [place for place, kind in enumerate(kinds) if kind in TEXT_KINDS][:_MOST_TEXT_COLUMNS]
    most_templates = _TEMPLATES_BY_COLUMNS.get(len(texts), 1)
    columns = []
    for place in texts:
        is_bytes = kinds[place] == "bytes"
        sample = _sample_of(left.columns[place], right.columns[place], is_bytes)
        if sample is None:
            continue
        templates = _learn_templates(sample, most_templates, paths[place], is_bytes)
        if len(templates) > 1 or templates[0].views:
            columns.append(ColumnReading(place, is_bytes, tuple(templates)))
    if not columns:
        return None
    assert np.prod([len(reading.templates) for reading in columns]) <= MAX_COMBINATIONS
    return ShapeReading(left.shape, len(kinds), tuple(columns))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some distinct texts, with how often they were drawn.

    Attributes:
        texts: parsed.
        left: shape (texts,), how often each was drawn on the left.
        right: on the right.
        stands_for: shape (texts,), how many texts each stands for that were not looked at.
    """

    texts: Sequence[ParsedText]
    left: Integers
    right: Integers
    stands_for: Integers

    @property
    def times(self) -> Integers:
        """How often each text was drawn."""
        return np.asarray(self.left + self.right)

    @property
    def weights(self) -> Integers:
        """How many draws of both sides each text stands for."""
        return np.asarray(self.times * self.stands_for)

    def take(self, places: Sequence[int]) -> "_Sample":
        """Returns some of the texts."""
        rows = np.array(places, dtype=np.int64)
        texts = [self.texts[place] for place in places]
        return _Sample(texts, self.left[rows], self.right[rows], self.stands_for[rows])

    @property
    def repeats(self) -> bool:
        """Whether most draws are texts that repeat, or one text is frequent."""
        return _are_outcomes(self.times, self.weights)


def _are_outcomes(times: Integers, weights: Integers) -> bool:
    """Returns whether most draws repeat, or one outcome is frequent.

    Args:
        times: shape (n,), how often each outcome was drawn.
        weights: shape (n,), how many draws it stands for.
    """
    n_draws = weights.sum()
    repeated = weights[times >= _REPEATS]
    most_repeat = repeated.sum() > _MAIN_FRACTION * n_draws
    return bool(most_repeat or repeated.max(initial=0) > _FREQUENT_FRACTION * n_draws)


def _sample_of(left: object, right: object, is_bytes: bool) -> _Sample | None:
    """Returns some distinct texts of a column; None if they are few, or if it has no texts."""
    if not (isinstance(left, Labels) and isinstance(right, Labels)):
        return None
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for side, column in enumerate((left, right)):
        codes, totals = np.unique(column.codes[:_MOST_ROWS], return_counts=True)
        for code, total in zip(codes.tolist(), totals.tolist(), strict=True):
            counts[column.labels[code]][side] += total
    if len(counts) <= _FEW_TEXTS:
        return None
    # The most frequent ones, and of equally frequent ones every k-th.
    labels = sorted(counts, key=lambda label: -sum(counts[label]))
    half = _MOST_TEXTS // 2
    step = max(1, -(-(len(labels) - half) // half))
    others = labels[half::step]
    labels = labels[:half] + others
    stands_for = np.ones(len(labels), dtype=np.int64)
    stands_for[half:] = step
    return _Sample(
        texts=[ParsedText(text_of_label(label, is_bytes)) for label in labels],
        left=np.array([counts[label][0] for label in labels]),
        right=np.array([counts[label][1] for label in labels]),
        stands_for=stands_for,
    )


# --- templates


def _learn_templates(
    sample: _Sample, most_templates: int, path: str, is_bytes: bool
) -> list[Template]:
    """Returns the templates of a column of texts; the last one takes every text.

    Args:
        sample: of its texts.
        most_templates: besides the last one.
        path: of the column.
        is_bytes: whether the texts are bytes.
    """
    weights = sample.weights
    least = max(_TEMPLATE_FRACTION * weights.sum(), _REPEATS)
    remaining = list(range(len(sample.texts)))
    templates: list[Template] = []

    def claim(form: Format) -> None:
        """Makes a template of the remaining texts of a format, if they are enough to learn."""
        nonlocal remaining
        fields = {place: form.fields(sample.texts[place]) for place in remaining}
        places = [place for place in remaining if fields[place] is not None]
        if len(templates) == most_templates or weights[places].sum() < least:
            return
        found = [fields[place] or {} for place in places]
        template = _learn_template(form, sample.take(places), found, path, is_bytes)
        if template is not None:
            templates.append(template)
            remaining = [place for place in remaining if fields[place] is None]

    claim(Format("json"))
    claim(Format("pairs"))
    grouped = _has_thousands([sample.texts[place].text for place in remaining])
    n_remaining = weights[remaining].sum()
    formats = [
        (form, weight)
        for form, weight in _token_formats(sample, remaining, grouped)
        if weight >= (_MAIN_FRACTION * n_remaining if form.is_of_words else least)
    ]
    formats = formats[: most_templates - len(templates)]
    line = _line_format(sample, remaining, is_needed=len(formats) != 1)
    n_covered = sum(weight for _, weight in formats)
    if line is not None:
        claim(line)
    elif n_covered < _COVERED_FRACTION * n_remaining:
        # Codes and sentences: some of their patterns say less than parts that all of them have.
        formats = [
            (form, weight)
            for form, weight in formats
            if weight >= _LARGE_TEMPLATE_FRACTION * n_remaining
        ]
    if len(formats) != 1 and _has_fixed_width(sample.take(remaining)):
        formats = []
    for form, _ in formats:
        claim(form)
    if not remaining:
        return [*templates, Template(Format("text"), ())]
    return [*templates, _learn_rest(sample.take(remaining), path, is_bytes)]


_COMMA = re.compile(r"\d,\d")
_STRICT_GROUPS = re.compile(r"(?<![\d,.])(?P<first>[1-9]\d{0,2})(?P<groups>(?:,\d{3})+)(?![\d,])")


def _has_thousands(texts: Sequence[str]) -> bool:
    """Returns whether commas between digits separate thousands, not entries.

    They do if each of them is followed by three digits, and numbers differ in length, or some have
    no comma: entries of a line would hardly all have three digits.
    """
    lengths = set()
    for text in texts:
        n_commas = len(_COMMA.findall(text))
        if not n_commas:
            lengths.add(0)
            continue
        grouped = list(_STRICT_GROUPS.finditer(text))
        if sum(match["groups"].count(",") for match in grouped) != n_commas:
            return False
        lengths.update(len(match.group()) for match in grouped)
    return len(lengths) > 1


def _has_fixed_width(sample: _Sample) -> bool:
    """Returns whether most texts are codes of one width."""
    widths = np.array([min(len(text.text), MAX_WIDTH + 1) for text in sample.texts])
    if not len(widths):
        return False
    totals = np.bincount(widths, sample.weights)
    return bool(totals[: MAX_WIDTH + 1].max() >= _SAME_WIDTH_FRACTION * totals.sum())


def _token_formats(
    sample: _Sample, places: Sequence[int], grouped: bool
) -> list[tuple[Format, int]]:
    """Returns the formats of tokens, the most frequent first, each with its number of draws."""
    places_of: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for place in places:
        tokens = sample.texts[place].tokens(grouped)
        if tokens is not None:
            places_of[tokens.kinds, tokens.literals].append(place)
    weights = sample.weights
    formats = []
    for (kinds, literals), same in places_of.items():
        all_tokens = [sample.texts[place].tokens(grouped) for place in same]
        words: list[str | None] = []
        for number, kind in enumerate(kinds):
            values = {tokens.values[number] for tokens in all_tokens if tokens}
            words.append(values.pop() if kind == WORD and len(values) == 1 else None)
        form = Format("tokens", "", 0, grouped, kinds, literals, tuple(words))
        formats.append((form, int(weights[same].sum())))
    return sorted(formats, key=lambda item: -item[1])


def _line_format(sample: _Sample, places: Sequence[int], is_needed: bool) -> Format | None:
    """Returns the format of lines of entries that most of the texts have, if there is one.

    Args:
        sample: texts.
        places: of the texts in question.
        is_needed: whether no other format fits them all.
    """
    if not is_needed:
        return None
    weights = sample.weights
    for separator in SEPARATORS:
        lines = {place: sample.texts[place].entries(separator) for place in places}
        sizes: Counter[int] = Counter()
        for place, entries in lines.items():
            sizes[len(entries or ())] += int(weights[place])
        size, weight = sizes.most_common(1)[0] if sizes else (0, 0)
        if size < 2 or weight < _LINE_FRACTION * weights[list(places)].sum():
            continue
        same = [entries for entries in lines.values() if entries and len(entries) == size]
        for column in zip(*same, strict=True):
            n_numbers = sum(number_of(entry) is not None for entry in column)
            if n_numbers >= _NUMBERS_IN_LINE * len(same):
                return Format("line", separator=separator, size=size)
    return None


def _learn_template(
    form: Format,
    sample: _Sample,
    found: Sequence[dict[str, FieldValue]],
    path: str,
    is_bytes: bool,
) -> Template | None:
    """Returns a template of some texts; None if their fields say no more than the texts.

    Args:
        form: their format.
        sample: the texts.
        found: the fields of each.
        path: of the column.
        is_bytes: whether the texts are bytes.
    """
    nested = _nested_formats(form, sample, found)
    if nested:
        form = replace(form, nested=nested)
        found = [form.fields(text) or {} for text in sample.texts]
    naming = _Naming(form, path, [text.text for text in sample.texts[:1]])
    views: list[TextView] = []
    for key in _frequent_keys(found, sample.weights):
        values = [fields.get(key) for fields in found]
        views += _views_of_field(key, values, sample, naming, is_bytes)
    repeats = sample.repeats
    if repeats:
        # A label that is the whole text in other words adds nothing to it.
        views = [view for view in views if view.is_number or not _determines(view, found)]
    views = views[:MAX_VIEWS]
    if not views:
        return None
    keeps_text = repeats and not (len(views) == 1 and _determines(views[0], found))
    length = _length_of_text(path)
    # Labels and parts tell lengths already.
    if all(view.kind == "number" for view in views) and _has_different_lengths(sample):
        views = [*views[: MAX_VIEWS - 1], length]
    return Template(form, tuple(views), keeps_text)


def _nested_formats(
    form: Format, sample: _Sample, found: Sequence[dict[str, FieldValue]]
) -> tuple[tuple[str, Format], ...]:
    """Returns the formats of fields whose texts hold numbers or lists, by their keys.

    Args:
        form: the format of the texts.
        sample: the texts.
        found: the fields of each.
    """
    if form.kind not in _NESTING_KINDS:
        return ()
    nested = []
    for key in _frequent_keys(found, sample.weights):
        places = [place for place, fields in enumerate(found) if isinstance(fields.get(key), str)]
        texts = [str(found[place][key]) for place in places]
        if len(set(texts)) <= _FEW_TEXTS:
            continue
        rows = np.array(places)
        values = _Sample(
            texts=[ParsedText(text) for text in texts],
            left=sample.left[rows],
            right=sample.right[rows],
            stands_for=sample.stands_for[rows],
        )
        inner = _format_of_values(values)
        if inner is not None:
            nested.append((key, inner))
    return tuple(nested)


def _format_of_values(values: _Sample) -> Format | None:
    """Returns the format of the values of one field; None if each is one number, date or word."""
    texts = [value.text for value in values.texts]
    weights = values.weights
    least = _MAIN_FRACTION * weights.sum()
    for read in (number_of, *_TIMES.values()):
        if weights[[read(text) is not None for text in texts]].sum() >= least:
            return None
    has_digits = np.array([any(map(str.isdecimal, text)) for text in texts])
    n_with_digits = weights[has_digits].sum()
    # Values such as "none" or "" may take the place of numbers.
    formats = _token_formats(values, range(len(texts)), grouped=False)
    form, n_draws = max(formats, key=lambda item: item[1], default=(None, 0))
    if form is not None and NUMBER in form.kinds:
        if _is_code(form, values):
            return None
        is_frequent = n_draws >= _LARGE_TEMPLATE_FRACTION * weights.sum()
        if is_frequent and n_draws >= _COVERED_FRACTION * n_with_digits:
            return form
    return _list_format(values)


def _is_code(form: Format, values: _Sample) -> bool:
    """Returns whether the characters of some values say more than their tokens.

    Numbers with points between them are a date, a version or an address. Without a fraction, a
    number after a word is part of a name (`user-17`), not an amount as in `17 kg`; and several
    tokens in values of one width are a serial number.
    """
    if "." in form.literals[1:-1]:
        return True
    if any("." in value.text for value in values.texts):
        return False
    is_one_number = sum(word is None for word in form.words) == 1
    return form.kinds[0] == WORD if is_one_number else _has_fixed_width(values)


def _list_format(values: _Sample) -> Format | None:
    """Returns the format of lists of numbers, or of words that repeat; None for other values."""
    weights = values.weights
    for separator in SEPARATORS:
        lists = [value.entries(separator) for value in values.texts]
        is_list = [entries is not None for entries in lists]
        if weights[is_list].sum() < _MAIN_FRACTION * weights.sum():
            continue
        entries = Counter(entry for entries in lists for entry in entries or ())
        n_numbers = sum(n for entry, n in entries.items() if number_of(entry) is not None)
        is_of_few_words = len(entries) <= min(_MOST_PART_LABELS, entries.total() // _REPEATS)
        if n_numbers >= _NUMBERS_IN_LINE * entries.total() or is_of_few_words:
            return Format("list", separator=separator)
    return None


def _frequent_keys(found: Sequence[dict[str, FieldValue]], weights: Integers) -> list[str]:
    """Returns the fields that enough texts have to become columns, in order of first appearance.

    Where names of fields are drawn at random there are more of them than texts; looking at all the
    others in every text would take time that grows with the square of the texts.
    """
    totals: Counter[str] = Counter()
    for fields, weight in zip(found, weights.tolist(), strict=True):
        for key in fields:
            totals[key] += weight
    least = _FIELD_FRACTION * float(weights.sum())
    return [key for key, total in totals.items() if total >= least]


def _determines(view: TextView, found: Sequence[dict[str, FieldValue]]) -> bool:
    """Returns whether different texts always differ in a view."""
    values: set[object] = set()
    for fields in found:
        value = fields.get(view.key)
        values.add(view.number(value) if view.is_number else view.label(value))
    return len(values) == len(found)


def _learn_rest(sample: _Sample, path: str, is_bytes: bool) -> Template:
    """Returns the template of texts without a format: themselves, and their parts."""
    form = Format("text")
    naming = _Naming(form, path, [])
    values = [text.text for text in sample.texts]
    views = _parts_of(WHOLE, values, sample.weights, naming, is_bytes)
    if not is_bytes and not _has_fixed_width(sample):
        sentences = _views_of_sentences(values, _text_words(path))
        if any(view.kind in ("first word", "last word") for view in sentences):
            # Words say more than characters.
            views = [view for view in views if view.kind == "length"]
        views += sentences
    if sample.repeats and not _has_different_lengths(sample):
        weights = sample.weights
        if weights[sample.times < _REPEATS].sum() < _SINGLE_FRACTION * weights.sum():
            # All texts repeat: each is an outcome, and its parts add nothing.
            views = []
    return Template(form, tuple(views[:MAX_VIEWS]), sample.repeats or not views)


_INTEGER_PART = re.compile(r"[+\-−]?(?<![.\d])\d+")
# Floats that are written with all digits need 14 to 17 of them, depending on their size.
_FULL_PRECISION = re.compile(r"\d{14,}")
_LEADING_ZEROS = re.compile(r"[+\-−]?(?<![.\d])0+\.0*|[.+\-−]")


def _has_different_lengths(sample: _Sample) -> bool:
    """Returns whether the lengths of the texts differ between the sides more than by chance.

    A larger number is longer. So lengths are compared in two ways, of which one is fair to numbers
    of a fixed number of decimals, the other to those of a fixed precision. Both must differ.
    """
    if not sample.left.any() or not sample.right.any():
        return False
    for length in (_length_without_integers, _length_without_magnitude):
        lengths = [length(text.text[:MAX_CHARACTERS]) for text in sample.texts]
        if not _differ(np.array(lengths), sample.left, sample.right):
            return False
    return True


def _length_without_integers(text: str) -> int:
    """Returns the length of a text without the digits before the points of its numbers."""
    return len(_INTEGER_PART.sub("", text))


def _length_without_magnitude(text: str) -> int:
    """Returns the length of a text without points and leading zeros; full precision counts once."""
    return len(_FULL_PRECISION.sub("~", _LEADING_ZEROS.sub("", text)))


def _differ(values: Integers, left: Integers, right: Integers) -> bool:
    """Returns whether values differ between the sides, by the statistic of Kolmogorov and Smirnov.

    Args:
        values: shape (n,).
        left: shape (n,), how many left draws have each value.
        right: of the right draws.
    """
    order = np.argsort(values, kind="stable")
    is_last = np.append(np.diff(values[order]) > 0, True)
    left_distribution = np.cumsum(left[order])[is_last] / left.sum()
    right_distribution = np.cumsum(right[order])[is_last] / right.sum()
    scale = np.sqrt(1.0 / left.sum() + 1.0 / right.sum())
    distance = np.abs(left_distribution - right_distribution).max()
    return bool(distance > _DIFFERENT_LENGTHS * scale)


def _length_of_text(path: str) -> TextView:
    return TextView(WHOLE, "length", "int", f"the length of {_text_words(path)}")


def _text_words(path: str) -> str:
    return "the text" if path == "output" else shown(path)


def _views_of_sentences(texts: Sequence[str], words: str) -> list[TextView]:
    """Returns the columns of texts in which words and numbers stand anywhere."""
    views = []
    candidates = (
        TextView(WHOLE, "first number", "float", f"the first number in {words}"),
        TextView(WHOLE, "last number", "float", f"the last number in {words}"),
        TextView(WHOLE, "words", "int", f"the number of words in {words}"),
    )
    for view in candidates:
        numbers = np.array([view.number(text) for text in texts])
        known = numbers[~np.isnan(numbers)]
        if len(known) >= _MAIN_FRACTION * len(numbers) and len(np.unique(known)) > 1:
            views.append(view)
    for kind, name in (("first word", "first"), ("last word", "last")):
        view = TextView(WHOLE, kind, "str", f"the {name} word of {words}")
        count = Counter(view.label(text) for text in texts)
        n_repeated = sum(total for total in count.values() if total >= _REPEATS)
        if len(count) > 1 and n_repeated >= _MAIN_FRACTION * len(texts):
            views.append(view)
    return views


# --- views

# What reads a date or time, by the kind of the view.
_TIMES = {"date": day_of, "datetime": moment_of, "time": clock_of}


def _views_of_field(
    key: str,
    values: Sequence[FieldValue | None],
    sample: _Sample,
    naming: "_Naming",
    is_bytes: bool,
) -> list[TextView]:
    """Returns the columns that a field becomes; none if it is always the same.

    Args:
        key: of the field.
        values: shape (texts,), None where a text lacks the field.
        sample: the texts.
        naming: names the columns.
        is_bytes: whether the texts are bytes.
    """
    weights = sample.weights
    total = weights.sum()
    is_present = np.array([value is not None for value in values])
    n_present = weights[is_present].sum()
    if len(set(values)) == 1:
        return []
    present = [value for value in values if value is not None]
    present_weights = weights[is_present]

    numbers = _views_of_numbers(key, present, present_weights, naming)
    if numbers:
        return numbers
    texts = [str(value) for value in present]
    for kind, read in _TIMES.items():
        is_time = [read(text) is not None for text in texts]
        if _fraction(is_time, present_weights) >= _MAIN_FRACTION:
            return [TextView(key, kind, kind, naming.name(key, kind))]
    count: Counter[str] = Counter()
    for text, times in zip(texts, sample.times[is_present].tolist(), strict=True):
        count[text] += times
    repeats = np.array([count[text] >= _REPEATS for text in texts])
    n_repeated = present_weights[repeats].sum()
    views = []
    if _are_outcomes(np.array(list(count.values())), _totals(texts, present_weights)):
        views.append(TextView(key, "label", "str", naming.name(key, "text")))
    # The parts of a field with a format of its own are fields themselves.
    has_format = naming.form.format_of(key) is not None
    if not has_format and n_repeated < n_present - _SINGLE_FRACTION * total:
        views += _parts_of(key, texts, present_weights, naming, is_bytes)
    return views


def _views_of_numbers(
    key: str, present: Sequence[FieldValue], weights: Integers, naming: "_Naming"
) -> list[TextView]:
    """Returns the columns of a field that is a number or a date without hyphens; none of others.

    Args:
        key: of the field.
        present: shape (n,), its values.
        weights: shape (n,), how many draws each stands for.
        naming: names the columns.
    """
    if _fraction(list(map(_is_compact_day, present)), weights) >= _COMPACT_DATES_FRACTION:
        return [TextView(key, "compact date", "date", naming.name(key, "date"))]
    is_number = [not isinstance(value, str) or number_of(value) is not None for value in present]
    if _fraction(is_number, weights) < _MAIN_FRACTION:
        return []
    kind = _kind_of_numbers([value for value, flag in zip(present, is_number, strict=True) if flag])
    views = [TextView(key, "number", kind, naming.name(key, "number"))]
    if 1.0 - _fraction(is_number, weights) > _FIELD_FRACTION:
        views.append(TextView(key, "no number", "str", naming.name(key, "text")))
    return views


def _fraction(flags: Sequence[bool], weights: Integers) -> float:
    """Returns the weight of the flagged values as a fraction of all."""
    return float(weights[np.array(flags)].sum() / weights.sum())


def _is_compact_day(value: FieldValue) -> bool:
    return isinstance(value, str) and compact_day_of(value) is not None


def _totals(texts: Sequence[str], weights: Integers) -> Integers:
    """Returns the total weight of each distinct text, in order of first appearance."""
    totals: Counter[str] = Counter()
    for text, weight in zip(texts, weights.tolist(), strict=True):
        totals[text] += weight
    return np.array(list(totals.values()))


def _kind_of_numbers(values: Sequence[FieldValue]) -> str:
    """Returns how numbers are written: as truth values, integers or floats."""
    if all(isinstance(value, bool) for value in values):
        return "bool"
    for value in values:
        if isinstance(value, str) and not is_whole(value):
            return "float"
        if isinstance(value, float) and not value.is_integer():
            return "float"
    return "int"


def _parts_of(
    key: str, texts: Sequence[str], weights: Integers, naming: "_Naming", is_bytes: bool
) -> list[TextView]:
    """Returns the columns of texts that do not repeat: their characters, or length and ends."""
    widths = np.array([len(text) for text in texts])
    usual = int(np.argmax(np.bincount(np.minimum(widths, MAX_WIDTH + 1), weights)))
    has_width = widths == usual
    is_fixed = weights[has_width].sum() >= _SAME_WIDTH_FRACTION * weights.sum()
    whole = naming.name(key, "text")
    views = []
    if np.ptp(widths):
        views.append(TextView(key, "length", "int", f"the length of {whole}"))
    if is_fixed and 0 < usual <= MAX_WIDTH:
        codes = [text for text, flag in zip(texts, has_width, strict=True) if flag]
        return [*views, *_parts_of_codes(key, codes, whole, is_bytes)]
    if np.ptp(widths):
        for length in _PREFIX_LENGTHS:
            name = f"the first {length} characters of {whole}"
            if length == 1:
                name = f"the first character of {whole}"
            prefixes = {text[:length] for text in texts}
            if 1 < len(prefixes) <= max(_MOST_PART_LABELS, len(texts) // _REPEATS):
                views.append(TextView(key, "part", "str", name, 0, length))
        if len({text[-1:] for text in texts}) > 1:
            views.append(TextView(key, "last", "str", f"the last character of {whole}"))
    return views


def _parts_of_codes(key: str, codes: Sequence[str], whole: str, is_bytes: bool) -> list[TextView]:
    """Returns the columns of codes of one width: runs of digits or letters, and characters."""
    width = len(codes[0])
    characters = [{code[place] for code in codes} for place in range(width)]
    if is_bytes:
        return [
            TextView(key, "byte", "int", f"byte {place + 1} of {whole}", place, place + 1)
            for place in range(width)
            if len(characters[place]) > 1
        ]
    classes = ["".join(_character_class(seen)) for seen in characters]
    views = []
    start = 0
    while start < width:
        stop = start + 1
        while stop < width and classes[stop] == classes[start] != "":
            stop += 1
        views += _views_of_run(key, codes, start=start, stop=stop, kind=classes[start], whole=whole)
        start = stop
    return views


def _character_class(seen: set[str]) -> str:
    """Returns "d" for digits, "l" for letters, "" for anything else."""
    if all(character.isdecimal() for character in seen):
        return "d"
    return "l" if all(character.isalpha() for character in seen) else ""


def _views_of_run(
    key: str, codes: Sequence[str], *, start: int, stop: int, kind: str, whole: str
) -> list[TextView]:
    """Returns the columns of neighbouring characters of one class."""
    views = []
    n_values = len({code[start:stop] for code in codes})
    if n_values == 1:
        return []
    is_run = stop - start > 1
    name = f"characters {start + 1}–{stop} of {whole}"
    if is_run and kind == "d":
        views.append(TextView(key, "number part", "int", name, start, stop))
    elif is_run and n_values <= _MOST_PART_LABELS:
        views.append(TextView(key, "part", "str", name, start, stop))
    is_long_run = kind == "d" and stop - start > _SHORT_RUN
    if is_run and (is_long_run or n_values <= _FEW_PART_LABELS):
        return views
    for place in range(start, stop):
        if len({code[place] for code in codes}) > 1:
            name = f"character {place + 1} of {whole}"
            views.append(TextView(key, "part", "str", name, place, place + 1))
    return views


# --- names

_NOUNS = {
    "number": "number",
    "date": "date",
    "datetime": "time",
    "time": "time",
    "text": "text",
}


class _Naming:
    """Names the fields of texts as their author would.

    Args:
        form: the format of the texts.
        path: of the column.
        examples: some texts.
    """

    def __init__(self, form: Format, path: str, examples: Sequence[str]) -> None:
        self.form = form
        self.inside = "" if path == "output" else f" in {shown(path)}"
        self.text = _text_words(path)
        self.examples = examples

    def name(self, key: str, kind: str) -> str:
        """Returns the name of a field that is read as a number, a date, a time or a text."""
        outer, inside, part = key.partition(INSIDE)
        if inside:
            return self._name_of_part(outer, part, kind)
        form = self.form.kind
        noun = _NOUNS[kind]
        if form == "json":
            return self._name_in_json(key)
        if form == "pairs":
            word = key[1:]
            has_colon = any(f"{word}:" in text for text in self.examples)
            return f"the {noun} after `{shown(word)}{':' if has_colon else '='}`{self.inside}"
        if form == "line":
            return f"entry {int(key) + 1} of the line{self.inside}"
        if form == "tokens":
            return self._name_of_token(int(key), noun)
        return self.text

    def _name_of_part(self, key: str, part: str, kind: str) -> str:
        """Returns the name of a part of a field."""
        whole = self.name(key, "text")
        form = self.form.format_of(key)
        assert form is not None
        if form.kind == "list":
            if part == N_ENTRIES:
                return f"the number of entries of {whole}"
            return f"entry {int(part) + 1} of {whole}"
        varying = [place for place, word in enumerate(form.words) if word is None]
        is_only_one = len(varying) == 1
        if is_only_one and self.form.kind == "pairs":
            return self.name(key, kind)
        noun = "word" if kind == "text" else _NOUNS[kind]
        if is_only_one:
            return f"the {noun} in {whole}"
        same = [place for place in varying if (form.kinds[place] == WORD) == (noun == "word")]
        place = int(part)
        order = same.index(place) + 1 if place in same else place + 1
        return f"{noun} {order} of {whole}"

    def _name_in_json(self, key: str) -> str:
        where = f"the JSON text{self.inside}"
        path = shown(key[1:])
        if key[0] != "#":
            return f"`{path}` in {where}"
        return f"the length of `{path}` in {where}" if path else f"the length of {where}"

    def _name_of_token(self, place: int, noun: str) -> str:
        form = self.form
        contexts = [self._context(number) for number in range(len(form.kinds))]
        context = contexts[place]
        if any(map(str.isalpha, context)) and contexts.count(context) == 1:
            return f"the {noun} after `{shown(context)}`{self.inside}"
        varying = [number for number, word in enumerate(form.words) if word is None]
        if len(varying) == 1:
            if noun == "text" and form.literals == ("", ""):
                return self.text
            return f"the {noun} in {self.text}"
        same = [number for number in varying if (form.kinds[number] == WORD) == (noun == "text")]
        noun = "word" if noun == "text" else noun
        order = same.index(place) + 1 if place in same else place + 1
        return f"{noun} {order} in {self.text}"

    def _context(self, place: int) -> str:
        """Returns what stands between a token and the varying one before it."""
        form = self.form
        context = form.literals[place]
        for number in range(place - 1, -1, -1):
            word = form.words[number]
            if word is None:
                break
            context = form.literals[number] + word + context
        return context.strip().lstrip(",;|&")
