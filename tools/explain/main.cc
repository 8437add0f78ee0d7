// SPDX-License-Identifier: Apache-2.0
// memspan-explain: what a message of memspan means and what to do. A message that has a remedy ends
// with its identifier, and only the identifier is looked up; the wording of messages does not
// matter. The table is collected from the sources when memspan is built (collect_remedies.cmake).
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Remedy {
  std::string_view identifier;
  std::string_view meaning;
  std::string_view action;
};

constexpr Remedy kRemedies[] = {
#include "remedies.inc"
};

constexpr bool are_unique() {
  for (std::size_t i = 0; i < std::size(kRemedies); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (kRemedies[i].identifier == kRemedies[j].identifier) return false;
  return true;
}
static_assert(are_unique(), "two remedies have the same identifier (remedies.inc)");

constexpr const char* kHelp =
    "Usage: memspan-explain [IDENTIFIER | MESSAGE]...\n"
    "\n"
    "Explains a message of memspan that ends with [memspan-explain IDENTIFIER]: what it means and\n"
    "what to do. Give the identifier, or paste the message or lines of a log that contain it.\n"
    "Without an argument, it lists all identifiers.\n"
    "\n"
    "  memspan-explain heap-too-large\n"
    "  ./program 2>&1 | memspan-explain -\n"
    "\n"
    "  -              read the text from stdin\n"
    "  -h, --help     print this text\n"
    "      --version  print the version\n"
    "\n"
    "The exit code is 1 if the text contains no known identifier.\n";

constexpr std::string_view kMark = "[memspan-explain ";
constexpr std::string_view kBlanks = " \t\r\n";

// Words in lines of at most 80 characters, each line indented.
void print_wrapped(std::string_view text) {
  constexpr std::size_t kWidth = 78;
  while (!text.empty()) {
    std::size_t end = text.size() <= kWidth ? text.size() : text.rfind(' ', kWidth);
    if (end == std::string_view::npos) end = text.find(' ');
    if (end == std::string_view::npos) end = text.size();
    std::printf("  %.*s\n", static_cast<int>(end), text.data());
    text.remove_prefix(end < text.size() ? end + 1 : end);
  }
}

void print(const Remedy& remedy) {
  std::printf("%.*s\n", static_cast<int>(remedy.identifier.size()), remedy.identifier.data());
  print_wrapped(remedy.meaning);
  print_wrapped("Do: " + std::string(remedy.action));
}

const Remedy* find(std::string_view identifier) {
  for (const Remedy& remedy : kRemedies)
    if (remedy.identifier == identifier) return &remedy;
  return nullptr;
}

// The identifiers in the text, in their order, each once. A line that was wrapped behind
// "memspan-explain" is also read.
std::vector<std::string> identifiers_in(const std::string& text) {
  std::string words;
  for (const char c : text) {
    const bool is_blank = kBlanks.find(c) != std::string_view::npos;
    if (!is_blank || (!words.empty() && words.back() != ' ')) words.push_back(is_blank ? ' ' : c);
  }
  std::vector<std::string> found;
  for (std::size_t at = words.find(kMark); at != std::string::npos; at = words.find(kMark, at)) {
    at += kMark.size();
    const std::size_t end = words.find(']', at);
    if (end == std::string::npos) break;
    const std::string identifier = words.substr(at, end - at);
    bool is_new = true;
    for (const std::string& other : found) is_new = is_new && other != identifier;
    if (is_new) found.push_back(identifier);
  }
  return found;
}

std::string read_stdin() {
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, n);
  return text;
}

// True if there is a remedy for each of them; a line on stderr for each that has none.
bool explain(const std::vector<std::string>& identifiers) {
  bool is_known = true;
  bool is_first = true;
  for (const std::string& identifier : identifiers) {
    const Remedy* const remedy = find(identifier);
    if (remedy == nullptr) {
      std::fprintf(stderr,
                   "memspan-explain: \"%s\" is not an identifier of memspan " MEMSPAN_VERSION
                   "; memspan-explain without an argument lists them\n",
                   identifier.c_str());
      is_known = false;
      continue;
    }
    if (!is_first) std::printf("\n");
    is_first = false;
    print(*remedy);
  }
  return is_known;
}

void list() {
  std::vector<Remedy> sorted(std::begin(kRemedies), std::end(kRemedies));
  std::sort(sorted.begin(), sorted.end(),
            [](const Remedy& a, const Remedy& b) { return a.identifier < b.identifier; });
  for (const Remedy& remedy : sorted) {
    std::printf("%.*s\n", static_cast<int>(remedy.identifier.size()), remedy.identifier.data());
    print_wrapped(remedy.meaning);
  }
}

// Prints the help or the version, or refuses the option: the exit code.
int answer_option(std::string_view option) {
  if (option == "--help" || option == "-h") return std::fputs(kHelp, stdout) < 0;
  if (option == "--version") return std::puts("memspan-explain (memspan) " MEMSPAN_VERSION) < 0;
  std::fprintf(stderr, "memspan-explain: \"%.*s\" is not an option; see memspan-explain --help\n",
               static_cast<int>(option.size()), option.data());
  return 2;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    list();
    return 0;
  }
  std::vector<std::string> identifiers;
  std::string text;
  for (const std::string& word : words) {
    const bool is_one_word = word.find_first_of(kBlanks) == std::string::npos;
    // A message may begin with the name of an option.
    if (word.size() > 1 && word[0] == '-' && is_one_word) return answer_option(word);
    const bool is_identifier =
        find(word) != nullptr ||
        (words.size() == 1 && is_one_word && word != "-" && word.find('[') == std::string::npos);
    if (is_identifier)
      identifiers.push_back(word);
    else
      text += (word == "-" ? read_stdin() : word) + " ";
  }
  for (std::string& identifier : identifiers_in(text)) identifiers.push_back(std::move(identifier));
  if (!identifiers.empty()) return explain(identifiers) ? 0 : 1;
  std::fputs(
      "memspan-explain: the text contains no identifier, so its messages have no remedy; "
      "docs/failures.md explains the parts of a message and the error codes\n",
      stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run({argv + 1, argv + argc});
  // A full disk must not look like success.
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? code : 1;
}
