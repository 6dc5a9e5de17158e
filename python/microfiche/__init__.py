"""microfiche keeps an agent's conversation usable when it outgrows the model's context window.

The public names; see each for its contract. They load on first use, so that importing the package
costs an agent's start next to nothing; no third-party package is ever loaded by it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not on first use: the submodules of these names would take the functions' places. (`audit` and `tools` have none.)
from microfiche.refusal import Refusal, refusal
from microfiche.validate import Repair, Violation, repair, validate

if TYPE_CHECKING:
    from microfiche import clients
    from microfiche.agent_tools import tools
    from microfiche.auditing import Audit, audit
    from microfiche.batch.rows import rerender
    from microfiche.conversation import Conversation, Record
    from microfiche.errors import (
        BadInput,
        BadPage,
        Busy,
        CannotFit,
        Conflict,
        Damaged,
        Gone,
        Locked,
        MicroficheError,
        NameTaken,
        NewerFormat,
        NoSuchEntry,
        NotARecord,
        NothingLoaded,
        NothingToCompact,
        NothingToRetry,
        NoVision,
        OwnOutput,
        PageTooSmall,
        PinsTooLarge,
        PlanMismatch,
        ReadOnly,
        RecordError,
        Stale,
        StorageFailed,
        TurnOpen,
        UnknownFormat,
    )
    from microfiche.fit import Context, compact, count
    from microfiche.ladder.budget import Policy
    from microfiche.ladder.plan import Plan
    from microfiche.ladder.receipt import Receipt
    from microfiche.ladder.summarize import SummaryRequest
    from microfiche.pages.render import Bar, Page, read_back, render
    from microfiche.recovery import recover
    from microfiche.slash import Said, command

_HOMES = {
    "agent_tools": "tools",
    "auditing": "Audit audit",
    "batch.rows": "rerender",
    "conversation": "Conversation Record",
    "errors": "BadInput BadPage Busy CannotFit Conflict Damaged Gone Locked MicroficheError NameTaken NewerFormat"
    " NoSuchEntry NoVision NotARecord NothingLoaded NothingToCompact NothingToRetry OwnOutput PageTooSmall"
    " PinsTooLarge PlanMismatch ReadOnly RecordError Stale StorageFailed TurnOpen UnknownFormat",
    "fit": "Context compact count",
    "ladder.budget": "Policy",
    "ladder.plan": "Plan",
    "recovery": "recover",
    "slash": "Said command",
    "ladder.receipt": "Receipt",
    "ladder.summarize": "SummaryRequest",
    "pages.render": "Bar Page read_back render",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Audit",
    "BadInput",
    "BadPage",
    "Bar",
    "Busy",
    "CannotFit",
    "Conflict",
    "Context",
    "Conversation",
    "Damaged",
    "Gone",
    "Locked",
    "MicroficheError",
    "NameTaken",
    "NewerFormat",
    "NoSuchEntry",
    "NoVision",
    "NotARecord",
    "NothingLoaded",
    "NothingToCompact",
    "NothingToRetry",
    "OwnOutput",
    "Page",
    "PageTooSmall",
    "PinsTooLarge",
    "Plan",
    "PlanMismatch",
    "Policy",
    "ReadOnly",
    "Receipt",
    "Record",
    "RecordError",
    "Refusal",
    "Repair",
    "Said",
    "Stale",
    "StorageFailed",
    "SummaryRequest",
    "TurnOpen",
    "UnknownFormat",
    "Violation",
    "audit",
    "clients",
    "command",
    "compact",
    "count",
    "read_back",
    "recover",
    "refusal",
    "render",
    "repair",
    "rerender",
    "tools",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name == "clients":
        return import_module(f"{__name__}.clients")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
