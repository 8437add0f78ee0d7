// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/peer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace memspan::transfer {
namespace {

// No number of a process comes again that soon, since all others are given out before.
constexpr Duration kLookAgainAfter = std::chrono::milliseconds(1);

const auto kBySlice = [](const auto& entry, std::uint32_t slice) { return entry.first < slice; };

bool is_gone(const Fd& process) {
  pollfd polled{process.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

Result<std::shared_ptr<Peer>> Peer::attach(std::shared_ptr<Member> member, EndpointRecord record,
                                           std::function<void()> ended, Deadline deadline) {
  const std::string doing = fmt::format("reaching endpoint {}", record.name);
  auto answer = member->door().ask_and_wait(record.ticket, record.offer(), deadline);
  if (answer.code() == Code::kUnavailable)
    return Status(Code::kPeerLost, fmt::format("endpoint {} is gone: process {} has ended",
                                               record.name, record.process));
  if (answer.code() == Code::kNotFound)
    return Status(Code::kStale, fmt::format("endpoint {} has just ended", record.name));
  if (!answer.is_ok()) return answer.status().annotate(doing);
  if (answer->descriptors.size() != 2)
    return Status(Code::kInternal, fmt::format("{}: {} descriptors came instead of 2", doing,
                                               answer->descriptors.size()));
  MEMSPAN_TRY_ASSIGN(LedgerPages pages, LedgerPages::open(std::move(answer->descriptors[0])),
                     doing);
  std::shared_ptr<Peer> peer(new Peer(std::move(member), std::move(record), std::move(pages),
                                      std::move(answer).value(), std::move(ended)));
  // The watch is forgotten before the peer ends, so the pointer is good.
  peer->watch_ =
      peer->member_->door().watch(peer->process_, [raw = peer.get()] { raw->end(End::kDied); });
  return peer;
}

Peer::Peer(std::shared_ptr<Member> member, EndpointRecord record, LedgerPages pages,
           DoorAnswer answer, std::function<void()> ended)
    : member_(std::move(member)),
      record_(std::move(record)),
      pages_(std::move(pages)),
      process_(std::move(answer.process)),
      mailbox_(std::move(answer.descriptors[1])),
      process_number_(answer.pid),
      is_this_process_(answer.pid == getpid()),
      ended_(std::move(ended)),
      view_(pages_) {}

Peer::~Peer() {
  member_->door().forget(watch_);
}

void Peer::end(End why) {
  End none = End::kNone;
  if (!end_.compare_exchange_strong(none, why, std::memory_order_acq_rel)) return;
  {
    // Memory of the dead is given back now, not when somebody asks for them again.
    MutexLock lock(mutex_);
    mapped_.reset();
  }
  ended_();
}

void Peer::note_left() {
  end(!pages_.is_open() ? End::kEnded : is_gone(process_) ? End::kDied : End::kLeft);
}

bool Peer::is_live() {
  if (end_.load(std::memory_order_acquire) != End::kNone) return false;
  if (!pages_.is_open()) {
    end(End::kEnded);
    return false;
  }
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (now - looked_at_.load(std::memory_order_relaxed) < kLookAgainAfter.count()) return true;
  if (is_gone(process_)) {
    end(End::kDied);
    return false;
  }
  looked_at_.store(now, std::memory_order_relaxed);
  return true;
}

Status Peer::why_not_live() const {
  const End end = end_.load(std::memory_order_acquire);
  if (end == End::kNone) [[likely]]
    return Status::ok();
  const auto text = [this](const char* what) {
    return fmt::format("{}: process {} {}", record_.name, record_.process, what);
  };
  if (end == End::kEnded)
    return {Code::kNotFound, "there is no endpoint " + text("has destroyed it")};
  // The store may notice a death before the process is quite gone.
  const bool has_died = end == End::kDied || is_gone(process_);
  return {
      Code::kPeerLost,
      "endpoint " + text(has_died ? "has died" : "has left the store, or begun another program")};
}

const Reservation* Peer::mapping_of(std::uint32_t slice) {
  if (mapped_ == nullptr) return nullptr;
  const auto found = std::lower_bound(mapped_->begin(), mapped_->end(), slice, kBySlice);
  return found != mapped_->end() && found->first == slice ? found->second.get() : nullptr;
}

// Copies that run keep theirs.
void Peer::drop_freed_slices() {
  if (mapped_ == nullptr) return;
  auto kept = std::make_shared<MappedSlices>();
  for (const auto& entry : *mapped_)
    if (view_.has_slice(entry.first)) kept->push_back(entry);
  if (kept->size() < mapped_->size()) mapped_ = std::move(kept);
}

void Peer::locate(std::span<const Piece> pieces, Located& located) {
  located.count = 0;
  located.is_refused = false;
  located.wanted_slice = 0;
  MutexLock lock(mutex_);
  if (view_.refresh()) drop_freed_slices();
  if (view_.has_slices()) located.held = mapped_;
  for (const Piece& piece : pieces) {
    std::byte* place = is_this_process_ ? reinterpret_cast<std::byte*>(piece.remote) : nullptr;
    const Range* slice = view_.has_slices() ? view_.slice_of(piece.remote, piece.bytes) : nullptr;
    if (slice != nullptr && !is_this_process_) {
      const Reservation* mapping = mapping_of(slice->slice);
      // A ledger that contradicts the memory that was given is not believed.
      if (mapping != nullptr && mapping->bytes() >= slice->bytes) {
        place = mapping->base() + (piece.remote - slice->base);
      } else {
        located.wanted_slice = mapping == nullptr ? slice->slice : 0;
        located.is_refused = mapping != nullptr;
        return;
      }
    } else if (slice == nullptr && !view_.covers(piece.remote, piece.bytes)) {
      located.is_refused = true;
      return;
    }
    located.mapped[located.count++] = place;
  }
}

Result<DoorAnswer> Peer::ask_for_slice(std::uint32_t slice, Deadline deadline) const {
  auto answer = member_->door().ask_and_wait(record_.ticket, record_.slice_offer(slice), deadline);
  if (answer.code() != Code::kUnavailable) return answer;
  return Status(Code::kPeerLost, answer.status().message());
}

Status Peer::map_slice(std::uint32_t slice, Deadline deadline) {
  const std::string doing = fmt::format("mapping memory of endpoint {}", record_.name);
  MEMSPAN_TRY_ASSIGN(DoorAnswer answer, ask_for_slice(slice, deadline), doing);
  if (answer.descriptors.size() != 1) return {Code::kInternal, doing + ": no memory came"};
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::adopt(std::move(answer.descriptors[0])), doing);
  MEMSPAN_TRY_ASSIGN(Reservation made, Reservation::make(pages.bytes(), nullptr), doing);
  MEMSPAN_TRY(made.map(0, pages, 0, pages.bytes()), doing);
  MutexLock lock(mutex_);
  if (end_.load(std::memory_order_acquire) != End::kNone) return Status::ok();  // locate() says so
  if (mapping_of(slice) != nullptr) return Status::ok();
  auto more = mapped_ == nullptr ? std::make_shared<MappedSlices>()
                                 : std::make_shared<MappedSlices>(*mapped_);
  more->emplace(std::lower_bound(more->begin(), more->end(), slice, kBySlice), slice,
                std::make_shared<const Reservation>(std::move(made)));
  mapped_ = std::move(more);
  return Status::ok();
}

Status Peer::refusal(const Piece& piece, std::uint64_t number) {
  MutexLock lock(mutex_);
  return {
      Code::kNotFound,
      fmt::format("piece {}: {} bytes at {:#x} are not wholly in what endpoint {} has registered; "
                  "{}",
                  number, piece.bytes, piece.remote, record_.name, view_.describe(piece.remote))};
}

}  // namespace memspan::transfer
