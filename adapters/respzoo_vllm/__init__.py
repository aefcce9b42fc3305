"""respzoo inside vLLM: `--reasoning-parser respzoo --tool-call-parser respzoo --enable-auto-tool-choice`.

vLLM finds `respzoo_vllm.plugin:register` by the entry point group `vllm.general_plugins`; nothing here is called by
hand.

    plugin.py   the entry point
    engine.py   the only file that imports vLLM: names that moved between releases, and the plug itself
    plan.py     which template, and what is compiled once for a tokenizer
    variant.py  the template without what a request does not ask for
    prompt.py   token ids of a prompt -> the text that matters; where reasoning begins and ends, in token ids
    spans.py    which stretches of a delta special tokens wrote
    forced.py   the JSON that vLLM's own grammars make of a forced call
    parser.py   the parsers that vLLM meets
"""
