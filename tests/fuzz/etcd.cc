// SPDX-License-Identifier: Apache-2.0
// Answers of etcd, or of whoever answers in its place: they are read or refused, and base64 that is
// read is written again as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/etcd/etcd_messages.h"

namespace memspan::etcd {
namespace {

void read(std::string_view text) {
  if (const auto range = read_range(text); range.is_ok()) {
    MEMSPAN_CHECK(range->revision > 0);
    for (const KeyValue& each : range->keys) MEMSPAN_CHECK(!each.key.empty());
  }
  if (const auto written = read_transaction(text); written.is_ok())
    MEMSPAN_CHECK(written->revision > 0);
  static_cast<void>(read_keep_alive(text));
  if (const auto token = read_token(text); token.is_ok())
    MEMSPAN_CHECK(token->find('\n') == std::string::npos);
  if (const auto watch = read_watch(text); watch.is_ok())
    for (const auto& change : watch->changes) MEMSPAN_CHECK(!change.now.key.empty());
  for (const long status : {0L, 200L, 404L, 503L})
    MEMSPAN_CHECK(!read_failure(status, text).is_ok());
  if (const auto bytes = from_base64(text)) MEMSPAN_CHECK(to_base64(*bytes) == text);
  MEMSPAN_CHECK(from_base64(to_base64(text)) == text);
}

}  // namespace
}  // namespace memspan::etcd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memspan::etcd::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
