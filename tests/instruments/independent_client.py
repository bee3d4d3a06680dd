"""A second client, to hold the first one against: the standard library and nothing of this project.

It measures what the glossary defines: C<n>, tokens of all streams over the time from the first start to the last text, and the
rate of one stream, (tokens - 1) over the time from its first to its last text; the mean over the prompts. It reads lines with
``urllib`` and parses while it reads, where the project's client reads bytes and parses afterwards.

    python tests/instruments/independent_client.py http://127.0.0.1:8080 MODEL
"""

import json
import sys
import threading
import time
import urllib.request
from statistics import mean

PROMPTS = ("Name the months and the weather of each.", "Explain how a bicycle stays upright.")


def stream(url: str, body: dict, barrier: threading.Barrier, out: list) -> None:
    """One stream: appends (start, first text, last text, tokens), in seconds."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    barrier.wait()
    start, first, last, tokens = time.perf_counter(), None, None, None
    with direct.open(request, timeout=600) as lines:
        for line in lines:
            now = time.perf_counter()
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
            for choice in event.get("choices", []):
                if choice["delta"].get("content"):
                    first, last = first or now, now
    out.append((start, first, last, tokens))


def batch(base_url: str, model: str, prompt: str, level: int, tokens: int, tag: str) -> tuple[float, float]:
    """One prompt at one concurrency: (tokens a second of the batch, tokens a second of one stream)."""
    barrier, out, threads = threading.Barrier(level), [], []
    for number in range(level):
        body = {
            "model": model,
            "messages": [
                {"role": "system", "content": f"{tag}{number:02x} You answer in plain words."},
                {"role": "user", "content": prompt},
            ],
            "max_tokens": tokens,
            "temperature": 0,
            "top_p": 1,
            "seed": 1,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        threads.append(threading.Thread(target=stream, args=(base_url + "/v1/chat/completions", body, barrier, out)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(out) != level or any(count != tokens for *_, count in out):
        raise RuntimeError(f"not every stream came whole: {out}")
    wall = max(last for _, _, last, _ in out) - min(start for start, *_ in out)
    return level * tokens / wall, mean((count - 1) / (last - first) for _, first, last, count in out)


def measure(base_url: str, model: str, prompts: tuple[str, ...], level: int, tokens: int, tag: str) -> tuple[float, float]:
    """C<level> and the rate of one stream at it, each the mean over ``prompts``; ``tag`` makes the prompts unique."""
    done = [batch(base_url, model, prompt, level, tokens, f"{tag}{index:02x}") for index, prompt in enumerate(prompts)]
    return mean(rate for rate, _ in done), mean(rate for _, rate in done)


if __name__ == "__main__":
    for streams in (1, 2):
        aggregate, single = measure(sys.argv[1], sys.argv[2], PROMPTS, streams, 64, f"{time.time_ns() % 0xFFFF:04x}")
        print(f"C{streams} {aggregate:.1f} tok/s, per stream {single:.1f} tok/s")
