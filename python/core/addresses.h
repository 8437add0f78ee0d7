// SPDX-License-Identifier: Apache-2.0
// Addresses of the symmetric heap: ints with the buffer protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace memspan::python {

namespace nb = nanobind;

// Whose memory it is: that of a device has no buffer, as the host cannot load from it.
enum class Side { kHost, kDevice };

// An Address of `bytes`; None for NULL. The number alone is enough to give it back.
nb::object make_address(void* base, std::size_t bytes, Side side = Side::kHost);
// A peer's copy of what is at `local`; None for NULL.
nb::object make_peer_address(void* peers, const void* local);
// After free: the Addresses of the memory, and those of peers' copies, have no buffer any more.
void forget_address(const void* base);
// The same for all.
void forget_addresses();
// Whether an allocation of this process begins there.
bool is_allocation(const void* base);
// Of which side it is; the host's for what is no allocation.
Side side_of(const void* base);
// Bytes from there to the end of its allocation; 0 outside of allocations. With the GIL.
std::size_t bytes_from(std::uintptr_t address);
// Throws ValueError when nothing can be read at the first or the last of `bytes` there, which costs
// a system call for what is not in the symmetric heap. With the GIL.
void check_address(const char* name, std::uintptr_t address, std::size_t bytes);
// Before and after the end of a job: memory that views of Python still refer to stays, private to
// this process, until the last of them is gone.
void keep_viewed_memory();
void own_kept_memory();

void bind_addresses(nb::module_& module);

}  // namespace memspan::python
