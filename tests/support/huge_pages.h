/* SPDX-License-Identifier: Apache-2.0
 * Which pages a mapping of this process has, and whether this system gives huge ones: for tests
 * that huge pages are really there. Asks the kernel alone, nothing of the library. */
#ifndef MEMSPAN_TESTS_SUPPORT_HUGE_PAGES_H
#define MEMSPAN_TESTS_SUPPORT_HUGE_PAGES_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a field of /proc/self/smaps, of the mapping that holds `address`; SIZE_MAX: there is
 * none. */
static inline size_t smaps_bytes(const void* address, const char* field) {
  const uintptr_t wanted = (uintptr_t)address;
  const size_t length = strlen(field);
  size_t found = SIZE_MAX;
  int is_here = 0;
  char line[512];
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) return found;
  while (fgets(line, sizeof line, smaps) != NULL) {
    uintptr_t begin = 0, end = 0;
    size_t kib = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      is_here = begin <= wanted && wanted < end;
    else if (is_here && strncmp(line, field, length) == 0 && line[length] == ':' &&
             sscanf(line + length + 1, "%zu", &kib) == 1)
      found = kib * 1024;
  }
  fclose(smaps);
  return found;
}

/* Whether the word in brackets is this one. */
static inline int is_thp_setting(const char* file, const char* word) {
  char path[128], line[256] = "", marked[64];
  FILE* setting;
  snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/%s", file);
  snprintf(marked, sizeof marked, "[%s]", word);
  setting = fopen(path, "r");
  if (setting == NULL) return 0;
  if (fgets(line, sizeof line, setting) == NULL) line[0] = '\0';
  fclose(setting);
  return strstr(line, marked) != NULL;
}

/* NULL where madvise() does what it is asked for; else why not. */
static inline const char* why_no_advice(void) {
  enum { kNoSuchAdvice = 9999 };
  static char page[2 * 4096];
  char* const place = page + (4096 - (uintptr_t)page % 4096) % 4096;
  return madvise(place, 4096, kNoSuchAdvice) != 0
             ? NULL
             : "this system takes any advice about memory and follows none, as QEMU's user mode";
}

/* NULL where a memfd can have a huge page now, by whichever way; else why not. */
static inline const char* why_no_huge_pages(void) {
  enum { kPopulateWrite = 23, kCollapse = 25 };
  const size_t kHuge = (size_t)2 << 20;
  const char* why = NULL;
  int descriptor;
  char* all;
  if (why_no_advice() != NULL) return why_no_advice();
  if (is_thp_setting("shmem_enabled", "deny")) return "huge pages of shared memory are denied here";
  if (is_thp_setting("shmem_enabled", "never") && is_thp_setting("enabled", "never"))
    return "huge pages are switched off here";
  descriptor = memfd_create("huge-page-test", MFD_CLOEXEC);
  if (descriptor < 0) return "this system has no memfd";
  all = (char*)mmap(NULL, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == (char*)MAP_FAILED || ftruncate(descriptor, (off_t)kHuge) != 0) {
    why = "there is no memory";
  } else {
    char* const place = all + (kHuge - (uintptr_t)all % kHuge) % kHuge;
    if (mmap(place, kHuge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
        MAP_FAILED) {
      why = "a memfd cannot be mapped";
    } else {
      madvise(place, kHuge, MADV_HUGEPAGE);
      if (madvise(place, 4096, kPopulateWrite) != 0)
        why = "this kernel does not populate mappings (Linux 5.14)";
      else if (smaps_bytes(place, "ShmemPmdMapped") != kHuge &&
               (!is_thp_setting("shmem_enabled", "never") || madvise(place, kHuge, kCollapse) != 0))
        why = "this kernel has no huge page to give, or does not collapse (Linux 6.1)";
    }
  }
  if (all != (char*)MAP_FAILED) munmap(all, 2 * kHuge);
  close(descriptor);
  return why;
}

#endif
