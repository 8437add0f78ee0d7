// SPDX-License-Identifier: Apache-2.0
#include "fabric/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "core/unix_socket.h"
#include "device/pages.h"
#include "world/pidfd.h"

namespace memspan {
namespace {

using testing::HasSubstr;

std::unique_ptr<Door> open_door() {
  auto door = Door::open();
  EXPECT_TRUE(door.is_ok()) << door.status().to_string();
  return std::move(door).value();
}

Result<DoorAnswer> ask(Door& from, const std::string& ticket, std::string_view name) {
  return from.ask_and_wait(ticket, name, Deadline::after(std::chrono::seconds(60)));
}

std::vector<Fd> some_pages(std::size_t bytes) {
  auto pages = Pages::create(bytes, "door-test");
  std::vector<Fd> descriptors;
  descriptors.emplace_back(dup(pages->descriptor()));
  return descriptors;
}

TEST(DoorTest, GivesWhatItOffers) {
  auto mine = open_door();
  auto other = open_door();
  ASSERT_TRUE(other->offer("slice/3", some_pages(3 * page_size())).is_ok());
  auto answer = ask(*mine, other->ticket(), "slice/3");
  ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
  EXPECT_EQ(answer->pid, getpid());
  ASSERT_EQ(answer->descriptors.size(), 1u);
  auto pages = Pages::adopt(std::move(answer->descriptors[0]));
  ASSERT_TRUE(pages.is_ok());
  EXPECT_EQ(pages->bytes(), 3 * page_size());
}

TEST(DoorTest, GivesTheLatestOffer) {
  auto door = open_door();
  ASSERT_TRUE(door->offer("it", some_pages(page_size())).is_ok());
  ASSERT_TRUE(door->offer("it", {}).is_ok());
  auto answer = ask(*door, door->ticket(), "it");
  ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
  EXPECT_TRUE(answer->descriptors.empty());
  door->withdraw("it");
  EXPECT_EQ(ask(*door, door->ticket(), "it").code(), Code::kNotFound);
}

TEST(DoorTest, RefusesAnOfferThatNoMessageCarries) {
  auto door = open_door();
  std::vector<Fd> eight(8);
  EXPECT_EQ(door->offer("it", std::move(eight)).code(), Code::kInvalidArgument);
}

TEST(DoorTest, GivesNothingWithoutTheNonce) {
  auto mine = open_door();
  auto other = open_door();
  ASSERT_TRUE(other->offer("it", {}).is_ok());
  const std::string name = other->ticket().substr(0, other->ticket().find(' '));
  EXPECT_EQ(ask(*mine, name + " 00000000000000000000000000000000", "it").code(),
            Code::kUnavailable);
  EXPECT_EQ(ask(*mine, name, "it").code(), Code::kUnavailable);
}

TEST(DoorTest, SaysThatADoorIsGone) {
  auto mine = open_door();
  auto other = open_door();
  const std::string ticket = other->ticket();
  other.reset();
  EXPECT_EQ(ask(*mine, ticket, "it").code(), Code::kUnavailable);
}

// A listener that accepts nobody: its backlog fills up, and questions wait there.
TEST(DoorTest, WaitsForNobodyThatIsStuck) {
  auto mine = open_door();
  auto other = open_door();
  ASSERT_TRUE(other->offer("it", {}).is_ok());
  const std::string name = "memspan-test-" + std::to_string(getpid());
  auto stuck = unix_listen(name);
  ASSERT_TRUE(stuck.is_ok());
  std::vector<std::uint64_t> questions;
  for (int i = 0; i < 300; ++i)
    questions.push_back(
        mine->ask(name + " nonce", "it", [](const Result<DoorAnswer>&) { ADD_FAILURE(); }));
  EXPECT_TRUE(ask(*mine, other->ticket(), "it").is_ok());
  EXPECT_EQ(
      mine->ask_and_wait(name + " nonce", "it", Deadline::after(std::chrono::milliseconds(20)))
          .code(),
      Code::kTimeout);
  for (const auto question : questions) mine->forget(question);
}

TEST(DoorTest, TellsTheEndOfAProcess) {
  auto door = open_door();
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(gate[1]);
    char byte = 0;
    _exit(static_cast<int>(read(gate[0], &byte, 1)));
  }
  close(gate[0]);
  auto pidfd = open_pidfd(child);
  ASSERT_TRUE(pidfd.is_ok());
  std::promise<void> ended;
  door->watch(*pidfd, [&] { ended.set_value(); });
  const auto forgotten = door->watch(*pidfd, [] { ADD_FAILURE(); });
  door->forget(forgotten);
  auto future = ended.get_future();
  EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  close(gate[1]);
  future.get();
  waitpid(child, nullptr, 0);
}

TEST(DoorTest, ACallMayForgetItself) {
  auto door = open_door();
  ASSERT_TRUE(door->offer("it", {}).is_ok());
  std::promise<std::uint64_t> number;
  std::promise<void> done;
  auto known = number.get_future().share();
  number.set_value(door->ask(door->ticket(), "it", [&, known](const Result<DoorAnswer>&) {
    door->forget(known.get());
    done.set_value();
  }));
  done.get_future().get();
}

}  // namespace
}  // namespace memspan
