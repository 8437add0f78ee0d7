// SPDX-License-Identifier: Apache-2.0
// Calls in the order of a stream of the host device (memspan/stream.h).
#pragma once

#include <memspan/stream.h>

#include <cstdint>
#include <cstdio>
#include <memory>

#include "calls.h"
#include "handles.h"

namespace memspan::python {

// Runs `work` in the order of the stream, or now for 0. What fails there is the stream's failure.
template <typename Work>
int in_stream(Handle stream, Work work) {
  if (stream == 0) {
    wait(work);
    return 0;
  }
  auto kept = std::make_unique<Work>(work);
  const auto run = [](void* context) -> std::int32_t {
    const std::unique_ptr<Work> given(static_cast<Work*>(context));
    const InCall in_call;
    try {
      (*given)();
    } catch (const EndedCall& ended) {
      std::fprintf(stderr, "memspan: in a stream: %s\n", ended.message.c_str());
      return 1;
    }
    return 0;
  };
  const int code = memspan_stream_call(pointer_of(stream), run, kept.get());
  if (code == 0) static_cast<void>(kept.release());
  return smem_code(code);
}

}  // namespace memspan::python
