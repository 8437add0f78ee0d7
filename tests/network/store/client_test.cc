// SPDX-License-Identifier: Apache-2.0
// The client against a store that the test plays by hand: everything a store may do wrong.
#include "store/client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <future>

#include "core/log.h"
#include "store/recipes/store_group.h"
#include "support.h"
#include "support/whole_answer.h"

namespace memspan {
namespace {

// The store's welcome is written ahead, so that connecting needs no second thread.
class StoreClientTest : public testing::Test {
 protected:
  StoreClientTest() : StoreClientTest(socket_pair()) {}

  Result<std::unique_ptr<StoreClient>> connect(std::string_view first_bytes,
                                               Deadline deadline = soon()) {
    if (!first_bytes.empty()) store_.send(first_bytes);
    return StoreClient::adopt(std::move(clients_end_), "PE 3", deadline);
  }
  std::unique_ptr<StoreClient> welcomed() {
    auto client = connect(encode(StoreWelcome{}));
    EXPECT_TRUE(client.is_ok()) << client.status().to_string();
    EXPECT_EQ(decode_hello(store_.receive())->member, "PE 3");
    return std::move(client).value();
  }

  RawPeer store_;

 private:
  explicit StoreClientTest(std::pair<Fd, Fd> ends)
      : store_(std::move(ends.first)), clients_end_(std::move(ends.second)) {}
  Fd clients_end_;
};

template <typename Function>
auto in_a_thread(Function function) {
  return std::async(std::launch::async, std::move(function));
}

TEST_F(StoreClientTest, ReturnsTheRefusalOfTheWelcome) {
  auto client = connect(encode(StoreWelcome{.code = Code::kNotSupported, .message = "too old"}));
  EXPECT_EQ(client.code(), Code::kNotSupported);
  EXPECT_NE(client.status().message().find("too old"), std::string::npos);
}

TEST_F(StoreClientTest, RefusesAStrangersWelcome) {
  EXPECT_EQ(connect("SSH-2.0-OpenSSH_9.2p1\r\n").code(), Code::kStoreLost);
}

TEST_F(StoreClientTest, BoundsTheWaitForTheWelcome) {
  auto client = connect("", Deadline::after(std::chrono::milliseconds(5)));
  EXPECT_EQ(client.code(), Code::kTimeout);
}

TEST_F(StoreClientTest, RefusesWhatIsNotASocket) {
  EXPECT_EQ(StoreClient::adopt(Fd(), "me", soon()).code(), Code::kInvalidArgument);
}

TEST_F(StoreClientTest, TakesAnswersInAnyOrder) {
  auto client = welcomed();
  auto first = in_a_thread([&] { return client->get("first", soon()); });
  const StoreRequest first_request = store_.receive_request();
  auto second = in_a_thread([&] { return client->get("second", soon()); });
  const StoreRequest second_request = store_.receive_request();
  store_.send(encode(StoreAnswer{.id = second_request.id, .value = "2"}));
  EXPECT_EQ(*second.get(), "2");
  store_.send(encode(StoreAnswer{.id = first_request.id, .value = "1"}));
  EXPECT_EQ(*first.get(), "1");
}

// The first caller drives; when its answer comes another one must take over.
TEST_F(StoreClientTest, ServesTheOtherCallersAfterTheDriverLeft) {
  auto client = welcomed();
  std::vector<std::future<Result<std::string>>> calls;
  std::vector<StoreRequest> requests;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(in_a_thread([&client, i] { return client->get(std::to_string(i), soon()); }));
    requests.push_back(store_.receive_request());
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    store_.send(encode(StoreAnswer{.id = requests[i].id, .value = requests[i].key}));
    EXPECT_EQ(*calls[i].get(), std::to_string(i));
  }
}

TEST_F(StoreClientTest, TellsTheStoreHowLongAGetMayWait) {
  auto client = welcomed();
  auto call = in_a_thread([&] { return client->get("k", Deadline::never()); });
  StoreRequest request = store_.receive_request();
  EXPECT_EQ(request.timeout_ms, kNoTimeout);
  store_.send(encode(StoreAnswer{.id = request.id}));
  EXPECT_TRUE(call.get().is_ok());
  call = in_a_thread([&] { return client->get("k", soon()); });
  request = store_.receive_request();
  EXPECT_GT(request.timeout_ms, 1000U);
  EXPECT_LE(request.timeout_ms, 60000U);
  store_.send(encode(StoreAnswer{.id = request.id}));
  EXPECT_TRUE(call.get().is_ok());
}

TEST_F(StoreClientTest, BoundsACallThatIsNotAnswered) {
  auto client = welcomed();
  Status status = client->set("the key", "v", Deadline::after(std::chrono::milliseconds(20)));
  EXPECT_EQ(status.code(), Code::kTimeout);
  for (const char* part : {"set", "\"the key\"", "adopted socket", "timed out after"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST_F(StoreClientTest, BoundsAWaitThatEvenTheStoreDoesNotTimeOut) {
  auto client = welcomed();
  const Status status = client->get("a", Deadline::after(std::chrono::milliseconds(1))).status();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_NE(status.message().find("\"a\""), std::string::npos) << status.message();
}

TEST_F(StoreClientTest, StaysUsableAfterATimeOut) {
  auto client = welcomed();
  // Short, yet long enough to begin to send on a busy machine.
  const Deadline short_one = Deadline::after(std::chrono::milliseconds(500));
  EXPECT_EQ(client->get_now("slow", short_one).code(), Code::kTimeout);
  const StoreRequest slow = store_.receive_request();
  auto call = in_a_thread([&] { return client->get_now("fast", soon()); });
  const StoreRequest fast = store_.receive_request();
  store_.send(encode(StoreAnswer{.id = slow.id, .value = "late"}));
  store_.send(encode(StoreAnswer{.id = fast.id, .value = "in time"}));
  EXPECT_EQ(*call.get(), "in time");
}

TEST_F(StoreClientTest, FinishesAFrameWhoseCallerGaveUp) {
  auto client = welcomed();
  const std::string large(std::size_t{2} << 20, 'v');  // more than the socket's buffers hold
  // Short, yet long enough to begin to send on a busy machine.
  const Deadline short_one = Deadline::after(std::chrono::milliseconds(500));
  EXPECT_EQ(client->set("large", large, short_one).code(), Code::kTimeout);
  EXPECT_EQ(client->set("next", large, Deadline::after(std::chrono::milliseconds(1))).code(),
            Code::kTimeout);
  auto call = in_a_thread([&] { return client->set("small", "v", soon()); });
  EXPECT_EQ(store_.receive_request().value.size(), large.size());
  const StoreRequest request = store_.receive_request();  // "next" was never begun
  EXPECT_EQ(request.key, "small");
  store_.send(encode(StoreAnswer{.id = request.id}));
  EXPECT_TRUE(call.get().is_ok());
}

TEST_F(StoreClientTest, EveryPendingAndLaterCallFailsWhenTheStoreIsLost) {
  auto client = welcomed();
  std::vector<std::future<Result<std::string>>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(in_a_thread([&] { return client->get("k", Deadline::never()); }));
    store_.receive_request();
  }
  store_.close();
  for (auto& call : calls) EXPECT_EQ(call.get().code(), Code::kStoreLost);
  EXPECT_EQ(client->set("k", "v", soon()).code(), Code::kStoreLost);
  EXPECT_EQ(client->get("k", Deadline::never()).code(), Code::kStoreLost);
}

TEST_F(StoreClientTest, AStoreThatSendsNonsenseIsLost) {
  auto client = welcomed();
  auto call = in_a_thread([&] { return client->get("k", soon()); });
  store_.receive_request();
  store_.send(std::string(8, '\0'));
  EXPECT_EQ(call.get().code(), Code::kStoreLost);
}

TEST_F(StoreClientTest, ReturnsTheStoresOwnError) {
  auto client = welcomed();
  auto call = in_a_thread([&] { return client->take_rank("k", 1, 1, soon()); });
  const StoreRequest request = store_.receive_request();
  store_.send(encode(
      StoreAnswer{.id = request.id, .code = Code::kInvalidArgument, .message = "no such rank"}));
  const Status status = call.get().status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("no such rank"), std::string::npos);
}

TEST_F(StoreClientTest, SendsNothingThatIsTooLarge) {
  auto client = welcomed();
  EXPECT_EQ(client->set("", "v", soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(client->set(std::string(kMaxKeyBytes + 1, 'k'), "v", soon()).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(client->set("k", std::string(kMaxValueBytes + 1, 'v'), soon()).code(),
            Code::kInvalidArgument);
}

// What the library logs while it lives; one at a time.
class Lines {
 public:
  Lines() {
    all().clear();
    set_log_sink([](int, const char* line) { all().emplace_back(line); });
  }
  ~Lines() { set_log_sink(nullptr); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  static std::vector<std::string>& all() {
    static std::vector<std::string> lines;
    return lines;
  }
};

constexpr Duration kLong = std::chrono::milliseconds(3600);

TEST(StoreNoticeTest, WhoWaitsLongForAStoreSaysSoOnce) {
  const ReservedPort port = reserved_port();
  const Lines lines;
  EXPECT_EQ(StoreClient::connect({.endpoint = port.endpoint}, Deadline::after(kLong)).code(),
            Code::kTimeout);
  ASSERT_EQ(Lines::all().size(), 1U);
  EXPECT_NE(Lines::all()[0].find(port.endpoint.to_string()), std::string::npos) << Lines::all()[0];
  EXPECT_NE(Lines::all()[0].find("s more"), std::string::npos) << Lines::all()[0];
}

TEST(StoreNoticeTest, WhoWaitsLongForOthersSaysSoOnce) {
  auto server = server_without_listener();
  auto client = client_of(*server);
  const Lines lines;
  EXPECT_EQ(StoreGroup(*client, "the job", 1, 4).barrier(Deadline::after(kLong)).code(),
            Code::kTimeout);
  ASSERT_EQ(Lines::all().size(), 1U);
  EXPECT_NE(Lines::all()[0].find("rank 1 of 4"), std::string::npos) << Lines::all()[0];
  EXPECT_NE(Lines::all()[0].find("the job"), std::string::npos) << Lines::all()[0];
}

}  // namespace
}  // namespace memspan
