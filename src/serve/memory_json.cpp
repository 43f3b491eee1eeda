// Put together as text: a report may have many thousands of numbers.
#include "serve/memory_json.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

namespace cairn::serve {

namespace {

using session::MemoryReport;
using session::SequenceReport;

template <class... Values>
void add(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  out += fmt::format(format, std::forward<Values>(values)...);
}

// Of each item what `write` adds, with commas between them.
template <class Items, class Write>
void add_list(std::string& out, const Items& items, Write write) {
  out += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) out += ',';
    write(item);
  }
  out += ']';
}

// [begin, end, begin …]
void add_stored(std::string& out, const std::vector<store::PositionRun>& runs) {
  add_list(out, runs,
           [&](const store::PositionRun& run) { add(out, "{},{}", run.begin, run.end); });
}

std::string sequence_json(const SequenceReport& sequence) {
  std::string out;
  add(out, R"({{"id":"{}","use":"{}","length":{},"common":{},"stored":{},"marks":)", sequence.id,
      sequence.use, sequence.length, sequence.common, sequence.is_stored);
  add_list(out, sequence.marks, [&](const SequenceReport::Mark& mark) {
    add(out, R"([{},"{}"])", mark.position, mark.kind);
  });
  out += R"(,"groups":)";
  const std::vector<store::PositionRun> nothing;
  size_t index = 0;
  add_list(out, sequence.groups, [&](const memory::GroupMap& group) {
    add(out, R"({{"blocks":{},"shared":{},"bytes":{},"whole":{},"runs":)", group.blocks,
        group.shared, group.bytes, group.is_whole);
    add_list(out, group.runs, [&](const memory::HeldRun& run) {
      add(out, "{},{},{}", run.begin, run.end, run.other_refs);
    });
    out += R"(,"stored":)";
    add_stored(out, index < sequence.stored.size() ? sequence.stored[index] : nothing);
    ++index;
    out += '}';
  });
  return out + '}';
}

void add_totals(const MemoryReport& report, std::string& out) {
  if (report.is_partial) {
    out += R"("process":null,"conversations":null,"engine":null,"store":null)";
    return;
  }
  const session::ProcessReport& process = report.process;
  add(out,
      R"("process":{{"resident":{},"files":{},"weights":{},"steps":{},)"
      R"("conversations":{},"rest":{}}})",
      process.resident, process.files, process.weights, process.steps, process.conversations,
      process.rest);
  const memory::Usage& usage = report.usage;
  add(out,
      R"(,"conversations":{{"pages":{},"states":{},"logs":{},"rows":{},"warm":{},"budget":{}}})",
      usage.page_bytes, usage.state_bytes, usage.log_bytes, usage.hidden_bytes, usage.warm_bytes,
      usage.budget_bytes);
  const SchedulerStats& engine = report.scheduler;
  add(out,
      R"(,"engine":{{"running":{},"waiting":{},"steps":{},"decode_rows":{},"prompt_rows":{}}})",
      engine.running, engine.waiting, engine.steps, engine.decode_rows, engine.prompt_rows);
  out += R"(,"store":)";
  if (report.store) {
    const store::StoreStats& store = *report.store;
    add(out, R"({{"entries":{},"bytes":{},"budget":{},"hits":{},"misses":{}}})", store.entries,
        store.bytes, store.budget_bytes, store.hits, store.misses);
  } else {
    out += "null";
  }
}

std::string begin_json(const MemoryReport& report) {
  std::string out = R"({"object":"memory",)";
  add_totals(report, out);
  out += R"(,"groups":)";
  add_list(out, report.groups, [&](const session::GroupReport& group) {
    add(out, R"({{"kind":"{}","window":{},"page_tokens":{},"block_bytes":{},"layers":[{}]}})",
        group.kind, group.window, group.page_tokens, group.block_bytes,
        fmt::join(group.layers, ","));
  });
  add(out, R"(,"left_out":{},"order":)", report.left_out);
  add_list(out, report.sequences,
           [&](const SequenceReport& sequence) { add(out, R"("{}")", sequence.id); });
  return out + R"(,"sequences":)";
}

}  // namespace

std::string memory_json(const MemoryReport& report) {
  std::string out = begin_json(report);
  add_list(out, report.sequences,
           [&](const SequenceReport& sequence) { out += sequence_json(sequence); });
  return out + '}';
}

std::string MemoryChanges::next(const MemoryReport& report) {
  std::string out = begin_json(report);
  std::map<std::string, std::string> known;
  std::vector<const std::string*> changed;
  for (const SequenceReport& sequence : report.sequences) {
    std::string text = sequence_json(sequence);
    const auto found = known_.find(sequence.id);
    const bool is_same = found != known_.end() && found->second == text;
    const auto [place, is_new] = known.insert_or_assign(sequence.id, std::move(text));
    if (!is_same) changed.push_back(&place->second);
  }
  known_ = std::move(known);
  const bool is_same = begin_ == out && changed.empty();
  if (report.is_partial && is_same) return {};
  begin_ = out;
  add_list(out, changed, [&](const std::string* text) { out += *text; });
  return out + '}';
}

}  // namespace cairn::serve
