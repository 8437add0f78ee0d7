// SPDX-License-Identifier: Apache-2.0
#include "fabric/space.h"

#include <system_error>
#include <thread>

#include "core/agreement.h"
#include "core/environment.h"
#include "core/interrupt.h"
#include "core/status.h"
#include "fabric/space_memory.h"
#include "store/fields.h"

namespace memspan {
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

// A wait at the store under a name, which close() ends. Only one collective of all ranks runs at a
// time.
class Space::Waiting {
 public:
  Waiting(Space& space, std::string name, const Deadline& deadline)
      : space_(space), name_(std::move(name)), is_of_all_(name_ == space.group_name_) {
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

Space::Space(std::shared_ptr<Member> member, SpaceOptions options, CreatedGroup group)
    : member_(std::move(member)),
      options_(std::move(options)),
      group_name_(std::move(group.name)),
      alive_key_(std::move(group.alive)),
      numbers_(member_, group_name_ + "/number/"),
      exit_(member_, group_name_ + "/exit"),
      group_(member_->store(), group_name_, static_cast<int>(options_.rank),
             static_cast<int>(options_.ranks)) {}

Space::~Space() {
  close();
  member_->tell_end([this](const Deadline& until) { return group_.stop(until); });
  member_->broker().retract(group_name_);
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
  std::unique_ptr<Space> space(new Space(std::move(member), std::move(options), created));
  MEMSPAN_PASS(space->read_parts(created.contributions));
  MEMSPAN_PASS(space->agree(space->memory_->prepare(deadline), deadline));
  MEMSPAN_PASS(space->agree(space->memory_->take(deadline), deadline));
  space->member_->broker().retract(space->group_name_);  // all have it
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
  const Waiting waiting(*this, group_name_, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  return group_.allgather(mine, deadline);
}

Result<std::vector<std::string>> Space::all_gather_some(std::string_view key, std::uint32_t rank,
                                                        std::uint32_t size, std::string_view mine,
                                                        Deadline deadline) {
  const std::string name = fmt::format("{}/sub/{}", group_name_, key);
  const Waiting waiting(*this, name, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  auto all = allgather(member_->store(), name, static_cast<int>(rank), static_cast<int>(size), mine,
                       deadline, alive_key_);
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
  std::set<std::string> names{group_name_};
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
        Status left = name == group_name_ ? StoreGroup(store, name, static_cast<int>(options_.rank),
                                                       static_cast<int>(options_.ranks))
                                                .leave(until)
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

ExitNotice::~ExitNotice() {
  MutexLock lock(mutex_);
  if (watch_)
    member_->tell_end([&, watch = *watch_](const Deadline& deadline) {
      return member_->store().unwatch(watch, deadline);
    });
}

Status ExitNotice::listen(Call call, Deadline deadline) {
  MutexLock lock(mutex_);
  if (watch_) return {Code::kUnavailable, "this process listens for the exit already"};
  // Once, by the watch, which may outlive a failed call, or here.
  const auto hear = [call = std::move(call),
                     was_called = std::make_shared<std::atomic<bool>>()](const std::string& text) {
    const auto status = parse_integer("the exit's status", text, INT32_MIN, INT32_MAX);
    if (!status.is_ok() || was_called->exchange(true, std::memory_order_relaxed)) return;
    try {
      std::thread([call, code = static_cast<int>(*status)] { call(code); }).detach();
    } catch (const std::system_error&) {  // no thread can be had
      call(static_cast<int>(*status));
    }
  };
  const auto on_change = [hear](const StoreChange& change) {
    if (change.event == StoreEvent::kSet) hear(change.value);
  };
  MEMSPAN_TRY_ASSIGN(watch_, member_->store().watch(key_, on_change, deadline),
                     "listening for the exit");
  if (auto before = member_->store().get_now(key_, deadline); before.is_ok()) hear(*before);
  return Status::ok();
}

SharedNumbers::~SharedNumbers() {
  MutexLock lock(mutex_);
  for (std::uint32_t number : mine_)
    member_->tell_end([&](const Deadline& deadline) {
      return member_->store().remove(key_of(number), deadline).status();
    });
}

Result<std::uint32_t> SharedNumbers::take(std::uint32_t limit, Deadline deadline) {
  KeyValueStore& store = member_->store();
  while (!deadline.has_passed()) {
    MEMSPAN_TRY_ASSIGN(auto keys, store.list(prefix_, deadline), "looking for a free number");
    std::set<std::string> taken;
    for (auto& [key, value] : keys) taken.insert(std::move(key));
    std::uint32_t number = 0;
    while (number < limit && taken.contains(key_of(number))) ++number;
    if (number == limit)
      return Status(Code::kUnavailable, fmt::format("all {} numbers are taken", limit));
    // A mark of this attempt only.
    const std::string mark = fmt::format("{}.{}", store.lease(), ++attempts_);
    MEMSPAN_TRY_ASSIGN(std::string now,
                       store.compare_and_swap(key_of(number), "", mark, deadline, KeyLife::kLease),
                       "taking a number");
    if (now != mark) continue;  // another process was faster, so one made progress
    MutexLock lock(mutex_);
    mine_.insert(number);
    return number;
  }
  return Status(Code::kTimeout, "timeout: others were faster at every number that was free");
}

Status SharedNumbers::give_back(std::uint32_t number, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    if (mine_.erase(number) == 0)
      return {Code::kNotFound, fmt::format("this process does not have the number {}", number)};
  }
  auto removed = member_->store().remove(key_of(number), deadline);
  if (removed.is_ok()) return Status::ok();
  MutexLock lock(mutex_);
  mine_.insert(number);
  return removed.status().annotate("giving a number back");
}

}  // namespace memspan
