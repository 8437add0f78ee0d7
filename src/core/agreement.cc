// SPDX-License-Identifier: Apache-2.0
#include "core/agreement.h"

#include <fmt/format.h>

#include "core/environment.h"

namespace memspan::inline core {

// CODE is 0 for success.
std::string encode_outcome(const Result<std::string>& outcome) {
  return fmt::format("{} {}", static_cast<int>(outcome.code()),
                     outcome.is_ok() ? outcome.value() : outcome.status().message());
}

Result<std::string> decode_outcome(const std::string& told) {
  const std::size_t blank = std::min(told.find(' '), told.size());
  const auto code = parse_integer("the outcome", told.substr(0, blank), 0,
                                  static_cast<std::int64_t>(Code::kInternal));
  if (!code.is_ok() || blank == told.size())
    return Status(Code::kInternal, "what it says of itself is malformed");
  std::string text = told.substr(blank + 1);
  if (*code != 0) return Status(static_cast<Code>(*code), std::move(text));
  return text;
}

Result<std::vector<std::string>> agree(const Exchange& exchange, const Result<std::string>& mine,
                                       std::string_view kind) {
  auto all = exchange(encode_outcome(mine));
  if (!all.is_ok()) return mine.is_ok() ? all : mine.status();
  for (std::size_t member = 0; member < all->size(); ++member) {
    std::string& text = (*all)[member];
    if (text.starts_with("0 ")) {  // success; jobs are large
      text.erase(0, 2);
      continue;
    }
    MEMSPAN_TRY_ASSIGN(text, decode_outcome(text), fmt::format("{} {}", kind, member));
  }
  return all;
}

Status agree(const Exchange& exchange, const Status& mine, std::string_view kind) {
  return agree(exchange, mine.is_ok() ? Result<std::string>(std::string()) : mine, kind).status();
}

}  // namespace memspan::inline core
