// SPDX-License-Identifier: Apache-2.0
#include "transport/cma/cma_transport.h"

#include <fmt/format.h>

#include <atomic>
#include <map>

#include "core/bytes.h"
#include "core/mutex.h"
#include "node/process_identity.h"
#include "transport/cma/vector_copy.h"

namespace memspan {
namespace {

Result<std::uint64_t> base_of(const RemoteRegion& region) {
  ByteReader in(region.transport_key);
  const std::uint64_t base = in.u64();
  if (!in.is_finished()) return Status(Code::kInvalidArgument, "not a region of \"cma\"");
  return base;
}

Status no_atomics() {
  return {Code::kNotSupported, "process_vm_writev has no atomics"};
}

class CmaLink final : public Link {
 public:
  CmaLink(const PeerAddress& peer, pid_t process) : name_(peer.name), process_(process) {}

  Status attach(const RemoteRegion& region) override {
    MEMSPAN_TRY(base_of(region).status(), name_);
    MutexLock lock(mutex_);
    attached_[region.id.number] = region.id.generation;
    return Status::ok();
  }
  std::byte* direct(const RemotePlace&) override { return nullptr; }

  Status put(OperationContext& context, const RemotePlace& to, const void* from,
             std::size_t bytes) override {
    return move_one(context, MoveDirection::kPut, to, const_cast<void*>(from), bytes);
  }
  Status put_nbi(OperationContext& context, const RemotePlace& to, const void* from,
                 std::size_t bytes) override {
    return put(context, to, from, bytes);
  }
  Status get(OperationContext& context, void* to, const RemotePlace& from,
             std::size_t bytes) override {
    return move_one(context, MoveDirection::kGet, from, to, bytes);
  }
  Status get_nbi(OperationContext& context, void* to, const RemotePlace& from,
                 std::size_t bytes) override {
    return get(context, to, from, bytes);
  }
  Status put_signal(OperationContext&, const RemotePlace&, const void*, std::size_t,
                    const RemotePlace&, std::uint64_t, SignalOp) override {
    return no_atomics();
  }
  Status move(OperationContext&, MoveDirection direction,
              std::span<const MovePiece> pieces) override {
    for (const MovePiece& piece : pieces) MEMSPAN_PASS(check(piece));
    VectorCopy copy(process_, direction);
    for (const MovePiece& piece : pieces) {
      if (piece.bytes == 0) continue;
      if (copy.is_full()) MEMSPAN_TRY(copy.flush(), name_);
      copy.add(piece.local, *base_of(*piece.region) + piece.offset, piece.bytes);
    }
    return copy.flush().annotate(name_);
  }
  Status atomic(OperationContext&, const AtomicOp&, const RemotePlace&, std::uint64_t*) override {
    return no_atomics();
  }
  // A system call has copied all bytes when it returns.
  Status fence(OperationContext&) override { return Status::ok(); }
  std::uint64_t start_quiet(OperationContext&) override { return 0; }
  Status finish_quiet(OperationContext&, std::uint64_t) override { return Status::ok(); }

 private:
  Status move_one(OperationContext& context, MoveDirection direction, const RemotePlace& place,
                  void* local, std::size_t bytes) {
    const MovePiece piece{static_cast<std::byte*>(local), &place.region, place.offset, bytes};
    return move(context, direction, {&piece, 1});
  }
  Status check(const MovePiece& piece) {
    const RemoteRegion& region = *piece.region;
    if (!region.contains(piece.offset, piece.bytes))
      return {Code::kInvalidArgument,
              fmt::format("{} bytes at offset {} leave the region of {} bytes", piece.bytes,
                          piece.offset, region.bytes)};
    MutexLock lock(mutex_);
    const auto found = attached_.find(region.id.number);
    if (found == attached_.end())
      return {Code::kNotFound,
              fmt::format("region {} of {} is not attached", region.id.number, name_)};
    if (found->second == region.id.generation) return Status::ok();
    return {Code::kStale,
            fmt::format("region {} of {} is another one now", region.id.number, name_)};
  }

  const std::string name_;
  const pid_t process_;  // -1: not visible to us
  Mutex mutex_;
  std::map<std::uint32_t, std::uint32_t> attached_ MEMSPAN_GUARDED_BY(mutex_);  // generations
};

class CmaRegion final : public ExposedRegion {
 public:
  explicit CmaRegion(RemoteRegion described) : described_(std::move(described)) {}
  const RemoteRegion& describe() const override { return described_; }

 private:
  const RemoteRegion described_;
};

class CmaTransport final : public Transport {
 public:
  std::string_view name() const override { return "cma"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::string address() const override { return ProcessIdentity::own().to_string(); }

  Result<std::unique_ptr<ExposedRegion>> expose(const LocalRegion& region) override {
    if (region.kind != MemoryKind::kHost)
      return Status(Code::kNotSupported, "process_vm_readv reaches memory of the host only");
    ByteWriter key;
    key.u64(reinterpret_cast<std::uintptr_t>(region.base));
    const std::uint32_t life = lives_.fetch_add(1) + 1;
    const RegionId id{region.number != 0 ? region.number : life, life};
    return std::unique_ptr<ExposedRegion>(
        std::make_unique<CmaRegion>(RemoteRegion{id, region.bytes, region.kind, key.take()}));
  }
  Result<std::unique_ptr<Link>> connect(const PeerAddress& peer) override {
    MEMSPAN_TRY_ASSIGN(const ProcessIdentity identity, ProcessIdentity::parse(peer.address),
                       fmt::format("the address of {}", peer.name));
    const bool is_visible = identity.pid_namespace == ProcessIdentity::own().pid_namespace;
    return std::unique_ptr<Link>(std::make_unique<CmaLink>(
        peer, is_visible ? static_cast<pid_t>(identity.process) : pid_t{-1}));
  }

 private:
  std::atomic<std::uint32_t> lives_{0};
  const Capabilities capabilities_{
      .direct = false, .atomics = false, .ordered = true, .messages = false};
};

}  // namespace

std::unique_ptr<Transport> make_cma_transport() {
  return std::make_unique<CmaTransport>();
}

}  // namespace memspan
