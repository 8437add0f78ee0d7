// SPDX-License-Identifier: Apache-2.0
// Agreement of the members of a collective step: all succeed or all fail. Every member sends its
// text or its failure. If one failed, all fail with its code and message.
//
// It uses any exchange of texts between the members: a store's all-gather, a launcher, MPI.
#pragma once

#include <functional>
#include <vector>

#include "core/status.h"

namespace memspan::inline core {

// Returns every member's text, in the order of members. All members call it equally often.
using Exchange = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

// Returns the texts of all, or on all members the failure of the first member that failed, after
// "`kind` N: ". If the exchange fails, a member that had failed before gets its own failure.
Result<std::vector<std::string>> agree(const Exchange& exchange, const Result<std::string>& mine,
                                       std::string_view kind);
// Agrees without texts.
Status agree(const Exchange& exchange, const Status& mine, std::string_view kind);

// A result as a text, "CODE TEXT", for exchanges that carry only texts.
std::string encode_outcome(const Result<std::string>& outcome);
Result<std::string> decode_outcome(const std::string& told);

}  // namespace memspan::inline core
