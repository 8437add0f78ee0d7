// SPDX-License-Identifier: Apache-2.0
// Transfers between two endpoints: to memory that the program has, next to process_vm_writev and
// process_vm_readv of 1024 pieces a call; and to memory of the library's, and of the program's with
// adopted pages, next to memcpy into memory that both processes share.
#include <memspan/transfer.h>
#include <smem/host/smem_trans.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "copies.h"
#include "example.h"
#include "measure.h"

namespace bench {
namespace {

using example::must;

constexpr const char* kNames[] = {"127.0.0.1:1", "127.0.0.1:2"};
constexpr std::size_t kPiecesOfACall = 1024;  // IOV_MAX
constexpr std::size_t kRegistered = std::size_t{1} << 30;
constexpr std::size_t kAdopted = std::size_t{256} << 20;

class Endpoint {
 public:
  // The initiator hosts the store, so it comes first and goes last.
  Endpoint(const char* store, int role) {
    smem_trans_config_t config;
    must("smem_trans_config_init", smem_trans_config_init(&config));
    config.role = role == kInitiator ? SMEM_TRANS_SENDER : SMEM_TRANS_RECEIVER;
    if (role == kInitiator) must("smem_create_config_store", smem_create_config_store(store));
    must("smem_trans_init", smem_trans_init(&config));
    handle_ = must("smem_trans_create", smem_trans_create(store, kNames[role], &config));
  }
  ~Endpoint() {
    smem_trans_destroy(handle_, 0);
    smem_trans_uninit(0);
  }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  smem_trans_t handle() { return handle_; }

 private:
  smem_trans_t handle_ = nullptr;
};

// Another process's memory, by the system's calls.
class Other {
 public:
  Other(pid_t process, char* base) : process_(process), base_(base) {}

  void read(std::size_t at, void* to, std::size_t bytes) {
    const iovec mine = {to, bytes}, theirs = {base_ + at, bytes};
    check(::process_vm_readv(process_, &mine, 1, &theirs, 1, 0), bytes);
  }
  void write(std::size_t at, const void* from, std::size_t bytes) {
    const iovec mine = {const_cast<void*>(from), bytes}, theirs = {base_ + at, bytes};
    check(::process_vm_writev(process_, &mine, 1, &theirs, 1, 0), bytes);
  }
  // Element by element of the two lists.
  void move(Direction direction, const std::vector<iovec>& mine, const std::vector<iovec>& theirs) {
    auto* const call = direction == Direction::kWrite ? ::process_vm_writev : ::process_vm_readv;
    for (std::size_t first = 0; first < mine.size(); first += kPiecesOfACall) {
      const std::size_t count = std::min(kPiecesOfACall, mine.size() - first);
      if (call(process_, &mine[first], count, &theirs[first], count, 0) < 0)
        example::leave(example::kFailed, std::string("process_vm: ") + std::strerror(errno));
    }
  }

 private:
  static void check(ssize_t moved, std::size_t bytes) {
    if (moved != static_cast<ssize_t>(bytes))
      example::leave(example::kFailed, std::string("process_vm: ") + std::strerror(errno));
  }
  const pid_t process_;
  char* const base_;
};

// What the owner lends.
struct Lent {
  pid_t process;
  char* memory;
};

// `shared` is nullptr for memory of the program's own.
class EndpointReach : public Reach {
 public:
  EndpointReach(Endpoint& endpoint, char* local, Lent lent, char* shared)
      : endpoint_(endpoint),
        local_(local),
        remote_(lent.memory),
        shared_(shared),
        other_(lent.process, lent.memory) {}

  char* local() override { return local_; }
  void prepare(const Workload& work, Direction direction) override {
    direction_ = direction;
    locals_.clear();
    remotes_.clear();
    bytes_.clear();
    mine_.clear();
    theirs_.clear();
    for (const Piece& piece : work.pieces) {
      locals_.push_back(local_ + piece.local);
      remotes_.push_back(remote_ + piece.remote);
      bytes_.push_back(piece.bytes);
      mine_.push_back({local_ + piece.local, piece.bytes});
      char* const base = shared_ == nullptr ? remote_ : shared_;
      theirs_.push_back({base + piece.remote, piece.bytes});
    }
  }
  void ours() override {
    const auto count = static_cast<std::uint32_t>(bytes_.size());
    const char* const peer = kNames[kOwner];
    smem_trans_t const self = endpoint_.handle();
    if (count == 1)
      must("smem_trans", direction_ == Direction::kWrite
                             ? smem_trans_write(self, locals_[0], peer, remotes_[0], bytes_[0])
                             : smem_trans_read(self, locals_[0], peer, remotes_[0], bytes_[0]));
    else
      must("smem_trans_batch",
           direction_ == Direction::kWrite
               ? smem_trans_batch_write(self, const_cast<const void**>(locals_.data()), peer,
                                        remotes_.data(), bytes_.data(), count)
               : smem_trans_batch_read(self, locals_.data(), peer,
                                       const_cast<const void**>(remotes_.data()), bytes_.data(),
                                       count));
  }
  void bare() override {
    if (shared_ == nullptr) return other_.move(direction_, mine_, theirs_);
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      const bool is_write = direction_ == Direction::kWrite;
      const iovec &to = is_write ? theirs_[i] : mine_[i], &from = is_write ? mine_[i] : theirs_[i];
      std::memcpy(to.iov_base, from.iov_base, from.iov_len);
    }
  }
  void peek(std::size_t at, void* to, std::size_t bytes) override { other_.read(at, to, bytes); }
  void poke(std::size_t at, const void* from, std::size_t bytes) override {
    other_.write(at, from, bytes);
  }

 private:
  Endpoint& endpoint_;
  char *const local_, *const remote_, *const shared_;
  Other other_;
  Direction direction_ = Direction::kWrite;
  std::vector<void*> locals_, remotes_;
  std::vector<std::size_t> bytes_;
  std::vector<iovec> mine_, theirs_;
};

// The owner lends what `lend` gives it, until it is told to go.
int own(Talk& talk, const char* store, const std::function<char*(Endpoint&)>& lend) {
  talk.hear<char>(kOwner);
  {
    Endpoint endpoint(store, kOwner);
    talk.tell(kInitiator, Lent{::getpid(), lend(endpoint)});
    talk.hear<char>(kOwner);
  }
  talk.tell(kInitiator, 'e');
  return 0;
}

int initiate(Talk& talk, const char* store, const std::function<bool(Endpoint&, Lent)>& work) {
  Endpoint endpoint(store, kInitiator);
  talk.tell(kOwner, 'j');
  const bool is_right = work(endpoint, talk.hear<Lent>(kInitiator));
  talk.tell(kOwner, 'e');
  talk.hear<char>(kInitiator);
  return is_right ? 0 : example::kFailed;
}

// The owner's memory, which its peers map, next to memory that both share.
int copy_shared(const char* prefix, const std::function<char*(Endpoint&)>& lend) {
  const example::StoreUrl store("auto");
  char* const shared = map_memory(options.memory, true);
  const int code = run_pair(
      [&](Talk& talk) {
        return initiate(talk, store.c_str(), [&](Endpoint& endpoint, Lent lent) {
          EndpointReach reach(endpoint, map_memory(options.memory, false), lent, shared);
          return measure_copies(prefix, reach);
        });
      },
      [&](Talk& talk) { return own(talk, store.c_str(), lend); });
  ::munmap(shared, options.memory);
  return code;
}

}  // namespace

int copy_ordinary() {
  const example::StoreUrl store("auto");
  return run_pair(
      [&](Talk& talk) {
        return initiate(talk, store.c_str(), [](Endpoint& endpoint, Lent lent) {
          EndpointReach reach(endpoint, map_memory(options.memory, false), lent, nullptr);
          return measure_copies("trans", reach);
        });
      },
      [&](Talk& talk) {
        return own(talk, store.c_str(), [](Endpoint& endpoint) {
          char* const memory = map_memory(options.memory, false);
          must("smem_trans_register_mem",
               smem_trans_register_mem(endpoint.handle(), memory, options.memory, 0));
          return memory;
        });
      });
}

int copy_mapped() {
  return copy_shared("mapped", [](Endpoint& endpoint) {
    void* const memory =
        must("smem_trans_malloc", smem_trans_malloc(endpoint.handle(), options.memory));
    std::memset(memory, 1, options.memory);
    return static_cast<char*>(memory);
  });
}

int copy_adopted() {
  return copy_shared("adopted", [](Endpoint& endpoint) {
    char* const memory = map_memory(options.memory, false);
    must("memspan_transfer_register_adopted",
         memspan_transfer_register_adopted(endpoint.handle(), memory, options.memory));
    return memory;
  });
}

namespace {

// `enter` puts the memory into the registration table.
void time_registering(const char* name, Endpoint& endpoint, void* memory, std::size_t bytes,
                      int count, int (*enter)(smem_trans_t, void*, std::size_t)) {
  std::vector<double> there, back;
  for (int i = 0; i < count; ++i) {
    const double began = example::seconds_now();
    must(name, enter(endpoint.handle(), memory, bytes));
    const double between = example::seconds_now();
    must("smem_trans_deregister_mem", smem_trans_deregister_mem(endpoint.handle(), memory));
    there.push_back((between - began) * 1e6);
    back.push_back((example::seconds_now() - between) * 1e6);
  }
  report(std::string("trans_") + name, bytes, "us", there);
  report(std::string("trans_de") + name, bytes, "us", back);
}

}  // namespace

// 1 GiB of which no page is there, and 256 MiB with adopted pages, with a peer that is told of it.
int register_memory() {
  const example::StoreUrl store("auto");
  return run_pair(
      [&](Talk& talk) {
        return initiate(talk, store.c_str(), [](Endpoint& endpoint, Lent) {
          void* const memory = ::mmap(nullptr, kRegistered, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
          if (memory == MAP_FAILED) example::leave(example::kFailed, "no addresses for 1 GiB");
          time_registering("register", endpoint, memory, kRegistered, 20 * options.repetitions,
                           [](smem_trans_t handle, void* at, std::size_t bytes) {
                             return smem_trans_register_mem(handle, at, bytes, 0);
                           });
          ::munmap(memory, kRegistered);
          char* const used = map_memory(kAdopted, false);
          time_registering("adopt", endpoint, used, kAdopted, options.repetitions,
                           memspan_transfer_register_adopted);
          ::munmap(used, kAdopted);
          return true;
        });
      },
      [&](Talk& talk) {
        return own(talk, store.c_str(), [](Endpoint&) -> char* { return nullptr; });
      });
}

}  // namespace bench
