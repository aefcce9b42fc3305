"""What a model's name says of what it is, once all that re-uploading adds to it is taken off.

`unsloth/Qwen3-8B-unsloth-bnb-4bit`, `bartowski/Qwen_Qwen3-8B-GGUF` and `huihui-ai/Huihui-Qwen3-8B-abliterated` begin,
when they are bare, with the name that Qwen gave.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

__all__ = ["bare_forms", "bare_name", "is_chat"]

# compiled when a name is first looked at, and kept by `re`
_QUANTISED = r"""[-_.](?:
        (?:nv|mx)?fp(?:4|8|16)(?:[-_](?:dynamic|block|kv|static))? | bf16 | f16 | fp32
      | awq(?:[-_]?int4)? | gptq | gguf | ggml | i1 | imatrix | exl[23] | eetq | hqq | aqlm | marlin | auto-?round
      | bnb | unsloth | mlx | dwq | qat | onnx | openvino | torchao | neuron | nf4 | mtp | ud | ct | apex
      | (?:mlx[-_])?[2-8](?:\.\d+)?[-_]?(?:bit|bpw) | int[248] | [wa]\d+(?:a(?:fp)?\d+)? | g(?:32|64|128) | gs\d+
      | (?:ud[-_])?i?q[2-8](?:[-_](?:[0-9k]|[a-z]{1,3}))* | quantized | quantised | dynamic | compressed[-_]tensors | hf
      | \d{5}-of-\d{5}
    )(?:[-_]v\d)?$"""

_REUPLOADERS = ("huihui-",)
"""What some put in front of a name, whoever uploads the model again."""

_NO_CHAT = (
    r"(?:^|[-_.])(?:base|pt|pretrain(?:ed)?|embed(?:ding)?s?|colbert|rerank(?:er)?|reward|rm|prm(?:\d+k)?|asr|tts|captioner"
    r"|guard|guardian|classifier|draft(?:er)?|eag(?:le|el)\d?|dflash\d*|nextn|speculators?|sae)(?:[-_.]|$)"
)


def bare_name(model: str) -> str:
    """A model's name in lower case, without organisation and the suffixes of quantised forms."""
    name = model.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    quantised = re.compile(_QUANTISED, re.VERBOSE)
    while stripped := quantised.sub("", name):
        if stripped == name:
            break
        name = stripped
    return name


def bare_forms(names: Iterable[str], owners: Collection[str]) -> set[str]:
    """All bare forms that names can have: with the first owner's name in front (`Qwen_Qwen3-8B`,
    `deepseek-ai.DeepSeek-V3.2`, where the owner is one of `owners`), or with that of who uploaded it again."""
    found: set[str] = set()
    for model in filter(None, names):
        name = bare_name(model)
        uploader = re.split(r"[-_.]", model.rpartition("/")[0].rpartition("/")[2].lower())[0]
        for front in (*_REUPLOADERS, f"{uploader}-" if uploader else ""):
            if front and name.startswith(front):
                found.add(name.removeprefix(front))
        found.add(name)
    for name in list(found):
        if "_" in name:
            found.add(name.partition("_")[2])
        owner, dot, rest = name.partition(".")
        if dot and owner in owners:
            found.add(rest)
    return found


def is_chat(name: str) -> bool:
    """Whether a bare name could be that of a model that was taught to chat: no base model, no draft, no embedding."""
    return re.search(_NO_CHAT, name) is None
