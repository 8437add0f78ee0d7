// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "job.h"

namespace memspan::multi {
namespace {

TEST(InitTest, EveryProcessKnowsItsPlace) {
  EXPECT_GE(me(), 0);
  EXPECT_LT(me(), peers());
  if (const char* size = std::getenv("WORLD_SIZE")) {
    EXPECT_EQ(peers(), std::atoi(size));
  }
}

TEST(InitTest, SaysWhatItIs) {
  int major = 0;
  int minor = 0;
  shmem_info_get_version(&major, &minor);
  EXPECT_EQ(major, SHMEM_MAJOR_VERSION);
  EXPECT_EQ(minor, SHMEM_MINOR_VERSION);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  EXPECT_NE(std::strstr(name, "memspan"), nullptr);
  EXPECT_STREQ(name, SHMEM_VENDOR_STRING);
}

TEST(InitTest, CountsNestedInitAndFinalize) {
  shmem_init();
  int provided = -1;
  EXPECT_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
  EXPECT_GE(provided, SHMEM_THREAD_MULTIPLE);
  shmem_finalize();
  shmem_finalize();
  shmem_barrier_all();
}

TEST(InitTest, EndsAndStartsAgain) {
  shmem_finalize();
  for (int round = 0; round < 5; ++round) {
    shmem_init();
    {
      Symmetric<long> word(1);
      shmem_long_atomic_add(word.get(), 1, 0);
      shmem_barrier_all();
      EXPECT_EQ(word[0], me() == 0 ? peers() : 0);
      shmem_barrier_all();
    }
    shmem_finalize();
  }
  shmem_init();  // what the environment of the tests finalises
}

}  // namespace
}  // namespace memspan::multi
