// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "core/fd.h"
#include "world/foreign_launcher.h"

namespace memspan {
namespace {

using testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(20);
constexpr auto kShort = std::chrono::milliseconds(30);

// Reads lines and answers them, on a thread of its own, until the other end is closed or the answer
// is empty, which closes this one.
class FakeServer {
 public:
  using Answer = std::function<std::string(const std::string& line)>;

  explicit FakeServer(Answer answer) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    theirs_ = Fd(ends[1]);
    thread_ = std::thread([socket = Fd(ends[0]), answer = std::move(answer)] {
      std::string line;
      char byte = 0;
      while (recv(socket.get(), &byte, 1, 0) == 1) {
        if (byte != '\n') {
          line += byte;
          continue;
        }
        const std::string told = answer(line);
        if (told.empty()) return;
        // In pieces, as a stream may come.
        const std::size_t half = told.size() / 2;
        send(socket.get(), told.data(), half, MSG_NOSIGNAL);
        send(socket.get(), told.data() + half, told.size() - half, MSG_NOSIGNAL);
        line.clear();
      }
    });
  }
  ~FakeServer() {
    theirs_.reset();
    thread_.join();
  }

  Result<std::unique_ptr<LauncherChannel>> open(int rank, int size, Duration limit = kLimit) {
    setenv("PMI_FD", std::to_string(theirs_.get()).c_str(), 1);
    setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
    setenv("PMI_SIZE", std::to_string(size).c_str(), 1);
    return open_pmi_channel(Deadline::after(limit));
  }

 private:
  Fd theirs_;
  std::thread thread_;
};

std::string answer_start(const std::string& line) {
  if (line == "cmd=init pmi_version=1 pmi_subversion=1")
    return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
  if (line == "cmd=get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100\n";
  if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
  if (line == "cmd=finalize") return "cmd=finalize_ack\n";
  return "cmd=unknown rc=-1\n";
}

// Of both processes of a job; each server's thread is the one of its process.
struct FakeJob {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> keys;
  int entered = 0;

  std::string answer(const std::string& line) {
    std::unique_lock lock(mutex);
    const std::size_t key = line.find("key=");
    if (line.rfind("cmd=put kvsname=kvs_1 ", 0) == 0) {
      const std::size_t value = line.find(" value=");
      keys[line.substr(key, value - key)] = line.substr(value + 1);
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (line.rfind("cmd=get kvsname=kvs_1 ", 0) == 0) {
      const auto found = keys.find(line.substr(key));
      if (found == keys.end()) return "cmd=get_result rc=-1 msg=not_found value=unknown\n";
      return "cmd=get_result rc=0 msg=success " + found->second + "\n";
    }
    if (line == "cmd=barrier_in") {
      const int round = entered++ / 2;
      changed.notify_all();
      changed.wait(lock, [&] { return entered >= 2 * (round + 1); });
      return "cmd=barrier_out\n";
    }
    return answer_start(line);
  }
};

TEST(PmiChannelTest, TellsTheOthersWhatIsNotOnlyWords) {
  FakeJob job;
  const auto answer = [&job](const std::string& line) { return job.answer(line); };
  FakeServer first(answer);
  FakeServer second(answer);
  const auto other = second.open(1, 2).value();
  const auto channel = first.open(0, 2).value();
  EXPECT_EQ(channel->rank(), 0);
  EXPECT_EQ(channel->size(), 2);
  const Deadline deadline = Deadline::after(kLimit);
  const std::string text = "a text\nkey=value \xff";
  ASSERT_TRUE(channel->put("k", text, deadline).is_ok());
  auto fenced = std::async(std::launch::async, [&] { return other->fence(deadline); });
  ASSERT_TRUE(channel->fence(deadline).is_ok());
  ASSERT_TRUE(fenced.get().is_ok());
  EXPECT_EQ(other->get(0, "k", deadline).value(), text);
  EXPECT_THAT(other->get(1, "k", deadline).status().message(), HasSubstr("not_found"));
}

TEST(PmiChannelTest, RefusesMoreThanTheLauncherTakes) {
  FakeServer server(answer_start);
  const auto channel = server.open(0, 2).value();
  const Status refused = channel->put("k", std::string(50, 'x'), Deadline::after(kLimit));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("50 bytes"));
}

TEST(PmiChannelTest, SaysWhatAnAnswerWas) {
  FakeServer server([](const std::string& line) {
    return line.rfind("cmd=init", 0) == 0 ? "cmd=response_to_init rc=-1 pmi_version=2\n"
                                          : answer_start(line);
  });
  const auto refused = server.open(0, 2);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("rc=-1 pmi_version=2"));
}

TEST(PmiChannelTest, EndsWhereTheLauncherCloses) {
  FakeServer server(
      [](const std::string& line) { return line == "cmd=get_maxes" ? "" : answer_start(line); });
  const auto refused = server.open(0, 2);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("closed"));
}

TEST(PmiChannelTest, WaitsNoLongerThanTheDeadline) {
  std::promise<void> over;
  FakeServer server([is_over = over.get_future().share()](const std::string& line) {
    if (line == "cmd=barrier_in") {
      is_over.wait();
      return std::string();
    }
    return answer_start(line);
  });
  {
    const auto channel = server.open(0, 2).value();
    EXPECT_EQ(channel->fence(Deadline::after(kShort)).code(), Code::kTimeout);
    over.set_value();
  }
}

TEST(PmiChannelTest, ALineWithoutAnEndIsNotReadForever) {
  FakeServer server([](const std::string&) { return std::string(100'000, 'x'); });
  EXPECT_THAT(server.open(0, 2).status().message(), HasSubstr("without an end of line"));
}

TEST(PmiChannelTest, NamesWhatIsWrongInTheEnvironment) {
  FakeServer server(answer_start);
  EXPECT_THAT(server.open(2, 2).status().message(), HasSubstr("PMI_RANK"));
  setenv("PMI_RANK", "0", 1);
  const Fd no_socket(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const std::string& number : {std::to_string(no_socket.get()), std::string("1000000")}) {
    setenv("PMI_FD", number.c_str(), 1);
    const auto refused = open_pmi_channel(Deadline::after(kLimit));
    EXPECT_EQ(refused.code(), Code::kUnavailable);
    EXPECT_THAT(refused.status().message(), HasSubstr(number + " of PMI_FD"));
  }
}

}  // namespace
}  // namespace memspan
