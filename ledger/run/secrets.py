"""Values that must not reach a receipt, concealed so that they still compare.

What it does: replaces the value of a variable that is named or shaped like a secret by ``secret:hmac-sha256:<16 hex>`` under a
key that stays in the state folder. What it does not do: search free text of logs. Rules kept: equal values give equal text in
one clone, and nobody without the key can test a guess; the name of the variable is kept.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

NAMED = re.compile(
    r"(?i)(?:^|[_-])(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH)$"
)
SHAPED = re.compile(
    r"(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[baprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
_URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^/@:\s]*):(?P<password>[^/@\s]+)@")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
PREFIX = "secret:hmac-sha256:"


def load_key(state: Path) -> bytes:
    """The clone's own key: 32 bytes in ``<state>/secret.key``, made on first use and readable by its owner alone."""
    path = state / "secret.key"
    state.mkdir(parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(fd, "wb") as file:
        key = secrets.token_bytes(32)
        file.write(key)
    return key


def conceal_env(env: Mapping[str, str], key: bytes) -> dict[str, str]:
    """``env`` with every secret value concealed."""
    return {name: conceal(value, key) if NAMED.search(name) else conceal_text(value, key) for name, value in env.items()}


def conceal_argv(argv: tuple[str, ...], key: bytes) -> tuple[str, ...]:
    """``argv`` with the value behind a secret-named flag, and every secret-shaped word, concealed."""
    shown: list[str] = []
    secret_next = False
    for word in argv:
        flag, equals, value = word.partition("=")
        if secret_next:
            shown.append(conceal(word, key))
        elif equals and _is_secret_flag(flag):
            shown.append(f"{flag}={conceal(value, key)}")
        else:
            shown.append(conceal_text(word, key))
        secret_next = not secret_next and not equals and _is_secret_flag(word)
    return tuple(shown)


def conceal(value: str, key: bytes) -> str:
    """The keyed digest that stands for ``value``; an empty value stays empty."""
    return PREFIX + hmac.new(key, value.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:16] if value else value


def conceal_text(text: str, key: bytes) -> str:
    """``text`` with secret-shaped parts, and passwords in URLs, concealed."""
    text = _URL_PASSWORD.sub(lambda match: f"{match['user']}:{conceal(match['password'], key)}@", text)
    return SHAPED.sub(lambda match: conceal(match.group(), key), text)


def _is_secret_flag(word: str) -> bool:
    return _FLAG.fullmatch(word) is not None and NAMED.search(word) is not None
