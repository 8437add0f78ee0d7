// SPDX-License-Identifier: Apache-2.0
#include "fabric/door.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/random.h"
#include "core/thread.h"
#include "core/unix_socket.h"
#include "core/wake_event.h"
#include "world/pidfd.h"

namespace memspan {
namespace {

constexpr std::size_t kMostVisitors = 256;  // more than that were not ours; the oldest goes
constexpr int kAgainMs = 10;  // after a door that was crowded, or descriptors that were used up
// With a pidfd before the other descriptors, or without one; or nothing is offered.
constexpr std::string_view kYes = "yes";
constexpr std::string_view kYesNoProcess = "yes, without process";
constexpr std::string_view kNo = "no";

Status check_same_user(const Fd& socket) {
  MEMSPAN_TRY_ASSIGN(uid_t user, unix_peer_user(socket), "checking the other end");
  if (user == geteuid()) return Status::ok();
  return {Code::kAuth,
          fmt::format("that process runs as user {}, this one as {}", user, geteuid())};
}

Result<DoorAnswer> read_answer(const Fd& socket) {
  auto message = unix_receive(socket, Deadline::after(Duration::zero()));
  if (!message.is_ok())
    return Status(Code::kUnavailable, "that process is gone, or does not know us");
  const bool has_process = message->bytes == kYes && !message->descriptors.empty();
  if (!has_process && message->bytes != kYesNoProcess)
    return Status(Code::kNotFound, "that process does not offer it any more");
  DoorAnswer answer;
  MEMSPAN_TRY_ASSIGN(answer.pid, unix_peer_process(socket), "asking at a door");
  if (has_process) {
    answer.process = std::move(message->descriptors.front());
    message->descriptors.erase(message->descriptors.begin());
  }
  answer.descriptors = std::move(message->descriptors);
  return answer;
}

// One that waits for an answer (kConnect, then kAnswer), or for the end of a process.
struct Question {
  enum class Stage { kConnect, kAnswer, kWatch };
  Stage stage = Stage::kConnect;
  std::string socket_name;
  std::string request;
  Fd socket;         // kAnswer
  int watched = -1;  // kWatch: borrowed
  Door::Done done;
  std::function<void()> ended;  // kWatch

  int descriptor() const { return stage == Stage::kWatch ? watched : socket.get(); }
};

}  // namespace

class Door::Loop {
 public:
  static Result<std::unique_ptr<Loop>> open() {
    auto loop = std::make_unique<Loop>();
    const std::string name = "memspan-" + random_hex(16);
    MEMSPAN_TRY_ASSIGN(loop->listener_, unix_listen(name), "opening this process's door");
    MEMSPAN_TRY_ASSIGN(loop->wake_, WakeEvent::create(), "opening this process's door");
    // Emulators and old kernels have none.
    if (auto self = open_pidfd(getpid()); self.is_ok()) loop->self_ = std::move(self).value();
    loop->nonce_ = random_hex(16);
    loop->ticket_ = name + " " + loop->nonce_;
    MEMSPAN_TRY_ASSIGN(loop->thread_, start_thread("a door", [raw = loop.get()] { raw->run(); }),
                       "opening this process's door");
    return loop;
  }
  Loop() = default;
  ~Loop() {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
    }
    wake_.ring();
    thread_.join();
  }

  const std::string& ticket() const { return ticket_; }

  Status offer(const std::string& name, std::vector<Fd> descriptors) {
    if (descriptors.size() >= kMostUnixDescriptors)
      return {Code::kInvalidArgument, fmt::format("{} descriptors are offered; allowed are {}",
                                                  descriptors.size(), kMostUnixDescriptors - 1)};
    MutexLock lock(mutex_);
    offers_.insert_or_assign(name, std::move(descriptors));
    return Status::ok();
  }

  void withdraw(const std::string& name) {
    MutexLock lock(mutex_);
    offers_.erase(name);
  }

  std::uint64_t add(Question question) {
    MutexLock lock(mutex_);
    const std::uint64_t id = ++last_question_;
    questions_.emplace(id, std::move(question));
    wake_.ring();
    return id;
  }

  void forget(std::uint64_t id) {
    MutexLock lock(mutex_);
    questions_.erase(id);
    if (std::this_thread::get_id() == thread_.get_id()) return;
    while (running_ == id) answered_.wait_until(mutex_, Deadline::never());
  }

 private:
  void run() {
    while (poll_once()) {
    }
  }

  // False when the loop is to end.
  bool poll_once() {
    const bool is_full = std::exchange(is_full_, false);
    std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0},
                               {is_full ? -1 : listener_.get(), POLLIN, 0}};
    const std::size_t visitors = visitors_.size();
    for (const Fd& visitor : visitors_) polled.push_back({visitor.get(), POLLIN, 0});
    std::vector<std::uint64_t> asked;
    bool is_to_connect = false;
    {
      MutexLock lock(mutex_);
      if (is_ending_) return false;
      for (const auto& [id, question] : questions_) {
        if (question.stage == Question::Stage::kConnect) {
          is_to_connect = true;
          continue;
        }
        asked.push_back(id);
        polled.push_back({question.descriptor(), POLLIN, 0});
      }
    }
    if (is_to_connect && connect_all()) return true;  // those have descriptors to poll now
    const int longest = is_to_connect || is_full ? kAgainMs : -1;
    if (poll(polled.data(), polled.size(), longest) < 0) return true;
    if (polled[0].revents != 0) wake_.silence();
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (polled[2 + visitors + i].revents != 0) finish(asked[i]);
    serve({polled.begin() + 2, polled.begin() + 2 + static_cast<std::ptrdiff_t>(visitors)});
    if (polled[1].revents != 0) let_in();
    return true;
  }

  // True when a question that was to connect is so no more.
  bool connect_all() {
    std::vector<std::pair<std::uint64_t, Status>> failed;
    bool is_changed = false;
    {
      MutexLock lock(mutex_);
      for (auto& [id, question] : questions_) {
        if (question.stage != Question::Stage::kConnect) continue;
        Status status = connect(question);
        if (status.code() == Code::kTimeout) continue;
        is_changed = true;
        if (!status.is_ok()) failed.emplace_back(id, std::move(status));
      }
    }
    for (auto& [id, status] : failed) finish(id, std::move(status));
    return is_changed;
  }

  static Status connect(Question& question) {
    auto socket = unix_connect_now(question.socket_name);
    if (socket.code() == Code::kTimeout) return socket.status();
    if (!socket.is_ok())
      return {Code::kUnavailable, "that process is gone: " + socket.status().message()};
    MEMSPAN_PASS(check_same_user(*socket));
    MEMSPAN_PASS(unix_send(*socket, question.request, {}));
    question.socket = std::move(socket).value();
    question.stage = Question::Stage::kAnswer;
    return Status::ok();
  }

  // Calls who asked, without the lock; `why` is set when there will be no answer.
  void finish(std::uint64_t id, Status why = Status::ok()) {
    Question question;
    {
      MutexLock lock(mutex_);
      auto found = questions_.extract(id);
      if (found.empty()) return;
      question = std::move(found.mapped());
      running_ = id;
    }
    if (question.stage == Question::Stage::kWatch)
      question.ended();
    else if (why.is_ok())
      question.done(read_answer(question.socket));
    else
      question.done(std::move(why));
    question = {};  // what it holds ends before anybody may believe that it is over
    MutexLock lock(mutex_);
    running_ = 0;
    answered_.notify_all();
  }

  void let_in() {
    auto visitor = unix_accept(listener_, Deadline::after(Duration::zero()));
    is_full_ = visitor.code() == Code::kSystem;
    if (!visitor.is_ok() || !check_same_user(*visitor).is_ok()) return;
    if (visitors_.size() == kMostVisitors) visitors_.pop_front();
    visitors_.push_back(std::move(visitor).value());
  }

  void serve(const std::vector<pollfd>& polled) {
    std::deque<Fd> quiet;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0)
        quiet.push_back(std::move(visitors_[i]));
      else
        answer(visitors_[i]);
    }
    visitors_ = std::move(quiet);
  }

  // A stranger gets no answer.
  void answer(const Fd& visitor) {
    auto message = unix_receive(visitor, Deadline::after(Duration::zero()));
    if (!message.is_ok() || !message->bytes.starts_with(nonce_ + " ")) return;
    MutexLock lock(mutex_);
    const auto offer = offers_.find(message->bytes.substr(nonce_.size() + 1));
    std::string_view reply = kNo;
    std::vector<int> descriptors;
    if (offer != offers_.end()) {
      reply = self_.is_valid() ? kYes : kYesNoProcess;
      if (self_.is_valid()) descriptors.push_back(self_.get());
      for (const Fd& descriptor : offer->second) descriptors.push_back(descriptor.get());
    }
    // One message on a fresh connection finds room, or nobody to read it.
    [[maybe_unused]] const Status sent = unix_send(visitor, reply, descriptors);
  }

  Fd listener_;
  WakeEvent wake_;
  Fd self_;
  std::string nonce_;
  std::string ticket_;
  std::deque<Fd> visitors_;  // only for the thread
  bool is_full_ = false;     // the same: nobody can be let in at the moment
  Mutex mutex_;
  ConditionVariable answered_;
  bool is_ending_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_question_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t running_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::vector<Fd>> offers_ MEMSPAN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Question> questions_ MEMSPAN_GUARDED_BY(mutex_);
  std::thread thread_;
};

Door::Door(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Door::~Door() = default;

Result<std::unique_ptr<Door>> Door::open() {
  auto loop = Loop::open();
  if (!loop.is_ok()) return loop.status();
  return std::unique_ptr<Door>(new Door(std::move(loop).value()));
}

const std::string& Door::ticket() const {
  return loop_->ticket();
}

Status Door::offer(const std::string& name, std::vector<Fd> descriptors) {
  return loop_->offer(name, std::move(descriptors));
}

void Door::withdraw(const std::string& name) {
  loop_->withdraw(name);
}

std::uint64_t Door::ask(const std::string& ticket, std::string_view name, Done done) {
  const std::size_t blank = ticket.find(' ');
  Question question;
  question.socket_name = ticket.substr(0, blank);
  question.request = fmt::format(
      "{} {}", blank == std::string::npos ? "" : std::string_view(ticket).substr(blank + 1), name);
  question.done = std::move(done);
  return loop_->add(std::move(question));
}

Result<DoorAnswer> Door::ask_and_wait(const std::string& ticket, std::string_view name,
                                      Deadline deadline) {
  struct Answer {
    Mutex mutex;
    ConditionVariable arrived;
    std::optional<Result<DoorAnswer>> value MEMSPAN_GUARDED_BY(mutex);
  };
  // Shared by this caller and the door's thread, whichever is done last.
  const auto answer = std::make_shared<Answer>();
  const std::uint64_t question = ask(ticket, name, [answer](Result<DoorAnswer> value) {
    MutexLock lock(answer->mutex);
    answer->value = std::move(value);
    answer->arrived.notify_all();
  });
  {
    MutexLock lock(answer->mutex);
    while (!answer->value && wait_interruptibly(answer->arrived, answer->mutex, deadline)) {
    }
  }
  forget(question);
  MutexLock lock(answer->mutex);
  if (answer->value) return std::move(*answer->value);
  return end_of_wait("that process does not answer at its door; it may be stopped");
}

std::uint64_t Door::watch(const Fd& process, std::function<void()> ended) {
  Question question;
  question.stage = Question::Stage::kWatch;
  question.watched = process.get();
  question.ended = std::move(ended);
  return loop_->add(std::move(question));
}

void Door::forget(std::uint64_t question) {
  loop_->forget(question);
}

}  // namespace memspan
