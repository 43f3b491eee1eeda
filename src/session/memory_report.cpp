// Collecting: what is in use, then what was used last.
#include "session/memory_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "base/ids.h"
#include "base/machine/machine_memory.h"
#include "base/sha256.h"
#include "memory/common_prefix.h"

namespace cairn::session {

namespace {

// Sequences of which it is known whether the store has them.
constexpr size_t kStoredMax = 1024;

std::vector<GroupReport> groups_of(const memory::Layout& layout) {
  std::vector<GroupReport> groups;
  for (const memory::GroupSpec& spec : layout.groups) {
    groups.push_back({.kind = memory::name(spec.kind),
                      .window = spec.window,
                      .page_tokens = spec.has_pages() ? spec.page_tokens() : 0,
                      .block_bytes = spec.block_bytes,
                      .layers = {}});
  }
  for (size_t layer = 0; layer < layout.kv_plane_of_layer.size(); ++layer) {
    const int32_t plane = layout.kv_plane_of_layer[layer];
    if (plane >= 0) {
      const int32_t group = layout.kv_planes[size_t(plane)].group;
      groups[size_t(group)].layers.push_back(int32_t(layer));
    }
    if (layout.state_tensor_of_layer[layer] >= 0) {
      groups[size_t(layout.recurrent_group)].layers.push_back(int32_t(layer));
    }
  }
  return groups;
}

std::string_view anchor_name(memory::AnchorKind kind) {
  using memory::AnchorKind;
  switch (kind) {
    case AnchorKind::message_start:
      return "message_start";
    case AnchorKind::prompt_end:
      return "prompt_end";
    case AnchorKind::answer_end:
      return "answer_end";
    case AnchorKind::branch:
      return "branch";
    case AnchorKind::closing:
      return "closing";
    case AnchorKind::tail:
      break;
  }
  return "tail";
}

ProcessReport process_of(const Engine& engine, const memory::Usage& usage) {
  const FixedBytes& fixed = engine.fixed_bytes();
  ProcessReport process{.resident = resident_bytes(),
                        .files = resident_file_bytes(),
                        // In a cache they are pages of a file.
                        .weights = engine.options().pack_cache.empty() ? fixed.weights : 0,
                        .steps = fixed.plans + fixed.workspace + usage.other_bytes,
                        .conversations = usage.used_bytes() - usage.other_bytes + usage.warm_bytes};
  process.rest = int64_t(process.resident) -
                 int64_t(process.files + process.weights + process.steps + process.conversations);
  return process;
}

SequenceReport report_of(std::string id, std::string_view use, const memory::Sequence& sequence) {
  SequenceReport report{.id = std::move(id), .use = use, .length = sequence.length()};
  const std::span<const memory::Anchor> anchors = sequence.anchors();
  const size_t count = std::min(anchors.size(), MemoryReporter::kMarksMax);
  for (const memory::Anchor& anchor : anchors.last(count)) {
    report.marks.push_back({anchor.position, anchor_name(anchor.kind)});
  }
  report.groups = memory::SequenceMap::of(sequence, MemoryReporter::kRunsMax);
  return report;
}

// Numbers would tell a tenant how many sequences others have had: their digests under a secret of
// this process do not.
std::string id_of(std::string_view use, int64_t number) {
  static const uint64_t secret = [] {
    std::random_device device;
    return uint64_t(device()) << 32 | device();
  }();
  const Sha256Digest digest = Sha256().add(secret).add(uint64_t(number)).add(use).finish();
  uint64_t bits = 0;
  std::memcpy(&bits, digest.data(), sizeof bits);
  return fmt::format("{}-{:016x}", use, bits);
}

// Sequences of different variants have nothing in common, however they begin.
bool goes_first(const memory::Sequence& a, const memory::Sequence& b) {
  if (a.variant() != b.variant()) return a.variant() < b.variant();
  const size_t common = size_t(memory::common_prefix(a.tokens(), b.tokens()));
  if (common == b.tokens().size()) return false;
  if (common == a.tokens().size()) return true;
  return index_of(a.tokens()[common]) < index_of(b.tokens()[common]);
}

}  // namespace

std::vector<MemoryReporter::Listed> MemoryReporter::list(std::optional<uint64_t> tenant,
                                                         int32_t& left_out) const {
  const auto is_others = [&](const memory::Sequence* sequence) {
    return tenant && sequence->variant().tenant != *tenant;
  };
  std::vector<Listed> listed;
  for (const Scheduler::Running& running : scheduler_->running()) {
    if (is_others(running.sequence)) continue;
    if (listed.size() == kSequencesMax) {
      ++left_out;
      continue;
    }
    listed.push_back({report_of(id_of("answer", int64_t(running.id)),
                                running.is_reading ? "reading" : "answering", *running.sequence),
                      running.sequence});
  }
  std::vector<memory::PrefixCache::Listed> kept = engine_->cache().list();
  std::erase_if(kept, [&](const auto& entry) { return is_others(entry.sequence); });
  std::ranges::sort(kept, [](const auto& a, const auto& b) { return a.last_use > b.last_use; });
  const size_t count = std::min(kept.size(), kSequencesMax - listed.size());
  left_out += int32_t(kept.size() - count);
  kept.resize(count);
  for (const memory::PrefixCache::Listed& entry : kept) {
    listed.push_back(
        {report_of(id_of("kept", entry.id), entry.is_pinned ? "pinned" : "kept", *entry.sequence),
         entry.sequence});
  }
  return listed;
}

// Reading the tokens takes time, so the store is asked again only where something has changed.
void MemoryReporter::look_in_store(std::vector<Listed>& listed) {
  SequenceStore* const store = engine_->sequence_store();
  if (store == nullptr) return;
  const uint64_t changes = store->stats().changes;
  // Reports for other tenants have other sequences.
  if (stored_.size() > kStoredMax) stored_.clear();
  for (Listed& each : listed) {
    SequenceReport& report = each.report;
    Stored& stored = stored_[report.id];
    if (stored.length != report.length || stored.changes != changes) {
      const Selection selection =
          engine_->default_selection().for_tenant(each.sequence->variant().tenant);
      const bool is_known = each.sequence->variant() == selection.variant();
      stored = {.length = report.length, .changes = changes, .part = {}};
      if (is_known) stored.part = engine_->stored_part(selection, each.sequence->tokens());
      for (auto& runs : stored.part.runs) runs.resize(std::min(runs.size(), kRunsMax));
    }
    report.is_stored = stored.part.has_all(report.length);
    report.stored = stored.part.runs;
  }
}

PricedPrompt price(Engine& engine, std::span<const Token> prompt, uint64_t tenant,
                   bool wants_logits) {
  const memory::PrefixCache& cache = engine.cache();
  const Selection selection = engine.default_selection().for_tenant(tenant);
  const memory::PrefixCache::Found found = cache.look(prompt, selection.variant(), wants_logits);
  PricedPrompt priced;
  priced.stored = engine.stored_part(selection, prompt);
  if (found.sequence != nullptr) {
    priced.plan = found.plan;
    for (const memory::PrefixCache::Listed& entry : cache.list()) {
      if (entry.sequence == found.sequence) priced.sequence = id_of("kept", entry.id);
    }
  }
  priced.plan.forward_tokens = int32_t(prompt.size()) - priced.plan.resume;
  return priced;
}

MemoryReport MemoryReporter::make(std::optional<uint64_t> tenant) {
  memory::Memory& memory = engine_->memory();
  MemoryReport report{.is_partial = tenant.has_value(), .groups = groups_of(memory.layout())};
  if (!tenant) {
    report.usage = memory.usage();
    report.scheduler = scheduler_->stats();
    report.process = process_of(*engine_, report.usage);
    SequenceStore* const store = engine_->sequence_store();
    if (store != nullptr && store->has_folder()) report.store = store->stats();
  }
  std::vector<Listed> listed = list(tenant, report.left_out);
  look_in_store(listed);
  std::ranges::sort(listed, [](const Listed& a, const Listed& b) {
    return goes_first(*a.sequence, *b.sequence);
  });
  const memory::Sequence* before = nullptr;
  for (Listed& each : listed) {
    const bool is_kin = before != nullptr && before->variant() == each.sequence->variant();
    if (is_kin) each.report.common = memory::common_prefix(*before, *each.sequence);
    before = each.sequence;
    report.sequences.push_back(std::move(each.report));
  }
  return report;
}

}  // namespace cairn::session
