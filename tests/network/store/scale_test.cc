// SPDX-License-Identifier: Apache-2.0
// Many members of one host: real connections under TLS, one thread a member.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "store/client.h"
#include "store/recipes/store_group.h"
#include "store/server.h"
#include "support.h"

namespace memspan {
namespace {

#if defined(MEMSPAN_TEST_IS_SANITIZED) || defined(MEMSPAN_TEST_IS_EMULATED)
constexpr int kMembers = 128;  // a sanitizer's or an emulator's threads are heavy
#else
constexpr int kMembers = 1024;
#endif
constexpr double kBoundSeconds = 10;

// Three descriptors a member: both ends and the client's own.
void allow_descriptors(rlim_t count) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min(limit.rlim_max, count);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(StoreScaleTest, AThousandMembersJoinAndMeetWithinTenSeconds) {
  allow_descriptors(8192);
  auto server = StoreServer::listen({"127.0.0.1", 0});
  ASSERT_TRUE(server.is_ok()) << server.status().to_string();
  const Endpoint endpoint = (*server)->endpoint();
  std::vector<int> ranks(kMembers, -1);
  const auto begin = Clock::now();
  std::vector<std::thread> members;
  for (int i = 0; i < kMembers; ++i)
    members.emplace_back([&, i] {
      auto client = StoreClient::connect({.endpoint = endpoint, .member = "one of many"}, soon());
      ASSERT_TRUE(client.is_ok()) << client.status().to_string();
      auto taken = (*client)->take_rank("job", -1, kMembers, soon());
      ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
      ranks[static_cast<std::size_t>(i)] = *taken;
      StoreGroup group(**client, "all", *taken, kMembers);
      ASSERT_TRUE(group.barrier(soon()).is_ok());
    });
  for (auto& member : members) member.join();
  const double seconds = to_seconds(Clock::now() - begin);
  fmt::print("{} members joined and met in {:.2f} s\n", kMembers, seconds);
  EXPECT_LT(seconds, kBoundSeconds);
  std::sort(ranks.begin(), ranks.end());
  for (int i = 0; i < kMembers; ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace memspan
