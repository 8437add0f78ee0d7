// SPDX-License-Identifier: Apache-2.0
#include "observe/symbol_table.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace memspan {
namespace {

// A file in memory; empty when it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    struct stat info = {};
    if (::fstat(descriptor, &info) == 0 && info.st_size > 0) {
      bytes_ = static_cast<std::size_t>(info.st_size);
      begin_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (begin_ == MAP_FAILED) bytes_ = 0;
    }
    ::close(descriptor);
  }
  ~MappedFile() {
    if (bytes_ != 0) ::munmap(begin_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` of them at an offset; null if the file ends before.
  template <typename T>
  const T* at(std::size_t offset, std::size_t count = 1) const {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(static_cast<const char*>(begin_) + offset);
  }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

const Symbol* find(const MappedFile& file, const Section& table, std::uintptr_t value) {
  const std::size_t count = table.sh_size / sizeof(Symbol);
  const Symbol* const symbols = file.at<Symbol>(table.sh_offset, count);
  if (symbols == nullptr) return nullptr;
  const Symbol* const found = std::find_if(symbols, symbols + count, [&](const Symbol& one) {
    return ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_value <= value &&
           value - one.st_value < one.st_size;
  });
  return found == symbols + count ? nullptr : found;
}

}  // namespace

FoundSymbol find_symbol(const char* path, std::uintptr_t base, std::uintptr_t address) {
  FoundSymbol result;
  const MappedFile file(path);
  const Header* const header = file.at<Header>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return result;
  const std::uintptr_t bias = header->e_type == ET_EXEC ? 0 : base;
  const Section* const sections = file.at<Section>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return result;
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const Section& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const Symbol* const symbol = find(file, table, address - bias);
    const Section& names = sections[table.sh_link];
    if (symbol == nullptr || symbol->st_name >= names.sh_size) continue;
    const std::size_t room = std::min(names.sh_size - symbol->st_name, sizeof result.name - 1);
    const char* const name = file.at<char>(names.sh_offset + symbol->st_name, room);
    if (name == nullptr) continue;
    std::memcpy(result.name, name, strnlen(name, room));
    result.begin = symbol->st_value + bias;
    return result;
  }
  return result;
}

}  // namespace memspan
