"""The decode prompts, read from the package's data file.

What it does: loads ``prompts.toml`` once and gives its categories and its digest. What it does not do: tag or send a prompt.
Rule kept: the digest is that of the file's bytes and enters every receipt, so that figures of other prompts never pass as
comparable.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from attrs import frozen

from ledger.core import digest


@frozen(kw_only=True)
class Prompt:
    """One category's prompt and the allowance of its reply in tokens."""

    category: str
    text: str
    tokens: int


@frozen(kw_only=True)
class PromptSet:
    """The prompts by category, in the file's order."""

    version: int
    digest: str
    prompts: Mapping[str, Prompt]


@cache
def load() -> PromptSet:
    """The prompts of this version of the package."""
    data = files("ledger.instruments.openai").joinpath("prompts.toml").read_bytes()
    read = tomllib.loads(data.decode("utf-8"))
    prompts = {
        name: Prompt(category=name, text=entry["prompt"], tokens=entry["tokens"]) for name, entry in read["category"].items()
    }
    return PromptSet(version=read["version"], digest=digest.of_bytes(data), prompts=prompts)
