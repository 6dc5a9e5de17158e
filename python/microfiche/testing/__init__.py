"""A strict judge of requests to language models, for tests.

``Judge().check(provider, body)`` says in process whether a provider would accept a request;
``with Judge(window=200_000) as judge`` serves the same rules to the official clients at ``judge.url``. It follows the
providers' published rules and real error bodies, by code that shares nothing with the rest of the package.
"""

from .judge import PROVIDERS, Judge
from .replies import Refuse, Reply, Request
from .rules import Limits, Refused

__all__ = ["PROVIDERS", "Judge", "Limits", "Refuse", "Refused", "Reply", "Request"]
