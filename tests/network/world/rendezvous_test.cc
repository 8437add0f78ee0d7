// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <thread>

#include "net/tcp.h"
#include "store/client.h"
#include "support/free_url.h"
#include "world/membership.h"

namespace memspan {
namespace {

using testing::HasSubstr;

class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SHMEM_MASTER_ADDR",
          "SHMEM_MASTER_PORT", "MEMSPAN_LAUNCH", "MEMSPAN_STORE", "MEMSPAN_JOB",
          "OMPI_COMM_WORLD_SIZE", "FLUX_TASK_RANK", "PALS_RANKID", "PMI_SIZE",
          "SLURM_STEP_NUM_TASKS", "PMIX_RANK"})
      unsetenv(name);
  }
  static Rendezvous at(const std::shared_ptr<StoreServer>& server, int rank, int size) {
    Rendezvous rendezvous;
    rendezvous.rank = rank;
    rendezvous.size = size;
    rendezvous.store = server->endpoint();
    if (rank == 0) rendezvous.hosted = server;
    return rendezvous;
  }
  static std::shared_ptr<StoreServer> listen() {
    return StoreServer::listen(Endpoint{"127.0.0.1", 0}).value();
  }
};

constexpr auto kLimit = std::chrono::seconds(20);

TEST_F(RendezvousTest, AllMembersMeetAndShareOneBoard) {
  auto server = listen();
  std::vector<std::thread> members;
  for (int rank : {0, 1, 2})
    members.emplace_back([rank, rendezvous = at(server, rank, 3)] {
      auto joined = join_rendezvous(rendezvous, kLimit);
      ASSERT_TRUE(joined.is_ok()) << joined.status().to_string();
      EXPECT_EQ(joined->rank, rank);
      EXPECT_EQ(joined->segment->peers(), 3);
      // Others may have left already, but nobody is missing.
      for (int peer = 0; peer < 3; ++peer)
        EXPECT_NE(joined->segment->peer(peer).state.load(), PeerState::kAbsent);
      joined->segment->peer(rank).state.store(PeerState::kLeft);
    });
  for (std::thread& member : members) member.join();
}

TEST_F(RendezvousTest, OneAddressServesJobAfterJob) {
  char url[64];
  ASSERT_TRUE(write_free_url(url, sizeof url));  // kept for us between two jobs
  const Endpoint address = Endpoint::parse(url).value();
  std::vector<std::thread> members;
  for (int rank : {0, 1})
    members.emplace_back([rank, address] {
      for (int round = 0; round < 5; ++round) {
        Rendezvous rendezvous;
        rendezvous.rank = rank;
        rendezvous.size = 2;
        rendezvous.store = address;
        auto joined = join_rendezvous(rendezvous, kLimit);
        ASSERT_TRUE(joined.is_ok()) << round << joined.status().to_string();
        joined->segment->peer(rank).state.store(PeerState::kLeft);
        Status left = leave_rendezvous(*joined, kLimit);
        ASSERT_TRUE(left.is_ok()) << left.to_string();
      }
    });
  for (std::thread& member : members) member.join();
}

// Jobs of two names meet at one store, one after the other and both at once.
TEST_F(RendezvousTest, AStoreOfItsOwnServesSeveralJobs) {
  auto server = listen();
  std::vector<std::thread> members;
  for (const char* job : {"one", "other"})
    for (int rank : {0, 1})
      members.emplace_back([rank, job, address = server->endpoint()] {
        for (int round = 0; round < 3; ++round) {
          Rendezvous rendezvous;
          rendezvous.rank = rank;
          rendezvous.size = 2;
          rendezvous.store = address;
          rendezvous.job = fmt::format("{}{}", job, round);
          rendezvous.is_store_elsewhere = true;
          auto joined = join_rendezvous(rendezvous, kLimit);
          ASSERT_TRUE(joined.is_ok()) << joined.status().to_string();
          joined->segment->peer(rank).state.store(PeerState::kLeft);
          Status left = leave_rendezvous(*joined, kLimit);
          ASSERT_TRUE(left.is_ok()) << left.to_string();
        }
      });
  for (std::thread& member : members) member.join();
}

TEST_F(RendezvousTest, AStoreOfOneJobRefusesMembersThatNameAnother) {
  const std::shared_ptr<StoreServer> server =
      StoreServer::listen(Endpoint{"127.0.0.1", 0}, {.job = "one"}).value();
  Rendezvous rendezvous;
  rendezvous.store = server->endpoint();
  rendezvous.is_store_elsewhere = true;
  const auto join = [&] { return join_rendezvous(rendezvous, kLimit).status(); };
  setenv("MEMSPAN_JOB", "other", 1);
  const Status refused = join();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("serves the job \"one\", not \"other\""));
  setenv("MEMSPAN_JOB", "one", 1);
  EXPECT_TRUE(join().is_ok()) << join().to_string();
  unsetenv("MEMSPAN_JOB");
  EXPECT_TRUE(join().is_ok()) << join().to_string();
}

TEST_F(RendezvousTest, NamesTheMemberThatDoesNotCome) {
  auto joined = join_rendezvous(at(listen(), 0, 2), std::chrono::milliseconds(50));
  EXPECT_EQ(joined.code(), Code::kTimeout);
  EXPECT_THAT(joined.status().message(), HasSubstr("1"));
}

TEST_F(RendezvousTest, RefusesARankThatIsTakenAndASizeThatDiffers) {
  auto server = listen();
  auto first = StoreClient::connect({.endpoint = server->endpoint(), .member = "test"},
                                    Deadline::after(kLimit))
                   .value();
  ASSERT_TRUE(first->take_rank("job", 1, 2, Deadline::after(kLimit)).is_ok());
  EXPECT_EQ(join_rendezvous(at(server, 1, 2), kLimit).code(), Code::kUnavailable);
  auto other_size = join_rendezvous(at(server, 2, 3), kLimit);
  EXPECT_EQ(other_size.code(), Code::kInvalidArgument);
  EXPECT_THAT(other_size.status().message(), HasSubstr("there are 3 ranks, others said 2"));
}

// A process that has the port of a job's store, and accepts connections without a word.
class Stranger {
 public:
  Stranger() : listener_(listen_tcp({"127.0.0.1", 0}).value()) {}

  Rendezvous rendezvous(int rank) const {
    Rendezvous rendezvous;
    rendezvous.rank = rank;
    rendezvous.size = 2;
    rendezvous.store = listener_.endpoint;
    return rendezvous;
  }
  // Ends after it has met a process of the job.
  void meet_one_and_end() {
    pollfd polled{.fd = listener_.socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 20000), 1);
    listener_.socket.reset();
  }

 private:
  TcpListener listener_;
};

TEST_F(RendezvousTest, APortThatIsFreedAMomentLaterServesTheJob) {
  Stranger stranger;
  std::vector<std::thread> members;
  for (int rank : {0, 1})
    members.emplace_back([rendezvous = stranger.rendezvous(rank)] {
      auto joined = join_rendezvous(rendezvous, kLimit);
      ASSERT_TRUE(joined.is_ok()) << joined.status().to_string();
      joined->segment->peer(joined->rank).state.store(PeerState::kLeft);
    });
  stranger.meet_one_and_end();
  for (std::thread& member : members) member.join();
}

TEST_F(RendezvousTest, APortThatIsNotFreedEndsAllMembers) {
  Stranger stranger;
  Clock::time_point ends[2];
  std::vector<std::thread> members;
  for (int rank : {0, 1})
    members.emplace_back([rank, rendezvous = stranger.rendezvous(rank), &ends] {
      auto joined = join_rendezvous(rendezvous, kLimit);
      ends[rank] = Clock::now();
      ASSERT_FALSE(joined.is_ok());
      EXPECT_THAT(joined.status().message(),
                  HasSubstr(rank == 0 ? "Address already in use" : "is not a store"));
    });
  for (std::thread& member : members) member.join();
  EXPECT_LT(ends[1] - ends[0], std::chrono::seconds(2));
}

TEST_F(RendezvousTest, NobodyAtTheAddressIsATimeoutThatNamesIt) {
  Rendezvous rendezvous;
  rendezvous.rank = 1;
  rendezvous.size = 2;
  {
    auto server = listen();
    rendezvous.store = server->endpoint();
  }
  auto joined = join_rendezvous(rendezvous, std::chrono::milliseconds(100));
  EXPECT_EQ(joined.code(), Code::kTimeout);
  EXPECT_THAT(joined.status().message(), HasSubstr(rendezvous.store.to_string()));
}

TEST_F(RendezvousTest, ReadsTorchrunsVariables) {
  EXPECT_FALSE(rendezvous_from_environment().value().has_value());
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("MASTER_ADDR", "localhost", 1);
  setenv("MASTER_PORT", "29500", 1);
  Rendezvous rendezvous = *rendezvous_from_environment().value();
  EXPECT_EQ(rendezvous.rank, 1);
  EXPECT_EQ(rendezvous.size, 4);
  EXPECT_EQ(rendezvous.store, (Endpoint{"localhost", 29511}));
  setenv("RANK", "4", 1);
  EXPECT_EQ(rendezvous_from_environment().code(), Code::kInvalidArgument);
}

TEST_F(RendezvousTest, AnotherLaunchersJobIsNotAJobOfOne) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  auto joined = join_from_environment(kLimit, {});
  EXPECT_EQ(joined.code(), Code::kNotSupported);
  EXPECT_THAT(joined.status().message(), HasSubstr("OMPI_COMM_WORLD_SIZE"));
}

TEST_F(RendezvousTest, WithoutAnythingItIsAJobOfOne) {
  auto joined = join_from_environment(kLimit, {});
  ASSERT_TRUE(joined.is_ok()) << joined.status().to_string();
  EXPECT_EQ(joined->size, 1);
}

}  // namespace
}  // namespace memspan
