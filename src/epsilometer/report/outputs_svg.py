"""The two distributions of outputs as an SVG element, written by hand: it needs no matplotlib.

It fits any width, and tells its values when hovered over, without a script: each bin has a title,
which browsers show. Colours follow the page where it has any.
"""

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from epsilometer.arrays import Floats
from epsilometer.one_line import cut
from epsilometer.report.formatting import percent
from epsilometer.report.panels import OutputsPanel

# The colours of a page that defines none.
LEFT = "#2c64c4"
RIGHT = "#b4570f"
# How dark the event is shaded.
_EVENT_OPACITY = 0.14
# Pixels of a histogram: the whole picture, down to its axis, and its highest bar.
_HISTOGRAM_HEIGHT = 190
_AXIS_HEIGHT = 160
_MAX_BAR_HEIGHT = 150.0
# Pixels of a value among bars.
_VALUE_HEIGHT = 34
# Percent of the width: where bars begin, and the longest one.
_BARS_START = 42
_MAX_BAR_WIDTH = 44.0
# Characters of a value.
_MAX_VALUE_CHARACTERS = 22
# A bin counts as inside or outside of the event from these fractions on.
_MOSTLY_INSIDE = 0.99
_MOSTLY_OUTSIDE = 0.01


class _Series(NamedTuple):
    """The fractions of one side, shape (bins,), and the colour in which they are drawn."""

    fractions: Floats
    colour: str


def outputs_svg(panel: OutputsPanel) -> str:
    """Returns the picture: a histogram of numbers, or bars of single values."""
    if panel.is_histogram:
        height = _HISTOGRAM_HEIGHT
        elements = _histogram(panel)
    else:
        height = _VALUE_HEIGHT * len(panel.bins) + 4
        elements = _bars(panel)
    label = f'role="img" aria-label="{escape(panel.description)}"'
    start = f'<svg class="chart outputs" width="100%" height="{height}" {label}>'
    return f"{start}{''.join(elements)}</svg>"


def _both_sides(panel: OutputsPanel) -> tuple[_Series, _Series]:
    left = _Series(panel.left, f"var(--left,{LEFT})")
    right = _Series(panel.right, f"var(--right,{RIGHT})")
    return left, right


def _largest_fraction(panel: OutputsPanel) -> float:
    return max(float(panel.left.max()), float(panel.right.max()))


def _histogram(panel: OutputsPanel) -> Iterator[str]:
    width = 100.0 / len(panel.bins)
    top = _largest_fraction(panel)
    for place in range(len(panel.bins)):
        x = f'x="{width * place:.3f}%" width="{width:.3f}%"'
        yield f"<g>{_hover_title(panel, place)}"
        yield f'<rect {x} y="0" height="{_AXIS_HEIGHT}" {_event_shade(panel, place)}/>'
        for series in _both_sides(panel):
            height = _MAX_BAR_HEIGHT * float(series.fractions[place]) / top
            y = f'y="{_AXIS_HEIGHT - height:.1f}" height="{height:.1f}"'
            yield f'<rect {x} {y} fill="{series.colour}" opacity=".55"/>'
        yield "</g>"
    first = panel.bins[0].split(" to ")[0]
    last = panel.bins[-1].split(" to ")[1]
    axis = f'y1="{_AXIS_HEIGHT}" y2="{_AXIS_HEIGHT}" stroke="currentColor" opacity=".5"'
    yield f'<line x1="0" x2="100%" {axis}/>'
    yield f'<text class="axis" x="0" y="177">{escape(first)}</text>'
    yield f'<text class="axis" x="50%" y="177" text-anchor="middle">{escape(panel.name)}</text>'
    yield f'<text class="axis" x="100%" y="177" text-anchor="end">{escape(last)}</text>'


def _bars(panel: OutputsPanel) -> Iterator[str]:
    top = _largest_fraction(panel)
    for place, value in enumerate(panel.bins):
        y = _VALUE_HEIGHT * place
        yield f"<g>{_hover_title(panel, place)}"
        yield f'<rect x="0" y="{y}" width="100%" height="32" {_event_shade(panel, place)}/>'
        yield f'<text x="4" y="{y + 20}">{escape(cut(value, _MAX_VALUE_CHARACTERS))}</text>'
        for row, series in enumerate(_both_sides(panel)):
            fraction = float(series.fractions[place])
            length = _MAX_BAR_WIDTH * fraction / top
            bar_y = y + 3 + 14 * row
            size = f'x="{_BARS_START}%" y="{bar_y}" width="{length:.2f}%" height="12"'
            yield f'<rect {size} fill="{series.colour}" opacity=".8"/>'
            label_x = _BARS_START + 0.5 + length
            label = f'<text class="axis" x="{label_x:.2f}%" y="{bar_y + 10}">'
            yield f"{label}{percent(fraction)}</text>"
        yield "</g>"


def _event_shade(panel: OutputsPanel, place: int) -> str:
    opacity = _EVENT_OPACITY * panel.inside[place]
    return f'fill="var(--ink,currentColor)" opacity="{opacity:.3f}"'


def _hover_title(panel: OutputsPanel, place: int) -> str:
    inside = panel.inside[place]
    if inside < _MOSTLY_OUTSIDE:
        event = "outside the event"
    elif inside > _MOSTLY_INSIDE:
        event = "in the event"
    else:
        event = f"{percent(inside)} in the event"
    fractions = f"left {percent(panel.left[place])}, right {percent(panel.right[place])}"
    return f"<title>{escape(panel.name)} {escape(panel.bins[place])}: {fractions}, {event}</title>"
