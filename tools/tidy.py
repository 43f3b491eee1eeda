#!/usr/bin/env python3
"""Checks the rules of STYLE.md over the tree: a line for each problem, exit code 1 if there is any.

  tools/tidy.py [--root DIR] [--objects BUILD_DIR]

--objects also looks at the symbols of the objects compiled for one instruction set, and at the
instructions of all others; they must come from a release build.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

# The table of modules: who may use whom.
MODULES = "src/CMakeLists.txt"

# Files of src/ without a test file of their own name: which tests cover them, and why so. Braces
# hold alternatives, each of which has to match such a file; a star stands for a name, not for
# folders.
COVERED_BY = [
    ("src/backends/cpu/attention/ops_attend.cpp", "tests/backends/attention_test.cpp", "a table"),
    ("src/backends/cpu/{cpu,ops,ops_avx2,ops_avx512,ops_neon}.cpp", "tests/backends/*_test.cpp",
     "which kernel an op gets: each op has its test"),
    ("src/backends/cpu/pack/pack_{codes,group,rules}.cpp", "tests/backends/matmul_test.cpp",
     "every format, as products see it"),
    ("src/backends/cpu/product/product_{amx,avx2,avx512,avxvnni,neon}.cpp",
     "tests/backends/matmul_test.cpp", "one product for each instruction set, the same bits"),
    ("src/backends/cpu/product/product_{amxbf16,avx512bf16}.cpp",
     "tests/backends/fast_product_test.cpp", "likewise, of fast-1"),
    ("src/backends/host/{host,rounds}.cpp", "tests/graph/graph_test.cpp", "walk whole plans"),
    ("src/backends/reference/reference.cpp", "tests/backends/*_test.cpp", "a table of ops"),
    ("src/session/drafts/draft_verifier.cpp", "tests/cli/memory_commands_test.cpp",
     "what `cairn verify --draft` prints"),
    ("src/capi/{border,handles,model_calls,sampling}.cpp", "tests/capi/misuse_test.cpp",
     "what callers can do wrong"),
    ("src/capi/{answer_maker,runtime_engine,runtime_track}.cpp", "tests/capi/backends_test.cpp",
     "the contract of all backends"),
    ("src/capi/{built_in,conversation_calls,mailbox}.cpp", "tests/capi/conversation_test.cpp",
     "one conversation in several files"),
    ("src/capi/engine_options.cpp", "tests/capi/engine_calls_test.cpp", "as engines take them"),
    ("src/chat/{answer_reader,call_reader,call_shape,families,format,json_scanner,literals,"
     "marker_nodes,output_event}.cpp", "tests/chat/output_parser_test.cpp", "one parser"),
    ("src/chat/probe.cpp", "tests/chat/detect_test.cpp", "asks templates for their format"),
    ("src/chat/value_grammar.cpp", "tests/chat/call_grammar_test.cpp", "part of calls' grammars"),
    ("src/store/{encoded_record,record_source}.cpp", "tests/store/disk_store_test.cpp",
     "what folders write and check"),
    ("src/tier/wire.cpp", "tests/tier/connection_test.cpp", "bytes of commands and replies"),
    ("src/cli/main.cpp", "tests/cli/program_test.cpp", "from outside"),
    ("src/command_line/command_line.cpp", "tests/cli/program_test.cpp", "from outside"),
    ("src/cli/commands/{run,run_options,welcome}.cpp", "tests/cli/program_test.cpp", "likewise"),
    ("src/terminal_chat/report.cpp", "tests/cli/program_test.cpp", "likewise"),
    ("src/terminal_chat/local_chat.cpp", "tests/terminal_chat/remote_chat_test.cpp",
     "beside remote ones"),
    ("src/cli/commands/{load,logits}.cpp", "tests/cli/parts_test.cpp", "parts of commands"),
    ("src/terminal_chat/{chat_loop,chat_settings}.cpp", "tests/terminal_chat/tool_chat_test.cpp",
     "settings and calls in whole conversations"),
    ("src/cli/commands/{memory_bench,verify}.cpp", "tests/cli/memory_commands_test.cpp",
     "from outside"),
    ("src/cli/options/model_argument.cpp", "tests/cli/program_test.cpp", "from outside"),
    ("src/cli/options/{engine,sampling}_arguments.cpp", "tests/cli/parts_test.cpp",
     "where parameters come from"),
    ("src/cli/options/tier_arguments.cpp", "tests/serve/shared_tier_test.cpp", "from outside"),
    ("src/cli/commands/{find_model,pull}.cpp", "tests/cli/models_test.cpp", "from outside"),
    ("src/hub/{hugging_face,ollama_registry,remote_model}.cpp", "tests/hub/pull_test.cpp",
     "what hubs answer, to whoever pulls"),
    ("src/hub/transfers.cpp", "tests/hub/web_test.cpp", "single ones; several in download_test"),
    ("src/terminal/interrupt.cpp", "tests/terminal_chat/terminal_chat_test.cpp",
     "on a pseudo-terminal"),
    ("src/terminal_chat/answer_printer.cpp", "tests/terminal_chat/terminal_chat_test.cpp",
     "likewise"),
    ("src/convert/{general,key_values,parameters,rope_factors,sentence_modules,shared_families,"
     "special_tokens,ssm_tensors,tensor_plan,tensor_writer,tensors,tokenizer,tokenizer_kinds}.cpp",
     "tests/convert/*_test.cpp", "whole folders, byte for byte"),
    ("src/convert/families/*.cpp", "tests/convert/*_test.cpp", "walk the table of families"),
    ("src/engine/{lane,runner}.cpp", "tests/engine/generator_test.cpp", "all that is generated"),
    ("src/engine/schedule/tenant_rules.cpp", "tests/engine/scheduler_test.cpp", "in a queue"),
    ("src/engine/{model_text,parameter_loader}.cpp", "tests/engine/engine_test.cpp", "loading"),
    ("src/cli/commands/{serve,serve_models}.cpp", "tests/serve/program_test.cpp", "from outside"),
    ("src/{cli/commands/route,route/route_app}.cpp",
     "tests/route/program_test.cpp", "likewise"),
    ("src/serve/{field_table,openapi,refusal,reply_schema,reply_types}.cpp",
     "tests/serve/fields_test.cpp", "two tables, and what is made of them"),
    ("src/serve/http/connection.cpp", "tests/serve/server_test.cpp", "over bare sockets"),
    ("src/serve/{answer_json,answer_settings}.cpp", "tests/serve/chat_test.cpp",
     "requests and replies as they are sent"),
    ("src/serve/openai/{chat_request,chat_writer}.cpp", "tests/serve/chat_test.cpp", "likewise"),
    ("src/serve/openai/completion_writer.cpp", "tests/serve/completion_test.cpp", "likewise"),
    ("src/serve/text_input.cpp", "tests/serve/completion_test.cpp", "likewise"),
    ("src/serve/routes/{answering,chat_order}.cpp", "tests/serve/chat_test.cpp", "likewise"),
    ("src/serve/{infill,llama/*,routes/props}.cpp", "tests/serve/native_test.cpp", "likewise"),
    ("src/serve/ollama/*.cpp", "tests/serve/ollama_test.cpp", "likewise"),
    ("src/serve/anthropic/*.cpp", "tests/serve/anthropic_test.cpp", "likewise"),
    ("src/serve/{response_table,openai/responses_*,routes/stored_responses}.cpp",
     "tests/serve/responses_test.cpp", "likewise"),
    ("src/serve/{routes/session_answer,sessions/*}.cpp", "tests/serve/sessions_test.cpp",
     "likewise"),
    ("src/serve/routes/info.cpp", "tests/serve/app_test.cpp", "likewise"),
    ("src/serve/models/*.cpp", "tests/serve/models_test.cpp", "likewise"),
    ("src/serve/memory_json.cpp", "tests/serve/memory_test.cpp", "what routes/memory.cpp sends"),
    ("src/runtimes/{mlx/mlx,openvino/openvino}.cpp", "tests/runtimes/contract_test.cpp",
     "walks the table of runtimes"),
    ("src/runtimes/{litert_lm/{litert_library,litert_lm},coreml/coreml}.cpp",
     "tests/runtimes/litert_engine_test.cpp", "what is listed, and its library"),
    ("src/runtimes/worker/{child_process,worker_link}.cpp",
     "tests/runtimes/worker_runtime_test.cpp", "what runtimes see of their processes"),
    ("src/session/prompt_probabilities.cpp", "tests/serve/completion_test.cpp", "as they are told"),
    ("src/session/score_job.cpp", "tests/capi/engine_calls_test.cpp", "as its callers have it"),
    ("src/session/{answer_job,answer_stream,embedding_job,read_ahead}.cpp",
     "tests/session/service_test.cpp", "what a service hands on"),
    ("src/engine/pooling.cpp", "tests/engine/embedder_test.cpp", "the end of an embedding"),
    ("src/grammar/{automaton,determinize,expression,fragments,grammar,groups,key_set,lengths,"
     "near_states,stacks,token_trie}.cpp", "tests/grammar/matcher_test.cpp", "one automaton"),
    ("src/grammar/{json_nodes,number_ranges,schema_contents,schema_view,string_formats,"
     "text_without}.cpp", "tests/grammar/schema_test.cpp", "keyword by keyword"),
    ("src/grammar/characters.cpp", "tests/grammar/regex_test.cpp", "classes of characters"),
    ("src/graph/blocks/*.cpp", "tests/models/golden_test.cpp", "blocks are seen in whole models"),
    ("src/graph/{finish,parameters,pieces,planner}.cpp", "tests/graph/graph_test.cpp",
     "one builder in several files"),
    ("src/graph/replay.cpp", "tests/graph/plans_test.cpp", "one of the plans"),
    ("src/jinja/{calls,characters,evaluation,interpreter,lookup,operations,runtime}.cpp",
     "tests/jinja/jinja_test.cpp", "one interpreter, tested by goldens"),
    ("src/jinja/{builtins,syntax,values}/*.cpp", "tests/jinja/jinja_test.cpp", "likewise"),
    ("src/measure/memory_{costs,figures,paging,scenarios}.cpp",
     "tests/cli/memory_commands_test.cpp", "through the program"),
    ("src/measure/sequence_logits.cpp", "tests/measure/perplexity_test.cpp", "what it sums"),
    ("src/measure/{machine_limits,speed_report}.cpp", "tests/measure/speed_samples_test.cpp",
     "figures of one another"),
    ("src/memory/{layout,page_table,pool,replay,resume_plan,sequence,"
     "sequence_usage,store,token_list,transaction}.cpp", "tests/memory/*_test.cpp",
     "one entrance, tested as a whole"),
    ("src/models/{aliases,model}.cpp", "tests/models/architectures_test.cpp", "the table itself"),
    ("src/models/*/*.cpp", "tests/models/golden_test.cpp", "walks the table of architectures"),
    ("src/quant/*.cpp", "tests/quant/all_types_test.cpp", "walks the table of formats"),
    ("src/quant/grids/grid_iq[123].cpp", "tests/quant/all_types_test.cpp", "likewise"),
    ("src/quantize/{importance,quantize_types}.cpp", "tests/quantize/quantize_test.cpp",
     "seen in whole models"),
    ("src/sample/{adaptive_p,dry,dry_breakers,infill,min_p,mirostat,penalties,temperature,top_k,"
     "top_n_sigma,top_p,typ_p,xtc}.cpp", "tests/sample/stages_test.cpp", "walks the table"),
    ("src/sample/log_probabilities.cpp", "tests/sample/sampler_test.cpp", "of what is chosen"),
    ("src/sample/passes_avx2.cpp", "tests/sample/passes_test.cpp", "half of a file"),
    ("src/session/{answer,completion,constraint,conversation,sampling_choice}.cpp",
     "tests/session/chat_session_test.cpp", "through whole answers"),
    ("src/store/disk_store_{check,write}.cpp", "tests/store/disk_store_test.cpp", "one class"),
    ("src/store/snapshot.cpp", "tests/store/disk_store_test.cpp", "what it writes"),
    ("src/store/{file_calls,folder_files}.cpp", "tests/store/folder_test.cpp",
     "one folder"),
    ("src/synth/synth_{shape,vocabulary,weights}.cpp", "tests/synth/synth_test.cpp",
     "seen in whole models"),
    ("src/tokenize/charsmap.cpp", "tests/tokenize/unigram_test.cpp", "part of a vocabulary"),
]

# Function-local statics that change. Each is the only way; the file says why.
MUTABLE_STATICS = {"src/base/mapped_file.cpp": "what a signal handler reads",
                   "src/base/output_file.cpp": "what a signal handler removes",
                   "src/base/log.cpp": "one stderr, one logger",
                   "src/base/machine/memory_reserve.cpp": "what `operator new` asks",
                   "src/capi/handles.cpp": "what callers' handles stand for",
                   "src/terminal/interrupt.cpp": "what a signal handler sets"}

# Functions with newer instructions than x86-64-v2 in files for everyone, and who calls them.
CHOOSE_THEMSELVES = {"machine_limits.cpp": "loops of one instruction set, called where it is"}

BANNED = [(r"\bn_\w+", "…_count"), (r"\bcur\b", "a name of what it is"),
          (r"\btmp\b", "a name of what it is"), (r"\bil\b", "layer"), (r"\binp\b", "input"),
          (r"\bthrow\b", "a Result (base/result.h)")]
FILE_LINES, HEADER_LINES, FUNCTION_LINES, COLUMNS, TOP_COMMENT_LINES = 800, 200, 70, 100, 8
FOLDER_SOURCES = 45
CODE = {".h", ".cpp", ".py", ".cmake", ".sh"}
# Written in pieces, so that this file passes its own check.
FORBIDDEN_TEXT = ["/wo" "rk/", "/fa" "rm/", "FIX" "ME", "TO" "DO"]


# Names that precompiled headers bring along, and the header that each belongs to. A file that uses
# a name includes its header, by itself or by a header of the project.
NAMES = {
    "algorithm": r"std::(?:ranges::)?(?:(?:stable_|partial_|is_)?sort|min|max|clamp"
                 r"|(?:any|all|none)_of|find(?:_if(?:_not)?)?|copy(?:_n|_if|_backward)?"
                 r"|fill(?:_n)?|equal(?:_range)?|count(?:_if)?|(?:lower|upper)_bound"
                 r"|binary_search|remove(?:_if)?|reverse|rotate|unique|transform"
                 r"|(?:min|max|minmax|nth)_element|for_each|merge|replace|search|mismatch"
                 r"|lexicographical_compare|(?:push|pop|make)_heap|includes)\s*\(",
    "array": r"std::(?:array|to_array)\b",
    "bit": r"std::(?:bit_(?:cast|width|ceil|floor)|popcount|count[lr]_(?:zero|one)|has_single_bit"
           r"|rot[lr]|endian)\b",
    "charconv": r"std::(?:from|to)_chars\b",
    "cmath": r"std::(?:sqrt|exp2?|expm1|log(?:2|10|1p)?|pow|floor|ceil|round|lround|llround|trunc"
             r"|nearbyint|rint|lrint|fma|fmod|is(?:nan|inf|finite)|sin|cos|tan|tanh|erfc?|ldexp"
             r"|frexp|scalbn|ilogb|signbit|copysign|nextafter|hypot)\s*\(",
    "cstdint": r"\bu?int(?:8|16|32|64|ptr)_t\b",
    "cstring": r"std::(?:mem(?:cpy|cmp|set|move|chr)|str(?:len|cmp|ncmp|error|chr|rchr|str))\b",
    "functional": r"std::(?:function|hash|less|greater|plus|multiplies|reference_wrapper|c?ref"
                  r"|identity|invoke)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(?:multi)?map\b",
    "memory": r"std::(?:(?:unique|shared|weak)_ptr|make_(?:unique|shared)|enable_shared_from_this"
              r"|construct_at|destroy_at|addressof|allocator)\b",
    "numeric": r"std::(?:accumulate|iota|gcd|lcm|(?:transform_)?reduce|inner_product|partial_sum"
               r"|(?:in|ex)clusive_scan|midpoint)\b",
    "optional": r"std::(?:optional|nullopt|make_optional)\b",
    "span": r"std::(?:span|as_(?:writable_)?bytes)\b",
    "string": r"std::(?:string|to_string|sto(?:i|l|ll|ul|ull|f|d)|getline)\b",
    "string_view": r"std::string_view\b",
    "utility": r"std::(?:move|forward|pair|swap|exchange|make_pair|as_const|in_place"
               r"|(?:make_)?index_sequence|piecewise_construct|cmp_\w+|unreachable)\b",
    "variant": r"std::(?:variant|visit|get_if|holds_alternative|monostate)\b",
    "vector": r"std::vector\b",
    "fmt/core.h": r"\bfmt::(?:format\w*|runtime)\b(?!<)",
    "fmt/format.h": r"\bfmt::(?:join|memory_buffer|formatter)\b",
    "base/result.h": r"\b(?:Result|Status|fail|CAIRN_TRY)\b\s*[<(]",
}
# A type that a file declares for all who include it, and any declaration of one.
TYPE = r"^(?:class|struct|enum class) (?:alignas\(.*?\) )?(\w+)(?: final)?(?: :[^;{]*)? \{"
DECLARES = r"\b(?:class|struct|enum|using|typename)\s+(?:class\s+)?(?:alignas\(.*?\) )?(\w+)"
# Standard headers that every library's other header is sure to bring: the standard says so, or its
# interface cannot be written without.
BRINGS = {"string": {"string_view"}, "map": {"utility"}, "fmt/format.h": {"fmt/core.h", "string"}}


def without_comments(text):
    """The same text with comments and the insides of literals blanked, line breaks kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.S)

    def blank(match):
        found = match[0]
        ends = ("", "") if found.startswith("/") else ('"', '"')
        inside = found[len(ends[0]):len(found) - len(ends[1])]
        return ends[0] + re.sub(r"[^\n]", " ", inside) + ends[1]
    return pattern.sub(blank, text)


def is_function(head):
    """Whether the text before a brace opens a function's body."""
    head = re.sub(r"\s+", " ", head).strip()
    head = re.sub(r"^(public|private|protected) ?:", "", head)
    head = re.sub(r"\[\[.*?\]\]|alignas\(.*?\)", "", head)
    return "(" in head and not re.search(r"(=|,|\(|\breturn)$", head)


def is_scope(head):
    opens = re.search(r"\b(namespace|class|struct|union|enum|extern \"\s*\")", head)
    return opens and not re.search(r"\)\s*(const|noexcept|override|->.*|:.*)*\s*$", head)


def walk_scopes(code):
    """Yields ('function', line, lines, head) and ('statement', line, text) at namespace scope."""
    stack, head, line, head_line = [], "", 1, 1
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
    code = directive.sub(lambda found: re.sub(r"[^\n]", "", found[0]), code)
    for token in re.findall(r"[{};]|\n|[^{};\n]+", code):
        if token == "\n":
            line += 1
            head += " "
            continue
        in_body = any(kind == "function" for kind, *_ in stack)
        if token == "{":
            if in_body:
                stack.append(("block", line, ""))
            elif is_scope(head):
                kind = "namespace" if re.search(r"\bnamespace\b", head) else "type"
                stack.append((kind, line, ""))
                head = ""
            elif is_function(head):
                stack.append(("function", head_line, head))
                head = ""
            else:
                stack.append(("value", line, head))
        elif token == "}":
            kind, start, kept = stack.pop() if stack else ("block", line, "")
            if kind == "function":
                yield "function", start, line - start + 1, kept
            head = kept + "{}" if kind == "value" else ("}" if kind == "type" else "")
        elif token == ";":
            if all(kind == "namespace" for kind, *_ in stack):
                yield "statement", head_line, re.sub(r"\s+", " ", head).strip()
            head = ""
        else:
            if not head.strip():
                head, head_line = "", line
            if not in_body:
                head += token


def is_mutable_variable(statement):
    if not statement or statement.startswith("}"):
        return False
    if re.match(r"(using|typedef|template|friend|static_assert|extern|class|struct|enum|union|"
                r"namespace)\b", statement):
        return False
    before = re.split(r"=|\{", statement)[0]
    if "(" in before or re.search(r"\b(const|constexpr|operator)\b", before):
        return False
    return bool(re.match(r"(?:(?:static|thread_local|inline|constinit)\s+)*[\w:<>,&* ]+[\s*&]\w+"
                         r"(\[[^\]]*\])*$", before.strip()))


def new_instructions(disassembly):
    """Instructions that came after x86-64-v2: AVX and later, masks, tiles, BMI. GNU as writes BSF
    with a prefix as TZCNT; older processors take it as the former, so it is none of them."""
    if "elf64-x86-64" not in disassembly:
        return set()
    pattern = re.compile(r"\t((?:\{vex\} )?v[a-z]\w+|k(?:mov|and|or|xor|not|test|shift|add)\w+"
                         r"|tile\w+|ldtilecfg|tdp\w+|sarx|shlx|shrx|rorx|mulx|andn|pdep|pext"
                         r"|bextr|blsi|blsr|blsmsk|lzcnt|bzhi|movbe)\b")
    return set(pattern.findall(disassembly)) - {"verr", "verw"}


def alternatives(pattern):
    """What braces stand for: "a{b,c}" is "ab" and "ac"."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [each for word in found[1].split(",")
            for each in alternatives(pattern[:found.start()] + word + pattern[found.end():])]


def matches(name, pattern):
    """As a shell matches names of files: a star does not reach into folders."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def cover_of(name, covered_by):
    """The first line that names the file; None where none does."""
    return next((line for line in covered_by
                 if any(matches(name, pattern) for pattern in alternatives(line[0]))), None)


def modules_of(text):
    """What each module may use, in the order of the table: the lines of src/CMakeLists.txt."""
    lines = re.findall(r"^cairn_module\((\w+)([^)]*)\)", text, re.M)
    return {name: below.split() for name, below in lines}


class Tidy:
    def __init__(self, root):
        self.root, self.problems, self.used, self.headers = root, [], set(), {}
        table = root / MODULES
        self.may_use = modules_of(table.read_text()) if table.is_file() else {}
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root,
                                capture_output=True, text=True)
        names = listed.stdout.split("\n") if listed.returncode == 0 else [
            str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        self.files = sorted(n for n in names if n and (root / n).is_file())

    def report(self, name, line, message):
        self.problems.append(f"{name}:{line}: {message}")

    def check_file(self, name):
        suffix = pathlib.PurePath(name).suffix
        if suffix not in CODE | {".md", ".txt", ".json", ""}:
            return
        try:
            text = (self.root / name).read_text()
        except UnicodeDecodeError:
            return  # A fuzzer's seed or another binary file.
        lines = text.split("\n")
        if not name.startswith(("tests/fixtures/", "fuzz/corpus/", "assets/")):
            for number, line in enumerate(lines, 1):
                for word in FORBIDDEN_TEXT:
                    if re.search(r"(?<!\w)" + re.escape(word), line):
                        self.report(name, number, f"'{word}' does not belong in the repository")
        if suffix in CODE or name == "dev" or name.endswith("CMakeLists.txt"):
            self.check_shape(name, lines)
        if suffix in (".h", ".cpp"):
            self.check_cpp(name, text)

    def check_shape(self, name, lines):
        if len(lines) - 1 > FILE_LINES:
            self.report(name, 1, f"{len(lines) - 1} lines; a file has at most {FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                self.report(name, number, f"{len(line)} columns; at most {COLUMNS}")
        first = 1 if lines[0].startswith("#!") else 0
        if not re.match(r'//|#|"""', lines[first] if len(lines) > first else ""):
            self.report(name, 1, "no comment at the top that says what the file owns")

    def check_cpp(self, name, text):
        code = without_comments(text)
        top = re.match(r"(?://[^\n]*\n)*", text)[0].count("\n")
        if top > TOP_COMMENT_LINES:
            self.report(name, 1, f"{top} lines of comment at the top; at most {TOP_COMMENT_LINES}")
        if name.endswith(".h"):
            lines = text.count("\n")
            # In backends/cpu/ a header is the text of a kernel, compiled once for each machine.
            if lines > HEADER_LINES and re.match(r"src/(?!backends/cpu/)", name):
                self.report(name, 1, f"{lines} lines; a header has at most {HEADER_LINES}")
            if "#pragma once" not in text:
                self.report(name, 1, "no #pragma once")
        for number, line in enumerate(code.split("\n"), 1):
            for pattern, instead in BANNED:
                if name.startswith("examples/") and "throw" in pattern:
                    continue  # Programs of others have ways of their own.
                for found in re.findall(pattern, line):
                    self.report(name, number, f"'{found}': use {instead}")
            if "getenv" in line and name != "src/base/env.cpp":
                self.report(name, number, "getenv: use base/env.h")
            if name.endswith(".h") and re.search(r"\busing\s+namespace\b", line):
                self.report(name, number, "'using namespace' in a header")
            if (name.startswith("src/") and name not in MUTABLE_STATICS and
                    re.match(r"\s+(static|thread_local)\s+(?!.*\bconst(expr)?\b)[^(]*[=;]", line)):
                self.report(name, number, "a static variable that changes")
        self.check_own_namespace(name, code)
        self.check_includes(name, text)
        self.check_scopes(name, code)

    def check_own_namespace(self, name, code):
        """Files that are compiled as one, and have names for things of their own."""
        found = re.fullmatch(r"tests/\w+/(?P<test>\w+_test)\.cpp|"
                             r"src/(?:models/\w+(?<!common)|convert/families)/(\w+)\.cpp", name)
        stem = found and next(filter(None, found.groups()))
        if found and not re.search(rf"^namespace ([\w:]+::)?{stem} \{{$", code, re.M):
            if not found["test"] or re.search(r"^TEST(_[FP])?\(", code, re.M):
                self.report(name, 1, f"expected a namespace {stem}, found none")

    def check_includes(self, name, text):
        parts = name.split("/")
        if parts[0] != "src" or len(parts) < 3:
            return
        allowed = {parts[1], *self.may_use.get(parts[1], [])}
        if parts[1] not in self.may_use:
            self.report(name, 1, f"module {parts[1]}/ is not in the table of {MODULES}")
        for number, line in enumerate(text.split("\n"), 1):
            hit = re.match(r'\s*#include "(\w+)/', line)
            if hit:
                self.used.add((parts[1], hit[1]))
            if hit and hit[1] not in allowed:
                self.report(name, number, f"{parts[1]}/ may not use {hit[1]}/")
            elif re.match(r'\s*#include "[^/"]+"', line):
                self.report(name, number, "an include names its module: \"module/file.h\"")

    def headers_of(self, name):
        """The headers that a file reads, by itself and by headers of the project."""
        if name not in self.headers:
            self.headers[name] = set()  # Ends a circle.
            text = (self.root / name).read_text() if (self.root / name).is_file() else ""
            found = set(re.findall(r'^\s*#include ["<]([^">]+)[">]', text, re.M))
            for header in tuple(found):
                found |= BRINGS.get(header, set()) | self.headers_of(f"src/{header}")
            self.headers[name] = found
        return self.headers[name]

    def check_names(self):
        """Sources stand alone, although precompiled headers would hide that they do not."""
        for name in self.files:
            if not re.match(r"src/.*\.(h|cpp)$", name) or name.endswith("/precompiled.h"):
                continue
            code = without_comments((self.root / name).read_text())
            for header, pattern in NAMES.items():
                hit = re.search(pattern, code)
                if hit and header not in self.headers_of(name) and name != f"src/{header}":
                    line = code[:hit.start()].count("\n") + 1
                    self.report(name, line, f"{hit[0].rstrip(' (<')}: include {header}")

    def check_types(self):
        """The same for the project's types, where one header alone declares a name for all."""
        codes = {name: without_comments((self.root / name).read_text()) for name in self.files
                 if re.match(r"src/.*\.(h|cpp)$", name)}
        known = {name.removeprefix("src/"): set(re.findall(DECLARES, code))
                 for name, code in codes.items()}
        owners = collections.defaultdict(list)
        for name, code in codes.items():
            for kind in re.findall(TYPE, code, re.M):
                owners[kind].append(name.removeprefix("src/"))
        for name, code in codes.items():
            if name.startswith("src/backends/cpu/") and name.endswith(".h"):
                continue  # The text of a kernel stands behind others.
            module = name.split("/")[1]
            near = {module, *self.may_use.get(module, [])}
            seen = known[name.removeprefix("src/")].union(
                *(known.get(header, ()) for header in self.headers_of(name)))
            for word in sorted(set(re.findall(r"\b[A-Z]\w*[a-z]\w*\b", code)) - seen):
                owner = owners.get(word, [""])
                if len(owner) == 1 and owner[0].endswith(".h") and owner[0].split("/")[0] in near:
                    line = code[:re.search(rf"\b{word}\b", code).start()].count("\n") + 1
                    self.report(name, line, f"{word}: include {owner[0]}")

    def check_modules(self):
        """The table goes upwards, and each of its permissions is made use of."""
        below = set()
        for module, allowed in self.may_use.items():
            for other in allowed:
                if other not in below:
                    self.report(MODULES, 1, f"{module}/ uses {other}/, which comes after it")
                elif (module, other) not in self.used:
                    self.report(MODULES, 1, f"{module}/ does not use {other}/")
            below.add(module)

    def check_scopes(self, name, code):
        for what, line, *rest in walk_scopes(code):
            if what == "function" and rest[0] > FUNCTION_LINES:
                head = re.search(r"([\w:~]+)\s*\(", rest[1])
                self.report(name, line, f"{head[1] if head else 'a function'}() has {rest[0]} "
                                        f"lines; at most {FUNCTION_LINES}")
            if what == "statement" and name.startswith("src/") and is_mutable_variable(rest[0]):
                self.report(name, line, f"a global variable that changes: {rest[0][:60]}")

    def check_tests(self, covered_by):
        """Each source has a test; no line of the list is for nothing, so that it only shrinks."""
        tests = [n for n in self.files if n.startswith("tests/")]
        uncovered = []
        for name in self.files:
            parts = pathlib.PurePath(name).parts
            if parts[0] != "src" or not name.endswith(".cpp"):
                continue
            stem, module = pathlib.PurePath(name).stem, parts[1]
            wanted = f"{stem}_test.cpp"
            pattern = re.compile(r"(\w+_)?" + re.escape(wanted))
            if any(t.startswith(f"tests/{module}/") and pattern.fullmatch(t.rsplit("/", 1)[1])
                   for t in tests):
                continue
            uncovered.append(name)
            cover = cover_of(name, covered_by)
            if cover is None:
                self.report(name, 1, f"expected tests/{module}/{wanted}, found none")
            elif not any(matches(test, cover[1]) for test in tests):
                self.report(name, 1, f"expected {cover[1]} ({cover[2]}), found none")
        for line in covered_by:
            for pattern in alternatives(line[0]):
                if not any(matches(name, pattern) for name in uncovered):
                    self.report("tools/tidy.py", 1, f"COVERED_BY: {pattern} matches no source that "
                                                    "has no test of its name")

    def check_folders(self):
        folders = collections.Counter(str(pathlib.PurePath(name).parent) for name in self.files
                                      if re.match(r"src/.*\.(h|cpp)$", name))
        for folder, count in sorted(folders.items()):
            if count > FOLDER_SOURCES:
                self.report(folder, 1, f"{count} sources; a folder has at most {FOLDER_SOURCES}")

    def check_tour(self):
        if "TOUR.md" not in self.files:
            self.report("TOUR.md", 1, "there is none")
            return
        text = (self.root / "TOUR.md").read_text()
        path_pattern = re.compile(r"[`(]((?:[\w.-]+/)*[\w.-]+\.(?:h|cpp|py|md|txt|cmake))[`)]")
        for number, line in enumerate(text.split("\n"), 1):
            for path in path_pattern.findall(line):
                if path not in self.files and f"src/{path}" not in self.files:
                    self.report("TOUR.md", number, f"{path} does not exist")

    def check_objects(self, build):
        """A weak symbol from a file compiled for AVX may be linked into everyone's program."""
        for item in sorted(build.rglob("*.o")):
            isa = re.search(r"_(avx\w*|amx\w*|neon)\.cpp\.o$", item.name)
            if not isa:
                self.check_instructions(item)
            if "backends" not in item.parts or not isa or "_test" in str(item):
                continue
            symbols = subprocess.run(["nm", "-C", "--defined-only", str(item)],
                                     capture_output=True, text=True, check=True).stdout
            for line in symbols.splitlines():
                kind, _, symbol = line[17:].partition(" ")
                if kind not in "WVu" or symbol.startswith("DW.ref."):
                    continue
                if not re.search(r"\bcairn::(avx|amx|neon)\w*::", symbol):
                    self.report(item.name, 1, f"weak symbol outside {isa[1]}: {symbol[:90]}")

    def check_instructions(self, item):
        """The program starts on x86-64-v2: newer instructions only where they are chosen for."""
        if item.name.removesuffix(".o") in CHOOSE_THEMSELVES:
            return
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(item)],
                              capture_output=True, text=True, check=True).stdout
        for instruction in sorted(new_instructions(text)):
            self.report(item.name, 1, f"{instruction} is not in x86-64-v2")

    def run(self, objects):
        for name in self.files:
            self.check_file(name)
        self.check_names()
        self.check_types()
        self.check_modules()
        self.check_tests(COVERED_BY)
        self.check_folders()
        self.check_tour()
        if objects:
            self.check_objects(objects)
        for problem in self.problems:
            print(problem)
        return 1 if self.problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--objects", type=pathlib.Path)
    options = parser.parse_args()
    return Tidy(options.root).run(options.objects)


if __name__ == "__main__":
    sys.exit(main())
