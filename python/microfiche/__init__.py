"""microfiche keeps an agent's conversation usable when it outgrows the model's context window.

The public names; see each for its contract. Importing this loads the standard library only.
"""

from microfiche.errors import (
    BadInput,
    BadPage,
    CannotFit,
    MicroficheError,
    NoVision,
    OwnOutput,
    PageTooSmall,
    PlanMismatch,
    UnknownFormat,
)
from microfiche.fit import Context, compact, count
from microfiche.ladder.budget import Policy
from microfiche.ladder.plan import Plan
from microfiche.ladder.receipt import Receipt
from microfiche.pages.render import Bar, Page, read_back
from microfiche.validate import Repair, Violation, repair, validate

__all__ = [
    "BadInput",
    "BadPage",
    "Bar",
    "CannotFit",
    "Context",
    "MicroficheError",
    "NoVision",
    "OwnOutput",
    "Page",
    "PageTooSmall",
    "Plan",
    "PlanMismatch",
    "Policy",
    "Receipt",
    "Repair",
    "UnknownFormat",
    "Violation",
    "compact",
    "count",
    "read_back",
    "repair",
    "validate",
]
