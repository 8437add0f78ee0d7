# SPDX-License-Identifier: Apache-2.0
"""Process 0 makes items and deals them out to the others, which give back what they took.

    oshrun -n 3 python producer_consumer.py [ITEMS]

Shows signals: an item and the word that tells of it are one call, and who waits for the word sees the
item. There is no barrier on the way. A consumer has a few slots; the producer never runs further ahead.
"""

import argparse
import sys

import numpy as np
import shmem

SLOTS = 4
ITEM = 256  # 64-bit integers
ADD, AT_LEAST = shmem.SignalOp.SIGNAL_ADD, shmem.CmpOp.CMP_GE


def produce(items, slots, filled, taken):
    consumers = shmem.get_pe_count() - 1
    for number in range(items):
        consumer, turn = 1 + number % consumers, number // consumers
        if turn >= SLOTS:  # its slot is free once that many have been taken
            free = turn - SLOTS + 1
            shmem.shmem_signal_wait_until(taken.ctypes.data + 4 * consumer, AT_LEAST, free)
        item = np.full(ITEM, number, np.int64)
        shmem.shmem_putmem_signal(
            slots[turn % SLOTS], item, item.nbytes, filled, 1, ADD, consumer
        )


def consume(me, items, slots, filled, taken):
    """The sum of what came."""
    consumers = shmem.get_pe_count() - 1
    total = 0
    for turn, _ in enumerate(range(me - 1, items, consumers)):
        shmem.shmem_signal_wait_until(filled, AT_LEAST, turn + 1)
        total += int(slots[turn % SLOTS].sum())
        shmem.shmem_signal_op(taken.ctypes.data + 4 * me, 1, ADD, 0)
    return total


def main():
    parser = argparse.ArgumentParser(description="One producer, and consumers that keep up.")
    parser.add_argument("items", nargs="?", type=int, default=1000)
    items = parser.parse_args().items
    if not 1 <= items <= 1 << 24:
        parser.error(f"items is {items}, allowed are 1 to {1 << 24}")
    try:
        if shmem.shmem_init(mem_size=1 << 20) != 0:
            sys.exit(f"producer_consumer: {shmem.errors.last_error()}")
    except ValueError as error:  # neither oshrun nor torchrun started it
        parser.error(str(error))
    me, n = shmem.get_my_pe(), shmem.get_pe_count()
    if n < 2:
        sys.exit("producer_consumer: there is 1 process, needed are 2 and more")
    slots, total = shmem.tensor((SLOTS, ITEM), "int64"), shmem.tensor(1, "int64")
    filled, taken = shmem.tensor(1, "int32"), shmem.tensor(n, "int32")
    shmem.shmem_barrier_all()
    if me == 0:
        produce(items, slots, filled, taken)
    else:
        total[0] = consume(me, items, slots, filled, taken)
    shmem.shmem_int64_sum_reduce(total, total, 1)
    is_right = total[0] == ITEM * items * (items - 1) // 2
    if me == 0:
        print(f"producer_consumer: {n - 1} consumers, {items} items, {'PASS' if is_right else 'FAIL'}")
    del slots, total, filled, taken
    shmem.shmem_finalize()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
