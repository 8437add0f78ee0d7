#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No exported function lets std::bad_alloc out.

  check_exceptions.py [ROOT]

The body of each exported function is a function-try-block, which MEMSPAN_CATCH or
MEMSPAN_CATCH_AND_END of src/capi/out_of_memory.h ends; or it calls only what catches itself
(CATCHING and GUARDED), or what does not allocate (PLAIN).
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Functions that others rely on, by file: their bodies are function-try-blocks.
CATCHING = {
    "aclshmem/acl_typed_calls.cc": ["put_signal"],
    "aclshmem/acl_team_calls.cc": ["get_config", "meet"],
    "aclshmem/init.cc": ["check_staging", "make_unique_id", "null_failure"],
    "aclshmem/on_stream.cc": ["submit_barrier"],
    "aclshmem/heap.cc": ["allocate", "allocate_zeros", "allocate_aligned", "release"],
    "errors.cc": ["last_error"],
    "failures.cc": ["end_process", "fail", "require_started", "end_for_bad_access", "end_with"],
    "openshmem/collective.cc": ["collective", "set_meet", "set_collective"],
    "openshmem/order_calls.cc": ["create_context", "quiet"],
    "openshmem/signal_calls.cc": ["put_signal_slow_path", "update"],
    "slow_path.cc": ["move_slow_path", "move_strided", "atomic_slow_path", "copy_from_device", "note_look"],
    "smem/endpoints.h": ["do_at_endpoint"],
    "smem/result.h": ["with"],
    "smem/trans_move.cc": ["move_one_piece", "submit_pieces"],
    "smem/transfer.cc": ["prepare"],
    "wait_sets.h": ["wait_until"],
}
# Call only those, or nothing that allocates.
PLAIN = set("""
put get put_value get_value fetch_atomic change_atomic by_kind fence names_operations quiet_peers set_reduce post holds holds_for_all find_from collect look
is_device_word copy_of_device_word wait_on_device checked_compare wait_one wait_all wait_any wait_some test_one test_set word_set
some_start test_all test_any test_some set_result store noted has_to_note end_for_null end_for_misaligned_word end_for_bad_number end_for_bad_handle require_not_null peer_of number_of peer_through_context find_context team_handle bytes_of
find_team team_or_null team_of index size rank shape peer_of member_of num_contexts find is_started world peers c_str
mapped_address host_address memcpy memset strlen sizeof load exchange heap context data bytes ranks
set_thread_interrupt_handler set_error_handler set_log_sink
current_block current_blocks operation __VA_OPT__ __atomic_load_n atomic_thread_fence reduction_kernel deadline_of
""".split())
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "defined", "static_cast", "const_cast", "reinterpret_cast", "catch",
            "static_assert", "constexpr", "decltype"}
EXPORT = re.compile(r"\bMEMSPAN_EXPORT\b|\bMEMSPAN_(?:PROFILED|FLAT_PROFILED|DEPRECATED|RENAMED)\(|"
                    r"\b__attribute__\(\(visibility\(\"default\"\)\)\)")
CALL = re.compile(r"\b([a-zA-Z_]\w*)(?:<[\w:, ]*>)?\(")
OTHERS = re.compile(r"p?shmem_|aclshmemx?_|smem_|memspan_|MEMSPAN_(?:SET|WORDS)$|(?:Strides|Signal|ActiveSet|SameValue)$|k[A-Z]")
# Functions that do nothing outside calls that catch (GUARD), so that they need no try.
GUARDED = {
    "group/group_calls.cc": ["with_group", "with_message"],
    "smem/bm.cc": ["join_pool"],
    "smem/kv_pool.cc": ["with_cache", "move_batch"],
    "smem/result.h": ["value_with"],
    "smem/stream_calls.cc": ["with_both"],
    "smem/trans.cc": ["allocate"],
    "smem/trans_move.cc": ["move_pieces"],
}
LAMBDA = re.compile(r"(?<== )\[&\](?:\([^()]*\))? (?:-> \w+ )?\{")
GUARD = re.compile(r"\b(?:(?:value_)?with<[\w*, ]+>|with_(?:group|message|cache|both)|do_at_endpoint|"
                   r"move_batch|move_pieces|join_pool|prepare)\(")


def without_comments(text):
    text = re.sub(r"\\\n", " \n", re.sub(r"//[^\n]*", "", text))
    # The definitions of the macros of definitions are none.
    return re.sub(r"^#define MEMSPAN_(?:EXPORT|PROFILED|PROFILED_AS|FLAT_PROFILED|IN_CONTEXT|DEPRECATED|RENAMED|FLATTEN)\b[^\n]*(?:\n +[^\n]*)*", "",
                  text, flags=re.M)


def end_of(text, at):
    """Behind the bracket that closes the one at `at`."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    opening, closing = text[at], pairs[text[at]]
    for found in re.compile(r'"(?:\\.|[^"\\])*"|' + re.escape(opening) + "|" + re.escape(closing)).finditer(text, at):
        depth += {opening: 1, closing: -1}.get(found.group(), 0)
        if depth == 0:
            return found.end()
    raise ValueError(text[at:at + 80])


def definitions(text):
    """(name, what follows the parameters) of each exported function."""
    for found in EXPORT.finditer(text):
        if found.group().endswith("("):
            end = end_of(text, found.end() - 1)
            name = text[found.end():end].split(",")[1].strip()
            if "IN_CONTEXT" in found.group():  # its last arguments are the body
                yield name, "{" + text[found.end():end - 1] + "}"
                continue
            if "RENAMED" in found.group():  # calls the third argument with what follows the parameters
                yield name, "{" + text[found.end():end - 1].split(",", 2)[2].replace(", (", "(", 1) + "}"
                continue
        else:
            head = re.compile(r'\s*(?:extern "C" )?[\w:*&\s]*?\b(\w+(?:##\w+)*(?:##)?\w*)\(').match(text, found.end())
            if head is None:
                continue
            name, end = head.group(1), end_of(text, head.end() - 1)
        rest = text[end:].lstrip()
        if rest.startswith(("try", "{")):
            yield name, rest


def may_throw(rest):
    """Why: the first function that the body calls and nothing is known of."""
    body = rest[:end_of(rest, rest.index("{"))]
    for part in reversed(list(LAMBDA.finditer(body))):  # which has a name, and that is not known
        body = body[:part.start()] + body[end_of(body, part.end() - 1):]
    for guard in reversed(list(GUARD.finditer(body))):
        body = body[:guard.start()] + body[end_of(body, guard.end() - 1):]
    body = re.sub(r'"(?:\\.|[^"\\])*"', '""', body)
    known = PLAIN | KEYWORDS | {name for names in CATCHING.values() for name in names}
    for name in CALL.findall(body):
        if name not in known and not OTHERS.match(name):
            return name
    return "new" if re.search(r"\bnew\b|fmt::|std::(?:string|vector|make_)|\bthrow\b", body) else ""


def bodies_of(text, name):
    found = (text[end_of(text, match.end() - 1):].lstrip() for match in re.finditer(rf"\b{name}\(", text))
    return [rest for rest in found if rest.startswith(("{", "try {"))]


def problems_of_helpers(folder):
    for file in sorted(CATCHING.keys() | GUARDED.keys()):
        text = without_comments((folder / file).read_text(encoding="utf-8"))
        for name in CATCHING.get(file, []):
            bodies = bodies_of(text, name)
            if not bodies or not all(body.startswith("try {") for body in bodies):
                yield f"src/capi/{file}: {name} is no function-try-block (CATCHING of check_exceptions.py)"
        for name in GUARDED.get(file, []):
            bodies = bodies_of(text, name)
            if not bodies or any(may_throw(body) for body in bodies):
                yield f"src/capi/{file}: {name} may allocate outside what catches (GUARDED of check_exceptions.py)"


def main(arguments):
    folder = pathlib.Path(arguments[1] if len(arguments) > 1 else ROOT) / "src" / "capi"
    problems, seen = list(problems_of_helpers(folder)), 0
    for path in sorted([*folder.rglob("*.cc"), *folder.rglob("*.h")]):
        for name, rest in definitions(without_comments(path.read_text(encoding="utf-8"))):
            seen += 1
            if rest.startswith("{") and (why := may_throw(rest)):
                problems.append(f"src/capi/{path.relative_to(folder)}: {name} calls {why}, which may allocate: "
                                f"end it with MEMSPAN_CATCH (capi/out_of_memory.h)")
    print("\n".join(problems))
    print(f"{seen} definitions, {len(problems)} problems")
    return 1 if problems or seen < 300 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
