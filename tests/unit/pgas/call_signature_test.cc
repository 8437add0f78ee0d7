// SPDX-License-Identifier: Apache-2.0
#include "pgas/call_signature.h"

#include <gmock/gmock.h>

#include <vector>

namespace memspan {
namespace {

using testing::StartsWith;

TEST(CallSignatureTest, EqualValuesAreNoDifference) {
  const SignatureField mine[] = {{"a", 1}, {"b", 2}};
  const std::uint64_t theirs[] = {1, 2};
  EXPECT_TRUE(compare_signatures(mine, theirs, 3).is_ok());
}

TEST(CallSignatureTest, NamesTheFirstValueThatDiffersAndBothSides) {
  const SignatureField mine[] = {{"a", 1}, {"dst", static_cast<std::uint64_t>(-2)}, {"c", 7}};
  const std::uint64_t theirs[] = {1, 4, 8};
  const Status status = compare_signatures(mine, theirs, 3);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), StartsWith("dst is -2 here and 4 on PE 3;"));
}

TEST(CallSignatureTest, CallsPeersAsTheirCallersDo) {
  const SignatureField mine[] = {{"the root", 0}};
  const std::uint64_t theirs[] = {1};
  EXPECT_THAT(compare_signatures(mine, theirs, 2, {"member", "group"}).message(),
              StartsWith("the root is 0 here and 1 on member 2; all members of a group make"));
}

// A team whose members gave these words.
struct Given {
  std::vector<std::vector<std::uint64_t>> words;
  int size() const { return static_cast<int>(words.size()); }
  int peer_of(int member) const { return 10 + member; }
  std::uint64_t word(int member, int i) const {
    return words[static_cast<std::size_t>(member)][static_cast<std::size_t>(i)];
  }
};

TEST(CallSignatureTest, EveryMemberFindsOneThatDiffers) {
  const Given team{{{1, 2}, {1, 2}, {1, 3}}};
  const std::uint64_t first[] = {1, 2};
  const std::uint64_t last[] = {1, 3};
  EXPECT_EQ(find_different(team, first), 2);
  EXPECT_EQ(find_different(team, last), 0);
  EXPECT_EQ(find_different(team, std::span(first, 1)), -1);
  const SignatureField fields[] = {{"a", 1}, {"b", 2}};
  EXPECT_THAT(compare_with_all(team, fields).message(), StartsWith("b is 2 here and 3 on PE 12;"));
}

TEST(CallSignatureTest, DescribesWhatIsNoNumber) {
  const SignatureField mine[] = {
      {"the call", 0, [](std::uint64_t call) { return call == 0 ? "a scan" : "a reduction"; }}};
  const std::uint64_t theirs[] = {1};
  EXPECT_THAT(compare_signatures(mine, theirs, 1).message(),
              StartsWith("the call is a scan here and a reduction on PE 1;"));
}

}  // namespace
}  // namespace memspan
