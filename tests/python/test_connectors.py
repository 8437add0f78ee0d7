# SPDX-License-Identifier: Apache-2.0
"""Connectors of inference engines, called as the engines call them: real paged KV tensors of a small
model's shape go from a prefill process to a decode process, bit by bit."""

import importlib
import json
import os
import sys
import types

import jobs
from jobs import hosts
import mf_smem
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here; test.sh --torch installs it")

STANDINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins")
LAYERS = [f"model.layers.{i}.self_attn.attn" for i in range(4)]
BLOCKS, BLOCK_TOKENS, HEADS, HEAD = 64, 16, 2, 32
PROMPT = list(range(5 * BLOCK_TOKENS - 3))  # five blocks, the last one not full


def shared_space(rank, ranks):
    url = os.environ["MEMSPAN_TEST_URL"]
    assert mf_smem.shm.initialize(url, ranks, rank, 0, mf_smem.shm.ShmConfig()) == 0
    return mf_smem.shm.create(0, ranks, rank, 0)


def hand_over(space, value):
    """What the other rank gave, a JSON value."""
    everybody = space.all_gather(json.dumps(value).encode().ljust(4096))
    return json.loads(everybody[4096 * (1 - space.local_rank) :][:4096])


def caches(seed, keys_first):
    generator = torch.Generator().manual_seed(seed)
    shape = (BLOCKS, BLOCK_TOKENS, HEADS, HEAD)
    shape = (2, *shape) if keys_first else (BLOCKS, 2, *shape[1:])
    return {
        name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name in LAYERS
    }


def block_of(cache, block, keys_first):
    return cache[:, block] if keys_first else cache[block]


class Engine:
    """The calls that vLLM's scheduler and model runner make, and nothing of what they compute."""

    def __init__(self, form, seed, keys_first):
        sys.path.insert(0, STANDINS)
        base = importlib.import_module("vllm.distributed.kv_transfer.kv_connector.v1.base")
        module = importlib.import_module("memspan.connectors.vllm")  # kv_connector_module_path
        connector = module.MemspanConnector
        extra = {"store_url": os.environ["MEMSPAN_TEST_URL"], "form": form, "host_store": False,
                 "host": hosts.own_address()}
        config = types.SimpleNamespace(
            kv_transfer_config=types.SimpleNamespace(kv_connector_extra_config=extra),
            cache_config=types.SimpleNamespace(block_size=BLOCK_TOKENS, num_gpu_blocks=BLOCKS),
        )
        cache = types.SimpleNamespace(num_blocks=BLOCKS)
        self.scheduler = connector(config, base.KVConnectorRole.SCHEDULER, cache)
        self.worker = connector(config, base.KVConnectorRole.WORKER, cache)
        self.caches = caches(seed, keys_first)
        self.worker.register_kv_caches(self.caches)
        self.scheduler.set_xfer_handshake_metadata({0: self.worker.get_handshake_metadata()})

    def schedule(self, request, blocks, computed=0):
        """(tokens that come from elsewhere, whether they come while others run)"""
        tokens, is_later = self.scheduler.get_num_new_matched_tokens(request, computed)
        ids = types.SimpleNamespace(get_block_ids=lambda: (blocks,))
        self.scheduler.update_state_after_alloc(request, ids, tokens)
        return tokens, is_later

    def step(self):
        """A forward pass. What get_finished() gave."""
        self.worker.bind_connector_metadata(self.scheduler.build_connector_meta(None))
        self.worker.start_load_kv(None)
        for name, cache in self.caches.items():
            self.worker.wait_for_layer_load(name)
            self.worker.save_kv_layer(name, cache, None)
        self.worker.wait_for_save()
        self.worker.clear_connector_metadata()
        return self.worker.get_finished(set())

    def step_until(self, index, request):
        while True:
            finished = self.step()[index]
            if finished is not None:
                assert finished == {request}
                return


def new_request(id="request-7", **params):
    return types.SimpleNamespace(
        request_id=id, prompt_token_ids=PROMPT, kv_transfer_params=params
    )


def check(engine, seed, keys_first, mine, theirs):
    """The blocks have come, and nothing else has changed."""
    source = caches(seed, keys_first)
    before = caches(2, keys_first)
    for name, cache in engine.caches.items():
        for block in range(BLOCKS):
            if block in mine:
                wanted = block_of(source[name], theirs[mine.index(block)], keys_first)
            else:
                wanted = block_of(before[name], block, keys_first)
            assert torch.equal(block_of(cache, block, keys_first), wanted), (name, block)


def pull(rank, ranks, keys_first=True):
    space = shared_space(rank, ranks)
    if rank == 0:
        engine = Engine("pull", 1, keys_first)
        request = new_request(do_remote_decode=True)
        blocks = [3, 9, 4, 60, 1]
        assert engine.schedule(request, blocks) == (0, False)
        engine.step()
        is_kept, params = engine.scheduler.request_finished(request, blocks)
        assert is_kept
        hand_over(space, params)
        engine.step_until(0, "request-7")  # the decode worker has read them
    else:
        engine = Engine("pull", 2, keys_first)
        params = hand_over(space, None)
        request = new_request("other-name", **params)
        # Two blocks are in this engine's cache already, and stay as they are.
        blocks, cached = [10, 11, 40, 2, 7], 2 * BLOCK_TOKENS
        assert engine.schedule(request, blocks, cached) == (len(PROMPT) - cached, True)
        engine.step_until(1, "other-name")
        assert engine.worker.get_block_ids_with_load_errors() == set()
        check(engine, 1, keys_first, blocks[2:], params["remote_block_ids"][2:])
        # A worker that is not there: the blocks are named, and the engine goes on.
        gone = new_request(
            do_remote_prefill=True,
            remote_worker="127.0.0.1:9",
            remote_block_ids=[1, 2, 3, 4, 5],
            remote_request_id="gone",
            remote_block_size=BLOCK_TOKENS,
            remote_prompt_tokens=len(PROMPT),
        )
        engine.schedule(gone, [20, 21, 22, 23, 24])
        engine.step_until(1, "request-7")
        assert engine.worker.get_block_ids_with_load_errors() == {20, 21, 22, 23, 24}
    assert space.barrier() == 0
    engine.worker.shutdown()


def pull_blocks_first(rank, ranks):
    pull(rank, ranks, keys_first=False)


def push(rank, ranks):
    space = shared_space(rank, ranks)
    if rank == 0:
        engine = Engine("push", 1, True)
        params = hand_over(space, None)
        request = new_request(do_remote_decode=True, **params)
        blocks = [5, 6, 7, 8, 33]
        assert engine.schedule(request, blocks) == (0, False)
        engine.step()
        assert engine.scheduler.request_finished(request, blocks) == (False, None)
        hand_over(space, blocks)
    else:
        engine = Engine("push", 2, True)
        request = new_request(do_remote_push=True)
        blocks = [63, 0, 12, 13, 30]
        assert engine.schedule(request, blocks) == (len(PROMPT), True)
        params = request.kv_transfer_params
        hand_over(space, {name: params[name] for name in params if name.startswith("decode")})
        engine.step_until(1, "request-7")
        check(engine, 1, True, blocks, hand_over(space, None))
    assert space.barrier() == 0
    engine.worker.shutdown()


# What the other engine says of its blocks, and is not so here.
DIFFERENCES = [
    {"block_size": BLOCK_TOKENS * 2},
    {"prompt_tokens": len(PROMPT) - 1},
    {"block_ids": [3, 9, 4, 60]},
]


def untouched(engine):
    for name, cache in caches(2, True).items():
        assert torch.equal(engine.caches[name], cache), name


def pull_of_what_differs(rank, ranks):
    """Whatever does not fit, all blocks that would have come are named, and nothing is moved."""
    space = shared_space(rank, ranks)
    engine = Engine("pull", 1 + rank, True)
    for i, difference in enumerate(DIFFERENCES):
        blocks = [3, 9, 4, 60, 1]
        if rank == 0:
            request = new_request(f"there-{i}", do_remote_decode=True)
            engine.schedule(request, blocks)
            engine.step()
            hand_over(space, engine.scheduler.request_finished(request, blocks)[1])
            engine.step_until(0, f"there-{i}")  # it need not keep them
        else:
            params = hand_over(space, None)
            params.update({f"remote_{name}": value for name, value in difference.items()})
            engine.schedule(new_request(f"here-{i}", **params), [10, 11, 40, 2, 7], BLOCK_TOKENS)
            engine.step_until(1, f"here-{i}")
            assert engine.worker.get_block_ids_with_load_errors() == {11, 40, 2, 7}
            untouched(engine)
    assert space.barrier() == 0
    engine.worker.shutdown()


def push_of_what_differs(rank, ranks):
    """The prefill engine tells the decode engine, which names the blocks."""
    space = shared_space(rank, ranks)
    engine = Engine("push", 1 + rank, True)
    for i, difference in enumerate(DIFFERENCES):
        if rank == 0:
            params = hand_over(space, None)
            params.update({f"decode_{name}": value for name, value in difference.items()})
            request = new_request(f"there-{i}", do_remote_decode=True, **params)
            engine.schedule(request, [5, 6, 7, 8, 33])
            engine.step()
            assert space.barrier() == 0
        else:
            request = new_request(f"here-{i}", do_remote_push=True)
            engine.schedule(request, [63, 0, 12, 13, 30])
            params = request.kv_transfer_params
            hand_over(space, {name: params[name] for name in params if name.startswith("decode")})
            assert space.barrier() == 0
            if i == 1:  # the message comes before the step that begins the request
                assert engine.worker.get_finished(set()) == (None, None)
            engine.step_until(1, f"here-{i}")
            assert engine.worker.get_block_ids_with_load_errors() == {63, 0, 12, 13, 30}
            untouched(engine)
        assert space.barrier() == 0
    engine.worker.shutdown()


@pytest.mark.parametrize("function", [pull_of_what_differs, push_of_what_differs])
def test_vllm_fails_requests_whose_blocks_differ(function):
    jobs.run(function, 2)


def test_vllm_of_both_generations(monkeypatch):
    """The base's constructor has three arguments (0.32), or two."""
    sys.path.insert(0, STANDINS)
    base = importlib.import_module("vllm.distributed.kv_transfer.kv_connector.v1.base")
    connector = importlib.import_module("memspan.connectors.vllm").MemspanConnector
    config = types.SimpleNamespace(
        kv_transfer_config=types.SimpleNamespace(kv_connector_extra_config=None),
        cache_config=types.SimpleNamespace(block_size=BLOCK_TOKENS, num_gpu_blocks=BLOCKS),
    )
    cache = types.SimpleNamespace(num_blocks=BLOCKS)
    made = connector(config, base.KVConnectorRole.SCHEDULER, cache)
    assert made._kv_cache_config is cache and made.role is base.KVConnectorRole.SCHEDULER
    two_groups = types.SimpleNamespace(get_block_ids=lambda: ([1], [2]))
    with pytest.raises(ValueError, match="2 groups"):
        made.update_state_after_alloc(new_request(), two_groups, 0)

    def with_two(self, vllm_config, role):
        self._role = role

    monkeypatch.setattr(base.KVConnectorBase_V1, "__init__", with_two)
    assert connector(config, base.KVConnectorRole.SCHEDULER).role is base.KVConnectorRole.SCHEDULER


@pytest.mark.parametrize("function", [pull, pull_blocks_first, push])
def test_vllm(function):
    jobs.run(function, 2)


def test_vllm_says_what_is_wrong():
    sys.path.insert(0, STANDINS)
    from memspan.connectors.paged import regions_of

    with pytest.raises(ValueError, match="64 blocks neither"):
        regions_of(torch.zeros(3, 5), 64)
    with pytest.raises(ValueError, match="not contiguous"):
        regions_of(torch.zeros(5, 64).t(), 64)
    base, stride, bytes_ = regions_of(torch.zeros(2, 8, 4)[:, ::2], 4)[1]
    assert (stride, bytes_) == (32, 16)


class SglangsEngine:
    """SGLang's MooncakeTransferEngine: its calls, in its order."""

    def __init__(self, hostname):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        assert self.engine.initialize(hostname, "P2PHANDSHAKE", "rdma", "") == 0
        self.session_id = f"{hostname}:{self.engine.get_rpc_port()}"


def as_sglang(rank, ranks):
    os.environ["MEMSPAN_STORE_URL"] = os.environ["MEMSPAN_TEST_URL"]
    import memspan.connectors.sglang

    memspan.connectors.sglang.install()
    memspan.connectors.sglang.install()  # again is nothing
    space = shared_space(rank, ranks)
    transfer = SglangsEngine(hosts.own_address())
    layers = list(caches(rank, False).values())
    addresses = [layer.data_ptr() for layer in layers]
    sizes = [layer.numel() * layer.element_size() for layer in layers]
    assert transfer.engine.batch_register_memory(addresses, sizes) == 0
    session, theirs = hand_over(space, [transfer.session_id, addresses])
    if rank == 0:
        # As the prefill manager: contiguous runs of pages, of all layers in one batch.
        page = sizes[0] // BLOCKS
        runs = [(3, 20, 4), (50, 1, 9)]  # from page, to page, how many
        pieces = [
            (mine + a * page, there + b * page, count * page)
            for mine, there in zip(addresses, theirs)
            for a, b, count in runs
        ]
        assert transfer.engine.send_probe(session) == 0
        lists = [list(column) for column in zip(*pieces)]
        assert transfer.engine.batch_transfer_sync_write(session, *lists) == 0
        assert transfer.engine.batch_transfer_sync_write(session, [1], [1], [8]) < 0
    assert space.barrier() == 0
    if rank == 1:
        source = list(caches(0, False).values())
        for layer, original in zip(layers, source):
            assert torch.equal(layer[20:24], original[3:7])
            assert torch.equal(layer[1:10], original[50:59])
    assert space.barrier() == 0
    assert transfer.engine.batch_unregister_memory(addresses) == 0


def test_sglang():
    jobs.run(as_sglang, 2)
