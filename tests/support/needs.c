// SPDX-License-Identifier: Apache-2.0
#include "support/needs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the list of words has this one. */
static int has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = list; (at = strstr(at, word)) != NULL; at += length) {
    const int begins = at == list || at[-1] == ' ';
    if (begins && strchr(" \n", at[length]) != NULL) return 1;
  }
  return 0;
}

int emulator_lacks(const char* name) {
#ifdef MEMSPAN_TEST_IS_EMULATED
  return has_word("advice huge_pages seccomp user_namespaces ", name);
#else
  (void)name;
  return 0;
#endif
}

int machine_lacks(const char* name) {
  const char* const known = getenv("MEMSPAN_TEST_LACKS");
  if (known != NULL) return has_word(known, name);
  char command[4096], answer[256] = "";
  snprintf(command, sizeof command, "bash '" MEMSPAN_TEST_PROBE "' --lacks %s", name);
  FILE* const probe = popen(command, "r");
  if (probe == NULL || fgets(answer, sizeof answer, probe) == NULL || pclose(probe) != 0) {
    fprintf(stderr, "the probe did not answer: %s\n", command);
    abort();
  }
  return has_word(answer, name);
}
