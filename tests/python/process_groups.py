# SPDX-License-Identifier: Apache-2.0
"""What the tests of torch.distributed's backend have in common."""

import datetime
import faulthandler

import torch
import torch.distributed as dist


def run_in_turn(checks, rank, ranks):
    """In a process of a job: each check in one group, and its name printed."""
    faulthandler.dump_traceback_later(100, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=30))
    for check in checks:
        check(rank, ranks)
        dist.barrier()
        print(check.__name__, flush=True)
    dist.destroy_process_group()


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.wide = torch.nn.Linear(width, 4 * width)
        self.narrow = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.narrow(torch.relu(self.wide(self.norms[1](x))))


def transformer():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Embedding(50, 32), Block(32), Block(32), torch.nn.Linear(32, 50)
    )


def losses(model, rank, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(100 + rank)
    text = torch.randint(0, 50, (4, 17), generator=generator)
    curve = []
    for _ in range(steps):
        logits = model(text[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve
