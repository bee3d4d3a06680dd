"""The records of a spec and of a site, as frozen attrs classes.

What it does: gives every table of the two TOML files its fields, types and defaults; field names are the TOML keys. What it
does not do: read TOML (``load``), check one part against another (``check``), or plan (``plan``). Rules kept: a spec is
published and says *what*; a site is local and says *where*; every default here is the one that the reference page prints.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ledger.core.schema import keyed, limited, whole
from ledger.core.words import Role

FORMAT = 1

# Patterns of single values; ``values`` refuses what does not match, and the JSON Schemas say the same.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
SHA256 = r"[0-9a-f]{64}"
VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
URL = r"https?://\S"
PACKAGE = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"

MAX_ITEMS = 1000
MAX_BOOTS = 1000
MAX_INCLUDES = 20
MAX_ENTRIES = 1_000_000
SPEEDS = ("boot_s", "prefill_tok_s", "decode_tok_s")

# Closed lists of words that only specs use; those that receipts hold too are in ``core.words``.
OPERATORS = ("<", "<=", "==", "!=", ">=", ">")
ON_FAILURE = ("continue", "stop")
ORDERS = ("written", "bracketed", "abba", "random")
WHEN = ("before", "during", "after")
PRIVILEGES = ("none", "root")
ACTIONS = ("sync", "compact_memory", "drop_caches")
NEIGHBOURS = ("vllm", "sglang", "llama-server", "llama_server", "trtllm", "tensorfold")
ON_FAIL = ("block", "mark")
ENDPOINT = "endpoint"  # the backend that starts nothing

# The gates that the runner makes itself; a spec has none of these names.
SERVER_ALIVE, SAME_REPLIES, SAME_QUALITY = OWN_GATES = ("server-alive", "restored-replies", "restored-quality")

# What a field is to the reader: the key of its table in the table above, or whatever keys of its table no other field takes.
KEY: Mapping[str, str] = {"reads": "key"}
REST: Mapping[str, str] = {"reads": "rest"}


@frozen(kw_only=True)
class FilePin:
    """A file that a lane needs and its digest: a ``path``, or a ``file`` inside an installed Python ``package``.

    Its resolved path is ``${file.<name>}``.
    """

    sha256: str = field(metadata=whole(SHA256))
    path: str | None = None
    package: str | None = None
    file: str | None = None
    size: int | None = field(default=None, metadata=limited(minimum=0))


@frozen(kw_only=True)
class Manifest:
    """Files pinned by a list in the format of ``sha256sum``, on every node of the lane.

    ``path`` is the list, relative to the ledger's folder, and ``sha256`` its own digest; the files that it names are looked
    for below ``root``. ``count`` and ``size`` are how many there are and their bytes in all.
    """

    path: str = field(metadata=limited(pattern=r"\S"))
    sha256: str = field(metadata=whole(SHA256))
    root: str = field(default=".", metadata=limited(pattern=r"\S"))
    count: int | None = field(default=None, metadata=limited(minimum=1))
    size: int | None = field(default=None, metadata=limited(minimum=0))


@frozen(kw_only=True)
class Tree:
    """A source tree inside an image or binary: what it is, and the commit or version that was built.

    ``path`` is a checkout of it on every node; with one, ``commit`` must be what is checked out there, with nothing changed
    and to be had from ``repo``, and ``declares`` what ``version_file`` says at that commit.
    """

    name: str
    repo: str | None = None
    commit: str | None = None
    version: str | None = None
    declares: str | None = None
    path: str | None = None
    version_file: str | None = None
    patched: bool = False
    note: str | None = None


@frozen(kw_only=True)
class Container:
    """How a lane's image is run, in the words of ``docker run``; every text may hold ``${…}``.

    The image, the labels that it must have, variables and the command are the lane's own.
    """

    name: str | None = None
    restart: str | None = None
    network: str | None = None
    ipc: str | None = None
    pid: str | None = None
    hostname: str | None = None
    user: str | None = None
    workdir: str | None = None
    entrypoint: str | None = None
    runtime: str | None = None
    gpus: str | None = None
    devices: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    ulimits: Mapping[str, str] = field(factory=dict)
    security_opt: tuple[str, ...] = ()
    shm_size: str | None = None
    memory: str | None = None
    memory_swap: str | None = None
    mounts: tuple[str, ...] = ()
    device_cgroup_rules: tuple[str, ...] = ()
    cpuset_cpus: str | None = None
    privileged: bool = False
    init: bool = False
    group_add: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(factory=dict)
    volumes: tuple[str, ...] = ()


@frozen(kw_only=True)
class Lane:
    """A system under test: engine, image or binary, model, launch command, nodes.

    ``command`` is the argv of one rank and ``env`` its environment; both may hold ``${…}``. ``ready_within`` is a time.
    ``packages`` pins installed Python distributions by version, ``files`` and ``manifests`` pin files by digest. ``caches`` are
    the folders that the engine compiles into: a boot that finds one of them empty is cold.
    ``container`` says that the command is run in a container of ``image``.
    """

    id: str = field(metadata=KEY)
    engine: str = field(metadata=limited(pattern=r"\S"))
    model: str = field(metadata=limited(pattern=r"\S"))
    title: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict, metadata=keyed(VARIABLE_NAME))
    model_revision: str | None = None
    quantization: str | None = None
    served_model: str | None = None
    image: str | None = None
    image_id: str | None = None
    container: Container | None = None
    image_labels: Mapping[str, str] = field(factory=dict)
    recipe: str | None = None
    recipe_revision: str | None = None
    nodes: int = field(default=1, metadata=limited(minimum=1, maximum=MAX_ITEMS))
    port: int = field(default=0, metadata=limited(minimum=0, maximum=65_535))
    ready_within: str = "120 s"
    packages: Mapping[str, str] = field(factory=dict, metadata=keyed(PACKAGE))
    files: Mapping[str, FilePin] = field(factory=dict, metadata=keyed(NAME))
    manifests: Mapping[str, Manifest] = field(factory=dict, metadata=keyed(NAME))
    trees: tuple[Tree, ...] = ()
    caches: tuple[str, ...] = ()
    note: str | None = None


@frozen(kw_only=True)
class Change:
    """What an arm changes: variables set or unset, arguments set or dropped.

    ``args`` is a list of argv words; a word that starts with ``--`` (or ``-x``) and the words behind it up to the next such
    word are one setting, which takes the place of the base's setting of the same flag or is appended. ``drop_args`` names
    flags to leave out, ``drop_env`` variables to unset. ``about`` says in words what cannot be said as a setting.
    """

    env: Mapping[str, str] = field(factory=dict, metadata=keyed(VARIABLE_NAME))
    args: tuple[str, ...] = ()
    drop_env: tuple[str, ...] = ()
    drop_args: tuple[str, ...] = ()
    about: str | None = None


@frozen(kw_only=True)
class Arm:
    """A lane with one change against a base arm.

    An arm without ``base`` names its ``lane``; with one it takes the base's lane. More than one change needs ``several``,
    the reason. ``boots`` is how many boots are made of it.
    """

    id: str = field(metadata=whole(NAME))
    lane: str | None = None
    base: str | None = None
    role: Role = Role.CANDIDATE
    change: Change = field(factory=Change)
    several: str | None = None
    title: str = ""
    boots: int = field(default=1, metadata=limited(minimum=1, maximum=MAX_BOOTS))


@frozen(kw_only=True)
class Measure:
    """An instrument (``uses``) with its parameters; ``trials`` is how often it is run on each boot."""

    id: str = field(metadata=KEY)
    uses: str = field(metadata=limited(pattern=r"\S"))
    parameters: Mapping[str, Any] = field(factory=dict, metadata=REST)
    trials: int = field(default=1, metadata=limited(minimum=1, maximum=MAX_BOOTS))


@frozen(kw_only=True)
class GateSpec:
    """A condition: ``reads`` (``host.MemAvailable``, ``requests.failed``, a metric) ``op`` ``value``, checked ``when``.

    ``when`` is ``before`` a boot, ``during`` its trials, or ``after`` them; ``on_fail`` is ``block`` (no boot, or no verdict)
    or ``mark``. ``of`` is what the reading is about where it needs that, and ``against`` the arm that is compared with.
    """

    id: str = field(metadata=whole(NAME))
    text: str = field(metadata=limited(pattern=r"\S"))
    reads: str
    op: str = field(metadata=limited(enum=OPERATORS))
    value: str
    of: str | None = None
    against: str | None = None
    when: str = field(default="before", metadata=limited(enum=WHEN))
    on_fail: str = field(default="block", metadata=limited(enum=ON_FAIL))
    version: int = field(default=1, metadata=limited(minimum=1, maximum=1_000_000))


@frozen(kw_only=True)
class Rule:
    """The KEEP rule: some metric better by more than ``better_than``, none worse by more than ``worse_than``.

    Both are ratios ("0.02" or "2 %"). ``controls`` maps an arm to its control where that is not ``control`` or its base. A boot
    of a control counts within ``window`` of the arm, in the same state of the conditions ``alike``, while the control's own boots
    spread by at most ``drift``. ``effect`` is the gain whose odds of being kept are told, and ``noise`` the variation from boot
    to boot that is taken while the ledger has seen none.
    """

    metrics: tuple[str, ...] = field(metadata=limited(minItems=1, uniqueItems=True))
    better_than: str = "2 %"
    worse_than: str = "2 %"
    control: str | None = None
    controls: Mapping[str, str] = field(factory=dict)
    window: str = "12 h"
    drift: str = "10 %"
    alike: tuple[str, ...] = field(default=("jit_cache",), metadata=limited(maxItems=MAX_ITEMS, uniqueItems=True))
    effect: str = "5 %"
    noise: str | None = None


@frozen(kw_only=True)
class Restore:
    """After the rule: the config that stays is booted again, and proven to be what was measured.

    ``replies`` names the measure whose greedy replies must be those of the same arm's earlier boot, all but ``differs`` of them;
    ``items`` the one whose items are paired with that boot's, and which may ``drop`` by that ratio. Only these are measured.
    ``arm`` is the config; without it, it is the arm that the verdicts leave standing.
    """

    replies: str | None = None
    items: str | None = None
    arm: str | None = None
    differs: int = field(default=0, metadata=limited(minimum=0, maximum=1_000_000))
    drop: str = "0 %"


@frozen(kw_only=True)
class Spec:
    """The question, lanes, arms, measures, gates and the rule. ``site`` is relative to the spec's own folder.

    ``include`` names files of that folder, or below it, whose tables stand behind the spec's own.
    ``warmup`` is how many warm-up requests of other prompts are sent to a ready server before its first trial. ``hygiene`` names
    what is done to each node before each boot, in order: ``sync``, ``compact_memory``, ``drop_caches`` or an action of the site.
    ``on_failure`` says whether the boots behind one that failed, or that a gate blocks, are made all the same.
    ``order`` says how the boots are laid out, and ``order_seed`` seeds the random one.
    ``restore`` has the config that stays booted once more, and proven.
    """

    ledger: int = field(metadata=limited(const=FORMAT))
    name: str = field(metadata=whole(NAME))
    question: str = field(metadata=limited(pattern=r"\S"))
    title: str = ""
    site: str = field(default="sites/laptop.toml", metadata=limited(pattern=r"\S"))
    include: tuple[str, ...] = field(default=(), metadata=limited(maxItems=MAX_INCLUDES, uniqueItems=True))
    lanes: Mapping[str, Lane] = field(metadata=keyed(NAME, minProperties=1, maxProperties=MAX_ITEMS))
    arms: tuple[Arm, ...] = field(metadata=limited(minItems=1, maxItems=MAX_ITEMS))
    measures: Mapping[str, Measure] = field(metadata=keyed(NAME, minProperties=1, maxProperties=MAX_ITEMS))
    gates: tuple[GateSpec, ...] = field(default=(), metadata=limited(maxItems=MAX_ITEMS))
    hygiene: tuple[str, ...] = field(default=(), metadata=limited(maxItems=MAX_ITEMS, uniqueItems=True))
    rule: Rule | None = None
    restore: Restore | None = None
    warmup: int = field(default=2, metadata=limited(minimum=0, maximum=10_000))
    on_failure: str = field(default="continue", metadata=limited(enum=ON_FAILURE))
    order: str = field(default="written", metadata=limited(enum=ORDERS))
    order_seed: int = field(default=0, metadata=limited(minimum=0, maximum=2**53 - 1))


@frozen(kw_only=True)
class Node:
    """A machine: its name in receipts, how it is reached, and the address its servers listen on.

    ``env`` holds what differs from node to node (the network interface, say); it takes the place of the lane's variables.
    """

    name: str = field(metadata=whole(NAME))
    host: str = field(default="localhost", metadata=limited(pattern=r"\S"))
    ip: str = "127.0.0.1"
    env: Mapping[str, str] = field(factory=dict, metadata=keyed(VARIABLE_NAME))


@frozen(kw_only=True)
class Action:
    """Something that hygiene does on a node: an argv, what it is given on its standard input, and the privilege it needs."""

    id: str = field(metadata=KEY)
    argv: tuple[str, ...] = field(metadata=limited(minItems=1))
    stdin: str = ""
    privilege: str = field(default="none", metadata=limited(enum=PRIVILEGES))


@frozen(kw_only=True)
class StandIn:
    """What a site boots in the place of a lane that it does not have: everything a lane has, and why.

    ``arms`` maps each arm of the lane to the stand-in's own change, so that no arm passes for one that it is not.
    """

    id: str = field(metadata=KEY)
    why: str = field(metadata=limited(pattern=r"\S"))
    engine: str = field(metadata=limited(pattern=r"\S"))
    model: str = field(metadata=limited(pattern=r"\S"))
    command: tuple[str, ...] = field(metadata=limited(minItems=1))
    env: Mapping[str, str] = field(factory=dict, metadata=keyed(VARIABLE_NAME))
    quantization: str | None = None
    served_model: str | None = None
    port: int = field(default=0, metadata=limited(minimum=0, maximum=65_535))
    ready_within: str = "120 s"
    packages: Mapping[str, str] = field(factory=dict, metadata=keyed(PACKAGE))
    files: Mapping[str, FilePin] = field(factory=dict, metadata=keyed(NAME))
    manifests: Mapping[str, Manifest] = field(factory=dict, metadata=keyed(NAME))
    caches: tuple[str, ...] = ()
    arms: Mapping[str, Change] = field(factory=dict)


@frozen(kw_only=True)
class Endpoint:
    """A server that is up and serves a lane: measured, never started or stopped.

    ``api_key_env`` names the variable of the runner's environment that holds the API key. ``arms`` maps an arm of the lane to the
    URL of the server that runs with its change.
    """

    id: str = field(metadata=KEY)
    url: str = field(metadata=limited(pattern=URL))
    api_key_env: str | None = field(default=None, metadata=whole(VARIABLE_NAME))
    arms: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Site:
    """Where it runs: the backend, the nodes, stand-ins for lanes, and parameters scaled to what is here.

    ``placement`` maps a lane's id to the names of its nodes, head first; a lane without one takes the nodes in their order.
    ``pause`` is the time between the start of the workers and that of the head. ``scale`` maps a measure's id to parameters
    that replace the spec's; it applies to stand-ins only. ``endpoints`` are the servers of the backend ``endpoint``, by lane;
    such a site has no nodes. ``speed`` is a rough ``prefill_tok_s``, ``decode_tok_s`` and ``boot_s`` for the estimate of
    ``ledger plan``. ``actions`` are more actions of hygiene, ``forbid`` names those that are not done here,
    and ``elevate`` is the argv in front of one that needs root. ``neighbours`` are words of the command lines of servers that
    would disturb a boot.
    """

    ledger: int = field(metadata=limited(const=FORMAT))
    name: str = field(metadata=whole(NAME))
    backend: str = field(default="process", metadata=limited(pattern=r"\S"))
    nodes: tuple[Node, ...] = field(default=(), metadata=limited(maxItems=MAX_ITEMS))
    placement: Mapping[str, tuple[str, ...]] = field(factory=dict, metadata=keyed(NAME, maxProperties=MAX_ITEMS))
    pause: str = "0 s"
    stand_ins: Mapping[str, StandIn] = field(factory=dict, metadata=keyed(NAME, maxProperties=MAX_ITEMS))
    endpoints: Mapping[str, Endpoint] = field(factory=dict, metadata=keyed(NAME, maxProperties=MAX_ITEMS))
    scale: Mapping[str, Mapping[str, Any]] = field(factory=dict, metadata=limited(maxProperties=MAX_ITEMS))
    speed: Mapping[str, float] = field(factory=dict, metadata=limited(propertyNames={"enum": SPEEDS}))
    actions: Mapping[str, Action] = field(factory=dict, metadata=keyed(NAME, maxProperties=MAX_ITEMS))
    forbid: tuple[str, ...] = field(default=(), metadata=limited(maxItems=MAX_ITEMS))
    elevate: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = field(default=NEIGHBOURS, metadata=limited(maxItems=MAX_ITEMS))

    def nodes_of(self, lane: str) -> tuple[Node, ...]:
        """The nodes on which ``lane`` is booted, in the order of its ranks."""
        by_name = {node.name: node for node in self.nodes}
        return tuple(by_name[name] for name in self.placement[lane]) if lane in self.placement else self.nodes
