// SPDX-License-Identifier: Apache-2.0
#include "transport/mapped/mapped_transport.h"

#include <fmt/format.h>

#include <atomic>

#include "transport/bounded_memory.h"
#include "transport/host_identity.h"

namespace memspan {
namespace {

class MappedLink final : public Link {
 public:
  explicit MappedLink(BoundedMemory memory) : memory_(memory) {}

  std::byte* direct(std::uint64_t offset) override {
    return memory_.contains(offset, 1) ? memory_.at(offset) : nullptr;
  }
  Status put(std::uint64_t offset, const void* from, std::size_t bytes) override {
    return memory_.write(offset, from, bytes);
  }
  Status get(void* to, std::uint64_t offset, std::size_t bytes) override {
    return memory_.read(to, offset, bytes);
  }
  Status atomic(const AtomicOp& op, std::uint64_t offset, std::uint64_t* fetched) override {
    return memory_.atomic(op, offset, fetched);
  }
  Status fence() override {
    std::atomic_thread_fence(std::memory_order_release);
    return Status::ok();
  }
  Status quiet() override {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Status::ok();
  }

 private:
  BoundedMemory memory_;
};

class MappedTransport final : public Transport {
 public:
  explicit MappedTransport(Reservation& range) : range_(range) {}

  std::string_view name() const override { return "mapped"; }
  Status viable() const override { return Status::ok(); }
  std::string domain() const override { return host_identity(); }
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::unique_ptr<Link>> connect(const PeerSegment& segment) override {
    MEMSPAN_TRY(range_.map(segment.at, *segment.pages, segment.offset, segment.bytes),
                fmt::format("mapping the segment of peer {}", segment.peer));
    return std::unique_ptr<Link>(
        std::make_unique<MappedLink>(BoundedMemory(range_.base() + segment.at, segment.bytes)));
  }

 private:
  Reservation& range_;
  Capabilities capabilities_{.direct = true, .native_atomics = true, .ordered = true};
};

}  // namespace

std::unique_ptr<Transport> make_mapped_transport(Reservation& range) {
  return std::make_unique<MappedTransport>(range);
}

}  // namespace memspan
