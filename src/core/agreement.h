// SPDX-License-Identifier: Apache-2.0
// Agreement of the members of a collective step: all succeed or nobody does. Every member tells
// what it has, or why it failed; when one failed, all fail with its code and message.
//
// It stands on whatever lets members exchange texts: a store's all-gather, a launcher, MPI.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memspan {

// Every member's text, in the order of members. All members call it, as often.
using ExchangeTexts = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

// The texts of all; or, the same on all members, the failure of the first member that failed, after
// "`kind` N: ". Where the exchange fails, a member that had failed before gets its own failure.
Result<std::vector<std::string>> agree(const ExchangeTexts& exchange,
                                       const Result<std::string>& mine, std::string_view kind);
// The same without texts.
Status agree(const ExchangeTexts& exchange, const Status& mine, std::string_view kind);

// A result as a text, for a way of one's own: "CODE TEXT". Some carry nothing but text.
std::string encode_outcome(const Result<std::string>& outcome);
Result<std::string> decode_outcome(const std::string& told);

}  // namespace memspan
