// SPDX-License-Identifier: Apache-2.0
// A fresh folder for one test, which only this user may enter.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace memspan {

// Removed with all that is in it when destroyed. Not copyable.
class PrivateFolder {
 public:
  PrivateFolder() : path_((std::filesystem::temp_directory_path() / "memspan-XXXXXX").string()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);  // which makes it with mode 0700
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace memspan
