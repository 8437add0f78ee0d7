// SPDX-License-Identifier: Apache-2.0
// Transfers between endpoints. The memory of a process of this host is read and written without it.
#include <memspan/memspan.h>
#include <memspan/stream.h>
#include <memspan/transfer.h>
#include <smem/host/smem_trans.h>

#include <cstdlib>

#include "silent/silent.h"

namespace {

using silent::Call;
using silent::Ends;
using silent::kSilent;
using silent::need;

constexpr std::size_t kSmall = 4096;
constexpr std::size_t kLarge = std::size_t{8} << 20;
constexpr std::uint32_t kLimitMs = 1000 * silent::kTimeout;

class Transfers final : public silent::Face {
 public:
  void begin() override {
    smem_trans_config_t config;
    need(smem_trans_config_init(&config) == SMEM_OK, "smem_trans_config_init");
    config.role = SMEM_TRANS_BOTH;
    config.initTimeout = silent::start_limit();
    need(smem_trans_init(&config) == SMEM_OK, "smem_trans_init");
    endpoint_ = smem_trans_create(std::getenv("SILENT_STORE"), name(rank).c_str(), &config);
    need(endpoint_ != nullptr, smem_get_last_err_msg);
    memory_ = static_cast<char*>(smem_trans_malloc(endpoint_, kLarge));
    need(memory_ != nullptr, smem_get_last_err_msg);
    own_.resize(kLarge);
    need(memspan_stream_create(&stream_) == SMEM_OK, "a stream");
    need(smem_trans_register_mem(endpoint_, own_.data(), own_.size(), 0) == SMEM_OK, "registering");
  }
  std::string address() override {
    return std::to_string(reinterpret_cast<std::uintptr_t>(memory_));
  }
  void meet(const std::vector<std::string>& addresses) override {
    for (const std::string& address : addresses)
      memories_.push_back(reinterpret_cast<char*>(std::stoull(address)));
    for (int peer = 0; peer < size; ++peer)
      need(peer == rank || write(peer, own_.data(), kSmall) == SMEM_OK, smem_get_last_err_msg);
  }
  bool touch(int peer) override { return write(peer, touched_, sizeof touched_) == SMEM_OK; }
  bool pour() override { return write(kSilent, own_.data(), kLarge) == SMEM_OK; }
  std::string reason() override { return memspan_last_error(); }
  int end() override {
    smem_trans_destroy(endpoint_, 0);
    smem_trans_uninit(0);
    return 0;
  }

  std::vector<Call> calls() override {
    std::vector<Call> all;
    add_blocking(all);
    add_posted(all);
    add_waits(all);
    add_local(all);
    return all;
  }

 private:
  static std::string name(int rank) { return "127.0.0.1:" + std::to_string(6000 + rank); }
  char* there(int peer) const { return memories_[static_cast<std::size_t>(peer)]; }
  int write(int peer, const void* from, std::size_t bytes) {
    return smem_trans_write(endpoint_, from, name(peer).c_str(), there(peer), bytes);
  }
  static void far(std::vector<Call>& all, const char* name, std::function<int()> make) {
    all.push_back({name, Ends::kAtOnce, Ends::kLost, std::move(make)});
  }

  void add_blocking(std::vector<Call>& all) {
    far(all, "smem_trans_write", [this] { return write(kSilent, own_.data(), kSmall); });
    far(all, "smem_trans_write-large", [this] { return write(kSilent, own_.data(), kLarge); });
    far(all, "smem_trans_read", [this] { return read(kSmall); });
    far(all, "smem_trans_read-large", [this] { return read(kLarge); });
    far(all, "smem_trans_batch_write", [this] {
      const void* from[] = {own_.data(), own_.data() + kSmall};
      void* to[] = {there(kSilent) + kSmall, there(kSilent)};
      std::size_t bytes[] = {kSmall, kSmall};
      return smem_trans_batch_write(endpoint_, from, name(kSilent).c_str(), to, bytes, 2);
    });
    far(all, "smem_trans_batch_read", [this] {
      void* to[] = {own_.data(), own_.data() + kSmall};
      const void* from[] = {there(kSilent) + kSmall, there(kSilent)};
      std::size_t bytes[] = {kSmall, kSmall};
      return smem_trans_batch_read(endpoint_, to, name(kSilent).c_str(), from, bytes, 2);
    });
    far(all, "smem_trans_write_submit+synchronize", [this] {
      const int32_t code = smem_trans_write_submit(endpoint_, own_.data(), name(kSilent).c_str(),
                                                   there(kSilent), kSmall, stream_);
      return code != SMEM_OK ? code : memspan_stream_synchronize(stream_, UINT32_MAX);
    });
    // It asks the peer, for a second at most.
    all.push_back({"memspan_transfer_reach", Ends::kAtOnce, Ends::kInTime,
                   [this] { return memspan_transfer_reach(endpoint_, name(kSilent).c_str()); }});
  }
  int read(std::size_t bytes) {
    return smem_trans_read(endpoint_, own_.data(), name(kSilent).c_str(), there(kSilent), bytes);
  }

  // A large write that is under way: to a process beyond the wire, or over.
  memspan_transfer_t posted() {
    void* local[] = {own_.data()};
    void* remote[] = {there(kSilent)};
    const std::size_t bytes[] = {kLarge};
    memspan_transfer_t request = nullptr;
    need(memspan_transfer_prepare(endpoint_, MEMSPAN_TRANSFER_WRITE, name(kSilent).c_str(), local,
                                  remote, bytes, 1, &request) == SMEM_OK,
         "preparing");
    need(memspan_transfer_post(request) == SMEM_OK, "posting");
    memspan_transfer_wait(request, 200);
    return request;
  }
  void add_posted(std::vector<Call>& all) {
    const auto with_posted = [&](const char* name, Ends far,
                                 std::function<int(memspan_transfer_t)> make) {
      all.push_back({name, Ends::kAtOnce, far, [this, make] { return make(posted()); }});
    };
    // So short that the peer is not lost yet when the end begins.
    with_posted("memspan_transfer_wait", Ends::kInTime, [](memspan_transfer_t request) {
      return memspan_transfer_wait(request, kLimitMs / 4);
    });
    with_posted("memspan_transfer_cancel", Ends::kAtOnce, memspan_transfer_cancel);
    with_posted("memspan_transfer_destroy", Ends::kAtOnce, memspan_transfer_destroy);
    with_posted("smem_trans_destroy", Ends::kAtOnce,
                [this](memspan_transfer_t) { return smem_trans_destroy(endpoint_, 0), 0; });
    all.back().is_end = true;
    with_posted("smem_trans_uninit", Ends::kAtOnce,
                [](memspan_transfer_t) { return smem_trans_uninit(0), 0; });
    all.back().is_end = true;
  }

  // They wait for what the peer sends, up to their limit.
  void add_waits(std::vector<Call>& all) {
    all.push_back({"memspan_transfer_receive", Ends::kInTime, Ends::kInTime, [this] {
                     memspan_transfer_message_t message;
                     return memspan_transfer_receive(endpoint_, &message, kLimitMs);
                   }});
    all.push_back({"memspan_transfer_wait_counter", Ends::kInTime, Ends::kInTime,
                   [this] { return memspan_transfer_wait_counter(endpoint_, 1, 1, kLimitMs); }});
  }

  void add_local(std::vector<Call>& all) {
    const auto local = [&](const char* name, std::function<int()> make) {
      all.push_back({name, Ends::kAtOnce, Ends::kAtOnce, std::move(make)});
    };
    local("smem_trans_register_mem",
          [this] { return smem_trans_register_mem(endpoint_, more_.data(), more_.size(), 0); });
    local("smem_trans_deregister_mem",
          [this] { return smem_trans_deregister_mem(endpoint_, own_.data()); });
    local("smem_trans_malloc",
          [this] { return smem_trans_malloc(endpoint_, kSmall) == nullptr ? 1 : 0; });
    local("smem_trans_free", [this] { return smem_trans_free(endpoint_, memory_); });
  }

  smem_trans_t endpoint_ = nullptr;
  char* memory_ = nullptr;
  memspan_stream_t stream_ = nullptr;
  std::vector<char> own_;
  std::vector<char> more_ = std::vector<char>(kSmall);
  char touched_[64] = {};
  std::vector<char*> memories_;
};

}  // namespace

int main(int argc, char** argv) {
  Transfers face;
  return silent::main_of(face, argc, argv);
}
