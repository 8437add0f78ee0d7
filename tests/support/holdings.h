/* SPDX-License-Identifier: Apache-2.0
 * What this process holds: for tests that watch that it does not grow. */
#ifndef MEMSPAN_TESTS_SUPPORT_HOLDINGS_H
#define MEMSPAN_TESTS_SUPPORT_HOLDINGS_H

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

static inline long count_entries(const char* folder) {
  long count = 0;
  DIR* entries = opendir(folder);
  if (entries == NULL) return -1;
  while (readdir(entries) != NULL) ++count;
  closedir(entries);
  return count - 2;
}

/* KiB of private memory; shared pages are the heap's, which a job takes and gives back whole. */
static inline long private_kib(void) {
  long kib = -1;
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return kib;
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "RssAnon: %ld", &kib) == 1) break;
  fclose(status);
  return kib;
}

/* "holds CYCLE KIB DESCRIPTORS THREADS MAPPINGS". */
static inline void say_holdings(long cycle) {
  long mappings = 0;
  int c;
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps != NULL) {
    while ((c = fgetc(maps)) != EOF) mappings += c == '\n';
    fclose(maps);
  }
  printf("holds %ld %ld %ld %ld %ld\n", cycle, private_kib(), count_entries("/proc/self/fd"),
         count_entries("/proc/self/task"), mappings);
}

#endif
