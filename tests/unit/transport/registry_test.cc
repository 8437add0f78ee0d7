// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memspan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kAll[] = {"mapped", "cma", "message"};

Pair pair_on(bool same_node) {
  return {.from = "PE 0 on host a", .to = "PE 1 on host b", .same_node = same_node};
}

TEST(RegistryTest, TakesTheFirstThatReachesAndSaysWhy) {
  const AllowedTransports allowed = AllowedTransports::parse("").value();
  const TransportChoice near = allowed.choose(pair_on(true), kAll).value();
  EXPECT_EQ(near.name, "mapped");
  EXPECT_THAT(near.why, HasSubstr("one node"));
  EXPECT_EQ(allowed.choose(pair_on(false), kAll).value().name, "message");
}

TEST(RegistryTest, TakesOnlyWhatIsAllowed) {
  const AllowedTransports allowed = AllowedTransports::parse("cma,message").value();
  EXPECT_EQ(allowed.choose(pair_on(true), kAll).value().name, "cma");
  EXPECT_FALSE(allowed.has("mapped"));
}

TEST(RegistryTest, SaysWhyNoneReaches) {
  const auto chosen = AllowedTransports::parse("mapped").value().choose(pair_on(false), kAll);
  EXPECT_EQ(chosen.code(), Code::kUnreachable);
  EXPECT_THAT(chosen.status().message(),
              AllOf(HasSubstr("PE 0 on host a and PE 1 on host b"),
                    HasSubstr("mapped: they are on different hosts"),
                    HasSubstr("cma: MEMSPAN_TRANSPORT does not allow it"),
                    HasSubstr("message: MEMSPAN_TRANSPORT does not allow it")));
}

TEST(RegistryTest, NamesWhatThereIsWhenAskedForAnother) {
  const auto allowed = AllowedTransports::parse("mapped,pigeon");
  EXPECT_EQ(allowed.code(), Code::kInvalidArgument);
  EXPECT_THAT(allowed.status().message(),
              HasSubstr("\"pigeon\"; allowed are mapped, cma, message"));
}

}  // namespace
}  // namespace memspan
