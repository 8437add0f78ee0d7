// SPDX-License-Identifier: Apache-2.0
// Endpoints that begin, end, die, stop and come back; who may reach whom.
#include <memspan/transfer.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fabric/trans.h"
#include "support/needs.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define MEMSPAN_ADDRESS_SANITIZER
#endif
#endif

namespace trans {
namespace {

constexpr std::size_t kBytes = 1 << 16;

// An endpoint with registered memory of both kinds, until it is killed or told.
void run_target(const Store& store, int wire) {
  const auto handle = create(store.url(), kTarget, SMEM_TRANS_RECEIVER);
  offer_pages(handle, kBytes, wire);
  say(wire, static_cast<unsigned char*>(smem_trans_malloc(handle, kBytes)));
  hear<char>(wire);
  smem_trans_destroy(handle, 0);
  say(wire, 'd');
  hear<char>(wire);
}

struct Memory {
  unsigned char* plain;
  unsigned char* mapped;
};
Memory hear_memory(int wire) {
  auto* plain = hear<unsigned char*>(wire);
  return {plain, hear<unsigned char*>(wire)};
}

int write_to(smem_trans_t handle, unsigned char* there, std::size_t bytes = 1) {
  static const unsigned char kSource[kBytes] = {9};
  return smem_trans_write(handle, kSource, kTarget, there, bytes);
}

TEST(TransLifeTest, APeerThatIsKilledInTheMiddleOfTrafficIsNamedSoon) {
  for (const bool is_mapped : {false, true}) {
    Store store;
    Wire wire, control;
    Side target([&] { run_target(store, wire.left()); });
    Side initiator([&] {
      const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
      const Memory remote = hear_memory(wire.right());
      unsigned char* there = is_mapped ? remote.mapped : remote.plain;
      ASSERT_EQ(write_to(handle, there), SMEM_OK) << smem_get_last_err_msg();
      say(control.left(), 'k');
      int code = SMEM_OK;
      while (code == SMEM_OK) code = write_to(handle, there, kBytes);
      const auto noticed = std::chrono::steady_clock::now();
      EXPECT_EQ(code, SMEM_NOT_CONNECTED) << smem_get_last_err_msg();
      EXPECT_TRUE(says(kTarget));
      EXPECT_EQ(write_to(handle, there), SMEM_NOT_CONNECTED);
      const auto killed = hear<std::chrono::steady_clock::time_point>(control.left());
      EXPECT_LT(noticed - killed, std::chrono::seconds(1));
      smem_trans_destroy(handle, 0);
    });
    hear<char>(control.right());
    const auto when = std::chrono::steady_clock::now();
    target.kill();
    say(control.right(), when);
    initiator.join();
  }
}

TEST(TransLifeTest, APeerThatComesBackUnderItsNameIsReachedAgain) {
  Store store;
  Wire first_wire, second_wire, control;
  Side first([&] { run_target(store, first_wire.left()); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    const Memory before = hear_memory(first_wire.right());
    ASSERT_EQ(write_to(handle, before.plain), SMEM_OK);
    ASSERT_EQ(write_to(handle, before.mapped), SMEM_OK);
    meet(control.left());
    const Memory after = hear_memory(second_wire.right());
    EXPECT_EQ(write_to(handle, after.plain), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, after.mapped), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, after.plain + kBytes), SMEM_NOT_EXIST);
    say(second_wire.right(), 'e');
    hear<char>(second_wire.right());
    EXPECT_EQ(write_to(handle, after.plain), SMEM_NOT_EXIST);
    EXPECT_TRUE(says("destroyed"));
    say(second_wire.right(), 'e');
  });
  hear<char>(control.right());
  first.kill();
  // The new one takes the name at once, whatever the store has noticed.
  Side second([&] { run_target(store, second_wire.left()); });
  say(control.right(), 'm');
  initiator.join();
  second.join();
}

TEST(TransLifeTest, ReachingSaysWhetherAPeerIsThere) {
  Store store;
  Wire wire;
  Side target([&] { run_target(store, wire.left()); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    EXPECT_EQ(memspan_transfer_reach(handle, "127.0.0.1:9"), SMEM_NOT_EXIST);
    EXPECT_EQ(memspan_transfer_reach(handle, nullptr), SMEM_INVALID_PARAM);
    EXPECT_EQ(memspan_transfer_reach(nullptr, kTarget), SMEM_INVALID_PARAM);
    hear_memory(wire.right());
    EXPECT_EQ(memspan_transfer_reach(handle, kTarget), SMEM_OK) << smem_get_last_err_msg();
    say(wire.right(), 'e');
    hear<char>(wire.right());
    EXPECT_EQ(memspan_transfer_reach(handle, kTarget), SMEM_NOT_EXIST);
    say(wire.right(), 'e');
  });
  target.join();
  initiator.join();
}

TEST(TransLifeTest, AStoppedPeerIsNoHindrance) {
  if (std::getenv("MEMSPAN_TEST_HOSTS") != nullptr)
    GTEST_SKIP() << "does not apply: a process on another host is served by a thread of its own, "
                    "which stops, too";
  MEMSPAN_NEEDS("process_vm");  // messages need the peer's own thread, too
  Store store;
  Wire wire, control;
  Side target([&] { run_target(store, wire.left()); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    const Memory remote = hear_memory(wire.right());
    EXPECT_EQ(write_to(handle, remote.plain), SMEM_OK);
    EXPECT_EQ(write_to(handle, remote.mapped), SMEM_OK);
    meet(control.left());
    unsigned char back = 0;
    EXPECT_EQ(write_to(handle, remote.plain, kBytes), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(write_to(handle, remote.mapped, kBytes), SMEM_OK) << smem_get_last_err_msg();
    EXPECT_EQ(smem_trans_read(handle, &back, kTarget, remote.plain, 1), SMEM_OK);
    EXPECT_EQ(back, 9);
    // A second endpoint of ours would have to ask it, which ends.
    const auto second = create(store.url(), "127.0.0.1:6003", SMEM_TRANS_SENDER);
    EXPECT_EQ(write_to(second, remote.plain), SMEM_TIMEOUT);
    EXPECT_TRUE(says("may be stopped"));
    meet(control.left());
    EXPECT_EQ(write_to(second, remote.plain), SMEM_OK) << smem_get_last_err_msg();
  });
  hear<char>(control.right());
  target.signal(SIGSTOP);
  say(control.right(), 'm');
  hear<char>(control.right());
  target.signal(SIGCONT);
  say(control.right(), 'm');
  initiator.join();
}

TEST(TransLifeTest, ANameIsOneLivingProcess) {
  Store store;
  Wire wire;
  Side holder([&] {
    create(store.url(), "127.0.0.1:6001");
    meet(wire.left());
    hear<char>(wire.left());
  });
  Side other([&] {
    meet(wire.right());
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    for (const char* spelling : {"127.0.0.1:6001", "127.0.0.1:06001"}) {
      EXPECT_EQ(smem_trans_create(store.url(), spelling, &config), nullptr);
      EXPECT_EQ(smem_get_last_err_code(), SMEM_DUPLICATED);
      EXPECT_TRUE(says("127.0.0.1:6001"));
    }
    const auto mine = create(store.url(), "[::0001]:6001");
    EXPECT_EQ(smem_trans_create(store.url(), "[::1]:6001", &config), nullptr);
    EXPECT_EQ(smem_get_last_err_code(), SMEM_DUPLICATED);
    smem_trans_destroy(mine, 0);
    EXPECT_NE(create(store.url(), "[::1]:6001"), nullptr);
    smem_trans_uninit(0);
    EXPECT_NE(create(store.url(), "[::1]:6001"), nullptr);
  });
  other.join();
}

TEST(TransLifeTest, RolesSayWhoReachesWhom) {
  Store store;
  Side alone([&] {
    const smem_trans_role_t roles[] = {SMEM_TRANS_SENDER, SMEM_TRANS_RECEIVER, SMEM_TRANS_BOTH};
    const char* const froms[] = {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"};
    const char* const tos[] = {"10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"};
    const bool may[3][3] = {{false, true, true}, {true, false, true}, {true, true, true}};
    unsigned char memory[8] = {};
    unsigned char byte = 5;
    smem_trans_t from[3];
    for (int i = 0; i < 3; ++i) {
      from[i] = create(store.url(), froms[i], roles[i]);
      EXPECT_EQ(smem_trans_register_mem(create(store.url(), tos[i], roles[i]), memory, 8, 0),
                SMEM_OK);
    }
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(smem_trans_write(from[i], &byte, tos[k], memory, 1),
                  may[i][k] ? SMEM_OK : SMEM_INVALID_PARAM)
            << i << " to " << k;
        if (!may[i][k]) {
          EXPECT_TRUE(says(i == 0 ? "SENDER" : "RECEIVER"));
        }
      }
    EXPECT_EQ(memory[0], 5);
  });
  alone.join();
}

TEST(TransLifeTest, RefusesWhatIsNoConfiguration) {
  Store store;
  Side alone([&] {
    smem_trans_config_t good;
    EXPECT_EQ(smem_trans_config_init(nullptr), SMEM_INVALID_PARAM);
    EXPECT_EQ(smem_trans_config_init(&good), SMEM_OK);
    EXPECT_EQ(good.role, SMEM_TRANS_SENDER);
    EXPECT_EQ(good.initTimeout, 120u);
    EXPECT_EQ(smem_trans_init(&good), SMEM_OK);
    EXPECT_EQ(smem_trans_init(&good), SMEM_OK);
    const auto refused = [&](smem_trans_config_t config, const char* words) {
      EXPECT_EQ(smem_trans_init(&config), SMEM_INVALID_PARAM);
      EXPECT_EQ(smem_trans_create(store.url(), kTarget, &config), nullptr);
      EXPECT_EQ(smem_get_last_err_code(), SMEM_INVALID_PARAM);
      EXPECT_TRUE(says(words));
    };
    setenv("MEMSPAN_COPY", "pigeon", 1);
    EXPECT_EQ(smem_trans_create(store.url(), kTarget, &good), nullptr);
    EXPECT_TRUE(says("MEMSPAN_COPY is \"pigeon\""));
    auto config = good;
    config.role = SMEM_TRANS_NONE;
    refused(config, "role is 0");
    config = good;
    config.initTimeout = 0;
    refused(config, "initTimeout is zero");
    config = good;
    config.dataOpType = static_cast<smem_bm_data_op_type>(1 << 20);
    refused(config, "dataOpType is 0x100000");
    config.dataOpType =
        static_cast<smem_bm_data_op_type>(SMEMB_DATA_OP_DEVICE_RDMA | SMEMB_DATA_OP_HOST_TCP);
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    EXPECT_EQ(smem_trans_create(store.url(), kTarget, nullptr), nullptr);
    EXPECT_TRUE(says("config is null"));
    EXPECT_EQ(smem_trans_create(nullptr, kTarget, &good), nullptr);
    EXPECT_TRUE(says("invalid store_url, which is null/empty"));
    EXPECT_EQ(smem_trans_create(store.url(), "", &good), nullptr);
    EXPECT_TRUE(says("invalid unique_id"));
    EXPECT_EQ(smem_trans_create(store.url(), "here", &good), nullptr);
    EXPECT_TRUE(says("ip:port, [ipv6]:port and host:port"));
    smem_trans_destroy(nullptr, 0);
    EXPECT_TRUE(says("handle is NULL"));
  });
  alone.join();
}

// Before smem_trans_init(), and again after smem_trans_uninit(): what is wrong with the arguments
// is said first, and a handle that names nothing is an argument.
TEST(TransLifeTest, IsRefusedUntilItIsInitialised) {
  Store store;
  Side alone([&] {
    smem_trans_config_t config;
    EXPECT_EQ(smem_trans_config_init(&config), SMEM_OK);
    config.dataOpType = static_cast<smem_bm_data_op_type>(0);  // whatever fits
    unsigned char byte = 0;
    unsigned char* const no_endpoint = &byte;
    const auto expect_order = [&](int32_t when_good) {
      EXPECT_EQ(smem_trans_create(nullptr, kTarget, &config), nullptr);
      EXPECT_EQ(smem_get_last_err_code(), SMEM_INVALID_PARAM);
      EXPECT_EQ(smem_trans_register_mem(nullptr, &byte, 1, 0), SMEM_INVALID_PARAM);
      EXPECT_EQ(smem_trans_register_mem(no_endpoint, &byte, 0, 0), SMEM_INVALID_PARAM);
      EXPECT_TRUE(says("invalid capacity"));
      EXPECT_EQ(smem_trans_deregister_mem(no_endpoint, nullptr), SMEM_INVALID_PARAM);
      EXPECT_EQ(smem_trans_write(no_endpoint, nullptr, kTarget, &byte, 1), SMEM_INVALID_PARAM);
      EXPECT_TRUE(says("localAddrs[0], which is null"));
      EXPECT_EQ(smem_trans_register_mem(no_endpoint, &byte, 1, 0), when_good);
      EXPECT_EQ(smem_trans_deregister_mem(no_endpoint, &byte), when_good);
      EXPECT_EQ(smem_trans_write(no_endpoint, &byte, kTarget, &byte, 1), when_good);
      EXPECT_EQ(smem_trans_malloc(no_endpoint, 1), nullptr);
      EXPECT_EQ(smem_get_last_err_code(), when_good);
    };
    expect_order(SMEM_NOT_INIT);
    EXPECT_EQ(smem_trans_create(store.url(), kTarget, &config), nullptr);
    EXPECT_EQ(smem_get_last_err_code(), SMEM_NOT_INIT);
    EXPECT_TRUE(says("smem trans not initialized yet"));
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK) << smem_get_last_err_msg();
    expect_order(SMEM_INVALID_PARAM);
    EXPECT_TRUE(says("get entry by handle failed"));
    EXPECT_NE(smem_trans_create(store.url(), kTarget, &config), nullptr) << smem_get_last_err_msg();
    smem_trans_uninit(0);
    expect_order(SMEM_NOT_INIT);
    EXPECT_EQ(smem_trans_create(store.url(), kTarget, &config), nullptr);
  });
  alone.join();
}

TEST(TransLifeTest, HostsTheStoreWhenItMay) {
  std::string url;
  {
    Store place;  // a port that is free again
    url = place.url();
  }
  Wire wire;
  const auto host_it = [&] {
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.startConfigServer = true;
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    EXPECT_NE(smem_trans_create(url.c_str(), kTarget, &config), nullptr) << smem_get_last_err_msg();
    EXPECT_NE(smem_trans_create(url.c_str(), "127.0.0.1:6009", &config), nullptr);
    meet(wire.left());
    hear<char>(wire.left());
  };
  Side host(host_it, 0);  // where the address is
  Side guest([&] {
    meet(wire.right());
    smem_trans_config_t config;
    smem_trans_config_init(&config);
    config.startConfigServer = true;
    EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
    EXPECT_NE(smem_trans_create(url.c_str(), kInitiator, &config), nullptr)
        << smem_get_last_err_msg();
  });
  guest.join();
}

// Endpoints of one process, of one store and of two, are strangers to each other.
TEST(TransLifeTest, OneProcessMayHaveManyEndpoints) {
  Store store, other;
  Side alone([&] {
    unsigned char memory[64] = {};
    unsigned char byte[8] = {1};
    const auto a = create(store.url(), "10.0.0.1:1");
    const auto b = create(store.url(), "10.0.0.1:2");
    const auto c = create(other.url(), "10.0.0.1:1");
    EXPECT_EQ(smem_trans_register_mem(a, memory, 8, 0), SMEM_OK);
    EXPECT_EQ(smem_trans_register_mem(c, memory + 8, 8, 0), SMEM_OK);
    EXPECT_EQ(smem_trans_write(b, byte, "10.0.0.1:1", memory, 8), SMEM_OK);
    EXPECT_EQ(smem_trans_write(b, byte, "10.0.0.1:1", memory + 8, 1), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(c, byte, "10.0.0.1:2", memory, 1), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(c, byte, "10.0.0.1:1", memory + 8, 1), SMEM_OK);
    auto* mapped = static_cast<unsigned char*>(smem_trans_malloc(a, 100));
    EXPECT_EQ(smem_trans_write(b, byte, "10.0.0.1:1", mapped + 99, 1), SMEM_OK);
    EXPECT_EQ(mapped[99], 1);
    smem_trans_destroy(a, 0);
    EXPECT_EQ(smem_trans_write(b, byte, "10.0.0.1:1", memory, 1), SMEM_NOT_EXIST);
    EXPECT_EQ(smem_trans_write(c, byte, "10.0.0.1:1", memory + 8, 1), SMEM_OK);
  });
  alone.join();
}

// What the dead leave behind here does not grow: names, memory, descriptors.
TEST(TransLifeTest, PeersComeAndGoWithoutATrace) {
  Store store;
  Side alone([&] {
    const auto handle = create(store.url(), "10.0.0.1:1");
    unsigned char memory[8] = {};
    unsigned char byte = 1;
    const auto descriptors = [] { return trans::entries_of("/proc/self/fd"); };
    std::size_t before = 0;
    for (int i = 0; i < 100; ++i) {
      const std::string name = "10.0.0.2:" + std::to_string(1 + i);
      const auto peer = create(store.url(), name.c_str());
      EXPECT_EQ(smem_trans_register_mem(peer, memory, 8, 0), SMEM_OK);
      auto* mapped = static_cast<unsigned char*>(smem_trans_malloc(peer, 1));
      EXPECT_EQ(smem_trans_write(handle, &byte, name.c_str(), memory, 1), SMEM_OK);
      EXPECT_EQ(smem_trans_write(handle, &byte, name.c_str(), mapped, 1), SMEM_OK);
      smem_trans_destroy(peer, 0);
      EXPECT_EQ(smem_trans_write(handle, &byte, name.c_str(), memory, 1), SMEM_NOT_EXIST);
      EXPECT_TRUE(says("destroyed"));
      if (i == 10) before = descriptors();
    }
    EXPECT_LE(descriptors(), before + 10);
  });
  alone.join();
}

TEST(TransLifeTest, AChildOfForkHasNoEndpoints) {
#ifdef MEMSPAN_ADDRESS_SANITIZER
  GTEST_SKIP() << "does not apply: a child of fork() waits for ever for this sanitizer's allocator "
                  "if another thread of its parent was allocating, as the endpoint's do";
#endif
  Store store;
  Side alone([&] {
    unsigned char memory[8] = {};
    const auto handle = create(store.url(), kTarget);
    Side child([&] {
      EXPECT_EQ(smem_trans_register_mem(handle, memory, 8, 0), SMEM_INVALID_PARAM);
      EXPECT_TRUE(says("a child of fork()"));
#if !defined(__SANITIZE_THREAD__)  // which lets such a child start no threads
      EXPECT_NE(create(store.url(), kInitiator), nullptr);
#endif
      _exit(testing::Test::HasFailure() ? 1 : 0);
    });
    child.join();
    EXPECT_EQ(smem_trans_register_mem(handle, memory, 8, 0), SMEM_OK);
  });
  alone.join();
}

TEST(TransLifeTest, ThreadsMayUseOneEndpointAtTheSameTime) {
  Store store;
  Wire wire;
  constexpr int kThreads = 4;
  Side target([&] { run_target(store, wire.left()); });
  Side initiator([&] {
    const auto handle = create(store.url(), kInitiator, SMEM_TRANS_SENDER);
    const Memory remote = hear_memory(wire.right());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::vector<unsigned char> mine(1000, static_cast<unsigned char>(t + 1)), back(1000);
        for (int i = 0; i < 300; ++i) {
          unsigned char* there = (i % 2 == 0 ? remote.plain : remote.mapped) + t * 1000;
          ASSERT_EQ(smem_trans_write(handle, mine.data(), kTarget, there, 1000), SMEM_OK)
              << smem_get_last_err_msg();
          ASSERT_EQ(smem_trans_read(handle, back.data(), kTarget, there, 1000), SMEM_OK);
          ASSERT_EQ(back, mine);
          unsigned char own = 0;
          ASSERT_EQ(smem_trans_register_mem(handle, &own, 1, 0), SMEM_OK);
          ASSERT_EQ(smem_trans_deregister_mem(handle, &own), SMEM_OK);
        }
      });
    for (auto& thread : threads) thread.join();
    smem_trans_destroy(handle, 0);
  });
  initiator.join();
}

}  // namespace
}  // namespace trans
