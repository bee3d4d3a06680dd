"""Values that must not reach a receipt, concealed so that they still compare.

What it does: replaces the value of a variable that is named or shaped like a secret by ``secret:hmac-sha256:<16 hex>`` under a
key that stays in the state folder, and the folders of this machine by names. What it does not do: find a secret of no known
name or shape in free text. Rules kept: equal values give equal text in one clone, and nobody without the key can test a guess;
the name of the variable is kept.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from ledger.core.errors import Place, Problem, StoreError
from ledger.store import objects

NAMED = re.compile(
    r"(?i)(?:^|[_-])(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API[_-]?KEY|ACCESS[_-]?KEY|PRIVATE[_-]?KEY|AUTH)$"
)
SHAPED = re.compile(
    r"(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}"
    r"|xox[baprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
_URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^/@:\s]*):(?P<password>[^/@\s]+)@")
# What a query (``?api_key=…``) and a header (``Authorization: Bearer …``) carry.
_QUERY = re.compile(
    r"(?i)(?<=[?&])(?P<name>(?:[\w-]*[_-])?(?:token|secret|password|api_?key|access_?key|key|auth|sig))=(?P<value>[^&\s\"'#]+)"
)
_BEARER = re.compile(r"(?i)\b(?P<scheme>Bearer|Basic)[ ](?P<value>[A-Za-z0-9+/=._~-]{8,})")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
PREFIX = "secret:hmac-sha256:"
SHORTEST = 8
KEY_BYTES = 32


def load_key(state: Path) -> bytes:
    """The clone's own key: 32 bytes in ``<state>/secret.key``, made on first use and readable by its owner alone.

    Raises:
        StoreError: it cannot be written or read, or is cut: secrets under it would be no secrets.
    """
    path = state / "secret.key"
    if not path.exists():
        try:
            objects.put(path, secrets.token_bytes(KEY_BYTES), root=state.parent, scratch=state / "tmp", mode=0o600)
        except StoreError:
            if not path.exists():
                raise  # and not another process that was first
    key = objects.read(path, 2 * KEY_BYTES)
    if len(key) != KEY_BYTES:
        hint = "remove it: a new one is made, and secrets of earlier receipts no longer show whether they are equal to new ones"
        raise StoreError(Problem(what=f"a key of {len(key)} bytes", place=Place(file=str(path)), hint=hint))
    return key


@frozen(kw_only=True)
class Concealer:
    """What stands between a session and its receipts: secrets become keyed digests, this machine's folders become names.

    ``places`` maps an absolute folder to what is written for it (``${venv}``, ``${root}``, ``${home}``), longest first.
    ``known`` are values that are secret wherever they stand, longest first (:func:`secrets_in`).
    """

    key: bytes
    places: Mapping[str, str]
    known: tuple[str, ...] = ()

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        """``env`` with every secret value concealed; names are kept."""
        return {name: self.value(value) if NAMED.search(name) else self.text(value) for name, value in env.items()}

    def argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """``argv`` with the value behind a secret-named flag, and every secret-shaped part, concealed."""
        shown: list[str] = []
        secret_next = False
        for word in argv:
            flag, equals, value = word.partition("=")
            if secret_next:
                shown.append(self.value(word))
            elif equals and _is_secret_flag(flag):
                shown.append(f"{flag}={self.value(value)}")
            else:
                shown.append(self.text(word))
            secret_next = not secret_next and not equals and _is_secret_flag(word)
        return tuple(shown)

    def value(self, value: str) -> str:
        """The keyed digest that stands for ``value``; an empty value stays empty."""
        if not value:
            return value
        return PREFIX + hmac.new(self.key, value.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:16]

    def text(self, text: str) -> str:
        """``text`` with known secrets, secret-shaped parts and secrets in URLs concealed, and this machine's folders named."""
        for secret in self.known:
            if secret in text:
                text = text.replace(secret, self.value(secret))
        text = _QUERY.sub(lambda match: f"{match['name']}={self.value(match['value'])}", text)
        text = _BEARER.sub(lambda match: f"{match['scheme']} {self.value(match['value'])}", text)
        text = _URL_PASSWORD.sub(lambda match: f"{match['user']}:{self.value(match['password'])}@", text)
        text = SHAPED.sub(lambda match: self.value(match.group()), text)
        for folder, name in self.places.items():
            text = text.replace(folder, name)
        return text

    def source(self, data: bytes) -> bytes:
        """A spec or site word for word, but for known and secret-shaped values."""
        text = data.decode("utf-8", "surrogateescape")
        for secret in self.known:
            text = text.replace(secret, self.value(secret))
        return SHAPED.sub(lambda match: self.value(match.group()), text).encode("utf-8", "surrogateescape")

    def tree(self, value: Any) -> Any:
        """A plain value with every text in it concealed; the values of secret-named keys wholly."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self._entry(str(name), item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            texts = all(isinstance(item, str) for item in value)
            return list(self.argv(value)) if texts else [self.tree(item) for item in value]
        return value

    def _entry(self, name: str, value: Any) -> Any:
        return self.value(value) if isinstance(value, str) and NAMED.search(name) else self.tree(value)


def secrets_in(*environments: Mapping[str, str], named: Collection[str] = ()) -> tuple[str, ...]:
    """The values of variables named like secrets or ``named``, longest first.

    Short ones are left out, since they stand in innocent words too.
    """
    values = {
        value
        for env in environments
        for name, value in env.items()
        if (name in named or NAMED.search(name)) and len(value) >= SHORTEST
    }
    return tuple(sorted((value for value in values if not value.startswith(PREFIX)), key=lambda value: (-len(value), value)))


def places(root: Path, prefix: str, home: str) -> dict[str, str]:
    """The folders of this machine that receipts name instead of spelling out, longest first."""
    named = {prefix: "${venv}", str(root): "${root}", home: "${home}"}
    kept = {folder: name for folder, name in named.items() if len(folder) > 1}
    return dict(sorted(kept.items(), key=lambda item: -len(item[0])))


def _is_secret_flag(word: str) -> bool:
    return _FLAG.fullmatch(word) is not None and NAMED.search(word) is not None
