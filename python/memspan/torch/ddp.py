# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel for ranks that compute on all cores of a host.

    memspan.torch.reduce_after_backward(model)

Communication hides behind computation only on cores that do not compute. On the others each bucket that is
reduced during backward costs a wait for the slowest rank, and sometimes a thread that takes turns with
backward. So the buckets wait for the last one, and the thread of backward reduces them in a row: with one
wait for the other ranks, and no other thread.
"""

import torch
import torch.distributed as dist


def reduce_after_backward(model: "torch.nn.parallel.DistributedDataParallel") -> None:
    """Averages the gradients of a DistributedDataParallel in a row when backward has computed the last one,
    on the thread of backward. Call it once for a model, on all ranks, before its first backward. With
    ``gradient_as_bucket_view=True`` a copy of the gradients is saved."""
    model.register_comm_hook(_Buckets(model.process_group), _hold)


class _Buckets:
    """Those of a model's backward that are not reduced yet."""

    def __init__(self, group):
        self.group = group
        self.held = []

    def reduce(self):
        held, self.held = self.held, []
        for values, _ in held:
            if values.is_sparse:  # these have no averages
                dist.all_reduce(values, group=self.group)
                values.div_(self.group.size())
            else:
                dist.all_reduce(values, op=dist.ReduceOp.AVG, group=self.group)
        for values, future in held:
            future.set_result(values)


def _hold(buckets, bucket):
    future = torch.futures.Future()
    buckets.held.append((bucket.buffer(), future))
    if bucket.is_last():
        buckets.reduce()
    return future
