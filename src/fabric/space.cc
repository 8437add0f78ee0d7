// SPDX-License-Identifier: Apache-2.0
#include "fabric/space.h"

#include <algorithm>

#include "core/agreement.h"
#include "core/interrupt.h"
#include "core/pages.h"
#include "fabric/address_registry.h"
#include "memory/budget.h"
#include "store/fields.h"

namespace memspan::inline fabric {
namespace {

// For notices to other members, which no caller waits for.
constexpr Duration kSpaceEndPatience = std::chrono::seconds(5);

// Names of all-gathers among some ranks that take memory of the store at the same time.
constexpr std::size_t kMostGatheredNames = 64;

// A member's description of itself, sent before anything is made.
struct Introduction {
  std::uint64_t bytes = 0;
  std::string device;
  Host host;
  std::string broker_address;

  static void fields(auto& codec, auto& self) {
    codec(self.bytes, self.device, self.host.id, self.host.name, self.broker_address);
  }
};

Status check(const SpaceOptions& options) {
  MEMSPAN_CHECK(options.rank < options.ranks && options.bytes <= kMostSpaceBytes);
  if (!options.device->is_host() && options.bytes % kDeviceGranularity != 0)
    return {Code::kInvalidArgument,
            fmt::format("the symmetric size is {} bytes; memory of {} is given in multiples of {}",
                        options.bytes, options.device->name(), kDeviceGranularity)};
  if (options.bytes > address_windows().pool_bytes() / options.ranks)
    return {Code::kInvalidArgument,
            fmt::format("{} ranks of {} each need more addresses than spaces may have, {}",
                        options.ranks, format_size(options.bytes),
                        format_size(address_windows().pool_bytes()))};
  return Status::ok();
}

}  // namespace

// The memory of a space in one process: all parts at the same addresses in all processes, those of
// ranks on this host mapped.
//
//   of the host      one memfd of each host, which its lowest rank makes and the others map
//   of a device      each rank makes its part, on its device, and the others of its host map it
//
// Members on other hosts have addresses here, but no memory.
// One thread at a time.
class SpaceMemory {
 public:
  // The space outlives it. By rank: the address of its broker.
  SpaceMemory(const Space& space, std::vector<std::string> broker_addresses)
      : space_(space), broker_addresses_(std::move(broker_addresses)) {}

  // Reserves the addresses, and publishes the memory that this process makes for others. The caller
  // retracts it when all have called take().
  Status prepare(const Deadline& deadline) {
    // A space without memory has an address all the same.
    const std::size_t bytes = align_up(std::max<std::size_t>(all_bytes(), 1), kDeviceGranularity);
    MEMSPAN_PASS_ASSIGN(
        range_, AddressRange::claim(space_.member_, options().name,
                                    {.device = options().device, .device_bytes = bytes},
                                    fmt::format("{} ranks with {} bytes of {} memory each", ranks(),
                                                options().bytes, options().device->name()),
                                    deadline));
    if (all_bytes() == 0) return Status::ok();
    if (!is_pages()) {
      MEMSPAN_TRY_ASSIGN(memory_, options().device->allocate(options().bytes, "memspan-space"),
                         "making the part of the space");
    } else if (lowest_near() == options().rank) {
      // Takes no memory yet; huge pages are taken at once, also for parts that other hosts have.
      const bool is_alone = std::find(is_near().begin(), is_near().end(), false) == is_near().end();
      MEMSPAN_TRY_ASSIGN(Pages pages, make_pages(all_bytes(), is_alone, "memspan-space"),
                         "making memory");
      memory_ = std::make_unique<HostMemory>(std::move(pages));
    }
    if (memory_ == nullptr) return Status::ok();
    std::vector<Fd> descriptors(1);
    MEMSPAN_TRY_ASSIGN(descriptors[0], memory_->duplicate(), "handing out the memory of the space");
    return space_.member_->broker().publish(space_.created_.name, std::move(descriptors));
  }
  // Maps the parts of this host, and commits the own part. Call it after all have prepared.
  Status take(const Deadline& deadline) {
    if (all_bytes() == 0) return Status::ok();
    return is_pages() ? take_pages(deadline) : take_near_parts(deadline);
  }
  std::byte* base() { return range().base(); }

 private:
  const SpaceOptions& options() const { return space_.options_; }
  const std::vector<bool>& is_near() const { return space_.is_near_; }
  bool is_pages() const { return options().device->is_host(); }
  DeviceRange& range() { return *range_->device_part(); }
  std::size_t ranks() const { return options().ranks; }
  std::size_t all_bytes() const { return options().bytes * ranks(); }
  std::size_t lowest_near() const {
    const auto begin = is_near().begin();
    return static_cast<std::size_t>(std::find(begin, is_near().end(), true) - begin);
  }
  Result<std::unique_ptr<DeviceMemory>> fetch(std::size_t rank, const Deadline& deadline) {
    MEMSPAN_PASS_ASSIGN(auto answer, space_.member_->broker().fetch_and_wait(
                                         broker_addresses_[rank], space_.created_.name, deadline));
    if (answer.descriptors.size() != 1)
      return Status(Code::kInternal, "the memory of the space was not handed over");
    MEMSPAN_TRY_ASSIGN(auto memory, options().device->adopt(std::move(answer.descriptors[0])),
                       "taking over the memory of the space");
    return memory;
  }
  Status take_pages(const Deadline& deadline) {
    if (memory_ == nullptr) {
      MEMSPAN_TRY_ASSIGN(memory_, fetch(lowest_near(), deadline), "the space");
    }
    const Pages& pages = static_cast<const HostMemory&>(*memory_).pages();
    if (pages.bytes() < all_bytes() || pages.bytes() > range().bytes())
      return {Code::kInternal, "the memory of the space has another size"};
    MEMSPAN_PASS(map_near_pages(pages));
    if (pages.is_huge()) return Status::ok();
    const std::size_t begin = options().bytes * options().rank;
    return commit_within_budget({pages, begin, base() + begin, options().bytes},
                                "the part of the space");
  }
  Status take_near_parts(const Deadline& deadline) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (!is_near()[rank]) continue;
      std::unique_ptr<DeviceMemory> part;
      if (rank != options().rank) {
        MEMSPAN_TRY_ASSIGN(part, fetch(rank, deadline), fmt::format("the part of rank {}", rank));
      }
      MEMSPAN_TRY(
          range().map(rank * options().bytes, part == nullptr ? *memory_ : *part, options().bytes),
          fmt::format("the part of rank {}", rank));
    }
    return Status::ok();
  }
  // A page that a near part and a far one share is mapped.
  Status map_near_pages(const Pages& pages) {
    auto& reservation = static_cast<Reservation&>(range());
    const auto begin_of_all = is_near().begin(), end = is_near().end();
    for (auto from = begin_of_all; from != end;) {
      from = std::find(from, end, true);
      const auto to = std::find(from, end, false);
      const auto index_of = [&](auto it) { return static_cast<std::size_t>(it - begin_of_all); };
      const std::size_t begin = index_of(from) * options().bytes / page_size() * page_size();
      const std::size_t past =
          to == end ? pages.bytes() : align_up(index_of(to) * options().bytes, page_size());
      if (from != end) MEMSPAN_PASS(reservation.map(begin, pages, begin, past - begin));
      from = to;
    }
    return Status::ok();
  }

  const Space& space_;
  const std::vector<std::string> broker_addresses_;
  std::unique_ptr<AddressRange> range_;
  std::unique_ptr<DeviceMemory> memory_;  // all pages of this host, or the own part
};

// A wait at the store under a name, which close() ends. Only one collective of all ranks runs at a
// time.
class Space::Waiting {
 public:
  Waiting(Space& space, std::string name, const Deadline& deadline)
      : space_(space), name_(std::move(name)), is_of_all_(name_ == space.created_.name) {
    MutexLock lock(space_.mutex_);
    const auto obstacle = [this]() MEMSPAN_REQUIRES(space_.mutex_) -> const char* {
      if (is_of_all_ && space_.is_in_collective_)
        return "timeout: another thread of this process is in a collective of the space";
      return space_.forgotten_name_ == name_ ? "timeout: the store does not answer" : nullptr;
    };
    while (!space_.is_closed_ && obstacle() != nullptr)
      if (!wait_interruptibly(space_.changed_, space_.mutex_, deadline)) break;
    if (space_.is_closed_) {
      status_ = {Code::kUnavailable, "the space is being destroyed"};
    } else if (const char* const why = obstacle(); why != nullptr) {
      status_ = end_of_wait(why);
    } else {
      auto& names = space_.gathered_names_;
      if (!is_of_all_ && std::find(names.begin(), names.end(), name_) == names.end())
        names.push_back(name_);
      space_.waits_.insert(name_);  // what follows needs no memory
      is_in_ = true;
      if (is_of_all_) space_.is_in_collective_ = true;
    }
  }
  ~Waiting() {
    if (!is_in_) return;
    MutexLock lock(space_.mutex_);
    space_.waits_.erase(space_.waits_.find(name_));
    if (is_of_all_) space_.is_in_collective_ = false;
    space_.changed_.notify_all();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  // Whether it may begin.
  const Status& status() const { return status_; }

 private:
  Space& space_;
  const std::string name_;
  const bool is_of_all_;  // whether all ranks take part
  Status status_;
  bool is_in_ = false;
};

Space::Space(std::shared_ptr<Member> member, SpaceOptions options, CreatedGroup created)
    : member_(std::move(member)),
      options_(std::move(options)),
      created_(std::move(created)),
      numbers_(member_, created_.name + "/number/"),
      exit_(member_, created_.name + "/exit"),
      group_(member_->store(), created_, static_cast<int>(options_.rank)) {}

Space::~Space() {
  close();
  member_->tell_end([this](const Deadline& until) { return group_.stop(until); });
  member_->broker().retract(created_.name);
}

std::byte* Space::base() const {
  return memory_->base();
}

Result<std::unique_ptr<Space>> Space::create(std::shared_ptr<Member> member, SpaceOptions options,
                                             Deadline deadline) {
  MEMSPAN_PASS(check(options));
  const Introduction mine{.bytes = options.bytes,
                          .device = std::string(options.device->name()),
                          .host = member->host(),
                          .broker_address = member->broker().address()};
  MEMSPAN_PASS_ASSIGN(auto created,
                      create_group(member->store(), options.name, static_cast<int>(options.rank),
                                   static_cast<int>(options.ranks), encode_record(mine), deadline));
  const std::vector<std::string> parts = std::exchange(created.contributions, {});
  std::unique_ptr<Space> space(
      new Space(std::move(member), std::move(options), std::move(created)));
  MEMSPAN_PASS(space->read_parts(parts));
  MEMSPAN_PASS(space->agree(space->memory_->prepare(deadline), deadline));
  MEMSPAN_PASS(space->agree(space->memory_->take(deadline), deadline));
  space->member_->broker().retract(space->created_.name);  // all have it
  return space;
}

// All members come to the same result.
Status Space::read_parts(const std::vector<std::string>& parts) {
  std::vector<Introduction> members;
  std::vector<std::string> broker_addresses;
  for (const std::string& part : parts) {
    MEMSPAN_TRY_ASSIGN(members.emplace_back(), decode_record<Introduction>(part, "introduction"),
                       "exchanging what each contributes");
    if (members.back().bytes != members.front().bytes)
      return {Code::kInvalidArgument,
              fmt::format("the sizes of the parts differ: rank {} says {} bytes, rank 0 said {}",
                          members.size() - 1, members.back().bytes, members.front().bytes)};
    if (members.back().device != members.front().device)
      return {Code::kInvalidArgument,
              fmt::format("the devices of the parts differ: rank {} says {}, rank 0 said {}",
                          members.size() - 1, members.back().device, members.front().device)};
    is_near_.push_back(members.size() - 1 == options_.rank ||
                       (members.back().host == member_->host() && member_->may_map()));
    broker_addresses.push_back(members.back().broker_address);
  }
  memory_ = std::make_unique<SpaceMemory>(*this, std::move(broker_addresses));
  return Status::ok();
}

// Ok if all ranks are; otherwise the failure of the first rank that is not.
Status Space::agree(const Status& mine, const Deadline& deadline) {
  return memspan::agree([&](const std::string& text) { return all_gather(text, deadline); }, mine,
                        "rank");
}

Result<std::vector<std::string>> Space::all_gather(std::string_view mine, Deadline deadline) {
  const Waiting waiting(*this, created_.name, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  return group_.allgather(mine, deadline);
}

Result<std::vector<std::string>> Space::all_gather_some(std::string_view key, std::uint32_t rank,
                                                        std::uint32_t size, std::string_view mine,
                                                        Deadline deadline) {
  const std::string name = fmt::format("{}/sub/{}", created_.name, key);
  const Waiting waiting(*this, name, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  auto all = allgather(member_->store(), name, static_cast<int>(rank), static_cast<int>(size), mine,
                       deadline, created_.alive_key(created_.members[options_.rank].nonce));
  forget_oldest_name(deadline);
  return all;
}

// A program may take a new name each time.
void Space::forget_oldest_name(const Deadline& deadline) {
  std::string name;
  {
    MutexLock lock(mutex_);
    if (gathered_names_.size() <= kMostGatheredNames || !forgotten_name_.empty() ||
        waits_.contains(gathered_names_.front()))
      return;
    name = forgotten_name_ = gathered_names_.front();
    gathered_names_.pop_front();
  }
  static_cast<void>(leave_allgather(member_->store(), name, deadline));
  MutexLock lock(mutex_);
  forgotten_name_.clear();
  changed_.notify_all();
}

// A wait that has not reached the store yet is ended by a later round.
void Space::close() {
  constexpr Duration kAgain = std::chrono::milliseconds(20);
  const Deadline deadline = Deadline::after(kSpaceEndPatience);
  std::set<std::string> names{created_.name};
  while (true) {
    {
      MutexLock lock(mutex_);
      is_closed_ = true;
      changed_.notify_all();
      names.insert(waits_.begin(), waits_.end());
      names.insert(gathered_names_.begin(), gathered_names_.end());
      gathered_names_.clear();
    }
    member_->tell_end([&](const Deadline& until) {
      KeyValueStore& store = member_->store();
      Status first;
      for (const std::string& name : names) {
        // Not by group_, which may be in use.
        Status left =
            name == created_.name
                ? StoreGroup(store, created_, static_cast<int>(options_.rank)).leave(until)
                : leave_allgather(store, name, until);
        if (first.is_ok()) first = std::move(left);
      }
      return first;
    });
    MutexLock lock(mutex_);
    if (waits_.empty() || deadline.has_passed()) return;
    changed_.wait_until(mutex_, Deadline::after(kAgain));
    names.clear();
  }
}

}  // namespace memspan::inline fabric
