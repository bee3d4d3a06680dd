"""Ledgers of any size, made from a seed: what the benchmarks measure on.

What it does: writes sessions of attempts, boots and trials (62 metrics each, about 4 KB) in the real layout, canonical and named
by digest, chained and linked, so that ``ledger verify`` is clean. What it does not do: measure anything. Rules kept: the same
count and seed give the same bytes, loose or packed; no more than a month of them is held at once.

usage: python benchmarks/synthetic.py FOLDER RECEIPTS [SEED] [CORRECTIONS] [--packed]
One correction retracts one trial, drawn at random. A million receipts in packs take 0.5 GB of disk and some minutes.
"""

import argparse
import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from ledger.store import layout, packs

ARMS = ("control", "threads-2", "ubatch-64", "kv-k-q8", "no-flash", "mnbt-16k", "one-rail", "merged")
CATEGORIES = ("code", "json", "narrative", "prose", "math", "reasoning", "summary", "format")
LEVELS = (1, 2, 6)
PER_SESSION = 48
SPEC = b"ledger = 1\n"
SPEC_HEX = hashlib.sha256(SPEC).hexdigest()

Made = tuple[str, str, bytes]


def receipts(count: int, seed: int) -> Iterator[Made]:
    """``count`` receipts as (session path, hex name, bytes), session after session."""
    made = session = 0
    while made < count:
        for item in _session(session, min(PER_SESSION, count - made), random.Random(f"{seed}/{session}")):
            yield item
            made += 1
        session += 1


def corrections(targets: Sequence[str], seed: int) -> Iterator[Made]:
    """A retraction or concern of each target, in sessions of their own, a day apart."""
    draw = random.Random(f"{seed}/corrections")
    for start in range(0, len(targets), PER_SESSION):
        index = start // PER_SESSION
        year, month, day = 2024 + index // 360, index // 30 % 12 + 1, index % 28 + 1
        name = f"{day:02}T2359-correction-{index:04x}"
        after = ""
        for n, target in enumerate(targets[start : start + PER_SESSION]):
            envelope = {
                "ledger": 1,
                "kind": "correction",
                "correction": {"action": draw.choice(("retract", "concern")), "targets": [target], "reason": "r", "by": "bench"},
                "at": f"{year}-{month:02}-{day:02}T23:59:00Z",
                "session": name,
                "chain": {"n": n} | ({"after": after} if after else {}),
                "tool": {"name": "ledger", "version": "0.1.0"},
            }
            data = orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)
            digest = hashlib.sha256(data).hexdigest()
            after = f"sha256:{digest}"
            yield f"receipts/{year}/{month:02}/{name}", digest, data


def write(root: Path, count: int, seed: int = 1, corrected: int = 0, *, packed: bool = False) -> None:
    """Write them below ``root``, each as a file or a month at a time in packs; a ``ledger.toml`` marks the folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "ledger.toml").write_text("ledger = 1\n")
    put = _put_packed if packed else _put_loose
    trials: list[str] = []
    put(root, _with_trials(receipts(count, seed), trials if corrected else None))
    chosen = random.Random(f"{seed}/chosen").sample(trials, min(corrected, len(trials)))
    put(root, corrections(chosen, seed))


def _with_trials(made: Iterable[Made], trials: list[str] | None) -> Iterator[Made]:
    """The same receipts; the digests of those that are trials are added to ``trials``."""
    for folder, name, data in made:
        if trials is not None and b'"kind":"trial"' in data:
            trials.append(f"sha256:{name}")
        yield folder, name, data


def _put_loose(root: Path, made: Iterable[Made]) -> None:
    for folder, members in groupby(made, key=lambda item: item[0]):
        (root / folder).mkdir(parents=True, exist_ok=True)
        _put_blob(root / folder)
        for _, name, data in members:
            (root / folder / f"{name}.json").write_bytes(data)


def _put_packed(root: Path, made: Iterable[Made]) -> None:
    for month, members in groupby(made, key=lambda item: item[0].rpartition("/")[0]):
        sessions: dict[str, dict[str, bytes]] = {}
        for folder, name, data in members:
            sessions.setdefault(folder.rpartition("/")[2], {})[name] = data
        (root / month).mkdir(parents=True, exist_ok=True)
        for session in sessions:
            _put_blob(root / month / session)
        for pack in packs.make(sorted(sessions.items())):
            (root / month / layout.pack_name(hashlib.sha256(pack).hexdigest())).write_bytes(pack)


def _put_blob(folder: Path) -> None:
    """The blob that the attempts of a session name; corrections name none."""
    if "correction" not in folder.name:
        (folder / "blobs").mkdir(parents=True, exist_ok=True)
        (folder / "blobs" / SPEC_HEX).write_bytes(SPEC)


def _session(index: int, size: int, draw: random.Random) -> Iterator[Made]:
    year, month, day = 2024 + index // 360, index // 30 % 12 + 1, index % 28 + 1
    name = f"{day:02}T{index % 24:02}{index % 60:02}-bench-{index:04x}"
    folder = f"receipts/{year}/{month:02}/{name}"
    at = f"{year}-{month:02}-{day:02}T{index % 24:02}:{index % 60:02}:00Z"
    after, attempt, boot = "", "", ""
    for n in range(size):
        step = n % 4
        arm = ARMS[(n // 4) % len(ARMS)]
        subject = {"spec": "bench", "lane": "smol", "arm": arm, "role": "candidate", "evidence": "measured"}
        kind, body = _body(step, subject, attempt, boot, n, draw)
        envelope = {
            "ledger": 1,
            "kind": kind,
            kind: body,
            "at": at,
            "session": name,
            "chain": {"n": n} | ({"after": after} if after else {}),
            "tool": {"name": "ledger", "version": "0.1.0"},
        }
        data = orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(data).hexdigest()
        after = f"sha256:{digest}"
        attempt, boot = (after if step == 0 else attempt), (after if step == 1 else boot)
        yield folder, digest, data


def _body(step: int, subject: dict[str, str], attempt: str, boot: str, n: int, draw: random.Random) -> tuple[str, dict[str, Any]]:
    if step == 0:
        return "attempt", {
            "subject": subject,
            "number": 1,
            "position": n // 4 + 1,
            "of": 12,
            "spec": _source(),
            "site": _source(),
        }
    if step == 1:
        return "boot", _boot(subject, attempt, draw)
    return "trial", _trial(subject, boot, step - 1, draw)


def _source() -> dict[str, Any]:
    return {"name": "bench", "text": {"mediaType": "application/toml", "digest": f"sha256:{SPEC_HEX}", "size": len(SPEC)}}


def _boot(subject: dict[str, str], attempt: str, draw: random.Random) -> dict[str, Any]:
    identity = {"engine": "llama.cpp", "model": "m", "args.--arm": subject["arm"]}
    return {
        "subject": subject,
        "attempt": attempt,
        "outcome": "ready",
        "fingerprint": "sha256:" + hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        "factors": {"identity": identity, "context": {"backend": "process"}},
        "requested": {"command": ["serve"]},
        "resolved": [{"rank": 0, "node": "n", "argv": ["serve"]}],
        "observed": {"ranks": [{"rank": 0, "argv": ["serve"]}]},
        "agreement": {"state": "agrees"},
        "seconds": _value(draw, 2.0),
    }


def _trial(subject: dict[str, str], boot: str, number: int, draw: random.Random) -> dict[str, Any]:
    return {
        "subject": subject,
        "boot": boot,
        "measure": "decode",
        "number": number,
        "instrument": {"name": "openai/decode", "version": 1, "parameters": {"levels": list(LEVELS)}},
        "figures": dict(_figures(draw)),
        "requests": {"launched": 72, "ok": 72},
        "seconds": _value(draw, 30.0),
    }


def _figures(draw: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """62 figures: C, per_stream and ttft by level and category, and prefill at a few lengths."""
    for level in LEVELS:
        for category in ("", *(f"/{name}" for name in CATEGORIES[:6])):
            yield f"C{level}{category}", _figure(draw, 40.0 * level, "tok/s", "higher")
            yield f"per_stream@C{level}{category}", _figure(draw, 90.0, "tok/s", "higher")
        yield f"ttft@C{level}", _figure(draw, 0.2, "s", "lower")
    for tokens in range(500, 9000, 500):
        yield f"prefill@{tokens}", _figure(draw, 180.0, "tok/s", "higher")


def _figure(draw: random.Random, around: float, unit: str, better: str) -> dict[str, Any]:
    return {"unit": unit, "better": better, "value": _value(draw, around), "n": 8, "statistic": "mean"}


def _value(draw: random.Random, around: float) -> float:
    """About ``around``, with two decimals that are never zero, so that the shortest spelling is also RFC 8785's."""
    return (round(around * draw.gauss(1, 0.01), 1) * 100 + 1 + draw.randrange(9)) / 100


def main() -> None:
    """Write the ledger that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("receipts", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("corrections", type=int, nargs="?", default=0)
    parser.add_argument("--packed", action="store_true", help="in packs instead of a file for each")
    options = parser.parse_args()
    write(options.folder, options.receipts, options.seed, options.corrections, packed=options.packed)


if __name__ == "__main__":
    main()
