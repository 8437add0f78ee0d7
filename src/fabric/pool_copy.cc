// SPDX-License-Identifier: Apache-2.0
#include "fabric/pool_copy.h"

#include <fmt/format.h>

#include "device/host/copy.h"

namespace memspan {
namespace {

// One end of a copy: plain memory, or a piece of a stripe that it holds while it lives.
class End {
 public:
  End(Pool& pool, const void* pointer, std::uint64_t bytes, const char* name)
      : pool_(pool),
        pointer_(pointer),
        bytes_(bytes),
        name_(name),
        is_in_pool_(find_place(pool, pointer, place_)) {}
  ~End() { release(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  bool is_in_pool() const { return is_in_pool_; }
  std::uint32_t rank() const { return is_in_pool_ ? place_.rank : pool_.rank(); }

  bool hold() {
    is_held_ = is_in_pool_ && pool_.space(place_.kind).hold(place_.rank, place_.offset, bytes_);
    return is_held_ || !is_in_pool_;
  }
  void release() {
    if (is_held_) pool_.space(place_.kind).release(place_.rank);
    is_held_ = false;
  }

  // Why it cannot be held; ok when it may be by now. Not while anything is held: who unmaps that
  // waits for it.
  Status await(const Deadline& deadline) const {
    if (!is_in_pool_) return Status::ok();
    auto given = pool_.await(place_.rank, place_.kind, deadline);
    if (!given.is_ok()) return given.status().annotate(name_);
    if (place_.offset <= *given && bytes_ <= *given - place_.offset) return Status::ok();
    return {Code::kInvalidArgument,
            fmt::format(
                "invalid param, {} {} + {} bytes is not wholly in the {} bytes of {} memory "
                "that rank {} gave (it begins at byte {} of them)",
                name_, pointer_, bytes_, *given,
                place_.kind == SpaceKind::kHost ? "host" : "device", place_.rank, place_.offset)};
  }

  Status check_null() const {
    if (pointer_ != nullptr) return Status::ok();
    return {Code::kInvalidArgument, fmt::format("invalid param, {} is NULL", name_)};
  }
  Status check(CopyEnd said) const {
    if (said == CopyEnd::kPool && !is_in_pool_)
      return {
          Code::kInvalidArgument,
          fmt::format("invalid param, {} {} is in neither of the pool's spaces", name_, pointer_)};
    return Status::ok();
  }

 private:
  Pool& pool_;
  const void* pointer_;
  const std::uint64_t bytes_;
  const char* name_;
  PoolPlace place_;
  const bool is_in_pool_;
  bool is_held_ = false;
};

// The rare cases: a mistake, or a member whose memory is not here yet.
__attribute__((noinline)) Status hold_both(End& from, End& to, Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  do {
    from.release();
    to.release();
    MEMSPAN_PASS(from.await(deadline));
    MEMSPAN_PASS(to.await(deadline));
    if (from.hold() && to.hold()) return Status::ok();
  } while (!deadline.has_passed());
  return {Code::kTimeout, "a member came and went all the time"};
}

Status check_ends(const End& from, const End& to, const CopyPiece& piece, const CopyEnds& ends) {
  MEMSPAN_PASS(from.check_null());
  MEMSPAN_PASS(to.check_null());
  if (piece.bytes == 0) return {Code::kInvalidArgument, "invalid param, size is 0"};
  MEMSPAN_PASS(from.check(ends.from));
  MEMSPAN_PASS(to.check(ends.to));
  if (!from.is_in_pool() && !to.is_in_pool())
    return {Code::kInvalidArgument,
            "invalid param, neither src nor dest is in one of the pool's spaces"};
  return Status::ok();
}

}  // namespace

Status copy_piece(Pool& pool, const CopyPiece& piece, const CopyEnds& ends, Duration limit) {
  End from(pool, piece.from, piece.bytes, "src");
  End to(pool, piece.to, piece.bytes, "dest");
  const bool is_sound = piece.bytes != 0 && piece.from != nullptr && piece.to != nullptr &&
                        (from.is_in_pool() || (ends.from == CopyEnd::kLocal && to.is_in_pool())) &&
                        (to.is_in_pool() || ends.to == CopyEnd::kLocal);
  if (!is_sound) return check_ends(from, to, piece, ends);
  if (pool.has_rules()) MEMSPAN_PASS(pool.check_way(from.rank(), to.rank()));
  if (!from.hold() || !to.hold()) MEMSPAN_PASS(hold_both(from, to, limit));
  copy_bytes(piece.to, piece.from, piece.bytes);
  return Status::ok();
}

namespace {

// Holding costs nothing next to a copy of so many bytes.
constexpr std::uint64_t kSmallPiece = 64 << 10;
// How much is copied before who wants to unmap gets a turn.
constexpr std::uint64_t kBytesAtOnce = 4 << 20;

}  // namespace

Status PieceCopier::copy(const CopyPiece& piece) {
  if (piece.bytes <= kSmallPiece && !pool_.has_rules()) {
    if (left_ < piece.bytes) {
      let_go();
      left_ = kBytesAtOnce;
    }
    left_ -= piece.bytes;
    const Reach from = reach(piece.from, piece.bytes, ends_.from);
    const Reach to = reach(piece.to, piece.bytes, ends_.to);
    if (from != Reach::kNot && to != Reach::kNot && (from == Reach::kHeld || to == Reach::kHeld)) {
      copy_bytes(piece.to, piece.from, piece.bytes);
      return Status::ok();
    }
  }
  let_go();  // it may wait for who waits for this
  return copy_piece(pool_, piece, ends_, limit_);
}

PieceCopier::Reach PieceCopier::reach(const void* pointer, std::uint64_t bytes, CopyEnd said) {
  PoolPlace place;
  if (bytes == 0 || pointer == nullptr) return Reach::kNot;
  if (!find_place(pool_, pointer, place))
    return said == CopyEnd::kLocal ? Reach::kPlain : Reach::kNot;
  Held& held = held_[(place.rank * kSpaces + static_cast<std::size_t>(place.kind)) % kMostHeld];
  if (held.covers(reinterpret_cast<std::uint64_t>(pointer), bytes)) return Reach::kHeld;
  if (held.space != nullptr) held.space->release(held.rank);
  held = {};
  Stripes& space = pool_.space(place.kind);
  if (!space.hold(place.rank, place.offset, bytes)) return Reach::kNot;
  held = {&space, place.rank, reinterpret_cast<std::uint64_t>(space.begin_of(place.rank)),
          space.mapped(place.rank)};
  return Reach::kHeld;
}

void PieceCopier::let_go() {
  for (Held& held : held_) {
    if (held.space != nullptr) held.space->release(held.rank);
    held = {};
  }
}

}  // namespace memspan
