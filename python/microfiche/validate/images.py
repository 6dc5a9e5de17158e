"""Rules about inline images that all wires share: encoding, kind, size, count and the bytes of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from microfiche.formats.encoded import standard64
from microfiche.formats.images import KINDS, is_torn, size
from microfiche.formats.images import media_type as shown_type
from microfiche.validate.draft import Draft, Object


@dataclass(slots=True)
class Picture:
    """An image of a request and the ways to change it in place.

    ``data`` is base64 text (bytes where the client takes them), ``None`` where the image is only
    named. ``replace`` puts a line of text in its stead.
    """

    node: Any
    data: str | bytes | None
    media_type: str | None
    replace: Callable[[str], None]
    recode: Callable[[str], None] | None = None
    retype: Callable[[str], None] | None = None
    width: int = 0
    height: int = 0

    @property
    def weight(self) -> int:
        return len(self.data) if self.data is not None else 0


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 text of a ``data:`` URL; ``None`` for any other URL."""
    if url[:5].lower() != "data:":
        return None
    head, comma, data = url.partition(",")
    if not comma:
        return head[5:].partition(";")[0].lower(), ""
    return head[5:].partition(";")[0].lower(), data


def from_url(node: Object, holder: Object, key: str, replace: Callable[[str], None]) -> Picture:
    """The image behind a URL that stands in ``holder[key]``; its bytes where that is a ``data:`` URL."""
    url: str = holder[key]
    parts = split_data_url(url)
    if parts is None:
        return Picture(node, None, None, replace)
    media_type, data = parts
    head = url[: len(url) - len(data)]
    return Picture(node, data, media_type, replace, recode=lambda text: holder.__setitem__(key, head + text))


def check(draft: Draft, pictures: Sequence[Picture], *, strict_type: bool, any_kind: bool = False) -> None:
    """Judge every image, then their number.

    ``strict_type``: the declared media type must be the one the bytes show. ``any_kind``: the
    provider reads kinds whose headers are not known here, so that unknown bytes declared as such are no fault.
    """
    kept = [picture for picture in pictures if _sound(draft, picture, strict_type, any_kind)]
    limits = draft.limits
    longest = limits.image_side
    for picture in kept:
        if longest is not None and max(picture.width, picture.height) > longest:
            what = f"{picture.width}×{picture.height} px, the limit is {longest} px a side"
            _drop(draft, "image-too-large", picture, what, "make it smaller")
    kept = [picture for picture in kept if longest is None or max(picture.width, picture.height) <= longest]
    if limits.images is not None and len(kept) > limits.images:
        what = f"{len(kept)} images, the limit is {limits.images}"
        spare = len(kept) - limits.images
        for picture in kept[:spare]:
            _drop(draft, "too-many-images", picture, what, "leave out the oldest images")
        kept = kept[spare:]
    if limits.many_images is None or limits.many_images_side is None:
        return
    left = len(kept)
    for picture in kept:
        if left <= limits.many_images:
            return
        if max(picture.width, picture.height) > limits.many_images_side:
            what = (
                f"{picture.width}×{picture.height} px among {left} images; "
                f"more than {limits.many_images} may have at most {limits.many_images_side} px a side"
            )
            _drop(draft, "many-images-too-large", picture, what, "make it smaller or send fewer images")
            left -= 1


def check_bytes(draft: Draft, pictures: Sequence[Picture]) -> None:
    """The bytes of the whole request; the oldest images go until it fits."""
    limit = draft.limits.request_bytes
    if limit is None:
        return
    size = draft.size(limit)
    for picture in pictures:
        if size <= limit:
            return
        if picture.weight:
            what = f"the request has {size:,} bytes, the limit is {limit:,}"
            _drop(draft, "request-too-large", picture, what, "leave out the oldest images")
            size = size - picture.weight if size - picture.weight > limit else draft.size(limit)
    if size > limit:
        draft.fault(
            "request-too-large",
            draft.key,
            f"the request has {size:,} bytes, the limit is {limit:,}",
            "shorten the conversation",
        )


def _sound(draft: Draft, picture: Picture, strict_type: bool, any_kind: bool) -> bool:
    """True if the image stays; measures it on the way."""
    limits = draft.limits
    data = picture.data
    if data is None:
        return True
    if isinstance(data, bytes):
        raw = data
    else:
        mended = _decode(data)
        if mended is None:
            return not _drop(draft, "image-data", picture, "the data is not base64", "encode the image again")
        raw, text = mended
        if text != data and picture.recode is not None:
            picture.recode(text)
            picture.data = text
            draft.fault(
                "image-data",
                picture.node,
                "the base64 lacks its padding or uses the URL alphabet",
                "encode the image again",
                "base64 written in its standard form",
            )
    seen = shown_type(raw) or None
    if not raw or (seen is None and (not any_kind or picture.media_type in KINDS)):
        return not _drop(draft, "image-data", picture, "the data is no image of a known kind", "encode the image again")
    if seen is not None and strict_type and seen != picture.media_type and picture.retype is not None:
        picture.retype(seen)
        draft.fault(
            "image-type",
            picture.node,
            f"declared as {picture.media_type}, but the bytes are {seen}",
            "declare what the bytes are",
            f"media type set to {seen}",
        )
        picture.media_type = seen
    if limits.image_types is not None and seen is not None and seen not in limits.image_types:
        return not _drop(draft, "image-type", picture, f"{seen} is not accepted", "convert the image")
    if limits.image_bytes is not None and picture.weight > limits.image_bytes:
        what = f"{picture.weight:,} characters of base64, the limit is {limits.image_bytes:,}"
        return not _drop(draft, "image-too-large", picture, what, "make it smaller")
    picture.width, picture.height = size(raw)
    if seen is not None and (not (picture.width and picture.height) or is_torn(raw)):
        return not _drop(draft, "image-data", picture, "the image is torn", "encode the image again")
    return True


def _drop(draft: Draft, rule: str, picture: Picture, what: str, cure: str) -> bool:
    picture.replace(f"[image left out: {what}]")
    picture.data = None
    draft.fault(rule, picture.node, what, cure, "image replaced by a line of text that names it")
    return True


def _decode(data: str) -> tuple[bytes, str] | None:
    """The bytes and the standard form of base64 text; white space is let through as it stands."""
    raw = standard64(data)
    if raw is not None:
        return raw, data
    text = "".join(data.split())
    standard = text.rstrip("=").translate({45: 43, 95: 47})
    standard += "=" * (-len(standard) % 4)
    raw = standard64(standard)
    if raw is None:
        return None
    # Line breaks inside base64 are not known to be refused: only its alphabet and padding are judged.
    return raw, data if standard == text else standard
