"""The records that a receipt can hold, as frozen attrs classes.

What it does: gives every kind of receipt its fields. What it does not do: bytes (``codec``), files (``store``), judgement
(``analysis``). Rules kept:

- the model is apart from the wire format: field names are the wire's names, types are Python's, and ``codec`` maps them;
- absent is ``None`` here and left out on the wire; a figure that is missing is a state with a reason, never a zero;
- what a newer version wrote and this one does not know is kept in ``extra`` and written again, at every level;
- durations are seconds and nanoseconds are strings; nothing here is an integer above 2**53.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ledger.core.digest import Descriptor
from ledger.core.words import (
    Better,
    CorrectionKind,
    Evidence,
    Holds,
    Kind,
    Outcome,
    Role,
    Verdict,
)

FORMAT = 1


@frozen(kw_only=True)
class Record:
    """Base of every record: ``extra`` holds the fields that this version does not know."""

    extra: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Chain(Record):
    """Place in the session: ``n`` counts from 0, ``after`` is the digest of the receipt before it."""

    n: int
    after: str | None = None


@frozen(kw_only=True)
class Tool(Record):
    """The program that wrote the receipt."""

    name: str
    version: str
    python: str | None = None
    platform: str | None = None


@frozen(kw_only=True)
class Source(Record):
    """A spec or site: its name, and its text word for word (comments included) as a blob."""

    name: str
    text: Descriptor


@frozen(kw_only=True)
class Subject(Record):
    """What the receipt is about."""

    spec: str
    lane: str
    arm: str
    role: Role
    evidence: Evidence


@frozen(kw_only=True)
class Factors(Record):
    """Every field that can explain a difference, flattened to ``key = value`` and split by its class.

    ``identity`` must match to compare, ``context`` should match, ``provenance`` may differ. Keys are dotted
    (``env.OMP_NUM_THREADS``, ``args[3]`` never: arguments are keyed by flag, ``args.--threads``). Values are text.
    """

    identity: Mapping[str, str] = field(factory=dict)
    context: Mapping[str, str] = field(factory=dict)
    provenance: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class RankConfig(Record):
    """One process or container of a boot: node name, argv, env, mounts, working directory."""

    rank: int
    node: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    mounts: tuple[str, ...] = ()
    cwd: str | None = None


@frozen(kw_only=True)
class Difference(Record):
    """One field whose value read back from the live server is not the value it was given."""

    field: str
    resolved: str | None = None
    observed: str | None = None


@frozen(kw_only=True)
class Agreement(Record):
    """Whether the live server was seen to run what was resolved: ``agrees``, ``differs`` or ``unverified``."""

    state: str
    differences: tuple[Difference, ...] = ()
    unseen: tuple[str, ...] = ()


@frozen(kw_only=True)
class Attempt(Record):
    """Taken before a boot, so that an arm that never ran leaves a trace.

    ``order`` is how the session lays out its boots, ``order_seed`` what a random order was drawn from, ``round`` counts from
    1, and ``added`` says why the runner made a boot that the spec does not ask for.
    """

    subject: Subject
    spec: Source
    site: Source
    number: int
    position: int
    of: int
    reason: str | None = None
    order: str | None = None
    order_seed: int | None = None
    round: int | None = None
    added: str | None = None


@frozen(kw_only=True)
class Boot(Record):
    """One start of a lane under an arm: what was asked, what was rendered, what was seen.

    ``evidence`` is what hygiene did, word for word, with the counters before and after.
    """

    subject: Subject
    attempt: str
    outcome: Outcome
    fingerprint: str
    factors: Factors
    requested: Mapping[str, Any]
    resolved: tuple[RankConfig, ...]
    observed: Mapping[str, Any]
    agreement: Agreement
    conditions: Mapping[str, str] = field(factory=dict)
    seconds: float | None = None
    reason: str | None = None
    log_tail: str | None = None
    logs: tuple[Descriptor, ...] = ()
    evidence: tuple[Descriptor, ...] = ()


@frozen(kw_only=True)
class Figure(Record):
    """A metric's value with what stands behind it, or ``absent``, the reason why there is none.

    ``n`` counts the samples pooled into ``value`` by ``statistic``; ``values`` holds them where they are few.
    ``conditions`` are states that this figure alone was taken in (``prefix_cache = "hit"``).
    """

    unit: str
    better: Better = Better.NEITHER
    value: float | None = None
    n: int | None = None
    statistic: str | None = None
    low: float | None = None
    high: float | None = None
    values: tuple[float, ...] | None = None
    absent: str | None = None
    conditions: Mapping[str, str] = field(factory=dict)
    marks: tuple[str, ...] = ()


@frozen(kw_only=True)
class Requests(Record):
    """How the requests of a trial ended; ``launched`` is their sum. ``reasons`` counts the failures by cause."""

    launched: int
    ok: int
    failed: int = 0
    cancelled: int = 0
    reasons: Mapping[str, int] = field(factory=dict)


@frozen(kw_only=True)
class Instrument(Record):
    """The instrument that measured: its name, the version of its definitions, and its parameters as resolved."""

    name: str
    version: int
    parameters: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Client(Record):
    """The load client: which, how it stamped, and how late it was."""

    name: str
    stamps: str
    lag_p99_ms: float | None = None
    start_spread_ms: float | None = None


@frozen(kw_only=True)
class Trial(Record):
    """One run of a measure on a boot."""

    subject: Subject
    boot: str
    measure: str
    number: int
    instrument: Instrument
    figures: Mapping[str, Figure]
    requests: Requests
    samples: tuple[Descriptor, ...] = ()
    client: Client | None = None
    conditions: Mapping[str, str] = field(factory=dict)
    marks: tuple[str, ...] = ()
    seconds: float | None = None


@frozen(kw_only=True)
class Gate(Record):
    """The verdict of a condition that must hold, with its raw evidence.

    ``regates`` is the gate receipt whose evidence was read again under another version; ``reason`` says why a reading is
    missing, or what it is made of.
    """

    subject: Subject
    gate: str
    version: int
    when: str
    holds: Holds
    text: str
    attempt: str
    boot: str | None = None
    value: str | None = None
    limit: str | None = None
    reason: str | None = None
    regates: str | None = None
    evidence: tuple[Descriptor, ...] = ()


@frozen(kw_only=True)
class Effect(Record):
    """The change of one metric against the control: ``change`` is relative, 0.02 is 2% up.

    ``low`` and ``high`` are its bootstrap interval over boots, absent where a side has one boot. ``noise_boots`` is how many
    boots the noise ``band`` is known from.
    """

    metric: str
    arm: float
    control: float
    change: float
    band: float | None = None
    n_arm: int = 1
    n_control: int = 1
    low: float | None = None
    high: float | None = None
    noise_boots: int | None = None


@frozen(kw_only=True)
class Noise(Record):
    """The variation of a metric from boot to boot (0.01 is 1 %), and whether the ledger, the spec or nobody says so."""

    ratio: float
    source: str
    boots: int = 0


@frozen(kw_only=True)
class Odds(Record):
    """How often the rule keeps what it should not, and keeps what it should, drawn from the noise.

    ``false_keep`` is for one arm without effect and ``false_keep_ladder`` for at least one of ``arms``; ``power`` is for one
    whose noisiest metric alone gains ``effect``. Each is a share of ``draws``; ``boots`` is the number on each side.
    """

    false_keep: float
    false_keep_ladder: float
    power: float
    effect: float
    arms: int
    boots: int
    draws: int
    seed: str
    noise: Mapping[str, Noise] = field(factory=dict)


@frozen(kw_only=True)
class Decision(Record):
    """What the rule says of an arm, why, and from which receipts. ``mend`` is the cheapest run that would give a verdict."""

    subject: Subject
    verdict: Verdict
    reasons: tuple[str, ...]
    inputs: tuple[str, ...]
    control: str | None = None
    rule: Mapping[str, Any] = field(factory=dict)
    effects: tuple[Effect, ...] = ()
    mend: str | None = None
    odds: Odds | None = None


@frozen(kw_only=True)
class Correction(Record):
    """Supersedes, retracts, amends or annotates other receipts; ``by`` is who says so.

    ``targets`` and ``replacements`` are digests; ``scope`` names the one use that the correction is about, if not all.
    """

    action: CorrectionKind
    targets: tuple[str, ...]
    reason: str
    by: str
    code: str = "other"
    replacements: tuple[str, ...] = ()
    scope: str | None = None


@frozen(kw_only=True)
class Claim(Record):
    """A named statement over receipts: a question, what a person says its answer is, and what it was.

    ``says`` is the text as it was written, and its ``decimals`` are the rounding under which it must agree with ``value``.
    ``orientation`` says what the number is: a value, or which side of a ratio stands above. ``inputs`` are the receipts that
    the answer was pooled from, and ``figure_evidence`` is their evidence.
    """

    name: str
    expression: str
    says: str
    decimals: int
    value: float
    unit: str
    orientation: str
    figure_evidence: Evidence
    inputs: tuple[str, ...]
    by: str


@frozen(kw_only=True)
class Serving(Record):
    """What a lane does from ``since`` on (RFC 3339, UTC): ``state`` is ``serving`` or ``stopped``; ``by`` is who says so.

    ``known_as`` is the evidence: how it is known.
    """

    lane: str
    state: str
    since: str
    by: str
    known_as: Evidence
    arm: str | None = None
    nodes: tuple[str, ...] = ()
    port: int | None = None
    note: str | None = None


@frozen(kw_only=True)
class Note(Record):
    """A remark for people, about receipts or about nothing in particular."""

    text: str
    by: str
    about: tuple[str, ...] = ()


@frozen(kw_only=True)
class Foreign(Record):
    """The body of a kind that this version has no record for; all of it is in ``extra``."""


Body = Attempt | Boot | Trial | Gate | Decision | Correction | Claim | Serving | Note | Foreign

BODIES: Mapping[str, type[Record]] = {
    Kind.ATTEMPT: Attempt,
    Kind.BOOT: Boot,
    Kind.TRIAL: Trial,
    Kind.GATE: Gate,
    Kind.DECISION: Decision,
    Kind.CORRECTION: Correction,
    Kind.CLAIM: Claim,
    Kind.SERVING: Serving,
    Kind.NOTE: Note,
}


@frozen(kw_only=True)
class Receipt(Record):
    """The immutable record of one thing that happened.

    ``kind`` is a :class:`Kind` or the word of a newer version. ``at`` is for people (RFC 3339, UTC); order comes from
    ``chain`` and from git. ``session`` is the folder's name, ``01T0612-round2-3f2a``.
    """

    kind: str
    at: str
    session: str
    chain: Chain
    tool: Tool
    body: Body
    ledger: int = FORMAT


# The fields that name other receipts or blobs, wherever a record has them.
LINKS = ("attempt", "boot", "regates")
LINK_LISTS = ("inputs", "targets", "replacements", "about")
SOURCES = ("spec", "site")
BLOB_LISTS = ("logs", "samples", "evidence")


def links(receipt: Receipt) -> dict[str, str]:
    """The digests of other receipts that this one names, by role (``chain.after``, ``boot``, ``targets[0]``)."""
    found: dict[str, str] = {}
    if receipt.chain.after:
        found["chain.after"] = receipt.chain.after
    for name in LINKS:
        digest = getattr(receipt.body, name, None)
        if isinstance(digest, str):
            found[name] = digest
    for name in LINK_LISTS:
        for index, digest in enumerate(getattr(receipt.body, name, ())):
            found[f"{name}[{index}]"] = digest
    return found


def blobs(receipt: Receipt) -> tuple[Descriptor, ...]:
    """Every blob that this receipt names."""
    body = receipt.body
    found: list[Descriptor] = []
    if isinstance(body, Attempt):
        found += [getattr(body, name).text for name in SOURCES]
    for name in BLOB_LISTS:
        found += getattr(body, name, ())
    return tuple(found)
