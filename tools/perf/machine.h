// SPDX-License-Identifier: Apache-2.0
// The machine and the software that figures were measured on, for their readers.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace memspan::perf {

// Names and values in the order in which they are read: processor, cores, caches, memory, kernel.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts describe_machine();

// The variables of memspan and of OpenSHMEM that this process has, by name: a job inherits them,
// and some change what it measures (MEMSPAN_TRACE). Without those that a launcher numbers its
// processes by, and without the values of what may be a secret.
Facts set_variables();

// "2026-11-25 02:44:04 UTC"
std::string time_now();

}  // namespace memspan::perf
