#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds memspan and runs its tests.
#
#   test.sh             the first tier: the most important tests, without privileges
#   test.sh --all       the tests that the first tier leaves out; .ci/run runs both
#   test.sh --long      everything, with soak tests, all distributions and containers, engines and packages: hours
#   test.sh PART...     only these parts
#
# Parts of the first tier:
#   dev       build; unit, contract and interface tests; jobs of 2 and 3 processes and on simulated hosts; examples
#   example   the fused matmul + allreduce, verified
#   python    the wheel, in an environment without PyTorch, and its tests
# Parts that --all adds. It also runs the other tests of dev, and those of python with PyTorch:
#   format    clang-format changes nothing
#   layers    no include that src/README.md does not allow
#   shell     the scripts' syntax, and shellcheck if it is installed
#   site      the documents as one site; blocks of code, links and names in them
#   run       scripts/run.sh on two ranks
#   hosts     the tests of simulated hosts once more, on three network namespaces
#   upstream  PyTorch's own tests of torch.distributed over the backend memspan
#   rows      the promises of docs/reliability.md, 50 rounds each
#   newcomer  the README's two commands on an empty Debian 13 or Ubuntu 24.04, or in a container as root or as a user: on one
#             that the hash of the commit chooses (--long: on all, and on Debian 12)
#   tidy      clang-tidy on the files changed since the main branch
#   fuzz      the fuzz targets for 40 s over their corpora
#   asan      a Debug build with the address and undefined-behaviour sanitizers, by clang, and every test
#   tsan      build and test with the thread sanitizer
# Parts that --long adds. It also runs longer versions of most other parts:
#   debug     build without optimization, and the unit tests; with LTO, one definition of each type
#   refused   the tests of dev once more, without the system calls that older kernels and sandboxes lack
#   clang     build with clang, and every test
#   aarch64   build for aarch64, and its tests under QEMU's user mode
#   engines   the connectors in real servers of vLLM, in an environment of their own
#   debs      the Debian packages, installed into an empty system, used, upgraded and removed
#   release   everything that is shipped, made twice and compared, installed, used and removed
#
#   --torch   with PART python, hosts or engines: install PyTorch, and run what needs it
#
# scripts/probe.sh says what this machine allows. A test that needs what the machine lacks is skipped; any other skip is
# a failure. A test that fails runs once more by itself. If it passes then, the summary shows it as *unsteady*, with its
# output; findings of sanitizers, and more than three unsteady tests, are failures. The summary names the command that
# repeats each failure. The last line is `N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

# shellcheck source=scripts/support/progress.sh
source scripts/support/progress.sh
# shellcheck source=tests/support/readme.sh
source tests/support/readme.sh
# shellcheck source=tests/support/counts.sh
source tests/support/counts.sh

first=(dev example python)
others=(format layers shell dev site run python hosts upstream rows newcomer tidy fuzz asan tsan)
longest=(debug refused clang aarch64 engines debs release)
known=" ${first[*]} ${others[*]} ${longest[*]} "
parts=()
tier= # first, rest or all, if no part is named
long=false
torch=false
while (($# > 0)); do
  case $1 in
    --all | -all) tier=rest torch=true ;;
    --long | -long) long=true ;;
    --torch | -torch) torch=true ;;
    -h | --help)
      sed -n '3,/^set -e/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      if [[ $known != *" $1 "* ]]; then
        printf 'test: unknown part "%s"; known parts are %s\n' "$1" "$(tr ' ' '\n' <<<"$known" | sort -u | paste -sd ' ')" >&2
        exit 2
      fi
      parts+=("$1")
      ;;
  esac
  shift
done
if ((${#parts[@]} > 0)); then
  [[ -z $tier ]] || { echo 'test: --all names its parts itself; leave it or the parts out' >&2; exit 2; }
  tier=all
elif $long; then
  tier=all torch=true parts=("${others[@]}" "${longest[@]}")
elif [[ $tier == rest ]]; then
  parts=("${others[@]}")
else
  tier=first parts=("${first[@]}")
fi

times=() # of each part, for the table
jobs=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # whatever OpenMP is told
results=$(mktemp -d -p /var/tmp) # the hosts of tests have a /tmp of their own
place=()
ahead= # the process group that compiles what later parts need
trap 'end_ahead; rm -rf -- "$results"' EXIT

# Most tests wait for half of their time. What compiles ahead needs the other half in the second tier.
at_once=$jobs
more_at_once=$((jobs + jobs / 2))
[[ $tier != first ]] || at_once=$more_at_once

# What another checkout compiled is as good: paths below this one do not count.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# build_preset PRESET [EXAMPLES [BENCHMARKS [TESTS]]]: ON or OFF; TESTS are the folders of tests, all
# when it is not given.
build_preset() {
  local preset=$1 folder=build-$1 options=()
  [[ $preset != release ]] || folder=build
  if [[ -n ${4-} ]]; then options=(-DMEMSPAN_TEST_DIRECTORIES="$4"); else options=(-UMEMSPAN_TEST_DIRECTORIES); fi
  # A tree keeps its launcher: another one would compile all of it again.
  if [[ ! -f $folder/CMakeCache.txt ]] && command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  # build/ may be left from scripts/build.sh, which builds less, and build-asan/ from build_asan_python.
  cmake --preset "$preset" "${options[@]}" -DMEMSPAN_BUILD_PYTHON=OFF -DMEMSPAN_BUILD_TESTS=ON -DMEMSPAN_BUILD_EXAMPLES="${2:-ON}" \
    -DMEMSPAN_BUILD_BENCHMARKS="${3:-OFF}" >"$results/configure.$preset" || {
    cat "$results/configure.$preset"
    return 1
  }
  build_targets test "$folder"
}

units=$(cd tests && printf '%s;' unit/*/CMakeLists.txt network/*/CMakeLists.txt | sed 's#/CMakeLists.txt##g; s#;$##')
# Where the tests of the first tier are; those are labelled `first`.
first_directories="${units%%;network/*};simulation;contract;capi;fabric;multi;examples"

# ---- the parts ------------------------------------------------------------------------------------

check_shell() {
  local files
  mapfile -t files < <(find scripts packaging tests tools examples .ci -type f \( -name '*.sh' -o -path .ci/run \) | sort)
  local file
  for file in "${files[@]}"; do bash -n "$file" || return 1; done
  if ! command -v shellcheck >/dev/null; then
    echo 'shellcheck is not here: syntax only'
    return 0
  fi
  shellcheck -x -S warning "${files[@]}"
}

# Files of ours that changed since this branch left the main branch; on the main branch itself, in
# its last ten commits. Those changed last come first.
files_to_tidy() {
  local base kinds='^(src|tools|python)/.*\.cc$'
  if $long; then
    git ls-files | grep -E "$kinds"
    return
  fi
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == "$(git rev-parse HEAD)" ]]; then
    base=$(git rev-parse -q --verify HEAD~10 || git rev-list --max-parents=0 HEAD)
  fi
  {
    git ls-files --others --exclude-standard
    git diff --name-only --diff-filter=d HEAD
    git log -m --format= --name-only --diff-filter=d "$base"..HEAD
  } | grep -E "$kinds" | awk '!seen[$0]++' | while read -r file; do [[ ! -f $file ]] || printf '%s\n' "$file"; done
}

# tidy_files ARGUMENTS... -- FILES...
tidy_files() {
  local arguments=() word
  while [[ $1 != -- ]]; do arguments+=("$1") && shift; done
  # Some files are compiled with options of GCC alone.
  arguments+=(--extra-arg=-Wno-ignored-optimization-argument)
  # Without a bound, a file that has hundreds of functions from macros takes ten minutes.
  $long || for word in -Xclang -analyzer-config -Xclang max-nodes=5000; do arguments+=("--extra-arg=$word"); done
  shift
  (($# > 0)) || return 0
  printf '%s\0' "$@" | xargs -0 -n 4 -P "$jobs" clang-tidy --quiet "${arguments[@]}" \
    2> >(grep -v 'warnings generated\|^Suppressed\|^Use -header-filter' >&2 || true)
}

tidy() {
  local files most=40 left=0 ours=() extension=() torch_pieces=() flags=() python
  command -v clang-tidy >/dev/null || {
    echo 'clang-tidy is missing (scripts/install_deps.sh --dev)' >&2
    return 1
  }
  # A check that has looked at nothing is none.
  git rev-parse -q --verify HEAD >/dev/null 2>&1 || {
    echo 'clang-tidy: git says nothing about this source tree, so that nobody knows which files changed' >&2
    return 1
  }
  mapfile -t files < <(files_to_tidy)
  if ((${#files[@]} == 0)); then
    echo 'clang-tidy: git says that no C++ file of src, tools or python changed; --long looks at all'
    return 0
  fi
  # It needs seconds for each.
  if ! $long && ((${#files[@]} > most)); then
    left=$((${#files[@]} - most))
    files=("${files[@]:0:most}")
  fi
  echo "${#files[@]} files; $left more changed, which --long looks at"
  mapfile -t ours < <(printf '%s\n' "${files[@]}" | grep -v '^python/')
  mapfile -t extension < <(printf '%s\n' "${files[@]}" | grep '^python/core/')
  mapfile -t torch_pieces < <(printf '%s\n' "${files[@]}" | grep '^python/memspan/torch/csrc/')
  # How each file is compiled, not together with others; nothing is.
  python=$(bash scripts/python_env.sh) || return 1
  cmake -S . -B build/tidy -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DMEMSPAN_UNITY=OFF -DMEMSPAN_BUILD_PYTHON=ON \
    -DMEMSPAN_BUILD_TESTS=OFF -DMEMSPAN_BUILD_EXAMPLES=OFF -DMEMSPAN_BUILD_BENCHMARKS=OFF \
    -DPython3_EXECUTABLE="$python" -DPython_EXECUTABLE="$python" >"$results/configure.tidy" &&
    cmake --build build/tidy --target tools/explain/remedies.inc >>"$results/configure.tidy" || {
    cat "$results/configure.tidy"
    return 1
  }
  tidy_files -p build/tidy -- "${ours[@]}" "${extension[@]}" || return 1
  if ((${#torch_pieces[@]} > 0)) && $torch; then
    python=build/wheel-env/bin/python
    [[ -x $python ]] || install_wheel || return 1
    mapfile -t flags < <("$python" -m memspan.torch.build --flags) && ((${#flags[@]} > 0)) || return 1
    printf '%s\0' "${torch_pieces[@]}" | xargs -0 -n 1 -P "$jobs" -I FILE clang-tidy --quiet \
      --header-filter='python/memspan/torch/csrc/.*' FILE -- "${flags[@]}" || return 1
  elif ((${#torch_pieces[@]} > 0)); then
    echo "${#torch_pieces[@]} of them need PyTorch's headers, and so --torch: not looked at"
  fi
}

# ---- what later parts need, compiled in idle time ---------------------------------------------------

# begin_ahead PART...: without a word; the part says what is wrong when it builds.
begin_ahead() {
  if [[ ${MEMSPAN_AHEAD-1} == 0 ]] || ! chrt -i 0 true 2>/dev/null; then return 0; fi
  local part
  set -m # a process group of its own
  {
    chrt -i -p 0 "$BASHPID"
    for part in "$@"; do
      [[ " ${parts[*]} " != *" $part "* ]] || "build_$part" || true
    done
  } >/dev/null 2>&1 </dev/null &
  ahead=$!
  set +m
}
signal_ahead() { [[ -z $ahead ]] || kill "-$1" -- "-$ahead" 2>/dev/null || true; }
# Before a part builds the same: two builds in one folder disturb each other.
end_ahead() {
  signal_ahead CONT
  signal_ahead TERM
  [[ -z $ahead ]] || wait "$ahead" 2>/dev/null || true
  ahead=
}

# The parts after it need the build of `dev`; Python's tests the stand-in of the CUDA driver, too.
need_dev() { [[ -x build/bin/oshrun && -f build/compile_commands.json ]] || step 'build' build_preset release ON ON; }
need_dev_tests() { [[ -f build/tests/cuda_driver/libcuda.so.1 ]] && need_dev || step 'build' build_preset release ON ON; }

part_format() { step 'format' bash scripts/format.sh --check || true; }
part_layers() { step 'layers' python3 tools/dev/check_layers.py || true; }
part_shell() { step 'shell' check_shell || true; }
site_tests() { PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s tests/site -t tests/site; }
part_site() {
  step 'documents' site_tests || true
  step 'site' bash scripts/site.sh || true
}
part_dev() {
  local options=() directories=
  # Whoever built all of them keeps them.
  [[ $tier != first || -f build/tests/failure_victim ]] || directories=$first_directories
  step 'build' build_preset release ON "$([[ $tier == first ]] || echo ON)" "$directories" || return 0
  [[ $tier == first ]] || begin_ahead clang asan tsan aarch64
  case $tier in
    first) options=(-L '^first$') ;;
    rest) except='^first$' ;;
  esac
  if $long; then options+=(-C long --repeat until-fail:3); fi
  # Some rounds of what the part `rows` does.
  if [[ " ${parts[*]} " == *' rows '* ]]; then options+=(-E '^failure\.rows$'); fi
  run_ctest dev build "${options[@]}"
  except=
  [[ $tier == first ]] || step 'glibc floor' bash scripts/glibc_floor.sh --build build || true
}
# Without those that are about such a call, or that look at what the kernel offers.
part_refused() {
  need_dev_tests || return 0
  local name added=()
  for name in pidfd process_vm userfaultfd; do
    lacks "$name" || added+=("$name")
    reasons[$name]="$name, which a filter refuses"
  done
  MEMSPAN_TEST_LACKS="${!reasons[*]}"
  place=(build/tests/without_syscalls --errno ENOSYS modern)
  run_ctest refused build -E "$about_refused_calls"
  place=()
  for name in "${added[@]}"; do unset "reasons[$name]"; done
  MEMSPAN_TEST_LACKS="${!reasons[*]}"
}
about_refused_calls='^(unit\.transport\.vector_copy|contract\.transport\.(cma|native)|multi\.benchmarks\.memfabric\.bench\.(trans|mapped|register)|benchmarks\.(all|instructions)|install\..*|packages\..*|scripts\..*|examples\..*)$'
part_run() {
  need_dev || return 0
  step 'run.sh' bash scripts/run.sh -ranks 2 || true
  step 'run.sh, filtered' bash scripts/run.sh -ranks 3 -test_filter Init || true
}
part_example() {
  step 'example' bash examples/matmul_allreduce/scripts/run.sh -ranks 2 -M 256 -K 512 -N 1024 || true
  step 'example, odd sizes' bash examples/matmul_allreduce/scripts/run.sh -ranks 3 -M 101 -K 67 -N 259 -type float || true
}
# A wheel as users get it, by the README's line, in an environment of its own.
install_wheel() {
  local environment=build/wheel-env line torch_first=()
  if $torch; then torch_first=(torch==2.13.0 expecttest); fi
  line=$(line_of_readme 'bash scripts/build_wheel.sh' | sed -e 's#dist/#build/dist/#g' -e 's#build_wheel.sh#& --out build/dist#' -e "s#\.venv#$environment#g") || return 1
  rm -rf -- "$environment"
  bash -euc "$line" || return 1
  "$environment/bin/python" -m pip install -q --disable-pip-version-check "${torch_first[@]}" prometheus-client pytest
}
# The tree that the install tests have installed.
packages_with_wheel() {
  ctest --test-dir build -R '^install\.setup$' --no-tests=error --output-on-failure >"$results/setup" || {
    cat "$results/setup"
    return 1
  }
  bash tests/packages/packages_test.sh 'build/tests/install/moved tree' build/dist/*.whl build/wheel-env/bin/python
}
# Those that run on two hosts, too.
hosts_tests=(
  tests/python/test_memfabric.py
  tests/python/test_examples.py
  tests/python/test_connectors.py::test_pull
  tests/python/test_connectors.py::test_sglang
  tests/python/test_shmem.py::test_views_keep_their_bytes_after_the_end
  tests/python/test_shmem_processes.py
  tests/python/test_process_group.py
  tests/python/test_process_group_features.py
  tests/python/test_process_group_layers.py
  tests/python/test_operators.py
  tests/python/test_departure.py
  tests/python/test_symmetric_memory.py
  tests/python/test_symmetric_operations.py
  tests/python/test_torch_cuda.py
)
# PyTorch's once more with four ranks: two on each of two hosts, and three on one.
layouts_tests=(
  tests/python/test_process_group.py::test_everything
  tests/python/test_process_group.py::test_the_death_of_a_rank_is_an_error
  tests/python/test_process_group.py::test_ddp_and_fsdp2_learn_as_with_gloo
  tests/python/test_process_group.py::test_fsdp2_learns_as_ddp_when_it_shards_in_half_of_the_ranks
  tests/python/test_process_group_features.py::test_features
  tests/python/test_departure.py::test_a_rank_ends_the_waits_of_all_others_however_it_leaves
  tests/python/test_departure.py::test_who_left_first_is_named
)
part_python() {
  need_dev_tests || return 0
  # What builds the wheel comes from there.
  if lacks pypi; then
    skip_for pypi 'the tests of Python'
    return 0
  fi
  if $torch; then with_torch; else without_torch; fi
  step 'wheel' install_wheel || return 0
  local folder=$root/build/wheel-env/bin codes=()
  MEMSPAN_OSHRUN=$folder/oshrun run_pytest python "$folder/python" tests/python
  if $long; then # once more, with exceptions instead of codes
    mapfile -t codes < <(sed '/^#/d; s/^/--deselect=/' tests/python/look_at_codes.txt)
    place=(env PYTHONPATH="$root/tests/support/raising")
    MEMSPAN_OSHRUN=$folder/oshrun run_pytest python-raising "$folder/python" tests/python "${codes[@]}"
    place=()
  fi
  [[ $tier == first ]] || step 'packages with the wheel' packages_with_wheel || true
}
part_hosts() {
  local folder=$root/build/wheel-env/bin
  need_dev_tests || return 0
  [[ -x $folder/python ]] || step 'wheel' install_wheel || return 0
  if "$folder/python" -c 'import torch' 2>/dev/null; then with_torch; else without_torch; fi
  if lacks hosts; then
    skip_for hosts 'the tests on network namespaces; Python runs on simulated hosts'
  else
    place=(python3 tests/hosts/on_hosts.py 3)
    # Without those that make hosts of their own.
    run_ctest hosts build -L '^hosts$' -E "$makes_hosts"
  fi
  MEMSPAN_OSHRUN=$folder/oshrun MEMSPAN_TEST_HOSTS=2 run_pytest python-hosts "$folder/python" "${hosts_tests[@]}"
  local layout
  for layout in 2+2 3+1; do
    ! $torch || MEMSPAN_OSHRUN=$folder/oshrun MEMSPAN_TEST_HOSTS=$layout run_pytest "python-hosts-$layout" \
      "$folder/python" "${layouts_tests[@]}"
  done
  place=()
}
makes_hosts='^(failure\.host_deaths|examples\.kubernetes|hosts\.(by_hand|ends|namespaces|native\.on|on_hosts|oshrun|oshrun_starts|paths|pool_members|pool_store|progress|promises))$'
part_upstream() {
  local python=build/wheel-env/bin/python length=()
  torch=true
  with_torch
  if $long; then length=(--long); fi
  "$python" -c 'import expecttest, memspan, torch' 2>/dev/null || step 'wheel' install_wheel || return 0
  step_of_many 'upstream' "$python" tests/python/upstream/run.py "${length[@]}"
}
# Real servers of vLLM: about a quarter of an hour, and more the first time.
engines_environment() {
  [[ -x build/wheel-env/bin/python ]] || install_wheel || return 1
  bash scripts/engines_env.sh build/dist/*.whl
}
part_engines() {
  need_dev_tests || return 0
  step 'environment of engines' engines_environment || return 0
  run_pytest engines build/engines/bin/python tests/engines
}
# All of them, in an empty Debian.
make_debs() { rm -rf -- build/debs && bash packaging/deb.sh --out build/debs; }
part_debs() {
  need_dev || return 0
  step 'what Debian packages need' bash scripts/install_deps.sh --release || return 0
  step 'Debian packages' make_debs || return 0
  step 'life of Debian packages' bash tests/packages/debs_life_test.sh build/debs || true
}
# What scripts/release.sh makes of the last commit.
part_release() {
  local each
  step 'what a release needs' bash scripts/install_deps.sh --release --cross || return 0
  step 'release make' bash tests/packages/release_test.sh make || return 0
  for each in wheels older aarch64 sdist sbom debs life dockerfile again; do
    step "release $each" bash tests/packages/release_test.sh "$each" || true
  done
}
# The README's commands on an empty system; without --long on one that the hash of the commit chooses.
part_newcomer() {
  local each systems=()
  step 'what other systems need' bash scripts/install_deps.sh --systems || return 0
  for each in trixie:empty_systems noble:ubuntu container-root:containers container-user:containers bookworm:empty_systems; do
    if [[ $each == bookworm:* ]] && ! $long; then continue; fi # as the containers are
    if lacks "${each#*:}"; then skip_for "${each#*:}" "${each%:*}"; else systems+=("${each%:*}"); fi
  done
  ((${#systems[@]} > 0)) || return 0
  $long || systems=("${systems[16#$(git rev-parse --short=6 HEAD) % ${#systems[@]}]}")
  for each in "${systems[@]}"; do
    step_of_many "newcomer on $each" newcomer_on "$each"
  done
  if $long && ! lacks empty_systems; then step_of_many "the README's lines that install" bash tests/systems/install_lines.sh; fi
}
# What it prints is marked, since it ends as this script's own output does.
newcomer_on() { bash tests/systems/newcomer.sh "$1" --both 2>&1 | sed -u "s/^/$1: /"; }
part_tidy() {
  need_dev || return 0
  step 'clang-tidy' tidy || true
}
build_clang() { build_preset clang; }
part_clang() {
  end_ahead
  step 'build clang' build_clang || return 0
  begin_ahead asan tsan aarch64
  run_ctest clang build-clang -LE benchmarks
}
part_fuzz() {
  step 'fuzz' bash scripts/fuzz.sh --seconds "$($long && echo 600 || echo 40)" || true
}
part_rows() {
  need_dev || return 0
  local length=()
  if $long; then length=(--long); fi
  signal_ahead STOP # the rows measure
  step_of_many 'rows' bash tests/failure/run.sh --build build "${length[@]}"
  signal_ahead CONT
}
# What these compile has no sanitizer; part dev runs them. On the stand-in of CUDA (cuda.) the library's threads are those of
# the tests without it.
compiles_alone='^capi\.kernel_cuda_compiles\.'
# They wait for long, and others run the same code.
takes_long='^(hosts\.(promises|oshrun|oshrun_starts|progress)|multi\.launcher\.stopped|multi\.observe\.stacks)$'
build_asan() { build_preset asan OFF; }
# The extension of build-asan/, in an interpreter that has the sanitizers' runtime. PyTorch's pieces
# are compiled where they are imported, with the same flags, which takes minutes: with --long. A
# program of build-asan/, which one test runs, has a runtime of its own.
asan_python_tests=(
  tests/python/test_shmem.py tests/python/test_memfabric.py
  --deselect tests/python/test_shmem.py::test_the_package_says_what_it_is
)
asan_torch_tests=(tests/python/test_process_group.py tests/python/test_symmetric_memory.py tests/python/test_symmetric_operations.py)
build_asan_python() {
  local python=$root/build/wheel-env/bin/python
  [[ -x $python ]] || install_wheel || return 1
  cmake -S . -B build-asan -DMEMSPAN_BUILD_PYTHON=ON \
    -DPython3_EXECUTABLE="$(bash scripts/python_env.sh)" >"$results/configure.asan_python" || {
    cat "$results/configure.asan_python"
    return 1
  }
  cmake --build build-asan --parallel "$jobs" --target memspan memspan_python
}
test_asan_python() {
  local folder=$root/build/wheel-env/bin tests=("${asan_python_tests[@]}") runtime
  if $torch && $long; then tests+=("${asan_torch_tests[@]}"); fi
  runtime=$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")
  cat >"$results/python" <<PYTHON
#!/bin/sh
export LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc
export PYTHONPATH='$root/build-asan/python' MEMSPAN_TORCH_BUILD_DIR='$root/build-asan/torch'
export CXX='clang++ -fsanitize=address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=all -g1'
exec '$folder/python' "\$@"
PYTHON
  chmod +x "$results/python"
  MEMSPAN_OSHRUN=$folder/oshrun run_pytest asan-python "$results/python" "${tests[@]}"
}
part_asan() {
  end_ahead
  step 'build asan' build_asan || return 0
  begin_ahead tsan aarch64
  run_ctest asan build-asan -E "$compiles_alone$($long || echo "|$takes_long")"
  step 'build asan, Python' build_asan_python || return 0
  test_asan_python
}
build_debug() { build_preset debug OFF OFF "$units"; }
# Without optimization: of an optimized link GCC makes 20 GiB. A bound on memory, since all of the machine is not ours.
one_definition() (
  ulimit -v $((8 << 20))
  cmake -S . -B build-odr -G Ninja -DCMAKE_BUILD_TYPE=Release -DMEMSPAN_BUILD_TESTS=OFF -DMEMSPAN_BUILD_EXAMPLES=OFF \
    -DMEMSPAN_BUILD_BENCHMARKS=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_CXX_FLAGS='-flto=auto -Wodr -Werror=odr -Werror=lto-type-mismatch' >"$results/configure.odr" &&
    cmake --build build-odr --parallel "$jobs" --target memspan
)
part_debug() {
  end_ahead
  step 'build debug' build_debug && run_ctest debug build-debug -L '^unit$'
  step 'one definition (-Wodr)' one_definition || true
}
# Other numbers of processes, other hosts where one host is tested, and kernels that refuse calls.
are_alike='\.[148]$|^hosts\.fabric\.trans_cuda|\.refused_calls\.'
build_tsan() {
  # What has threads or processes that share memory.
  local folders="unit/store;unit/node;network/store;network/world;unit/transport;unit/world;unit/pgas;unit/fabric;simulation;contract;fabric;multi"
  if $long; then folders="$units;simulation;contract;capi;fabric;multi"; fi
  build_preset tsan OFF OFF "$folders"
}
part_tsan() {
  end_ahead
  step 'build tsan' build_tsan || return 0
  begin_ahead aarch64
  [[ " ${parts[*]} " == *' aarch64 '* ]] || at_once=$more_at_once
  # TSan refuses an address at which the stand-in maps memory.
  run_ctest tsan build-tsan -E "$compiles_alone$($long || echo "|$are_alike")|^(hosts\.)?cuda\.|^unit\.device\.cuda_device$"
}
build_aarch64() {
  local length=()
  if $long; then length=(--all); fi
  bash scripts/cross.sh --build "${length[@]}"
}
part_aarch64() {
  end_ahead
  step 'build aarch64' build_aarch64 || return 0
  run_ctest aarch64 build-aarch64 -L aarch64
}

bash scripts/need_writable.sh test
dependencies=(--dev)
if [[ $tier == first ]]; then dependencies=(--examples --tests --python); fi
if [[ " ${parts[*]} " == *' aarch64 '* ]]; then dependencies+=(--cross); fi
# Without them the rest would fail one after the other.
if step 'install_deps' bash scripts/install_deps.sh "${dependencies[@]}"; then
  probe_machine
  for part in "${parts[@]}"; do
    began=$SECONDS
    "part_$part"
    times+=("$(printf '%-10s %8d' "$part" $((SECONDS - began)))")
  done
fi
printf '\npart        seconds\n'
printf '%s\n' "${times[@]}"
printf '%-10s %8d\n\n' all "$SECONDS"
summary
