// SPDX-License-Identifier: Apache-2.0
// What protects a store when one thing or another was given, on one side or on both; and what a
// listener on the wire sees of it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <future>

#include "modes.h"
#include "support/must.h"
#include "support/needs.h"
#include "tls_peer.h"

namespace memspan {
namespace {

constexpr const char* kSecret = "what all of them were told";
constexpr const char* kOther = "what others were told instead";

StoreSecurity nothing() {
  return {};
}

class ProtectionTest : public testing::Test {
 protected:
  ProtectionTest() { EXPECT_EQ(::setenv("XDG_RUNTIME_DIR", runtime_.path().c_str(), 1), 0); }
  ~ProtectionTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("MEMSPAN_JOB_SECRET_FILE");
  }

  static std::unique_ptr<StoreServer> store(StoreSecurity security,
                                            const Endpoint& endpoint = {"127.0.0.1", 0}) {
    return must(StoreServer::listen(endpoint, {.security = std::move(security)}));
  }
  static Result<std::unique_ptr<StoreClient>> join(const Endpoint& endpoint, StoreSecurity security,
                                                   Duration limit = std::chrono::seconds(30)) {
    return StoreClient::connect(
        {.endpoint = endpoint, .security = std::move(security), .member = "a test"},
        Deadline::after(limit));
  }
  static void expect_served(const StoreServer& server, StoreSecurity security) {
    auto client = join(server.endpoint(), std::move(security));
    ASSERT_TRUE(client.is_ok()) << client.status().to_string();
    EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
    EXPECT_EQ(*(*client)->get("k", soon()), "v");
  }
  // Not tried again until the deadline.
  static void expect_refused(const Endpoint& endpoint, StoreSecurity security,
                             std::string_view reason) {
    const Clock::time_point begin = Clock::now();
    auto client = join(endpoint, std::move(security));
    EXPECT_LT(Clock::now() - begin, kRefusalTime);
    EXPECT_EQ(client.code(), Code::kAuth) << client.status().to_string();
    EXPECT_NE(client.status().message().find(reason), std::string::npos)
        << client.status().to_string();
  }
  std::string secret_folder() const { return runtime_.path() + "/memspan"; }
  std::vector<std::filesystem::path> secret_files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(secret_folder()))
      files.push_back(entry.path());
    return files;
  }

  TestFolder runtime_;
  Trust trust_;
};

// ---- the same on both sides

TEST_F(ProtectionTest, ASecretThatBothWereGivenOpens) {
  auto server = store(with_secret(kSecret));
  EXPECT_EQ(server->secret(), kSecret);
  expect_served(*server, with_secret(kSecret));
}

TEST_F(ProtectionTest, NothingIsNeededOnOneHost) {
  auto server = store(nothing());
  EXPECT_GE(server->secret().size(), kLeastSecretBytes);
  ASSERT_EQ(secret_files().size(), 1U);
  struct stat about = {};
  ASSERT_EQ(::stat(secret_files()[0].c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
  expect_served(*server, nothing());
  server.reset();
  EXPECT_TRUE(secret_files().empty());
}

TEST_F(ProtectionTest, EveryStoreHasItsOwnSecret) {
  auto anna = store(nothing());
  auto ben = store(nothing());
  EXPECT_NE(anna->secret(), ben->secret());
  expect_served(*anna, nothing());
  expect_served(*ben, nothing());
}

TEST_F(ProtectionTest, BothMayDoWithout) {
  auto server = store(plain());
  EXPECT_EQ(server->secret(), "");
  expect_served(*server, plain());
}

TEST_F(ProtectionTest, TheSecretMayComeFromAFile) {
  EXPECT_EQ(security_from_environment()->kind, StoreSecurity::Kind::kHostSecret);
  const std::string path = runtime_.write(kSecret);
  ASSERT_EQ(::setenv("MEMSPAN_JOB_SECRET_FILE", path.c_str(), 1), 0);
  auto security = security_from_environment();
  ASSERT_TRUE(security.is_ok()) << security.status().to_string();
  EXPECT_EQ(security->kind, StoreSecurity::Kind::kSecret);
  auto server = store(*security);
  expect_served(*server, with_secret(kSecret));
}

TEST_F(ProtectionTest, ASecretsFileThatIsNotPrivateIsRefused) {
  struct Case {
    std::string path;
    const char* reason;
  };
  const Case cases[] = {
      {runtime_.write(kSecret, "open", 0644), "is open to others"},
      {runtime_.write("short"), "has at least 16"},
      {runtime_.write(""), "is empty"},
      {runtime_.write(std::string(5000, 's')), "has more than 4096"},
      {runtime_.path(), "is not a regular file"},
      {runtime_.path() + "/missing", "does not exist"},
  };
  for (const Case& bad : cases) {
    ASSERT_EQ(::setenv("MEMSPAN_JOB_SECRET_FILE", bad.path.c_str(), 1), 0);
    const Status status = security_from_environment().status();
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find(bad.reason), std::string::npos) << status.to_string();
  }
}

TEST_F(ProtectionTest, ASecretHasAFewBytesAtLeast) {
  for (const std::string& secret :
       {std::string(), std::string("short"), std::string(kMostSecretBytes + 1, 's')}) {
    EXPECT_EQ(listen(with_secret(secret)).code(), Code::kInvalidArgument);
    EXPECT_EQ(join({"127.0.0.1", 1}, with_secret(secret)).code(), Code::kInvalidArgument);
  }
}

// ---- not the same

TEST_F(ProtectionTest, AnotherSecretIsRefused) {
  const LogLines log;
  auto server = store(with_secret(kSecret));
  expect_refused(server->endpoint(), with_secret(kOther), "");
  EXPECT_TRUE(log.waits_for("a connection was refused")) << log.all();
  expect_served(*server, with_secret(kSecret));
}

TEST_F(ProtectionTest, ASecretAndCertificatesDoNotMeet) {
  auto secret = store(with_secret(kSecret));
  expect_refused(secret->endpoint(), with(trust_.files()), "");
  expect_served(*secret, with_secret(kSecret));
  auto certificates = store(with(trust_.files()));
  expect_refused(certificates->endpoint(), with_secret(kSecret), "");
  expect_served(*certificates, with(trust_.files()));
}

// It knows no secret, so it shows a certificate instead and hopes that nobody looks.
TEST_F(ProtectionTest, WhoHasASecretDoesNotTalkToAStoreThatHasNone) {
  const TlsPeerServer impostor({.shows = trust_.member()});
  expect_refused(impostor.endpoint(), with_secret(kSecret), "");
  EXPECT_EQ(impostor.received(), 0U);
  EXPECT_EQ(impostor.connections(), 1);
}

TEST_F(ProtectionTest, WhoHasTheHostsSecretDoesNotTalkToAStoreThatHasNone) {
  const TlsPeerServer impostor({.shows = trust_.member()});
  auto server = store(nothing());
  ASSERT_EQ(secret_files().size(), 1U);
  const std::string of_store = secret_files()[0].string();
  const std::string port = std::to_string(server->endpoint().port);
  std::string of_impostor = of_store;
  of_impostor.replace(of_store.rfind(port), port.size(), std::to_string(impostor.endpoint().port));
  std::filesystem::copy_file(of_store, of_impostor);
  auto client = join(impostor.endpoint(), nothing(), std::chrono::milliseconds(300));
  EXPECT_FALSE(client.is_ok());
  EXPECT_EQ(impostor.received(), 0U);
}

TEST_F(ProtectionTest, OneWhoAskedToDoWithoutDoesNotMeetWhoDidNot) {
  for (const StoreSecurity& security : {nothing(), with_secret(kSecret), with(trust_.files())}) {
    auto server = store(security);
    expect_refused(server->endpoint(), plain(), "requires TLS");
    expect_served(*server, security);
  }
}

TEST_F(ProtectionTest, OneWhoDidNotAskDoesNotMeetWhoAskedToDoWithout) {
  auto server = store(plain());
  expect_refused(server->endpoint(), nothing(), "without TLS");
  expect_refused(server->endpoint(), with_secret(kSecret), "configured without");
  expect_refused(server->endpoint(), with(trust_.files()), "configured without");
  expect_served(*server, plain());
}

// ---- a store that was killed

TEST_F(ProtectionTest, AStaleSecretDoesNotStopTheNextStore) {
  store(nothing()).reset();  // makes the folder
  auto port = reserved_port();
  struct stat about = {};
  ASSERT_EQ(::stat("/proc/self/ns/net", &about), 0);
  const std::string stale = secret_folder() + "/store-" + std::to_string(about.st_ino) + "-" +
                            port.endpoint.host + "-" + std::to_string(port.endpoint.port) +
                            ".secret";
  std::FILE* file = std::fopen(stale.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("the secret of a store that was killed", file);
  std::fclose(file);
  ASSERT_EQ(::chmod(stale.c_str(), 0600), 0);
  auto early = std::async(std::launch::async, [&] { return join(port.endpoint, nothing()); });
  auto server = store(nothing(), port.endpoint);
  EXPECT_NE(server->secret(), "the secret of a store that was killed");
  auto client = early.get();
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  EXPECT_TRUE((*client)->set("k", "v", soon()).is_ok());
  expect_served(*server, nothing());
}

// Somebody else listens where the secret's store was: nobody gets in, and the reason is named.
TEST_F(ProtectionTest, AStaleSecretOpensNothing) {
  auto server = store(nothing());
  ASSERT_EQ(secret_files().size(), 1U);
  const std::string path = secret_files()[0].string();
  ASSERT_EQ(::unlink(path.c_str()), 0);
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("the secret of a store that was killed", file);
  std::fclose(file);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  auto client = join(server->endpoint(), nothing(), std::chrono::milliseconds(300));
  EXPECT_EQ(client.code(), Code::kTimeout) << client.status().to_string();
  expect_served(*server, with_secret(server->secret()));
}

// ---- on the wire

// All frames that pass through loopback, from its making on.
class Capture {
 public:
  Capture() : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    sockaddr_ll loopback = {};
    loopback.sll_family = AF_PACKET;
    loopback.sll_protocol = htons(ETH_P_ALL);
    loopback.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
    const int room = 32 << 20;
    is_on_ = socket_.is_valid() &&
             ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0 &&
             ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  }
  bool is_on() const { return is_on_; }
  // What has passed so far, one frame after the other.
  std::string seen() const {
    std::string all;
    for (static thread_local char packet[1 << 17];;) {
      const ssize_t got = ::recv(socket_.get(), packet, sizeof packet, MSG_DONTWAIT);
      if (got < 0) return all;
      all.append(packet, static_cast<std::size_t>(got));
    }
  }

 private:
  Fd socket_;
  bool is_on_ = false;
};

class WireTest : public ModeTest {};

TEST_P(WireTest, NobodySeesWhatIsStored) {
  constexpr const char* kKey = "canary-key-0e1f2d3c";
  constexpr const char* kValue = "canary-value-4b5a6978";
  constexpr const char* kMember = "canary-member-8796a5b4";
  start();
  MEMSPAN_NEEDS("capture");
  const Capture capture;
  ASSERT_TRUE(capture.is_on());
  const std::string port_bytes{static_cast<char>(endpoint().port >> 8),
                               static_cast<char>(endpoint().port & 0xff)};
  auto client = StoreClient::connect(
      {.endpoint = endpoint(), .security = security(), .member = kMember, .job = kMember}, soon());
  ASSERT_TRUE(client.is_ok()) << client.status().to_string();
  auto other = join();
  EXPECT_TRUE((*client)->set(kKey, kValue, soon()).is_ok());
  EXPECT_EQ(*other->get(kKey, soon()), kValue);
  EXPECT_EQ(other->list("canary", soon())->size(), 1U);
  const std::string seen = capture.seen();
  EXPECT_NE(seen.find(port_bytes), std::string::npos);  // it did look
  for (const char* canary : {kKey, kValue, kMember})
    EXPECT_EQ(seen.find(canary) != std::string::npos, is_plain()) << canary;
  if (GetParam() == ProtectionKind::kHostSecret || GetParam() == ProtectionKind::kSecret) {
    EXPECT_EQ(seen.find(server_->secret()), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Under, WireTest,
                         testing::Values(ProtectionKind::kHostSecret, ProtectionKind::kSecret,
                                         ProtectionKind::kCertificates, ProtectionKind::kPlain),
                         mode_name);

}  // namespace
}  // namespace memspan
