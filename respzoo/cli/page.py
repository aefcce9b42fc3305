"""The page that `respzoo explain --html` writes: one file, no script, nothing fetched.

A row of the table leads to its place in the text and back: the place reached is marked by `:target`.
"""

from __future__ import annotations

import json
from html import escape

from respzoo.cli.captions import elsewhere, fault_title, place, rows, short, what
from respzoo.cli.console import label_of
from respzoo.pieces import Fault, Piece, Trace
from respzoo.template import ResponseTemplate

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --dim: #68707d; --back: #fff; --card: #f5f6f8; --line: #dde1e7;
  --reasoning: #8a3ffc; --content: #1a7f37; --call: #0969da; --other: #9a6700; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ef; --dim: #98a1ae; --back: #14171c; --card: #1d2128;
  --line: #333a45; --reasoning: #c297ff; --content: #5bc77a; --call: #6cb6ff; --other: #d9a83f; --bad: #ff7b72; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1.25rem; color: var(--text); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 1.8rem 0 .5rem; }
p { margin: .2rem 0; color: var(--dim); } a { color: inherit; text-decoration: none; }
pre, code, td.at { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
pre { margin: 0; padding: .9rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.reasoning { color: var(--reasoning); } .content { color: var(--content); } .call { color: var(--call); }
.other { color: var(--other); } .swallowed { color: var(--dim); text-decoration: line-through; }
.bad { text-decoration: underline wavy var(--bad); text-underline-offset: 3px; }
.mark { border-radius: 3px; padding: 0 1px; background: color-mix(in srgb, currentColor 18%, transparent);
  font-weight: 600; }
.prompt { opacity: .65; } :target { outline: 2px solid var(--bad); outline-offset: 1px; }
.eol { color: var(--dim); opacity: .7; font-weight: 400; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.at { text-align: right; white-space: nowrap; color: var(--dim); } tr.held td { color: var(--dim); }
td code { overflow-wrap: anywhere; } .legend span { margin-right: 1rem; }
.fault { border-left: 4px solid var(--bad); padding-left: .9rem; margin: .9rem 0; } .fault b { color: var(--bad); }
.fault pre { white-space: pre; overflow-x: auto; } .caret { color: var(--bad); font-weight: 700; }
"""
CLASSES = {"reasoning": "reasoning", "content": "content", "tool call": "call"}


def page(found: Trace, template: ResponseTemplate, others: list[str]) -> str:
    """The whole of it as HTML."""
    body = "\n".join(
        [
            "<h1>What became of the output</h1>",
            f"<p>Template <b>{escape(template.name or 'unnamed')}</b> ({escape(template.source)})</p>",
            *([f'<p class="other">{escape(elsewhere(others))}</p>'] if others else []),
            *_faults(found),
            "<h2>Text</h2>",
            _legend(),
            f'<pre id="text">{"".join(_piece(found, n, piece) for n, piece in enumerate(found.pieces))}</pre>',
            "<h2>Event by event</h2>",
            _table(found),
            "<h2>Message</h2>",
            f'<pre id="message">{escape(json.dumps(found.message, ensure_ascii=False, indent=2))}</pre>',
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>respzoo explain: {escape(template.name or 'template')}</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _legend() -> str:
    spans = "".join(f'<span class="{css}">{label}</span>' for label, css in CLASSES.items())
    return (
        f'<p class="legend">{spans}<span class="mark">delimiter</span><span class="swallowed">left out</span>'
        '<span class="bad">malformed</span></p>'
    )


def _css(piece: Piece) -> str:
    css = "swallowed" if piece.kind == "swallowed" else CLASSES.get(label_of(piece.field), "other")
    return css + (" mark" if piece.kind in ("opener", "closer", "wrapper") else "")


def _piece(found: Trace, number: int, piece: Piece) -> str:
    text = escape(_visible(found.text[piece.start : piece.end]))
    if piece.kind != "text":
        text = text.replace("\n", '<span class="eol">⏎</span>\n')
    css = _css(piece) + (" bad" if piece.fault is not None else "") + (" prompt" if piece.start < found.prompt else "")
    title = escape(f"{what(piece)}, {piece.start - found.prompt} to {piece.end - found.prompt}", quote=True)
    return f'<a id="p{number}" href="#r{number}" class="{css}" title="{title}">{text}</a>'


def _table(found: Trace) -> str:
    lines: list[str] = []
    linked: set[int] = set()
    for row in rows(found):
        name, mark = escape(row.what), ""
        if row.piece is not None:
            name = f'<a href="#p{row.piece}" class="{_css(found.pieces[row.piece])}">{name}</a>'
            mark = "" if row.piece in linked else f' id="r{row.piece}"'
            linked.add(row.piece)
        elif not row.event:
            mark = ' class="held"'
        text = f"<code>{escape(short(row.text))}</code>" if row.text else ""
        cells = f'<td class="at">{row.at}</td><td><code>{row.event}</code></td><td>{name}</td><td>{text}</td>'
        lines.append(f"<tr{mark}>{cells}</tr>")
    head = "<tr><th>at</th><th>event</th><th>what</th><th>text</th></tr>"
    return "\n".join(['<table id="events">', head, *lines, "</table>"])


def _faults(found: Trace) -> list[str]:
    return [_fault(found, fault) for fault in found.faults]


def _fault(found: Trace, fault: Fault) -> str:
    begin = max(found.text.rfind("\n", 0, fault.place) + 1, fault.place - 60)
    end = found.text.find("\n", fault.place)
    before = _visible(found.text[begin : fault.place])
    after = _visible(found.text[fault.place : min(len(found.text) if end < 0 else end, fault.place + 60)])
    return (
        f'<div class="fault"><b>{escape(fault_title(fault))}</b>, at {place(fault.place, found)}: {escape(fault.error)}'
        f'<pre>{escape(before + after)}\n{" " * len(before)}<span class="caret">^</span></pre></div>'
    )


def _visible(text: str) -> str:
    """Control characters as what they are: a browser shows none of them."""
    return "".join(chr(0x2400 + ord(one)) if ord(one) < 32 and one not in "\n\t" else one for one in text)
