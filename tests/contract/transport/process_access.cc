// SPDX-License-Identifier: Apache-2.0
#include "contract/transport/process_access.h"

#include <sys/uio.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "core/bytes.h"
#include "core/mutex.h"

namespace memspan::contract {
namespace {

class ProcessMemory final : public NativeMemory {
 public:
  ProcessMemory(pid_t process, std::uint64_t base) : process_(process), base_(base) {}

  Status move(MoveDirection direction, std::byte* local, std::uint64_t offset, std::size_t bytes,
              const GiveUp& give_up) override {
    while (access_faults().hangs.load()) {
      if (Status why = give_up(); !why.is_ok()) return why;
      std::this_thread::yield();
    }
    const bool fails = access_faults().fails.load();
    if (fails) bytes /= 2;
    const iovec here{local, bytes};
    const iovec remote{reinterpret_cast<void*>(base_ + offset), bytes};
    const auto call = direction == MoveDirection::kPut ? ::process_vm_writev : ::process_vm_readv;
    const ssize_t moved = call(process_, &here, 1, &remote, 1, 0);
    if (moved == static_cast<ssize_t>(bytes) && !fails) return Status::ok();
    return {Code::kUnavailable, "the network has failed"};
  }
  std::string_view lane() const override { return "process_vm"; }

 private:
  const pid_t process_;
  const std::uint64_t base_;
};

class ProcessAccess final : public NativeAccess {
 public:
  Result<std::string> key(std::byte* base, std::size_t bytes) override {
    MutexLock lock(mutex_);
    if (registered_.try_emplace(base, bytes).second) ++registrations_;
    ByteWriter out;
    out.u64(static_cast<std::uint64_t>(::getpid()));
    out.u64(reinterpret_cast<std::uintptr_t>(base));
    return out.take();
  }
  void retract(std::byte* base, std::size_t bytes) override {
    MutexLock lock(mutex_);
    registered_.erase(registered_.lower_bound(base), registered_.lower_bound(base + bytes));
  }
  Result<std::unique_ptr<NativeMemory>> open(std::string_view key) override {
    ByteReader in(key);
    const auto process = static_cast<pid_t>(in.u64());
    return std::unique_ptr<NativeMemory>(std::make_unique<ProcessMemory>(process, in.u64()));
  }
  std::uint64_t registrations() const override { return registrations_; }

 private:
  Mutex mutex_;
  std::map<std::byte*, std::size_t> registered_ MEMSPAN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> registrations_{0};
};

class CarrierWithAccess final : public Carrier {
 public:
  explicit CarrierWithAccess(std::unique_ptr<Carrier> streams) : streams_(std::move(streams)) {}
  std::string_view name() const override { return streams_->name(); }
  Result<std::unique_ptr<Listener>> listen() override { return streams_->listen(); }
  Result<std::unique_ptr<Opening>> connect(const std::string& address) override {
    return streams_->connect(address);
  }
  NativeAccess* native() override { return &access_; }

 private:
  const std::unique_ptr<Carrier> streams_;
  ProcessAccess access_;
};

}  // namespace

AccessFaults& access_faults() {
  static AccessFaults faults;
  return faults;
}

std::unique_ptr<Carrier> with_process_access(std::unique_ptr<Carrier> streams) {
  return std::make_unique<CarrierWithAccess>(std::move(streams));
}

}  // namespace memspan::contract
