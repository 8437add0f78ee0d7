/* SPDX-License-Identifier: Apache-2.0
 * An address at which nobody listens, for a test that wants a store there. C11 and C++. */
#ifndef MEMSPAN_TESTS_SUPPORT_FREE_URL_H
#define MEMSPAN_TESTS_SUPPORT_FREE_URL_H

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of the store's host: MEMSPAN_TEST_ADDRESS, where the tests' hosts are namespaces
 * (join_test_host). */
static inline const char* store_address(void) {
  const char* const address = getenv("MEMSPAN_TEST_ADDRESS");
  return address == NULL ? "127.0.0.1" : address;
}

/* Writes the URL of a port of this host, or returns 0. A socket that is bound there, but does not
 * listen, keeps other programs from being given the port until this process and its children end;
 * who asks for the port may listen at it. With MEMSPAN_TEST_ETCD=etcd://... (tests/etcd) it is that
 * store, under a prefix of its own. */
static inline int write_free_url(char* url, size_t size) {
  struct sockaddr_in address;
  struct sockaddr* const generic = (struct sockaddr*)&address;
  socklen_t length = sizeof address;
  const int on = 1;
  const int keeper = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const char* const etcd = getenv("MEMSPAN_TEST_ETCD");
  if (etcd != NULL) {
    static unsigned count;
    close(keeper);
    return snprintf(url, size, "%s/%x.%x", etcd, (unsigned)getpid(), ++count) < (int)size;
  }
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = inet_addr(store_address());
  if (keeper < 0 || setsockopt(keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(keeper, generic, length) != 0 || getsockname(keeper, generic, &length) != 0)
    return 0;
  return snprintf(url, size, "tcp://%s:%d", store_address(), ntohs(address.sin_port)) < (int)size;
}

#endif
