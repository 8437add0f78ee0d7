/* SPDX-License-Identifier: Apache-2.0
 * Streams of the host device, by one process. */
#define _GNU_SOURCE
#include <memspan/memspan.h>
#include <memspan/stream.h>
#include <pthread.h>
#include <smem/host/smem.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

/* Work of the stream waits at it until it is opened. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int32_t wait_at_the_gate(void* context) {
  (void)context;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return 0;
}

static int order[100];
static int done; /* by the stream's thread; read after a synchronisation */

static int32_t note(void* number) {
  order[done++] = *(int*)number;
  return 0;
}

static int32_t fail_with(void* code) {
  return *(int32_t*)code;
}

static int failed_with(int32_t code, int32_t expected, const char* words) {
  int is_right = code == expected && strstr(memspan_last_error(), words) != NULL;
  if (!is_right)
    fprintf(stderr, "code %d, text \"%s\", wanted %d and \"%s\"\n", (int)code, memspan_last_error(),
            (int)expected, words);
  return is_right && smem_get_last_err_code() == expected;
}

static void check_order(memspan_stream_t stream) {
  static int numbers[100];
  CHECK(memspan_stream_query(stream) == 0 && memspan_stream_synchronize(stream, 0) == 0);
  for (int i = 0; i < 100; ++i) {
    numbers[i] = i;
    CHECK(memspan_stream_call(stream, note, &numbers[i]) == 0);
  }
  CHECK(memspan_stream_synchronize(stream, UINT32_MAX) == 0 && done == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[i] == i);
}

static void check_time_out(memspan_stream_t stream) {
  pthread_mutex_lock(&gate);
  CHECK(memspan_stream_call(stream, wait_at_the_gate, NULL) == 0);
  CHECK(memspan_stream_query(stream) == MEMSPAN_STREAM_BUSY);
  CHECK(failed_with(memspan_stream_synchronize(stream, 0), SMEM_TIMEOUT, "timeout"));
  CHECK(failed_with(memspan_stream_synchronize(stream, 1), SMEM_TIMEOUT, "timeout"));
  CHECK(memspan_stream_query(stream) == MEMSPAN_STREAM_BUSY);
  pthread_mutex_unlock(&gate);
  CHECK(memspan_stream_synchronize(stream, 60000) == 0 && memspan_stream_query(stream) == 0);
}

static void check_failures(memspan_stream_t stream) {
  static int32_t first = -17, second = 4;
  CHECK(memspan_stream_call(stream, fail_with, &first) == 0);
  CHECK(memspan_stream_call(stream, fail_with, &second) == 0);
  CHECK(failed_with(memspan_stream_synchronize(stream, 60000), SMEM_ERROR, "returned -17"));
  CHECK(memspan_stream_synchronize(stream, 60000) == 0);
}

static memspan_stream_t own;
static int32_t of_own[2];

static int32_t use_own_stream(void* context) {
  (void)context;
  of_own[0] = memspan_stream_synchronize(own, 1);
  of_own[1] = memspan_stream_destroy(own);
  return 0;
}

static void check_bad_arguments(memspan_stream_t stream) {
  int here = 0;
  CHECK(failed_with(memspan_stream_create(NULL), SMEM_INVALID_PARAM, "stream is NULL"));
  CHECK(failed_with(memspan_stream_call(stream, NULL, NULL), SMEM_INVALID_PARAM, "function"));
  CHECK(failed_with(memspan_stream_query(NULL), SMEM_INVALID_PARAM, "handle is NULL"));
  CHECK(failed_with(memspan_stream_query(&here), SMEM_NOT_EXIST, "input handle is invalid"));
  CHECK(failed_with(memspan_stream_call(&here, note, NULL), SMEM_NOT_EXIST, "no stream"));
  CHECK(failed_with(memspan_stream_synchronize(&here, 0), SMEM_NOT_EXIST, "no stream"));
  CHECK(failed_with(memspan_stream_destroy(&here), SMEM_NOT_EXIST, "no stream"));
  own = stream;
  CHECK(memspan_stream_call(stream, use_own_stream, NULL) == 0);
  CHECK(memspan_stream_synchronize(stream, 60000) == 0);
  CHECK(of_own[0] == SMEM_INVALID_PARAM && of_own[1] == SMEM_INVALID_PARAM);
}

static void check_fork(memspan_stream_t stream) {
  pid_t child = fork();
  if (child == 0) {
    memspan_stream_t mine = NULL;
    static int number = 7;
    (void)number;
    int is_right = memspan_stream_query(stream) == SMEM_NOT_EXIST &&
                   memspan_stream_create(&mine) == 0 && memspan_stream_query(mine) == 0;
#if !defined(__SANITIZE_THREAD__) /* which ends a child of fork() that starts threads */
    is_right = is_right && memspan_stream_call(mine, note, &number) == 0 &&
               memspan_stream_synchronize(mine, 60000) == 0;
#endif
    is_right = is_right && memspan_stream_destroy(mine) == 0;
    _exit(is_right ? 0 : 1);
  }
  int state = -1;
  CHECK(child > 0 && waitpid(child, &state, 0) == child && state == 0);
}

static void check_destruction(memspan_stream_t stream) {
  static int number = 1;
  done = 0;
  for (int i = 0; i < 50; ++i) CHECK(memspan_stream_call(stream, note, &number) == 0);
  CHECK(memspan_stream_destroy(stream) == 0 && done == 50);
  CHECK(failed_with(memspan_stream_destroy(stream), SMEM_NOT_EXIST, "no stream"));
}

static void check_events(memspan_stream_t stream, memspan_stream_t other) {
  static int from = 7, to;
  int here = 0;
  memspan_event_t event = NULL;
  CHECK(memspan_event_create(&event) == 0 && event != NULL && memspan_event_query(event) == 0);
  CHECK(memspan_event_synchronize(event, 0) == 0);
  pthread_mutex_lock(&gate);
  CHECK(memspan_stream_call(stream, wait_at_the_gate, NULL) == 0);
  CHECK(memspan_event_record(event, stream) == 0);
  CHECK(memspan_stream_wait_event(other, event) == 0);
  CHECK(memspan_stream_copy(other, &to, &from, sizeof to) == 0);
  CHECK(memspan_event_query(event) == MEMSPAN_STREAM_BUSY);
  CHECK(failed_with(memspan_event_synchronize(event, 1), SMEM_TIMEOUT, "timeout"));
  CHECK(failed_with(memspan_stream_synchronize(other, 1), SMEM_TIMEOUT, "timeout") && to == 0);
  CHECK(memspan_event_destroy(event) == 0);
  pthread_mutex_unlock(&gate);
  CHECK(memspan_stream_synchronize(other, UINT32_MAX) == 0 && to == 7);
  CHECK(failed_with(memspan_event_destroy(event), SMEM_NOT_EXIST, "no event"));
  CHECK(failed_with(memspan_event_create(NULL), SMEM_INVALID_PARAM, "event is NULL"));
  CHECK(failed_with(memspan_event_record(&here, stream), SMEM_NOT_EXIST, "no event"));
  CHECK(failed_with(memspan_stream_copy(stream, NULL, &from, 4), SMEM_INVALID_PARAM, "dest"));
  CHECK(failed_with(memspan_stream_copy(&here, &to, &from, 4), SMEM_NOT_EXIST, "no stream"));
}

int main(void) {
  memspan_stream_t stream = NULL;
  memspan_stream_t other = NULL;
  CHECK(memspan_stream_create(&stream) == 0 && memspan_stream_create(&other) == 0);
  CHECK(stream != NULL && other != NULL && stream != other);
  check_order(stream);
  check_time_out(stream);
  check_failures(stream);
  check_bad_arguments(stream);
  check_events(stream, other);
  done = 0;
  check_fork(stream);
  check_destruction(stream);
  CHECK(memspan_stream_call(other, wait_at_the_gate, NULL) == 0); /* left to the end */
  return 0;
}
