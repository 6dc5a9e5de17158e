"""A signed head: a note of the C2SP checkpoint form that an Ed25519 key stands behind.

The form is that of https://c2sp.org/tlog-checkpoint (origin, size, base64 of the root), signed as in
https://c2sp.org/signed-note (an em dash, the key's name, base64 of key hash and signature). Needs
the extra ``signed``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any

from microfiche.errors import BadInput, MicroficheError

from .record import Head

_NOTE = re.compile(r"([^\n]+)\n(0|[1-9]\d{0,17})\n([A-Za-z0-9+/]{43}=)\n\n((?:— [^\n]+\n)+)")


def sign(head: Head | tuple[int, str], seed: bytes, name: str) -> str:
    """The note for a head. ``seed`` is the 32 bytes of an Ed25519 private key, ``name`` the key's (and the origin)."""
    _check_name(name)
    private = _keys().Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes_raw()
    body = f"{name}\n{head[0]}\n{base64.b64encode(bytes.fromhex(head[1])).decode()}\n"
    signature = base64.b64encode(_key_hash(name, public) + private.sign(body.encode())).decode()
    return f"{body}\n— {name} {signature}\n"


def check(note: str, public: bytes, name: str) -> Head:
    """The head that a note vouches for; :class:`BadInput` if this key (32 bytes) of this name did not sign it."""
    match = _NOTE.fullmatch(note)
    if match is None or match[1] != name:
        raise BadInput(f"no checkpoint of {name!r}", "signed head", "pass the note as it was written")
    body = note[: match.end(3) + 1]
    for line in match[4].splitlines():
        _, signer, text = [*line.split(" ", 2), ""][:3]
        try:
            raw = base64.b64decode(text, validate=True)
        except binascii.Error:
            continue
        if signer == name and raw[:4] == _key_hash(name, public) and _signed(public, raw[4:], body):
            return Head(int(match[2]), base64.b64decode(match[3]).hex())
    raise BadInput(f"no valid signature of {name!r}", "signed head", "check the key and the note")


def _signed(public: bytes, signature: bytes, body: str) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        _keys().Ed25519PublicKey.from_public_bytes(public).verify(signature, body.encode())
    except InvalidSignature:
        return False
    return True


def _key_hash(name: str, public: bytes) -> bytes:
    # Signature type 0x01 is Ed25519 (signed-note, "Signature types").
    return hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]


def _check_name(name: str) -> None:
    if not name or "+" in name or any(char.isspace() for char in name):
        raise BadInput(f"{name!r} cannot name a key", "signed head", "use a name without spaces and plus signs")


def _keys() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MicroficheError("signing needs cryptography", "", "pip install 'microfiche[signed]'") from None
    return ed25519
