"""Makes the golden receipts again, byte for byte: ``python tests/golden/rebuild.py`` from the root of the repository.

What it does: writes one receipt of each kind, every field of it filled, as this version writes it. What it does not do: touch
receipts of other versions; those stay as the version that they are of wrote them, and must be read for ever. Rule kept: what is
written is a function of this file and of the codec alone.
"""

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from ledger.core import digest
from ledger.core.digest import Descriptor
from ledger.core.words import Better, CorrectionKind, Evidence, Holds, Outcome, Role, Verdict
from ledger.receipt import codec
from ledger.receipt.model import (
    FORMAT,
    Agreement,
    Attempt,
    Body,
    Boot,
    Chain,
    Claim,
    Client,
    Correction,
    Decision,
    Difference,
    Effect,
    Factors,
    Figure,
    Foreign,
    Gate,
    Instrument,
    Noise,
    Note,
    Odds,
    RankConfig,
    Receipt,
    Requests,
    Serving,
    Source,
    Subject,
    Tool,
    Trial,
)

FOLDER = Path(__file__).parent / "receipts"
SUBJECT = Subject(spec="round2", lane="L", arm="B1", role=Role.CANDIDATE, evidence=Evidence.MEASURED)
OTHER = digest.of_bytes(b"another receipt")
IDENTITY = {"args.--threads": "4", "engine": "an engine 1.0", "model": "a model"}


def _blob(data: bytes, media_type: str = "text/plain") -> Descriptor:
    return digest.describe(data, media_type)


def _from_node(data: bytes, source: str) -> Descriptor:
    return evolve(_blob(data), annotations={"node": "spark-1", "source": source})


def _attempt() -> Attempt:
    spec = Source(name="round2", text=_blob(b"ledger = 1\n", "application/toml"))
    site = Source(name="rack", text=_blob(b"nodes = []\n", "application/toml"))
    return Attempt(
        subject=SUBJECT,
        spec=spec,
        site=site,
        number=2,
        position=3,
        of=12,
        reason="the first boot did not start",
        order="random",
        order_seed=7,
        round=2,
        added="the control stands last too",
    )


def _boot() -> Boot:
    rank = RankConfig(
        rank=0, node="n0", argv=("serve", "--threads", "4"), env={"OMP_NUM_THREADS": "4"}, mounts=("/models:ro",), cwd="/srv"
    )
    differs = Difference(field="args.--threads", resolved="4", observed="2")
    return Boot(
        subject=SUBJECT,
        attempt=OTHER,
        outcome=Outcome.READY,
        fingerprint=codec.fingerprint(IDENTITY),
        factors=Factors(identity=IDENTITY, context={"node.0": "n0"}, provenance={"site": "rack"}),
        requested={"lane": {"command": ["serve"], "ready_within": "60 s"}, "shots": 3, "warm": True, "share": 0.25},
        resolved=(rank,),
        observed={"ranks": [{"argv": ["serve", "--threads", "2"]}]},
        agreement=Agreement(state="differs", differences=(differs,), unseen=("env.OMP_NUM_THREADS",)),
        conditions={"jit_cache": "warm"},
        seconds=12.5,
        reason="a thread count that was not applied",
        log_tail="listening\n",
        logs=(_blob(b"listening\n"),),
        evidence=(_from_node(b'{"action":"sync","status":0}\n', "hygiene"),),
    )


def _trial() -> Trial:
    full = Figure(
        unit="tok/s",
        better=Better.HIGHER,
        value=51.25,
        n=3,
        statistic="mean",
        low=50,
        high=52.5,
        values=(50, 51.25, 52.5),
        conditions={"prefix_cache": "miss"},
        marks=("single-shot",),
    )
    return Trial(
        subject=SUBJECT,
        boot=OTHER,
        measure="decode",
        number=1,
        instrument=Instrument(name="openai/decode", version=2, parameters={"levels": [1, 6], "thinking": False}),
        figures={"C1": full, "C6": Figure(unit="tok/s", better=Better.HIGHER, absent="2 of 6 requests failed")},
        requests=Requests(launched=10, ok=7, failed=2, cancelled=1, reasons={"timeout": 2}),
        samples=(_blob(b"{}\n", "application/x-ndjson"),),
        client=Client(name="threads", stamps="perf_counter_ns", lag_p99_ms=0.75, start_spread_ms=1.5),
        conditions={"neighbours": "none"},
        marks=("outside-window",),
        seconds=31.5,
    )


def _gate() -> Gate:
    return Gate(
        subject=SUBJECT,
        gate="memory",
        version=1,
        when="before",
        holds=Holds.FAIL,
        text="less memory is free than the lane needs",
        attempt=OTHER,
        boot=OTHER,
        value="90 GiB",
        limit="100 GiB",
        reason="the worst of 2 nodes",
        regates=OTHER,
        evidence=(_from_node(b"MemAvailable: 94371840 kB\n", "/proc/meminfo"),),
    )


def _decision() -> Decision:
    effect = Effect(
        metric="C6", arm=51.25, control=50, change=0.025, band=0.01, n_arm=3, n_control=2, low=0.011, high=0.039, noise_boots=7
    )
    odds = Odds(
        false_keep=0.024,
        false_keep_ladder=0.17,
        power=0.96,
        effect=0.05,
        arms=9,
        boots=2,
        draws=2000,
        seed="round2/B1",
        noise={"C6": Noise(ratio=0.01, source="ledger", boots=7)},
    )
    return Decision(
        subject=SUBJECT,
        verdict=Verdict.KEEP,
        reasons=("C6 is 2.5% better, outside a band of 1%",),
        inputs=(OTHER,),
        control="B0",
        rule={"metrics": ["C6"], "better_than": "2 %"},
        effects=(effect,),
        mend="one warm reboot of B0, about 2 min",
        odds=odds,
    )


def _claim() -> Claim:
    return Claim(
        name="B1-is-faster",
        expression="C6 of arm:B1 / C6 of arm:B0",
        says="1.03",
        decimals=2,
        value=1.025,
        unit="ratio",
        orientation="B1 over B0",
        figure_evidence=Evidence.MEASURED,
        inputs=(OTHER,),
        by="A Tester",
    )


def _correction() -> Correction:
    return Correction(
        action=CorrectionKind.SUPERSEDE,
        targets=(OTHER,),
        reason="the cache was warm",
        by="A Tester",
        code="cache",
        replacements=(digest.of_bytes(b"a replacement"),),
        scope="claim:B1-is-faster",
    )


def bodies() -> Mapping[str, Body]:
    """A body of each kind; ``omen`` is one that this version has no record for, with fields of its own."""
    return {
        "attempt": _attempt(),
        "boot": _boot(),
        "trial": _trial(),
        "gate": _gate(),
        "decision": _decision(),
        "correction": _correction(),
        "claim": _claim(),
        "note": Note(text="the rack was moved: naïve → 東京 😀", by="A Tester", about=(OTHER,)),
        "serving": Serving(
            lane="L",
            state="serving",
            since="2026-10-18T12:00:00Z",
            by="A Tester",
            known_as=Evidence.MEASURED,
            arm="B1",
            nodes=("n0", "n1"),
            port=8002,
            note="behind the balancer",
        ),
        "omen": Foreign(extra={"node": "n0", "boot": OTHER, "since": "2026-10-18T12:00:00Z", "share": 0.5}),
    }


def golden() -> dict[str, bytes]:
    """The bytes of each golden receipt by the name of its file."""
    made = {}
    for place, (kind, body) in enumerate(bodies().items()):
        receipt = Receipt(
            kind=kind,
            at="2026-10-18T12:00:00Z",
            session="18T1200-round2-3f2a",
            chain=Chain(n=place, after=OTHER if place else None, extra={"newer": True}),
            tool=Tool(name="ledger", version="0.1.0", python="3.11.9", platform="linux"),
            body=body,
            extra={"a_newer_field": {"of": ["a", "newer", "version"], "n": 1.5}},
        )
        made[f"v{FORMAT}-{kind}.json"] = codec.encode(receipt)
    return made


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, data in golden().items():
        (FOLDER / name).write_bytes(data)
        print(name)


if __name__ == "__main__":
    main()
