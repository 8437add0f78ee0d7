// SPDX-License-Identifier: Apache-2.0
// memspan-kernels COMPILER ARGUMENTS...: the compiler's call with sources in AscendC, launches and
// all, understood. A launcher of compilers, as CMake's CXX_COMPILER_LAUNCHER is.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.h"
#include "command_line/environment.h"
#include "kernels/source.h"

namespace {

using Words = std::vector<std::string>;

constexpr const char* kHelp =
    "Usage: memspan-kernels COMPILER ARGUMENTS...\n"
    "\n"
    "Runs a C++ compiler on sources in AscendC: kernel<<<blocks, l2, stream>>>(arguments) "
    "launches\n"
    "on memspan's host device, and casts to __ubuf__ pointers are addresses in the block's "
    "buffer.\n"
    "The sources see MEMSPAN_DEVICE_CODE and USE_SIMT. In CMake: memspan_compile_kernels(TARGET).\n"
    "\n"
    "  memspan-kernels c++ -std=c++17 -Iinclude/aclshmem -Iinclude/cann -c kernel.cpp -o kernel.o\n"
    "\n"
    "  -h, --help     this text\n"
    "      --version  the version\n";

// The exit code of the program with these words; 1 with a line when it cannot be run.
int run(const Words& words) {
  const std::vector<char*> arguments = memspan::command_line::pointers_to(words);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(),
                                    memspan::environment());
  if (failed != 0) {
    std::fprintf(stderr, "memspan-kernels: cannot run \"%s\": %s\n", arguments[0],
                 std::strerror(failed));
    return 1;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ends_with_any(std::string_view word, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends)
    if (word.size() > end.size() && word.substr(word.size() - end.size()) == end) return true;
  return false;
}
bool is_source(std::string_view word) {
  return word.front() != '-' &&
         ends_with_any(word, {".cpp", ".cc", ".cxx", ".c++", ".C", ".asc", ".cce"});
}

// A compilation to an object: what is common to its two steps, and what is of one of them.
struct Compilation {
  Words common;        // compiler and options
  Words preprocesses;  // only of the first step: macros, includes, dependencies
  std::string source;
  std::string object;
  bool is_one = false;  // else the compiler gets the words unchanged
};

Compilation read(const Words& words) {
  Compilation read;
  read.common.push_back(words[0]);
  bool is_to_object = false;
  int sources = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto with_value = [&](Words& to) {
      to.push_back(word);
      if (i + 1 < words.size()) to.push_back(words[++i]);
    };
    if (word.empty()) continue;
    if (word == "-c") {
      is_to_object = true;
    } else if (word == "-o" && i + 1 < words.size()) {
      read.object = words[++i];
    } else if (word == "-E" || word == "-S" || word == "-M" || word == "-MM") {
      return read;
    } else if (word == "-MF" || word == "-MT" || word == "-MQ" || word == "-include" ||
               word == "-imacros" || word == "-isystem" || word == "-idirafter" ||
               word == "-iquote" || word == "-I" || word == "-D" || word == "-U") {
      with_value(read.preprocesses);
    } else if (word == "-MD" || word == "-MMD" || word == "-MP" || word.compare(0, 2, "-I") == 0 ||
               word.compare(0, 2, "-D") == 0 || word.compare(0, 2, "-U") == 0) {
      read.preprocesses.push_back(word);
    } else if (word == "-x") {
      ++i;  // each step passes it again
    } else if (is_source(word)) {
      read.source = word;
      ++sources;
    } else {
      read.common.push_back(word);
    }
  }
  read.is_one = is_to_object && sources == 1;
  if (read.object.empty()) {
    const std::size_t folder = read.source.rfind('/');
    const std::string name =
        folder == std::string::npos ? read.source : read.source.substr(folder + 1);
    read.object = name.substr(0, name.rfind('.')) + ".o";
  }
  return read;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The file with the preprocessed text, gone at the end.
class Intermediate {
 public:
  explicit Intermediate(std::string path) : path_(std::move(path)) {}
  ~Intermediate() { ::unlink(path_.c_str()); }
  Intermediate(const Intermediate&) = delete;
  Intermediate& operator=(const Intermediate&) = delete;
  const std::string& path() const { return path_; }

  bool translate() const {
    std::ifstream from(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
    if (!from) return false;
    std::ofstream to(path_, std::ios::binary | std::ios::trunc);
    to << memspan::to_cxx(text);
    return static_cast<bool>(to.flush());
  }

 private:
  std::string path_;
};

int compile(const Compilation& one) {
  const Intermediate text(one.object + ".kernels.ii");
  Words first = joined(one.common, one.preprocesses);
  const auto says = [&](std::string_view option) {
    return std::find(one.preprocesses.begin(), one.preprocesses.end(), option) !=
           one.preprocesses.end();
  };
  if ((says("-MD") || says("-MMD")) && !says("-MT") && !says("-MQ"))
    first = joined(first, {"-MT", one.object});
  first = joined(first, {"-DMEMSPAN_DEVICE_CODE", "-DMEMSPAN_KERNEL_SOURCE", "-DUSE_SIMT", "-E",
                         "-x", "c++", one.source, "-o", text.path()});
  if (const int code = run(first); code != 0) return code;
  if (!text.translate()) {
    std::fprintf(stderr, "memspan-kernels: cannot write \"%s\": %s\n", text.path().c_str(),
                 std::strerror(errno));
    return 1;
  }
  // The chip's compiler has attributes of its own.
  return run(joined(one.common, {"-Wno-attributes", "-x", "c++-cpp-output", "-c", text.path(), "-o",
                                 one.object}));
}

}  // namespace

int main(int count, char** values) {
  const Words words(values + 1, values + count);
  if (words.empty()) {
    std::fprintf(stderr, "memspan-kernels: no compiler is given; see memspan-kernels --help\n");
    return 2;
  }
  if (words[0] == "-h" || words[0] == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (words[0] == "--version") {
    std::printf("memspan-kernels (memspan) %s\n", MEMSPAN_VERSION);
    return 0;
  }
  if (words[0].front() == '-') {
    std::fprintf(stderr, "memspan-kernels: \"%s\" is not a compiler; see memspan-kernels --help\n",
                 words[0].c_str());
    return 2;
  }
  const Compilation one = read(words);
  return one.is_one ? compile(one) : run(words);
}
