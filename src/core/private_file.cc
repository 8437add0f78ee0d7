// SPDX-License-Identifier: Apache-2.0
#include "core/private_file.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "core/environment.h"
#include "core/random.h"

namespace memspan::inline core {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

MEMSPAN_REMEDY(kPrivateFile, "private-file",
               "The file of a secret or a key is empty, a link, or open to other users.",
               "Name the file itself; run `chmod 600 FILE` and `chmod go-w FOLDER` as its owner.");

Status bad(std::string_view what, const std::string& path, std::string_view why) {
  return {Code::kInvalidArgument, fmt::format("{} \"{}\": {}{}", what, path, why, kPrivateFile)};
}

// A regular file that is open.
struct OpenFile {
  Fd file;
  struct stat about = {};
};

Result<OpenFile> open_to_read(std::string_view what, const std::string& path, int more_flags) {
  if (path.find('\0') != std::string::npos) return bad(what, "", "the path has a zero byte");
  OpenFile open{Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | more_flags))};
  if (!open.file.is_valid()) {
    if (errno == ENOENT)
      return Status(Code::kNotFound, fmt::format("{} \"{}\" does not exist", what, path));
    if (errno == ELOOP) return bad(what, path, "is a symbolic link");
    return bad(what, path, Status::from_errno("opening it").message());
  }
  if (::fstat(open.file.get(), &open.about) != 0) return Status::from_errno("fstat");
  if (!S_ISREG(open.about.st_mode)) return bad(what, path, "is not a regular file");
  return open;
}

Status check_parent(std::string_view what, const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  struct stat about = {};
  if (::stat(parent.empty() ? "." : parent.c_str(), &about) != 0)
    return bad(what, path, Status::from_errno("looking at its folder").message());
  if ((about.st_mode & kOthersWrite) != 0) return bad(what, path, "others may write to its folder");
  return Status::ok();
}

Result<std::string> read_all(std::string_view what, const std::string& path, int file,
                             std::size_t most) {
  std::string bytes;
  char chunk[4096];
  for (;;) {
    const ssize_t got = ::read(file, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad(what, path, Status::from_errno("reading it").message());
    if (got == 0) break;
    bytes.append(chunk, static_cast<std::size_t>(got));
    if (bytes.size() > most) return bad(what, path, fmt::format("has more than {} bytes", most));
  }
  if (bytes.empty()) return bad(what, path, "is empty");
  return bytes;
}

bool is_private_folder(const struct stat& about) {
  return S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & kOthers) == 0;
}

// An existing folder, not a link, that belongs to this user and is closed to others.
bool is_private_folder(const std::string& path) {
  struct stat about = {};
  return ::lstat(path.c_str(), &about) == 0 && is_private_folder(about);
}

// Creates the folder, or accepts an existing one that only this user may enter.
Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0 || (errno == EEXIST && is_private_folder(path)))
    return Status::ok();
  if (errno != EEXIST) return Status::from_errno("making " + path);
  return bad("the runtime folder", path, "is not a folder that only this user may enter");
}

// The administrator's runtime folders for this user: XDG_RUNTIME_DIR, or its usual place. The
// administrator also made the links in them.
std::vector<std::string> runtime_folders() {
  std::vector<std::string> folders;
  for (const std::string& path :
       {environment_or("XDG_RUNTIME_DIR", ""), fmt::format("/run/user/{}", geteuid())}) {
    struct stat about = {};
    if (!path.empty() && ::stat(path.c_str(), &about) == 0 && is_private_folder(about))
      folders.push_back(path + "/memspan");
  }
  return folders;
}

// The predictable one.
std::string temporary_folder() {
  return fmt::format("/tmp/memspan-{}", geteuid());
}

// The folders with unpredictable names.
std::vector<std::string> fallback_folders() {
  std::vector<std::string> folders;
  const std::string prefix = temporary_folder() + ".";
  std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir("/tmp"), ::closedir);
  if (entries == nullptr) return folders;
  while (const dirent* entry = ::readdir(entries.get())) {
    std::string path = fmt::format("/tmp/{}", entry->d_name);
    if (path.starts_with(prefix) && is_private_folder(path)) folders.push_back(std::move(path));
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

Result<std::string> read_private_file(std::string_view what, const std::string& path,
                                      std::size_t most) {
  MEMSPAN_PASS_ASSIGN(const OpenFile open, open_to_read(what, path, O_NOFOLLOW));
  if (open.about.st_uid != geteuid() && open.about.st_uid != 0)
    return bad(what, path, "belongs to another user");
  if ((open.about.st_mode & kOthers) != 0)
    return bad(what, path,
               fmt::format("is open to others (mode {:04o}); allowed is 0600 or less",
                           open.about.st_mode & 07777U));
  MEMSPAN_PASS(check_parent(what, path));
  return read_all(what, path, open.file.get(), most);
}

Result<std::string> read_public_file(std::string_view what, const std::string& path,
                                     std::size_t most) {
  MEMSPAN_PASS_ASSIGN(const OpenFile open, open_to_read(what, path, 0));
  return read_all(what, path, open.file.get(), most);
}

Result<Fd> write_private_file(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + "." + random_hex(8);
  Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 S_IRUSR | S_IWUSR));
  if (!file.is_valid()) return Status::from_errno("making " + fresh);
  int error = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  if (error == 0) error = write_all(file.get(), bytes);
  if (error == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return file;
  ::unlink(fresh.c_str());
  return Status::from_errno("writing " + path, error);
}

void remove_abandoned_files(const std::string& folder, std::string_view prefix) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (entries == nullptr) return;
  const int at = ::dirfd(entries.get());
  while (const dirent* entry = ::readdir(entries.get())) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    const Fd file(::openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    // We get the lock only if the writer has ended. The name must still refer to this file.
    struct stat held = {};
    struct stat named = {};
    if (file.is_valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
        ::fstat(file.get(), &held) == 0 &&
        ::fstatat(at, entry->d_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        held.st_ino == named.st_ino)
      ::unlinkat(at, entry->d_name, 0);
  }
}

Result<std::string> private_runtime_directory() {
  if (const std::vector<std::string> given = runtime_folders(); !given.empty()) {
    MEMSPAN_PASS(make_private_folder(given.front()));
    return given.front();
  }
  std::string path = temporary_folder();
  const Status why = make_private_folder(path);
  if (why.is_ok()) return path;
  if (const std::vector<std::string> known = fallback_folders(); !known.empty())
    return known.front();
  path += ".XXXXXX";
  if (::mkdtemp(path.data()) != nullptr) return path;
  return Status(Code::kInvalidArgument,
                fmt::format("{}; and {}; XDG_RUNTIME_DIR may name a folder that only this user may "
                            "enter",
                            why.message(), Status::from_errno("making " + path).message()));
}

std::vector<std::string> private_runtime_directories() {
  std::vector<std::string> folders = runtime_folders();
  folders.push_back(temporary_folder());
  std::erase_if(folders, [](const std::string& path) { return !is_private_folder(path); });
  for (std::string& path : fallback_folders()) folders.push_back(std::move(path));
  return folders;
}

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

}  // namespace memspan::inline core
