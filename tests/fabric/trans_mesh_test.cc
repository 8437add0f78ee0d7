// SPDX-License-Identifier: Apache-2.0
// Endpoints that all know each other leave room at their store for newcomers. Run with
// MEMSPAN_TEST_ENDPOINTS=N for more than 80 of them.
#include <memspan/transfer.h>
#include <smem/host/smem.h>
#include <smem/host/smem_bm.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fabric/trans.h"

namespace trans {
namespace {

constexpr int kOfOneProcess = 8;

int endpoints_from_environment() {
  const char* const text = std::getenv("MEMSPAN_TEST_ENDPOINTS");
  return text == nullptr ? 80 : std::atoi(text);
}

std::string name_of(int number) {
  return "127.0.0.1:" + std::to_string(6001 + number);
}

// A peer of the same host costs three descriptors.
void allow_many_descriptors() {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Endpoints `first` and the following ones, which reach all others once these exist. They stay
// until the other end of the wire says so.
void run_process(const char* url, int first, int endpoints, int wire) {
  allow_many_descriptors();
  std::vector<smem_trans_t> handles;
  for (int i = 0; i < kOfOneProcess; ++i)
    handles.push_back(create(url, name_of(first + i).c_str()));
  meet(wire);
  for (const smem_trans_t handle : handles)
    for (int peer = 0; peer < endpoints; ++peer)
      ASSERT_EQ(memspan_transfer_reach(handle, name_of(peer).c_str()), SMEM_OK)
          << peer << ": " << smem_get_last_err_msg();
  meet(wire);
  meet(wire);
  for (const smem_trans_t handle : handles) smem_trans_destroy(handle, 0);
}

void expect_room_for_newcomers(const char* url, int endpoints) {
  const auto handle = create(url, name_of(endpoints).c_str());
  EXPECT_EQ(memspan_transfer_reach(handle, name_of(0).c_str()), SMEM_OK) << smem_get_last_err_msg();
  smem_trans_destroy(handle, 0);
  smem_bm_config_t config;
  EXPECT_EQ(smem_bm_config_init(&config), SMEM_OK);
  config.startConfigStoreServer = false;
  EXPECT_EQ(smem_bm_init(url, 1, 0, &config), SMEM_OK) << smem_get_last_err_msg();
  const smem_bm_t pool = smem_bm_create(1, 0, SMEMB_DATA_OP_SDMA, 1 << 20, 0, 0);
  EXPECT_NE(pool, nullptr) << smem_get_last_err_msg();
  EXPECT_EQ(smem_bm_join(pool, 0, nullptr), SMEM_OK) << smem_get_last_err_msg();
  smem_bm_uninit(0);
}

TEST(TransMeshTest, EndpointsThatAllKnowEachOtherLeaveRoomForNewcomers) {
  const int endpoints = endpoints_from_environment();
  Store store;
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::unique_ptr<Side>> processes;
  for (int first = 0; first < endpoints; first += kOfOneProcess) {
    wires.push_back(std::make_unique<Wire>());
    processes.push_back(std::make_unique<Side>(
        [&, end = wires.back()->left()] { run_process(store.url(), first, endpoints, end); }));
  }
  const auto meet_all = [&] {
    for (const auto& wire : wires) hear<char>(wire->right());
    for (const auto& wire : wires) say(wire->right(), 'm');
  };
  meet_all();                                                // all exist
  for (const auto& wire : wires) hear<char>(wire->right());  // and know each other
  Side([&] { expect_room_for_newcomers(store.url(), endpoints); }).join();
  for (const auto& wire : wires) say(wire->right(), 'm');
  meet_all();
  for (const auto& process : processes) process->join();
}

}  // namespace
}  // namespace trans
