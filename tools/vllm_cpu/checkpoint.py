"""Build the tiny checkpoint: python tools/vllm_cpu/checkpoint.py [FOLDER]   (default: .cache/tiny-checkpoint)

A Qwen3 of two layers, overfitted within two minutes on 2 cores until it answers each prompt of scripts.py to the letter.
Needs torch and transformers, as tools/vllm_cpu/setup.py installs them. Nothing is done if FOLDER is up to date.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import scripts

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "tiny-checkpoint"
STEPS = 400


def stamp_text() -> str:
    return hashlib.sha256(Path(__file__).read_bytes() + Path(scripts.__file__).read_bytes()).hexdigest()


def up_to_date(folder: Path) -> bool:
    stamp = folder / "stamp"
    return stamp.exists() and stamp.read_text() == stamp_text()


def make_tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    corpus = [text for script in scripts.SCRIPTS for text in (script.prompt, script.answer)]
    corpus += ["".join("\n" + json.dumps(tool) for tool in scripts.TOOLS) + "</tools>"] * 4
    corpus += [text for texts in scripts.PREFILLED for text in texts]
    corpus += [scripts.FOLLOW_UP_ANSWER, "system user assistant # Tools <tools> </tools> <tool_response> sunny"]
    inner = Tokenizer(models.BPE(byte_fallback=False))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=520, min_frequency=3, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
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
    longest = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.full((len(rows), longest), tokenizer.pad_token_id)
    labels = torch.full_like(ids, -100)
    mask = torch.zeros_like(ids)
    for row, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
        mask[row, :end] = 1
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS, pct_start=0.1)
    begun = time.time()
    for step in range(STEPS):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        done = loss.item() < 1.5e-3
        if step % 50 == 0 or done:
            print(f"[checkpoint] step {step}, loss {loss.item():.4f}, {time.time() - begun:.0f} s", flush=True)
        if done:
            break
    return model.eval()


def reproduces(model: Any, prompt: list[int], answer: list[int]) -> bool:
    """Whether each token of the answer is the likeliest one after those before it."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return bool((logits.argmax(-1) == torch.tensor(answer)).all())


def build(folder: Path = FOLDER) -> Path:
    if up_to_date(folder):
        return folder
    tokenizer = make_tokenizer()
    rows = make_rows(tokenizer)
    model = train(tokenizer, rows)
    wrong = [tokenizer.decode(answer) for prompt, answer in rows if not reproduces(model, prompt, answer)]
    if wrong:
        raise SystemExit(f"the checkpoint has not learnt {len(wrong)} of {len(rows)} answers: {wrong}")
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    (folder / "stamp").write_text(stamp_text())
    print(f"[checkpoint] {folder}: {len(rows)} answers learnt", flush=True)
    return folder


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER)
