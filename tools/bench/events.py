"""The parser's cost beside the reference's, both in one process.

    python tools/bench/events.py            print the tables
    python tools/bench/events.py --quick    fewer repeats, no 64k column, smaller hostile inputs
    python tools/bench/events.py --write README.md

Strategy: process time, garbage collector off, the least of several runs, the two parsers taking turns so that a noisy
moment hits both. The tokens are those that Qwen3's own tokenizer makes of the text, one token a feed, as a server
streams them. A hostile input is timed at one size and at twice that size: what is linear doubles.
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


def model_output(tokens: int) -> list[str]:
    """Reasoning, content and one JSON call with a long argument, a third each, as Qwen3's tokens."""
    rng = random.Random(tokens)
    third = tokens // 3
    reasoning = cut(prose(rng, third), third)
    content = cut(prose(rng, third), third)
    body = cut(json.dumps(code(rng, tokens // 8), ensure_ascii=False), tokens - 2 * third - 50).rstrip("\\") + '"'
    call = f'{{"name": "write_file", "arguments": {{"path": "report.py", "text": {body}, "mode": 420}}}}'
    json.loads(call)
    text = f"<think>\n{reasoning}\n</think>\n\n{content}\n<tool_call>\n{call}\n</tool_call>"
    return [piece for piece in qwen_tokens.tokens(text) if piece]


def spec_of(family: str) -> dict[str, Any]:
    """A family's template; a draft of it where the curated one is in the dialect, which the reference does not speak."""
    curated = ROOT / "registry" / "respzoo_curated" / family / "template.json"
    if curated.exists() and "dialect" not in (spec := json.loads(curated.read_text(encoding="utf-8"))):
        return spec
    return json.loads((ROOT / "tests" / "data" / "templates" / f"{family}.json").read_text(encoding="utf-8"))


def least(repeats: int, *jobs: Callable[[], Any]) -> list[float]:
    """The least process time of each job, the jobs taking turns."""
    best = [float("inf")] * len(jobs)
    gc.collect()
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
    return best


def stream(parser: Any, pieces: Sequence[str]) -> Any:
    feed = parser.feed
    for piece in pieces:
        feed(piece)
    return parser.finish() if hasattr(parser, "finish") else parser.finalize()


def tokens_table(sizes: Sequence[int], repeats: int) -> Iterator[str]:
    spec = spec_of("qwen3")
    template, compiled = respzoo.ResponseTemplate(spec), load_response_template(spec)
    yield "One token a feed, Qwen3's tokens; reasoning, content and one JSON call with a long argument. ns a token:"
    yield ""
    yield "| tokens | reference | respzoo | times less | `MessageStream`, calls whole | `MessageStream`, calls streamed |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    ours_by_size: dict[int, float] = {}
    for size in sizes:
        pieces = model_output(size)
        runs = repeats if size <= 4096 else max(3, repeats // 4)
        theirs, ours, whole, streamed = (
            seconds / len(pieces) * 1e9
            for seconds in least(
                runs,
                lambda: stream(Reference(compiled, prefix=PREFIX, tools=TOOLS), pieces),
                lambda: stream(respzoo.ResponseParser(template, prefix=PREFIX, tools=TOOLS), pieces),
                lambda: stream(
                    respzoo.MessageStream(template, prefix=PREFIX, tools=TOOLS, arguments="complete"), pieces
                ),
                lambda: stream(respzoo.MessageStream(template, prefix=PREFIX, tools=TOOLS, arguments="stream"), pieces),
            )
        )
        ours_by_size[size] = ours
        yield f"| {size:,} | {theirs:,.0f} | {ours:,.0f} | {theirs / ours:.1f} | {whole:,.0f} | {streamed:,.0f} |"
    first, last = min(ours_by_size), max(ours_by_size)
    yield ""
    yield f"A token at {last:,} costs {ours_by_size[last] / ours_by_size[first]:.2f} times what one at {first:,} does."


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
    spec = spec_of("qwen3")
    template, compiled = respzoo.ResponseTemplate(spec), load_response_template(spec)
    large, small = one_output(int(1_000_000 * scale)), one_output(int(100_000 * scale))
    (ours,) = least(repeats, lambda: respzoo.parse_response(large, template, prefix=PREFIX, tools=TOOLS))
    theirs, beside = least(
        repeats,
        lambda: reference_parse(small, compiled, prefix=PREFIX, tools=TOOLS),
        lambda: respzoo.parse_response(small, template, prefix=PREFIX, tools=TOOLS),
    )
    yield f"`parse_response` of {len(large):,} characters at once: {ours * 1e3:.1f} ms; of {len(small):,} characters:"
    yield f"reference {theirs * 1e3:.1f} ms, respzoo {beside * 1e3:.1f} ms."
    yield ""
    yield "What a stream keeps, bytes for each character that it has read (ASCII; the message itself needs about 1):"
    yield ""
    yield "| | reference | respzoo | respzoo, `MessageStream` |"
    yield "| --- | ---: | ---: | ---: |"
    long = int(400_000 * scale)
    for title, source in (
        ("reasoning", "<think>" + "word " * (long // 5)),
        ("content", "word " * (long // 5)),
        ("a JSON argument", '<tool_call>{"name": "f", "arguments": {"x": "' + "word " * (long // 5)),
    ):
        kept = [
            kept_by(make(), by(4, source)) / len(source)
            for make in (
                lambda: Reference(compiled, prefix=""),
                lambda: respzoo.ResponseParser(template, prefix=""),
                lambda: respzoo.MessageStream(template, prefix=""),
            )
        ]
        yield f"| {title} | " + " | ".join(f"{each:.2f}" for each in kept) + " |"


def kept_by(parser: Any, pieces: Sequence[str]) -> int:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for piece in pieces:
        parser.feed(piece)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def report(quick: bool) -> str:
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, one core; process time, least of several runs. "
        "The reference is `transformers.utils.chat_parsing`, run in the same process.",
        "",
    ]
    sizes, repeats, scale = ((1024, 4096, 16384), 3, 0.2) if quick else ((1024, 4096, 16384, 65536), 12, 1.0)
    for part in (tokens_table(sizes, repeats), hostile_table(scale, 3), whole_lines(scale, 3)):
        for line in part:
            print(line, flush=True)
            lines.append(line)
        print()
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


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
    table = report(chosen.quick)
    if chosen.write:
        write(chosen.write, table)


if __name__ == "__main__":
    main()
