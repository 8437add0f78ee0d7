// SPDX-License-Identifier: Apache-2.0
// What people are told of a certificate, whether it is good or not.
#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "certificates.h"

namespace memspan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TlsSummaryTest, NamesOwnerIssuerNamesAndKey) {
  TestFolder folder;
  const Issued root = issue({.common_name = "the root", .names = {}, .is_authority = true});
  const auto summary = summarize_certificate(folder.write(
      to_pem(issue({.names = {"DNS:localhost", "URI:urn:memspan:job:a:rank:3"}}, &root))));
  ASSERT_TRUE(summary.is_ok()) << summary.status().to_string();
  EXPECT_EQ(summary->subject, "CN=a member");
  EXPECT_EQ(summary->issuer, "CN=the root");
  EXPECT_THAT(summary->names, ElementsAre("DNS:localhost", "URI:urn:memspan:job:a:rank:3"));
  EXPECT_THAT(summary->key, HasSubstr("256 bits"));
}

TEST(TlsSummaryTest, TellsBeginAndEndAlsoWhenTheyAreOver) {
  constexpr std::int64_t kMinute = 60;
  TestFolder folder;
  const auto good = summarize_certificate(folder.write(to_pem(issue({}))));
  ASSERT_TRUE(good.is_ok());
  EXPECT_NEAR(static_cast<double>(good->seconds_to_end), 90.0 * 24 * 3600, kMinute);
  EXPECT_LT(good->seconds_to_begin, 0);
  EXPECT_EQ(good->ends.size(), std::string("2026-11-25T02:44:04Z").size());
  const auto over =
      summarize_certificate(folder.write(to_pem(issue({.begins_s = -7200, .ends_s = -3600}))));
  ASSERT_TRUE(over.is_ok());
  EXPECT_NEAR(static_cast<double>(over->seconds_to_end), -3600, kMinute);
}

TEST(TlsSummaryTest, NamesAFileThatHasNone) {
  TestFolder folder;
  for (const std::string& path : {folder.write("not a certificate"), folder.path() + "/missing"}) {
    const auto summary = summarize_certificate(path);
    EXPECT_EQ(summary.code(), Code::kInvalidArgument);
    EXPECT_THAT(summary.status().message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace memspan
