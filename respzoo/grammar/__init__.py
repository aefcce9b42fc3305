"""A template as a grammar: what makes a model write its calls so that the parser finds them.

ebnf.py       rules of a grammar, and what a pattern's tree says in it
search.py     a search for patterns as an automaton
texts.py      free text without a match of some patterns
dispatched.py the same as an engine reads it fastest, strings in quotes
readable.py   a tool's parameters as all notations read them
schemas.py    JSON Schemas as grammars, in some notation
notations.py  the notations: JSON in tags, Python, JSON with a model's own marks
formats.py    xgrammar's structural tags, as dicts
shapes.py     a transform read backwards
openers.py    what tells a call from text
tags.py       arguments in tags
calls.py      one syntax of a template's calls
tag.py        the whole message
"""

from respzoo.grammar.tag import Built, ToolChoice, build

__all__ = ["Built", "ToolChoice", "build"]
