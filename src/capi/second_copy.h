// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace memspan::capi {

// Whether another copy of this library is in the process; logs where both are. Call it while this
// copy is loaded.
bool report_second_copy();

}  // namespace memspan::capi
