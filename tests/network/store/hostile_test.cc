// SPDX-License-Identifier: Apache-2.0
// What strangers and broken members may send to a store, under each protection: their connection
// ends, and nobody else notices.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <random>
#include <thread>

#include "core/bytes.h"
#include "modes.h"
#include "tls_peer.h"

namespace memspan {
namespace {

constexpr Duration kNoPatience = std::chrono::milliseconds(50);

std::string number(std::uint32_t value) {
  ByteWriter writer;
  writer.u32(value);
  return writer.take();
}

std::string frame(std::string_view body) {
  return number(static_cast<std::uint32_t>(body.size())) + std::string(body);
}

std::string random_bytes(std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// What comes back over a socket until its end.
std::string all_of(int socket) {
  std::string all;
  for (char chunk[4096];;) {
    pollfd polled{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, soon().remaining_poll_ms()) != 1) return all + "(no end)";
    const ssize_t got = ::recv(socket, chunk, sizeof chunk, 0);
    if (got <= 0) return all;
    all.append(chunk, static_cast<std::size_t>(got));
  }
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd polled{.fd = socket, .events = POLLOUT, .revents = 0};
    ASSERT_EQ(::poll(&polled, 1, soon().remaining_poll_ms()), 1);
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // closed already
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

class HostileTest : public ModeTest {};
// Not in plain mode.
class HostileToTlsTest : public ModeTest {};
// Where a member goes by what it was given, not by the store's address.
class HostileOnTheWayTest : public ModeTest {};

// ---- mixed: who speaks something else

std::vector<std::string> foreign_greetings() {
  std::vector<std::string> all = {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
      encode(StoreHello{.member = "a plain member"}),
      std::string(5000, '\0'),
      std::string(1, '\x15'),
      std::string(70000, 'A'),
  };
  for (unsigned i = 0; i < 24; ++i) {
    all.push_back(random_bytes(1 + (i * 2777) % 65536, i));
    if (all.back()[0] == '\x16') all.back()[0] = 'x';
  }
  return all;
}

TEST_P(HostileTest, WhoSpeaksSomethingElseHearsNotOneByte) {
  start();
  auto bystander = join();
  for (const std::string& greeting : foreign_greetings()) {
    if (is_plain() && greeting == foreign_greetings()[2]) continue;
    SCOPED_TRACE(greeting.substr(0, 20));
    const Fd socket = connected();
    send_all(socket.get(), greeting);
    ::shutdown(socket.get(), SHUT_WR);
    EXPECT_EQ(all_of(socket.get()), "");
  }
  EXPECT_TRUE(bystander->set("k", "v", soon()).is_ok());
  expect_served();
}

// What begins like TLS may be answered in TLS, but nobody gets in.
TEST_P(HostileTest, RandomBytesAfterTheFirstOfTlsEndTheConnection) {
  start();
  for (unsigned i = 0; i < 40; ++i) {
    const Fd socket = connected();
    send_all(socket.get(), "\x16\x03\x01" + random_bytes(1 + i * 1601, i));
    ::shutdown(socket.get(), SHUT_WR);
    EXPECT_LT(all_of(socket.get()).size(), 100U);
  }
  expect_served();
}

TEST_P(HostileTest, WhoComesAndGoesIsForgotten) {
  start();
  auto bystander = join();
  for (int i = 0; i < 300; ++i) static_cast<void>(connected());
  EXPECT_TRUE(bystander->set("k", "v", soon()).is_ok());
  expect_served();
}

// ---- versions

TEST_P(HostileToTlsTest, OldTlsIsRefused) {
  start();
  for (int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION}) {
    TlsPeerClient peer(endpoint(),
                       {.shows = trust_.member(), .oldest = version, .newest = version});
    EXPECT_FALSE(peer.shakes_hands());
    EXPECT_EQ(peer.alert(), "protocol version");
  }
  expect_served();
}

TEST_P(HostileOnTheWayTest, AMemberRefusesAStoreOfOldTls) {
  const TlsPeerServer old({.shows = trust_.member(), .newest = TLS1_2_VERSION});
  const Clock::time_point begin = Clock::now();
  auto client = StoreClient::connect(
      {.endpoint = old.endpoint(), .security = security(), .member = "a test"}, soon());
  EXPECT_EQ(client.code(), Code::kAuth) << client.status().to_string();
  EXPECT_LT(Clock::now() - begin, kRefusalTime);
  EXPECT_EQ(old.connections(), 1);
  EXPECT_EQ(old.received(), 0U);
}

// Carries one connection between a member and the store, and may change what it carries.
class Meddler {
 public:
  using Edit = std::function<void(std::string& chunk, int number)>;
  Meddler(const Endpoint& store, Edit from_member)
      : listener_(listen_tcp({"127.0.0.1", 0}).value()), from_member_(std::move(from_member)) {
    thread_ = std::thread([this, store] { carry(store); });
  }
  ~Meddler() {
    ::shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }
  Meddler(const Meddler&) = delete;
  Meddler& operator=(const Meddler&) = delete;
  const Endpoint& endpoint() const { return listener_.endpoint; }
  // What the member sent. After the end of the connection.
  const std::string& recorded() const { return recorded_; }

 private:
  void carry(const Endpoint& store) {
    pollfd waiting{.fd = listener_.socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, soon().remaining_poll_ms());
    const Fd member(::accept(listener_.socket.get(), nullptr, nullptr));
    auto connection = connect_tcp(store, soon());
    if (!member.is_valid() || !connection.is_ok()) return;
    const int ends[] = {member.get(), connection->socket.get()};
    for (;;) {
      pollfd polled[] = {{.fd = ends[0], .events = POLLIN, .revents = 0},
                         {.fd = ends[1], .events = POLLIN, .revents = 0}};
      if (::poll(polled, 2, soon().remaining_poll_ms()) <= 0) return;
      const int from = polled[0].revents != 0 ? 0 : 1;
      char chunk[16384];
      const ssize_t got = ::recv(ends[from], chunk, sizeof chunk, MSG_DONTWAIT);
      if (got <= 0) return;
      std::string bytes(chunk, static_cast<std::size_t>(got));
      if (from == 0) {
        from_member_(bytes, number_++);
        recorded_ += bytes;
      }
      send_all(ends[1 - from], bytes);
    }
  }

  TcpListener listener_;
  Edit from_member_;
  int number_ = 0;
  std::string recorded_;
  std::thread thread_;
};

Result<std::unique_ptr<StoreClient>> join_through(const Meddler& meddler, StoreSecurity security) {
  return StoreClient::connect(
      {.endpoint = meddler.endpoint(), .security = std::move(security), .member = "a test"},
      Deadline::after(std::chrono::seconds(2)));
}

// Wherever somebody on the way changes the first message (its version, random, ciphers or keys),
// the two ends do not come together.
TEST_P(HostileOnTheWayTest, AChangedFirstMessageEndsTheHandshake) {
  start();
  for (std::size_t at : {5U, 9U, 11U, 30U, 45U, 78U, 100U, 130U}) {
    SCOPED_TRACE(at);
    const Meddler meddler(endpoint(), [at](std::string& chunk, int number) {
      if (number == 0 && at < chunk.size()) chunk[at] = static_cast<char>(chunk[at] ^ 0x41);
    });
    auto client = join_through(meddler, security());
    EXPECT_FALSE(client.is_ok());
  }
  // "supported_versions: 1.3" becomes 1.2.
  const Meddler downgrade(endpoint(), [](std::string& chunk, int number) {
    const std::size_t at = chunk.find(std::string("\x00\x2b\x00\x03\x02\x03\x04", 7));
    if (number != 0) return;
    EXPECT_NE(at, std::string::npos);
    chunk[at + 6] = 3;
  });
  EXPECT_EQ(join_through(downgrade, security()).code(), Code::kAuth);
  expect_served();
}

TEST_P(HostileOnTheWayTest, WhatWasRecordedCannotBePlayedAgain) {
  start();
  std::string recorded;
  {
    Meddler meddler(endpoint(), [&](std::string& chunk, int) { recorded += chunk; });
    auto client = join_through(meddler, security());
    ASSERT_TRUE(client.is_ok()) << client.status().to_string();
    EXPECT_TRUE((*client)->set("counter", "1", soon()).is_ok());
    client->reset();
  }
  const Fd socket = connected();
  send_all(socket.get(), recorded);
  ::shutdown(socket.get(), SHUT_WR);
  all_of(socket.get());
  EXPECT_EQ(*join()->get("counter", soon()), "1");
}

// ---- frames

struct BadBytes {
  const char* name;
  std::string bytes;
};

std::string hello_body(std::uint32_t member_length, std::string_view member) {
  std::string body = encode(StoreHello{.member = "x"}).substr(4);
  return body.substr(0, 8) + number(member_length) + std::string(member) + body.substr(13);
}

std::vector<BadBytes> bad_greetings() {
  return {
      {"length 0", number(0)},
      {"length 1", frame("x")},
      {"length 2^31-1", number(0x7fffffff) + "x"},
      {"length 2^32-1", number(0xffffffff) + "x"},
      {"the longest", frame(std::string(kMaxGreetingBytes, 'x'))},
      {"too long by one", number(kMaxGreetingBytes + 1)},
      {"a request", encode(StoreRequest{.id = 1, .key = "k"})},
      {"a welcome", encode(StoreWelcome{})},
      {"no magic", frame("abcd" + encode(StoreHello{.member = "x"}).substr(8))},
      {"inner length beyond the outer", frame(hello_body(0xffffffff, "x"))},
      {"inner length a little beyond", frame(hello_body(200, "x"))},
      {"inner length short of the outer", frame(hello_body(0, "x"))},
      {"a long name", frame(hello_body(300, std::string(300, 'n')))},
      {"a negative rank", encode(StoreHello{.member = "x", .rank = -2})},
      {"a byte too many", frame(encode(StoreHello{.member = "x"}).substr(4) + "y")},
      {"a byte too few", frame(encode(StoreHello{.member = "x"}).substr(4, 20))},
  };
}

TEST_P(HostileTest, ABrokenGreetingEndsTheConnection) {
  start();
  auto bystander = join();
  for (const BadBytes& bad : bad_greetings()) {
    SCOPED_TRACE(bad.name);
    Stranger peer = stranger();
    EXPECT_TRUE(peer.send(bad.bytes));
    EXPECT_EQ(peer.receive(), "");
    EXPECT_TRUE(peer.sees_the_end());
  }
  EXPECT_TRUE(bystander->set("k", "v", soon()).is_ok());
  expect_served();
}

std::string request_body(std::uint8_t operation, std::uint32_t key_count, std::string_view rest) {
  ByteWriter writer;
  writer.u64(7);
  writer.u8(operation);
  writer.u32(0);
  writer.i64(0);
  writer.u32(0);
  writer.u32(0);
  writer.u8(0);
  writer.u32(key_count);
  return writer.take() + std::string(rest);
}

std::string many_keys(std::size_t count) {
  std::string keys;
  for (std::size_t i = 0; i < count; ++i) keys += frame("k");
  return keys + number(0) + number(0);
}

std::vector<BadBytes> bad_requests() {
  constexpr auto kGet = static_cast<std::uint8_t>(StoreOperation::kGet);
  constexpr auto kSet = static_cast<std::uint8_t>(StoreOperation::kSet);
  constexpr auto kLast = static_cast<std::uint8_t>(StoreOperation::kPing);
  const std::string key_and_values = frame("k") + number(0) + number(0);
  return {
      {"length 0", number(0)},
      {"length 1", frame("x")},
      {"length 2^31-1", number(0x7fffffff) + "x"},
      {"length 2^32-1", number(0xffffffff) + "x"},
      {"too long by one", number(static_cast<std::uint32_t>(kMaxFrameBytes + 1))},
      {"the hello again", encode(StoreHello{.member = "again"})},
      {"operation 0", frame(request_body(0, 1, key_and_values))},
      {"an operation after the last", frame(request_body(kLast + 1, 1, key_and_values))},
      {"operation 255", frame(request_body(255, 1, key_and_values))},
      {"inner length beyond the outer", frame(request_body(kSet, 1, number(0xffffffff) + "k"))},
      {"inner length that overflows", frame(request_body(kSet, 1, number(0xfffffffc) + "k"))},
      {"a value beyond the frame",
       frame(request_body(kSet, 1, frame("k") + number(0) + number(1 << 20) + "v"))},
      {"no key", frame(request_body(kSet, 0, number(0) + number(0)))},
      {"two keys", frame(request_body(kSet, 2, many_keys(2)))},
      {"an empty key", frame(request_body(kSet, 1, frame("") + number(0) + number(0)))},
      {"a long key",
       frame(request_body(kSet, 1,
                          frame(std::string(kMaxKeyBytes + 1, 'k')) + number(0) + number(0)))},
      {"a long value",
       frame(request_body(kSet, 1,
                          frame("k") + number(0) + frame(std::string(kMaxValueBytes + 1, 'v'))))},
      {"a get of a million keys", frame(request_body(kGet, 1000000, many_keys(1000000)))},
      {"a get of 2^32-1 keys", frame(request_body(kGet, 0xffffffff, many_keys(3)))},
      {"a byte too many", frame(request_body(kSet, 1, key_and_values + "x"))},
  };
}

TEST_P(HostileTest, ABrokenRequestEndsTheConnectionAndTheSession) {
  start();
  auto bystander = join();
  auto waiting = std::async(std::launch::async, [&] { return bystander->get("late", soon()); });
  for (const BadBytes& bad : bad_requests()) {
    SCOPED_TRACE(bad.name);
    Stranger peer = welcomed_stranger();
    EXPECT_TRUE(peer.send(encode(StoreRequest{
        .id = 3, .operation = StoreOperation::kSet, .key = "of a stranger", .is_owned = true})));
    EXPECT_NE(peer.receive(), "");
    peer.send(bad.bytes);
    EXPECT_EQ(peer.receive(), "");
    EXPECT_TRUE(peer.sees_the_end());
    EXPECT_EQ(bystander->get_now("of a stranger", soon()).code(), Code::kNotFound);
  }
  EXPECT_TRUE(bystander->set("late", "v", soon()).is_ok());
  EXPECT_EQ(*waiting.get(), "v");
}

TEST_P(HostileTest, AFrameThatIsNeverFinishedHarmsNobody) {
  start();
  auto bystander = join();
  const std::string whole = encode(
      StoreRequest{.operation = StoreOperation::kSet, .key = "k", .value = std::string(1000, 'v')});
  for (std::size_t part : {1U, 3U, 4U, 5U, 20U, 1000U}) {
    Stranger peer = welcomed_stranger();
    EXPECT_TRUE(peer.send(std::string_view(whole).substr(0, part)));
    ::shutdown(peer.socket(), SHUT_WR);
    EXPECT_TRUE(peer.sees_the_end());
  }
  EXPECT_EQ(bystander->get_now("k", soon()).code(), Code::kNotFound);
}

TEST_P(HostileTest, AGreetingThatDoesNotFitIsToldWhy) {
  start({.job = "train"});
  struct Case {
    StoreHello hello;
    Code code;
    const char* reason;
  };
  const Case cases[] = {
      {{.member = "x", .job = "test"}, Code::kInvalidArgument, "serves the job \"train\""},
      {{.version = 99, .release = "9.9.9", .member = "x"},
       Code::kNotSupported,
       "runs memspan 9.9.9, this store "},
  };
  for (const Case& bad : cases) {
    Stranger peer = stranger();
    EXPECT_TRUE(peer.send(encode(bad.hello)));
    auto welcome = decode_welcome(peer.receive());
    ASSERT_TRUE(welcome.is_ok()) << welcome.status().to_string();
    EXPECT_EQ(welcome->code, bad.code);
    EXPECT_NE(welcome->message.find(bad.reason), std::string::npos) << welcome->message;
    EXPECT_TRUE(peer.sees_the_end());
  }
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(try_to_join({.endpoint = {}, .job = "test"}).code(), Code::kInvalidArgument);
  EXPECT_LT(Clock::now() - begin, 2 * kRefusalTime);
  EXPECT_TRUE(try_to_join({.endpoint = {}, .job = "train"}).is_ok());
}

TEST_P(HostileTest, RequestsThatMakeNoSenseAreAnswered) {
  start();
  auto anna = join();
  auto ben = join();
  EXPECT_EQ(anna->take_rank("s", 2, 2, soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(*anna->take_rank("s", 0, 2, soon()), 0);
  EXPECT_NE(ben->take_rank("s", 0, 2, soon()).code(), Code::kOk);
  EXPECT_NE(ben->take_rank("s", 1, 3, soon()).code(), Code::kOk);
  EXPECT_TRUE(anna->set("empty", "", soon()).is_ok());
  EXPECT_EQ(*anna->compare_and_swap("empty", "", "", soon()), "");
  const std::string odd("a/../b\0\xff\xfe\n%s", 13);
  EXPECT_TRUE(anna->set(odd, odd, soon()).is_ok());
  EXPECT_EQ(*ben->get(odd, soon()), odd);
  EXPECT_EQ(ben->get_now(odd + "!", soon()).code(), Code::kNotFound);
}

// ---- slow ones

TEST_P(HostileTest, WhoSaysNothingIsClosed) {
  start({.patience = {.hello = 10 * kNoPatience}});  // the stranger shakes hands in that time
  const Fd socket = connected();
  EXPECT_EQ(all_of(socket.get()), "");
  Stranger peer = stranger();
  EXPECT_TRUE(peer.sees_the_end());
}

// A byte now and then does not buy more time.
TEST_P(HostileTest, WhoSaysHelloByteByByteIsClosed) {
  start({.patience = {.hello = kNoPatience}});
  const Fd socket = connected();
  const std::string start = std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  const std::string greeting = (is_plain() ? number(4000) : start) + std::string(4000, 'x');
  bool has_ended = false;
  for (std::size_t i = 0; i < greeting.size() && !has_ended; ++i) {
    pollfd polled{.fd = socket.get(), .events = POLLIN, .revents = 0};
    has_ended =
        ::send(socket.get(), &greeting[i], 1, MSG_NOSIGNAL) != 1 || ::poll(&polled, 1, 2) == 1;
  }
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(all_of(socket.get()), "");
}

TEST_P(HostileTest, WhoStopsInTheMiddleOfAFrameIsClosed) {
  start({.patience = {.frame = kNoPatience}});
  auto bystander = join();
  Stranger peer = welcomed_stranger();
  EXPECT_TRUE(peer.send(number(1000) + "half"));
  EXPECT_TRUE(peer.sees_the_end());
  EXPECT_TRUE(bystander->set("k", "v", soon()).is_ok());
}

TEST_P(HostileTest, WhoNeverReadsHisAnswersIsClosed) {
  start({.patience = {.frame = std::chrono::milliseconds(500)}});
  auto bystander = join();
  constexpr int kParts = 8;  // a frame arrives in time also in an emulator
  const std::string value(kMaxValueBytes / kParts, 'v');
  ASSERT_TRUE(bystander->set("large", value, soon()).is_ok());
  Stranger peer = welcomed_stranger();
  const std::string request =
      encode(StoreRequest{.id = 1, .operation = StoreOperation::kGetNow, .key = "large"});
  // At once, so that the store has read them all when it closes: unread ones would reset the
  // connection.
  std::string requests;
  for (int i = 0; i < 20 * kParts; ++i) requests += request;
  peer.send(requests);
  pollfd closed{.fd = peer.socket(), .events = POLLRDHUP, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, soon().remaining_poll_ms()), 1);
  EXPECT_TRUE(bystander->set("k", "v", soon()).is_ok());
}

INSTANTIATE_TEST_SUITE_P(Under, HostileTest,
                         testing::Values(ProtectionKind::kHostSecret, ProtectionKind::kSecret,
                                         ProtectionKind::kCertificates, ProtectionKind::kPlain),
                         mode_name);
INSTANTIATE_TEST_SUITE_P(Under, HostileToTlsTest,
                         testing::Values(ProtectionKind::kHostSecret, ProtectionKind::kSecret,
                                         ProtectionKind::kCertificates),
                         mode_name);
INSTANTIATE_TEST_SUITE_P(Under, HostileOnTheWayTest,
                         testing::Values(ProtectionKind::kSecret, ProtectionKind::kCertificates),
                         mode_name);

}  // namespace
}  // namespace memspan
