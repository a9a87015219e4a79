"""Addresses of daemons: tcp://HOST:PORT, tls://HOST:PORT and unix:/PATH. Pure."""

from __future__ import annotations

import re
from typing import Iterable, List, NamedTuple, Union

_HOST_PORT = re.compile(r"(tcp|tls)://(?:\[([0-9A-Fa-f:.%\w]+)\]|([^][/:@\s]+)):(\d{1,5})/?")
_FORM = "an address is tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH"


class Address(NamedTuple):
    kind: str  # "tcp", "tls" or "unix"
    host: str  # of a unix socket: its path
    port: int  # of a unix socket: 0
    text: str


def parse_address(text: str) -> Address:
    """Raises ValueError if the text is no address."""
    if not isinstance(text, str):
        raise TypeError(_FORM)
    if text.startswith("unix:/"):
        path = text[len("unix:") :]
        path = "/" + path.lstrip("/")
        return Address("unix", path, 0, text)
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 1 <= int(match[4]) <= 65535:
        raise ValueError(_FORM)  # without the text: a URL of Redis can contain a password
    return Address(match[1], match[2] or match[3], int(match[4]), text)


def parse_addresses(addresses: Union[str, Iterable[str]]) -> List[Address]:
    texts = [addresses] if isinstance(addresses, str) else list(addresses)
    if not texts:
        raise ValueError("at least one address is necessary")
    return [parse_address(text) for text in texts]
