// SPDX-License-Identifier: Apache-2.0
// The stream of the CANN SHMEM API for calls that name none.
#pragma once

namespace memspan::capi {

// Until all that was given to it is done: host calls come after it. At once in its own work, and
// where nothing was ever given to it.
void finish_default_stream();

}  // namespace memspan::capi
