// SPDX-License-Identifier: Apache-2.0
// Groups: what torch.distributed uses. All but the group's end has the group's time-out. Another
// group, without the silent member, goes on.
#include <memspan/group.h>
#include <memspan/memspan.h>
#include <smem/host/smem_shm.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "silent/silent.h"

namespace {

using silent::Ends;
using silent::kCaller;
using silent::kNear;
using silent::kSilent;
using silent::need;

constexpr std::uint32_t kLimitMs = 1500;  // before the silent member is given up as lost
constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = std::size_t{4} << 20;

// The members of a group learn of each other by a space, which is gone before the silence.
struct Meeting {
  smem_shm_t space;
  const char* name;
  int member;
  int members;
};
int exchange(void* user, const void* mine, std::size_t bytes, void* all) {
  const auto* const meeting = static_cast<Meeting*>(user);
  const auto count = static_cast<std::uint32_t>(bytes);
  const auto members = static_cast<std::uint32_t>(meeting->members);
  return smem_shm_subgroup_allgather(
      meeting->space, meeting->name, members, static_cast<std::uint32_t>(meeting->member),
      static_cast<const char*>(mine), count, static_cast<char*>(all), count * members);
}

class Groups final : public silent::Face {
 public:
  void begin() override {
    own_.resize(4 * kLarge);
    got_.resize(4 * kLarge);
    for (int member = 0; member < size; ++member) {
      values_.push_back(own_.data() + static_cast<std::size_t>(member) * kSmall);
      results_.push_back(got_.data() + static_cast<std::size_t>(member) * kSmall);
      sizes_.push_back(kSmall);
    }
    word_ = static_cast<std::uint32_t*>(memspan_shareable_create(kSmall));
    need(word_ != nullptr, memspan_last_error);
    join_both();
    need_ok(memspan_group_set_timeout(all_, kLimitMs));
    if (rank == kSilent) return;
    if (rank != kCaller)  // its barriers end when the caller leaves that group
      helper_ = std::thread([this] {
        while (memspan_group_barrier(well_) == SMEM_OK) continue;
      });
  }
  void meet(const std::vector<std::string>&) override { need_ok(reduce_all(kSmall)); }
  // One barrier is one operation with each of them.
  bool touch(int peer) override { return peer != kNear || memspan_group_barrier(well_) == SMEM_OK; }
  bool pour() override { return false; }
  std::string reason() override { return memspan_last_error(); }
  int end() override {
    for (memspan_group_t group : {well_, all_})
      if (group != nullptr) memspan_group_leave(group);
    if (helper_.joinable()) helper_.join();
    for (memspan_group_t group : {well_, all_})
      if (group != nullptr) memspan_group_destroy(group);
    return 0;
  }

  std::vector<silent::Call> calls() override {
    std::vector<silent::Call> all;
    add_collectives(all);
    add_messages(all);
    const auto end = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kSilence, std::move(make), {}, true});
    };
    end("memspan_group_leave", [this] { return memspan_group_leave(all_); });
    end("memspan_group_destroy", [this] { return memspan_group_destroy(all_); });
    return all;
  }

 private:
  static void need_ok(int code) { need(code == SMEM_OK, memspan_last_error); }

  void join_both() {
    smem_shm_config_t config;
    smem_shm_config_init(&config);
    config.startConfigStoreServer = false;
    config.shmInitTimeout = config.shmCreateTimeout = config.controlOperationTimeout =
        silent::start_limit();
    const auto number = static_cast<std::uint32_t>(rank);
    const auto members = static_cast<std::uint32_t>(size);
    need_ok(smem_shm_init(std::getenv("SILENT_STORE"), members, number, 0, &config));
    void* gva = nullptr;
    smem_shm_t const space =
        smem_shm_create(1, members, number, std::uint64_t{1} << 20, SMEMS_DATA_OP_MTE, 0, &gva);
    need(space != nullptr, memspan_last_error);
    all_ = join({space, "all", rank, size});
    if (rank != kSilent) well_ = join({space, "well", rank < kSilent ? rank : rank - 1, size - 1});
    need_ok(smem_shm_control_barrier(space));
    smem_shm_destroy(space, 0);
    smem_shm_uninit(0);
  }
  static memspan_group_t join(Meeting meeting) {
    memspan_group_t group = nullptr;
    need_ok(memspan_group_create(meeting.member, meeting.members, exchange, &meeting,
                                 1000 * silent::start_limit(), &group));
    return group;
  }

  void add_collectives(std::vector<silent::Call>& all) {
    const auto meeting = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kInTime, Ends::kInTime, make, [make] { make(); }});
    };
    meeting("memspan_group_barrier", [this] { return memspan_group_barrier(all_); });
    meeting("memspan_group_broadcast",
            [this] { return memspan_group_broadcast(all_, own_.data(), kSmall, kSilent); });
    meeting("memspan_group_all_reduce", [this] { return reduce_all(kSmall); });
    meeting("memspan_group_all_reduce-large", [this] { return reduce_all(kLarge); });
    meeting("memspan_group_reduce", [this] {
      return memspan_group_reduce(all_, got_.data(), own_.data(), kSmall / sizeof(float),
                                  MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM, kCaller);
    });
    meeting("memspan_group_reduce_scatter", [this] {
      return memspan_group_reduce_scatter(all_, got_.data(), values_.data(), kSmall / sizeof(float),
                                          MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
    });
    meeting("memspan_group_all_gather", [this] {
      return memspan_group_all_gather(all_, results_.data(), own_.data(), kSmall);
    });
    meeting("memspan_group_gather", [this] {
      return memspan_group_gather(all_, results_.data(), own_.data(), kSmall, kCaller);
    });
    meeting("memspan_group_scatter", [this] {
      return memspan_group_scatter(all_, got_.data(), values_.data(), kSmall, kSilent);
    });
    meeting("memspan_group_all_to_all", [this] {
      return memspan_group_all_to_all(all_, results_.data(), sizes_.data(), values_.data(),
                                      sizes_.data());
    });
    all.push_back({"memspan_group_wait_for_arrivals", Ends::kInTime, Ends::kInTime, [this] {
                     need_ok(memspan_group_arrive(all_));
                     return memspan_group_wait_for_arrivals(all_, 1000 * kLimitMs);
                   }});
    // The silent member would write the word, unless it is on another host: that is an error.
    all.push_back({"memspan_group_swap_word", Ends::kInTime, Ends::kAtOnce, [this] {
                     const int code = memspan_group_swap_word(all_, word_, 1, 2, kSilent, kLimitMs);
                     return code == SMEM_ERROR && reason().find("on host") != std::string::npos
                                ? SMEM_OK
                                : code;
                   }});
  }

  int reduce_all(std::size_t bytes) {
    return memspan_group_all_reduce(all_, got_.data(), own_.data(), bytes / sizeof(float),
                                    MEMSPAN_TYPE_FLOAT32, MEMSPAN_OP_SUM);
  }

  void add_messages(std::vector<silent::Call>& all) {
    const auto message = [&](const char* name, std::function<int(memspan_group_request_t*)> post) {
      all.push_back({name, Ends::kInTime, Ends::kInTime, [post] {
                       memspan_group_request_t request = nullptr;
                       const int code = post(&request);
                       if (code != SMEM_OK) return code;
                       const int end = memspan_group_wait(request, kLimitMs);
                       memspan_group_request_free(request);
                       return end;
                     }});
    };
    message("memspan_group_send+wait-large", [this](memspan_group_request_t* request) {
      return memspan_group_send(all_, kSilent, 1, own_.data(), kLarge, request);
    });
    message("memspan_group_receive+wait", [this](memspan_group_request_t* request) {
      return memspan_group_receive(all_, kSilent, 1, got_.data(), kSmall, request);
    });
    message("memspan_group_receive-any+wait", [this](memspan_group_request_t* request) {
      return memspan_group_receive(all_, MEMSPAN_GROUP_ANYBODY, 1, got_.data(), kSmall, request);
    });
  }

  memspan_group_t all_ = nullptr;
  memspan_group_t well_ = nullptr;  // without the silent member
  std::thread helper_;
  std::uint32_t* word_ = nullptr;
  std::vector<char> own_;
  std::vector<char> got_;
  std::vector<const void*> values_;
  std::vector<void*> results_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

int main(int argc, char** argv) {
  Groups face;
  return silent::main_of(face, argc, argv);
}
