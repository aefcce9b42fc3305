"""What a streamed token costs in vLLM's API server: our parser beside its stock ones, in one process.

    python tools/bench/vllm_delta.py                      print the table (in the environment of tools/vllm_cpu/setup.py)
    python tools/bench/vllm_delta.py --write README.md    put it between that file's vllm-bench marks

Strategy: `parse_delta` is called as the server calls it, once a token of Qwen3's own tokenizer, on a reply of reasoning,
an answer and one call with a long argument. Process time, garbage collector off, the least of several runs, the parsers
taking turns. The floor is a parser that does nothing but build one DeltaMessage a token.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import qwen_tokens

from respzoo_vllm import plugin

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- vllm-bench:begin -->", "<!-- vllm-bench:end -->"
SIZES = (1024, 4096, 16384)
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


def measure(repeats: int) -> tuple[list[str], dict[str, list[float]]]:
    """Microseconds a token by parser and size."""
    from transformers import PreTrainedTokenizerFast
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=qwen_tokens.load(), eos_token="<|im_end|>")
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Please write."}], tools=TOOLS)
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False)
    parsers = {"(one DeltaMessage a token)": (floor_class(), False), **parser_classes()}
    table: dict[str, list[float]] = {name: [] for name in parsers}
    for size in SIZES:
        replies = {xml: reply(size, xml=xml) for xml in (False, True)}
        best: dict[str, float] = {}
        for _ in range(repeats):
            for name, (cls, xml) in parsers.items():
                ids, texts = replies[xml]
                spent = run(cls, tokenizer, request, prompt, ids, texts) / len(ids)
                best[name] = min(spent, best.get(name, spent))
        for name, value in best.items():
            table[name].append(value * 1e6)
    return [f"{size // 1024}k tokens" for size in SIZES], table


def markdown(columns: list[str], table: dict[str, list[float]]) -> str:
    lines = [f"| µs a token | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for name, values in table.items():
        lines.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} |")
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
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--write", type=Path, metavar="FILE")
    given = options.parse_args()
    logging.disable(logging.WARNING)
    plugin.register()
    text = markdown(*measure(given.repeats))
    print(text)
    if given.write is not None:
        write(given.write, text)


if __name__ == "__main__":
    main()
