// SPDX-License-Identifier: Apache-2.0
#include "net/security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "unit/support/private_folder.h"

namespace memspan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kVariable = "MEMSPAN_JOB_SECRET_FILE";

// "" when it was read.
std::string refusal_of(std::string_view text) {
  auto files = parse_tls_info(text);
  if (files.is_ok()) return {};
  EXPECT_EQ(files.code(), Code::kInvalidArgument);
  return files.status().message();
}

TEST(TlsInfoTest, ReadsEveryEntry) {
  auto files = parse_tls_info(
      "tlsCaPath: /etc/ca; tlsCaFile: a.pem, b.pem; tlsCert: /etc/me.pem; tlsCrlPath: /etc/crl; "
      "tlsCrlFile: x.crl; tlsPk: /etc/me.key; tlsPkPwd: /etc/password; packagePath: /usr/lib;");
  ASSERT_TRUE(files.is_ok()) << files.status().to_string();
  EXPECT_THAT(files->authorities, ElementsAre("/etc/ca/a.pem", "/etc/ca/b.pem"));
  EXPECT_THAT(files->revocations, ElementsAre("/etc/crl/x.crl"));
  EXPECT_EQ(files->certificate, "/etc/me.pem");
  EXPECT_EQ(files->key.path, "/etc/me.key");
  EXPECT_EQ(files->key.text, "");
  EXPECT_EQ(files->password.path, "/etc/password");
}

TEST(TlsInfoTest, NeedsNoMoreThanACertificateAndAnAuthority) {
  auto files = parse_tls_info("tlsCert:c;tlsCaFile:a");
  ASSERT_TRUE(files.is_ok()) << files.status().to_string();
  EXPECT_EQ(files->certificate, "c");
  EXPECT_THAT(files->authorities, ElementsAre("a"));
  EXPECT_THAT(files->revocations, IsEmpty());
  EXPECT_FALSE(files->key.is_given());
  EXPECT_FALSE(files->password.is_given());
}

TEST(TlsInfoTest, TrimsBlanksAndSkipsEmptyItemsAndNames) {
  auto files = parse_tls_info(";;\n tlsCert\t:  my cert.pem \r\n;  ; tlsCaFile: ,a , ,b,;");
  ASSERT_TRUE(files.is_ok()) << files.status().to_string();
  EXPECT_EQ(files->certificate, "my cert.pem");
  EXPECT_THAT(files->authorities, ElementsAre("a", "b"));
}

TEST(TlsInfoTest, RefusesAnUnknownEntryAndNamesTheKnown) {
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaFile: a; tlsKey: k"),
              AllOf(HasSubstr("\"tlsKey\""), HasSubstr("tlsCrlFile"), HasSubstr("packagePath")));
  EXPECT_THAT(refusal_of("tlscert: c; tlsCaFile: a"), HasSubstr("\"tlscert\""));
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaFile: a; : x"), HasSubstr("is not an entry"));
}

TEST(TlsInfoTest, RefusesAnEntryThatIsThereTwice) {
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaFile: a; tlsCert: c"),
              AllOf(HasSubstr("\"tlsCert\""), HasSubstr("twice")));
}

TEST(TlsInfoTest, RefusesAnEmptyValue) {
  for (const char* text : {"tlsCert:; tlsCaFile: a", "tlsCert:  ; tlsCaFile: a"})
    EXPECT_THAT(refusal_of(text), AllOf(HasSubstr("\"tlsCert\""), HasSubstr("empty"))) << text;
}

TEST(TlsInfoTest, RefusesAnItemWithoutAColon) {
  EXPECT_THAT(refusal_of("tlsCert c; tlsCaFile: a"),
              AllOf(HasSubstr("\"tlsCert c\""), HasSubstr("no colon")));
}

TEST(TlsInfoTest, RefusesAColonInAPath) {
  EXPECT_THAT(refusal_of("tlsCert: c:d; tlsCaFile: a"),
              AllOf(HasSubstr("\"tlsCert\""), HasSubstr("colon")));
  EXPECT_THAT(refusal_of("tlsCert: c tlsCaFile: a"), HasSubstr("colon"));
}

TEST(TlsInfoTest, TakesTenKibibytesAndNoByteMore) {
  std::string text = "tlsCert: c; tlsCaFile: a;";
  text.resize(10 << 10, ' ');
  EXPECT_EQ(refusal_of(text), "");
  text += ' ';
  EXPECT_THAT(refusal_of(text), AllOf(HasSubstr("10241"), HasSubstr("10240")));
}

TEST(TlsInfoTest, RefusesAZeroByte) {
  EXPECT_THAT(refusal_of(std::string_view("tlsCert: c\0; tlsCaFile: a", 25)),
              HasSubstr("zero byte"));
}

TEST(TlsInfoTest, NamesWhatIsMissing) {
  EXPECT_THAT(refusal_of(""), AllOf(HasSubstr("\"tlsCert\""), HasSubstr("missing")));
  EXPECT_THAT(refusal_of("tlsCaFile: a"), HasSubstr("\"tlsCert\""));
  EXPECT_THAT(refusal_of("tlsCert: c"), AllOf(HasSubstr("\"tlsCaFile\""), HasSubstr("missing")));
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaFile: ,"), HasSubstr("\"tlsCaFile\""));
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaPath: /ca"), HasSubstr("\"tlsCaFile\""));
  EXPECT_THAT(refusal_of("tlsCert: c; tlsCaFile: a; tlsCrlPath: /crl"),
              HasSubstr("\"tlsCrlFile\""));
}

TEST(TlsInfoTest, ShortensWhatItNames) {
  EXPECT_LT(refusal_of(std::string(9000, 'x')).size(), 200U);
  EXPECT_LT(refusal_of(std::string(9000, 'x') + ": y").size(), 400U);
}

class SecurityFromEnvironmentTest : public testing::Test {
 protected:
  ~SecurityFromEnvironmentTest() override { unsetenv(kVariable); }
  Result<StoreSecurity> read(const std::string& bytes, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/secret";
    std::ofstream(path) << bytes;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(setenv(kVariable, path.c_str(), 1), 0);
    return security_from_environment();
  }
  PrivateFolder folder_;
};

TEST_F(SecurityFromEnvironmentTest, IsTheHostsSecretWithoutTheVariable) {
  unsetenv(kVariable);
  auto security = security_from_environment();
  ASSERT_TRUE(security.is_ok());
  EXPECT_EQ(security->kind, StoreSecurity::Kind::kHostSecret);
  EXPECT_EQ(security->secret, "");
}

TEST_F(SecurityFromEnvironmentTest, IsWhatTheFileHolds) {
  const std::string secret = std::string("zero \0 and newline\n", 19);
  auto security = read(secret);
  ASSERT_TRUE(security.is_ok()) << security.status().to_string();
  EXPECT_EQ(security->kind, StoreSecurity::Kind::kSecret);
  EXPECT_EQ(security->secret, secret);
}

TEST_F(SecurityFromEnvironmentTest, TakesAllowedLengthsOnly) {
  EXPECT_TRUE(read(std::string(kLeastSecretBytes, 's')).is_ok());
  EXPECT_TRUE(read(std::string(kMostSecretBytes, 's')).is_ok());
  for (std::size_t bytes : {std::size_t{0}, kLeastSecretBytes - 1, kMostSecretBytes + 1}) {
    auto security = read(std::string(bytes, 's'));
    EXPECT_EQ(security.code(), Code::kInvalidArgument) << bytes;
    EXPECT_THAT(security.status().message(), HasSubstr(kVariable));
  }
}

TEST_F(SecurityFromEnvironmentTest, RefusesAFileThatIsOpenToOthers) {
  auto security = read(std::string(32, 's'), 0640);
  EXPECT_EQ(security.code(), Code::kInvalidArgument);
  EXPECT_THAT(security.status().message(), AllOf(HasSubstr(kVariable), HasSubstr("0640")));
}

TEST_F(SecurityFromEnvironmentTest, RefusesAFileThatIsNotThere) {
  for (const std::string& path : {folder_.path() + "/none", std::string()}) {
    ASSERT_EQ(setenv(kVariable, path.c_str(), 1), 0);
    auto security = security_from_environment();
    EXPECT_EQ(security.code(), Code::kNotFound) << path;
    EXPECT_THAT(security.status().message(), HasSubstr(kVariable));
  }
}

}  // namespace
}  // namespace memspan
