// SPDX-License-Identifier: Apache-2.0
// Findings as text and as JSON.
#pragma once

#include <string>

#include "info/finding.h"

namespace memspan::info {

// A line each, by groups; what is not good begins with its judgement.
std::string to_text(const Findings& findings);
// Only findings that are not good, each with the wanted value and the remedy, and the verdict.
std::string to_diagnosis(const Findings& findings);
// {"version": ..., "verdict": ..., GROUP: {KEY: {"text", "value", "judgement", "wanted",
// "remedy"}}}
std::string to_json(const Findings& findings);

}  // namespace memspan::info
