"""Lines over one axis as an SVG that stands alone: both axes logarithmic, readable on light and dark pages."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 280, 64, 16, 34, 44
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]


def short(value):
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def decades(low, high):
    return [10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def lines(title, x_label, y_label, series):
    """series: {name: [(x, y), ...]}, all numbers above 0."""
    points = [p for line in series.values() for p in line]
    xs = sorted({x for x, _ in points})
    y_ticks = decades(min(y for _, y in points), max(y for _, y in points))
    if len(y_ticks) == 1:
        y_ticks.append(10 * y_ticks[0])
    span = math.log(xs[-1] / xs[0]) or 1.0

    def at(x, y):
        return (LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / xs[0]) / span,
                HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(y / y_ticks[0]) / math.log(y_ticks[-1] / y_ticks[0]))

    def text(x, y, words, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif" font-size="11" fill="#222">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
             text(WIDTH / 2, 16, title, more='font-size="13" font-weight="bold"'),
             text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label),
             text(14, HEIGHT / 2, y_label, more=f'transform="rotate(-90 14 {HEIGHT / 2})"')]
    for y in y_ticks:
        height = at(xs[0], y)[1]
        parts.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, height + 4, short(y), "end"))
    labelled = -math.inf
    for x in xs:
        across = at(x, y_ticks[0])[0]
        parts.append(f'<path d="M{across:.1f} {HEIGHT - BOTTOM}v4" stroke="#222"/>')
        if across - labelled >= 28:  # labels that would touch are left out
            parts.append(text(across, HEIGHT - BOTTOM + 16, short(x)))
            labelled = across
    for i, (name, line) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        places = [at(x, y) for x, y in line]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                     + " ".join(f"{x:.1f},{y:.1f}" for x, y in places) + '"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(text(LEFT + 8, TOP + 6 + 14 * i, name, "start", f'fill="{colour}"'))
    return "\n".join(parts) + "\n</svg>\n"
