"""The difference between two plans as data, so that what a pass records follows what it changed.

A difference is ``null`` (equal), ``{"to": value}``, ``{"more": [...]}`` for a list that grew at its end,
or, for an object, ``{"in": {key: difference}, "new": {key: value}, "gone": [key]}``.
"""

from __future__ import annotations

import json
from typing import Any

from microfiche.errors import BadInput

from .plan import Plan


def difference(old: Plan, new: Plan) -> Any:
    """What :func:`apply` needs to make ``new`` of ``old``."""
    return _difference(told(old), told(new))


def told(plan: Plan) -> Any:
    """A plan as the data that a difference is of."""
    return json.loads(plan.to_json())


def apply(old: Any, change: Any) -> Any:
    """The data that a difference makes of the data of a plan; :class:`BadInput` if it is none."""
    try:
        return _apply(old, change)
    except (KeyError, TypeError, AttributeError) as exc:
        raise BadInput(f"not a difference of plans ({exc})", "compaction", "verify the record") from None


def plan_of(data: Any) -> Plan:
    """The plan of such data; :class:`BadInput` says what is wrong with it."""
    return Plan.from_json(json.dumps(data))


def _difference(old: Any, new: Any) -> Any:
    if old == new:
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        change: dict[str, Any] = {}
        inside = {key: _difference(old[key], new[key]) for key in old.keys() & new.keys() if old[key] != new[key]}
        added = {key: new[key] for key in new.keys() - old.keys()}
        gone = sorted(old.keys() - new.keys())
        for name, part in (("in", inside), ("new", added), ("gone", gone)):
            if part:
                change[name] = dict(sorted(part.items())) if isinstance(part, dict) else part
        return change
    if isinstance(old, list) and isinstance(new, list) and old and new[: len(old)] == old:
        return {"more": new[len(old) :]}
    return {"to": new}


def _apply(old: Any, change: Any) -> Any:
    if change is None:
        return old
    if "to" in change:
        return change["to"]
    if "more" in change:
        return [*old, *change["more"]]
    data = {key: value for key, value in old.items() if key not in change.get("gone", ())}
    for key, inner in change.get("in", {}).items():
        data[key] = _apply(data[key], inner)
    return data | change.get("new", {})
