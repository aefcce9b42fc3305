"""Who may know whom: reads every import of the three packages, runs none of them.

The order of respzoo's layers is stated once, below. A module may import from its own layer's package and from layers
before it; `if TYPE_CHECKING:` counts as well, since a type is knowledge too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "respzoo"
CURATED = ROOT / "registry" / "respzoo_curated"
VLLM = ROOT / "adapters" / "respzoo_vllm"

# Each line knows only the lines above it.
LAYERS = (
    ("errors", "events", "joined", "spans"),
    ("patterns",),
    ("automaton", "known"),
    ("allowance", "hazards"),
    ("delimiters",),
    ("search",),
    ("scanner",),
    ("content",),
    ("schema",),
    ("calls",),
    ("fields",),
    ("guard",),
    ("problems",),
    ("transform",),
    ("assembly",),
    ("spec",),
    ("region",),
    ("draft",),
    ("stray", "leftover"),
    ("loop",),
    ("parser",),
    ("arguments",),
    ("outbox",),
    ("message",),
    ("grammar",),
    ("template",),
    ("hookspecs", "installed", "names"),
    ("folders",),
    ("trust",),
    ("plugins",),
    ("hub",),
    ("ladder",),
    ("zoo",),
    ("batch",),
    ("nearest",),
    ("export",),
    ("install",),
    ("pieces",),
    ("trace",),
    ("lost",),
    ("testing",),
    ("prompts",),
    ("audit",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# What respzoo itself may import from outside the standard library, and where.
ALLOWED = {"regex": None, "pluggy": None, "huggingface_hub": {"hub"}, "typer": {"cli"}, "rich": {"cli"}}
# Imported only inside functions, and only if it is there: never needed to import respzoo.
OPTIONAL = {"transformers", "jinja2"}


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file imports, `from a import b` as `a.b`, and whether that happens inside a function."""
    tree = ast.parse(file.read_text("utf-8"), str(file))
    inner = {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: relative import"
            yield from ((f"{node.module}.{alias.name}", node in inner) for alias in node.names)


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def layer(file: Path) -> str:
    """The layer of a file of respzoo: its module's name, or the name of the sub-package that holds it."""
    return file.relative_to(CORE).parts[0].removesuffix(".py")


def ids(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("file", modules(CORE), ids=ids)
def test_a_layer_knows_only_those_before_it(file: Path) -> None:
    mine = layer(file)
    if mine == "__init__":
        return  # the public names; test_public_names_know_no_upper_layer looks after it
    assert mine in RANK, f"respzoo/{mine} has no place in LAYERS"
    for name, _ in imports(file):
        parts = name.split(".")
        if parts[0] != "respzoo":
            continue
        assert parts[1:2] != ["__init__"], name
        other = parts[1]
        assert other in RANK, f"{ids(file)} imports {name}: import from the module, not from the package"
        assert other == mine or RANK[other] < RANK[mine], f"{ids(file)} imports {name}, which comes after it"


def test_public_names_know_no_upper_layer() -> None:
    others = {name.split(".")[1] for name, _ in imports(CORE / "__init__.py") if name.startswith("respzoo.")}
    assert others <= RANK.keys() - {"cli", "__main__", "testing"}


@pytest.mark.parametrize("file", modules(CORE), ids=ids)
def test_respzoo_imports_no_engine_and_no_zoo(file: Path) -> None:
    for name, inside in imports(file):
        top = name.split(".")[0]
        if top == "respzoo" or top in sys.stdlib_module_names:
            continue
        if top in OPTIONAL:
            assert inside, f"{ids(file)} imports {top} when it is imported itself"
            continue
        assert top in ALLOWED, f"{ids(file)} imports {name}"
        only = ALLOWED[top]
        assert only is None or layer(file) in only, f"{ids(file)} imports {name}; only {only} may"


@pytest.mark.parametrize("file", modules(CURATED), ids=ids)
def test_the_zoo_is_data(file: Path) -> None:
    for name, _ in imports(file):
        top = name.split(".")[0]
        assert top in sys.stdlib_module_names or name.startswith("respzoo.plugins."), f"{ids(file)} imports {name}"


@pytest.mark.parametrize("file", modules(VLLM), ids=ids)
def test_one_file_imports_vllm(file: Path) -> None:
    for name, _ in imports(file):
        top = name.split(".")[0]
        assert top != "respzoo_curated", f"{ids(file)} imports {name}"
        if top in {"vllm", "torch", "openai_harmony"}:
            assert file.name == "engine.py", f"{ids(file)} imports {name}; only engine.py may"


def test_the_layers_are_all_there() -> None:
    """The table above is no wish list: each of its modules exists."""
    missing = [name for name in RANK if not (CORE / name).is_dir() and not (CORE / f"{name}.py").is_file()]
    assert not missing


def test_importing_respzoo_costs_little() -> None:
    """The command line's packages, the Hub's client and transformers come only when they are needed."""
    heavy = "{'typer', 'rich', 'huggingface_hub', 'transformers', 'numpy', 'respzoo_curated'}"
    code = f"import sys, respzoo; print(sorted({heavy} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_the_packages_are_typed() -> None:
    assert all((package / "py.typed").is_file() for package in (CORE, CURATED, VLLM))
