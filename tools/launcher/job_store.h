// SPDX-License-Identifier: Apache-2.0
// The store of a job on several hosts: where it listens, and its protection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "store/server.h"

namespace memspan::launcher {

// "user@node1" or "[::1]" as a resolver takes it.
std::string address_part(const std::string& host);

// Listens, under TLS with a fresh secret, at the address towards the first of `hosts` that is not
// this one, or where MEMSPAN_NET says. kInvalidArgument when others could not reach that.
Result<std::unique_ptr<StoreServer>> open_job_store(const std::vector<std::string>& hosts);

}  // namespace memspan::launcher
