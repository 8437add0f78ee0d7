// SPDX-License-Identifier: Apache-2.0
// The streams that programs made.
#pragma once

#include <memspan/stream.h>

#include "capi/handle_table.h"
#include "capi/smem/fork_aware_singleton.h"
#include "device/stream.h"

namespace memspan::capi {

using Streams = HandleTable<Stream, HandleKind::kStream>;
inline constexpr auto& streams = fork_aware_singleton<Streams>;

// The stream of calls that name none, made at the first call; null when there can be no more.
memspan_stream_t default_stream();
// Until all that was given to it is done: host calls come after it. At once in its own work, and
// where nothing was ever given to it.
void finish_default_stream();

// Whether a handle may be a stream of the device (a cudaStream_t). Handles of memspan's streams,
// also of destroyed ones, never look like addresses.
bool may_be_of_device(const void* stream);

}  // namespace memspan::capi
