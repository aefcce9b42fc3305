"""Build the tiny checkpoint: python tools/vllm_cpu/checkpoint.py [FOLDER]   (default: .cache/tiny-checkpoint)

A Qwen3 of two layers, overfitted in about two minutes on 2 idle cores until it answers each prompt of scripts.py to the
letter. Needs torch, transformers and canitoolcall, as tools/vllm_cpu/setup.py installs them. Nothing is done if FOLDER is up to date.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import scripts

# Threads that wait by spinning make training many times slower where anything else runs; read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "tiny-checkpoint"
MADE = 3  # raise it when a change below makes another checkpoint of the same scripts
ROUNDS = 60
TRIES = 4
BATCH = 4  # rows, at least
STEP = 3  # batches
SURE = 0.9  # how likely the right token must be, everywhere
NEAR = 0.12  # and where more than one is right, how near to its share


def stamp_text() -> str:
    told = {name: value for name, value in vars(scripts).items() if name.isupper()}
    text = repr((MADE, version("canitoolcall"), sorted(told.items())))
    return hashlib.sha256(text.encode()).hexdigest()


def up_to_date(folder: Path) -> bool:
    stamp = folder / "stamp"
    return stamp.exists() and stamp.read_text() == stamp_text()


def scenarios() -> dict[str, Any]:
    from canitoolcall.probe import BUILTIN_SCENARIOS

    return {scenario.id: scenario for scenario in BUILTIN_SCENARIOS}


def make_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    corpus = [text for script in scripts.SCRIPTS for text in (script.prompt, script.answer, *script.instead)]
    corpus += [text for answers in scripts.PROBE.values() for text in answers]
    corpus = [piece for text in corpus for piece in text.split(scripts.SPELT)]
    # What prompts repeat is worth tokens of its own: the shorter the rows, the faster the training.
    corpus += ["".join("\n" + json.dumps(tool) for tool in scripts.TOOLS) + "</tools>"] * 8
    for scenario in scenarios().values():
        corpus += [json.dumps(tool) for tool in scenario.tools] * 4
        corpus += [message["content"] for message in scenario.messages if message["content"]] * 3
    corpus += [line for line in scripts.CHAT_TEMPLATE.splitlines() if "{" not in line or "<args" in line] * 8
    corpus += [text for texts in scripts.PREFILLED for text in texts]
    corpus += [scripts.FOLLOW_UP_ANSWER, "system user assistant # Tools <tools> </tools> <tool_response> sunny"]
    inner = Tokenizer(models.BPE(byte_fallback=False))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=900, min_frequency=3, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
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


@dataclass
class Row:
    """The ids of a prompt and of an answer."""

    prompt: list[int]
    answer: list[int]
    given: int = 0  # so many of the answer's first ids are another row's or the engine's
    shares: list[float] = field(default_factory=list[float])  # how likely each id is to become
    weights: list[float] = field(default_factory=list[float])

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def make_rows(tokenizer: Any) -> list[Row]:
    rows: list[Row] = []

    def ids(text: str) -> list[int]:
        return [id for piece in text.split(scripts.SPELT) for id in tokenizer(piece).input_ids]

    def add(messages: Sequence[Any], answers: Iterable[str], tools: Sequence[Any] | None, **options: Any) -> list[int]:
        options.setdefault("add_generation_prompt", True)
        text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, **options)
        prompt = tokenizer(text).input_ids
        rows.extend(Row(prompt, ids(answer + "<|im_end|>")) for answer in dict.fromkeys(answers))
        return prompt

    for script in scripts.SCRIPTS:
        offered = [scripts.TOOLS if with_tools else None for with_tools in script.tools]
        for tools in offered + [scripts.STRICT_TOOLS] * script.strict:
            for thinking in script.thinking:
                options = {} if thinking is None else {"enable_thinking": thinking}
                messages = [{"role": "user", "content": script.prompt}]
                prompt = add(messages, (script.answer, *script.instead), tools, **options)
                for count, rest in script.cut:
                    given = ids(script.answer)[: count + 1] + ids("</think>")
                    rows.append(Row(prompt, given + ids(rest + "<|im_end|>"), len(given)))
    for begun, given, added in scripts.PREFILLED:
        messages = [{"role": "user", "content": begun}, {"role": "assistant", "content": given}]
        options = {"add_generation_prompt": False, "continue_final_message": True}
        add(messages, [added], scripts.TOOLS, **options)
    add(scripts.FOLLOW_UP, [scripts.FOLLOW_UP_ANSWER], scripts.TOOLS)
    for name, scenario in scenarios().items():
        add(scenario.messages, scripts.PROBE[name], scenario.tools)
    weigh(rows)
    return rows


def weigh(rows: list[Row]) -> None:
    """Where answers to one prompt part, each next one is half as likely as the one before."""
    seen: dict[int, dict[int, int]] = {}  # what stands before -> what may follow, and in how many rows
    for row in rows:
        for before, token in contexts(row):
            followers = seen.setdefault(before, {})
            followers[token] = followers.get(token, 0) + 1
    for row in rows:
        for before, token in contexts(row):
            followers = seen[before]
            weight = 0.5 ** list(followers).index(token)
            row.shares.append(weight / sum(0.5**rank for rank in range(len(followers))))
            row.weights.append(weight / followers[token])


def contexts(row: Row) -> Iterator[tuple[int, int]]:
    before = hash(tuple(row.prompt))
    for at, token in enumerate(row.answer):
        if at >= row.given:
            yield before, token
        before = hash((before, token))


def in_parts(rows: list[Row]) -> list[list[Row]]:
    """Parts of like length, with all answers to one prompt in one of them: there they pull against each other."""
    parts: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (len(row.prompt), row.prompt)):
        if not parts or (len(parts[-1]) >= BATCH and row.prompt != parts[-1][-1].prompt):
            parts.append([])
        parts[-1].append(row)
    return parts


def make_batch(rows: list[Row], padding: int) -> Any:
    """Token ids, and what each is worth to learn. What pads a row stands behind it, where nothing looks."""
    import torch

    ids = torch.full((len(rows), max(map(len, rows))), padding)
    weights = torch.zeros(ids.shape)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row.prompt + row.answer)
        weights[at, len(row.prompt) + row.given : len(row)] = torch.tensor(row.weights)
    return ids, weights


def train(tokenizer: Any, rows: list[Row]) -> Any:
    """The model, from the first beginning that leads to one: now and then a training gets stuck."""
    for seed in range(TRIES):
        if (model := train_once(tokenizer, rows, seed)) is not None:
            return model
        print(f"[checkpoint] not learnt in {ROUNDS} rounds; from another beginning", flush=True)
    raise RuntimeError(f"the checkpoint has not learnt its answers in {TRIES} times {ROUNDS} rounds")


def train_once(tokenizer: Any, rows: list[Row], seed: int) -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
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
    worth = sum(weight for row in rows for weight in row.weights)
    # Where answers part, no model is sure: the loss that remains.
    doubt = sum(
        -weight * math.log(share) for row in rows for weight, share in zip(row.weights, row.shares, strict=True)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    parts = in_parts(rows)
    turns = len(parts) // STEP + 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=ROUNDS * turns, pct_start=0.1)
    begun = time.time()
    again: list[list[Row]] = []  # what is not learnt yet, and so is read twice
    for turn in range(ROUNDS):
        loss = -doubt
        shuffled = [parts[at] for at in torch.randperm(len(parts)).tolist()] + again
        for start in range(turns):
            taken = [make_batch(part, tokenizer.pad_token_id) for part in shuffled[start::turns]]
            share = sum(weights.sum().item() for _, weights in taken)
            optimizer.zero_grad()
            for ids, weights in taken:
                # Only what is learnt needs the head, which is the dearest part.
                kept = weights[:, 1:] > 0
                hidden = model.model(ids).last_hidden_state[:, :-1][kept]
                each = torch.nn.functional.cross_entropy(model.lm_head(hidden), ids[:, 1:][kept], reduction="none")
                part = (each * weights[:, 1:][kept]).sum()
                (part / share).backward()
                loss += part.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        if turn % 10 == 0:
            print(f"[checkpoint] round {turn}, loss {loss / worth:.4f}, {time.time() - begun:.0f} s", flush=True)
        if turn >= ROUNDS // 2 and turn % 3 == 0:
            again = [part for part in parts if not all(has_learnt(model, row) for row in part)]
            print(f"[checkpoint] round {turn}, {len(again)} of {len(parts)} batches are not sure yet", flush=True)
            if not again:
                return model.eval()
    return None


def has_learnt(model: Any, row: Row) -> bool:
    """Whether the model finds each token of an answer as likely as it is to be, after the right ones before it."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([row.prompt + row.answer])).logits[0, len(row.prompt) - 1 : -1]
        found = logits.softmax(-1)[torch.arange(len(row.answer)), torch.tensor(row.answer)][row.given :]
    wanted = torch.tensor(row.shares)
    return bool(torch.where(wanted == 1, found > SURE, (found - wanted).abs() < NEAR).all())


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
