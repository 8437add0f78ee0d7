/* SPDX-License-Identifier: Apache-2.0
 * A process that hears all that the members of a group tell each other while they meet: it gets
 * nothing of the group by it, neither as the same user nor as another. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capi/group_job.h"
#include "support/needs.h"

enum { kListener = 2, kMostWords = 64, kDone = 0, kRoundOfAddress = 0, kRoundOfMemory = 1 };

/* The abstract socket of this name, or -1. */
static int connect_to(const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  CHECK(strlen(name) < sizeof address.sun_path - 1);
  memcpy(address.sun_path + 1, name, strlen(name));
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  CHECK(made >= 0);
  const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  if (connect(made, (struct sockaddr*)&address, bytes) == 0) return made;
  close(made);
  return -1;
}

union control {
  char bytes[CMSG_SPACE(8 * sizeof(int))];
  struct cmsghdr header;
};

/* Says `text` and gives a descriptor along, as members do. */
static void greet(int to, char* text) {
  const int self = open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(self >= 0);
  union control control = {{0}};
  struct iovec piece = {text, strlen(text)};
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = CMSG_SPACE(sizeof self)};
  control.header = (struct cmsghdr){
      .cmsg_len = CMSG_LEN(sizeof self), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&control.header), &self, sizeof self);
  sendmsg(to, &message, MSG_NOSIGNAL); /* who is thrown out at once cannot send */
  close(self);
}

/* The answer has no descriptor: it is an end, or says that there is no such thing. */
static void get_nothing(int from) {
  char bytes[256];
  union control control;
  struct iovec piece = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &piece,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  const struct timeval limit = {30, 0};
  CHECK(setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  const ssize_t got = recvmsg(from, &message, 0);
  CHECK(got < 0 || message.msg_controllen == 0);
}

static void try_all_words(char* words[], int count) {
  int tried = 0;
  for (int name = 0; name < count; ++name)
    for (int secret = -1; secret < count; ++secret) {
      if (strncmp(words[name], "memspan-", 8) != 0) break;
      char text[kMostText];
      snprintf(text, sizeof text, "%s node/1", secret < 0 ? "" : words[secret]);
      const int to = connect_to(words[name]);
      CHECK(to >= 0);
      greet(to, text);
      get_nothing(to);
      close(to);
      ++tried;
    }
  CHECK(tried > 0);
}

static void listen_and_try(void) {
  while (atomic_load(&page->here[kRoundOfMemory]) < 2) sched_yield();
  char texts[2][kMostText];
  char* words[kMostWords];
  int count = 0;
  for (int member = 0; member < 2; ++member) {
    const char* const text = page->texts[kRoundOfAddress][member];
    uint32_t bytes = 0;
    memcpy(&bytes, text, sizeof bytes);
    CHECK(bytes < kMostText - sizeof bytes);
    memcpy(texts[member], text + sizeof bytes, bytes);
    for (uint32_t i = 0; i < bytes; ++i) /* lengths and numbers are between the words */
      if (!isgraph((unsigned char)texts[member][i]) || texts[member][i] == '=')
        texts[member][i] = ' ';
    texts[member][bytes] = 0;
    for (char* word = strtok(texts[member], " "); word != NULL; word = strtok(NULL, " ")) {
      CHECK(count < kMostWords);
      words[count++] = word;
    }
  }
  try_all_words(words, count);
  if (machine_lacks("other_users")) {
    printf("another user was not tried: needs=other_users\n");
  } else {
    const pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
      CHECK(setresuid(65534, 65534, 65534) == 0);
      try_all_words(words, count);
      exit(0);
    }
    int status = 1;
    CHECK(waitpid(other, &status, 0) == other && status == 0);
  }
  atomic_store(&page->words[kDone], 1);
}

/* Member 1 knows where to go, and goes when the listener has been there. */
static int exchange_before_the_listener(void* user, const void* mine, size_t bytes, void* all) {
  struct talk* self = user;
  const int round = self->round;
  const int code = exchange(user, mine, bytes, all);
  if (code == 0 && round == kRoundOfMemory && self->rank == 1) await_word(kDone, 1);
  return code;
}

static void run(int rank) {
  if (rank == kListener) {
    listen_and_try();
    return;
  }
  struct talk talk = {2, rank, 0};
  memspan_group_t group = NULL;
  CHECK(memspan_group_create(rank, 2, exchange_before_the_listener, &talk, kTimeoutMs, &group) ==
        SMEM_OK);
  CHECK(memspan_group_barrier(group) == SMEM_OK);
  CHECK(memspan_group_destroy(group) == SMEM_OK);
}

int main(void) {
  return run_members(3, run, NULL);
}
