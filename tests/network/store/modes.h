// SPDX-License-Identifier: Apache-2.0
// The four ways to protect a store, for tests that hold for each of them, and strangers who speak
// by hand under the same protection.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "net/tcp.h"
#include "net/tls.h"
#include "store/client.h"
#include "support.h"
#include "support/must.h"
#include "trust.h"

namespace memspan {

using ProtectionKind = StoreSecurity::Kind;

inline std::string name_of(ProtectionKind kind) {
  switch (kind) {
    case ProtectionKind::kHostSecret:
      return "HostSecret";
    case ProtectionKind::kSecret:
      return "Secret";
    case ProtectionKind::kCertificates:
      return "Certificates";
    case ProtectionKind::kPlain:
      return "Plain";
  }
  return "none";
}

// Somebody at the other end of a store's connection who says what he likes. One thread at a time.
class Stranger {
 public:
  explicit Stranger(std::unique_ptr<ByteChannel> stream) : stream_(std::move(stream)) {}

  // False when the connection ended meanwhile.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ChannelStep step = stream_->write(bytes);
      if (step.next == ChannelStep::Next::kDone)
        bytes.remove_prefix(step.bytes);
      else if (!waits(step))
        return false;
    }
    return true;
  }
  // The next frame's body; empty at the connection's end.
  std::string receive() {
    for (char chunk[4096];;) {
      if (auto body = reader_.next()) return std::string(*body);
      const ChannelStep step = stream_->read(chunk, sizeof chunk);
      if (step.next == ChannelStep::Next::kDone)
        reader_.feed({chunk, step.bytes});
      else if (!waits(step))
        return {};
    }
  }
  bool is_welcomed() {
    auto welcome = decode_welcome(receive());
    return welcome.is_ok() && welcome->code == Code::kOk;
  }
  bool sees_the_end() {
    while (!receive().empty()) continue;
    return has_ended_;
  }
  int socket() const { return stream_->socket(); }

 private:
  bool waits(const ChannelStep& step) {
    has_ended_ = step.next == ChannelStep::Next::kEnd || step.next == ChannelStep::Next::kFailed;
    if (has_ended_) return false;
    pollfd polled{
        .fd = stream_->socket(),
        .events = step.next == ChannelStep::Next::kWritable ? short{POLLOUT} : short{POLLIN},
        .revents = 0};
    return ::poll(&polled, 1, soon().remaining_poll_ms()) == 1;
  }

  std::unique_ptr<ByteChannel> stream_;
  StoreFrameReader reader_{kMaxFrameBytes};
  bool has_ended_ = false;
};

// One store under one protection, with all that its members need.
class ModeTest : public testing::TestWithParam<ProtectionKind> {
 protected:
  ModeTest() { EXPECT_EQ(::setenv("XDG_RUNTIME_DIR", trust_.folder().path().c_str(), 1), 0); }
  ~ModeTest() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  bool is_plain() const { return GetParam() == ProtectionKind::kPlain; }
  bool has_certificates() const { return GetParam() == ProtectionKind::kCertificates; }
  StoreSecurity security() {
    StoreSecurity made{.kind = GetParam()};
    if (made.kind == ProtectionKind::kSecret) made.secret = "the secret of this very test";
    if (made.kind == ProtectionKind::kCertificates) made.certificates = trust_.files();
    return made;
  }
  void start(StoreServerOptions options = {}) {
    options.security = security();
    auto server = StoreServer::listen({"127.0.0.1", 0}, std::move(options));
    ASSERT_TRUE(server.is_ok()) << server.status().to_string();
    server_ = std::move(server).value();
  }
  const Endpoint& endpoint() const { return server_->endpoint(); }
  Result<std::unique_ptr<StoreClient>> try_to_join(StoreAccess access = {}) {
    access.endpoint = server_->endpoint();
    access.security = security();
    access.member = "a member";
    return StoreClient::connect(access, soon());
  }
  std::unique_ptr<StoreClient> join() { return must(try_to_join()); }
  void expect_served() {
    auto client = join();
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->set("a member's key", "v", soon()).is_ok());
    EXPECT_EQ(*client->get("a member's key", soon()), "v");
  }
  Fd connected() const {
    auto connection = connect_tcp(server_->endpoint(), soon());
    EXPECT_TRUE(connection.is_ok()) << connection.status().to_string();
    return std::move(connection->socket);
  }
  // Has shaken hands like a member, and said nothing.
  Stranger stranger() { return stranger(connected()); }
  Stranger stranger(Fd socket) {
    if (is_plain()) return Stranger(make_plain_channel(std::move(socket)));
    using Side = TlsContext::Side;
    auto tls = has_certificates() ? TlsContext::from_certificates(Side::kClient, trust_.files())
                                  : TlsContext::from_secret(Side::kClient, server_->secret());
    auto stream = (*tls)->open(std::move(socket), "127.0.0.1");
    Status status = finish_handshake(**stream, soon());
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return Stranger(std::move(stream).value());
  }
  Stranger welcomed_stranger() {
    Stranger peer = stranger();
    EXPECT_TRUE(peer.send(encode(StoreHello{.member = "a stranger"})));
    EXPECT_TRUE(peer.is_welcomed());
    return peer;
  }

  Trust trust_;
  std::unique_ptr<StoreServer> server_;
};

inline std::string mode_name(const testing::TestParamInfo<ProtectionKind>& of) {
  return name_of(of.param);
}

}  // namespace memspan
