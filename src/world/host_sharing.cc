// SPDX-License-Identifier: Apache-2.0
// Members that can exchange texts become a job. Each publishes its identity, its host and the
// address of its descriptor broker. The leader of each node, its lowest rank, makes the node
// segment and the heap and publishes them; the others of the node fetch them. The leader watches
// the others, and they watch it.
#include <fmt/format.h>

#include <set>

#include "core/bytes.h"
#include "core/interrupt.h"
#include "store/recipes/contributions.h"
#include "world/membership.h"

namespace memspan::inline world {
namespace {

// The name of members in messages.
constexpr const char* kMemberKind = "PE";

constexpr std::string_view kRelease = "memspan " MEMSPAN_VERSION;

// Opens the broker. Every version begins with the release and the host's name, for messages.
Result<std::string> introduction(Membership& joined) {
  MEMSPAN_PASS_ASSIGN(joined.broker, DescriptorBroker::open());
  const Host host = joined.own_host ? *joined.own_host : Host::own();
  const ProcessIdentity own = ProcessIdentity::own();
  FieldWriter out;
  out(kRelease, host.name, host.id, kernel_identity(), own.process, own.pid_namespace,
      joined.broker->address(joined.channel));
  return out.take();
}

Result<MemberAddress> read_introduction(std::size_t rank, const std::string& text) {
  FieldReader in(text);
  std::string release;
  MemberAddress member;
  in(release, member.host.name);
  if (!in.is_ok() || release != kRelease)
    return Status(Code::kNotSupported,
                  fmt::format("PE {} on host {} runs {}, this one {}: all processes of a job must "
                              "have one version",
                              rank, in.is_ok() ? member.host.name : "?",
                              in.is_ok() ? release : "an older memspan", kRelease));
  in(member.host.id, member.kernel, member.process.process, member.process.pid_namespace,
     member.broker);
  if (!in.is_finished())
    return Status(Code::kInvalidArgument,
                  fmt::format("what PE {} says of itself cannot be read", rank));
  return member;
}

// Which members are on which node, and how those of different nodes reach each other.
Status find_nodes(Membership& joined) {
  const std::string& own_kernel = joined.members[joined.rank].kernel;
  std::vector<std::string> hosts;
  std::vector<std::string> names;
  Reach reach = Reach::kOneKernel;
  for (const MemberAddress& member : joined.members) {
    hosts.push_back(member.host.id);
    names.push_back(member.host.name);
    if (member.kernel != own_kernel) reach = Reach::kNetwork;
  }
  joined.nodes = NodeMap::of_hosts(hosts, names);
  for (std::size_t rank = 0; rank < joined.members.size(); ++rank)
    if (hosts[rank] == hosts[joined.rank] && joined.members[rank].kernel != own_kernel)
      return {Code::kInvalidArgument,
              fmt::format("PE {} and PE {} say that they are on one host ({}), and they are not; "
                          "MEMSPAN_HOST_ID has to differ",
                          rank, joined.rank, names[rank])};
  if (joined.nodes.is_one()) return Status::ok();
  MEMSPAN_TRY_ASSIGN(joined.carrier, choose_carrier(reach, joined.store_endpoint),
                     "choosing a carrier");
  return Status::ok();
}

Status introduce(Membership& joined, const Exchange& exchange) {
  MEMSPAN_TRY_ASSIGN(const std::vector<std::string> texts,
                     agree(exchange, introduction(joined), kMemberKind),
                     "waiting for all processes of the job");
  for (const std::string& text : texts) {
    MEMSPAN_TRY_ASSIGN(MemberAddress member, read_introduction(joined.members.size(), text),
                       "exchanging addresses");
    joined.members.push_back(std::move(member));
  }
  return Status::ok();
}

// The ranks of this process's node without the lowest.
std::vector<int> followers_in(const Membership& joined) {
  const std::vector<int>& all = joined.nodes.peers_of(joined.node());
  return {all.begin() + 1, all.end()};
}

// The name under which the leader publishes a member's memory.
std::string node_memory_name(int rank) {
  return fmt::format("node/{}", rank);
}

// The members that have fetched the node's memory; the leader watches them.
class Arrivals {
 public:
  explicit Arrivals(const std::vector<int>& awaited) : missing_(awaited.begin(), awaited.end()) {}

  void enter(int rank, Fetcher fetcher) {
    MutexLock lock(mutex_);
    watched_.push_back({rank, std::move(fetcher.process), std::move(fetcher.connection)});
    missing_.erase(rank);
    changed_.notify_all();
  }

  // While members are missing, calls `check` ten times a second; its failure ends the wait.
  // kTimeout names the missing ranks.
  Result<std::vector<PeerWatch::Watched>> wait(Deadline deadline,
                                               const std::function<Status()>& check) {
    constexpr auto kCheckEvery = std::chrono::milliseconds(100);
    while (true) {
      std::string missing;
      {
        MutexLock lock(mutex_);
        if (!missing_.empty() &&
            changed_.wait_until(mutex_, until_next_look(deadline.within(kCheckEvery))))
          continue;
        if (missing_.empty()) return std::move(watched_);
        missing = fmt::format("{}", fmt::join(missing_, ", "));
      }
      if (deadline.has_passed())
        return Status(Code::kTimeout,
                      fmt::format("ranks that did not come: {}{}", missing, kRanksMissing));
      if (is_interrupted()) return interruption();
      MEMSPAN_TRY(check(), "waiting for ranks " + missing);
    }
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<int> missing_ MEMSPAN_GUARDED_BY(mutex_);
  std::vector<PeerWatch::Watched> watched_ MEMSPAN_GUARDED_BY(mutex_);
};

Status open_host(Membership& joined, const std::shared_ptr<Arrivals>& arrivals) {
  MEMSPAN_TRY(make_host_memory(joined), "making the job's memory");
  constexpr std::string_view kDoing = "duplicating a descriptor";
  const auto shared = std::make_shared<std::vector<Fd>>(2);
  MEMSPAN_PASS_ASSIGN(shared->front(), duplicate(joined.segment->descriptor(), kDoing));
  MEMSPAN_PASS_ASSIGN(shared->back(), duplicate(joined.heap->descriptor(), kDoing));
  for (const int rank : followers_in(joined)) {
    Access access{.channel = joined.channel,
                  .processes = {joined.members[rank].process},
                  .fetched = [arrivals, rank](Fetcher fetcher) {
                    arrivals->enter(rank, std::move(fetcher));
                  }};
    MEMSPAN_PASS(joined.broker->publish(node_memory_name(rank), shared, std::move(access)));
  }
  return Status::ok();
}

// `ready`: whether this member may continue.
Status lead_host(Membership& joined, const Status& ready, const Exchange& exchange,
                 const std::function<Status()>& check, Deadline deadline) {
  const auto arrivals =
      std::make_shared<Arrivals>(followers_in(joined));  // owners: this and the broker
  MEMSPAN_TRY(agree(exchange, ready.is_ok() ? open_host(joined, arrivals) : ready, kMemberKind),
              "making this host's memory");
  auto watched = arrivals->wait(deadline, check);
  for (const int rank : followers_in(joined)) joined.broker->retract(node_memory_name(rank));
  if (!watched.is_ok())
    return watched.status().annotate("handing the memory to the other processes");
  MEMSPAN_TRY_ASSIGN(joined.detector, PeerWatch::start(*joined.segment, std::move(watched).value()),
                     "watching the others");
  return Status::ok();
}

Status follow_leader(Membership& joined, const Status& ready, const Exchange& exchange,
                     Deadline deadline) {
  MEMSPAN_TRY(agree(exchange, ready, kMemberKind), "waiting for the leader of this host");
  const int leader_rank = joined.nodes.leader_of(joined.node());
  const MemberAddress& leader = joined.members[leader_rank];
  MEMSPAN_TRY_ASSIGN(FetchedDescriptors fetched,
                     joined.broker->fetch_and_wait(leader.broker, node_memory_name(joined.rank),
                                                   deadline, leader.process),
                     "fetching the memory of this host");
  if (fetched.descriptors.size() != 2)
    return {Code::kInternal, fmt::format("the leader of this host sent {} descriptors instead of 2",
                                         fetched.descriptors.size())};
  MEMSPAN_TRY(take_host_memory(joined, std::move(fetched.descriptors[0]),
                               std::move(fetched.descriptors[1])),
              "taking over the memory");
  std::vector<PeerWatch::Watched> watched;
  watched.push_back({leader_rank, std::move(fetched.process), std::move(fetched.connection)});
  MEMSPAN_TRY_ASSIGN(joined.detector, PeerWatch::start(*joined.segment, std::move(watched)),
                     "watching the leader");
  return Status::ok();
}

}  // namespace

Status share_host(Membership& joined, const Exchange& exchange, Channel channel,
                  const std::function<Status()>& check, Deadline deadline) {
  joined.channel = channel;
  MEMSPAN_PASS(introduce(joined, exchange));
  const Status ready = find_nodes(joined);
  Status shared = joined.nodes.index_of(joined.rank) == 0
                      ? lead_host(joined, ready, exchange, check, deadline)
                      : follow_leader(joined, ready, exchange, deadline);
  shared = shared.is_ok() ? claim_rank(*joined.segment, joined.rank) : shared.annotate("joining");
  // No member continues before all are on the segment: an early end would look like a death.
  MEMSPAN_TRY(agree(exchange, shared, kMemberKind), "waiting for all processes of the job");
  joined.segment->decide_oversubscription(joined.nodes.peers_in(joined.node()));
  return Status::ok();
}

Result<Membership> join_by_exchange(int rank, int size, const Exchange& exchange, Duration limit,
                                    const std::string& host) {
  Membership joined(rank, size);
  if (!host.empty()) joined.own_host = Host{host, host};
  joined.how = "met the others in the caller's way";
  MEMSPAN_TRY(share_host(joined, exchange, Channel::kOpen, Status::ok, Deadline::after(limit)),
              "joining the job");
  joined.exchange = exchange;
  return joined;
}

}  // namespace memspan::inline world
