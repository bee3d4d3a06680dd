"""Ledgers of any size, made from a seed: what the benchmarks measure on.

What it does: writes sessions of attempts, boots and trials (62 metrics each, about 4 KB) in the real layout, canonical and named
by digest, chained and linked, so that ``ledger verify`` is clean. What it does not do: measure anything. Rule kept: the same
count and seed give the same bytes.

usage: python benchmarks/synthetic.py FOLDER RECEIPTS [SEED] [CORRECTIONS]    one correction retracts one trial, drawn at random
"""

import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

ARMS = ("control", "threads-2", "ubatch-64", "kv-k-q8", "no-flash", "mnbt-16k", "one-rail", "merged")
CATEGORIES = ("code", "json", "narrative", "prose", "math", "reasoning", "summary", "format")
LEVELS = (1, 2, 6)
PER_SESSION = 48
SPEC = b"ledger = 1\n"
SPEC_HEX = hashlib.sha256(SPEC).hexdigest()


def receipts(count: int, seed: int) -> Iterator[tuple[str, str, bytes]]:
    """``count`` receipts as (session path, hex name, bytes), session after session."""
    made = session = 0
    while made < count:
        for item in _session(session, min(PER_SESSION, count - made), random.Random(f"{seed}/{session}")):
            yield item
            made += 1
        session += 1


def corrections(targets: Sequence[str], seed: int) -> Iterator[tuple[str, str, bytes]]:
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


def write(root: Path, count: int, seed: int = 1, corrected: int = 0) -> None:
    """Write them below ``root``; a ``ledger.toml`` marks the folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "ledger.toml").write_text("ledger = 1\n")
    made: set[str] = set()
    trials = []
    for folder, name, data in receipts(count, seed):
        trials += [f"sha256:{name}"] if b'"kind":"trial"' in data else []
        _put(root, folder, name, data, made)
    chosen = random.Random(f"{seed}/chosen").sample(trials, min(corrected, len(trials)))
    for folder, name, data in corrections(chosen, seed):
        _put(root, folder, name, data, made)


def _put(root: Path, folder: str, name: str, data: bytes, made: set[str]) -> None:
    if folder not in made:
        (root / folder / "blobs").mkdir(parents=True, exist_ok=True)
        if "correction" not in folder:
            (root / folder / "blobs" / SPEC_HEX).write_bytes(SPEC)
        made.add(folder)
    (root / folder / f"{name}.json").write_bytes(data)


def _session(index: int, size: int, draw: random.Random) -> Iterator[tuple[str, str, bytes]]:
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


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
