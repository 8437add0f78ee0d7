// SPDX-License-Identifier: Apache-2.0
// The certificates that a configuration's structure names.
#pragma once

#include <smem/host/smem_bm_def.h>

#include <optional>

#include "core/status.h"
#include "net/security.h"

namespace memspan::capi {

// Empty when the structure does not ask for TLS: then what the program chose holds.
// kInvalidArgument names the field. The library of decrypterLibPath is loaded when the key's
// password is read.
Result<std::optional<StoreSecurity>> security_of(const smem_tls_config& config);

}  // namespace memspan::capi
