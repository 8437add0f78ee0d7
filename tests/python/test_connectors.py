# SPDX-License-Identifier: Apache-2.0
"""What the connectors of inference engines are made of: real paged KV tensors of a small model's shape go
from prefill workers to decode workers, bit by bit. tests/engines/ has the engines themselves."""

import json
import os
import time
import types

import jobs
from jobs import hosts
import mf_smem
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

from memspan.connectors.kv_regions import Pieces, regions_of, runs_of  # noqa: E402
from memspan.connectors.kv_scheduler import (  # noqa: E402
    BadParams,
    Group,
    Scheduler,
    source_of,
)
from memspan.connectors.leases import SLOTS, Lease, LeasePool, LeaseTable  # noqa: E402
from memspan.connectors.worker_name import Place, WorkerName  # noqa: E402

LAYERS = tuple(f"model.layers.{i}.self_attn.attn" for i in range(4))
BLOCKS, BLOCK_TOKENS, HEADS, HEAD = 64, 16, 4, 32
PROMPT = list(range(5 * BLOCK_TOKENS - 3))  # five blocks, the last one not full
LEASE_S = 2.0


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
    shape = (BLOCKS, BLOCK_TOKENS, 2, HEAD)
    shape = (2, *shape) if keys_first else (BLOCKS, HEADS, BLOCK_TOKENS, 2 * HEAD)
    return {
        name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name in LAYERS
    }


def request_of(name, prompt=PROMPT, **params):
    return types.SimpleNamespace(
        request_id=name, prompt_token_ids=prompt, num_prompt_tokens=len(prompt), kv_transfer_params=params
    )


class Engine:
    """A scheduler and its workers, each of which has a share of the heads, or of the layers (stages)."""

    def __init__(self, seed, workers=1, keys_first=False, description=None, stages=False):
        from memspan.connectors.kv_transfer import Worker
        from memspan.connectors.paged import KvWorker

        self.said = []
        groups = [Group(LAYERS, BLOCK_TOKENS)]
        self.scheduler = Scheduler(groups)
        self.caches = caches(seed, keys_first)
        self.workers = []
        for rank in range(workers):
            kv = KvWorker(
                os.environ["MEMSPAN_TEST_URL"], hosts.own_address(), False, description or {"model": "m"}
            )
            worker = Worker(kv, groups, rank, workers, lease_s=LEASE_S, log=self.said.append)
            share, layers = HEADS // workers, len(LAYERS) // workers
            if workers == 1:
                mine = dict(self.caches)
            elif stages:
                mine = {name: self.caches[name] for name in LAYERS[rank * layers : (rank + 1) * layers]}
            else:
                mine = {
                    name: cache[:, rank * share : (rank + 1) * share].contiguous()
                    for name, cache in self.caches.items()
                }
            worker.parts = mine
            worker.register(mine, BLOCKS, dict.fromkeys(mine, 0 if stages else rank), True)
            self.workers.append(worker)
        self.scheduler.workers = [str(each.name) for each in self.workers]

    def schedule(self, request, blocks, computed=0):
        self.scheduler.arrived(request)
        tokens, is_later = self.scheduler.matched(request, computed)
        self.scheduler.allocated(request, [blocks], tokens)
        return tokens, is_later

    def step(self):
        """What each worker told."""
        orders = self.scheduler.orders()
        for worker in self.workers:
            worker.start(orders)
        return [worker.results() for worker in self.workers]

    def until(self, kind, request):
        """Steps until all workers have named the request; which of them failed."""
        missing, failed = set(range(len(self.workers))), set()
        end = time.monotonic() + 30
        while missing:
            assert time.monotonic() < end, (kind, request, self.said)
            for rank, results in enumerate(self.step()):
                if request in getattr(results, kind):
                    missing.discard(rank)
                    failed |= {rank} & ({rank} if request in results.failed else set())
        self.scheduler.reported([request])
        return failed

    def prefill(self, name, blocks, prompt=PROMPT):
        """The params for the decode engine."""
        request = request_of(name, prompt, do_remote_decode=True)
        assert self.schedule(request, blocks) == (0, False)
        is_kept, params = self.scheduler.finished(request, [blocks], True)
        assert is_kept
        return params

    def whole(self, name):
        """A layer as all workers have it."""
        return torch.cat([each.parts[name] for each in self.workers if name in each.parts], dim=1)

    def close(self):
        for worker in self.workers:
            worker.close()


def block_of(cache, block, keys_first):
    return cache[:, block] if keys_first else cache[block]


def check(engine, mine, theirs, keys_first=False):
    """The blocks have come, and nothing else has changed."""
    source, before = caches(1, keys_first), caches(2, keys_first)
    for name in LAYERS:
        cache = engine.caches[name] if keys_first else engine.whole(name)
        for block in range(BLOCKS):
            if block in mine:
                wanted = block_of(source[name], theirs[mine.index(block)], keys_first)
            else:
                wanted = block_of(before[name], block, keys_first)
            assert torch.equal(block_of(cache, block, keys_first), wanted), (name, block)


def wrong_workers(text):
    """(request, name of a worker, part of what is said), made from that of a worker that is there."""
    worker = WorkerName.parse(text)
    address, size = worker.directory
    return [
        ("nowhere", "127.0.0.1:9/aa/1000/100", "127.0.0.1:9"),
        ("not registered", str(worker._replace(directory=Place(4096, 256))), "are not entirely in what"),
        ("no directory", str(worker._replace(directory=Place(address + 1, size - 1))), "is not a directory"),
        ("too large", str(worker._replace(directory=Place(address, 1 << 25))), "allowed are 1 to"),
        ("empty", str(worker._replace(directory=Place(address, 0))), "allowed are 1 to"),
    ]


def pull(rank, ranks, counts=(1, 1), keys_first=False, stages=False):
    """Blocks of `counts[0]` workers go to `counts[1]` ones; then what is late, twice or nowhere does not."""
    space = shared_space(rank, ranks)
    engine = Engine(1 + rank, counts[rank], keys_first, stages=stages)
    if rank == 0:
        blocks = [3, 9, 4, 60, 1]
        hand_over(space, engine.prefill("there", blocks))
        assert engine.until("sent", "there") == set()
        assert engine.scheduler.leases == 0
        hand_over(space, engine.prefill("late", blocks))
        engine.until("sent", "late")  # nobody comes: its time is over
        assert any("late: its blocks were not read" in text for text in engine.said)
        hand_over(space, None)
    else:
        params = hand_over(space, None)
        # Two blocks are in this engine's cache already, and stay as they are.
        blocks, cached = [10, 11, 40, 2, 7], 2 * BLOCK_TOKENS
        asked = request_of("here", **params)
        assert engine.schedule(asked, blocks, cached) == (len(PROMPT) - cached, True)
        assert engine.until("received", "here") == set(), engine.said
        check(engine, blocks[2:], params["remote_block_ids"][0][2:], keys_first)
        again = request_of("again", **params)
        engine.schedule(again, [20, 21, 22, 23, 24])
        assert engine.until("received", "again") == set(range(counts[1]))
        late = hand_over(space, None)
        hand_over(space, None)
        engine.schedule(request_of("too late", **late), [20, 21, 22, 23, 24])
        assert engine.until("received", "too late") == set(range(counts[1]))
        assert sum("no more" in text for text in engine.said) >= 2, engine.said
        for name, worker, why in wrong_workers(params["remote_workers"][0]):
            strange = dict(params, remote_workers=[worker])
            engine.schedule(request_of(name, **strange), [20, 21, 22, 23, 24])
            assert engine.until("received", name) == set(range(counts[1]))
            assert any(f"request {name}: its KV" in text and why in text for text in engine.said), engine.said
        check(engine, blocks[2:], params["remote_block_ids"][0][2:], keys_first)
    assert space.barrier() == 0
    engine.close()


def pull_keys_first(rank, ranks):
    pull(rank, ranks, (1, 1), True)


def pull_from_two(rank, ranks):
    pull(rank, ranks, (2, 1))


def pull_to_two(rank, ranks):
    pull(rank, ranks, (1, 2))


def pull_from_two_stages(rank, ranks):
    pull(rank, ranks, (2, 1), stages=True)


def pull_to_two_stages(rank, ranks):
    pull(rank, ranks, (1, 2), stages=True)


@pytest.mark.parametrize(
    "function",
    [pull, pull_keys_first, pull_from_two, pull_to_two, pull_from_two_stages, pull_to_two_stages],
)
def test_pull(function):
    jobs.run(function, 2)


def kept_alive(rank, ranks):
    """Heartbeats of a request that waits keep its blocks; a request that is cut off lets go of them."""
    space = shared_space(rank, ranks)
    engine = Engine(1 + rank)
    if rank == 0:
        hand_over(space, engine.prefill("waits", [1, 2, 3, 4, 5]))
        end = time.monotonic() + 2 * LEASE_S
        while time.monotonic() < end:
            assert engine.step()[0].sent == set()
        hand_over(space, None)
        engine.until("sent", "waits")
        assert not engine.said
    else:
        asked = request_of("here", **hand_over(space, None))
        engine.scheduler.arrived(asked)
        engine.step()
        hand_over(space, None)
        assert engine.scheduler.finished(asked, [[]], False) == (False, None)
        engine.step()
    assert space.barrier() == 0
    engine.close()


def test_heartbeats():
    jobs.run(kept_alive, 2)


def other_caches(rank, ranks):
    space = shared_space(rank, ranks)
    engine = Engine(1 + rank, description={"model": "m", "block size": 16 + rank, "dtype": "x"})
    if rank == 0:
        hand_over(space, engine.prefill("there", [1, 2, 3, 4, 5]))
        engine.until("sent", "there")
    else:
        engine.schedule(request_of("here", **hand_over(space, None)), [10, 11, 40, 2, 7])
        assert engine.until("received", "here") == {0}
        assert any("block size is 17 here and 16 there" in text for text in engine.said), engine.said
        check(engine, [], [])
    assert space.barrier() == 0
    engine.close()


def test_other_caches_are_refused():
    jobs.run(other_caches, 2)


# ---- without processes

GOOD = {
    "do_remote_prefill": True,
    "remote_workers": ["127.0.0.1:1/a/b/c"],
    "remote_lease": "3:5",
    "remote_block_ids": [[1, 2, 3, 4, 5]],
    "remote_num_tokens": len(PROMPT),
}


def pull_of(groups, blocks, tokens=len(PROMPT), **change):
    scheduler = Scheduler(groups)
    given = scheduler.finished(request_of("a", do_remote_decode=True), blocks, True)[1]
    params = {**GOOD, "remote_prompt": given["remote_prompt"], **change}
    scheduler.orders()
    scheduler.allocated(request_of("b", **params), blocks, tokens)
    return scheduler.orders().pulls["b"]


def test_a_scheduler_chooses_blocks():
    group = Group(LAYERS, BLOCK_TOKENS)
    assert pull_of([group], [[6, 7, 8, 9, 10, 11]]).theirs == [[1, 2, 3, 4, 5]]
    some = pull_of([group], [[6, 7, 8, 9, 10]], len(PROMPT) - BLOCK_TOKENS)
    assert (some.mine, some.theirs) == ([[7, 8, 9, 10]], [[2, 3, 4, 5]])
    # Out of a window of 20 tokens blocks are missing on purpose.
    groups = [group, Group(("w",), BLOCK_TOKENS, 20)]
    both = pull_of(groups, [[6, 7, 8, 9, 10]] * 2, remote_block_ids=[[1, 2, 3, 4, 5], [0, 0, 0, 4, 5]])
    assert (both.mine[1], both.theirs[1]) == ([9, 10], [4, 5])
    hole = pull_of(groups, [[6, 7, 8, 9, 10]] * 2, remote_block_ids=[[1, 2, 3, 4, 5], [0, 0, 0, 0, 5]])
    assert hole.failure == "a block of the prompt's window is missing" and hole.theirs == []


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"remote_workers": None}, "remote_workers is missing, allowed is list"),
        ({"remote_workers": [1]}, "remote_workers has 1, allowed are str"),
        ({"remote_workers": []}, "remote_workers is empty"),
        ({"remote_workers": ["x"]}, "'x' names no worker"),
        ({"remote_lease": "a:1"}, "'a:1' is not a lease"),
        ({"remote_lease": f"{SLOTS}:1"}, "slots are below"),
        ({"remote_block_ids": [[1, 2]]}, "5 blocks here and 2 in the other engine; the prompt needs 5"),
        ({"remote_block_ids": [[1, 2, 3, 4, -5]]}, "are numbers of blocks"),
        ({"remote_block_ids": [[1], [2]]}, "1 groups of caches here and 2 in the other engine"),
        ({"remote_num_tokens": True}, "remote_num_tokens is True, allowed is int"),
        ({"remote_num_tokens": 7}, "the prompt has 77 tokens here, and 7 in the other engine"),
        ({"remote_prompt": "0"}, "differs in the other engine"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_scheduler_says_what_is_wrong(change, sentence):
    made = pull_of([Group(LAYERS, BLOCK_TOKENS)], [[6, 7, 8, 9, 10]], **change)
    assert sentence in made.failure
    assert made.theirs == [] and made.mine == [[6, 7, 8, 9, 10]]


def test_roles_and_ends():
    group = [Group(LAYERS, BLOCK_TOKENS)]
    producer, consumer = Scheduler(group, takes=False), Scheduler(group, gives=False)
    producer.allocated(request_of("a", **GOOD), [[1, 2, 3, 4, 5]], 77)
    assert "kv_producer" in producer.orders().pulls["a"].failure
    wants = request_of("b", do_remote_decode=True)
    assert consumer.finished(wants, [[1, 2, 3, 4, 5]], True) == (False, None)
    assert "kv_consumer" in consumer.warnings[0]
    assert producer.finished(wants, [[1, 2, 3, 4, 5]], False) == (False, None)  # it was cut off
    assert producer.finished(wants, [[1, 2]], True) == (False, None)
    for _ in range(SLOTS):
        assert producer._leases.give(str(_)) is not None
    assert producer.finished(wants, [[1, 2, 3, 4, 5]], True) == (False, None)
    assert "all leases are given" in producer.warnings[-1]
    # All of it is computed here: nothing is read, and the other engine hears so.
    producer.allocated(request_of("c", **GOOD), [[1, 2, 3, 4, 5]], 0)
    orders = producer.orders()
    assert not orders.pulls and orders.release["c"] == source_of(GOOD)


def test_leases():
    pool, table = LeasePool(), LeaseTable(10)
    lease, words = pool.give("a"), table.words
    assert Lease.parse(str(lease)) == lease and lease.is_valid(words[lease.slot], table.epoch)
    table.begin("a", lease, 0)
    assert lease.is_valid(words[lease.slot], table.epoch)
    assert not lease.is_valid(words[lease.slot], table.epoch + 1)  # another process
    assert table.finished(9.9) == (set(), set())
    words[lease.slot, 1] = 77  # a heartbeat
    assert table.finished(12) == (set(), set()) and table.finished(21.9) == (set(), set())
    assert table.finished(22) == (set(), {"a"}) and table.finished(99) == (set(), set())
    assert not lease.is_valid(words[lease.slot], table.epoch)
    table.done(lease, 0, 1)  # too late: it is nobody's any more
    assert len(table) == 0 and table.finished(99) == (set(), set())
    # All readers, in whatever order, and some before it has begun here.
    lease = pool.give("b")
    table.done(lease, 1, 2)
    table.begin("b", lease, 0)
    table.done(lease, 1, 2)
    assert table.finished(0) == (set(), set())
    table.done(lease, 0, 2)
    assert table.finished(0) == ({"b"}, set())
    # A slot that is given again has another generation.
    for request in ("a", "b"):
        pool.take_back(request)
    while (last := pool.give("c")).slot != lease.slot:
        pass
    table.begin("c", last, 0)
    assert last.is_valid(words[last.slot], table.epoch)
    assert not lease.is_valid(words[lease.slot], table.epoch)
    table.done(lease, 0, 1)
    assert len(table) == 1 and table.end_all() == {"c"} and len(table) == 0


def test_where_blocks_lie():
    with pytest.raises(ValueError, match="64 blocks neither"):
        regions_of(torch.zeros(3, 5), 64)
    with pytest.raises(ValueError, match="not contiguous"):
        regions_of(torch.zeros(5, 64).t(), 64)
    with pytest.raises(ValueError, match="head of a cache"):
        regions_of(torch.zeros(4, 2, 6, 5).transpose(2, 3), 4)
    (region,) = regions_of(torch.zeros(2, 8, 4)[:, ::2], 4)[1:]
    assert (region.block_stride, region.bytes, region.heads) == (32, 16, 1)
    # Heads inside of blocks, heads outside of them, and blocks that a kernel halves.
    (inside,) = regions_of(torch.zeros(4, 2, 6, 5), 4, 3)
    assert inside.is_dense and (inside.first_head, inside.heads, inside.bytes) == (6, 2, 120)
    (outside,) = regions_of(torch.zeros(2, 4, 6, 5).transpose(0, 1), 4)
    assert not outside.is_whole and outside.head_stride == 4 * 120
    (halved,) = regions_of(torch.zeros(8, 6, 5), 4)
    assert halved.is_dense and halved.bytes == 240
    assert [list(run) for run in runs_of(*(torch.tensor(x).numpy() for x in ([1, 2, 5], [7, 8, 9])))] == [
        [1, 5], [7, 9], [2, 1]]
    pieces = Pieces()
    pieces.add(inside, inside, [0, 1, 3], [1, 2, 0])
    pieces.add(inside, inside, [0], [2], (7, 8))
    pieces.add(inside, outside._replace(first_head=6), [0], [2])
    here, there, sizes = pieces.arrays()
    assert sizes.tolist() == [480, 240, 120, 120, 120]
    assert here[2] - inside.base == 120 and there[2] - inside.base == 2 * 240 + 120
    with pytest.raises(BadParams):
        source_of({})
    name = WorkerName("[::1]:5", 255, Place(1 << 63, 9))
    assert WorkerName.parse(str(name)) == name
    for wrong in ("", "a:1", "a:1/f", "a/f/1/1", "a:1/f/1/1/1", "a:1/f/-1/1", "a:1/f/1/x", "a:1/f/1/" + 17 * "1"):
        with pytest.raises(ValueError, match="names no worker"):
            WorkerName.parse(wrong)


class SglangsEngine:
    """SGLang's MooncakeTransferEngine: its calls, in its order."""

    def __init__(self, hostname):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        assert self.engine.initialize(hostname, "P2PHANDSHAKE", "rdma", "") == 0
        self.session_id = f"{hostname}:{self.engine.get_rpc_port()}"


def as_sglang(rank, ranks):
    os.environ["MEMSPAN_STORE"] = os.environ["MEMSPAN_TEST_URL"]
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
