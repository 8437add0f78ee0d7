// SPDX-License-Identifier: Apache-2.0
// Keys, passwords and the files that they and the certificates are in.
#include "net/tls_parts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/must.h"
#include "support/needs.h"
#include "tls_expect.h"

namespace memspan {
namespace {

class TlsFilesTest : public testing::Test {
 protected:
  static std::unique_ptr<StoreServer> store(const StoreCertificates& certificates) {
    return must(listen(with(certificates)));
  }

  Trust trust_;
};

// ---- keys

TEST_F(TlsFilesTest, TakesAKeyAsText) {
  StoreCertificates files = trust_.files();
  const Issued leaf = trust_.member();
  files.certificate = trust_.folder().write(to_pem(leaf));
  files.key = {.text = key_to_pem(leaf)};
  expect_served(*store(files), with(files));
}

TEST_F(TlsFilesTest, TakesAnEncryptedKeyWithItsPassword) {
  const Issued leaf = trust_.member();
  StoreCertificates files = trust_.files(leaf);
  files.key = {.path = trust_.folder().write(key_to_pem(leaf, "a password"))};
  for (const PemSource& password :
       {PemSource{.text = "a password"}, PemSource{.path = trust_.folder().write("a password")},
        PemSource{.path = trust_.folder().write("a password\n")}}) {
    files.password = password;
    expect_served(*store(files), with(files));
  }
}

TEST_F(TlsFilesTest, TakesAnEncryptedKeyWithWhatTheCallerMakesOfItsPassword) {
  const Issued leaf = trust_.member();
  StoreCertificates files = trust_.files(leaf);
  files.key = {.path = trust_.folder().write(key_to_pem(leaf, "a password"))};
  files.password = {.path = trust_.folder().write("drowssap a")};
  files.decrypt = [](std::string_view cipher) -> Result<std::string> {
    return std::string(cipher.rbegin(), cipher.rend());
  };
  expect_served(*store(files), with(files));
  files.decrypt = [](std::string_view) -> Result<std::string> {
    return Status(Code::kInvalidArgument, "the caller's function says no");
  };
  expect_no_start(files, "the caller's function says no");
  files.decrypt = [](std::string_view) -> Result<std::string> { return std::string(); };
  expect_no_start(files, "needs a password");
  files.decrypt = [](std::string_view) -> Result<std::string> { return std::string(70000, 'p'); };
  expect_no_start(files, "the password is not its");
}

TEST_F(TlsFilesTest, RefusesAnEncryptedKeyWithoutItsPassword) {
  const Issued leaf = trust_.member();
  StoreCertificates files = trust_.files(leaf);
  files.key = {.path = trust_.folder().write(key_to_pem(leaf, "a password"))};
  expect_no_start(files, "needs a password");
  expect_refused(kNowhere, with(files), Code::kInvalidArgument, "needs a password");
  files.password = {.text = "another password"};
  expect_no_start(files, "the password is not its");
  // Bytes after the password are a part of it, whatever they are.
  files.password = {.text = std::string("a password\0x", 12)};
  expect_no_start(files, "the password is not its");
}

TEST_F(TlsFilesTest, RefusesAKeyThatIsNotTheCertificates) {
  StoreCertificates files = trust_.files();
  files.key = trust_.files().key;
  expect_no_start(files, "is not the certificate's: key values mismatch");
  expect_refused(kNowhere, with(files), Code::kInvalidArgument, "key values mismatch");
  files.key = {};
  expect_no_start(files, "there is no private key");
}

// ---- files

TEST_F(TlsFilesTest, RefusesAKeyThatOthersCanReach) {
  struct Case {
    std::string path;
    const char* reason;
  };
  const Issued leaf = trust_.member();
  const std::string key = key_to_pem(leaf);
  TestFolder& folder = trust_.folder();
  const std::string good = folder.write(key);
  const std::string link = folder.path() + "/link";
  ASSERT_EQ(::symlink(good.c_str(), link.c_str()), 0);
  TestFolder open_folder;
  const std::string in_open_folder = open_folder.write(key);
  ASSERT_EQ(::chmod(open_folder.path().c_str(), 0777), 0);
  const Case cases[] = {
      {folder.write(key, "readable", 0644), "is open to others (mode 0644)"},
      {folder.write(key, "group", 0640), "is open to others (mode 0640)"},
      {link, "is a symbolic link"},
      {in_open_folder, "others may write to its folder"},
      {folder.path(), "is not a regular file"},
      {folder.write(""), "is empty"},
      {folder.write("garbage"), "is not a key in PEM form"},
      {folder.write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
       "is not a key in PEM form"},
      {folder.write(std::string((1 << 20) + 1, 'k')), "has more than"},
      {folder.path() + "/missing", "does not exist"},
      {folder.path() + "/" + std::string(64 << 10, 'p'), "File name too long"},
      {good + std::string(1, '\0') + "x", "zero byte"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.reason);
    StoreCertificates files = trust_.files(leaf);
    files.key = {.path = bad.path};
    expect_no_start(files, bad.reason);
    expect_refused(kNowhere, with(files), Code::kInvalidArgument, bad.reason);
    // A password's file is as secret as a key's.
    if (std::string_view(bad.reason) == "is not a key in PEM form") continue;
    files.key = {.path = folder.write(key_to_pem(leaf, "a password"))};
    files.password = {.path = bad.path};
    expect_no_start(files, bad.reason);
  }
}

TEST_F(TlsFilesTest, RefusesAKeyOfAnotherUser) {
  MEMSPAN_NEEDS("other_users");
  StoreCertificates files = trust_.files();
  ASSERT_EQ(::chown(files.key.path.c_str(), 12345, 12345), 0);
  expect_no_start(files, "belongs to another user");
}

TEST_F(TlsFilesTest, RefusesCertificatesThatAreNone) {
  struct Case {
    std::string path;
    const char* reason;
  };
  TestFolder& folder = trust_.folder();
  const Case cases[] = {
      {folder.path(), "is not a regular file"},
      {folder.write(""), "is empty"},
      {folder.write("garbage"), "has no certificate in PEM form"},
      {folder.write(key_to_pem(trust_.member())), "has no certificate in PEM form"},
      {folder.path() + "/missing", "does not exist"},
      {folder.path() + "/" + std::string(64 << 10, 'p'), "File name too long"},
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.reason);
    StoreCertificates files = trust_.files();
    files.certificate = bad.path;
    expect_no_start(files, bad.reason);
    expect_refused(kNowhere, with(files), Code::kInvalidArgument, bad.reason);
    files = trust_.files();
    files.authorities = {bad.path};
    expect_no_start(files, bad.reason);
    expect_refused(kNowhere, with(files), Code::kInvalidArgument, bad.reason);
  }
}

}  // namespace
}  // namespace memspan
