// SPDX-License-Identifier: Apache-2.0
// A run as text.
#pragma once

#include <string>
#include <vector>

#include "perf/compare.h"
#include "perf/run.h"

namespace memspan::perf {

// A table for each test, and what the machine allows.
std::string to_text(const Run& run);
// Ratios of two runs, with what the other one is called.
std::string to_text(const std::vector<Ratio>& ratios, const Run& here, const Run& there,
                    Pairing pairing);
// These tests, by groups.
std::string list_text(const std::vector<std::string>& tests);

}  // namespace memspan::perf
