// SPDX-License-Identifier: Apache-2.0
#include "store/server_session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "core/bytes.h"
#include "support.h"

namespace memspan {
namespace {

// A session whose loop runs in the test's own thread, and the peer at its other end.
class StoreSessionTest : public testing::Test, public StoreSession::Owner {
 protected:
  explicit StoreSessionTest() : StoreSessionTest(socket_pair()) {}

  void start(StorePatience patience = {std::chrono::hours(1), std::chrono::hours(1)}) {
    session_ = std::make_shared<StoreSession>(
        *this, 1, make_plain_channel(std::move(ours_)),
        StoreSession::Shared{*loop_, chunk_, backlog_, headroom_}, patience);
    session_->start();
  }
  void say_hello() { peer_.send(encode(StoreHello{.member = "a test"})); }
  // Runs the loop until nothing more can happen without the peer.
  void run_ready() {
    while (loop_->run_once(Deadline::after(Duration::zero()))) continue;
  }
  void run_until_closed() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!is_closed_ && !deadline.has_passed()) loop_->run_once(deadline);
    run_ready();
  }
  bool peer_sees_the_end() {
    run_until_closed();
    return peer_.sees_the_end();
  }

  const std::shared_ptr<EventLoop> loop_ = EventLoop::without_thread().value();
  StoreBacklog backlog_;
  Headroom headroom_;
  RawPeer peer_;
  std::vector<StoreRequest> served_;
  std::function<void(const StoreRequest&)> on_request_ = [](const StoreRequest&) {};
  bool is_closed_ = false;
  Status why_;
  std::shared_ptr<StoreSession> session_;  // shared with the loop's callbacks

 private:
  explicit StoreSessionTest(std::pair<Fd, Fd> ends) : peer_(std::move(ends.first)) {
    ours_ = std::move(ends.second);
  }
  StoreWelcome greet(SessionId from, const StoreHello& hello, const ByteChannel&) override {
    if (hello.member != "an enemy") return {.session = from};
    return {.code = Code::kAuth, .message = "no enemies"};
  }
  void spoke(SessionId) override {}
  void serve(SessionId, StoreRequest request) override {
    served_.push_back(request);
    on_request_(request);
  }
  void closed(SessionId, const Status& why) override {
    EXPECT_FALSE(is_closed_);
    is_closed_ = true;
    why_ = why;
  }
  Fd ours_;
  std::vector<char> chunk_ = std::vector<char>(4096);
};

TEST_F(StoreSessionTest, WelcomesAndServes) {
  const StoreRequest request{.id = 5, .operation = StoreOperation::kGet, .key = "k"};
  on_request_ = [&](const StoreRequest&) { session_->send({.id = 5, .value = "v"}); };
  start();
  say_hello();
  peer_.send(encode(request));
  run_ready();
  EXPECT_EQ(served_, std::vector{request});
  EXPECT_EQ(decode_welcome(peer_.receive())->code, Code::kOk);
  EXPECT_EQ(*decode_answer(peer_.receive()), (StoreAnswer{.id = 5, .value = "v"}));
}

TEST_F(StoreSessionTest, ClosesAPeerThatDoesNotSayHello) {
  start({.hello = std::chrono::milliseconds(1)});
  EXPECT_TRUE(peer_sees_the_end());
}

TEST_F(StoreSessionTest, RefusesWhomItsOwnerRefuses) {
  start();
  peer_.send(encode(StoreHello{.member = "an enemy"}));
  run_until_closed();
  auto welcome = decode_welcome(peer_.receive());
  ASSERT_TRUE(welcome.is_ok());
  EXPECT_EQ(welcome->code, Code::kAuth);
  EXPECT_EQ(welcome->message, "no enemies");
  EXPECT_TRUE(peer_.sees_the_end());
}

TEST_F(StoreSessionTest, ClosesAPeerThatTakesTooLongOverAFrame) {
  start({.hello = std::chrono::hours(1), .frame = std::chrono::milliseconds(1)});
  say_hello();
  peer_.send(encode(StoreRequest{.operation = StoreOperation::kGetNow, .key = "k"}).substr(0, 9));
  EXPECT_TRUE(peer_sees_the_end());
  EXPECT_NE(why_.message().find("over one frame"), std::string::npos) << why_.message();
}

// Each frame has its own time: a peer that always has one under way is busy, not slow.
TEST_F(StoreSessionTest, KeepsAPeerThatIsAlwaysInTheMiddleOfAFrame) {
  constexpr auto kFrame = std::chrono::milliseconds(200);
  start({.hello = std::chrono::hours(1), .frame = kFrame});
  say_hello();
  const std::string frame = encode(StoreRequest{.operation = StoreOperation::kPing});
  peer_.send(frame.substr(0, 5));
  for (const auto begin = Clock::now(); Clock::now() - begin < 3 * kFrame;) {
    peer_.send(frame.substr(5) + frame.substr(0, 5));
    run_ready();
  }
  EXPECT_FALSE(is_closed_) << why_.message();
}

// Answers that it takes do not buy time for the frame that it does not finish.
TEST_F(StoreSessionTest, ClosesAPeerThatReadsButTakesTooLongOverItsFrame) {
  constexpr auto kFrame = std::chrono::milliseconds(20);
  start({.hello = std::chrono::hours(1), .frame = kFrame});
  say_hello();
  peer_.send(encode(StoreRequest{.operation = StoreOperation::kPing}).substr(0, 9));
  for (const auto begin = Clock::now(); !is_closed_ && Clock::now() - begin < 10 * kFrame;) {
    session_->send({.value = "an event"});
    run_ready();
  }
  EXPECT_TRUE(is_closed_);
}

TEST_F(StoreSessionTest, ClosesAPeerThatNeverReadsItsAnswers) {
  start({.hello = std::chrono::hours(1), .frame = std::chrono::milliseconds(1)});
  say_hello();
  run_ready();
  session_->send({.value = std::string(kMaxValueBytes, 'v')});
  run_until_closed();
  EXPECT_NE(why_.message().find("over one frame"), std::string::npos) << why_.message();
}

TEST_F(StoreSessionTest, HasNoPatienceForAPeerThatSaysHelloSlowly) {
  start({.hello = std::chrono::milliseconds(1)});
  peer_.send(encode(StoreHello{.member = "a test"}).substr(0, 9));
  EXPECT_TRUE(peer_sees_the_end());
}

TEST_F(StoreSessionTest, ClosesAStranger) {
  start();
  peer_.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(peer_sees_the_end());
}

TEST_F(StoreSessionTest, TrustsNobodyWithALongFrameBeforeTheHello) {
  start();
  ByteWriter writer;
  writer.u32(kMaxGreetingBytes + 1);
  peer_.send(writer.bytes());
  EXPECT_TRUE(peer_sees_the_end());
}

TEST_F(StoreSessionTest, ClosesAPeerThatSendsABrokenRequest) {
  start();
  say_hello();
  ByteWriter writer;
  writer.text("this is no request");
  peer_.send(writer.bytes());
  EXPECT_TRUE(peer_sees_the_end());
  EXPECT_TRUE(served_.empty());
}

TEST_F(StoreSessionTest, TellsAPeerOfAnotherVersionWhyItIsRefused) {
  start();
  peer_.send(encode(StoreHello{.version = 99, .release = "9.9.9", .member = "PE 3"}));
  run_until_closed();
  auto welcome = decode_welcome(peer_.receive());
  ASSERT_TRUE(welcome.is_ok());
  EXPECT_EQ(welcome->code, Code::kNotSupported);
  EXPECT_NE(welcome->message.find("PE 3 runs memspan 9.9.9, this store " MEMSPAN_VERSION),
            std::string::npos)
      << welcome->message;
  EXPECT_TRUE(peer_.sees_the_end());
}

TEST_F(StoreSessionTest, ClosesWhenThePeerGoes) {
  start();
  say_hello();
  run_ready();
  peer_.close();
  run_until_closed();
  EXPECT_TRUE(is_closed_);
}

// A value that many events share is in memory once.
TEST_F(StoreSessionTest, CountsWhatItsAnswersShareOnce) {
  start();
  say_hello();
  run_ready();
  const SharedText value = std::string(kMaxValueBytes, 'v');
  for (std::uint64_t i = 1; i <= 300; ++i)
    session_->send({.id = i, .value = value, .event = StoreEvent::kSet, .key = "k"});
  run_ready();
  EXPECT_FALSE(is_closed_);
  EXPECT_LT(session_->queued(), kMaxValueBytes + 300 * 400);
  EXPECT_EQ(session_->queued(), backlog_.bytes());
  peer_.close();
  run_until_closed();
  EXPECT_EQ(backlog_.bytes(), 0U);
}

TEST_F(StoreSessionTest, DismissesAPeerThatLeavesTooMuchUnread) {
  constexpr int kFit = 4;
  start({.hello = std::chrono::hours(1),
         .frame = std::chrono::hours(1),
         .queued = (kFit + 1) * kMaxValueBytes});
  say_hello();
  run_ready();
  for (std::uint64_t i = 1; i <= kFit + 2; ++i)
    session_->send({.id = i, .value = std::string(kMaxValueBytes, 'v'), .event = StoreEvent::kSet});
  EXPECT_LT(session_->queued(), 2 * kMaxValueBytes);
  // It still gets what it has a part of, and then why it gets no more.
  std::thread reader([this] {
    EXPECT_EQ(decode_welcome(peer_.receive())->code, Code::kOk);
    EXPECT_EQ(decode_answer(peer_.receive())->id, 1U);
    auto farewell = decode_answer(peer_.receive());
    ASSERT_TRUE(farewell.is_ok());
    EXPECT_EQ(farewell->id, kFarewellId);
    EXPECT_EQ(farewell->code, Code::kStoreLost);
    EXPECT_NE(farewell->message.find("unread"), std::string::npos) << farewell->message;
    EXPECT_TRUE(peer_.sees_the_end());
  });
  run_until_closed();
  reader.join();
  EXPECT_EQ(why_.code(), Code::kOutOfMemory);
  EXPECT_EQ(backlog_.bytes(), 0U);
}

TEST_F(StoreSessionTest, EndsAloneWhenThereIsNoMemoryForIt) {
  on_request_ = [](const StoreRequest&) { throw std::bad_alloc(); };
  start();
  say_hello();
  peer_.send(encode(StoreRequest{.operation = StoreOperation::kPing}));
  run_until_closed();
  EXPECT_EQ(why_.code(), Code::kOutOfMemory);
  EXPECT_EQ(decode_welcome(peer_.receive())->code, Code::kOk);
  EXPECT_NE(decode_answer(peer_.receive())->message.find("no memory"), std::string::npos);
}

TEST_F(StoreSessionTest, DoesNotServeAPeerThatDoesNotReadItsAnswers) {
  constexpr std::size_t kRequests = 5;
  const StoreAnswer answer{.value = std::string(kMaxValueBytes / 2, 'v')};
  on_request_ = [&](const StoreRequest&) { session_->send(answer); };
  start();
  say_hello();
  for (std::size_t i = 0; i < kRequests; ++i)
    peer_.send(encode(StoreRequest{.operation = StoreOperation::kGetNow, .key = "k"}));
  run_ready();
  EXPECT_EQ(served_.size(), 2U);  // with two answers in its queue the session is over its limit

  char chunk[65536];
  std::size_t received = 0;
  for (ssize_t bytes = 0; served_.size() < kRequests; received += static_cast<std::size_t>(bytes)) {
    bytes = ::recv(peer_.descriptor(), chunk, sizeof chunk, 0);
    ASSERT_GT(bytes, 0);
    run_ready();
  }
  EXPECT_GT(received, 2 * answer.value.size());
}

}  // namespace
}  // namespace memspan
