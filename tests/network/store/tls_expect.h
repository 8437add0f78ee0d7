// SPDX-License-Identifier: Apache-2.0
// What the tests of TLS expect of a store and of its members.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "support.h"
#include "tls_peer.h"
#include "trust.h"

namespace memspan {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline Result<std::unique_ptr<StoreClient>> join(const Endpoint& endpoint, StoreSecurity security) {
  return StoreClient::connect(
      {.endpoint = endpoint, .security = std::move(security), .member = "a test"},
      Deadline::after(2 * kRefusalTime));
}

inline void expect_served(const StoreServer& server, const StoreSecurity& security) {
  auto client = join(server.endpoint(), security);
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
  EXPECT_EQ(*(*client)->get("k", soon()), "v");
}

// Within the time that a refusal may take, so not tried again until the deadline.
inline void expect_refused(const Endpoint& endpoint, StoreSecurity security, Code code,
                           std::string_view reason) {
  const Clock::time_point begin = Clock::now();
  auto client = join(endpoint, std::move(security));
  EXPECT_LT(Clock::now() - begin, kRefusalTime);
  ASSERT_FALSE(client.is_ok());
  EXPECT_EQ(client.code(), code) << client.status().to_string();
  EXPECT_TRUE(contains(client.status().message(), reason)) << client.status().to_string();
}

inline void expect_no_start(const StoreCertificates& certificates, std::string_view reason) {
  auto server = listen(with(certificates));
  ASSERT_FALSE(server.is_ok());
  EXPECT_EQ(server.code(), Code::kInvalidArgument) << server.status().to_string();
  EXPECT_TRUE(contains(server.status().message(), reason)) << server.status().to_string();
}

// A server that a client never gets to talk to.
inline const Endpoint kNowhere = {"127.0.0.1", 1};

}  // namespace memspan
