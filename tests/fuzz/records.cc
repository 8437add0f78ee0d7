// SPDX-License-Identifier: Apache-2.0
// Texts of the environment and the command line, and records that processes leave for each other at
// the store: whatever comes is read or refused in words, and what is read, written again, reads the
// same.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "fabric/tags.h"
#include "fabric/transfer/endpoint_record.h"
#include "net/trusted_networks.h"
#include "store/store_address.h"
#include "transport/link.h"
#include "world/introduction.h"

namespace memspan {
namespace {

void expect_words(const Status& status) {
  MEMSPAN_CHECK(status.code() == Code::kInvalidArgument);
  MEMSPAN_CHECK(!status.message().empty());
}

void read_numbers(std::string_view text) {
  const auto integer = parse_integer("n", text, -5, 65535);
  if (!integer.is_ok()) expect_words(integer.status());
  if (integer.is_ok()) MEMSPAN_CHECK(*integer >= -5 && *integer <= 65535);
  const auto size = parse_size("size", text);
  if (!size.is_ok()) expect_words(size.status());
  if (size.is_ok()) MEMSPAN_CHECK(*size > 0);
  const auto time = parse_time("time", text);
  if (!time.is_ok()) expect_words(time.status());
  if (time.is_ok()) MEMSPAN_CHECK(*time >= Duration::zero() && *time <= std::chrono::hours(1));
}

void read_addresses(std::string_view text) {
  if (const auto address = StoreAddress::parse(text); address.is_ok()) {
    MEMSPAN_CHECK(!address->endpoints.empty());
    const auto again = StoreAddress::parse(address->to_string());
    MEMSPAN_CHECK(again.is_ok() && *again == *address);
  } else {
    expect_words(address.status());
  }
  if (const auto networks = TrustedNetworks::parse(text); networks.is_ok())
    (void)networks->contain(std::string(text));
  else
    expect_words(networks.status());
}

void read_records(std::string_view bytes) {
  if (const auto region = RemoteRegion::decode(bytes); region.is_ok())
    MEMSPAN_CHECK(region->encode() == bytes);
  if (const auto record = transfer::decode_record(bytes); record.is_ok())
    MEMSPAN_CHECK(transfer::encode(*record) == bytes);
  if (const auto read = Introduction::decode(std::string(bytes)); read.is_ok())
    MEMSPAN_CHECK(Introduction::decode(read->encode()).is_ok());
}

// The tag before the first line feed, the rules behind it.
void read_tags(std::string_view text) {
  const std::size_t cut = std::min(text.find('\n'), text.size());
  const auto rules = parse_tags(text.substr(0, cut), text.substr(std::min(cut + 1, text.size())));
  if (!rules.is_ok()) return expect_words(rules.status());
  for (const auto& [one, other] : rules->links)
    MEMSPAN_CHECK(rules->allows(one, other) && rules->allows(other, one));
}

}  // namespace
}  // namespace memspan

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  memspan::read_numbers(text);
  memspan::read_addresses(text);
  memspan::read_records(text);
  memspan::read_tags(text);
  return 0;
}
