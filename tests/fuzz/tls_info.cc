// SPDX-License-Identifier: Apache-2.0
// Texts from users and small values from the network: whatever comes is read or refused in words,
// and what is read is written again as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/endpoint.h"
#include "net/security.h"
#include "store/fields.h"
#include "store/wire.h"

namespace memspan {
namespace {

void expect_words(const Status& status) {
  MEMSPAN_CHECK(status.code() == Code::kInvalidArgument);
  MEMSPAN_CHECK(!status.message().empty());
}

void read_tls_info(std::string_view text) {
  const auto files = parse_tls_info(text);
  if (!files.is_ok()) return expect_words(files.status());
  MEMSPAN_CHECK(!files->certificate.empty() && !files->authorities.empty());
  for (const auto& file : files->authorities) MEMSPAN_CHECK(!file.empty());
  MEMSPAN_CHECK(files->certificate.find('\0') == std::string::npos);
}

void read_endpoint(std::string_view text) {
  const auto endpoint = Endpoint::parse(text);
  if (!endpoint.is_ok()) return expect_words(endpoint.status());
  const auto again = Endpoint::parse(endpoint->to_string());
  MEMSPAN_CHECK(again.is_ok() && *again == *endpoint);
}

void read_values(std::string_view bytes) {
  if (const auto texts = decode_record<std::vector<std::string>>(bytes, "listing"); texts.is_ok())
    MEMSPAN_CHECK(encode_record(*texts) == bytes);
  for (char c : quoted_key(bytes)) MEMSPAN_CHECK(c >= ' ' && c <= '~');
}

}  // namespace
}  // namespace memspan

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  memspan::read_tls_info(text);
  memspan::read_endpoint(text);
  memspan::read_values(text);
  return 0;
}
