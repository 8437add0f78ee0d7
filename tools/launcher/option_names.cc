// SPDX-License-Identifier: Apache-2.0
#include "launcher/option_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace memspan::launcher {
namespace {

struct Name {
  std::string_view name;
  Meaning meaning;
  std::string_view reason = {};  // of a refusal
};

constexpr std::string_view kPlaces =
    "-n N says how many processes there are, and --hosts a:2,b:2 where";
constexpr std::string_view kSettings = "settings are variables here: --env NAME=VALUE";
constexpr std::string_view kPrograms = "several programs are written in one line: a : -n 1 b";

constexpr Name kNames[] = {
    {"n", Meaning::kProcesses},
    {"np", Meaning::kProcesses},
    {"ntasks", Meaning::kProcesses},
    {"env", Meaning::kVariable},
    {"x", Meaning::kExport},
    {"wdir", Meaning::kFolder},
    {"wd", Meaning::kFolder},
    {"chdir", Meaning::kFolder},
    {"label", Meaning::kLabel},
    {"l", Meaning::kLabel},
    {"tag-output", Meaning::kLabel},
    {"prepend-rank", Meaning::kLabel},
    {"output", Meaning::kOutput},
    {"timeout", Meaning::kTimeout},
    {"stacks-on-timeout", Meaning::kStacks},
    {"get-stack-traces", Meaning::kStacks},
    {"bind", Meaning::kBind},
    {"bind-to", Meaning::kBind},
    {"keep-going", Meaning::kKeepGoing},
    {"h", Meaning::kHelp},
    {"help", Meaning::kHelp},
    {"V", Meaning::kVersion},
    {"version", Meaning::kVersion},
    {"H", Meaning::kHosts},
    {"host", Meaning::kHosts},
    {"hosts", Meaning::kHosts},
    {"f", Meaning::kHostFile},
    {"hostfile", Meaning::kHostFile},
    {"machinefile", Meaning::kHostFile},
    {"remote-shell", Meaning::kRemoteShell},
    {"remote-oshrun", Meaning::kRemoteOshrun},
    {"simulate-hosts", Meaning::kSimulateHosts},
    {"oversubscribe", Meaning::kNothing},
    {"allow-run-as-root", Meaning::kNothing},
    {"genvall", Meaning::kNothing},
    {"envall", Meaning::kNothing},
    {"mca", Meaning::kRefused, kSettings},
    {"prtemca", Meaning::kRefused, kSettings},
    {"pmixmca", Meaning::kRefused, kSettings},
    {"genv", Meaning::kRefused, kSettings},
    {"map-by", Meaning::kRefused, kPlaces},
    {"rank-by", Meaning::kRefused, kPlaces},
    {"N", Meaning::kRefused, kPlaces},
    {"nodes", Meaning::kRefused, kPlaces},
    {"npernode", Meaning::kRefused, kPlaces},
    {"ppn", Meaning::kRefused, kPlaces},
    {"app", Meaning::kRefused, kPrograms},
    {"configfile", Meaning::kRefused, kPrograms},
};

constexpr Meaning kWithValue[] = {
    Meaning::kProcesses, Meaning::kVariable,    Meaning::kExport,       Meaning::kFolder,
    Meaning::kOutput,    Meaning::kTimeout,     Meaning::kBind,         Meaning::kHosts,
    Meaning::kHostFile,  Meaning::kRemoteShell, Meaning::kRemoteOshrun, Meaning::kSimulateHosts,
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "-n2" and "-np2": where the number begins; npos for every other word.
std::size_t attached_number(std::string_view word) {
  for (std::string_view name : {"-np", "-n"})
    if (word.substr(0, name.size()) == name && is_number(word.substr(name.size())))
      return name.size();
  return std::string_view::npos;
}

}  // namespace

Result<Option> recognise_option(std::string_view word) {
  Option option;
  std::size_t end = attached_number(word);
  if (end != std::string_view::npos) {
    option.value = word.substr(end);
  } else if (end = word.find('='); end != std::string_view::npos) {
    option.value = word.substr(end + 1);
  }
  option.typed = word.substr(0, end);
  const std::string_view typed = option.typed;
  const std::string_view name = typed.substr(typed.substr(0, 2) == "--" ? 2 : 1);
  const Name* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const Name& known) { return known.name == name; });
  if (found == std::end(kNames))
    return Status(Code::kInvalidArgument, fmt::format("there is no option \"{}\"", typed));
  if (found->meaning == Meaning::kRefused)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is another launcher's; {}", typed, found->reason));
  option.meaning = found->meaning;
  option.takes_value = std::find(std::begin(kWithValue), std::end(kWithValue), option.meaning) !=
                       std::end(kWithValue);
  if (option.value && !option.takes_value)
    return Status(Code::kInvalidArgument,
                  fmt::format("{} takes no value, and \"{}\" gives one", typed, word));
  return option;
}

std::string_view help_text() {
  return "Usage: oshrun -n N [options] program [arguments...] [: -n N [options] program ...]\n"
         "Starts an OpenSHMEM job, on this host or on several, and ends it as a whole.\n"
         "\n"
         "For each program; its options end at its name:\n"
         "  -n N                 number of processes (also -np N, -nN)\n"
         "  --env NAME=VALUE     set a variable in its processes (also -x NAME=VALUE)\n"
         "  -wdir DIR            start its processes in this folder\n"
         "\n"
         "For the job:\n"
         "  --label              put the number of its process before each line of output\n"
         "                       (also --tag-output)\n"
         "  --output live|buffered\n"
         "                       live (the default): pass on each line when it is printed, also\n"
         "                       through a pipe and to a file; the processes see a terminal.\n"
         "                       buffered: the processes see oshrun's own pipe or file\n"
         "  --timeout S          end the job after this many seconds\n"
         "  --stacks-on-timeout  before that, each process prints its stacks and the process that\n"
         "                       it waits for; SIGUSR2 to oshrun does so at any time\n"
         "  --bind core|none     core: bind each process to its own core (the default if there\n"
         "                       are enough cores; also --bind-to)\n"
         "  --keep-going         do not end the job when a process fails: for programs that\n"
         "                       survive it (shmemx_set_error_handler)\n"
         "  --hosts A:2,B:2      run on these hosts, that many processes on each (also -H); "
         "without\n"
         "                       -n N as many as they have slots\n"
         "  --hostfile FILE      read the hosts from a file: one per line, as A:2 or A slots=2\n"
         "  --remote-shell \"COMMAND {}\"\n"
         "                       start oshrun on the host {} by this command (default:\n"
         "                       ssh -o BatchMode=yes {})\n"
         "  --remote-oshrun PATH path of oshrun on the other hosts, if it differs from the path\n"
         "                       on this host\n"
         "  --simulate-hosts N   split the processes evenly into N simulated hosts; 2+1+1 gives\n"
         "                       the processes of each. Simulated hosts share no memory: they\n"
         "                       communicate over sockets, as on a network\n"
         "  -V, --version        print the version\n"
         "  -h, --help           print this\n"
         "\n"
         "Accepted from other launchers: -x NAME, --oversubscribe, --allow-run-as-root. A name "
         "may\n"
         "have one dash or two.\n"
         "\n"
         "\":\" begins the next program of the same job; after \"--\" all words are the last\n"
         "program's. The result is the program's: 0, or the code of the first process that failed\n"
         "(128 + the signal's number when it was killed), 124 after --timeout, 127 when a program\n"
         "cannot be started, 2 for a wrong option.\n";
}

}  // namespace memspan::launcher
