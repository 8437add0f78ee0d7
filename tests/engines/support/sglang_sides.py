# SPDX-License-Identifier: Apache-2.0
"""A launcher as SGLang's: it spawns a prefill and a decode process, whose main file says nothing of memspan, and each makes
SGLang's own class of transfer engine. Prints JSON.

    python sglang_sides.py mooncake|ascend
"""

import importlib
import json
import multiprocessing
import os
import sys

PAGE, PAGES = 4096, 64
RUNS = [(3, 20, 4), (50, 1, 9)]  # from page, to page, how many
LAYERS = 4
LIMIT_S = 120


def engine_of(kind, role):
    """SGLang's object over memspan, as its managers make it."""
    if kind == "mooncake":
        module = importlib.import_module(
            "sglang.srt.distributed.device_communicators.mooncake_transfer_engine"
        )
        return module.MooncakeTransferEngine(hostname="127.0.0.1", gpu_id=0, ib_device=None)
    module = importlib.import_module("sglang.srt.disaggregation.ascend.transfer_engine")
    from sglang.srt.disaggregation.utils import DisaggregationMode

    if role == "prefill":  # as SGLang's manager of services does
        from memfabric_hybrid import create_config_store

        assert create_config_store(os.environ["ASCEND_MF_STORE_URL"]) == 0
    return module.AscendTransferEngine("127.0.0.1", 0, getattr(DisaggregationMode, role.upper()))


def side(kind, role, mine, theirs, results):
    """Registers layers, and prefill writes runs of pages of all of them in one batch."""
    import torch

    if role == "decode":
        assert mine.get(timeout=LIMIT_S) == "up"  # the store is hosted by the first one
    engine = engine_of(kind, role)
    layers = [torch.full((PAGES, PAGE), i + 1 if role == "prefill" else 0, dtype=torch.uint8) for i in range(LAYERS)]
    addresses = [layer.data_ptr() for layer in layers]
    engine.batch_register(addresses, [PAGE * PAGES] * LAYERS)
    if role == "decode":
        theirs.put([engine.get_session_id(), addresses])
        assert mine.get(timeout=LIMIT_S) == "written"
        pages = {page for _, to, count in RUNS for page in range(to, to + count)}
        right = all(
            bool((layer[page] == (i + 1 if page in pages else 0)).all())
            for i, layer in enumerate(layers)
            for page in range(PAGES)
        )
        engine.engine.batch_unregister_memory(addresses)
        results.put({"right": right, "class": type(engine).__name__, "engine": type(engine.engine).__module__})
        return
    theirs.put("up")
    session, there = mine.get(timeout=LIMIT_S)
    pieces = [
        (a + begin * PAGE, b + to * PAGE, count * PAGE)
        for a, b in zip(addresses, there)
        for begin, to, count in RUNS
    ]
    wrote = engine.batch_transfer_sync(session, *(list(column) for column in zip(*pieces)))
    refused = engine.transfer_sync(session, addresses[0], 64, 8)  # nobody registered that
    theirs.put("written")
    results.put({"wrote": wrote, "refused": refused, "session": engine.get_session_id()})


def main(kind):
    spawn = multiprocessing.get_context("spawn")
    to_prefill, to_decode, results = spawn.Queue(), spawn.Queue(), spawn.Queue()
    sides = [
        spawn.Process(target=side, args=(kind, "prefill", to_prefill, to_decode, results)),
        spawn.Process(target=side, args=(kind, "decode", to_decode, to_prefill, results)),
    ]
    for process in sides:
        process.start()
    said = {}
    try:
        for _ in sides:
            said |= results.get(timeout=2 * LIMIT_S)
        for process in sides:
            process.join(LIMIT_S)
    finally:
        for process in sides:
            process.kill()
    said["loaded_here"] = "memspan.mooncake" in sys.modules
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
