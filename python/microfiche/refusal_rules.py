"""What an error of a provider says, by rules.

The status decides what may be meant at all, then the structured fields, then classes of wording in the
error's own message. The conversation is never looked at: of a body only the fields that hold an error's
message are read, and of those a bounded stretch. Everything takes linear time.

The rules follow error bodies seen in the wild at some thirty providers, gateways and local servers; the table
in ``tests/data/refusals.jsonl`` holds them with their sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from microfiche.refusal import Refusal


def judge(error: Any, body: Any, window: int | None, expected: int | None) -> Refusal | None:
    """The refusal that an error or an answer means, if any: see :func:`microfiche.refusal.refusal`."""
    if isinstance(error, BaseException):
        return _of_exception(error)
    if isinstance(error, tuple) and len(error) == 2:
        error, body = error
    if isinstance(error, int) and not isinstance(error, bool):
        return _of_reply(error, body, window, expected)
    if isinstance(error, (str, bytes)) or error is None:
        return None
    status = _get(error, "status_code")
    if isinstance(status, int) and not isinstance(error, Mapping):
        return _of_reply(status, _content(error), window, expected)
    return _of_reply(None, error, window, expected)


# ---------------------------------------------------------------- where the error's own words are

_LONGEST_BODY = 4 << 20
_LONGEST_MESSAGE = 4_000
_CAUSES = 20

_TEXTS = ("message", "msg", "error", "detail", "status_msg", "error_message", "errormessage", "raw")
_CODES = ("code", "type", "status", "error_code", "error_type", "reason", "__type", "status_code")
_INNER = ("error", "errors", "detail", "details", "metadata", "raw", "base_resp", "response", "message")
_NUMBERS = ("n_prompt_tokens", "n_ctx", "max_side_length_pixels")


@dataclass(slots=True)
class _Words:
    """What an error says: its messages, codes, the parameter it names, numbers that have a field of their own."""

    texts: list[str] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    param: str = ""
    blank: bool = False

    def read(self, value: Any, depth: int = 0) -> None:
        """Collect from an error object; fields that may quote the conversation are not among those read."""
        if depth > 6:
            return
        if isinstance(value, (list, tuple)):
            for each in value[:20]:
                self.read(each, depth + 1)
        if not isinstance(value, Mapping):
            return
        fields = {key.lower(): each for key, each in value.items() if isinstance(key, str)}
        for key in _TEXTS:
            if isinstance(text := fields.get(key), str):
                self.hear(text, depth)
        for key in _CODES:
            if isinstance(code := fields.get(key), (str, int)) and not isinstance(code, bool):
                self.codes.add(str(code).lower()[:200])
        for key in _NUMBERS:
            if isinstance(number := fields.get(key), int):
                self.numbers[key] = number
        if isinstance(param := fields.get("param"), str):
            self.param = param[:200]
        for key in _INNER:
            self.read(fields.get(key), depth + 1)

    def hear(self, text: str, depth: int = 0, quotes: bool = False) -> None:
        """Take a message; the error object that a wrapper wrote into its text counts as such."""
        self.blank = self.blank or _is_empty(text)
        at = text.find("{", 0, _LONGEST_MESSAGE)
        if at >= 0 and depth < 6 and len(text) <= _LONGEST_BODY:
            inner = _json(text[at:], whole=False)
            if isinstance(inner, Mapping):
                self.read(inner, depth + 1)
                text = text[:at]
        text = text[:_LONGEST_MESSAGE]
        if not self.param and (named := _NAMED.search(text)):
            self.param = named[1]
            self.codes.add("string_above_max_length")
        # A validation error may quote what it was given.
        text = text if quotes else _QUOTED.sub(" ", text)
        if _SCHEMA.search(text):
            text = _GIVEN.sub(" ", text)
        if not _is_empty(text) and text not in self.texts:
            self.texts.append(text)

    @property
    def empty(self) -> bool:
        """The server closed without a word; a client may have put the status in its place."""
        return self.blank and not self.texts and not any(code not in _REASONS for code in self.codes)

    @property
    def status(self) -> int | None:
        """An HTTP status among the codes, where an error object brings its own."""
        found = [int(code) for code in self.codes if code.isascii() and code.isdecimal() and len(code) == 3]
        return next((code for code in sorted(found) if 400 <= code < 600), None)


_REASONS = frozenset(
    {"400", "413", "bad request", "payload too large", "content too large", "request entity too large"}
)
_QUOTED = re.compile(r'"[^"]{40,}"|input_value=.*', re.DOTALL)
# An error of schema names what it was given, however short.
_SCHEMA = re.compile(
    r"unknown (?:name|field|param|arg)|unrecogni[sz]ed|invalid value|supported values|unexpected (?:key|field|value)|"
    r"not permitted|not a valid|should be a valid",
    re.IGNORECASE,
)
# A field named by the message itself, not by a text that it quotes.
_NAMED = re.compile(
    r"""^[^'"]{0,200}?(?:['"]error['"]: ?\{['"]message['"]: ?['"])?"""
    r"""\bInvalid ['"]([\w.\[\]]{1,200})['"]: (?:string|array) too long\b"""
)
_GIVEN = re.compile(r"\"[^\"]{0,4000}\"|'[^']{0,4000}'")
_TORN = re.compile(r'"(?:message|msg|detail|error)"\s*:\s*"((?:[^"\\]|\\.)*)')


def _of_exception(error: BaseException) -> Refusal | None:
    """Judge an exception, then its causes and those of a group: frameworks wrap what a client raised."""
    waiting, seen = [error], 0
    while waiting and seen < _CAUSES:
        each = waiting.pop(0)
        seen += 1
        if found := _of_one(each):
            return found
        waiting += each.exceptions[:_CAUSES] if isinstance(each, BaseExceptionGroup) else ()
        waiting += [each.__cause__] if each.__cause__ is not None else []
    return None


def _of_one(error: BaseException) -> Refusal | None:
    response = _get(error, "response")
    metadata = _get(response, "ResponseMetadata") if isinstance(response, Mapping) else None
    numbers = [_get(error, "status_code", "code", "status", "http_status"), _get(response, "status_code", "status")]
    numbers.append(_get(metadata, "HTTPStatusCode"))
    status = next((n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and n >= 100), None)
    body = _get(error, "body", "details")
    if (body is None or callable(body)) and response is not None:
        body = response if isinstance(response, Mapping) else _content(response)
    words = _words(body)
    for name in ("code", "type"):
        if isinstance(code := _get(error, name), str):
            words.codes.add(code.lower()[:200])
    if not words.texts and not words.blank:
        message = _get(error, "message")
        text = message if isinstance(message, str) and message else _text_of(error)
        words.hear(text, quotes=True)
        if status is None and (said := _SAID_STATUS.search(text[:_LONGEST_MESSAGE])):
            status = int(said[1] or said[2])
    return _judge(status, words)


# Of a client's error only its text may be left, which begins with the status.
_SAID_STATUS = re.compile(
    r"""\A[^\n"'{]{0,60}?(?:\b(?:error code|status(?: ?code)?|http(?:/\d(?:\.\d)?)?(?: error)?)\W{1,3}([45]\d\d)\b"""
    r"""|['"]?\b([45]\d\d) (?:client error|bad request|payload|content too|request entity))""",
    re.IGNORECASE,
)


def _of_reply(status: int | None, body: Any, window: int | None, expected: int | None) -> Refusal | None:
    """Judge a status and a body, of an error or of an answer."""
    if isinstance(body, (str, bytes, bytearray)) and len(body) > _LONGEST_BODY:
        body = None
    body = _decoded(body)
    if status is not None and not 200 <= status < 300:
        return _judge(status, _words(body))
    events = _events(body) if isinstance(body, str) else (body,)
    for event in events:
        if (fault := _fault(event)) is not None and (found := _judge(None, _words(fault))):
            return found
    return None if isinstance(body, str) or body is None else _silent(body, window, expected)


def _fault(answer: Any) -> Any:
    """The error that came with a successful status, if one did."""
    if (error := _get(answer, "error")) and not callable(error):
        return {"error": _plain(error), "type": _get(answer, "type")}
    response = _get(answer, "response")
    if error := _get(response, "error"):
        return {"error": _plain(error)}
    if error := _get(_first(_get(answer, "choices")), "error"):
        return {"error": _plain(error)}
    if _get(answer, "type") == "error" or _get(answer, "object") == "error":
        return _plain(answer)
    base = _get(answer, "base_resp")
    return {"base_resp": _plain(base)} if _get(base, "status_code") else None


def _words(body: Any) -> _Words:
    words = _Words()
    body = _decoded(body)
    if isinstance(body, str):
        if body.lstrip()[:1] in ("{", "["):  # JSON that is torn or too deep: only what stands in a message field
            if torn := _TORN.search(body[: _LONGEST_MESSAGE * 4]):
                words.hear(torn[1], quotes=True)
        elif events := [fault for event in _events(body) if (fault := _fault(event)) is not None]:
            words.read(events)
        else:
            words.hear(body, quotes=True)
    elif body is not None:
        words.read(_plain(body))
    return words


def _events(text: str) -> Iterable[Any]:
    """The objects in a stream of server-sent events that may tell of an error."""
    for line in text.splitlines():
        if line.startswith("data:") and '"error"' in line:
            yield _json(line[5:])


def _decoded(body: Any) -> Any:
    """A text as the JSON it holds, else as text."""
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body[:_LONGEST_BODY]).decode("utf-8", "replace")
    if not isinstance(body, str) or len(body) > _LONGEST_BODY:
        return body[:_LONGEST_MESSAGE] if isinstance(body, str) else body
    value = _json(body)
    return value if isinstance(value, (dict, list)) else body


def _json(text: str, whole: bool = True) -> Any:
    try:
        return json.loads(text) if whole else json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _content(response: Any) -> Any:
    """The text of an HTTP response; ``None`` if it was not read and cannot be."""
    text = _get(response, "text", "content")
    return text if isinstance(text, (str, bytes)) else None


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a broken __str__ of another package must not hide its error
        return ""


def _is_empty(text: str) -> bool:
    """Servers that close without a word; some clients say so in words of their own."""
    return len(text) < 60 and (not text.strip() or "(no body)" in text)


def _plain(value: Any) -> Any:
    """An object of a client as the fields it holds."""
    if isinstance(value, (Mapping, list, tuple, str)):
        return value
    dump = _get(value, "model_dump")
    try:
        return dump() if callable(dump) else _get(value, "__dict__")
    except Exception:  # of an object that is not whole
        return None


def _get(value: Any, *names: str) -> Any:
    """The first of these fields or attributes that is there and can be had."""
    for name in names:
        try:
            found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        except Exception:  # a property raises what it likes: a body that was streamed past, a call without an answer
            continue
        if found is not None:
            return found
    return None


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and value else None


# ---------------------------------------------------------------- what the words mean


def _rule(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


# Texts are judged in lower case, without quotation marks and thousands separators, one space for any blanks.

_EXCEEDS = (
    r"(?:exceed\w*|surpass\w*|too (?:long|large|many|big)|overflow\w*|(?:over|above|beyond) (?:the|its|this)|"
    r"not enough|(?:longer|larger|greater|more|bigger|higher) than (?!or equal)|"
    r"(?:does not|doesnt|do not|dont|cannot|no longer) fits?)"
)
_CONTEXT = (
    r"(?:context (?:window|length|size|limit)|sequence length|\bn_ctx\b|"
    r"max_(?:model_len|seq_len\w*|position_embeddings))"
)
_TOKENS = _rule(
    # a thing that is measured in tokens, and that it is too much
    rf"(?:{_CONTEXT}|\btoken (?:limit|count)|\btokens\b|\bprompt\b|\binput\b).{{0,60}}?{_EXCEEDS}",
    rf"\b(?:messages|conversation|history|request)\b (?:is |are |has |have )?{_EXCEEDS}.{{0,40}}?(?:token|context)",
    r"\b(?:messages?|conversation|history)\b.{0,25}?\btoo (?:long|large)",
    rf"{_CONTEXT} (?:was |is |has been )?(?:reached|hit)\b",
    r"(?<!max_)(?<!output_)(?<!completion_)tokens:? \d+ ?> ?(?:[a-z_]{1,20} ){0,3}\d+",
    r"\d tokens\b.{0,40}?\bbut\b.{0,40}?\d tokens\b",
    rf"{_EXCEEDS}.{{0,60}}?(?:{_CONTEXT}|\btokens?\b|\bprompt\b|\bmodels? (?:maximum|limit))",
    # the limit told, and what was sent
    r"max\w* context (?:length|window|size).{0,20}\b(?:is|of) \d",
    r"max\w* (?:prompt|input|sequence) length.{0,20}\b(?:is|of) \d+.{0,60}?(?:request|result|contain|got|given|but)",
    rf"\b(?:prompt|input)\b.{{0,20}}\b\d+.{{0,60}}?{_CONTEXT}",
    r"\brange of (?:input|prompt) length should be",
    rf"\breach\w* (?:the |its )?(?:max\w* )?{_CONTEXT}",
    r"\b\d+ (?:prompt|input) tokens\b.{0,60}?\bcontext\b",
    r"\binputs? (?:tokens.{0,30}?must be <|must (?:have|be) (?:less|fewer|shorter|at most)\b.{0,20}tokens)",
    r"\b(?:prompt|input)[ _](?:tokens|length)\b.{0,60}?\bmust be (?:<|less|fewer|shorter|smaller|at most|no more)",
    r"(?:输入|上下文|提示词).{0,12}?(?:超过|超出|过长|超长|超限)",
    # the cure told
    r"reduce (?:the |your )?(?:length|size) of (?:the |your |either )?(?:messages|prompt|input|conversation)",
    r"reduce (?:your |the )(?:message size|prompt|input|context)\b",
)
_TOKEN_CODES = _rule(
    r"context_?(?:length|window|size|limit)_?exceeded",
    r"exceed\w*_context",
    r"(?:prompt|input|messages?)_?(?:tokens_?|length_?|size_?)?(?:too_?(?:large|long)|exceed|limit_?exceeded)",
    r"max\w*_(?:prompt|input|context)_\w*exceeded",
    # Mistral, z.ai
    r"^(?:3051|1261)$",
)
# Limits of other things, of which such words are said too; not what is meant where the input is named.
_OTHER_LIMITS = _rule(
    r"max_\w*tokens:? (?:\d+ (?:>|exceed)|is too|must|exceeds?\b|cannot|should|has to|needs)",
    r"\b(?:completion|output|generated|reasoning|thinking) tokens",
    r"\b(?:temperature|top_[pk]|penalty|logprobs|logit_bias|stop sequences?|tools?|functions?|schemas?|metadata)\b",
    r"\b(?:names?|budget|descriptions?|audio|video|seconds?|duration|files?|pdfs?)\b",
)
_INPUT = _rule(r"\binputs? (?:tokens|length|text)", r"\bprompt\b", r"\bmessages\b", _CONTEXT, r"\binput (?:is )?too")
_OUTPUT_TOO = _rule(r"(?:length|input|prompt|tokens) (?:\+|and|plus) max_\w*tokens", r"max_\w*tokens (?:\+|and|plus) ")
# What a filter objects to, a recording, or a name in the request: never the conversation's length.
_NOT_OURS = _rule(
    r"safety|moderat|content (?:filter|polic|management)|content_(?:filter|policy)",
    r"\b(?:audio|video|pdf|recording)s?\b(?!.*\btokens\b)",
    rf"\bnames? (?:is |are )?{_EXCEEDS}",
)
# A server that fails says many things; these mean one.
_WINDOW_EXCEEDED = _rule(
    rf"{_CONTEXT}.{{0,30}}?{_EXCEEDS}",
    rf"{_EXCEEDS}.{{0,30}}?{_CONTEXT}",
    r"\b(?:input|prompt) is too large to process",
)
_BELOW_ZERO = re.compile(r"max_\w*tokens (?:must be at least 1, got |\()-(\d+)")

_BYTE_CODES = _rule(r"^(?:request|payload|content|body|request_?entity|request_body)_?too_?large(?:$|_?error|_after_)")
_BYTES = _rule(
    rf"\b(?:request|payload|body|entity|upload)\b(?: size| entity| body| payload| length)? (?:is |was )?{_EXCEEDS}",
    rf"\b(?:total|message|request|payload|body) size\b.{{0,20}}?{_EXCEEDS}",
    r"\b(?:request|payload|body)\b.{0,20}?\d ?[kmg]i?b\b.{0,20}?\b(?:max|limit)",
    r"\b(?:request|payload) body\b.{0,20}?\b(?:length|size) limit (?:was |is )?exceed",
    rf"\b(?:bytes|[kmg]i?b)\b.{{0,40}}?{_EXCEEDS}",
    rf"{_EXCEEDS}.{{0,60}}?\b(?:bytes|[kmg]i?b)\b",
)
_SIZE_UNIT = re.compile(r"(?:\b|\d)(?:bytes?|[kmg]i?b)\b|\b(?:message|request|payload|body) size\b")
# Amazon's validation of the whole body: figures of at least six digits, for shorter fields are told in the same way.
_MAX_LENGTH = re.compile(
    r"expected maxlength: (\d{6,15}), actual: (\d{6,15})|must have length less than or equal to (\d{6,15})"
)
_GRPC = re.compile(r"received message larger than max \((\d{1,15}) vs\.? (\d{1,15})\)")

_IMAGE = re.compile(r"\b(?:image|picture|photo)s?\b")
_IMAGE_COUNT = _rule(
    r"too many images?\b",
    r"\bimages? count",
    r"\b(?:number|amount|count) of images",
    r"(?:at most|up to|no more than|maximum(?: of)?|max|limit of|limit is|only) \d+ (?:image|picture|photo)s?\b",
    r"\d+ images? (?:\w+ ){0,3}exceed",
    r"images per (?:request|prompt)",
)
_IMAGE_COUNT_CODES = _rule(r"too_?many_?images|image_?count|max_?images")
_IMAGE_SIDES = _rule(r"dimension", r"pixel", r"\d ?px\b", r"\bsides?\b", r"resolution", r"\bwidth\b", r"\bheight\b")
_BOX = re.compile(r"(?<!\d)(\d{1,6}) ?[x×] ?\d{1,6}(?!\d)")
_IMAGE_LARGE = re.compile(r"\bimages? (?:size |file |data )?(?:is |are )?(?:too (?:large|big)|exceeds)")
_BOUNDED = _rule(_EXCEEDS, r"\bmax(?:imum)?\b", r"at most", r"up to", r"\blimit", r"\d ?> ?\d", r"\bonly\b", r"within")
_NOT_TOO_LARGE = _rule(r"at least \d", r"too small", r"not support", r"minimum")

_RATE = _rule(
    r"rate.?limit",
    r"\bquota",
    r"throttl",
    r"(?:per|/) ?(?:min|minute|hour|day|second)\b",
    r"\btp[md]\b",
    r"too many requests",
    r"resource.?exhausted",
    r"please wait",
    r"\bcredits?\b",
    r"billing",
    r"tier capacity",
)
_RATE_CODES = _rule("rate_?limit", "quota", "throttl", "resource_?exhausted")
_RATE_LIMIT = re.compile(r"\blimit\W{1,3}(\d{1,15})")
_RATE_REQUESTED = re.compile(r"\brequested\W{1,3}(\d{1,15})")
_TOO_LARGE_BY_ITSELF = _rule(r"request (?:is )?too large", r"tokens must be reduced", r"reduce your message size")
_ACCESS = _rule(
    r"\bjwt\b",
    r"\bapi.?key\b",
    r"\bauth(?:entication|ori[sz]\w*)?\b",
    r"credential",
    r"permission",
    r"forbidden",
    r"\bbearer\b",
    r"(?:access|session|refresh|csrf|security|id) token\b",
    r"deadline exceeded",
    r"timed? ?out",
)

_ABOVE_MAX = frozenset({"string_above_max_length", "array_above_max_length"})
# Where no field is named: only texts of the conversation may be so long.
_MILLIONS = re.compile(r"\bmaximum length \d{7,15}\b")
# Fields of the request that hold the conversation: what is too long there is cured by sending less.
_CONTENT_PARAM = re.compile(
    r"(?:messages|input|contents|prompt|instructions|system)$"
    r"|(?:messages|input|contents|system)\b.*\b(?:content|text|output|arguments|parts)\b(?:\[\d+\]|\.\d+|\.text)*$"
)


def _judge(status: int | None, words: _Words) -> Refusal | None:
    """The status says what may be meant, the fields what is, the wording where no field does."""
    if status is None or 200 <= status < 300:
        status = words.status
    text = _normal(" ; ".join(words.texts))
    for code in words.codes:
        if code.isdecimal():
            text = text.replace(f"({code})", " ")
    if message := _GRPC.search(text):
        return Refusal("bytes", int(message[1]), int(message[2]))
    if status == 429 or _RATE.search(text) or any(_RATE_CODES.search(code) for code in words.codes):
        return _rate(text)
    failing = status is not None and 500 <= status < 600
    if not (status in (None, 400, 413, 422, 424) or failing) or _ACCESS.search(text):
        return None
    if not any(_TOKEN_CODES.search(code) for code in words.codes) and any(
        _NOT_OURS.search(each) for each in (*words.codes, text)
    ):
        return None
    if words.codes & _ABOVE_MAX or any(code in text for code in _ABOVE_MAX):
        # Characters or items: no number to learn a window from. In any other field it is an error of schema.
        large = not words.param and _MILLIONS.search(text)
        return Refusal("tokens") if large or _CONTENT_PARAM.match(words.param) else None
    if any(_TOKEN_CODES.search(code) for code in (*words.codes, text)) or "n_ctx" in words.numbers:
        return _of_tokens(text, words.numbers)
    if failing:
        # A server that fails says many things; a window told in numbers is meant.
        found = _of_tokens(text, {}) if _means_tokens(text) or _WINDOW_EXCEEDED.search(text) else None
        return found if found and (found.limit or _WINDOW_EXCEEDED.search(text)) else None
    if words.empty and status in (400, 413):
        return Refusal("tokens")
    if any(_IMAGE_COUNT_CODES.search(code) for code in words.codes):
        return _of_images(f"too many images ; {text}")
    if "image_dimensions_too_large" in words.codes:
        return Refusal("image_dimensions", limit=words.numbers.get("max_side_length_pixels"))
    if _IMAGE.search(text) and (found := _of_images(text)):
        return found
    if below := _BELOW_ZERO.search(text):
        # The window less the prompt; -1 is somebody's word for "no limit".
        return Refusal("tokens") if int(below[1]) > 1 else None
    if _means_tokens(text):
        return _of_tokens(text, {})
    if long := _MAX_LENGTH.search(text):
        return Refusal("bytes", int(long[2]) if long[2] else None, int(long[1] or long[3]))
    if status == 413 or any(_BYTE_CODES.search(code) for code in words.codes) or _means_bytes(text):
        used, limit, _ = _numbers(text) if _SIZE_UNIT.search(text) else (None, None, None)
        return Refusal("bytes", used, limit)
    return None


def _rate(text: str) -> Refusal | None:
    """A limit per minute is none of ours, unless the request exceeds it by itself."""
    if not re.search(r"tokens?\b|\btp[md]\b", text):
        return None
    limit, requested = _RATE_LIMIT.search(text), _RATE_REQUESTED.search(text)
    if limit and requested:
        used, most = int(requested[1]), int(limit[1])
        return Refusal("rate_tokens", used, most) if used > most else None
    return Refusal("rate_tokens") if _TOO_LARGE_BY_ITSELF.search(text) else None


def _means_tokens(text: str) -> bool:
    if not _TOKENS.search(text) or (_OTHER_LIMITS.search(text) and not _INPUT.search(text)):
        return False
    return not _SIZE_UNIT.search(text) or re.search(r"\btokens?\b|context|\bprompt\b", text) is not None


def _means_bytes(text: str) -> bool:
    return _BYTES.search(text) is not None and (not _OTHER_LIMITS.search(text) or "request" in text)


def _of_tokens(text: str, told: Mapping[str, int]) -> Refusal:
    used, limit, output = _numbers(text)
    limit = limit or None  # there is no window of no tokens
    used, limit = told.get("n_prompt_tokens", used), told.get("n_ctx", limit)
    if used is not None and limit is not None and output is not None:
        # The input alone may fit, or the output be so large a part of the window that both must give.
        both = used <= limit or output * 2 >= limit
    else:
        both = _OUTPUT_TOO.search(text) is not None
        if not both and used is not None and limit is not None and used <= limit:
            # Two numbers that say no refusal were not understood; a wrong window must not be learnt.
            used = limit = None
    if limit is None and f"{used} token" not in text and not told:
        used = None
    return Refusal("tokens_plus_max_tokens" if both else "tokens", used, limit, output)


def _of_images(text: str) -> Refusal | None:
    if _NOT_TOO_LARGE.search(text) and not re.search(_EXCEEDS, text):
        return None
    used, limit, _ = _numbers(_BOX.sub(r"\1", text))
    if used is not None and limit is not None and used <= limit:
        used = None  # which of the images it is
    if _IMAGE_COUNT.search(text):
        return Refusal("image_count", used, limit)
    if "token" in text or not _BOUNDED.search(text):
        return None
    if _IMAGE_SIDES.search(text):
        return Refusal("image_dimensions", used, limit)
    if _SIZE_UNIT.search(text) or _IMAGE_LARGE.search(text):
        return Refusal("image_bytes", used, limit)
    return None


# ---------------------------------------------------------------- numbers

_SEPARATOR = re.compile(r"(?<=\d)(?<!\d{4})[,_'’\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_PATH = re.compile(r"\b(?:messages|tools|contents|input|system|content)(?:\[\d{1,6}\]|\.\w{1,40}){1,12}:?")
_STATUS = re.compile(r"(?:^\W{0,3}|(?:code|status|error|http)\W{0,3}|<)[45]\d\d\b(?! tokens?\b)")
_VALIDATION = re.compile(r"\binput should (?:be|have) .{0,60}|\(parameter=.{0,80}|\brequest.?id\W{1,3}\S{1,80}")
_BLANKS = re.compile(r"\s+")


def _normal(text: str) -> str:
    text = _BLANKS.sub(" ", _SEPARATOR.sub("", text.lower()))
    for noise in (_PATH, _VALIDATION):
        text = noise.sub(" ", text)
    text = _BLANKS.sub(" ", text.translate(_QUOTES))
    return _STATUS.sub(" ", text)[:_LONGEST_MESSAGE].strip()


_QUOTES = {ord(mark): None for mark in "`'\"‘’“”"}

_NUMBER = re.compile(r"(?<![\w.\[/-])(\d{1,15}(?:\.\d{1,3}(?=[ kmg]))?)(?: ?(k|m|[kmg]i?b)\b)?(?![\w/]|\.\d|-\d)")
_SCALE = {"k": 10**3, "m": 10**6, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_KEEP = re.compile(r"\bn_keep\W{1,3}(\d{1,15})\W{1,4}=? ?n_ctx\W{1,3}(\d{1,15})")
_SUM = re.compile(r"(?<!\d)(\d{1,15}) ?\+ ?(\d{1,15}) ?> ?(\d{1,15})")
_MORE = re.compile(r"(?<![\w.])(\d{1,15})(?: ?[a-z]{1,10})? ?> ?(?:[a-z_]{1,20} ){0,3}(\d{1,15})\b(?! ?[-+] ?\d)")
_LIMIT_BEFORE = re.compile(
    r"\b(?:max(?:imum|length|_\w+)?|limit\w*|exceed\w*|surpass\w*|windows?|"
    r"length of(?! (?:the |your )?(?:prompt|input))|"
    r"size is|context (?:length|size)|"
    r"context of|allowed|at most|up to|only|below|under|holds|cannot be|<=?|"
    r"(?:larger|longer|greater|more|less|fewer|smaller) than|supports?)(?!\w)"
    r"|<=? ?$|最大|限制|上限"
)
_USED_BEFORE = re.compile(
    r"\b(?:request(?:ed)?(?! (?:body|payload|size))|"
    r"contain\w*|receiv\w*|result\w*|current|got|given|actual\w*|has|have|had|provided|sent|found|your|"
    r"you|with|used|input is|prompt is)(?!\w)"
)
_LIMIT_AFTER = re.compile(r"[- ]?(?:tokens? |bytes? |images? )?(?:max\w*\b|limit\b|allowed\b|(?:token )?context\b)")
_USED_AFTER = re.compile(r"\W{0,2}(?:tokens? )?(?:exceeds? |exceeded (?:the|this|its|model|max))")
_OUTPUT_AFTER = re.compile(
    r" ?(?:tokens? )?(?:(?:in|of|for|as) )?(?:the |your )?(?:max_\w*tokens|completion|output|generat\w+)\b"
)
_OUTPUT_BEFORE = re.compile(
    r"max_(?!prefill|input|prompt|total|context|num|seq)\w*tokens(?: is too large|=|:| of| is| \()?[ :=(]*$"
)
_PART_AFTER = re.compile(r" ?(?:tokens? )?(?:in|of|from) (?:the |your )?\w+|^ ?inputs? tokens")


def _numbers(text: str) -> tuple[int | None, int | None, int | None]:
    """Input, limit and output as told in the words around each number."""
    if total := _SUM.search(text):
        return int(total[1]), int(total[3]), int(total[2])
    if more := _KEEP.search(text) or _MORE.search(text):
        return int(more[1]), int(more[2]), None
    used: list[int] = []
    parts: list[int] = []
    limits: list[int] = []
    outputs: list[int] = []
    found = list(_NUMBER.finditer(text))[:40]
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    for at, match in enumerate(found):
        before, after = text[max(ends[at], match.start() - 90) : match.start()], text[match.end() : starts[at + 1]][:60]
        value = round(float(match[1]) * _SCALE.get(match[2] or "", 1))
        limit_word, used_word = _last(_LIMIT_BEFORE, before), _last(_USED_BEFORE, before)
        if before.endswith("by "):
            continue  # how much too much
        if _OUTPUT_AFTER.match(after) or _OUTPUT_BEFORE.search(before):
            outputs.append(value)
        elif _USED_AFTER.match(after):
            used.append(value)
        elif limit_word > used_word or (_LIMIT_AFTER.match(after) and (used_word < 0 or not limits)):
            limits.append(value)
        else:
            (parts if _PART_AFTER.match(after) else used).append(value)
    if "should be [" in text and found:
        limits, used = [int(found[-1][1])], []
    output = outputs[0] if outputs else None
    if parts and (outputs or not used):
        return sum(parts), _one(limits), output
    return _one(used), _one(limits), output


def _last(rule: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in rule.finditer(text)), default=-1)


def _one(values: list[int]) -> int | None:
    return values[0] if values else None


# ---------------------------------------------------------------- an answer that is none

_WINDOW_STOP = re.compile(r"context_?(?:window|length)|^model_length$")
_USED = ("input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count", "prompt_eval_count")
_OUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "candidates_token_count", "eval_count")
_PLAIN_STOPS = frozenset({"stop", "length", "end_turn", "max_tokens", "max_output_tokens", "completed", "incomplete"})


def _silent(answer: Any, window: int | None, expected: int | None) -> Refusal | None:
    """An answer whose stop reason or usage tells that the request did not fit."""
    choice = _first(_get(answer, "choices")) or _first(_get(answer, "candidates"))
    details = _get(answer, "incomplete_details")
    reasons = (_get(choice, "finish_reason", "finishReason"), _get(answer, "stop_reason", "done_reason"))
    stop = next((r for r in (*reasons, _get(details, "reason"), _get(answer, "status")) if r is not None), "")
    stop = str(_get(stop, "value") or stop).lower()
    usage = _get(answer, "usage", "usage_metadata", "usageMetadata") or answer
    used, out = _count(usage, *_USED), _count(usage, *_OUT)
    if used is not None:
        used += sum(_count(usage, f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
    if _WINDOW_STOP.search(stop):
        return Refusal("silent", used, used + out if used and out is not None else None)
    if used is None:
        return None
    if window is not None and used > window:
        return Refusal("silent", used, window)
    if expected is not None and 0 < used < expected / 2:
        return Refusal("silent", expected, used)
    if out == 0 and stop in _PLAIN_STOPS and _holds_nothing(answer, choice):
        return Refusal("silent", used, window if window is not None and used >= window else None)
    return None


def _count(usage: Any, *names: str) -> int | None:
    found = _get(usage, *names)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _holds_nothing(answer: Any, choice: Any) -> bool:
    message = _get(choice, "message", "delta", "content") or _get(answer, "message")
    holders = (choice, message, answer)
    if any(_get(holder, *names) for holder in holders for names in (("tool_calls",), ("refusal",), ("parts",))):
        return False
    contents = (_get(message, "content"), _get(choice, "text"), _get(answer, "content"), _get(answer, "output"))
    return not any(_says(content) for content in contents)


def _says(content: Any) -> bool:
    if isinstance(content, (list, tuple)):
        return any(_get(block, "type") != "text" or bool(_get(block, "text")) for block in content)
    return bool(content)
