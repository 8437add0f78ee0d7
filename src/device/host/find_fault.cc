// SPDX-License-Identifier: Apache-2.0
#include "device/host/find_fault.h"

#include "core/pages.h"

namespace memspan {
namespace {

struct Touching {
  std::byte* const begin;
  const std::uint64_t bytes;
  const MemoryAccess access;

  void operator()() const {
    const std::uint64_t page = page_size();
    touch(begin);
    std::byte* const aligned = begin + (page - reinterpret_cast<std::uint64_t>(begin) % page);
    for (std::byte* at = aligned; at < begin + bytes; at += page) touch(at);
  }
  void touch(std::byte* at) const {
    auto* const byte = reinterpret_cast<unsigned char*>(at);
    if (access == MemoryAccess::kWrite) {
      unsigned char nothing = 0;
      asm volatile("" : "+r"(nothing));  // a compiler that knows the value would load only
      __atomic_fetch_or(byte, nothing, __ATOMIC_RELAXED);  // others may write there
    } else {
      static_cast<void>(__atomic_load_n(byte, __ATOMIC_RELAXED));
    }
  }
};

}  // namespace

std::optional<CopyFault> find_fault(std::byte* begin, std::uint64_t bytes, MemoryAccess access) {
  Touching touching{begin, bytes, access};
  return run_guarded(touching);
}

}  // namespace memspan
