// SPDX-License-Identifier: Apache-2.0
// Several jobs of one process (CANN SHMEM's instances): each has its own PEs, heap, teams and
// store. The PEs of instance 1 are those of instance 0 in the other direction; instance 255 is of
// two of them.
#include "instances.h"

#include <aclshmem.h>
#include <arpa/inet.h>
#include <memspan/launch.h>
#include <memspan/memspan.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int rank = -1;
int ranks = 0;

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", rank, __LINE__, #condition, \
                   memspan_last_error());                                           \
      std::_Exit(1);                                                                \
    }                                                                               \
  } while (false)

// With INSTANCES_BY_ID other instances start by unique ids, which works among hosts, else at ports
// of SHMEM_INSTANCE_PORT_RANGE.
const bool by_id = std::getenv("INSTANCES_BY_ID") != nullptr;
constexpr int kPorts = 10;

// In instance 0: what one process tells others before they start the next.
struct Box {
  aclshmemx_uniqueid_t id;
  std::int64_t first_port;
  std::int32_t letters;  // so many came
};
Box* box = nullptr;
std::int32_t letters = 0;

// From `writer` to PEs 0 to count - 1 of instance 0, the current one.
void tell(int writer, int count) {
  ++letters;
  if (rank == writer)
    for (int pe = 0; pe < count; ++pe)
      aclshmemx_putmem_signal(box, box, offsetof(Box, letters), &box->letters, letters,
                              ACLSHMEM_SIGNAL_SET, pe);
  aclshmem_int32_wait_until(&box->letters, ACLSHMEM_CMP_EQ, letters);
}

int listen_at(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return socket;
  ::close(socket);
  return -1;
}

// The first of kPorts that nobody has.
int find_ports() {
  for (int first = 20000 + getpid() % 1000 * 10; first < 32000; first += kPorts) {
    std::vector<int> held;
    for (int i = 0; i < kPorts; ++i)
      if (const int one = listen_at(first + i); one >= 0) held.push_back(one);
    for (const int one : held) ::close(one);
    if (held.size() == kPorts) return first;
  }
  return -1;
}

void share_ports() {
  if (rank == 0) box->first_port = find_ports();
  tell(0, ranks);
  CHECK(box->first_port > 0);
  const std::string range =
      std::to_string(box->first_port) + ":" + std::to_string(box->first_port + kPorts - 1);
  setenv("SHMEM_INSTANCE_PORT_RANGE", range.c_str(), 1);
}

struct Wish {
  std::uint64_t instance;
  int pe, pes;
  int root;  // PE 0 of it, in instance 0
};

aclshmemx_init_attr_t attributes_of(const Wish& wish) {
  aclshmemx_init_attr_t attributes{};
  attributes.my_pe = wish.pe;
  attributes.n_pes = wish.pes;
  attributes.local_mem_size = std::size_t{4} << 20;
  attributes.instance_id = wish.instance;
  std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "tcp://127.0.0.1:0");
  return attributes;
}

void start(const Wish& wish) {
  aclshmemx_init_attr_t attributes = attributes_of(wish);
  aclshmemx_bootstrap_t how = ACLSHMEMX_INIT_WITH_DEFAULT;
  if (by_id && wish.instance != 0) {
    if (rank == wish.root) CHECK(aclshmemx_get_uniqueid(&box->id) == 0);
    tell(wish.root, wish.pes);
    attributes.comm_args = &box->id;
    how = ACLSHMEMX_INIT_WITH_UNIQUEID;
  }
  CHECK(aclshmemx_init_attr(how, &attributes) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_instance_ctx_get()->id == wish.instance);
  CHECK(aclshmem_my_pe() == wish.pe && aclshmem_n_pes() == wish.pes);
}

void refuse(const Wish& wish, const char* place, const char* because) {
  aclshmemx_init_attr_t attributes = attributes_of(wish);
  std::snprintf(attributes.ip_port, sizeof attributes.ip_port, "%s", place);
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &attributes) == ACLSHMEM_INVALID_VALUE);
  CHECK(std::strstr(memspan_last_error(), because) != nullptr);
}

// Every PE writes to the next one, and a team of the even ones adds up, by a stream as well.
struct Job {
  explicit Job(std::uint64_t number) : instance(number) {
    words = static_cast<std::int64_t*>(aclshmem_calloc(4, sizeof(std::int64_t)));
    CHECK(words != nullptr);
    const int half = (aclshmem_n_pes() + 1) / 2;
    CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 2, half, &even) == 0);
    CHECK(memspan_stream_create(&stream) == 0);
  }

  void work(std::int64_t value) {
    CHECK(aclshmemx_instance_ctx_set(instance) == 0);
    const int me = aclshmem_my_pe();
    const int pes = aclshmem_n_pes();
    aclshmem_int64_p(words, value + me, (me + 1) % pes);
    aclshmem_barrier_all();
    CHECK(words[0] == value + (me + pes - 1) % pes);
    if (even != ACLSHMEM_TEAM_INVALID) {
      CHECK(aclshmem_team_n_pes(even) == (pes + 1) / 2 && aclshmem_team_my_pe(even) == me / 2);
      aclshmem_barrier(even);
    }
    CHECK(memspan::launch(stream, 2, instance_kernel, words, instance, value) == 0);
    // The next instance's choice waits for it.
  }

  void end() {
    CHECK(aclshmemx_instance_ctx_set(instance) == 0);
    CHECK(memspan_stream_destroy(stream) == 0);
    aclshmem_free(words);
    CHECK(aclshmemx_finalize(instance) == 0);
    CHECK(aclshmemx_finalize(instance) == ACLSHMEM_INVALID_VALUE);
    CHECK(aclshmemx_instance_ctx_set(instance) == ACLSHMEM_INVALID_VALUE);
  }

  std::uint64_t instance;
  std::int64_t* words = nullptr;
  aclshmem_team_t even = ACLSHMEM_TEAM_INVALID;
  memspan_stream_t stream = nullptr;
};

}  // namespace

int main(int argc, char**) {
  rank = std::atoi(std::getenv("RANK"));
  ranks = std::atoi(std::getenv("WORLD_SIZE"));
  start({0, rank, ranks, 0});
  box = static_cast<Box*>(aclshmem_calloc(1, sizeof(Box)));
  CHECK(box != nullptr);
  refuse({1, 0, 2, 0}, "tcp://127.0.0.1:0", "SHMEM_INSTANCE_PORT_RANGE=FIRST:LAST");
  share_ports();
  Job first(0);
  refuse({200, 0, 2, 0}, "tcp://127.0.0.1:0", "has ports for 0 to 9");
  CHECK(aclshmemx_instance_ctx_get()->id == 0);
  start({1, ranks - 1 - rank, ranks, ranks - 1});
  Job second(1);
  // All instances end with the process.
  if (argc > 1) return 0;
  for (int round = 0; round < 5; ++round) {
    first.work(100 * round + 1000);
    second.work(100 * round + 2000);
  }
  CHECK(aclshmem_team_n_pes(ACLSHMEM_TEAM_WORLD) == ranks);
  // An instance that there is, is chosen.
  aclshmemx_init_attr_t again = attributes_of({0, rank, ranks, 0});
  CHECK(aclshmemx_init_attr(ACLSHMEMX_INIT_WITH_DEFAULT, &again) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_instance_ctx_get()->id == 0 && aclshmem_my_pe() == rank);
  if (rank < 2 && ranks > 1) {
    start({9, 1 - rank, 2, 1});
    Job third(9);
    third.work(7);
    third.end();
    // It may be made again, and 0 is current without it.
    CHECK(aclshmemx_instance_ctx_get()->id == 0);
    start({9, rank, 2, 0});
    CHECK(aclshmem_finalize() == 0);
  }
  CHECK(aclshmemx_instance_ctx_set(256) == ACLSHMEM_INVALID_VALUE);
  first.work(5000);
  second.work(6000);
  // The instance that is not current ends first.
  CHECK(aclshmemx_instance_ctx_set(0) == 0);
  second.end();
  CHECK(aclshmemx_instance_ctx_get()->id == 0);
  first.work(8000);
  aclshmem_free(box);
  first.end();
  CHECK(aclshmemx_init_status() == ACLSHMEM_STATUS_NOT_INITIALIZED);
  return 0;
}
