# SPDX-License-Identifier: Apache-2.0
"""What the tests of PyTorch's symmetric memory have in common. What every rank has is known to all by
its seed, so that results are compared with what one process computes."""

import math
import zlib

import jobs
import memspan.errors
import memspan.torch
import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64]
TYPES += [torch.uint8, torch.complex64]
GUARD = 77
SOON_S = 10  # what takes longer did not see a death


def numbers(shape, dtype, *seed):
    """What the rank of that seed has."""
    generator = torch.Generator().manual_seed(zlib.crc32(repr(seed).encode()))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 9, shape, generator=generator).to(dtype)


def start(backend="gloo", **options):
    torch.set_num_threads(1)
    dist.init_process_group(backend, **options)
    memspan.torch.enable_symmetric_memory()
    memspan.torch.enable_symmetric_memory()
    return dist.group.WORLD


def on_two_hosts(rank, ranks):
    for backend in ("gloo", "memspan"):
        group = start(backend) if backend == "gloo" else dist.new_group(backend=backend)
        tensor = symm_mem.empty(4, device="cpu")
        names = r"is on host (\S+), this one, member \d, on host (?!\1)\S+"
        with pytest.raises(memspan.errors.Error, match=names):
            symm_mem.rendezvous(tensor, group)


def check_the_refusal():
    """Memory of a process on another host is not mapped: both hosts are named."""
    jobs.run(on_two_hosts, 2)


one_host = pytest.mark.one_host(reason="peers' memory is a tensor", instead=check_the_refusal)


def symmetric(shape, dtype, group, around=0):
    """A tensor, and all of its memory, which has so many guards before and after it."""
    count = math.prod(shape)
    whole = symm_mem.empty(count + 2 * around, dtype=dtype, device="cpu")
    symm_mem.rendezvous(whole, group)
    whole.fill_(GUARD)
    return whole[around : around + count].view(shape), whole


def check_guards(tensor, whole, around):
    assert (whole[:around] == GUARD).all() and (whole[around + tensor.numel() :] == GUARD).all()
