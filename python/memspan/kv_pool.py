# SPDX-License-Identifier: Apache-2.0
"""A pool of KV blocks (or any entries of bytes) for many processes: put once under a hash of what they
hold, found by every member, evicted by a clock when the pool is full.

    pool = KvPool("tcp://127.0.0.1:8574", share=1 << 30)
    pool.put([key], [block])            # key: bytes; block: an object with a buffer
    if pool.lookup([key]) == 1:
        pool.get([key], [target])

Members are processes of a host, or of several, over the store at one URL; each gives a share of memory,
or none. ``python -m memspan.kv_pool --share 8G`` is a member that gives memory and does nothing else, so
that what engines put survives them. docs/kv_pool.md says how it is meant.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from memspan import _core
from memspan.errors import Error, InvalidArgument
from memspan.fabric import bm, common
from memspan.owner import Owner
from memspan.remedy import remedy
from memspan.types import Array, Buffer, Numbers

__all__ = ["USUAL_STORE", "KvPool", "bytes_of"]

_c = _core.smem

USUAL_STORE = "tcp://127.0.0.1:8574"
"""The default address of a pool's store."""

_KEY_BYTES = 32
_LARGEST_SHARE = 64 << 30
_MEMBERS = 64
_POOL_ID = 74  # of the pools of Big Memory at that store
_INVALID_PARAM = -2000
_ABSENT, _NO_ROOM = 0, -1
_TIMEOUT_S = 30

# Processes are members of Big Memory once, whatever pools they have. The membership ends with the
# last of the pools, unless it is the program's own.
_users_lock = threading.Lock()
_users = 0
_is_programs_own = False


def _check(code: int, doing: str, results: list[int] | None = None) -> None:
    if code != 0:
        kind = InvalidArgument if code == _INVALID_PARAM else Error
        error = kind(f"{doing}: {common.get_last_err_msg()}", code)
        error.results = results
        raise error


def _digest(keys: Sequence[bytes]) -> bytes:
    """All keys behind each other, 32 bytes each: a longer or shorter one by its BLAKE2b."""
    return b"".join(
        key if len(key) == _KEY_BYTES else hashlib.blake2b(key, digest_size=_KEY_BYTES).digest()
        for key in keys
    )


_OTHER_STORE = remedy(
    "one-store",
    "A process can be a member of pools at one store only.",
    "Use the same store_url for all pools of the process, or destroy() the first pool before.")
_SHARE = remedy(
    "share-too-large",
    "largest_share bounds the share of each member, and all members must agree in it.",
    "Pass a larger largest_share in all members (it reserves addresses, not memory), or a smaller share.")


def _size(name: str, given: int | str) -> int:
    try:
        return bytes_of(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InvalidArgument(f"{name}: {error}", _INVALID_PARAM) from None


def _join_members(store_url: str, members: int, hosts_store: bool, timeout_s: int) -> None:
    global _users, _is_programs_own
    with _users_lock:
        known = bm.store_url()
        if known and known != store_url:
            raise InvalidArgument(
                f"store_url is {store_url}, and this process is a member at {known} already; "
                f"allowed is one store for all pools of a process{_OTHER_STORE}",
                _INVALID_PARAM,
            )
        if _users == 0 or not known:
            _is_programs_own = bool(known)
        if not known:
            config = bm.BmConfig(
                init_timeout=timeout_s,
                create_timeout=timeout_s,
                operation_timeout=timeout_s,
                start_store=hosts_store,
            )
            _check(
                bm.initialize(store_url, members, 0, config), f"the KV pool's store at {store_url}"
            )
        _users += 1


def _leave_members() -> None:
    global _users
    with _users_lock:
        _users -= 1
        if _users == 0 and not _is_programs_own:
            bm.uninitialize()


def _leave(handle: int) -> None:
    _c.bm_destroy(handle)
    _leave_members()


class KvPool(Owner):
    """This process as a member of the pool at ``store_url``. Thread-safe. ``destroy()`` leaves it,
    and the others lose the entries in this process's share. See ``Owner`` for its end.

    ``share``: bytes of memory that it gives, 0 or 1 MiB and more, or a text such as "4G"; ``largest_share``: of
    any member, and ``members``: how many there may be at most, in which all members agree; ``sections``: parts
    of the share, each of which has entries of about one size, 0: one for each 64 MiB, up to 32; ``host_store``:
    whether it hosts the store if none runs; ``timeout_s``: of the start. ``memspan.Error`` when it cannot join,
    ``memspan.InvalidArgument`` for sizes that cannot be."""

    def __init__(
        self,
        store_url: str = USUAL_STORE,
        share: int | str = 0,
        *,
        largest_share: int | str = _LARGEST_SHARE,
        members: int = _MEMBERS,
        sections: int = 0,
        host_store: bool = True,
        timeout_s: int = _TIMEOUT_S,
    ) -> None:
        self._handle = 0
        share, largest_share = _size("share", share), _size("largest_share", largest_share)
        if share > largest_share:
            raise InvalidArgument(
                f"share is {share} bytes, allowed are up to largest_share, {largest_share}{_SHARE}",
                _INVALID_PARAM,
            )
        _join_members(store_url, members, host_store, timeout_s)
        try:
            sizes = (largest_share, 0, share, 0)
            self._handle = _c.bm_create2(_POOL_ID, *sizes, int(bm.BmDataOpType.SDMA), 0, "", "", -1)
            if self._handle == 0:
                raise Error(f"making the KV pool: {common.get_last_err_msg()}", -1)
            _check(_c.kv_start(self._handle, sections), "the share of the KV pool")
            _check(_c.bm_join(self._handle, 0)[0], "joining the KV pool")
        except BaseException:
            if self._handle:
                _c.bm_destroy(self._handle)
                self._handle = 0
            _leave_members()
            raise

    def destroy(self) -> None:
        """Leaves the pool; again is nothing."""
        self._end(_leave)

    def lookup(self, keys: Sequence[bytes]) -> int:
        """The number of keys, from the first on, that are present without a gap. Marks all present
        keys as used."""
        code, found, _ = _c.kv_lookup(self._handle, _digest(keys))
        _check(code, "looking KV blocks up")
        return found

    def sizes(self, keys: Sequence[bytes]) -> list[int]:
        """The bytes of each key's entry, 0 if it is missing. Marks them as used."""
        code, _, sizes = _c.kv_lookup(self._handle, _digest(keys))
        _check(code, "looking KV blocks up")
        return sizes

    def contains(self, key: bytes) -> bool:
        """Whether there is an entry."""
        return self.lookup([key]) == 1

    def put(self, keys: Sequence[bytes], sources: Sequence[Buffer | Array]) -> list[bool]:
        """Puts each key's entry from an object with a buffer: whether it is present now, or another
        member is putting it. False if no slot is free: all that could hold it are in use, or too
        small. ValueError for objects without a buffer. ``results`` of a ``memspan.Error``: as
        ``put_pieces_outcomes``."""
        return self._each(_c.kv_put_from, "putting KV blocks", keys, sources, _NO_ROOM)

    def get(self, keys: Sequence[bytes], targets: Sequence[Buffer | Array]) -> list[bool]:
        """Copies each key's entry into an object with a buffer of its size: whether it was present.
        The object of a missing entry has undefined contents. ValueError for other sizes and for
        objects that may not be written to. ``results`` of a ``memspan.Error``: 1 copied, 0 not."""
        return self._each(_c.kv_get_into, "getting KV blocks", keys, targets, _ABSENT)

    def _each(
        self,
        move: Callable[[int, bytes, Any, int], tuple[int, int]],
        doing: str,
        keys: Sequence[bytes],
        memory: Sequence[Buffer | Array],
        unmoved: int,
    ) -> list[bool]:
        if len(keys) != len(memory):
            raise ValueError(f"there are {len(keys)} keys and {len(memory)} buffers")
        results = [unmoved] * len(keys)
        for i, (key, place) in enumerate(zip(keys, memory)):
            size = memoryview(place).nbytes  # type: ignore[arg-type]
            try:
                code, results[i] = move(self._handle, _digest([key]), place, size)
                _check(code, doing)
            except Error as error:
                error.results = results
                raise
        return [result > 0 for result in results]

    def put_pieces(self, keys: Sequence[bytes], addresses: Numbers, sizes: Numbers) -> list[bool]:
        """``put`` of entries in pieces: key i's are the bytes at the i-th ``len(sizes)`` of the
        addresses, of ``sizes`` bytes each."""
        return [outcome > 0 for outcome in self.put_pieces_outcomes(keys, addresses, sizes)]

    def put_pieces_outcomes(
        self, keys: Sequence[bytes], addresses: Numbers, sizes: Numbers
    ) -> list[int]:
        """As ``put_pieces``, and each result: 1 put, 2 already present, -1 no free slot. A
        ``memspan.Error`` has the same in ``results``; it is -1 from the key that failed on."""
        code, results = _c.kv_put(self._handle, _digest(keys), addresses, sizes)
        _check(code, "putting KV blocks", results)
        return results

    def get_pieces(self, keys: Sequence[bytes], addresses: Numbers, sizes: Numbers) -> list[bool]:
        """``get`` into pieces, as ``put_pieces`` has them."""
        code, results = _c.kv_get(self._handle, _digest(keys), addresses, sizes)
        _check(code, "getting KV blocks", results)
        return [result > 0 for result in results]

    def remove(self, keys: Sequence[bytes]) -> int:
        """Removes entries from the shares of this host, except those that a member is reading: how
        many keys had one."""
        code, removed = _c.kv_remove(self._handle, _digest(keys))
        _check(code, "removing KV blocks")
        return removed

    def stats(self) -> dict[str, int]:
        """Counts. Counts of this process since it joined: ``looked_up`` and ``found`` (keys),
        ``got``, ``got_bytes``, ``got_remote`` (from other hosts), ``missed``, ``put``,
        ``put_bytes``, ``present`` (puts of present entries), ``no_room``, ``evicted``. State of the
        shares on this host now: ``shares``, ``capacity`` (bytes), ``slots``, ``entries``,
        ``entry_bytes``."""
        code, stats = _c.kv_stats(self._handle)
        _check(code, "the KV pool's stats")
        return stats


def bytes_of(text: str) -> int:
    """The bytes of "512M", "8G", or a number. ValueError for other texts."""
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    unit = units.get(text[-1:].upper(), 0)
    try:
        return int(text[:-1] if unit else text) << unit
    except ValueError:
        raise ValueError(
            f'"{text}" is not a size; allowed are bytes, or a number with K, M, G or T'
        ) from None


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m memspan.kv_pool", description="Gives memory to a KV pool until it is ended."
    )
    parser.add_argument("--store", default=USUAL_STORE, help=f"its store ({USUAL_STORE}), hosted by this process if none runs")
    parser.add_argument("--share", type=bytes_of, required=True, help="how much memory: 8G")
    parser.add_argument("--largest-share", type=bytes_of, default=_LARGEST_SHARE, help="of any member (64G)")
    parser.add_argument("--members", type=int, default=_MEMBERS, help=f"at most ({_MEMBERS})")
    parser.add_argument("--sections", type=int, default=0, help="parts with entries of one size each")
    options = parser.parse_args()
    # Before the pool starts threads, which take over what is blocked here.
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        pool = KvPool(
            options.store,
            options.share,
            largest_share=options.largest_share,
            members=options.members,
            sections=options.sections,
        )
    except Error as error:
        print(f"kv_pool: {error}", file=sys.stderr)
        return 1
    print(f"kv_pool: gives {options.share} bytes to the pool at {options.store}", flush=True)
    signal.sigwait(ends)
    pool.destroy()
    return 0


if __name__ == "__main__":
    sys.exit(_main())
