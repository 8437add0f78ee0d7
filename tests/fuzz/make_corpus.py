#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small inputs that the fuzzers begin with.

    make_corpus.py [FOLDER]

FOLDER is corpus/ beside this file unless given; each target has a folder in it. The same files
come out every time; a change of the wire format changes them.
"""
import pathlib
import struct
import sys

VERSION = 3
MAGIC = 0x5370736D
OPERATIONS = (
    "set get get_now add append compare_and_swap remove wait list watch unwatch take_rank give_rank ping"
).split()
NO_TIMEOUT = 0xFFFFFFFF


def text(value):
    return struct.pack("<I", len(value)) + value


def frame(body):
    return text(body)


def request(name, keys=(b"k",), value=b"", expected=b"", delta=0, timeout=0, rank=-1, size=0, owned=0, number=1):
    body = struct.pack("<QBIqiIB", number, OPERATIONS.index(name) + 1, timeout, delta, rank, size, owned)
    body += struct.pack("<I", len(keys)) + b"".join(text(key) for key in keys)
    return body + text(expected) + text(value)


def answer(code=0, number=0, event=0, key=b"", message=b"", value=b""):
    return struct.pack("<QBqB", 7, code, number, event) + text(key) + text(message) + text(value)


def hello(version=VERSION, member=b"PE 3", job=b"job", rank=3):
    return struct.pack("<II", MAGIC, version) + text(b"1.2.3") + text(member) + text(job) + struct.pack("<iIQ", rank, 1000, 5)


def welcome(version=VERSION, code=0, message=b""):
    return struct.pack("<IIB", MAGIC, version, code) + text(message) + struct.pack("<QQ", 5, 6)


def all_requests():
    keyless = {"unwatch", "ping"}
    for name in OPERATIONS:
        yield name, request(name, keys=() if name in keyless else (b"k",), value=b"v", timeout=NO_TIMEOUT, rank=0, size=2)
    yield "wait_many", request("wait", keys=(b"a", b"b", b"c"), timeout=100)
    yield "set_owned", request("set", value=b"v", owned=1)
    yield "list_all", request("list", keys=(b"",))


def frames():
    for name, body in all_requests():
        yield name, b"\x02" + frame(body)
    yield "answer", b"\x02" + frame(answer(number=5, value=b"value"))
    yield "answer_refused", b"\x02" + frame(answer(code=4, message=b'missing "k"'))
    yield "answer_event", b"\x02" + frame(answer(event=2, key=b"key"))
    yield "hello", b"\x01" + frame(hello())
    yield "hello_later", b"\x01" + frame(hello(version=99) + b"more")
    yield "welcome", b"\x01" + frame(welcome())
    yield "welcome_refuses", b"\x01" + frame(welcome(code=10, message=b"no"))
    yield "many", b"\x02" + b"".join(frame(body) for _, body in all_requests())
    yield "zero_length", b"\x02" + frame(b"")
    yield "too_long", b"\x01" + struct.pack("<I", 1 << 31)
    yield "half", b"\x02" + frame(request("set", value=b"value"))[:-3]
    yield "body_of_answer", b"\x02" + answer(value=b"value")
    yield "body_of_hello", b"\x02" + hello()


def command(kind, session=0):
    return bytes([kind + 8 * session])


def connect(session, silence=None):
    return command(0, session) if silence is None else command(1, session) + bytes([silence])


def leave(session):
    return command(2, session)


def wait(milliseconds):
    return command(3) + bytes([milliseconds])


def send(session, body):
    return command(5, session) + frame(body)


def short(session, operation, what=0, how=0):
    return command(6, session) + bytes([OPERATIONS.index(operation), what, how])


def store_state():
    two = connect(0) + connect(1)
    for name, body in all_requests():
        yield "frame_" + name, two + send(0, body) + send(1, body) + wait(200) + leave(0)
    for name in OPERATIONS:
        yield "short_" + name, two + short(0, name, 0, 0x11) + short(1, name, 0x20, 0xF1) + wait(50) + leave(1)
    yield "silence", connect(0, 100) + connect(1, 50) + wait(40) + command(4, 1) + wait(40) + wait(100)
    yield "owned", two + short(0, "set", 0, 1) + short(1, "watch") + short(1, "get") + leave(0)
    yield "wait_then_set", two + short(1, "wait", 0x31, 0xF0) + short(0, "set", 0) + short(0, "set", 1)
    three = two + connect(2)
    yield "ranks", three + b"".join(short(rank, "take_rank", 0, 0xC0) for rank in range(3)) + leave(1) + short(2, "take_rank")
    yield "quota", connect(0) + b"".join(short(0, "set", what, 3) for what in range(8))


def tls_info():
    full = (
        b"tlsCaPath: /etc/ca; tlsCaFile: a.pem, b.pem; tlsCert: /etc/me.pem; tlsCrlPath: /etc/crl; "
        b"tlsCrlFile: x.crl; tlsPk: /etc/me.key; tlsPkPwd: /etc/password; packagePath: /usr/lib;"
    )
    yield "full", full
    yield "least", b"tlsCert:c;tlsCaFile:a"
    yield "unknown", b"tlsCert: c; tlsKey: k"
    yield "twice", b"tlsCert: c; tlsCert: c"
    yield "empty_value", b"tlsCert: ; tlsCaFile: a"
    yield "no_colon", b"tlsCert c"
    yield "colon_in_path", b"tlsCert: c:d; tlsCaFile: a"
    yield "zero_byte", b"tlsCert: c\0"
    for name, url in {
        "v4": "tcp://127.0.0.1:8666",
        "v6": "tcp://[::1]:65535",
        "tcp6": "tcp6://[::1]:1",
        "name": "tcp://localhost:0",
        "no_port": "tcp://host",
        "big_port": "tcp://host:65536",
        "bracket": "tcp://[[]:5",
    }.items():
        yield "endpoint_" + name, url.encode()
    yield "rank", struct.pack("<IIQ", 3, 8, 99)
    yield "texts", struct.pack("<I", 3) + text(b"") + text(b"one") + text(b"two\0")
    yield "texts_count", struct.pack("<I", 0xFFFFFFFF) + text(b"one")


def message_frame(kind, payload=b"", tag=1, region=1, generation=0, offset=0, length=0, operand=0, compare=0, atomic=0, width=0, flags=0):
    """A frame of the transport "message"; the target sets the seal."""
    head = struct.pack("<BBBBIQIIQQQQQ", kind, atomic, width, flags, len(payload), tag, region, generation, offset, length, operand, compare, 0)
    return head + payload


HELLO, PUT, GET, ATOMIC, FLUSH, MESSAGE, DATA, FETCHED, FLUSHED, REFUSED, BYE = range(1, 12)


def message():
    put = message_frame(PUT, b"0123456789", offset=8)
    get = message_frame(GET, offset=8, length=10)
    add = message_frame(ATOMIC, offset=16, operand=5, atomic=4, width=8, flags=1)
    yield "put_get", b"\1" + put + get
    yield "atomics", b"\2" + b"".join(
        message_frame(ATOMIC, offset=8 * kind, operand=kind, compare=1, atomic=kind, width=width, flags=1) for kind in range(9) for width in (4, 8)
    )
    yield "all", b"\3" + put + get + add + message_frame(FLUSH) + message_frame(MESSAGE, b"hello") + message_frame(BYE)
    yield "whole_region", b"\4" + message_frame(PUT, b"x" * 192) + message_frame(GET, length=192)
    yield "out_of_bounds", b"\5" + message_frame(PUT, b"x" * 10, offset=190) + message_frame(GET, offset=2**64 - 1, length=2) + add
    yield "wrong_region", b"\6" + message_frame(PUT, b"x", region=2) + message_frame(PUT, b"x", generation=1) + get
    yield "signal_after_refused_put", b"\7" + message_frame(PUT, b"x" * 10, offset=190) + message_frame(ATOMIC, atomic=1, width=8, operand=9, flags=2)
    yield "unaligned", b"\10" + message_frame(ATOMIC, offset=4, atomic=4, width=8) + message_frame(ATOMIC, atomic=99, width=8)
    for name, kind in (("hello", HELLO), ("data", DATA), ("fetched", FETCHED), ("flushed", FLUSHED), ("refused", REFUSED), ("none", 0), ("high", 200)):
        yield "type_" + name, b"\11" + put + message_frame(kind, b"text") + put
    yield "half", b"\12" + put[:70]
    yield "bad_seal", b"\13" + put + b"\xff" * 64
    yield "region", b"\15" + struct.pack("<IIQB", 1, 7, 4096, 0) + text(b"key")


def endpoint_record(role=1, format=4):
    who = struct.pack("<qq", 5, 4711) + text(b"f00d:1") + text(b"host-a")
    return bytes([format]) + text(b"10.0.0.1:6001") + text(b"g1") + bytes([role]) + text(b"memspan-1f") + who + struct.pack("<I", 0)


def records():
    for name, content in {
        "integer": b"4096", "negative": b"-5", "size": b"1.5g", "size_mib": b".5MiB", "time": b"500ms", "hour": b"3600s",
        "store": b"tcp://127.0.0.1:8666", "store_v6": b"tcp://[::1]:8666", "store_list": b"tcp://one:8666,tcp://two:8666",
        "etcd": b"etcd://one:2379,two:2379/jobs/a", "etcd_user": b"etcd://me@one:2379", "networks": b"10.0.0.0/8,fd00::/8", "all_networks": b"1",
        "identity": b"4711 4026531836", "tags": b"prefill\nprefill:HOST_TCP:decode,a_1:DEVICE_RDMA:b_2",
    }.items():  # fmt: skip
        yield name, content
    region = struct.pack("<IIQB", 1, 7, 4096, 0) + text(b"key")
    yield "region", region
    yield "endpoint", endpoint_record()
    yield "endpoint_role", endpoint_record(role=9)
    yield "introduction", (struct.pack("<IQIQ", 4711, 1 << 30, 0, 99) + text(b"tcp:10.0.0.1:999") + text(region) + text(b"")).hex().encode()


def etcd():
    header = b'"header":{"cluster_id":"1","member_id":"2","revision":"7","raft_term":"3"}'
    key = b'{"key":"a2V5","create_revision":"5","mod_revision":"7","version":"2","value":"dmFsdWU=","lease":"9"}'
    yield "range", b"{" + header + b',"kvs":[' + key + b"," + key + b'],"count":"2"}'
    yield "nothing", b"{" + header + b"}"
    yield "written", b"{" + header + b',"succeeded":true,"responses":[{"response_put":{}}]}'
    yield "not_written", b"{" + header + b',"responses":[{"response_range":{"kvs":[' + key + b"]}}]}"
    yield "kept_alive", b'{"result":{' + header + b',"ID":"9","TTL":"3"}}'
    yield "token", b"{" + header + b',"token":"abc.12"}'
    yield "watch", b'{"result":{' + header + b',"events":[{"kv":' + key + b'},{"type":"DELETE","kv":' + key + b"}]}}"
    yield "compacted", b'{"result":{' + header + b',"canceled":true,"compact_revision":"6"}}'
    yield "failure", b'{"error":"etcdserver: leader changed","message":"etcdserver: leader changed","code":14}'
    yield "failure_of_stream", b'{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}}'
    yield "base64", b"dmFsdWU="


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus"
    for target in (frames, message, records, store_state, tls_info, etcd):
        folder = root / target.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in target():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
