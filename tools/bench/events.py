"""The parser's cost beside the reference's, both in one process.

    python tools/bench/events.py            print the tables
    python tools/bench/events.py --quick    fewer repeats, no 64k column, smaller hostile inputs
    python tools/bench/events.py --write README.md

Strategy: process time, garbage collector off, the least of several runs, the two parsers taking turns so that a noisy
moment hits both. The tokens are those that Qwen3's own tokenizer makes of the text, one token a feed, as a server
streams them. A hostile input is timed at one size and at twice that size: what is linear doubles. `--write` draws
docs/bench.svg, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import plot
import qwen_tokens
from transformers.utils.chat_parsing import ResponseParser as Reference
from transformers.utils.chat_parsing import parse_response as reference_parse
from transformers.utils.chat_parsing.response_templates import load_response_template

import respzoo

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
PREFIX = "<|im_start|>user\nPlease fix the report.<|im_end|>\n<|im_start|>assistant\n"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "mode": {"type": "integer"}},
                "required": ["path", "text"],
            },
        },
    }
]
WORDS = (
    "the report shows that most of these numbers were measured twice before anyone asked why a second meter is "
    "needed so we compare both columns and keep what agrees within the error while the rest goes to a table of its "
    "own with a note on weather device operator and hour naïve Zürich 東京 déjà-vu résumé — “quoted” 3.14 42 1,024"
).split()
CODE = (
    "def total(rows):\n    return sum(row.value for row in rows if row.ok)\n",
    'print("total:", total(rows), "\\n")\n',
    "if x < 3 and y > 4:\n    data[\"key\"] = {'a': [1, 2, 3]}\n",
    "for i in range(10):\n\tprint(f'{i:>3} <{i}>')\n",
)


def prose(rng: random.Random, words: int) -> str:
    """Sentences and paragraphs: punctuation, some markup-like characters, some text that is not ASCII."""
    out: list[str] = []
    for number in range(1, words + 1):
        out.append(rng.choice(WORDS))
        if number % 13 == 0:
            out[-1] += rng.choice((".", ",", ";", " (a < b)", ". **Note:**"))
        if number % 90 == 0:
            out[-1] += "\n\n"
    return " ".join(out)


def code(rng: random.Random, lines: int) -> str:
    return "".join(rng.choice(CODE) for _ in range(lines))


def cut(text: str, tokens: int) -> str:
    """The first `tokens` tokens of a text."""
    return "".join(qwen_tokens.tokens(text)[:tokens]).rstrip("\ufffd")


XML_CALL = (
    "<tool_call>\n<function=write_file>\n<parameter=path>\nreport.py\n</parameter>\n"
    "<parameter=text>\n%s\n</parameter>\n<parameter=mode>\n420\n</parameter>\n</function>\n</tool_call>"
)
# Qwen3's syntax in literals only, which the reference finds by `str.find`
LITERAL = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|im_end|>", "content": "text"},
    },
}


def model_output(tokens: int, *, xml: bool = False) -> list[str]:
    """Reasoning, content and one call with a long argument, a third each, as Qwen3's tokens."""
    rng = random.Random(tokens)
    third = tokens // 3
    reasoning = cut(prose(rng, third), third)
    content = cut(prose(rng, third), third)
    left, source = tokens - 2 * third - 50, code(rng, tokens // 8)
    if xml:
        call = XML_CALL % cut(source, left)
    else:
        body = cut(json.dumps(source, ensure_ascii=False), left).rstrip("\\") + '"'
        call = f'{{"name": "write_file", "arguments": {{"path": "report.py", "text": {body}, "mode": 420}}}}'
        json.loads(call)
        call = f"<tool_call>\n{call}\n</tool_call>"
    text = f"<think>\n{reasoning}\n</think>\n\n{content}\n{call}"
    return [piece for piece in qwen_tokens.tokens(text) if piece]


def spec_of(family: str) -> dict[str, Any]:
    """A family's template; a draft of it where the curated one is in the dialect, which the reference does not speak."""
    if (ROOT / "registry" / "respzoo_curated" / family).exists() and "dialect" not in (spec := curated(family)):
        return spec
    return json.loads((ROOT / "tests" / "data" / "templates" / f"{family}.json").read_text(encoding="utf-8"))


def least(repeats: int, *jobs: Callable[[], Any]) -> list[float]:
    """The least process time of each job, the jobs taking turns."""
    best = [float("inf")] * len(jobs)
    gc.collect()
    gc.freeze()  # or each collection walks through all that was imported, and the next run finds the caches cold
    gc.disable()
    try:
        for _ in range(repeats):
            for at, job in enumerate(jobs):
                start = time.process_time()
                job()
                best[at] = min(best[at], time.process_time() - start)
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return best


def stream(parser: Any, pieces: Sequence[str]) -> Any:
    feed = parser.feed
    for piece in pieces:
        feed(piece)
    return parser.finish() if hasattr(parser, "finish") else parser.finalize()


def tokens_table(sizes: Sequence[int], repeats: int, drawn: dict[str, list[float]]) -> Iterator[str]:
    spec, xml_spec = spec_of("qwen3"), curated("qwen3_xml")
    template, compiled = respzoo.ResponseTemplate(spec), load_response_template(spec)
    xml = respzoo.ResponseTemplate(xml_spec)
    yield "One token a feed, Qwen3's tokens; reasoning, content and one call with a long argument, a third each."
    yield "Events are `ResponseParser`'s, deltas `MessageStream`'s with the arguments as they come. ns a token:"
    yield ""
    yield (
        "| tokens | reference, JSON call | events | times less | deltas | times events | events, XML call | deltas | "
        "times events |"
    )
    yield "| ---: |" + " ---: |" * 8
    table: list[list[float]] = []
    for size in sizes:
        runs = repeats if size <= 4096 else max(4, repeats // (size // 4096))
        row: list[float] = []
        for pieces, jobs in (
            (
                model_output(size),
                (
                    lambda pieces: stream(Reference(compiled, prefix=PREFIX, tools=TOOLS), pieces),
                    lambda pieces: stream(respzoo.ResponseParser(template, prefix=PREFIX, tools=TOOLS), pieces),
                    lambda pieces: stream(respzoo.MessageStream(template, prefix=PREFIX, tools=TOOLS), pieces),
                ),
            ),
            (
                model_output(size, xml=True),
                (
                    lambda pieces: stream(respzoo.ResponseParser(xml, prefix=PREFIX, tools=TOOLS), pieces),
                    lambda pieces: stream(respzoo.MessageStream(xml, prefix=PREFIX, tools=TOOLS), pieces),
                ),
            ),
        ):
            seconds = least(runs, *(lambda job=job, pieces=pieces: job(pieces) for job in jobs))
            row += [each / len(pieces) * 1e9 for each in seconds]
        table.append(row)
        theirs, events, deltas, xml_events, xml_deltas = row
        yield (
            f"| {size:,} | {theirs:,.0f} | {events:,.0f} | {theirs / events:.1f} | {deltas:,.0f} | "
            f"{deltas / events:.2f} | {xml_events:,.0f} | {xml_deltas:,.0f} | {xml_deltas / xml_events:.2f} |"
        )
    for name, column in zip(
        ("reference, events", "events", "deltas, JSON call", "deltas, XML call"), (0, 1, 2, 4), strict=True
    ):
        drawn[name] = [row[column] for row in table]


def curated(family: str) -> dict[str, Any]:
    path = ROOT / "registry" / "respzoo_curated" / family / "template.json"
    return json.loads(path.read_text(encoding="utf-8"))


def by(size: int, text: str) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def json_string(size: int) -> str:
    return '<tool_call>\n{"name": "f", "arguments": {"x": "' + 'a\\n\\u00e9\\"' * (size // 11) + '"}}\n</tool_call>'


HOSTILE: tuple[tuple[str, str, int, Callable[[int], str]], ...] = (
    ("spaces against `\\s*`-led delimiters", "qwen3", 50_000, lambda size: "a" + " " * size + "b"),
    ("spaces in reasoning, `\\s*`-led closer", "nemotron_v2", 50_000, lambda size: "<think>a" + " " * size + "b"),
    ("newlines before a call", "qwen3", 50_000, lambda size: "a" + "\n" * size + "<tool_call>{}</tool_call>"),
    ("`<` only", "qwen3", 500_000, lambda size: "<" * size),
    ("`<think` again and again", "qwen3", 500_000, lambda size: "<think" * (size // 6)),
    (
        "a long held opener",
        "manual_gpt_oss",
        50_000,
        lambda size: "<|channel|>commentary to=functions." + "f" * size,
    ),
    (
        "the same, all header forms",
        "gpt_oss",
        50_000,
        lambda size: "<|channel|>commentary to=functions." + "f" * size,
    ),
    ("a JSON string with escapes", "qwen3", 500_000, json_string),
    (
        "closers inside a JSON string",
        "qwen3",
        500_000,
        lambda size: (
            '<tool_call>{"name": "f", "arguments": {"x": "' + "</tool_call>" * (size // 12) + '"}}</tool_call>'
        ),
    ),
    (
        "an XML value of `</parameter`",
        "qwen3_xml",
        500_000,
        lambda size: (
            "<tool_call>\n<function=f>\n<parameter=x>\n"
            + "</parameter" * (size // 11)
            + "\n</parameter>\n</function>\n</tool_call>"
        ),
    ),
    ("many small calls", "qwen3", 500_000, lambda size: '<tool_call>{"name": "f"}</tool_call>\n' * (size // 37)),
)


def hostile_table(scale: float, repeats: int) -> Iterator[str]:
    yield "Hostile inputs: seconds at the size given and how many times longer twice that size takes (2 = linear); the"
    yield "reference at a size that it can bear."
    yield ""
    yield "| input | characters | a character a feed | doubled | in one feed | doubled | reference, characters | doubled |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for title, family, size, make in HOSTILE:
        size = int(size * scale)
        spec = spec_of(family)
        template, compiled = respzoo.ResponseTemplate(spec), load_response_template(spec)
        row = [title, f"{size:,}"]
        for pieces_of in (list, lambda text: [text]):
            jobs = [
                lambda text=pieces_of(make(size * times)): stream(respzoo.ResponseParser(template, prefix=""), text)
                for times in (1, 2)
            ]
            one, two = least(repeats, *jobs)
            row += [f"{one:.3f}", f"{two / one:.2f}"]
        small = 1_500
        one, two = least(
            1, *(lambda text=make(small * n): quietly(Reference(compiled, prefix=""), by(4, text)) for n in (1, 2))
        )
        row += [f"{small:,}: {one:.3f}", f"{two / one:.2f}"]
        yield "| " + " | ".join(row) + " |"


def quietly(parser: Any, pieces: Sequence[str]) -> None:
    """The reference raises for some of these texts; its time is what is wanted."""
    try:
        stream(parser, pieces)
    except (ValueError, KeyError):
        return


def one_output(size: int) -> str:
    """Reasoning, content and one call, of about so many characters."""
    rng = random.Random(size)
    argument = json.dumps(code(rng, size // 90), ensure_ascii=False)
    text = f"<think>\n{prose(rng, size // 26)}\n</think>\n\n{prose(rng, size // 26)}\n<tool_call>\n"
    return f'{text}{{"name": "write_file", "arguments": {{"path": "a.py", "text": {argument}}}}}\n</tool_call>'


def whole_lines(scale: float, repeats: int) -> Iterator[str]:
    template, compiled = respzoo.ResponseTemplate(LITERAL), load_response_template(LITERAL)
    full = respzoo.ResponseTemplate(spec_of("qwen3"))
    text = one_output(int(1_000_000 * scale))
    theirs, ours, with_patterns = least(
        max(repeats, 7),
        lambda: reference_parse(text, compiled, prefix=PREFIX, tools=TOOLS),
        lambda: respzoo.parse_response(text, template, prefix=PREFIX, tools=TOOLS),
        lambda: respzoo.parse_response(text, full, prefix=PREFIX, tools=TOOLS),
    )
    yield f"`parse_response` of {len(text):,} characters at once: {ours * 1e3:.1f} ms, the reference {theirs * 1e3:.1f} ms"
    yield f"(a template of literals); with the zoo's template, which has patterns, {with_patterns * 1e3:.1f} ms."
    few, many = int(1_000 * scale), int(10_000 * scale)
    batch = [one_output(1_000 + number % 100) for number in range(many)]
    one, ten = least(
        min(repeats, 2),
        lambda: respzoo.parse_response(batch[:few], full, prefix=PREFIX, tools=TOOLS),
        lambda: respzoo.parse_response(batch, full, prefix=PREFIX, tools=TOOLS),
    )
    yield f"A batch of {many:,} answers of about a thousand characters: {ten / many * 1e6:.0f} µs an answer (of {few:,}:"
    yield f"{one / few * 1e6:.0f} µs)."
    yield ""


def memory_lines(streams: int) -> Iterator[str]:
    yield f"{streams:,} streams in one process, a token of each in turn, every token a string of its own. Bytes a stream beyond"
    yield "the text that has come and the arguments that were sent: on average over reasoning, content and the call, which are"
    yield "a third each, over all of the answer, which is what a stream of many takes that are at different places, and at the"
    yield "place where they are most: in XML the end of the long argument, whose value is then held beside its text."
    yield ""
    yield "| | call | made | reasoning | content | call | all | most |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for xml in (False, True):
        template = respzoo.ResponseTemplate(curated("qwen3_xml") if xml else spec_of("qwen3"))
        pieces = [piece for piece in model_output(4096, xml=xml) if piece.isascii()]  # a byte a character
        for name, cls in (("`ResponseParser`", respzoo.ResponseParser), ("`MessageStream`", respzoo.MessageStream)):
            made, beyond = memory(template, cls, pieces, streams)
            third = len(beyond) // 3
            parts = [sum(part) / len(part) for part in (beyond[:third], beyond[third:-third], beyond[-third:], beyond)]
            values = " | ".join(f"{value:,.0f}" for value in (made, *parts, max(beyond)))
            yield f"| {name} | {'XML' if xml else 'JSON'} | {values} |"


def memory(template: Any, cls: Any, pieces: Sequence[str], streams: int) -> tuple[float, list[float]]:
    """Bytes a stream when they are made, and beyond text and arguments at places all over the answer."""
    first = cls(template, prefix=PREFIX, tools=TOOLS)  # makes what all streams share
    for piece in pieces:
        first.feed(piece)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    parsers = [cls(template, prefix=PREFIX, tools=TOOLS) for _ in range(streams)]
    made = (tracemalloc.get_traced_memory()[0] - before) / streams
    beyond: list[float] = []
    come = sent = 0
    for at, piece in enumerate(pieces):
        news: Any = ()
        for parser in parsers:
            news = parser.feed((piece + " ")[:-1])
        come += len(piece)
        sent += arguments_in(news)
        del news
        if at % 8 == 0:
            beyond.append((tracemalloc.get_traced_memory()[0] - before) / streams - come - sent)
    tracemalloc.stop()
    return made, beyond


def arguments_in(deltas: Sequence[Any]) -> int:
    """How many characters of arguments are sent."""
    return sum(len(call["function"]["arguments"]) for delta in deltas for call in delta.get("tool_calls", ()))


def report(quick: bool) -> tuple[str, Sequence[int], dict[str, list[float]]]:
    """The tables, and what of them is drawn: the lengths, and nanoseconds a token by what is measured."""
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, one core; process time, least of several runs. "
        "The reference is `transformers.utils.chat_parsing`, run in the same process.",
        "",
    ]
    sizes, repeats, scale = ((1024, 4096, 16384), 4, 0.2) if quick else ((1024, 4096, 16384, 65536), 40, 1.0)
    drawn: dict[str, list[float]] = {}
    for part in (
        tokens_table(sizes, repeats, drawn),
        whole_lines(scale, 3),
        memory_lines(int(1000 * scale)),
        hostile_table(scale / 2, 2),
    ):
        for line in part:
            print(line, flush=True)
            lines.append(line)
        print()
        lines.append("")
    return "\n".join(lines).rstrip() + "\n", sizes, drawn


def write(path: Path, table: str) -> None:
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.exit(f"{path} has no {BEGIN} … {END} to write between")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    path.write_text(f"{head}{BEGIN}\n{table}{END}{tail}", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a look, not a measurement")
    options.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the bench marks of FILE")
    chosen = options.parse_args()
    table, sizes, drawn = report(chosen.quick)
    if chosen.write:
        write(chosen.write, table)
        plot.draw(ROOT / "docs" / "bench.svg", "Cost of a streamed token, Qwen3", sizes, drawn)


if __name__ == "__main__":
    main()
