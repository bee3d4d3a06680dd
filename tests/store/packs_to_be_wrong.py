"""Every way in which a pack can be wrong, as functions that make a whole ledger so, each with the code that verify has for it.

What it does: packs the receipts of a real ledger, and damages, forges and misplaces the pack. What it does not do: check;
``test_verify`` does. Rule kept: each function makes one thing wrong.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path

from ledger.store import layout, packs
from ledger.store.ledger import Ledger
from tests.builder import Builder
from tests.store.ways_to_be_wrong import Wrong, files

# Where the digests of a pack's first block begin: behind gzip's fixed header and the head of its one extra field.
HEADER = 20


def packed(ledger: Ledger) -> Path:
    """Put every receipt of the ledger's one session into a pack, and take the loose files away."""
    folder = next(ledger.sessions())
    paths = sorted(folder.glob("*.json"))
    (data,) = packs.make([(folder.name, {path.stem: path.read_bytes() for path in paths})])
    for path in paths:
        path.unlink()
    return write_pack(folder.parent, data)


def write_pack(month: Path, data: bytes) -> Path:
    path = month / layout.pack_name(hashlib.sha256(data).hexdigest())
    path.write_bytes(data)
    return path


def repacked(ledger: Ledger, change: Callable[[bytearray], object]) -> None:
    """A pack with changed bytes under the name of the changed bytes, as a forger would."""
    path = packed(ledger)
    data = bytearray(path.read_bytes())
    change(data)
    path.unlink()
    write_pack(path.parent, bytes(data))


def pack_has_a_flipped_bit(ledger: Ledger, build: Builder) -> None:
    path = packed(ledger)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def pack_is_truncated(ledger: Ledger, build: Builder) -> None:
    path = packed(ledger)
    path.write_bytes(path.read_bytes()[:-40])


def pack_is_empty(ledger: Ledger, build: Builder) -> None:
    packed(ledger).write_bytes(b"")


def pack_is_any_gzip(ledger: Ledger, build: Builder) -> None:
    write_pack(build.writer.folder.parent, gzip.compress(b'{"kind":"note"}\n'))


def pack_has_something_behind_it(ledger: Ledger, build: Builder) -> None:
    repacked(ledger, lambda data: data.extend(b"more"))


def pack_is_of_no_session(ledger: Ledger, build: Builder) -> None:
    session = build.writer.folder.name.encode()
    repacked(ledger, lambda data: data.__setitem__(slice(0, None), data.replace(session, b"../" * 6 + session[18:])))


def pack_that_unpacks_to_a_terabyte(ledger: Ledger, build: Builder) -> None:
    repacked(ledger, lambda data: data.__setitem__(slice(-4, None), b"\xff\xff\xff\xff"))


def pack_that_holds_more_than_it_says(ledger: Ledger, build: Builder) -> None:
    repacked(ledger, lambda data: data.__setitem__(slice(-4, None), b"\x10\x00\x00\x00"))


def pack_out_of_order(ledger: Ledger, build: Builder) -> None:
    def swap(data: bytearray) -> None:
        first, second = data[HEADER : HEADER + 32], data[HEADER + 32 : HEADER + 64]
        data[HEADER : HEADER + 64] = second + first

    repacked(ledger, swap)


def pack_with_a_receipt_twice(ledger: Ledger, build: Builder) -> None:
    repacked(ledger, lambda data: data.__setitem__(slice(HEADER + 32, HEADER + 64), data[HEADER : HEADER + 32]))


def pack_of_zeros_without_end(ledger: Ledger, build: Builder) -> None:
    """A block of a few kilobytes whose text goes on for longer than its trailer says, by a thousand to one."""
    path = packed(ledger)
    whole = path.read_bytes()
    (block,) = packs.blocks(path)
    start = HEADER + len(block.hashes) + len(block.session) + 1
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflater.compress(bytes(64 * 2**20)) + deflater.flush()
    data = bytearray(whole[:start] + body + whole[-8:])
    data[HEADER - 4 : HEADER] = len(data).to_bytes(4, "little")
    path.unlink()
    write_pack(path.parent, bytes(data))


def packed_and_loose_with_other_bytes(ledger: Ledger, build: Builder) -> None:
    loose = {path: path.read_bytes() for path in files(ledger, "note")}
    packed(ledger)
    for path, data in loose.items():
        path.write_bytes(data.replace(b'"seen"', b'"Seen"'))


def pack_with_another_receipt_under_a_digest(ledger: Ledger, build: Builder) -> None:
    folder = next(ledger.sessions())
    path = sorted(folder.glob("*.json"))[0]
    data = path.read_bytes().replace(b'"at":"2026', b'"at":"2025')
    path.unlink()
    (made,) = packs.make([(folder.name, {path.stem: data})])
    write_pack(folder.parent, made)


def pack_is_a_link(ledger: Ledger, build: Builder) -> None:
    path = packed(ledger)
    target = ledger.root.parent / path.name
    path.rename(target)
    path.symlink_to(target)


def pack_in_a_session(ledger: Ledger, build: Builder) -> None:
    path = packed(ledger)
    build.writer.folder.mkdir(exist_ok=True)
    path.rename(build.writer.folder / path.name)


def five_gigabyte_pack(ledger: Ledger, build: Builder) -> None:
    with (build.writer.folder.parent / layout.pack_name("f" * 64)).open("wb") as file:
        file.truncate(5 * 2**30)


WRONG_PACKS: tuple[tuple[Wrong, str], ...] = (
    (pack_has_a_flipped_bit, "pack"),
    (pack_is_truncated, "pack"),
    (pack_is_empty, "pack"),
    (pack_is_any_gzip, "pack"),
    (pack_has_something_behind_it, "pack"),
    (pack_is_of_no_session, "pack"),
    (pack_that_unpacks_to_a_terabyte, "pack"),
    (pack_that_holds_more_than_it_says, "unreadable"),
    (pack_out_of_order, "pack"),
    (pack_with_a_receipt_twice, "pack"),
    (pack_of_zeros_without_end, "unreadable"),
    (packed_and_loose_with_other_bytes, "digest"),
    (pack_with_another_receipt_under_a_digest, "digest"),
    (pack_is_a_link, "link"),
    (pack_in_a_session, "stranger"),
    (five_gigabyte_pack, "pack"),
)
