"""A plot of costs by length, as SVG, without a library: both axes logarithmic, a line a series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 44, 44
COLOURS = ("#b3392f", "#1f6fb2", "#2e8b57", "#8a6d1d", "#6f4aa8", "#555555")


def draw(path: Path, title: str, lengths: Sequence[int], series: Mapping[str, Sequence[float]]) -> None:
    """Write the plot of each series' nanoseconds a token by the length of the answer in tokens."""
    values = [value for line in series.values() for value in line]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))

    def across(length: float) -> float:
        span = math.log(lengths[-1] / lengths[0])
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(length / lengths[0]) / span

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / low) / math.log(high / low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" fill="#222">{escape(title)}</text>',
    ]
    tick = low
    while tick <= high:
        y = down(tick)
        name = f"{tick / 1000:,.0f} µs" if tick >= 1000 else f"{tick:,.0f} ns"
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{name}</text>')
        tick *= 10
    for length in lengths:
        x = across(length)
        name = f"{length // 1024}k"
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - 22}" text-anchor="middle" fill="#555">{name}</text>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end" fill="#555">tokens in the answer</text>')
    label = -math.inf
    coloured = sorted(zip(series.items(), COLOURS, strict=False), key=lambda one: -one[0][1][-1])
    for (name, line), colour in coloured:
        points = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(lengths, line, strict=True))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        out += [
            f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3.5" fill="{colour}"/>'
            for x, y in zip(lengths, line, strict=True)
        ]
        label = max(down(line[-1]) + 4, label + 16)
        out.append(f'<text x="{WIDTH - RIGHT + 12}" y="{label:.1f}" fill="{colour}">{escape(name)}</text>')
    path.write_text("\n".join([*out, "</svg>"]) + "\n", encoding="utf-8")
