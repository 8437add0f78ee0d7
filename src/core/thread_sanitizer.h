// SPDX-License-Identifier: Apache-2.0
// Annotations for ThreadSanitizer; empty in every other build.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEMSPAN_THREAD_SANITIZER_ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MEMSPAN_THREAD_SANITIZER_ 1
#endif

#ifdef MEMSPAN_THREAD_SANITIZER_
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace memspan {

// Between these two calls this thread reads and writes memory for another process. TSan sees
// neither the messages that order these accesses with those of our threads nor the accesses of a
// process that has mapped our memory. It would report each access as a race.
inline void begin_access_for_peer() {
#ifdef MEMSPAN_THREAD_SANITIZER_
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}
inline void end_access_for_peer() {
#ifdef MEMSPAN_THREAD_SANITIZER_
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

}  // namespace memspan
