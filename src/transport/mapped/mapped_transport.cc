// SPDX-License-Identifier: Apache-2.0
#include "transport/mapped/mapped_transport.h"

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "core/bytes.h"
#include "transport/bounded_memory.h"

namespace memspan {
namespace {

// A region's offsets in the file and in the address range, from its key.
struct MappedKey {
  std::uint64_t pages_offset = 0;
  std::uint64_t at = 0;

  static std::string encode(const LocalRegion& region) {
    ByteWriter out;
    out.u64(region.pages_offset);
    out.u64(region.mapped_at);
    return out.take();
  }
  static Result<MappedKey> decode(const std::string& text) {
    ByteReader in(text);
    MappedKey key;
    key.pages_offset = in.u64();
    key.at = in.u64();
    if (!in.is_finished()) return Status(Code::kInvalidArgument, "not a region of \"mapped\"");
    return key;
  }
};

// The range; one thread at a time changes it.
struct SharedRange {
  Reservation& range;
  const Pages& pages;
  Mutex mutex;
};

class MappedLink final : public Link {
 public:
  MappedLink(SharedRange& shared, const PeerAddress& peer) : shared_(shared), peer_(peer.peer) {}

  Status attach(const RemoteRegion& region) override {
    MEMSPAN_TRY_ASSIGN(const MappedKey key, MappedKey::decode(region.transport_key), "mapping");
    MutexLock lock(shared_.mutex);
    MEMSPAN_TRY(shared_.range.map(key.at, shared_.pages, key.pages_offset, region.bytes),
                fmt::format("mapping the segment of peer {}", peer_));
    attached_.push_back({region.id, {shared_.range.base() + key.at, region.bytes}});
    return Status::ok();
  }
  std::byte* direct(const RemotePlace& place) override {
    const Result<BoundedMemory> memory = find(place.region);
    return memory.is_ok() && memory->contains(place.offset, 1) ? memory->at(place.offset) : nullptr;
  }
  Status put(OperationContext&, const RemotePlace& to, const void* from,
             std::size_t bytes) override {
    MEMSPAN_TRY_ASSIGN(const BoundedMemory memory, find(to.region), "put");
    return memory.write(to.offset, from, bytes);
  }
  Status put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                 std::size_t bytes) override {
    return put(context, to, from, bytes);
  }
  Status get(OperationContext&, void* to, const RemotePlace& from, std::size_t bytes) override {
    MEMSPAN_TRY_ASSIGN(const BoundedMemory memory, find(from.region), "get");
    return memory.read(to, from.offset, bytes);
  }
  Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                 std::size_t bytes) override {
    return get(context, to, from, bytes);
  }
  Status put_signal(OperationContext& context, const RemotePlace& to, const void* from,
                    std::size_t bytes, const RemotePlace& signal, std::uint64_t value,
                    SignalOp op) override {
    if (bytes != 0) MEMSPAN_PASS(put(context, to, from, bytes));
    const AtomicKind kind = op == SignalOp::kSet ? AtomicKind::kSet : AtomicKind::kAdd;
    return atomic(context, AtomicOp{kind, 8, value}, signal, nullptr);
  }
  Status move(OperationContext& context, MoveDirection direction,
              std::span<const MovePiece> pieces) override {
    for (const MovePiece& piece : pieces) {
      const RemotePlace place{*piece.region, piece.offset};
      MEMSPAN_PASS(direction == MoveDirection::kPut
                       ? put(context, place, piece.local, piece.bytes)
                       : get(context, piece.local, place, piece.bytes));
    }
    return Status::ok();
  }
  Status atomic(OperationContext&, const AtomicOp& op, const RemotePlace& at,
                std::uint64_t* fetched) override {
    MEMSPAN_TRY_ASSIGN(const BoundedMemory memory, find(at.region), "an atomic");
    return memory.atomic(op, at.offset, fetched);
  }
  Status fence(OperationContext&) override {
    std::atomic_thread_fence(std::memory_order_release);
    return Status::ok();
  }
  std::uint64_t start_quiet(OperationContext&) override { return 0; }
  Status finish_quiet(OperationContext&, std::uint64_t) override {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Status::ok();
  }

 private:
  struct Attached {
    RegionId id;
    BoundedMemory memory;
  };
  Result<BoundedMemory> find(const RemoteRegion& region) {
    MutexLock lock(shared_.mutex);
    for (const Attached& one : attached_) {
      if (one.id == region.id) return one.memory;
      if (one.id.number == region.id.number)
        return Status(Code::kStale, fmt::format("region {} of peer {} is another one now",
                                                region.id.number, peer_));
    }
    return Status(Code::kNotFound,
                  fmt::format("region {} of peer {} is not attached", region.id.number, peer_));
  }

  SharedRange& shared_;
  const int peer_;
  std::vector<Attached> attached_ MEMSPAN_GUARDED_BY(shared_.mutex);
};

class MappedRegion final : public ExposedRegion {
 public:
  explicit MappedRegion(const LocalRegion& region) : described_(describe_mapped(region)) {}
  const RemoteRegion& describe() const override { return described_; }

 private:
  const RemoteRegion described_;
};

class MappedTransport final : public Transport {
 public:
  MappedTransport(Reservation& range, const Pages& pages) : shared_{range, pages, {}} {}

  std::string address() const override { return {}; }
  Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region) override {
    if (region.number == 0)
      return Status(Code::kInvalidArgument, "a region of \"mapped\" has a number from 1");
    return std::unique_ptr<ExposedRegion>(std::make_unique<MappedRegion>(region));
  }
  Result<std::unique_ptr<Link>> connect(const PeerAddress& peer) override {
    return std::unique_ptr<Link>(std::make_unique<MappedLink>(shared_, peer));
  }

 private:
  SharedRange shared_;
};

}  // namespace

std::unique_ptr<Transport> make_mapped_transport(Reservation& range, const Pages& pages) {
  return std::make_unique<MappedTransport>(range, pages);
}

RemoteRegion describe_mapped(const LocalRegion& region) {
  // Regions live as long as the file: one generation is enough.
  return {{region.number, 1}, region.bytes, region.kind, MappedKey::encode(region)};
}

}  // namespace memspan
