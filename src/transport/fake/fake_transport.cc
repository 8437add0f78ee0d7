// SPDX-License-Identifier: Apache-2.0
#include "transport/fake/fake_transport.h"

#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace memspan {
namespace {

class FakeLink final : public Link {
 public:
  FakeLink(std::unique_ptr<Link> inner, const FakeFaults& faults)
      : inner_(std::move(inner)), faults_(faults) {}
  // What is still held is lost, as it is when a process ends without quiet.
  ~FakeLink() override = default;

  std::byte* direct(std::uint64_t) override { return nullptr; }
  Status put(std::uint64_t offset, const void* from, std::size_t bytes) override {
    MEMSPAN_TRY(check("put"), "the fake transport");
    if (!faults_.hold_puts) return inner_->put(offset, from, bytes);
    // An access out of bounds is still an error of the put itself.
    MEMSPAN_TRY(inner_->put(offset, from, 0), "the fake transport");
    MutexLock lock(mutex_);
    held_.push_back({offset, std::string(static_cast<const char*>(from), bytes)});
    return Status::ok();
  }
  Status get(void* to, std::uint64_t offset, std::size_t bytes) override {
    MEMSPAN_TRY(check("get"), "the fake transport");
    MEMSPAN_TRY(deliver(), "delivering held puts");
    return inner_->get(to, offset, bytes);
  }
  Status atomic(const AtomicOp& op, std::uint64_t offset, std::uint64_t* fetched) override {
    MEMSPAN_TRY(check("atomic"), "the fake transport");
    MEMSPAN_TRY(deliver(), "delivering held puts");
    return inner_->atomic(op, offset, fetched);
  }
  Status fence() override {
    MEMSPAN_TRY(check("fence"), "the fake transport");
    MEMSPAN_TRY(deliver(), "delivering held puts");
    return inner_->fence();
  }
  Status quiet() override {
    MEMSPAN_TRY(check("quiet"), "the fake transport");
    MEMSPAN_TRY(deliver(), "delivering held puts");
    return inner_->quiet();
  }

 private:
  struct Held {
    std::uint64_t offset;
    std::string bytes;
  };
  Status check(std::string_view operation) const {
    return faults_.before ? faults_.before(operation) : Status::ok();
  }
  Status deliver() {
    MutexLock lock(mutex_);
    for (const Held& held : std::exchange(held_, {}))
      MEMSPAN_TRY(inner_->put(held.offset, held.bytes.data(), held.bytes.size()), "put");
    return Status::ok();
  }

  std::unique_ptr<Link> inner_;
  const FakeFaults& faults_;
  Mutex mutex_;
  std::vector<Held> held_ MEMSPAN_GUARDED_BY(mutex_);
};

class FakeTransport final : public Transport {
 public:
  FakeTransport(std::unique_ptr<Transport> inner, const FakeFaults& faults)
      : inner_(std::move(inner)), faults_(faults), capabilities_(inner_->capabilities()) {
    capabilities_.direct = false;
    capabilities_.ordered = false;
  }
  std::string_view name() const override { return "fake"; }
  Status viable() const override { return inner_->viable(); }
  std::string domain() const override { return inner_->domain(); }
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Link>> connect(const PeerSegment& segment) override {
    if (faults_.before) MEMSPAN_TRY(faults_.before("connect"), "the fake transport");
    MEMSPAN_TRY_ASSIGN(std::unique_ptr<Link> link, inner_->connect(segment), "the fake transport");
    return std::unique_ptr<Link>(std::make_unique<FakeLink>(std::move(link), faults_));
  }

 private:
  std::unique_ptr<Transport> inner_;
  const FakeFaults& faults_;
  Capabilities capabilities_;
};

}  // namespace

std::unique_ptr<Transport> make_fake_transport(std::unique_ptr<Transport> inner,
                                               const FakeFaults& faults) {
  return std::make_unique<FakeTransport>(std::move(inner), faults);
}

}  // namespace memspan
