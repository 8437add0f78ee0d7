# SPDX-License-Identifier: Apache-2.0
"""Tensors as the groups of memspan._core take them: dense ones of the CPU, without gaps. What
csrc/dense_tensors.h and csrc/group_reductions.h are to the compiled form."""

import torch
import torch.distributed as dist
from memspan import _core

_c = _core.group
_Op = dist.ReduceOp

_TYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.bool: 1,
    torch.int16: 2,
    torch.uint16: 3,
    torch.int32: 4,
    torch.uint32: 5,
    torch.int64: 6,
    torch.uint64: 7,
    torch.float16: 8,
    torch.bfloat16: 9,
    torch.float32: 10,
    torch.float64: 11,
    torch.complex64: 12,
    torch.complex128: 13,
}
_SUM, _PRODUCT, _MIN, _MAX, _AND, _OR, _XOR, _AVERAGE = range(8)
_OPERATIONS = [
    (_Op.PREMUL_SUM, _SUM, None),  # of values that scaled() gave
    (_Op.SUM, _SUM, _OR),
    (_Op.PRODUCT, _PRODUCT, _AND),
    (_Op.MIN, _MIN, _AND),
    (_Op.MAX, _MAX, _OR),
    (_Op.BAND, _AND, _AND),
    (_Op.BOR, _OR, _OR),
    (_Op.BXOR, _XOR, _XOR),
    (_Op.AVG, _AVERAGE, None),
]  # of numbers, of bools


def check(code):
    if code == _c.OK:
        return
    text = _core.last_error()
    if code == _c.INVALID_PARAM:
        raise ValueError(text)
    raise dist.DistBackendError(f"memspan: Timed out in {text}" if code == _c.TIMEOUT else text)


def kind_of(tensor, operation):
    """The numbers of a reduction in memspan/group.h."""
    if tensor.dtype not in _TYPES:
        raise TypeError(f"the backend memspan reduces no tensors of {tensor.dtype}")
    for theirs, of_numbers, of_bools in _OPERATIONS:
        if operation == theirs:
            ours = of_bools if tensor.dtype == torch.bool else of_numbers
            if ours is not None:
                return _TYPES[tensor.dtype], ours
    raise ValueError(f"the backend memspan has no reduction {operation} of {tensor.dtype}")


def only(tensors):
    if len(tensors) != 1:
        raise ValueError(f"expected 1 tensor, got {len(tensors)}")
    return tensors[0]


def checked(tensor):
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise TypeError(
            f"the backend memspan moves dense tensors of the CPU, and got {tensor.layout} of "
            f"{tensor.device}"
        )
    return tensor


def to_read(tensor):
    return checked(tensor).contiguous()


def check_type(one, other):
    if one.dtype != other.dtype:
        raise TypeError(f"tensors of {one.dtype} and {other.dtype} in one call")


def check_alike(one, other, times=1):
    check_type(one, other)
    if one.numel() != other.numel() * times:
        raise ValueError(f"a tensor has {one.numel()} elements, needed are {other.numel() * times}")


class Result:
    """Where a result goes that is without gaps: the tensor, or memory that is copied to it; also of
    another type, in which it is computed."""

    def __init__(self, tensor, has_values=False, dtype=None):
        self.tensor = checked(tensor)
        self.flat = tensor
        if not tensor.is_contiguous() or dtype not in (None, tensor.dtype):
            self.flat = torch.empty(tensor.shape, dtype=dtype or tensor.dtype)
            if has_values:
                self.flat.copy_(tensor.detach())

    def finish(self):
        if self.flat is not self.tensor:
            with torch.no_grad():
                self.tensor.copy_(self.flat)


def addresses(tensors, step=None, count=None):
    """Of tensors; or of ``count`` parts of one, ``step`` bytes apart."""
    if count is None:
        return [tensor.data_ptr() for tensor in tensors]
    return [tensors.data_ptr() + step * part for part in range(count)]


# ---- reductions


def combined_type(dtype):
    """In which values are combined: the library does not know types of 8 bits."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize == 1 else dtype


def scaled(values, operation):
    """The values times the factor of PREMUL_SUM; themselves for another operation."""
    if operation != _Op.PREMUL_SUM:
        return values
    if not values.is_floating_point():
        raise ValueError(f"PREMUL_SUM is of floating-point numbers, and the tensor is of {values.dtype}")
    _, factor = operation.__getstate__()
    return values * (factor.item() if isinstance(factor, torch.Tensor) else factor)


class Reduction:
    """Of a tensor, to itself."""

    def __init__(self, tensor, operation):
        self.result = Result(tensor, has_values=True, dtype=combined_type(tensor.dtype))
        with torch.no_grad():
            self.values = scaled(self.result.flat, operation)
        self.kind = kind_of(self.result.flat, operation)


class ScatteredReduction:
    """Parts for each member, combined to a tensor of the size of this member's. Parts of different
    sizes are reduced one after the other, on all members alike."""

    def __init__(self, output, parts, operation):
        self._result = Result(output, dtype=combined_type(output.dtype))
        self._kind = kind_of(self._result.flat, operation)
        with torch.no_grad():
            self._parts = [
                scaled(to_read(part).to(combined_type(part.dtype)), operation) for part in parts
            ]

    def run(self, group, rank):
        place = self._result.flat.data_ptr()
        counts = [part.numel() for part in self._parts]
        if len(set(counts)) == 1:
            check(_c.reduce_scatter(group, place, addresses(self._parts), counts[0], *self._kind))
        else:
            for root, part in enumerate(self._parts):
                result = place if root == rank else 0
                check(_c.reduce(group, result, part.data_ptr(), counts[root], *self._kind, root))
        self._result.finish()


class SparseSum:
    """The sum of everybody's sparse tensor, in the order of members, written to this one's."""

    def __init__(self, tensor, operation, size):
        if tensor.device.type != "cpu" or tensor.layout != torch.sparse_coo:
            raise TypeError(
                f"the backend memspan moves sparse tensors of the CPU in COO layout, and got "
                f"{tensor.layout} of {tensor.device}"
            )
        if operation != _Op.SUM:
            raise ValueError("of sparse tensors the backend memspan has the reduction SUM only")
        with torch.no_grad():
            mine = tensor.coalesce()
            self._rows = mine.indices().t().contiguous(), mine.values().contiguous()
        self._tensor, self._size = tensor, size

    def run(self, group):
        mine = torch.tensor([len(self._rows[1])])
        counts = torch.empty(self._size, dtype=torch.int64)
        places = addresses(counts, counts.itemsize, self._size)
        check(_c.all_gather(group, places, mine.data_ptr(), mine.nbytes))
        gathered = []
        for rows in self._rows:
            parts = [rows.new_empty(count, *rows.shape[1:]) for count in counts.tolist()]
            gather_uneven(group, parts, rows)
            gathered.append(parts)
        with torch.no_grad():
            total = None
            for indices, values in zip(*gathered):
                part = torch.sparse_coo_tensor(
                    indices.t(), values, self._tensor.shape, check_invariants=False, is_coalesced=True
                )
                total = part if total is None else total + part
            self._tensor.copy_(total)


def gather_uneven(group, results, values):
    """Everybody's tensor, whose sizes differ, to all."""
    size = len(results)
    check(
        _c.all_to_all(
            group,
            addresses(results),
            [result.nbytes for result in results],
            [values.data_ptr()] * size,
            [values.nbytes] * size,
        )
    )
