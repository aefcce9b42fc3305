"""What a streamed token costs in vLLM's API server: our parser beside its stock ones, in one process.

    python tools/bench/vllm_delta.py                      print the table (in the environment of tools/vllm_cpu/setup.py)
    python tools/bench/vllm_delta.py --write README.md    put it between that file's vllm-bench marks

Strategy: `parse_delta` is called as the server calls it, once a token of Qwen3's own tokenizer, on a reply of reasoning,
an answer and one call with a long argument. Process time, garbage collector off, the least of several runs, each of ours
and its stock peer taking turns, some runs in a row; what takes seconds is run once. The floor is a parser that does
nothing but build one DeltaMessage a token. The engine core's question, whether reasoning is over, is asked behind prompts
of several lengths. `--write` draws docs/bench-vllm.svg, too.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plot
import qwen_tokens

from respzoo_vllm import plugin

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- vllm-bench:begin -->", "<!-- vllm-bench:end -->"
SIZES = (1024, 4096, 16384, 65536)
PROMPTS = (1_000, 10_000, 100_000)
TOO_LONG = 5.0  # seconds of one run, to run it again
IN_A_ROW = 3  # runs of one parser: a server has only one, and the first run behind another's finds the caches cold
FLOOR = "(one DeltaMessage a token)"
PAIRS = (("respzoo (JSON calls)", "qwen3 + hermes"), ("respzoo (XML calls)", "qwen3 + qwen3_coder"))
PROMPT = "<|im_start|>user\nPlease write the report.<|im_end|>\n<|im_start|>assistant\n"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
        },
    }
]
LINE = 'Column %d of the report holds what was measured at noon, 3.14 < x, and says "naïve" twice. '
XML_CALL = (
    "<tool_call>\n<function=write_file>\n<parameter=path>\nreport.md\n</parameter>\n"
    "<parameter=text>\n%s\n</parameter>\n</function>\n</tool_call>"
)


def reply(size: int, *, xml: bool) -> tuple[list[int], list[str]]:
    """A reply of about `size` tokens, a third of them each region, as token ids and the text that each brings."""
    line = len(qwen_tokens.load().encode(LINE % 7).ids)
    prose = "".join(LINE % number for number in range(max(1, size // 3 // line)))
    if xml:
        call = XML_CALL % prose
    else:
        arguments = {"path": "report.md", "text": prose}
        call = f"<tool_call>\n{json.dumps({'name': 'write_file', 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"
    text = f"<think>\n{prose.strip()}\n</think>\n\n{prose.strip()}\n{call}"
    ids = qwen_tokens.load().encode(text, add_special_tokens=False).ids
    return ids, list(qwen_tokens.pieces(ids))


def parser_classes() -> dict[str, tuple[Any, bool]]:
    """Name -> the parser class, and whether its calls are XML."""
    from vllm.parser import ParserManager

    def stock(reasoning: str, tools: str, model: str) -> Any:
        return ParserManager.get_parser(
            reasoning_parser_name=reasoning, tool_parser_name=tools, enable_auto_tools=True, model_name=model
        )

    plain, coder = "Qwen/Qwen3-8B", "Qwen/Qwen3-Coder-30B-A3B-Instruct"
    return {
        "respzoo (JSON calls)": (stock("respzoo", "respzoo", plain), False),
        "qwen3 + hermes": (stock("qwen3", "hermes", plain), False),
        "respzoo (XML calls)": (stock("respzoo", "respzoo", coder), True),
        "qwen3 + qwen3_coder": (stock("qwen3", "qwen3_coder", coder), True),
    }


def floor_class() -> Any:
    from respzoo_vllm import engine

    class Floor:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def parse_delta(self, delta_text: str, *_: Any, **__: Any) -> Any:
            return engine.DeltaMessage(content=delta_text)

    return Floor


def run(cls: Any, tokenizer: Any, request: Any, prompt: list[int], ids: list[int], texts: list[str]) -> float:
    """Seconds of process time for one reply."""
    parser = cls(tokenizer, request.tools)
    last = len(ids) - 1
    deltas = [[token] for token in ids]
    gc.collect()
    gc.disable()
    begun = time.process_time()
    for at, text in enumerate(texts):
        parser.parse_delta(text, deltas[at], request, prompt, finished=at == last)
    spent = time.process_time() - begun
    gc.enable()
    return spent


def measure(repeats: int) -> dict[str, list[float]]:
    """Microseconds a token by parser and size."""
    from transformers import PreTrainedTokenizerFast
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=qwen_tokens.load(), eos_token="<|im_end|>")
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Please write."}], tools=TOOLS)
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False)
    parsers = {FLOOR: (floor_class(), False), **parser_classes()}
    table: dict[str, list[float]] = {name: [] for name in parsers}
    gc.collect()
    gc.freeze()  # or each collection walks through all of vLLM, and the next run finds the caches cold
    for size in SIZES:
        replies = {xml: reply(size, xml=xml) for xml in (False, True)}
        for together in ((FLOOR,), *PAIRS):
            best = dict.fromkeys(together, float("inf"))
            for _ in range(max(1, repeats * 4096 // size)):
                for name in [each for each in together for _ in range(IN_A_ROW)]:
                    cls, xml = parsers[name]
                    ids, texts = replies[xml]
                    if TOO_LONG < best[name] * len(ids) < float("inf"):
                        continue
                    spent = run(cls, tokenizer, request, prompt, ids, texts) / len(ids)
                    best[name] = min(spent, best[name])
            for name, value in best.items():
                table[name].append(value * 1e6)
    gc.unfreeze()
    return table


def gate_lines() -> list[str]:
    """The cost of a step of the gate, and of a parser's beginning, by the prompt's length."""
    from transformers import PreTrainedTokenizerFast
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    from respzoo_vllm.prompt import decode

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=qwen_tokens.load(), eos_token="<|im_end|>")
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Please write."}], tools=TOOLS)
    cls = parser_classes()["respzoo (JSON calls)"][0]
    turn = tokenizer.encode(PROMPT, add_special_tokens=False)
    text = tokenizer.encode("".join(LINE % number for number in range(40)), add_special_tokens=False)
    lines = [
        "",
        "| tokens before | `is_reasoning_end_streaming`, a step | parser and first delta | of it, decoding the prompt's tail |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for size in PROMPTS:
        ids = (text * (size // len(text) + 1))[: size - len(turn)] + turn
        gate = cls(tokenizer, request.tools)._reasoning_parser  # what the engine core asks
        step = ids[-1:]

        def asked(gate: Any = gate, ids: list[int] = ids, step: list[int] = step) -> None:
            for _ in range(1_000):
                gate.is_reasoning_end_streaming(ids, step)

        def begun(ids: list[int] = ids) -> None:
            for _ in range(20):
                cls(tokenizer, request.tools).parse_delta("<think>", [151667], request, ids, finished=False)

        def decoded() -> None:
            for _ in range(20):
                decode(tokenizer, turn)

        steps, begin, tail = (min(spent(job) for _ in range(7)) for job in (asked, begun, decoded))
        lines.append(f"| {size:,} | {steps * 1e3:.2f} µs | {begin / 20 * 1e3:.2f} ms | {tail / 20 * 1e3:.2f} ms |")
    return lines


def spent(job: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    begun = time.process_time()
    job()
    seconds = time.process_time() - begun
    gc.enable()
    return seconds


def markdown(table: dict[str, list[float]]) -> str:
    columns = [f"{size // 1024}k tokens" for size in SIZES]
    lines = [f"| µs a token | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for name, values in table.items():
        lines.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} |")
    for ours, theirs in PAIRS:
        times = [f"{stock / own:.1f}" for own, stock in zip(table[ours], table[theirs], strict=True)]
        lines.append(f"| times less than {theirs} | {' | '.join(times)} |")
    version = importlib.metadata.version("vllm").partition("+")[0]
    lines += ["", f"vLLM {version}, Python {sys.version.split()[0]}, one token a delta, process time."]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    old = path.read_text("utf-8")
    head, _, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise SystemExit(f"{path} has no {BEGIN} … {END}")
    path.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", "utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--write", type=Path, metavar="FILE")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    plugin.register()
    table = measure(given.repeats)
    text = "\n".join([markdown(table), *gate_lines()])
    print(text)
    if given.write is not None:
        write(given.write, text)
        drawn = {name: [value * 1e3 for value in values] for name, values in table.items() if name[0] != "("}
        plot.draw(ROOT / "docs" / "bench-vllm.svg", "Cost of a streamed token in vLLM", SIZES, drawn)


if __name__ == "__main__":
    main()
