/* SPDX-License-Identifier: Apache-2.0
 * hello: the smallest whole program. Every PE (process) writes a greeting into the memory of the PE
 * to its right, which takes no part in it: that is a put.
 *
 *   oshrun -n 4 ./hello
 */
#include "example.h"

#include <string.h>

enum { kLength = 64 };

static void write_greeting(char* text, int from, int to) {
  snprintf(text, kLength, "hello PE %d, I am PE %d", to, from);
}

int main(int argc, char** argv) {
  shmem_init();
  read_arguments("hello", argc, argv, NULL, 0);
  int me = shmem_my_pe(), pes = shmem_n_pes();
  int right = (me + 1) % pes, left = (me + pes - 1) % pes;
  double start = seconds_now();

  /* Symmetric memory: every PE has a block of its own, and the address that a PE knows its block by
   * means the same block of any other PE in calls that name a PE. All PEs must call shmem_malloc,
   * with the same size. */
  char* inbox = symmetric("hello", shmem_malloc(kLength));

  char greeting[kLength];
  write_greeting(greeting, me, right);
  shmem_putmem(inbox, greeting, kLength, right); /* my greeting, into the inbox of `right` */
  shmem_barrier_all(); /* all puts of all PEs are complete after it, so my inbox is full */

  char expected[kLength];
  write_greeting(expected, left, me);
  long wrong = strcmp(inbox, expected) != 0;

  char heard[kLength];
  memcpy(heard, inbox, kLength);
  heard[kLength - 1] = '\0';
  shmem_free(inbox);
  int major, minor;
  shmem_info_get_version(&major, &minor);
  return finish("hello", seconds_now() - start, wrong, "OpenSHMEM %d.%d, PE 0 was told \"%s\"",
                major, minor, heard);
}
