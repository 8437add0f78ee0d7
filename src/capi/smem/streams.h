// SPDX-License-Identifier: Apache-2.0
// The streams that programs made.
#pragma once

#include "capi/smem/object_table.h"
#include "device/stream.h"

namespace memspan::capi {

using Streams = ObjectTable<Stream, ObjectKind::kStream>;
Streams& streams();

}  // namespace memspan::capi
