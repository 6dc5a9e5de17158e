"""Tool definitions: each wire's form of them, and the same tools in another wire's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..messages import Note
from . import common


@dataclass(frozen=True, slots=True)
class Function:
    """A tool that the client runs, as every wire can say it. ``schema`` is a JSON Schema of the arguments."""

    name: str
    description: str = ""
    schema: Any = None


_OPEN_SCHEMA: dict[str, Any] = {"type": "object"}


def convert(definitions: Iterable[Any], wire: str) -> tuple[list[Any], list[Note]]:
    """The definitions in the form of another wire; tools without a counterpart are left out and named."""
    functions: list[Function] = []
    lost: Counter[str] = Counter()
    for definition in definitions:
        found = _functions(definition)
        functions += found
        if not found:
            lost[f"tools left out, {wire} has no counterpart: {_kind(definition)}"] += 1
    return emit(functions, wire), common.counted("tools", lost)


def stubs(names: Iterable[str], wire: str) -> tuple[list[Any], Note]:
    """Definitions of tools of which only the names are known: they take any object."""
    functions = [Function(name) for name in names]
    return emit(functions, wire), Note("tools", f"only names known, stubs written ({len(functions)})")


def emit(functions: Iterable[Function], wire: str) -> list[Any]:
    """Definitions in a wire's own form."""
    match wire:
        case "anthropic":
            return [_described(function, "input_schema") for function in functions]
        case "openai_chat":
            return [{"type": "function", "function": _described(each, "parameters")} for each in functions]
        case "openai_responses":
            # The types of the official client require "strict"; null means the provider's default.
            return [{"type": "function", **_described(each, "parameters"), "strict": None} for each in functions]
    declarations = [_described(function, "parametersJsonSchema") for function in functions]
    return [{"functionDeclarations": declarations}] if declarations else []


def _described(function: Function, key: str) -> dict[str, Any]:
    schema = function.schema if isinstance(function.schema, dict) else _OPEN_SCHEMA
    described = {"description": function.description} if function.description else {}
    return {"name": function.name, **described, key: dict(schema)}


def _functions(definition: Any) -> list[Function]:
    """The functions in a definition of any wire; none if it is another kind of tool."""
    match definition:
        case {"type": "function", "function": {"name": str(name)} as function}:
            return [Function(name, _text(function), function.get("parameters"))]
        case {"type": "function", "name": str(name)}:
            return [Function(name, _text(definition), definition.get("parameters"))]
        case {"name": str(name), "input_schema": schema} if definition.get("type") in (None, "custom"):
            return [Function(name, _text(definition), schema)]
        case {"functionDeclarations": list(declarations)} | {"function_declarations": list(declarations)}:
            return [_declared(each) for each in declarations if isinstance(each, dict) and "name" in each]
    return []


def _declared(declaration: dict[str, Any]) -> Function:
    schema = declaration.get("parametersJsonSchema") or declaration.get("parameters_json_schema")
    if schema is None:
        schema = _lower_types(declaration.get("parameters"))
    return Function(str(declaration["name"]), _text(declaration), schema)


def _lower_types(schema: Any) -> Any:
    """Gemini's own schemas write types in capitals (OpenAPI 3.0 subset); JSON Schema has them small."""
    if isinstance(schema, list):
        return [_lower_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower_types(value)
        for key, value in schema.items()
    }


def _text(definition: dict[str, Any]) -> str:
    description = definition.get("description")
    return description if isinstance(description, str) else ""


def _kind(definition: Any) -> str:
    if isinstance(definition, dict) and not isinstance(definition.get("type"), str):
        return ", ".join(map(str, definition)) or "{}"
    return common.kind_of(definition)
