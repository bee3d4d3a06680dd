"""``ledger show``: one receipt, for people.

What it does: prints what a receipt says, with its marks, links and blobs, and the corrections that touch it. What it does not
do: judge it. Rules kept: everything in it passes as text from outside; ``--raw`` gives the bytes of the file and
nothing else, but to a terminal as text.
"""

import sys
import zlib
from collections.abc import Iterable, Iterator

import click
from attrs import asdict

from ledger.cli.complete import complete_name
from ledger.cli.receipt import show_receipt
from ledger.cli.screen import show_json, show_line, show_remark
from ledger.cli.state import State, json_option, pass_state
from ledger.core.errors import ExitCode, NotFoundError, Problem
from ledger.query.index import open_index
from ledger.query.names import resolve
from ledger.query.standing import standing
from ledger.receipt import codec
from ledger.receipt.model import Receipt, blobs
from ledger.store.large import fetch, is_large
from ledger.store.ledger import Ledger

BLOB_SHOWN = 4 * 2**20
PIECE = 2**20


@click.command()
@click.argument("name", shell_complete=complete_name)
@click.option("--raw", is_flag=True, help="Print the file's bytes, as they are; on a terminal, escaped.")
@click.option("--blob", "blob_number", type=click.IntRange(1), metavar="N", help="Print its Nth blob, unpacked if it is gzip.")
@click.option("--all", "show_all", is_flag=True, help="Show every figure, the parts too.")
@json_option
@pass_state
def show(state: State, name: str, raw: bool, blob_number: int | None, show_all: bool, as_json: bool) -> int:
    """Show the receipt NAME: a digest's first digits, ARM, ARM/MEASURE or SPEC:ARM/MEASURE; `~1` is the one before."""
    ledger = Ledger.find(state.directory)
    with open_index(ledger) as connection:
        digest = resolve(connection, name)
        stands = standing(connection, digest)
    data = ledger.read_bytes(digest)
    receipt = codec.decode(data)
    if raw:
        _show_bytes([data])
    elif blob_number is not None:
        _show_blob(ledger, receipt, blob_number)
    elif as_json:
        show_json({"digest": digest, "receipt": codec.to_wire(receipt), "corrections": [asdict(item) for item in stands.strikes]})
    else:
        show_receipt(digest, receipt, stands, show_all=show_all)
    return ExitCode.YES


def _show_blob(ledger: Ledger, receipt: Receipt, wanted: int) -> None:
    """Print a blob, unpacked where its type says that it is packed."""
    listed = blobs(receipt)
    if wanted > len(listed):
        raise NotFoundError(Problem(what=f"this receipt has {len(listed)} blobs", value=str(wanted)))
    asked = listed[wanted - 1]
    if is_large(ledger, asked.size):
        fetch(ledger, asked)
    data = ledger.read_blob(receipt.session, asked)
    _show_bytes(_unpacked(data) if asked.mediaType.endswith("+gzip") else [data])


def _show_bytes(pieces: Iterable[bytes]) -> None:
    """Print bytes as they are; on a terminal, the first of them as text that it cannot be harmed by."""
    if not sys.stdout.isatty():
        sys.stdout.buffer.writelines(pieces)
        return
    shown = b""
    for piece in pieces:
        shown += piece[: BLOB_SHOWN - len(shown)]
        if len(shown) == BLOB_SHOWN:
            show_remark(f"the first {BLOB_SHOWN} bytes; on a pipe all of them are printed")
            break
    show_line(shown.decode("utf-8", "replace"))


def _unpacked(data: bytes) -> Iterator[bytes]:
    """The content of gzip ``data``, piece by piece, since a small blob may hold a very large one."""
    left = data
    try:
        while left:
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            while not unpacker.eof:
                piece = unpacker.decompress(left, PIECE)
                left = unpacker.unconsumed_tail
                if not (piece or left or unpacker.eof):
                    raise NotFoundError("the blob is cut off: its gzip has no end")
                yield piece
            left = unpacker.unused_data.lstrip(b"\0")
    except zlib.error as error:
        raise NotFoundError(Problem(what=f"the blob is not gzip: {error}")) from error
