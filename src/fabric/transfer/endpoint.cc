// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/endpoint.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "core/environment.h"
#include "core/log.h"
#include "core/random.h"
#include "device/host/guarded_copy.h"
#include "fabric/transfer/counters.h"
#include "fabric/transfer/endpoint_name.h"
#include "fabric/transfer/name_claim.h"

namespace memspan::transfer {
namespace {

constexpr Duration kLeavePatience = std::chrono::seconds(2);
constexpr Duration kTellAfter = std::chrono::seconds(3);

// As long as MemFabric's registering sleeps, on which programs rely as a meeting.
Result<Duration> registration_patience() {
  constexpr std::int64_t kUsual = 8;
  constexpr std::int64_t kMost = 86400;
  auto seconds = environment_integer("MEMSPAN_TRANS_WAIT", 0, kMost);
  if (!seconds.is_ok()) return seconds.status();
  return Duration(std::chrono::seconds(seconds->value_or(kUsual)));
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(std::shared_ptr<Member> member,
                                                 std::string_view name, Role role,
                                                 Deadline deadline) {
  auto normal = normal_name(name);
  if (!normal.is_ok()) return normal.status();
  catch_copy_faults();
  EndpointRecord record{.name = *normal,
                        .generation = random_hex(8),
                        .host = member->host(),
                        .role = role,
                        .ticket = member->door().ticket(),
                        .process = getpid()};
  auto patience = registration_patience();
  if (!patience.is_ok()) return patience.status();
  auto ledger = Ledger::create();
  if (!ledger.is_ok()) return ledger.status();
  auto mailbox = Mailbox::create();
  if (!mailbox.is_ok()) return mailbox.status();
  auto worker = Worker::create();
  if (!worker.is_ok()) return worker.status();
  // Where the Yama module restricts who may reach whose memory, the peers may reach this process's.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::unique_ptr<Endpoint> made(new Endpoint(std::move(member), std::move(record),
                                              std::move(ledger).value(), std::move(mailbox).value(),
                                              std::move(worker).value(), *patience));
  std::vector<Fd> descriptors;
  {
    MutexLock lock(made->mutex_);
    MEMSPAN_TRY_ASSIGN(Fd pages, made->ledger_.pages().duplicate(), "making an endpoint");
    descriptors.push_back(std::move(pages));
  }
  MEMSPAN_TRY_ASSIGN(Fd mailbox_end, made->mailbox_.sending_end(), "making an endpoint");
  descriptors.push_back(std::move(mailbox_end));
  MEMSPAN_PASS(made->member_->door().offer(made->record_.offer(), std::move(descriptors)));
  MEMSPAN_PASS(claim_name(*made->member_, made->record_, deadline));
  made->has_name_ = true;
  return made;
}

Endpoint::Endpoint(std::shared_ptr<Member> member, EndpointRecord record, Ledger ledger,
                   Mailbox mailbox, std::shared_ptr<Worker> worker, Duration patience)
    : member_(std::move(member)),
      record_(std::move(record)),
      mailbox_(std::move(mailbox)),
      ledger_(std::move(ledger)),
      counters_(ledger_.pages().counters()),
      registrations_(ledger_),
      worker_(std::move(worker)),
      peers_(std::make_unique<Peers>(
          member_, record_.role, patience,
          [worker = worker_](const std::string& peer) { worker->note_down(peer); })) {}

Endpoint::~Endpoint() {
  {
    MutexLock lock(mutex_);
    ledger_.close();
    for (const auto& [address, slice] : slices_)
      member_->door().withdraw(record_.slice_offer(slice.number));
  }
  worker_->end();
  peers_.reset();
  member_->door().withdraw(record_.offer());
  if (!has_name_) return;
  // When the store is lost, the name is gone with the session.
  [[maybe_unused]] const auto removed =
      member_->store().remove(record_key(record_.name), Deadline::after(kLeavePatience));
}

Status Endpoint::add(std::uint64_t base, std::uint64_t bytes) {
  peers_->note_registration();
  MutexLock lock(mutex_);
  return registrations_.add(base, bytes);
}

Status Endpoint::add_joined(std::span<const Range> ranges) {
  peers_->note_registration();
  MutexLock lock(mutex_);
  return registrations_.add_joined(ranges);
}

Status Endpoint::remove(std::uint64_t base) {
  MutexLock lock(mutex_);
  return registrations_.remove(base);
}

Result<void*> Endpoint::allocate(std::size_t bytes) {
  auto memory = LibrarySlice::allocate(bytes);
  if (!memory.is_ok()) return memory.status();
  std::byte* const base = memory->base();
  MutexLock lock(mutex_);
  const std::uint32_t number = ++last_slice_;
  MEMSPAN_PASS(offer_slice(*memory, number));
  auto slot = registrations_.add_slice(
      Range{.base = reinterpret_cast<std::uint64_t>(base), .bytes = bytes, .slice = number});
  if (!slot.is_ok()) {
    member_->door().withdraw(record_.slice_offer(number));
    return slot.status();
  }
  peers_->note_registration();
  slices_.emplace(base, Slice{std::move(memory).value(), number, *slot});
  return static_cast<void*>(base);
}

Status Endpoint::offer_slice(LibrarySlice& memory, std::uint32_t number) {
  std::vector<Fd> descriptors;
  descriptors.push_back(memory.take_descriptor());
  return member_->door().offer(record_.slice_offer(number), std::move(descriptors));
}

Status Endpoint::reach(std::string_view peer) {
  return peers_->find(peer).status();
}

Status Endpoint::release(const void* address) {
  std::map<const void*, Slice>::node_type slice;  // ends without the lock
  MutexLock lock(mutex_);
  slice = slices_.extract(address);
  if (slice.empty())
    return {Code::kInvalidArgument,
            fmt::format("invalid address, which is {}: no memory of this endpoint begins there",
                        address)};
  registrations_.remove_slice(slice.mapped().slot);
  member_->door().withdraw(record_.slice_offer(slice.mapped().number));
  return Status::ok();
}

Status Endpoint::transfer(Direction direction, std::string_view peer, const Pieces& pieces) {
  auto found = peers_->find(peer);
  if (!found.is_ok()) return found.status();
  Mover mover(**found, direction, pieces, Cursor{});
  Status status = mover.move_all();
  if (!mover.is_refused()) [[likely]]
    return status;
  return wait_for_registration(**found, mover, std::move(status));
}

// The peer does not say when it registers something, so that this looks.
Status Endpoint::wait_for_registration(Peer& peer, Mover& mover, Status refusal) {
  constexpr Duration kNap = std::chrono::milliseconds(1);
  const Duration patience = peers_->patience_with(peer);
  if (patience == Duration::zero()) return refusal;
  const Deadline deadline = Deadline::after(patience);
  Deadline tell = Deadline::after(kTellAfter);
  while (mover.is_refused() && !deadline.has_passed()) {
    if (is_ending_.load(std::memory_order_acquire))
      return {Code::kUnavailable, "the endpoint has been destroyed"};
    if (!tell.is_never() && tell.has_passed()) {
      log_line(
          LogLevel::kWarn,
          fmt::format("waiting {:.0f} s more for endpoint {}, which is there, to register "
                      "memory (MEMSPAN_TRANS_WAIT): {}",
                      to_seconds(deadline.remaining()), peer.record().name, refusal.message()));
      tell = Deadline::never();
    }
    std::this_thread::sleep_for(kNap);
    refusal = mover.move_all();
  }
  if (mover.is_refused()) peers_->note_waited_in_vain(peer);
  return refusal;
}

Status Endpoint::wait_for_counter(std::uint32_t counter, std::uint64_t value,
                                  Deadline deadline) const {
  return transfer::wait_for_counter(counters_, counter, value, is_ending_, deadline);
}

void Endpoint::end_waits() {
  is_ending_.store(true, std::memory_order_seq_cst);
  ring_counters(counters_);
  mailbox_.end();
}

std::shared_ptr<Request> Endpoint::prepare(Direction direction, std::string peer,
                                           std::unique_ptr<const Pieces> pieces) const {
  return std::make_shared<Request>(direction, record_.name, std::move(peer), std::move(pieces));
}

}  // namespace memspan::transfer
