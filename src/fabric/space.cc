// SPDX-License-Identifier: Apache-2.0
#include "fabric/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/agreement.h"
#include "core/bytes.h"
#include "core/environment.h"
#include "core/interrupt.h"
#include "memory/address_plan.h"
#include "memory/budget.h"
#include "store/recipes/all_gather.h"

namespace memspan {
namespace {

// For what is only told to others, when nobody waits for it.
constexpr Duration kEndPatience = std::chrono::seconds(5);

// So many of the names under which some gathered learn that this process is gone; as many as the
// store remembers.
constexpr std::size_t kMostGatheredNames = 1024;

// What a member says of itself before anything is made.
struct Introduction {
  std::uint64_t bytes = 0;
  std::string host;
  std::string broker_address;

  std::string encode() const {
    ByteWriter writer;
    writer.u64(bytes);
    writer.text(host);
    writer.text(broker_address);
    return writer.take();
  }
  static Result<Introduction> decode(std::string_view text) {
    ByteReader reader(text);
    Introduction read;
    read.bytes = reader.u64();
    read.host = reader.text();
    read.broker_address = reader.text();
    if (!reader.is_finished())
      return Status(Code::kInvalidArgument, "what a member says of itself is malformed");
    return read;
  }
};

Status check(const SpaceOptions& options) {
  if (options.ranks == 0 || options.rank >= options.ranks)
    return {Code::kInvalidArgument, fmt::format("the space is of {} ranks, and this is rank {}",
                                                options.ranks, options.rank)};
  if (options.bytes > kMostSpaceBytes)
    return {Code::kInvalidArgument,
            fmt::format("symmetric size exceeded: {} bytes, allowed are up to {}", options.bytes,
                        kMostSpaceBytes)};
  if (options.bytes > kPoolWindowBytes / options.ranks)
    return {Code::kInvalidArgument,
            fmt::format("{} ranks of {} each need more addresses than spaces may have, {}",
                        options.ranks, format_size(options.bytes), format_size(kPoolWindowBytes))};
  return Status::ok();
}

}  // namespace

// A wait at the store under a name, which close() ends; of the collectives of all ranks there is
// one at a time.
class Space::Waiting {
 public:
  enum class Kind { kAll, kSome };
  Waiting(Space& space, Kind kind, std::string name, const Deadline& deadline)
      : space_(space), kind_(kind), name_(std::move(name)) {
    MutexLock lock(space_.mutex_);
    while (kind_ == Kind::kAll && space_.is_in_collective_ && !space_.is_closed_)
      if (!wait_interruptibly(space_.changed_, space_.mutex_, deadline)) break;
    if (space_.is_closed_) {
      status_ = {Code::kUnavailable, "the space is being destroyed"};
    } else if (kind_ == Kind::kAll && space_.is_in_collective_) {
      status_ =
          end_of_wait("timeout: another thread of this process is in a collective of the space");
    } else {
      is_in_ = true;
      if (kind_ == Kind::kAll) space_.is_in_collective_ = true;
      space_.waits_.insert(name_);
      if (kind_ == Kind::kSome && space_.gathered_names_.size() < kMostGatheredNames)
        space_.gathered_names_.insert(name_);
    }
  }
  ~Waiting() {
    if (!is_in_) return;
    MutexLock lock(space_.mutex_);
    space_.waits_.erase(space_.waits_.find(name_));
    if (kind_ == Kind::kAll) space_.is_in_collective_ = false;
    space_.changed_.notify_all();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  // Whether it may begin.
  const Status& status() const { return status_; }

 private:
  Space& space_;
  const Kind kind_;
  const std::string name_;
  Status status_;
  bool is_in_ = false;
};

Space::Space(std::shared_ptr<Member> member, SpaceOptions options, std::string group)
    : member_(std::move(member)),
      options_(std::move(options)),
      group_name_(std::move(group)),
      numbers_(member_, group_name_ + "/number/"),
      exit_(member_, group_name_ + "/exit"),
      group_(member_->store(), group_name_, static_cast<int>(options_.rank),
             static_cast<int>(options_.ranks)) {}

Space::~Space() {
  close();
  member_->broker().retract(group_name_);
}

Result<std::unique_ptr<Space>> Space::create(std::shared_ptr<Member> member,
                                             const SpaceOptions& options, Deadline deadline) {
  MEMSPAN_PASS(check(options));
  const Introduction mine{
      .bytes = options.bytes, .host = member->host(), .broker_address = member->broker().address()};
  auto created = create_group(member->store(), options.name, static_cast<int>(options.rank),
                              static_cast<int>(options.ranks), mine.encode(), deadline);
  if (!created.is_ok()) return created.status();
  std::unique_ptr<Space> space(new Space(std::move(member), options, std::move(created->name)));
  MEMSPAN_PASS(space->read_parts(created->contributions));
  MEMSPAN_PASS(space->agree(space->prepare(deadline), deadline));
  MEMSPAN_PASS(space->agree(space->take_memory(deadline), deadline));
  space->member_->broker().retract(space->group_name_);  // all have it
  return space;
}

std::size_t Space::all_bytes() const {
  return options_.bytes * options_.ranks;
}

// Everybody comes to the same end here.
Status Space::read_parts(const std::vector<std::string>& parts) {
  std::vector<Introduction> members;
  for (const std::string& part : parts) {
    MEMSPAN_TRY_ASSIGN(members.emplace_back(), Introduction::decode(part),
                       "exchanging what each contributes");
    if (members.back().bytes != members.front().bytes)
      return {Code::kInvalidArgument,
              fmt::format("the sizes of the parts differ: rank {} says {} bytes, rank 0 said {}",
                          members.size() - 1, members.back().bytes, members.front().bytes)};
  }
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    is_near_.push_back(rank == options_.rank ||
                       (members[rank].host == member_->host() && member_->may_map()));
  const auto lowest = std::find(is_near_.begin(), is_near_.end(), true) - is_near_.begin();
  if (lowest != options_.rank) leader_ = members[static_cast<std::size_t>(lowest)].broker_address;
  return Status::ok();
}

// Reserves the addresses; the leader makes the memory, which takes none yet.
Status Space::prepare(const Deadline& deadline) {
  // A space without memory has an address all the same.
  const std::size_t bytes = align_up(std::max<std::size_t>(all_bytes(), 1), kHugePage);
  auto range = AddressRange::claim(
      member_, options_.name, bytes,
      fmt::format("{} ranks with {} bytes each", options_.ranks, options_.bytes), deadline);
  if (!range.is_ok()) return range.status();
  range_.emplace(std::move(range).value());
  if (all_bytes() == 0 || !leader_.empty()) return Status::ok();
  auto pages = Result<Pages>(Status(Code::kUnavailable, "not tried"));
  const bool is_alone = std::find(is_near_.begin(), is_near_.end(), false) == is_near_.end();
  if (all_bytes() >= kHugePage && is_alone)
    pages = Pages::create_huge(all_bytes(), "memspan-space");
  if (!pages.is_ok()) pages = Pages::create(all_bytes(), "memspan-space");
  if (!pages.is_ok()) return pages.status();
  MEMSPAN_TRY_ASSIGN(Fd descriptor, pages->duplicate(), "handing out the memory of the space");
  std::vector<Fd> descriptors;
  descriptors.push_back(std::move(descriptor));
  pages_.emplace(std::move(pages).value());
  return member_->broker().publish(group_name_, std::move(descriptors));
}

// Maps this host's memory, and takes that of the own part.
Status Space::take_memory(const Deadline& deadline) {
  if (all_bytes() == 0) return Status::ok();
  if (!leader_.empty()) {
    auto answer = member_->broker().fetch_and_wait(leader_, group_name_, deadline);
    if (!answer.is_ok()) return answer.status();
    if (answer->descriptors.size() != 1)
      return {Code::kInternal, "the memory of the space was not handed over"};
    MEMSPAN_TRY_ASSIGN(pages_, Pages::adopt(std::move(answer->descriptors[0])),
                       "taking over the memory of the space");
  }
  if (pages_->bytes() < all_bytes() || pages_->bytes() > range_->reservation().bytes())
    return {Code::kInternal, "the memory of the space has another size"};
  MEMSPAN_PASS(map_near_parts());
  if (pages_->is_huge()) return Status::ok();
  const std::size_t begin = options_.bytes * options_.rank;
  return commit_within_budget(*pages_, begin, options_.bytes, "the part of the space");
}

// The parts of ranks on other hosts have addresses, but no memory here. A page that a near part and
// a far one share is mapped.
Status Space::map_near_parts() {
  const auto end = is_near_.end();
  for (auto from = is_near_.begin(); from != end;) {
    from = std::find(from, end, true);
    const auto to = std::find(from, end, false);
    const auto index_of = [&](auto it) { return static_cast<std::size_t>(it - is_near_.begin()); };
    const std::size_t begin = index_of(from) * options_.bytes / page_size() * page_size();
    const std::size_t past =
        to == end ? pages_->bytes() : align_up(index_of(to) * options_.bytes, page_size());
    if (from != end) MEMSPAN_PASS(range_->reservation().map(begin, *pages_, begin, past - begin));
    from = to;
  }
  return Status::ok();
}

// Ok when all are; else what is wrong with the first who is not.
Status Space::agree(const Status& mine, const Deadline& deadline) {
  return memspan::agree([&](const std::string& text) { return all_gather(text, deadline); }, mine,
                        "rank");
}

Result<std::vector<std::string>> Space::all_gather(std::string_view mine, Deadline deadline) {
  const Waiting waiting(*this, Waiting::Kind::kAll, group_name_, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  return group_.allgather(mine, deadline);
}

Result<std::vector<std::string>> Space::all_gather_some(std::string_view key, std::uint32_t rank,
                                                        std::uint32_t size, std::string_view mine,
                                                        Deadline deadline) {
  const std::string name = fmt::format("{}/sub/{}", group_name_, key);
  const Waiting waiting(*this, Waiting::Kind::kSome, name, deadline);
  if (!waiting.status().is_ok()) return waiting.status();
  return allgather(member_->store(), name, static_cast<int>(rank), static_cast<int>(size), mine,
                   deadline);
}

// Ends what waits at the store under that name. The group's own object may be in use.
void Space::leave(const std::string& name, const Deadline& deadline) {
  if (name != group_name_) {
    static_cast<void>(leave_allgather(member_->store(), name, deadline));
    return;
  }
  StoreGroup place(member_->store(), name, static_cast<int>(options_.rank),
                   static_cast<int>(options_.ranks));
  static_cast<void>(place.leave(deadline));
}

// A wait that has not reached the store yet is ended by a later round.
void Space::close() {
  constexpr Duration kAgain = std::chrono::milliseconds(20);
  const Deadline deadline = Deadline::after(kEndPatience);
  std::set<std::string> names{group_name_};
  while (true) {
    {
      MutexLock lock(mutex_);
      is_closed_ = true;
      changed_.notify_all();
      names.insert(waits_.begin(), waits_.end());
      names.merge(gathered_names_);
    }
    for (const std::string& name : names) leave(name, deadline);
    MutexLock lock(mutex_);
    if (waits_.empty() || deadline.has_passed()) return;
    changed_.wait_until(mutex_, Deadline::after(kAgain));
    names.clear();
  }
}

void Space::set_context(std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  if (context_ == nullptr) context_ = std::make_unique<std::byte[]>(kMostContextBytes);
  std::copy(bytes.begin(), bytes.end(), context_.get());
  context_bytes_ = bytes.size();
}

std::span<std::byte> Space::context() const {
  MutexLock lock(mutex_);
  return {context_.get(), context_bytes_};
}

std::size_t Space::read_context(std::span<std::byte> into) const {
  MutexLock lock(mutex_);
  std::copy_n(context_.get(), std::min(into.size(), context_bytes_), into.begin());
  return context_bytes_;
}

}  // namespace memspan
