// SPDX-License-Identifier: Apache-2.0
// What the fused form asks of the library: from the host, or in a kernel.
#pragma once

#include <memspan/kernel.h>
#include <shmem.h>

#include <cstddef>
#include <cstdint>

namespace matmul {

// What is put stays as it is until quiet(). Words are signals; sizes are in bytes.
struct HostCalls {
  static void* reach(void* address, int pe) { return shmem_ptr(address, pe); }
  static void put(void* dest, const void* source, std::size_t bytes, int pe) {
    shmem_putmem_nbi(dest, source, bytes, pe);
  }
  static void put_and_add(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, int pe) {
    shmem_putmem_signal_nbi(dest, source, bytes, word, value, SHMEM_SIGNAL_ADD, pe);
  }
  static void put_and_set(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, int pe) {
    shmem_putmem_signal_nbi(dest, source, bytes, word, value, SHMEM_SIGNAL_SET, pe);
  }
  static void add(std::uint64_t* word, std::uint64_t value, int pe) {
    shmem_signal_add(word, value, pe);
  }
  static bool is_at_least(std::uint64_t* word, std::uint64_t value) {
    return shmem_signal_fetch(word) >= value;
  }
  static void wait_until_at_least(std::uint64_t* word, std::uint64_t value) {
    shmem_signal_wait_until(word, SHMEM_CMP_GE, value);
  }
  static void fence() { shmem_fence(); }
  static void quiet() { shmem_quiet(); }
};

struct KernelCalls {
  static void* reach(void* address, int pe) {
    return memspan::kernel::ptr(static_cast<std::byte*>(address), pe);
  }
  static void put(void* dest, const void* source, std::size_t bytes, int pe) {
    memspan::kernel::putmem_nbi(dest, source, bytes, pe);
  }
  static void put_and_add(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, int pe) {
    put_signal(dest, source, bytes, word, value, memspan::kernel::SignalOp::kAdd, pe);
  }
  static void put_and_set(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                          std::uint64_t value, int pe) {
    put_signal(dest, source, bytes, word, value, memspan::kernel::SignalOp::kSet, pe);
  }
  static void add(std::uint64_t* word, std::uint64_t value, int pe) {
    memspan::kernel::signal_op(word, value, memspan::kernel::SignalOp::kAdd, pe);
  }
  static bool is_at_least(const std::uint64_t* word, std::uint64_t value) {
    return memspan::kernel::test(word, memspan::kernel::Compare::kGreaterEqual, value);
  }
  static void wait_until_at_least(const std::uint64_t* word, std::uint64_t value) {
    memspan::kernel::wait_until(word, memspan::kernel::Compare::kGreaterEqual, value);
  }
  static void fence() { memspan::kernel::fence(); }
  static void quiet() { memspan::kernel::quiet(); }

 private:
  static void put_signal(void* dest, const void* source, std::size_t bytes, std::uint64_t* word,
                         std::uint64_t value, memspan::kernel::SignalOp op, int pe) {
    memspan::kernel::put_signal_nbi(static_cast<std::byte*>(dest),
                                    static_cast<const std::byte*>(source), bytes, word, value, op,
                                    pe);
  }
};

}  // namespace matmul
