"""Build the tiny checkpoint: python tools/vllm_cpu/checkpoint.py [FOLDER]   (default: .cache/tiny-checkpoint)

A Qwen3 of two layers, overfitted in about a minute on 2 idle cores until it answers each prompt of scripts.py to the
letter. Needs torch and transformers, as tools/vllm_cpu/setup.py installs them. Nothing is done if FOLDER is up to date.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import scripts

# Threads that wait by spinning make training many times slower where anything else runs; read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "tiny-checkpoint"
MADE = 2  # raise it when a change below makes another checkpoint of the same scripts
STEPS = 300
SURE = 0.9  # how likely the right token must be, everywhere


def stamp_text() -> str:
    what = (MADE, scripts.SCRIPTS, scripts.PREFILLED, scripts.FOLLOW_UP, scripts.FOLLOW_UP_ANSWER)
    text = repr((what, scripts.TOOLS, scripts.CHAT_TEMPLATE))
    return hashlib.sha256(text.encode()).hexdigest()


def up_to_date(folder: Path) -> bool:
    stamp = folder / "stamp"
    return stamp.exists() and stamp.read_text() == stamp_text()


def make_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    corpus = [text for script in scripts.SCRIPTS for text in (script.prompt, script.answer)]
    # What every prompt repeats is worth tokens of its own: the shorter the rows, the faster the training.
    corpus += ["".join("\n" + json.dumps(tool) for tool in scripts.TOOLS) + "</tools>"] * 8
    corpus += [line for line in scripts.CHAT_TEMPLATE.splitlines() if "{" not in line or "<args" in line] * 8
    corpus += [text for texts in scripts.PREFILLED for text in texts]
    corpus += [scripts.FOLLOW_UP_ANSWER, "system user assistant # Tools <tools> </tools> <tool_response> sunny"]
    inner = Tokenizer(models.BPE(byte_fallback=False))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=700, min_frequency=3, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    # As in Qwen3, the markers of reasoning are added tokens, but not special; other than there, those of a call are:
    # a server that skips special tokens would lose every call.
    inner.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"])
    inner.add_tokens([AddedToken(text, special=False, normalized=False) for text in ("<think>", "</think>")])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    tokenizer.chat_template = scripts.CHAT_TEMPLATE
    return tokenizer


def make_rows(tokenizer: Any) -> list[tuple[list[int], list[int]]]:
    """Pairs of the ids of a prompt and those of its answer."""
    rows: list[tuple[list[int], list[int]]] = []

    def add(messages: list[dict[str, Any]], answer: str, tools: list[dict[str, Any]] | None, **options: Any) -> None:
        options.setdefault("add_generation_prompt", True)
        prompt = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **options)
        rows.append((tokenizer(prompt).input_ids, tokenizer(answer + "<|im_end|>").input_ids))

    for script in scripts.SCRIPTS:
        for with_tools in script.tools:
            for thinking in script.thinking:
                options = {} if thinking is None else {"enable_thinking": thinking}
                messages = [{"role": "user", "content": script.prompt}]
                add(messages, script.answer, scripts.TOOLS if with_tools else None, **options)
    for prompt, given, added in scripts.PREFILLED:
        messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": given}]
        options = {"add_generation_prompt": False, "continue_final_message": True}
        add(messages, added, scripts.TOOLS, **options)
    add(scripts.FOLLOW_UP, scripts.FOLLOW_UP_ANSWER, scripts.TOOLS)
    twice = scripts.SCRIPTS[0]
    add([{"role": "user", "content": twice.prompt}], twice.answer, scripts.STRICT_TOOLS)
    return rows


def length(row: tuple[list[int], list[int]]) -> int:
    return len(row[0]) + len(row[1])


def in_parts(rows: list[Any], size: int) -> list[list[Any]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def make_batch(rows: list[tuple[list[int], list[int]]], padding: int) -> Any:
    """Token ids, and the same where they are to be learnt. What pads a row stands behind it, where nothing looks."""
    import torch

    ids = torch.full((len(rows), max(map(length, rows))), padding)
    labels = torch.full_like(ids, -100)
    for at, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids[at, :end] = torch.tensor(prompt + answer)
        labels[at, len(prompt) : end] = torch.tensor(answer)
    return ids, labels


def train(tokenizer: Any, rows: list[tuple[list[int], list[int]]]) -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(2)
    config = Qwen3Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config).float()
    batches = [make_batch(part, tokenizer.pad_token_id) for part in in_parts(sorted(rows, key=length), 4)]
    answered = sum(len(answer) for _, answer in rows)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS, pct_start=0.1)
    begun = time.time()
    for step in range(STEPS):
        loss = 0.0
        optimizer.zero_grad()
        for ids, labels in batches:
            logits = model(ids).logits
            part = torch.nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="sum"
            )
            (part / answered).backward()
            loss += part.item() / answered
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        done = loss < 0.01 and step % 5 == 0 and least_sure(model, rows) > SURE
        if step % 50 == 0 or done:
            print(f"[checkpoint] step {step}, loss {loss:.4f}, {time.time() - begun:.0f} s", flush=True)
        if done:
            return model.eval()
    raise SystemExit(f"the checkpoint has not learnt its answers in {STEPS} steps")


def least_sure(model: Any, rows: list[tuple[list[int], list[int]]]) -> float:
    """How likely the model finds the least likely token of all answers, each after the right ones before it."""
    import torch

    least = 1.0
    with torch.no_grad():
        for prompt, answer in rows:
            logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
            right = logits.softmax(-1)[torch.arange(len(answer)), torch.tensor(answer)]
            least = min(least, right.min().item())
            if least < SURE:
                break
    return least


def build(folder: Path = FOLDER) -> Path:
    if up_to_date(folder):
        return folder
    tokenizer = make_tokenizer()
    rows = make_rows(tokenizer)
    model = train(tokenizer, rows)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    (folder / "stamp").write_text(stamp_text())
    print(f"[checkpoint] {folder}: {len(rows)} answers learnt", flush=True)
    return folder


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER)
