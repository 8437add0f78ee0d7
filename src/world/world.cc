// SPDX-License-Identifier: Apache-2.0
#include "world/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "core/environment.h"
#include "device/choice.h"
#include "device/host/copy.h"
#include "net/metrics_server.h"
#include "node/event_count.h"
#include "observe/trace.h"

namespace memspan::inline world {
namespace {

// About a microsecond: a pause is 40 to 140 cycles on today's processors.
constexpr int kSpins = 40;

// How long an end waits for other nodes to have everything that came before it. A PE that dies ends
// the wait for it earlier.
constexpr auto kEndLimit = std::chrono::seconds(5);
// The time that the others may take to hand over the memory of their devices, which all have
// allocated by then.
constexpr auto kDeviceLimit = std::chrono::seconds(60);
constexpr auto kNoticeLimit = std::chrono::seconds(2);  // on a loaded machine

// The transports to PEs of this node and of other nodes, the best first.
constexpr std::string_view kCandidates[] = {"mapped", "message"};

// A process with links waits for the others' addresses, but one that maps publishes none.
Status check_same_transport(const NodeSegment& segment, std::string_view chosen) {
  const auto mine = static_cast<std::uint32_t>(
      std::find(std::begin(kCandidates), std::end(kCandidates), chosen) - kCandidates + 1);
  std::uint32_t agreed = 0;
  if (segment.header().near_transport.compare_exchange_strong(agreed, mine) || agreed == mine)
    return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("by MEMSPAN_TRANSPORT this process reaches the PEs of its host by \"{}\" and "
                      "another one of the job by \"{}\"; all must have the same",
                      chosen, kCandidates[agreed - 1])};
}

}  // namespace

Result<std::unique_ptr<World>> World::create(Membership membership, HeapSize heap,
                                             StaticVariables variables) {
  MEMSPAN_TRY_ASSIGN(const CommitMode mode, commit_mode_from_environment(),
                     "making the symmetric heap");
  MEMSPAN_TRY(check_copy_setting(), "making the symmetric heap");
  MEMSPAN_TRY(check_same_commit_mode(*membership.segment, mode), "making the symmetric heap");
  const int near = membership.nodes.peers_in(membership.node());
  MEMSPAN_TRY_ASSIGN(const std::size_t heap_bytes,
                     agree_on_heap_size(*membership.segment, heap, near, mode),
                     "making the symmetric heap");
  std::unique_ptr<World> world(new World(std::move(membership), heap_bytes, mode));
  MEMSPAN_PASS(world->list());
  MEMSPAN_TRY(world->map_segments(variables), "making the symmetric heap");
  MEMSPAN_PASS(world->choose_transports());
  MEMSPAN_TRY(world->map_node(), "connecting to the peers");
  MEMSPAN_PASS(world->link_peers());
  world->fill_table();
  if (wants_other_device()) world->device_routes_ = std::make_unique<DeviceRoutes>(world->table_);
  allow_fences_from_peers();
  return world;
}

World::World(Membership membership, std::size_t heap_bytes, CommitMode mode)
    : membership_(std::move(membership)),
      heap_bytes_(heap_bytes),
      commit_mode_(mode),
      part_bytes_(kInternalBytes + heap_bytes),
      internal_allocator_(kInternalBytes) {
  waiting_.segment = membership_.segment.get();
  waiting_.self = &membership_.segment->peer(membership_.rank);
  waiting_.rank = membership_.rank;
  waiting_.generation = waiting_.self->generation.load(std::memory_order_relaxed);
  waiting_.spins = is_oversubscribed() ? 0 : kSpins;
}

Status World::list() {
  MEMSPAN_TRY_ASSIGN(
      listed_,
      ListedMember::list(MemberKind::kJob, segment().job_name(), rank(), size(), serve_metrics),
      "listing the job");
  listed_.set_memory(heap_bytes_, 0);
  if (!nodes().is_one()) use_wall_clock_in_trace();
  return Status::ok();
}

World::~World() {
  // A launcher's memory stays for the next job; memory made by the processes is released.
  if (!membership_.job.empty()) take_back_static_segment();
  membership_.detector.reset();  // it reports losses to linked_, which is destroyed next
}

Status World::map_segments(StaticVariables variables) {
  const bool is_the_job = variables == StaticVariables::kShared;
  if (is_the_job)
    static_segment_ = share_static_segment(*membership_.segment, *membership_.heap, rank(),
                                           nodes().index_of(rank()));
  const std::size_t each = part_bytes_ + static_segment_.bytes;
  const std::size_t bytes = each * parts();
  if (bytes / each != parts() || bytes > address_windows().heap_bytes)
    return {Code::kOutOfMemory,
            fmt::format("{} heaps of {} do not fit the address window of {}", parts(),
                        format_size(each), format_size(address_windows().heap_bytes))};
  MEMSPAN_TRY_ASSIGN(
      Reservation range,
      Reservation::make(bytes,
                        is_the_job ? reinterpret_cast<void*>(address_windows().heap) : nullptr),
      "reserving addresses");
  range_ = std::make_unique<Reservation>(std::move(range));
  return Status::ok();
}

// One choice for the PEs of this node and one for all others. A failure names the first PE of each.
Status World::choose_transports() {
  MEMSPAN_TRY_ASSIGN(const AllowedTransports allowed, AllowedTransports::from_environment(),
                     "choosing a transport");
  for (const bool is_near : {true, false}) {
    int peer = 0;
    while (peer < size() && (peer == rank() || this->is_near(peer) != is_near)) ++peer;
    if (peer == size()) continue;
    const Pair pair{
        .from = nodes().describe(rank()), .to = nodes().describe(peer), .same_node = is_near};
    MEMSPAN_TRY_ASSIGN((is_near ? near_ : far_), allowed.choose(pair, kCandidates),
                       "choosing a transport");
  }
  if (near_.name.empty()) return Status::ok();
  MEMSPAN_TRY(check_same_transport(*membership_.segment, near_.name), "choosing a transport");
  return Status::ok();
}

// Also needed if `mapped` carries no data: the library's own areas are shared in a node.
Status World::map_node() {
  const std::uint64_t stride = membership_.segment->header().heap_stride;
  for (const int peer : nodes().peers_of(membership_.node())) {
    const std::size_t place = place_of(peer);
    MEMSPAN_TRY(range_->map(place * part_bytes_, *membership_.heap, place * stride, part_bytes_),
                fmt::format("mapping the heap of PE {}", peer));
  }
  return Status::ok();
}

Status World::link_peers() {
  const bool are_near_linked = near_.name == "message";
  if (!are_near_linked && far_.name.empty()) {
    membership_.exchange = nullptr;
    return Status::ok();
  }
  if (membership_.exchange == nullptr)
    return {Code::kNotSupported, "a job that was joined in this way has mapped peers only"};
  const LinkedPeers::Memory memory{internal_area(rank()) + kInternalBytes, heap_bytes_,
                                   static_cast<std::uint32_t>(commit_mode_), static_segment_};
  MEMSPAN_TRY_ASSIGN(linked_,
                     LinkedPeers::make(membership_, waiting_, messages_, memory, are_near_linked),
                     "connecting to other nodes");
  membership_.exchange = nullptr;
  waiting_.engine = &linked_->engine();
  if (nodes().is_one()) return Status::ok();
  waiting_.name_of = [this](int peer) { return nodes().describe(peer); };
  waiting_.on_loss = [this](int peer, int how) { linked_->tell({Notice::Kind::kLoss, peer, how}); };
  if (membership_.detector == nullptr) return Status::ok();
  membership_.detector->set_listener(waiting_.on_loss);
  for (int peer = 0; peer < size(); ++peer) {  // what was noted before that
    const PeerSlot& slot = membership_.segment->peer(peer);
    if (is_near(peer) && slot.state.load(std::memory_order_acquire) == PeerState::kLost)
      waiting_.on_loss(peer, slot.wait_status.load(std::memory_order_relaxed));
  }
  return Status::ok();
}

void World::fill_table() {
  std::byte* mine = internal_area(rank());
  routes_.resize(static_cast<std::size_t>(size()));
  for (int peer = 0; peer < size(); ++peer) {
    Route& route = routes_[peer];
    if (is_near(peer)) route.slot = &membership_.segment->peer(peer);
    route.link = linked_ == nullptr ? nullptr : linked_->link(peer);
    if (route.link == nullptr)
      route.delta = internal_area(peer) - mine;
    else
      route.region = linked_->heap_of(peer);
  }
  table_.heap = {reinterpret_cast<std::uintptr_t>(mine + kInternalBytes), heap_bytes_,
                 routes_.data()};
  table_.peers = static_cast<std::uint32_t>(size());
  table_.inline_peers = is_recording() ? 0 : table_.peers;
  table_.operations = &operations_;
  const std::size_t file_offset = place_of(rank()) * membership_.segment->header().heap_stride;
  heap_ = std::make_unique<SymmetricHeap>(*membership_.heap, file_offset + kInternalBytes,
                                          mine + kInternalBytes, heap_bytes_, commit_mode_);
}

Status World::take_promised() const {
  for (std::size_t place = 0; place < parts(); ++place)
    MEMSPAN_TRY(heap_->take_promised(place * segment().header().heap_stride + kInternalBytes),
                "taking the memory that was promised before");
  return Status::ok();
}

Status World::connect_static_segments() {
  if (static_segment_.is_empty()) return Status::ok();
  data_routes_.resize(static_cast<std::size_t>(size()));
  for (int peer = 0; peer < size(); ++peer) {
    if (routes_[peer].link == nullptr) {
      MEMSPAN_TRY(connect_near_segment(peer), fmt::format("the variables of PE {}", peer));
      continue;
    }
    Route& route = data_routes_[peer];
    route.slot = routes_[peer].slot;
    route.region = linked_->data_of(peer);
    if (route.region != nullptr) route.link = linked_->link(peer);
  }
  table_.data = {reinterpret_cast<std::uintptr_t>(static_segment_.base), static_segment_.bytes,
                 data_routes_.data()};
  if (device_routes_ != nullptr) device_routes_->add_data(table_.data);
  return Status::ok();
}

Status World::make_device_heap(const Exchange& exchange) {
  MEMSPAN_CHECK(device_routes_ != nullptr && device_heap_ == nullptr);
  // A PE without a device reports it to all.
  Result<Device*> device = chosen_device();
  Result<std::size_t> bytes = device_heap_bytes(heap_bytes_);
  Status ready = device.is_ok() ? bytes.status() : device.status();
  if (ready.is_ok() && (*device)->is_host())
    ready = Status(Code::kInvalidArgument, "MEMSPAN_DEVICE was changed while the job was running");
  MEMSPAN_PASS(agree(exchange, ready, "PE"));
  const DeviceHeap::Place place{nodes(), rank(), table_, linked_.get(), *device_routes_};
  MEMSPAN_TRY_ASSIGN(
      device_heap_,
      DeviceHeap::make(place, **device, *bytes, exchange, Deadline::after(kDeviceLimit)),
      "making the symmetric heap in memory of a device");
  return Status::ok();
}

Status World::connect_near_segment(int peer) {
  Route& route = data_routes_[peer];
  route.slot = &membership_.segment->peer(peer);
  if (peer == rank()) route.delta = 0;
  // Pairs with the release in share_static_segment().
  if (size() == 1 || peer == rank() ||
      route.slot->program.load(std::memory_order_acquire) != static_segment_.identity)
    return Status::ok();
  const std::size_t at = part_bytes_ * parts() + place_of(peer) * static_segment_.bytes;
  const std::size_t offset = static_segment_offset(*membership_.segment, nodes().index_of(peer));
  MEMSPAN_TRY(range_->map(at, *membership_.heap, offset, static_segment_.bytes), "mapping them");
  route.delta = range_->base() + at - static_segment_.base;
  return Status::ok();
}

const TransportChoice& World::transport_to(int peer) const {
  if (peer == rank()) return own_;
  return is_near(peer) ? near_ : far_;
}

std::string World::describe_routes() const {
  const int near = static_cast<int>(parts()) - 1;
  const int far = size() - 1 - near;
  std::string text = nodes().is_one() ? std::string("all PEs are on one node")
                                      : fmt::format("PE {} is on host {}, one of {} nodes", rank(),
                                                    nodes().host_of(rank()), nodes().count());
  if (near > 0) text += fmt::format("; {} PE(s) of this node by {}", near, near_.why);
  if (far > 0) text += fmt::format("; {} PE(s) of other nodes by {}", far, far_.why);
  return text;
}

void World::depart(const Deadline& deadline) {
  const bool has_other_nodes = linked_ != nullptr && !nodes().is_one();
  if (has_other_nodes) {
    // The notice takes other paths than earlier messages and may overtake them. A peer would then
    // see this process leave a barrier that it has been in.
    linked_->flush(deadline);
    // Other nodes first: a PE of this node that sees the departure may leave because of it, and
    // announce that. Earlier losses come before it: they may be the cause, and their own notices
    // may be slower.
    for (const Notice& loss : losses(*membership_.segment)) linked_->tell(loss);
    linked_->tell({Notice::Kind::kDeparture, rank()});
  }
  membership_.segment->mark_departed(rank());
  if (has_other_nodes) linked_->flush(deadline);
}

void World::request_exit(int code) {
  // Other nodes first: on this one processes may end, and with them this one, as soon as they see
  // it.
  if (linked_ != nullptr && !nodes().is_one()) {
    linked_->tell({Notice::Kind::kExit, rank(), code});
    linked_->flush(Deadline::after(kNoticeLimit));
  }
  membership_.segment->request_exit(rank(), code);
}

std::byte* World::internal_area(int peer) const {
  MEMSPAN_CHECK(is_near(peer));
  return range_->base() + place_of(peer) * part_bytes_;
}

Status World::keep_pages(const void* address, std::size_t bytes) {
  const auto at =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(range_->base());
  const std::size_t all = part_bytes_ * parts();
  if (at < all && bytes <= all - at) return range_->keep(at, bytes);
  return {Code::kInvalidArgument,
          fmt::format("{} ({} bytes) is in no PE's heap as this process maps it", address, bytes)};
}

Status World::end(const char* what, EndKind how) {
  const NodeSegment& segment = *membership_.segment;
  const std::uint32_t generation = waiting_.generation;
  const bool has_other_nodes = linked_ != nullptr && !nodes().is_one();
  const Deadline deadline = Deadline::after(kEndLimit);
  // A PE that learns of the end has received everything that came before it.
  if (has_other_nodes) linked_->flush(deadline);
  waiting_.self->end_kind.store(how, std::memory_order_relaxed);
  // Pairs with is_gone(). Sequentially consistent: of two that come last one sees both.
  waiting_.self->ended.store(generation, std::memory_order_seq_cst);
  segment.header().ending.store(generation, std::memory_order_release);
  if (has_other_nodes) {
    linked_->tell({Notice::Kind::kEnd, rank(), static_cast<std::int32_t>(how), generation});
    linked_->flush(deadline);
  }
  Status status = wait_for_ends(what);
  // The ends of others that this process passed on have arrived.
  if (has_other_nodes) linked_->flush(status.is_ok() ? Deadline::after(kEndLimit) : deadline);
  return status;
}

Status World::wait_for_ends(const char* what) {
  const NodeSegment& segment = *membership_.segment;
  const std::uint32_t generation = waiting_.generation;
  int next = 0;  // PEs below it have come for good
  auto all_have_come = [&] {
    while (next < size() && segment.peer(next).ended.load(std::memory_order_seq_cst) >= generation)
      ++next;
    return next == size();
  };
  if (all_have_come()) {
    segment.ring_all();
    return Status::ok();
  }
  const Status status =
      wait_for(waiting_, WaitsFor::kSync, what, Deadline::never(), all_have_come,
               Needs{[&] {
                       for (int peer = next; peer < size(); ++peer)
                         if (segment.peer(peer).is_dead() &&
                             segment.peer(peer).ended.load(std::memory_order_acquire) < generation)
                           return peer;
                       return -1;
                     },
                     [&] { return next; }});
  return status.is_ok() ? status : explain_end(status);
}

Status World::explain_end(const Status& status) const {
  const int is_waited_for = waiting_.self->wait_status.load(std::memory_order_relaxed);
  if (waiting_.self->is_dead() &&
      (is_waited_for == kEndedByExit || is_waited_for == kEndedByFinalize))
    return {Code::kUnavailable,
            "another PE waits in a call that needs this one; all have to make the same collective "
            "calls before they end"};
  if (status.code() != Code::kTimeout) return status;
  std::vector<int> missing;
  for (int peer = 0; peer < size(); ++peer)
    if (segment().peer(peer).ended.load(std::memory_order_acquire) < waiting_.generation)
      missing.push_back(peer);
  return status.annotate(fmt::format("PE {} did not come", fmt::join(missing, ", ")));
}

}  // namespace memspan::inline world
