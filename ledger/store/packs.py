"""Packs: many receipts in one compressed file that plain tools open.

What it does: makes the bytes of packs, reads which receipts a pack holds, and reads those. What it does not do: decide what is
packed (``packing``), or say what a receipt means. Rules kept: a pack is gzip over JSON Lines, so that ``zcat`` gives every
receipt back byte for byte; its name is the digest of its bytes; it is made of blocks, each a gzip member of one session whose
header lists the digests of its lines in order, so that nothing is unpacked to find a receipt; sizes are bounded before they are
believed.

A block is, by RFC 1952: the fixed header with FEXTRA and FNAME set and no time; the extra field ``LR`` with the size of the
whole member (4 bytes, little endian) and 32 bytes for each receipt; the session's name; the lines, deflated; CRC and size.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from attrs import frozen

from ledger.core import digest
from ledger.core.errors import Place, Problem, StoreError
from ledger.store import layout, objects

MAX_PACK = 256 * 2**20
# What a pack and a block may unpack to; a block of one receipt may be as large as a receipt.
MAX_UNPACKED = 4 * 2**30
MAX_BLOCK = 64 * 2**20 + 1
# Where the writer begins a new block and a new pack: hosts of git refuse files above 100 MB.
BLOCK_BYTES = 2**20
BLOCK_RECEIPTS = 512
PACK_BYTES = 32 * 2**20
UNPACKED_BYTES = 2**30
LEVEL = 6

_FIXED = struct.Struct("<4sIBBH")  # magic, method and flags; time; hints; system; length of the extra field
_FIELD = struct.Struct("<2sHI")  # name and length of the one extra field; size of the member
_TRAILER = struct.Struct("<II")  # CRC; unpacked size
_START = b"\x1f\x8b\x08\x0c"
_ID = b"LR"
_UNKNOWN_SYSTEM = 255
_HASH = 32
_SESSION_ROOM = 128
_GZIP = 31
_FIRST_LOOK = 4096


@frozen(kw_only=True)
class Block:
    """Receipts of one session: the pack, where the block stands in it, and the digests of its lines as raw bytes in a row."""

    path: Path
    session: str
    hashes: bytes
    offset: int
    size: int
    unpacked: int

    def names(self) -> list[str]:
        """The digests of the lines in order, as bare hex."""
        text = self.hashes.hex()
        return [text[at : at + 2 * _HASH] for at in range(0, len(text), 2 * _HASH)]

    def holds(self, hex_digest: str) -> bool:
        """Whether the receipt of this digest is here."""
        wanted, at = bytes.fromhex(hex_digest), -1
        while (at := self.hashes.find(wanted, at + 1)) >= 0:
            if at % _HASH == 0:
                return True
        return False


def blocks(path: Path) -> Sequence[Block]:
    """What the pack holds, by its headers alone.

    Raises:
        StoreError: not a regular file, too large, or not a pack from its first byte to its last.
    """
    try:
        about = path.lstat()
    except OSError as error:
        raise objects.refused(error, path) from error
    return _blocks(path, about.st_mtime_ns, about.st_size, about.st_ino)


def blocks_in(data: bytes, path: Path) -> list[Block]:
    """What the bytes of a pack hold; ``path`` is where they are from.

    Raises:
        StoreError: they are no pack.
    """
    if len(data) > MAX_PACK:
        raise _no_pack(path, f"{len(data)} bytes, and at most {MAX_PACK} are read")
    return list(_headers(lambda at, size: data[at : at + size], len(data), path))


def packed_names(data: bytes, path: Path) -> set[str]:
    """The digests of the receipts in the bytes of a pack, with their prefix.

    Raises:
        StoreError: they are no pack.
    """
    return {digest.PREFIX + name for block in blocks_in(data, path) for name in block.names()}


def contents(block: Block) -> list[bytes]:
    """The receipts of a block in order. Their digests are not checked here.

    Raises:
        StoreError: the file is gone or changed, or the block does not unpack to what its header says.
    """
    try:
        with objects.opened(block.path) as fd:
            data = os.pread(fd, block.size, block.offset)
    except OSError as error:
        raise objects.refused(error, block.path) from error
    try:
        unpacker = zlib.decompressobj(_GZIP)
        text = unpacker.decompress(data, block.unpacked + 1)
    except zlib.error as error:
        raise _no_pack(block.path, f"the block at {block.offset} is damaged: {error}") from error
    lines = text.split(b"\n")
    whole = unpacker.eof and not unpacker.unused_data and len(text) == block.unpacked and not lines.pop()
    if not whole or len(lines) * _HASH != len(block.hashes):
        raise _no_pack(block.path, f"the block at {block.offset} does not hold what its header says")
    return lines


def find(month: Path, session: str, hex_digest: str) -> Block | None:
    """The block that holds a receipt of a session of that month; None when no pack has it."""
    return next((block for block in packed_in(month).get(session, ()) if block.holds(hex_digest)), None)


def line(block: Block, hex_digest: str) -> bytes:
    """One receipt that the block holds. Its digest is not checked here.

    Raises:
        StoreError: as :func:`contents`.
    """
    return contents(block)[block.names().index(hex_digest)]


class Proofs:
    """Which loose receipts are packed as well, by packs that were read and hashed from end to end, each once."""

    def __init__(self) -> None:
        self._months: dict[Path, dict[tuple[str, str], Path]] = {}

    def holder(self, path: Path) -> Path | None:
        """The whole pack that holds the receipt of this loose file; None when there is none, or the file is no receipt."""
        name = layout.hex_of(path.name)
        month = path.parent.parent
        if name is None:
            return None
        if month not in self._months:
            self._months[month] = {}
            for pack in packs_in(month):
                with suppress(StoreError):
                    self._months[month] |= _proven(pack)
        return self._months[month].get((path.parent.name, name))

    def holds(self, path: Path) -> bool:
        """Whether a whole pack holds the receipt of this loose file."""
        return self.holder(path) is not None


def packs_in(month: Path) -> list[Path]:
    """The packs of a month, in name order."""
    try:
        with os.scandir(month) as entries:
            names = [entry.name for entry in entries if layout.pack_of(entry.name) and entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [month / name for name in sorted(names)]


def packed_in(month: Path) -> dict[str, list[Block]]:
    """The blocks of a month's packs by session; a pack that is none is passed over."""
    found: dict[str, list[Block]] = {}
    for path in packs_in(month):
        with suppress(StoreError):
            for block in blocks(path):
                found.setdefault(block.session, []).append(block)
    return found


def make(sessions: Iterable[tuple[str, Mapping[str, bytes]]]) -> Iterator[bytes]:
    """The bytes of packs that hold these sessions, each its receipts by bare hex digest, in the order in which they are given.

    Receipts are one line each, which canonical JSON always is. A new pack begins where one would become too large.
    """
    members: list[bytes] = []
    size = unpacked = 0
    for session, receipts in sessions:
        for part in _parts(receipts):
            text = b"".join(data + b"\n" for _, data in part)
            if members and (size > PACK_BYTES or unpacked + len(text) > UNPACKED_BYTES):
                yield b"".join(members)
                members, size, unpacked = [], 0, 0
            members.append(_member(session, [name for name, _ in part], text))
            size, unpacked = size + len(members[-1]), unpacked + len(text)
    if members:
        yield b"".join(members)


def _parts(receipts: Mapping[str, bytes]) -> Iterator[list[tuple[str, bytes]]]:
    """The receipts of a session in the order of their digests, in parts for a block each."""
    part: list[tuple[str, bytes]] = []
    size = 0
    for name, data in sorted(receipts.items()):
        if part and (size + len(data) > BLOCK_BYTES or len(part) == BLOCK_RECEIPTS):
            yield part
            part, size = [], 0
        part.append((name, data))
        size += len(data) + 1
    if part:
        yield part


def _member(session: str, names: Sequence[str], text: bytes) -> bytes:
    deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = deflater.compress(text) + deflater.flush()
    hashes = bytes.fromhex("".join(names))
    file_name = session.encode() + b"\0"
    extra = _FIELD.size + len(hashes)
    size = _FIXED.size + extra + len(file_name) + len(deflated) + _TRAILER.size
    return b"".join(
        (
            _FIXED.pack(_START, 0, 0, _UNKNOWN_SYSTEM, extra),
            _FIELD.pack(_ID, extra - 4, size),
            hashes,
            file_name,
            deflated,
            _TRAILER.pack(zlib.crc32(text), len(text)),
        )
    )


def _proven(path: Path) -> dict[tuple[str, str], Path]:
    """Session and digest of every receipt of a pack, each read and hashed.

    Raises:
        StoreError: the pack's bytes are not those of its name, or a receipt's are not.
    """
    found: dict[tuple[str, str], Path] = {}
    whole = layout.pack_name(digest.hex_of(digest.of_bytes(objects.read(path, MAX_PACK)))) == path.name
    for block in blocks(path):
        for name, data in zip(block.names(), contents(block), strict=True):
            whole = whole and digest.hex_of(digest.of_bytes(data)) == name
            found[block.session, name] = path
    if not whole:
        raise _no_pack(path, "its bytes are not those of its name, or of a receipt's")
    return found


# Headers are asked for again and again while receipts are read one by one, and a pack never changes.
@lru_cache(maxsize=4096)
def _blocks(path: Path, _changed: int, size: int, _inode: int) -> Sequence[Block]:
    if size > MAX_PACK:
        raise _no_pack(path, f"{size} bytes, and at most {MAX_PACK} are read")
    try:
        with objects.opened(path) as fd:
            return tuple(_headers(lambda at, length: os.pread(fd, length, at), size, path))
    except OSError as error:
        raise objects.refused(error, path) from error


def _headers(read: Callable[[int, int], bytes], end: int, path: Path) -> Iterator[Block]:
    """The blocks of a pack of ``end`` bytes; ``read`` gives the bytes at an offset."""
    at = total = 0
    while at < end:
        block = _block(read, at, end, path)
        total += block.unpacked
        if total > MAX_UNPACKED:
            raise _no_pack(path, f"it would unpack to more than {MAX_UNPACKED} bytes")
        yield block
        at += block.size
    if not end:
        raise _no_pack(path, "it is empty")


def _block(read: Callable[[int, int], bytes], at: int, end: int, path: Path) -> Block:
    head = read(at, _FIRST_LOOK)
    if len(head) < _FIXED.size + _FIELD.size or not head.startswith(_START):
        raise _no_pack(path, f"no block at {at}")
    *_, extra = _FIXED.unpack_from(head)
    field, length, size = _FIELD.unpack_from(head, _FIXED.size)
    first, last = _FIXED.size + _FIELD.size, _FIXED.size + extra
    if field != _ID or length != extra - 4 or (last - first) % _HASH or last == first:
        raise _no_pack(path, f"the block at {at} does not list its receipts")
    if not last + _TRAILER.size < size <= end - at:
        raise _no_pack(path, f"the block at {at} says that it has {size} bytes")
    if last + _SESSION_ROOM > len(head):
        head = read(at, last + _SESSION_ROOM)
    session = head[last : last + _SESSION_ROOM].partition(b"\0")[0].decode("ascii", "replace")
    if layout.SESSION.fullmatch(session) is None:
        raise _no_pack(path, f"the block at {at} is of no session")
    hashes = [head[start : start + _HASH] for start in range(first, last, _HASH)]
    if any(one >= other for one, other in pairwise(hashes)):
        raise _no_pack(path, f"the receipts of the block at {at} are not in the order of their digests, each once")
    _, unpacked = _TRAILER.unpack(read(at + size - _TRAILER.size, _TRAILER.size))
    if unpacked > MAX_BLOCK:
        raise _no_pack(path, f"the block at {at} would unpack to {unpacked} bytes")
    return Block(path=path, session=session, hashes=head[first:last], offset=at, size=size, unpacked=unpacked)


def _no_pack(path: Path, what: str) -> StoreError:
    hint = "ledger verify says what is lost; git checkout -- <file> restores it"
    return StoreError(Problem(what=f"not a pack: {what}", place=Place(file=str(path)), hint=hint))
