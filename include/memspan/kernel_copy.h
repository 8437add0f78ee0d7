// SPDX-License-Identifier: Apache-2.0
// Copies by the threads of a group together, for kernels on devices. Programs include
// <memspan/kernel.h>. C++17.
//
// A group has index(), the calling thread's number in it, size(), sync(), in which its threads
// meet, and broadcast(value), which gives all of them the value of thread 0.
#ifndef MEMSPAN_KERNEL_COPY_H
#define MEMSPAN_KERNEL_COPY_H

#if !defined MEMSPAN_KERNEL_FUNCTION
#error "a part of <memspan/kernel.h>, to be included by it"
#endif

#include <cstddef>
#include <cstdint>

#include "kernel_types.h"

namespace memspan::kernel::device {

// One thread.
struct ThreadAlone {
  MEMSPAN_KERNEL_FUNCTION unsigned index() const { return 0; }
  MEMSPAN_KERNEL_FUNCTION unsigned size() const { return 1; }
  MEMSPAN_KERNEL_FUNCTION void sync() const {}
  MEMSPAN_KERNEL_FUNCTION std::uint64_t broadcast(std::uint64_t value) const { return value; }
};

// The unit of one load or store, for memory of any type.
struct alignas(16) [[gnu::may_alias]] Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};
typedef std::uint64_t __attribute__((may_alias)) Bytes8;
typedef std::uint32_t __attribute__((may_alias)) Bytes4;

// Every thread moves each size()-th piece, so that neighbours touch neighbouring memory; four loads
// are on their way at once.
template <typename Piece, typename Group>
MEMSPAN_KERNEL_FUNCTION void copy_pieces(const Group& group, Piece* to, const Piece* from,
                                         std::size_t count) {
  const std::size_t step = group.size();
  std::size_t i = group.index();
  for (; i + 3 * step < count; i += 4 * step) {
    const Piece first = from[i];
    const Piece second = from[i + step];
    const Piece third = from[i + 2 * step];
    const Piece fourth = from[i + 3 * step];
    to[i] = first;
    to[i + step] = second;
    to[i + 2 * step] = third;
    to[i + 3 * step] = fourth;
  }
  for (; i < count; i += step) to[i] = from[i];
}

// By pieces from the first place where both are aligned for one, and bytes before and after.
template <typename Piece, typename Group>
MEMSPAN_KERNEL_FUNCTION void copy_aligned(const Group& group, unsigned char* to,
                                          const unsigned char* from, std::size_t bytes) {
  const std::size_t gap = (0 - reinterpret_cast<std::uintptr_t>(to)) % sizeof(Piece);
  const std::size_t head = gap < bytes ? gap : bytes;
  const std::size_t pieces = (bytes - head) / sizeof(Piece);
  const std::size_t body = pieces * sizeof(Piece);
  copy_pieces(group, to, from, head);
  copy_pieces(group, reinterpret_cast<Piece*>(to + head),
              reinterpret_cast<const Piece*>(from + head), pieces);
  copy_pieces(group, to + head + body, from + head + body, bytes - head - body);
}

// The threads do not meet after it.
template <typename Group>
MEMSPAN_KERNEL_OUT_OF_LINE void copy(const Group& group, void* dest, const void* source,
                                     std::size_t bytes) {
  auto* const to = static_cast<unsigned char*>(dest);
  const auto* const from = static_cast<const unsigned char*>(source);
  const auto apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  if (apart % 16 == 0)
    copy_aligned<Bytes16>(group, to, from, bytes);
  else if (apart % 8 == 0)
    copy_aligned<Bytes8>(group, to, from, bytes);
  else if (apart % 4 == 0)
    copy_aligned<Bytes4>(group, to, from, bytes);
  else
    copy_pieces(group, to, from, bytes);
}

// Short rows are a thread's each; for long ones the threads work together.
template <typename Group>
MEMSPAN_KERNEL_OUT_OF_LINE void copy_rows(const Group& group, void* dest, const void* source,
                                          const backend::ByteRows& shape) {
  constexpr std::size_t kShort = 64;
  auto* const to = static_cast<unsigned char*>(dest);
  const auto* const from = static_cast<const unsigned char*>(source);
  const bool is_short = shape.bytes <= kShort;
  for (std::size_t row = is_short ? group.index() : 0; row < shape.rows;
       row += is_short ? group.size() : 1) {
    const auto number = static_cast<std::ptrdiff_t>(row);
    unsigned char* const row_to = to + number * shape.dest_pitch;
    const unsigned char* const row_from = from + number * shape.source_pitch;
    if (is_short)
      copy(ThreadAlone{}, row_to, row_from, shape.bytes);
    else
      copy(group, row_to, row_from, shape.bytes);
  }
}

}  // namespace memspan::kernel::device

#endif  // MEMSPAN_KERNEL_COPY_H
