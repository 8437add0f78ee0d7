// SPDX-License-Identifier: Apache-2.0
// Another endpoint, as this process reaches it: one life of its name. It holds the peer's ledger
// and library memory mapped, and knows when the process ends.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "device/reservation.h"
#include "fabric/member.h"
#include "fabric/transfer/endpoint_record.h"
#include "fabric/transfer/ledger.h"
#include "fabric/transfer/ledger_view.h"
#include "fabric/transfer/pieces.h"

namespace memspan::transfer {

// Library memory of a peer, mapped here, by number. Never changed once it is shared.
using MappedSlices = std::vector<std::pair<std::uint32_t, std::shared_ptr<const Reservation>>>;

// Where some pieces' remote ends are. Lives on the stack.
struct Located {
  static constexpr std::size_t kMost = 64;
  std::size_t count = 0;                 // pieces that were found
  bool is_refused = false;               // the next one is not registered
  std::uint32_t wanted_slice = 0;        // or in library memory that is not mapped yet: map_slice()
  std::array<std::byte*, kMost> mapped;  // null: in the other process only
  std::shared_ptr<const MappedSlices> held;  // keeps what is mapped
};

// Thread-safe.
class Peer {
 public:
  // Asks the door of the record's process. `ended` is called once when it ends in whatever way, on
  // any thread, and does not wait. kTimeout, kAuth; kPeerLost: it died; kStale: it has ended.
  static Result<std::shared_ptr<Peer>> attach(std::shared_ptr<Member> member, EndpointRecord record,
                                              std::function<void()> ended, Deadline deadline);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const EndpointRecord& record() const { return record_; }
  pid_t process() const { return process_number_; }

  // Asks the kernel at most once a millisecond.
  bool is_live();
  // Whether the endpoint has neither ended nor been destroyed; costs two loads.
  bool is_open() const {
    return end_.load(std::memory_order_acquire) == End::kNone && pages_.is_open();
  }
  // What death() finds without asking anybody; ok while it lives.
  Status why_not_live() const;
  // The store has no record of it any more.
  void note_left();

  // Looks them up, at most Located::kMost, against what is registered now.
  void locate(std::span<const Piece> pieces, Located& located);
  Status map_slice(std::uint32_t slice, Deadline deadline);
  // Why the piece was refused.
  Status refusal(const Piece& piece, std::uint64_t number);

  // How many registrations this endpoint had when it last waited in vain for the peer's. Peers'.
  std::atomic<std::uint64_t>& waited_in_vain() { return waited_in_vain_; }

  // For the words and messages that the peer waits for.
  ledger::Counters& counters() const { return pages_.counters(); }
  const Fd& mailbox() const { return mailbox_; }

 private:
  enum class End : int { kNone, kDied, kEnded, kLeft };

  Peer(std::shared_ptr<Member> member, EndpointRecord record, LedgerPages pages, DoorAnswer answer,
       std::function<void()> ended);
  void end(End why);
  Result<DoorAnswer> ask_for_slice(std::uint32_t slice, Deadline deadline) const;
  void drop_freed_slices() MEMSPAN_REQUIRES(mutex_);
  // Null when it is not mapped.
  const Reservation* mapping_of(std::uint32_t slice) MEMSPAN_REQUIRES(mutex_);

  const std::shared_ptr<Member> member_;
  const EndpointRecord record_;
  const LedgerPages pages_;
  const Fd process_;
  const Fd mailbox_;
  const pid_t process_number_;
  const bool is_this_process_;
  const std::function<void()> ended_;
  std::uint64_t watch_ = 0;
  std::atomic<End> end_{End::kNone};
  std::atomic<Clock::rep> looked_at_{0};  // the process, last
  std::atomic<std::uint64_t> waited_in_vain_{0};
  Mutex mutex_;
  LedgerView view_ MEMSPAN_GUARDED_BY(mutex_);
  std::shared_ptr<const MappedSlices> mapped_ MEMSPAN_GUARDED_BY(mutex_);  // shared with copies
};

}  // namespace memspan::transfer
