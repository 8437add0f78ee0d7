// SPDX-License-Identifier: Apache-2.0
#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace memspan {

Result<Fd> open_output_file(const std::string& path, int flags, mode_t mode) {
  Fd file(open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, mode));
  if (file.is_valid()) return file;
  if (errno == ELOOP)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is a symbolic link, or there are too many on the way to it; name "
                              "the file itself",
                              path));
  return Status::from_errno("opening " + path);
}

}  // namespace memspan
