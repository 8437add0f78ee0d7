// SPDX-License-Identifier: Apache-2.0
// Calls of the CANN SHMEM API in the order of a stream of the device (a cudaStream_t). Copies with
// an end of the device are the stream's own; the rest is done by calls of the stream, on threads of
// ours where they may wait for peers (call_threads.h). Mistakes end the process, as those of the
// direct calls do: at once where they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace memspan::capi {

void put_on_device(const char* call, void* stream, void* dest, const void* source,
                   std::size_t bytes, int pe);
void get_on_device(const char* call, void* stream, void* dest, const void* source,
                   std::size_t bytes, int pe);
// ACLSHMEM_SIGNAL_SET or _ADD, behind all that the stream did before. A word in memory of the
// device can only be set.
void signal_on_device(const char* call, void* stream, std::int32_t* word, std::int32_t value,
                      int op, int pe);
// The stream continues once the word of this process fulfils the comparison. A word in device
// memory can be waited for with EQ and GE.
void wait_on_device(const char* call, void* stream, std::int32_t* word, int cmp,
                    std::int32_t value);
// The stream continues once `work` is done.
void call_on_device(const char* call, void* stream, std::function<void()> work);

}  // namespace memspan::capi
