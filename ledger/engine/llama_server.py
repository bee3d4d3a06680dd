"""``python -m ledger.engine.llama_server``: llama.cpp's own HTTP server, out of the ``xllamacpp`` wheel.

What it does: gives the server that the wheel holds as a library a command line with llama.cpp's own flag names, prints one
``READY <address>`` line, and serves until SIGTERM or SIGINT. What it does not do: measure, retry, or add an endpoint. Rules
kept: a flag that is not given leaves llama.cpp's default alone; loopback unless ``--host`` says otherwise; imports nothing of
the rest of the package, so that it is started like any foreign engine.
"""

import argparse
import signal
import sys
import threading
import time
from typing import Any

import xllamacpp

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
FLASH_ATTENTION = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}


def parser() -> argparse.ArgumentParser:
    """The command line: llama.cpp's flag names, long forms first."""
    args = argparse.ArgumentParser(prog="python -m ledger.engine.llama_server", description=__doc__, allow_abbrev=False)
    args.add_argument("-m", "--model", required=True, metavar="GGUF")
    args.add_argument("--host", default="127.0.0.1")
    args.add_argument("--port", type=int, default=0, help="0 takes a free port; the READY line says which")
    args.add_argument("-a", "--alias", help="the model's name in the API")
    args.add_argument("-c", "--ctx-size", type=int, help="tokens of context, split over the slots")
    args.add_argument("-np", "--parallel", type=int, help="slots, the requests that decode together")
    args.add_argument("-t", "--threads", type=int)
    args.add_argument("-tb", "--threads-batch", type=int, help="threads for prefill; as --threads when left out")
    args.add_argument("-b", "--batch-size", type=int, help="logical batch")
    args.add_argument("-ub", "--ubatch-size", type=int, help="physical batch")
    args.add_argument("-ctk", "--cache-type-k", choices=KV_TYPES)
    args.add_argument("-ctv", "--cache-type-v", choices=KV_TYPES)
    args.add_argument("-fa", "--flash-attn", choices=sorted(FLASH_ATTENTION))
    args.add_argument("-cb", "--cont-batching", action=argparse.BooleanOptionalAction)
    args.add_argument("--kv-unified", action=argparse.BooleanOptionalAction)
    args.add_argument("--cache-prompt", action=argparse.BooleanOptionalAction, help="the prefix cache")
    args.add_argument("--cache-ram", type=int, metavar="MIB", help="memory for cached prompts of other slots")
    return args


def parameters(options: argparse.Namespace) -> Any:
    """xllamacpp's ``CommonParams`` for the options; what is not given keeps llama.cpp's default."""
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = [options.host]
    params.port = options.port
    params.use_jinja = True
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    for name, value in _plain(options).items():
        if value is not None:
            setattr(params, name, value)
    if options.alias:
        params.model_alias = {options.alias}
    if options.threads:
        params.cpuparams.n_threads = options.threads
    if options.threads_batch or options.threads:
        params.cpuparams_batch.n_threads = options.threads_batch or options.threads
    if options.cache_type_k:
        params.cache_type_k = _kv_type(options.cache_type_k)
    if options.cache_type_v:
        params.cache_type_v = _kv_type(options.cache_type_v)
    if options.flash_attn:
        name = f"LLAMA_FLASH_ATTN_TYPE_{FLASH_ATTENTION[options.flash_attn]}"
        params.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, name)
    return params


def _plain(options: argparse.Namespace) -> dict[str, int | bool | None]:
    """The options whose llama.cpp field takes the value as it is."""
    return {
        "n_ctx": options.ctx_size,
        "n_parallel": options.parallel,
        "n_batch": options.batch_size,
        "n_ubatch": options.ubatch_size,
        "cont_batching": options.cont_batching,
        "kv_unified": options.kv_unified,
        "cache_prompt": options.cache_prompt,
        "cache_ram_mib": options.cache_ram,
    }


def _kv_type(name: str) -> Any:
    return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")


def main() -> int:
    """Serve until a signal; returns 0, or 1 when the server does not start."""
    options = parser().parse_args()
    started = time.perf_counter()
    try:
        server = xllamacpp.Server(parameters(options))
    except RuntimeError as error:
        print(f"llama_server: {error}", file=sys.stderr, flush=True)
        return 1
    print(f"READY {server.listening_address} after {time.perf_counter() - started:.3f} s", flush=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
