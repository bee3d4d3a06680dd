"""Whether the live server runs what was resolved.

What it does: compares the argv and variables read back from each rank with those it was given. What it does not do: read them
(``backends``). Rules kept: what could not be read is ``unverified``, never taken for agreement; a recorded override that did
not reach the process is a difference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.backends.base import Observed
from ledger.receipt.model import Agreement, Difference, RankConfig
from ledger.run.secrets import Concealer
from ledger.run.serving import Served
from ledger.spec.change import settings

SERVES = " (the process that serves)"
AGREES, DIFFERS, UNVERIFIED = "agrees", "differs", "unverified"


def agree(resolved: Sequence[RankConfig], observed: Sequence[Observed], served: Sequence[Served] = ()) -> Agreement:
    """Compare rank by rank; both sides hold plain values, as the process had them.

    ``served`` are the processes that listen below a rank. Each must have the rank's variables; an argument that it does not
    show may have reached it some other way, so that the rank is then unverified.
    """
    seen = {item.rank: item for item in observed}
    differences: list[Difference] = []
    unseen: list[str] = []
    for rank in resolved:
        found = seen.get(rank.rank)
        if found is None or found.unseen is not None or found.argv is None:
            unseen.append(f"rank {rank.rank}: {found.unseen if found and found.unseen else 'not read back'}")
            continue
        differences += _argv(rank, found.argv) + _env(rank, found.env)
        for each in (item for item in served if item.rank == rank.rank):
            differences += _env(rank, each.env, SERVES) if each.unseen is None else []
            unseen += [f"rank {rank.rank}: {why}" for why in _not_shown(rank, each)]
    state = DIFFERS if differences else UNVERIFIED if unseen else AGREES
    return Agreement(state=state, differences=tuple(differences), unseen=tuple(unseen))


def reported(model: str, facts: Mapping[str, Any]) -> Agreement:
    """Whether a server that was not started here says that it serves ``model``: all that it could be held against."""
    models = facts.get("models")
    if not isinstance(models, list):
        said = "which models it serves" if facts else "anything of itself"
        return Agreement(state=UNVERIFIED, unseen=(f"the server does not say {said}",))
    if model not in models:
        served = ", ".join(map(str, models))
        return Agreement(state=DIFFERS, differences=(Difference(field="server.models", resolved=model, observed=served),))
    return Agreement(state=AGREES)


def conceal(agreement: Agreement, concealer: Concealer) -> Agreement:
    """The same agreement with its values concealed, as the receipt keeps it."""
    return Agreement(
        state=agreement.state,
        unseen=tuple(concealer.text(item) for item in agreement.unseen),
        differences=tuple(
            Difference(
                field=item.field,
                resolved=_concealed(item.field, item.resolved, concealer),
                observed=_concealed(item.field, item.observed, concealer),
            )
            for item in agreement.differences
        ),
    )


def observed_tree(
    observed: Sequence[Observed], server: Mapping[str, Any], concealer: Concealer, served: Sequence[Served] = ()
) -> dict[str, Any]:
    """The observed config block: each rank's argv and env, those of what serves below it, and what the server says of itself."""
    ranks = [
        {"rank": item.rank}
        | ({"argv": list(concealer.argv(item.argv))} if item.argv is not None else {})
        | ({"env": concealer.env(item.env)} if item.env else {})
        | ({"engine": concealer.tree(dict(item.engine))} if item.engine else {})
        | ({"unseen": concealer.text(item.unseen)} if item.unseen is not None else {})
        for item in observed
    ]
    below = [
        {"rank": item.rank, "argv": list(concealer.argv(item.argv)), "env": concealer.env(item.env)}
        for item in served
        if item.unseen is None
    ]
    tree: dict[str, Any] = {"ranks": ranks} | ({"serving": below} if below else {})
    return tree | ({"server": concealer.tree(dict(server))} if server else {})


def _argv(rank: RankConfig, found: tuple[str, ...]) -> list[Difference]:
    if found == rank.argv:
        return []
    pairs = [
        Difference(field=f"rank {rank.rank} argv[{index}]", resolved=_at(rank.argv, index), observed=_at(found, index))
        for index in range(max(len(found), len(rank.argv)))
    ]
    return [pair for pair in pairs if pair.resolved != pair.observed]


def _not_shown(rank: RankConfig, served: Served) -> list[str]:
    """What a process that serves does not show of the rank's arguments, flag by flag."""
    if served.unseen is not None:
        return [served.unseen]
    words = [part for word in served.argv for part in _parts(word)]
    wanted = [[part for word in setting.words for part in _parts(word)] for setting in settings(rank.argv) if setting.flag]
    missing = [setting for setting in wanted if not any(words[at : at + len(setting)] == setting for at in range(len(words)))]
    return [f"the process that serves does not show {' '.join(setting)}" for setting in missing]


def _parts(word: str) -> list[str]:
    """``--flag=value`` as its two words."""
    flag, equals, value = word.partition("=")
    return [flag, value] if equals and flag.startswith("-") else [word]


def _env(rank: RankConfig, found: Mapping[str, str], where: str = "") -> list[Difference]:
    return [
        Difference(field=f"rank {rank.rank}{where} env.{name}", resolved=value, observed=found.get(name))
        for name, value in rank.env.items()
        if found.get(name) != value
    ]


def _at(argv: tuple[str, ...], index: int) -> str | None:
    return argv[index] if index < len(argv) else None


def _concealed(name: str, value: str | None, concealer: Concealer) -> str | None:
    if value is None:
        return None
    variable = name.rpartition("env.")[2]
    return concealer.env({variable: value})[variable]
