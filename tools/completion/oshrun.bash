# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of oshrun, memspan-store, memspan-info, memspan-perf, memspan-top and memspan-explain for bash; bash-completion loads it by itself from
# share/bash-completion/completions, and `source` does without.

_memspan_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}"); }
_memspan_files() { mapfile -t COMPREPLY < <(compgen "$1" -- "${COMP_WORDS[COMP_CWORD]}"); }

_memspan_oshrun() {
  # Options up to the program's name, what the program takes afterwards; ":" begins anew.
  local i program=0
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      :) program=0 ;;
      -n | -np | --np | --ntasks | --env | -x | -wdir | --output | --timeout | --bind | --bind-to | -H | --hosts | --hostfile | --remote-shell | --remote-oshrun | --simulate-hosts)
        if ((program == 0)); then ((++i)); fi
        ;;
      -*) ;;
      *) program=$((program == 0 ? i : program)) ;;
    esac
  done
  if ((program != 0)); then
    _memspan_files -f
    return
  fi
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --output) _memspan_words 'live buffered' ;;
    --bind | --bind-to) _memspan_words 'core none' ;;
    -n | -np | --np | --ntasks) _memspan_words "1 2 4 8 $(nproc)" ;;
    -wdir) _memspan_files -d ;;
    --hostfile | --remote-oshrun) _memspan_files -f ;;
    --remote-shell) _memspan_words 'ssh rsh' ;;
    --env | -x) _memspan_files -v ;;
    --simulate-hosts) _memspan_words '2 3 4 2+2 3+1' ;;
    --timeout | -H | --hosts) COMPREPLY=() ;;
    *)
      case ${COMP_WORDS[COMP_CWORD]} in
        -*)
          _memspan_words '-n -np --env -x -wdir --label --tag-output --output --timeout --stacks-on-timeout --get-stack-traces --bind --bind-to
            --keep-going --simulate-hosts --version --help -V -h -H --hosts
            --hostfile --remote-shell --remote-oshrun --oversubscribe --allow-run-as-root --'
          ;;
        *) mapfile -t COMPREPLY < <(compgen -A command -A file -- "${COMP_WORDS[COMP_CWORD]}") ;;
      esac
      ;;
  esac
}

_memspan_store() {
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --secret-file | --address-file) _memspan_files -f ;;
    --listen) _memspan_words 'tcp://127.0.0.1:0 tcp://127.0.0.1:8666' ;;
    --metrics) _memspan_words '127.0.0.1:9464 127.0.0.1:0' ;;
    --job | --tls-info) COMPREPLY=() ;;
    *) _memspan_words '--listen --job --secret-file --tls-info --plain --address-file --metrics --version --help' ;;
  esac
}

_memspan_top() {
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --sort) _memspan_words 'rank calls bytes waits' ;;
    --interval) _memspan_words '0.5 1 2 10' ;;
    --metrics) _memspan_words '127.0.0.1:9464 127.0.0.1:0' ;;
    *) _memspan_words '--interval --sort --once --json --metrics --version --help' ;;
  esac
}

_memspan_info() {
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --secret-file) _memspan_files -f ;;
    --tls-info) COMPREPLY=() ;;
    --route) mapfile -t COMPREPLY < <(compgen -A hostname -- "${COMP_WORDS[COMP_CWORD]}") ;;
    *)
      _memspan_words '--json --diagnose --devices --route --routes --tls --tls-info --secret-file --version --help -h'
      ;;
  esac
}

_memspan_perf() {
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    -n | --pes) _memspan_words "2 4 8 $(nproc)" ;;
    -s | --sizes) _memspan_words '8:1m 8:4m:4 8,64,1k' ;;
    --simulate-hosts) _memspan_words '2 1+1 2+2' ;;
    --library | --compare | --save | --report | --oshrun) _memspan_files -f ;;
    --svg | --png) _memspan_files -d ;;
    -r | --rounds | --samples | --seconds | --warm-up | --window | --batch | --hosts | --store | --timeout) COMPREPLY=() ;;
    *)
      case ${COMP_WORDS[COMP_CWORD]} in
        -*)
          _memspan_words '-n --pes -s --sizes -r --rounds --samples --seconds --warm-up --window --batch --simulate-hosts
            --hosts --store --oshrun --timeout --library --compare --save --json --report --svg --png --version --help -h'
          ;;
        *)
          # Groups stand at the beginning of their lines, tests behind blanks.
          _memspan_words "list all $("${COMP_WORDS[0]}" list 2>/dev/null | awk '{print $1}')"
          ;;
      esac
      ;;
  esac
}

_memspan_explain() {
  # Identifiers start their lines, meanings are indented.
  _memspan_words "- --version --help $("${COMP_WORDS[0]}" 2>/dev/null | grep '^[a-z]')"
}

complete -o filenames -F _memspan_oshrun oshrun shmemrun
complete -o filenames -F _memspan_store memspan-store
complete -F _memspan_top memspan-top
complete -F _memspan_explain memspan-explain
complete -o filenames -F _memspan_info memspan-info
complete -o filenames -F _memspan_perf memspan-perf
