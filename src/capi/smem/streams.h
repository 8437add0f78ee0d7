// SPDX-License-Identifier: Apache-2.0
// The streams that programs made.
#pragma once

#include "capi/handle_table.h"
#include "device/stream.h"

namespace memspan::capi {

using Streams = HandleTable<Stream, HandleKind::kStream>;
Streams& streams();

}  // namespace memspan::capi
