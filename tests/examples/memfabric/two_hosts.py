# SPDX-License-Identifier: Apache-2.0
"""two_hosts.py CASE BM_EXAMPLE KV_POOL TRANS_DEMO: an example of MemFabric, started on each of two
hosts as its users start it on two machines."""

import sys

import jobs
from jobs import hosts

CASE, BM_EXAMPLE, KV_POOL, TRANS_DEMO = sys.argv[1:]


def run(*commands):
    """What the commands print, each on a host of its own."""
    url = f"tcp://{hosts.ADDRESS}:{jobs.free_port()}"
    processes = [
        jobs.start([*hosts.inside(number), *(word or url for word in command)], **hosts.environment_of(number))
        for number, command in enumerate(commands)
    ]
    said = ""
    for process in processes:
        code, out, errors = jobs.finish(process)
        assert code == 0, f"{process.args} ended with {code}: {out}{errors}"
        said += out
    return said


def bm_example():
    said = run(*([BM_EXAMPLE, "4", "2", first, None, "0", "1048577"] for first in ("0", "2")))
    assert said.count(", PASS\n") == 4, said


def kv_pool():
    work = ["-store", None, "-operations", "2000", "-keys", "300", "-blocks", "64"]
    halves = [["-local", "2", "-first", "0"], ["-local", "2", "-first", "2"]]
    said = run(*([KV_POOL, "-members", "4", *half, *work] for half in halves))
    assert said.count("kv_pool: PASS\n") == 2 and "others' 0.0" not in said, said
    parts = [["-local", "1", "-first", "0"], ["-local", "2", "-first", "1"]]
    said = run(*([KV_POOL, "-members", "3", "-kill", "1", *part, *work] for part in parts))
    assert said.count("kv_pool: member 1 died, the others went on\n") == 2, said


def trans_demo():
    said = run([TRANS_DEMO, "prefill", None], [TRANS_DEMO, "decode", None])
    assert "trans_demo: decode, 122 pieces, PASS\n" in said, said


{"bm_example": bm_example, "kv_pool": kv_pool, "trans_demo": trans_demo}[CASE]()
