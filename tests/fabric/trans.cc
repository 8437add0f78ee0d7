// SPDX-License-Identifier: Apache-2.0
#include "fabric/trans.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace trans {

smem_trans_t create(const char* url, const char* name, smem_trans_role_t role) {
  smem_trans_config_t config;
  EXPECT_EQ(smem_trans_config_init(&config), SMEM_OK);
  config.role = role;
  config.initTimeout = 20;
  EXPECT_EQ(smem_trans_init(&config), SMEM_OK);
  const smem_trans_t handle = smem_trans_create(url, name, &config);
  EXPECT_NE(handle, nullptr) << smem_get_last_err_msg();
  return handle;
}

static unsigned char* pages_at(void* wanted, std::size_t bytes, int byte) {
  void* made = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(made, MAP_FAILED);
  std::memset(made, byte, bytes);
  return static_cast<unsigned char*>(made);
}

unsigned char* fresh_pages(std::size_t bytes, int byte) {
  return pages_at(nullptr, bytes, byte);
}

unsigned char* lone_pages(std::size_t bytes, int byte) {
  void* const low = reinterpret_cast<void*>(0x5000'0000);  // free for programs under all sanitizers
  unsigned char* const made = pages_at(low, bytes, byte);
  EXPECT_EQ(made, low);
  return made;
}

unsigned char* offer_pages(smem_trans_t endpoint, std::size_t bytes, int wire) {
  auto* memory = fresh_pages(bytes, 7);
  EXPECT_EQ(smem_trans_register_mem(endpoint, memory, bytes, 0), SMEM_OK);
  say(wire, memory);
  return memory;
}

bool all_are(const void* bytes, std::size_t count, int value) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  return std::all_of(first, first + count, [&](unsigned char byte) { return byte == value; });
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

testing::AssertionResult says(const char* words) {
  const std::string text = smem_get_last_err_msg();
  if (text.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << words << "\"";
}

}  // namespace trans
