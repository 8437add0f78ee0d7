// SPDX-License-Identifier: Apache-2.0
// Calls each function of the data path as often as its argument says. instructions.py counts.
// OpenSHMEM's are called on the PE itself: what has to be done to find the peer and to check the
// address is the same for every mapped peer. Transfers are with an endpoint of another process.
#include <arpa/inet.h>
#include <shmem.h>
#include <signal.h>
#include <smem/host/smem_trans.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 64 };
static const char kPeer[] = "127.0.0.1:1";
static const char kSelf[] = "127.0.0.1:2";

struct lent {
  void* ordinary;
  void* mapped;
};

static smem_trans_t endpoint(const char* store, const char* name) {
  smem_trans_config_t config;
  smem_trans_config_init(&config);
  config.role = SMEM_TRANS_BOTH;
  config.startConfigServer = name == kPeer;
  if (smem_trans_init(&config) != SMEM_OK) exit(1);
  smem_trans_t made = smem_trans_create(store, name, &config);
  if (made == NULL) exit(1);
  return made;
}

// Until it is killed.
static void lend(const char* store, int to) {
  smem_trans_t self = endpoint(store, kPeer);
  struct lent lent = {malloc(kBytes), smem_trans_malloc(self, kBytes)};
  if (smem_trans_register_mem(self, lent.ordinary, kBytes, 0) != SMEM_OK) exit(1);
  if (write(to, &lent, sizeof lent) != sizeof lent) exit(1);
  while (1) pause();
}

static void find_port(char* store, size_t room) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(probe, (struct sockaddr*)&address, length) != 0 ||
      getsockname(probe, (struct sockaddr*)&address, &length) != 0)
    exit(1);
  close(probe);
  snprintf(store, room, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
}

// Functions that instructions.py counts with all that they call.
__attribute__((noinline)) int ordinary_write(smem_trans_t self, void* here, void* there) {
  return smem_trans_write(self, here, kPeer, there, kBytes);
}
__attribute__((noinline)) int ordinary_read(smem_trans_t self, void* here, void* there) {
  return smem_trans_read(self, here, kPeer, there, kBytes);
}
__attribute__((noinline)) int mapped_write(smem_trans_t self, void* here, void* there) {
  return smem_trans_write(self, here, kPeer, there, kBytes);
}
__attribute__((noinline)) int mapped_read(smem_trans_t self, void* here, void* there) {
  return smem_trans_read(self, here, kPeer, there, kBytes);
}

static void transfer(int calls) {
  char store[64];
  int wire[2];
  struct lent lent;
  char here[kBytes] = {0};
  find_port(store, sizeof store);
  if (pipe(wire) != 0) exit(1);
  const pid_t peer = fork();
  if (peer == 0) lend(store, wire[1]);
  if (peer < 0 || read(wire[0], &lent, sizeof lent) != sizeof lent) exit(1);
  smem_trans_t self = endpoint(store, kSelf);
  // The first ones find the peer and map its memory.
  int failures = smem_trans_write(self, here, kPeer, lent.mapped, kBytes) |
                 smem_trans_read(self, here, kPeer, lent.mapped, kBytes);
  for (int i = 0; i < calls; i++) failures |= mapped_write(self, here, lent.mapped);
  for (int i = 0; i < calls; i++) failures |= mapped_read(self, here, lent.mapped);
  failures |= smem_trans_write(self, here, kPeer, lent.ordinary, kBytes);
  for (int i = 0; i < calls; i++) failures |= ordinary_write(self, here, lent.ordinary);
  for (int i = 0; i < calls; i++) failures |= ordinary_read(self, here, lent.ordinary);
  smem_trans_destroy(self, 0);
  smem_trans_uninit(0);
  kill(peer, SIGKILL);
  waitpid(peer, NULL, 0);
  if (failures != 0) exit(1);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 1;
  transfer(calls);
  shmem_init();
  long* there = shmem_calloc(8, sizeof *there);
  uint64_t* signal = shmem_calloc(1, sizeof *signal);
  long here[8] = {0};
  for (int i = 0; i < calls; i++) {
    shmem_long_p(there, i, 0);
    here[0] += shmem_long_g(there, 0);
    shmem_long_put(there, here, 1, 0);
    shmem_long_get(here, there, 1, 0);
    shmem_putmem_nbi(there, here, 8, 0);
    shmem_putmem_signal(there, here, 8, signal, 1, SHMEM_SIGNAL_SET, 0);
    shmem_long_atomic_inc(there, 0);
    here[1] += shmem_long_atomic_fetch_add(there, 1, 0);
    here[1] += shmem_long_atomic_fetch(there, 0);
    here[1] += shmem_long_test(there, SHMEM_CMP_NE, 0);
    shmem_fence();
    shmem_quiet();
  }
  shmem_finalize();
  return 0;
}
