"""respzoo inside vLLM: `--reasoning-parser respzoo --tool-call-parser respzoo --enable-auto-tool-choice`.

vLLM finds `respzoo_vllm.plugin:register` by the entry point group `vllm.general_plugins`; nothing here is called by
hand.

    plugin.py   the entry point
    arrival.py  what is done to a module once somebody imports it
    engine.py   the only file that imports vLLM: names that moved between releases, and the plug itself
    plan.py     which template, and what is compiled once for a tokenizer
    variant.py  the template without what a request does not ask for
    prompt.py   token ids of a prompt -> the text that matters; where reasoning begins and ends, in token ids
    spans.py    which stretches of a delta special tokens wrote
    tools.py    a request's functions as JSON schemas
    grammar.py  what holds a model to the calls that a request asks for
    forced.py   the JSON that vLLM's own grammars make of a forced call
    damage.py   what is said and counted of calls that could not be read
    deltas.py   the objects that go out, built quickly
    order.py    the parts of a delta in their order, for Responses
    parser.py   the parser that reads replies
    harmony.py  gpt-oss where its text has no markers
    split.py    the classes behind the two flags
    halves.py   a reply read by two parsers that do not know each other
    ending.py   finish_reason, where vLLM does not say what happened
"""
