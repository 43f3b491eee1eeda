// A million operations in seeded programs; the resolver against brute force; every length around
// the borders of pages, windows, chunks and logs. A failure prints its seed and a shrunk program.
#include "tests/memory/simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "device/host_memory.h"
#include "tests/memory/archive_bench.h"
#include "tests/sanitized.h"
#include "tests/small_pages.h"

namespace cairn::memory::toy {
namespace {

constexpr size_t kLiveMax = 4;
constexpr int32_t kContextMax = 150;
constexpr Token kProbe = Token(7);
constexpr size_t kMixtureCount = 6;

// A live sequence, and what is known of it from outside.
struct Live {
  Sequence sequence;
  ToyAlone alone;
  std::vector<std::pair<int32_t, AnchorKind>> anchors;  // All but tails, ascending.
  std::vector<std::vector<bool>> pages;                 // [group][page]: held; windows only.
  int32_t protected_from = 0;
};

bool is_window(const GroupSpec& spec) {
  return spec.kind == GroupKind::window || spec.kind == GroupKind::chunked;
}

// Whether a group needs `token` to go on at `position`: it sees it, or continues its page.
bool needs(const GroupSpec& spec, int32_t position, int32_t token) {
  if (token >= position) return false;
  if (position % kPageTokens != 0 && token == position - 1) return true;
  if (spec.kind == GroupKind::window) return token > position - spec.window;
  return token / spec.window == position / spec.window;
}

class Run {
 public:
  explicit Run(const Program& program) : program_(program), model_(toy_models()[program.model]) {
    memory_ = Memory::create(model_.layout(), program.options, device_).value();
    add_live();
  }

  std::optional<std::string> run() {
    for (size_t index = 0; index < program_.operations.size(); ++index) {
      const Operation& operation = program_.operations[index];
      const bool watches = operation.b % 8 == 0 && operation.action != Action::partners;
      if (watches) watch_others(operation.a % lives_.size());
      apply(operation);
      if (!failure_) check();
      if (watches && !failure_) check_watched();
      if (failure_) return fmt::format("{}. {}: {}", index, name(operation.action), *failure_);
    }
    for (Live& live : lives_) memory_->close(live.sequence);
    if (memory_->usage().used_bytes() != 0) return "blocks leak";
    return std::nullopt;
  }

 private:
  void fail_with(std::string what) {
    if (!failure_) failure_ = std::move(what);
  }
  const Layout& layout() const { return memory_->layout(); }
  bool has_states() const { return layout().recurrent_group >= 0; }

  void add_live() {
    const Variant variant = Variant(added_count_++ % 3);
    lives_.push_back({.sequence = memory_->new_sequence(variant),
                      .alone = ToyAlone(&model_, variant),
                      .anchors = {},
                      .pages = std::vector<std::vector<bool>>(layout().groups.size())});
  }

  static std::vector<Token> tokens_of(uint32_t seed, int32_t count) {
    std::vector<Token> tokens(static_cast<size_t>(count));
    for (int32_t index = 0; index < count; ++index) {
      tokens[size_t(index)] = Token(mix(seed, uint64_t(index)) % 64);
    }
    return tokens;
  }

  // Mostly short steps, some around the borders, few long ones.
  static int32_t count_of(uint32_t number) {
    switch (number % 8) {
      case 0:
        return 1 + int32_t(number / 8 % 70);
      case 1:
        return 30 + int32_t(number / 8 % 5);
      case 2:
        return 6 + int32_t(number / 8 % 5);
      default:
        return 1 + int32_t(number / 8 % 3);
    }
  }

  void apply(const Operation& operation);
  void append(Live& live, const Operation& operation);
  void sample(Live& live);
  void rewind(Live& live, const Operation& operation);
  void edit(Live& live, const Operation& operation);
  void speculate(Live& live, const Operation& operation);
  void cancel(Live& live, const Operation& operation);
  void replay(Live& live, const Operation& operation);
  void keep_anchor(Live& live, const Operation& operation);
  void drop_anchor(Live& live, const Operation& operation);
  void protect(Live& live, const Operation& operation);
  void partners(const Operation& operation);
  void out_of_memory(Live& live, const Operation& operation);
  void archive(Live& live, const Operation& operation);

  bool make_ready(Live& live);
  std::optional<Transaction> begin(Live& live, const StepRequest& request);
  void commit(Live& live, Transaction& transaction, const StepRequest& request, int32_t accepted,
              std::span<const uint64_t> rows);
  void follow(Live& live);

  void watch_others(size_t operated);
  void check_watched();
  void check();
  void check_content(Live& live);
  void check_anchors(const Live& live);
  void check_log(const Live& live);
  void check_names();
  int32_t resumable_by_brute_force(const Live& live, int32_t position) const;

  const Program& program_;
  const ToyModel& model_;
  const test::SmallPages small_pages_;
  HostMemory device_;
  std::unique_ptr<Memory> memory_;
  std::vector<Live> lives_;
  uint64_t added_count_ = 0;
  std::optional<std::string> failure_;
  std::vector<std::vector<int32_t>> refs_;
  struct Watched {
    size_t group;
    PageId block;
    std::string bytes;
  };
  std::vector<Watched> watched_;
};

void Run::apply(const Operation& operation) {
  Live& live = lives_[operation.a % lives_.size()];
  switch (operation.action) {
    case Action::append:
      return append(live, operation);
    case Action::sample:
      return sample(live);
    case Action::rewind:
      return rewind(live, operation);
    case Action::fork:
      if (lives_.size() == kLiveMax) return;
      // Now and then one of another variant begins in its place.
      if (operation.b % 4 == 3) return add_live();
      lives_.push_back(Live(live));
      return;
    case Action::edit:
      return edit(live, operation);
    case Action::close:
      memory_->close(live.sequence);
      lives_.erase(lives_.begin() + std::ptrdiff_t(operation.a % lives_.size()));
      if (lives_.empty()) add_live();
      return;
    case Action::speculate:
      return speculate(live, operation);
    case Action::cancel:
      return cancel(live, operation);
    case Action::replay:
      return replay(live, operation);
    case Action::rest:
      return void(memory_->suspend(live.sequence));
    case Action::keep_anchor:
      return keep_anchor(live, operation);
    case Action::drop_anchor:
      return drop_anchor(live, operation);
    case Action::protect:
      return protect(live, operation);
    case Action::partners:
      return partners(operation);
    case Action::out_of_memory:
      return out_of_memory(live, operation);
    case Action::trim:
      return memory_->trim();
    case Action::archive:
      return archive(live, operation);
  }
}

// Replays a suspended sequence; false if there is no room for it.
bool Run::make_ready(Live& live) {
  if (!memory_->needs_replay(live.sequence)) return true;
  auto begun = memory_->begin_replay(live.sequence, 1000);
  if (!begun) return false;
  Replay replay = std::move(begun).value();
  model_.replay(layout(), replay.slice(0, 0));
  replay.commit();
  follow(live);
  return true;
}

std::optional<Transaction> Run::begin(Live& live, const StepRequest& request) {
  if (!make_ready(live)) return std::nullopt;
  auto begun = memory_->begin(live.sequence, request);
  if (begun) return std::move(begun).value();
  const ErrorCode code = begun.error().code;
  const bool is_full = code == ErrorCode::memory_full || code == ErrorCode::context_full;
  if (!is_full) fail_with(begun.error().message);
  return std::nullopt;
}

// Pages that came or went with the sequence's length, then what protection leaves of them.
void Run::follow(Live& live) {
  const int32_t length = live.sequence.length();
  for (size_t group = 0; group < layout().groups.size(); ++group) {
    const GroupSpec& spec = layout().groups[group];
    if (!is_window(spec)) continue;
    std::vector<bool>& pages = live.pages[group];
    pages.resize(size_t(spec.page_count(length)), true);
    for (int32_t page = 0; page < int32_t(pages.size()); ++page) {
      if (!pages[size_t(page)]) continue;
      bool is_needed = false;
      const auto look = [&](int32_t position) {
        for (int32_t token = page * kPageTokens; token < (page + 1) * kPageTokens; ++token) {
          if (needs(spec, position, token)) return true;
        }
        return false;
      };
      for (const Anchor& anchor : live.sequence.anchors()) {
        is_needed = is_needed || look(anchor.position);
      }
      for (int32_t position = std::min(live.protected_from, length);
           !is_needed && position <= length; ++position) {
        is_needed = look(position);
      }
      pages[size_t(page)] = is_needed;
    }
  }
}

void Run::commit(Live& live, Transaction& transaction, const StepRequest& request, int32_t accepted,
                 std::span<const uint64_t> rows) {
  if (request.keeps_hidden && accepted > 0) {
    const uint64_t output = rows[size_t(accepted) - 1];
    std::memcpy(transaction.hidden().data, &output, sizeof output);
  }
  const int32_t length = live.sequence.length();
  transaction.commit(accepted);
  live.alone.append(request.tokens.first(size_t(accepted)));
  if (accepted > 0 && rows[size_t(accepted) - 1] != live.alone.output()) {
    fail_with("a step computed another output than the tokens alone");
  }
  for (const int32_t count : request.captures) {
    const auto& kinds = request.capture_kinds;
    const AnchorKind kind = kinds.empty() ? AnchorKind::message_start : kinds.front();
    if (count <= accepted) live.anchors.push_back({length + count, kind});
  }
  if (accepted > 0 && live.sequence.has_hidden() != request.keeps_hidden) {
    fail_with("the hidden row");
  }
  follow(live);
}

void Run::append(Live& live, const Operation& operation) {
  const std::vector<Token> tokens = tokens_of(operation.c, count_of(operation.b));
  const int32_t count = int32_t(tokens.size());
  std::vector<int32_t> captures;
  if (operation.c % 3 == 0) captures.push_back(1 + int32_t(operation.c / 3) % count);
  if (operation.c % 6 == 0 && captures[0] < count) captures.push_back(count);
  const std::vector<AnchorKind> kinds(captures.size(), AnchorKind(operation.c % 5));
  const StepRequest request{.tokens = tokens,
                            .captures = captures,
                            .capture_kinds = kinds,
                            .keeps_hidden = operation.c % 2 == 0};
  std::optional<Transaction> transaction = begin(live, request);
  if (!transaction) return;
  const std::vector<uint64_t> rows = model_.run(layout(), *transaction);
  int32_t accepted = count;
  if (operation.b % 5 == 0 && !captures.empty()) accepted = captures[0];
  if (!transaction->can_accept(accepted)) return fail_with("a capture cannot be accepted");
  commit(live, *transaction, request, accepted, rows);
}

// The next token follows from the hidden row where it is held, without computing anything.
void Run::sample(Live& live) {
  if (live.sequence.length() == 0) return;
  uint64_t output = live.alone.output();
  const DeviceBytes row = memory_->hidden(live.sequence);
  if (row.exists()) std::memcpy(&output, row.data, sizeof output);
  const Token token = Token(output % 64);
  const StepRequest request{.tokens = {&token, 1}, .keeps_hidden = true};
  std::optional<Transaction> transaction = begin(live, request);
  if (!transaction) return;
  commit(live, *transaction, request, 1, model_.run(layout(), *transaction));
}

int32_t Run::resumable_by_brute_force(const Live& live, int32_t position) const {
  std::vector<int32_t> states = {0};
  for (const Anchor& anchor : live.sequence.anchors()) {
    if (anchor.state) states.push_back(anchor.position);
  }
  if (live.sequence.has_live_state()) states.push_back(live.sequence.length());
  for (int32_t b = position; b > 0; --b) {
    bool is_possible = !has_states();
    for (const int32_t state : states) {
      const bool derives = state < b && state >= live.sequence.log_begin();
      is_possible = is_possible || state == b || derives;
    }
    for (size_t group = 0; group < live.pages.size(); ++group) {
      for (size_t page = 0; page < live.pages[group].size(); ++page) {
        if (live.pages[group][page]) continue;
        for (int32_t slot = 0; slot < kPageTokens && is_possible; ++slot) {
          is_possible = !needs(layout().groups[group], b, int32_t(page) * kPageTokens + slot);
        }
      }
    }
    if (is_possible) return b;
  }
  return 0;
}

void Run::rewind(Live& live, const Operation& operation) {
  const int32_t length = live.sequence.length();
  // Most rewinds are short.
  const int32_t back = int32_t(operation.b / 4 % (operation.b % 4 == 0 ? kContextMax : 20));
  const int32_t target = std::max(length - back, 0);
  const ResumePlan plan = memory_->plan(live.sequence, target, operation.c % 4 == 0);
  if (operation.c % 4 != 0 && plan.resume != resumable_by_brute_force(live, target)) {
    return fail_with(fmt::format("to {}: the plan resumes at {}, {} is possible", target,
                                 plan.resume, resumable_by_brute_force(live, target)));
  }
  auto result = memory_->at(live.sequence, plan.resume);
  if (!result) return fail_with(result.error().message);
  live.sequence = std::move(result).value();
  if (live.sequence.length() != plan.resume) return fail_with("at() is not where its plan is");
  if (memory_->needs_replay(live.sequence) != (plan.recurrence_steps > 0)) {
    return fail_with("the plan's recurrence steps");
  }
  if (plan.logits_ready && plan.resume == target && !live.sequence.has_hidden()) {
    return fail_with("the plan promised a hidden row");
  }
  live.alone.cut(plan.resume);
  std::erase_if(live.anchors, [&](const auto& anchor) { return anchor.first > plan.resume; });
  follow(live);
}

void Run::edit(Live& live, const Operation& operation) {
  rewind(live, operation);
  if (!failure_) append(live, operation);
}

void Run::speculate(Live& live, const Operation& operation) {
  const int32_t count = 1 + int32_t(operation.b % 12);
  const std::vector<Token> tokens = tokens_of(operation.c, count);
  const StepRequest request{.tokens = tokens, .keeps_hidden = operation.c % 2 == 0};
  std::optional<Transaction> transaction = begin(live, request);
  if (!transaction) return;
  const std::vector<uint64_t> rows = model_.run(layout(), *transaction);
  const int32_t accepted = int32_t(operation.b / 12) % (count + 1);
  if (!transaction->can_accept(accepted)) {
    const bool must = !has_states() || count <= memory_->log_step();
    if (must) fail_with("an answer cannot be accepted in part");
    return;
  }
  commit(live, *transaction, request, accepted, rows);
}

void Run::cancel(Live& live, const Operation& operation) {
  const std::vector<Token> tokens = tokens_of(operation.c, count_of(operation.b));
  std::optional<Transaction> transaction =
      begin(live, {.tokens = tokens, .keeps_hidden = operation.c % 2 == 0});
  if (transaction) model_.run(layout(), *transaction);
}

void Run::replay(Live& live, const Operation& operation) {
  if (!memory_->needs_replay(live.sequence)) return;
  auto begun = memory_->begin_replay(live.sequence, 1 + int32_t(operation.b % 9));
  if (!begun) return;
  Replay replay = std::move(begun).value();
  if (replay.row_count() > memory_->options().log_tokens_max) fail_with("a replay is too long");
  for (int32_t piece = 0; piece < replay.piece_count(); ++piece) {
    model_.replay(layout(), replay.slice(piece, 0));
  }
  if (operation.c % 4 == 0) return;
  replay.commit();
  follow(live);
}

void Run::keep_anchor(Live& live, const Operation& operation) {
  if (!make_ready(live)) return;
  const AnchorKind kind = AnchorKind(operation.b % 3);
  const Status kept = memory_->keep_anchor(live.sequence, kind);
  if (!kept) return fail_with(kept.error().message);
  const int32_t length = live.sequence.length();
  if (length == 0) return;
  if (!live.anchors.empty() && live.anchors.back().first == length) live.anchors.pop_back();
  live.anchors.push_back({length, kind});
  follow(live);
}

void Run::drop_anchor(Live& live, const Operation& operation) {
  const std::span<const Anchor> anchors = live.sequence.anchors();
  if (anchors.empty()) return;
  const size_t index = operation.b % anchors.size();
  const int32_t position = anchors[index].position;
  const size_t free_bytes = memory_->usage().used_bytes();
  const size_t exclusive_bytes = memory_->anchor_exclusive_bytes(live.sequence, index);
  if (!memory_->drop_anchor(live.sequence, index)) {
    // Only the last state can be the one that is replayed from.
    if (!memory_->needs_replay(live.sequence)) fail_with("an anchor cannot be dropped");
    return;
  }
  const size_t freed_bytes = free_bytes - memory_->usage().used_bytes();
  const bool frees_log = memory_->log_step() > 0;
  if (frees_log ? freed_bytes < exclusive_bytes : freed_bytes != exclusive_bytes) {
    fail_with(fmt::format("{} bytes of an anchor, {} freed", exclusive_bytes, freed_bytes));
  }
  std::erase_if(live.anchors, [&](const auto& anchor) { return anchor.first == position; });
  follow(live);
}

void Run::protect(Live& live, const Operation& operation) {
  const int32_t length = live.sequence.length();
  const int32_t choices[] = {0, length, std::max(length - 20, 0), kContextMax,
                             int32_t(operation.c % uint32_t(length + 1))};
  live.protected_from = choices[operation.b % 5];
  memory_->protect_from(live.sequence, live.protected_from);
  follow(live);
}

// Several sequences in one step; each is accepted, or not, for itself.
void Run::partners(const Operation& operation) {
  std::vector<std::vector<Token>> tokens;
  std::vector<StepRequest> requests;
  std::vector<std::optional<Transaction>> transactions;
  std::vector<Slice> slices;
  std::vector<ToyModel::Input> views;
  int32_t row_count = 0;
  tokens.reserve(lives_.size());
  for (size_t index = 0; index < lives_.size(); ++index) {
    const uint32_t number = operation.b + uint32_t(index) * 977;
    tokens.push_back(tokens_of(operation.c + uint32_t(index), count_of(number)));
    requests.push_back({.tokens = tokens.back(), .keeps_hidden = number % 2 == 0});
    transactions.push_back(begin(lives_[index], requests.back()));
    if (!transactions.back()) continue;
    slices.push_back(transactions.back()->slice(row_count));
    views.push_back({transactions.back()->tokens(), transactions.back()->variant()});
    row_count += int32_t(views.back().tokens.size());
  }
  const std::vector<uint64_t> rows = model_.run(layout(), slices, views);
  size_t first = 0;
  for (size_t index = 0; index < lives_.size(); ++index) {
    if (!transactions[index]) continue;
    const size_t count = requests[index].tokens.size();
    const bool is_dropped = (operation.c >> index) % 4 == 0;
    if (!is_dropped) {
      commit(lives_[index], *transactions[index], requests[index], int32_t(count),
             std::span(rows).subspan(first, count));
    }
    first += count;
  }
}

// A step that fails at its first take, at its second, and so on until it does not.
void Run::out_of_memory(Live& live, const Operation& operation) {
  const std::vector<Token> tokens = tokens_of(operation.c, count_of(operation.b));
  const int32_t capture = 1;
  const StepRequest request{
      .tokens = tokens, .captures = {&capture, 1}, .keeps_hidden = operation.c % 2 == 0};
  if (!make_ready(live)) return;
  Store& store = Inspector::store(*memory_);
  for (int64_t count = 0; count < 100; ++count) {
    store.refuse_after(count);
    std::optional<Transaction> transaction = begin(live, request);
    store.refuse_after(INT64_MAX);
    if (transaction) {
      return commit(live, *transaction, request, int32_t(tokens.size()),
                    model_.run(layout(), *transaction));
    }
    check();
    if (failure_) return;
    if (count > 40) return;  // There was no room for it.
  }
}

// The sequence is taken apart, and what is made of its parts takes its place. Its outline says
// where it resumes, and is cut as it is.
void Run::archive(Live& live, const Operation& operation) {
  const Sequence& sequence = live.sequence;
  if (sequence.length() == 0) return;
  const Outline outline = Archive::outline_of(sequence);
  const Status checked = memory::check(outline, layout());
  if (!checked) return fail_with(checked.error().message);
  const int32_t target = int32_t(operation.b % uint32_t(sequence.length() + 1));
  const bool wants_logits = operation.c % 2 == 0;
  const int32_t resume = resume_position(outline, layout(), target, wants_logits);
  if (resume != memory_->plan(sequence, target, wants_logits).resume) {
    return fail_with("an outline resumes elsewhere than its sequence");
  }
  Outline shorter = outline;
  shorter.cut(layout(), resume);
  if (resume > 0 && !memory::check(shorter, layout())) fail_with("a cut outline is none");
  const Outline branch = Archive::outline_of(memory_->at(sequence, resume).value());
  const bool is_same = shorter.tokens == branch.tokens && shorter.has_state == branch.has_state &&
                       shorter.has_hidden == branch.has_hidden;
  if (!is_same) fail_with("a cut outline is not that of the shorter sequence");

  Result<Assembly> begun = Assembly::begin(*memory_, outline, sequence.variant());
  if (!begun) {
    if (begun.error().code != ErrorCode::memory_full) fail_with(begun.error().message);
    return;
  }
  Assembly assembly = std::move(begun).value();
  copy_blocks(sequence, outline, layout(), assembly);
  live.sequence = std::move(assembly).finish();
  if (Archive::outline_of(live.sequence) != outline) fail_with("another outline");
}

// An operation on one sequence changes no byte of what the others hold.
void Run::watch_others(size_t operated) {
  refs_.assign(layout().groups.size(), {});
  watched_.clear();
  for (size_t index = 0; index < lives_.size(); ++index) {
    if (index != operated) Inspector::count_refs(lives_[index].sequence, refs_);
  }
  for (size_t group = 0; group < refs_.size(); ++group) {
    const Pool& pool = Inspector::store(*memory_).pool(int32_t(group));
    for (size_t block = 0; block < refs_[group].size(); ++block) {
      if (refs_[group][block] == 0) continue;
      const PageId id = PageId(int32_t(block));
      const auto* const bytes = reinterpret_cast<const char*>(pool.address(id));
      watched_.push_back({group, id, std::string(bytes, pool.block_bytes())});
    }
  }
}

void Run::check_watched() {
  for (const Watched& watched : watched_) {
    const Pool& pool = Inspector::store(*memory_).pool(int32_t(watched.group));
    const int order =
        std::memcmp(pool.address(watched.block), watched.bytes.data(), watched.bytes.size());
    if (order != 0) return fail_with("a block of another sequence was written");
  }
}

void Run::check_content(Live& live) {
  const Sequence& sequence = live.sequence;
  const auto same = [](std::span<const Token> a, std::span<const Token> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  if (!same(sequence.tokens(), live.alone.tokens())) return fail_with("other tokens");
  if (Inspector::probe(model_, sequence, kProbe) != live.alone.probe(kProbe)) {
    return fail_with(fmt::format("the sequence of {} tokens sees something else than its tokens",
                                 sequence.length()));
  }
  const DeviceBytes row = memory_->hidden(sequence);
  if (!row.exists()) return;
  uint64_t output = 0;
  std::memcpy(&output, row.data, sizeof output);
  if (output != live.alone.output()) fail_with("another hidden row");
}

void Run::check_anchors(const Live& live) {
  size_t next = 0;
  int32_t previous = 0;
  for (const Anchor& anchor : live.sequence.anchors()) {
    if (anchor.position <= previous || anchor.position > live.sequence.length()) {
      return fail_with("anchors do not ascend");
    }
    previous = anchor.position;
    if (bool(anchor.state) != has_states()) return fail_with("an anchor's state");
    if (anchor.kind == AnchorKind::tail) {
      if (anchor.position < live.sequence.log_begin()) return fail_with("a tail without its log");
      continue;
    }
    if (next == live.anchors.size() || live.anchors[next].first != anchor.position ||
        live.anchors[next].second != anchor.kind) {
      return fail_with(fmt::format("an anchor at {} that nobody kept", anchor.position));
    }
    ++next;
  }
  if (next != live.anchors.size()) fail_with("an anchor is missing");
}

// The log's pages are those of [log_begin, length), and a state stands at its beginning.
void Run::check_log(const Live& live) {
  if (layout().log_group < 0) return;
  const int32_t length = live.sequence.length();
  const int32_t begin = live.sequence.log_begin();
  if (begin < length - memory_->options().log_tokens_max || begin > length) {
    return fail_with("the log's length");
  }
  bool has_base = begin == 0 || begin == length;
  for (const Anchor& anchor : live.sequence.anchors()) {
    has_base = has_base || anchor.position == begin;
  }
  if (!has_base) return fail_with("the log begins nowhere");
  const PageTable& table = Inspector::table(live.sequence, layout().log_group);
  for (int32_t page = 0; page < table.size(); ++page) {
    const bool is_needed = begin < length && (page + 1) * kLogPageTokens > begin;
    if ((table[page] != kNoPage) != is_needed) return fail_with("the log's pages");
  }
}

void Run::check_names() {
  refs_.resize(layout().groups.size());
  for (std::vector<int32_t>& counts : refs_) std::fill(counts.begin(), counts.end(), 0);
  for (const Live& live : lives_) Inspector::count_refs(live.sequence, refs_);
  Store& store = Inspector::store(*memory_);
  for (size_t group = 0; group < refs_.size(); ++group) {
    const Pool& pool = store.pool(int32_t(group));
    int32_t used_count = 0;
    for (size_t block = 0; block < refs_[group].size(); ++block) {
      used_count += int32_t(refs_[group][block] > 0);
      if (refs_[group][block] > 0 && refs_[group][block] != pool.ref_count(PageId(block))) {
        return fail_with(fmt::format("block {} of group {} has {} references, {} are counted",
                                     block, group, refs_[group][block],
                                     pool.ref_count(PageId(block))));
      }
    }
    if (used_count != pool.used_count()) return fail_with("blocks are used that nobody refers to");
  }
  if (memory_->usage().used_bytes() > program_.options.budget_bytes) fail_with("over the budget");
}

void Run::check() {
  for (Live& live : lives_) {
    check_content(live);
    check_anchors(live);
    check_log(live);
    for (size_t group = 0; group < live.pages.size(); ++group) {
      if (!is_window(layout().groups[group])) continue;
      const PageTable& table = Inspector::table(live.sequence, int32_t(group));
      for (int32_t page = 0; page < table.size(); ++page) {
        if ((table[page] != kNoPage) == live.pages[group][size_t(page)]) continue;
        return fail_with(fmt::format("page {} of group {} is {}", page, group,
                                     table[page] == kNoPage ? "missing" : "not needed"));
      }
    }
  }
  check_names();
}

}  // namespace

std::string_view name(Action action) {
  constexpr std::string_view kNames[] = {
      "append",    "sample",   "rewind",        "fork", "edit",        "close",
      "speculate", "cancel",   "replay",        "rest", "keep_anchor", "drop_anchor",
      "protect",   "partners", "out_of_memory", "trim", "archive"};
  static_assert(std::size(kNames) == kActionCount);
  return kNames[size_t(action)];
}

const std::vector<ToyModel>& toy_models() {
  const auto make = [] {
    using Toy = ToyModel;
    std::vector<ToyModel> models;
    models.emplace_back(Toy::Layers{{Toy::full()}, {Toy::full()}});
    for (const int32_t window : {1, 2, 5, 31, 32, 33, 64}) {
      models.emplace_back(Toy::Layers{{Toy::window(window)}});
      models.emplace_back(Toy::Layers{{Toy::chunked(window)}});
    }
    models.emplace_back(Toy::Layers{{Toy::recurrent()}});
    models.emplace_back(Toy::Layers{{Toy::recurrent()}, {Toy::full()}, {Toy::recurrent()}});
    models.emplace_back(Toy::Layers{{Toy::window(33)}, {Toy::full()}, {Toy::window(5)}});
    models.emplace_back(Toy::Layers{{Toy::window(31)}, {State::shared(0)}, {Toy::chunked(40)}});
    models.emplace_back(Toy::Layers{{Toy::window(7), Toy::recurrent()},
                                    {Toy::full()},
                                    {Toy::chunked(32), Toy::recurrent()},
                                    {State::shared(1)}});
    models.emplace_back(Toy::Layers{{Toy::recurrent()}, {Toy::window(1)}, {Toy::window(34)}});
    return models;
  };
  static const std::vector<ToyModel> kModels = make();
  return kModels;
}

Program random_program(uint32_t seed, int32_t operation_count) {
  std::mt19937 generator(seed);
  const auto random = [&] { return uint32_t(generator()); };
  // Half of the programs are for the mixtures, which are the last of the models.
  const size_t model_count = toy_models().size();
  Program program{.model = random() % 2 == 0 ? random() % model_count
                                             : model_count - 1 - random() % kMixtureCount};
  const Layout layout = toy_models()[program.model].layout();
  size_t unit_bytes = 0;
  for (const GroupSpec& group : layout.groups) unit_bytes += 2 * group.block_bytes;
  // Half of the programs live under pressure.
  program.options.budget_bytes = unit_bytes * (random() % 2 == 0 ? 40 : 2 + random() % 20);
  program.options.context_tokens_max = kContextMax;
  program.options.log_step = random() % 2 == 0 ? 8 : 16;
  if (random() % 3 == 0) program.options.log_tokens_max = program.options.log_step + 5;
  program.options.poisons = true;
  // The frequent ones are those that a conversation is made of.
  constexpr Action kMore[] = {Action::append, Action::sample, Action::sample,   Action::rewind,
                              Action::edit,   Action::fork,   Action::speculate};
  for (int32_t index = 0; index < operation_count; ++index) {
    const uint32_t pick = random() % uint32_t(kActionCount + int32_t(std::size(kMore)));
    const Action action =
        pick < uint32_t(kActionCount) ? Action(pick) : kMore[pick - uint32_t(kActionCount)];
    program.operations.push_back({.action = action, .a = random(), .b = random(), .c = random()});
  }
  return program;
}

std::optional<std::string> run_program(const Program& program) {
  return Run(program).run();
}

Program shrunk(Program program) {
  for (size_t part = program.operations.size() / 2; part > 0; part /= 2) {
    for (size_t begin = 0; begin < program.operations.size();) {
      Program less = program;
      const size_t count = std::min(part, less.operations.size() - begin);
      const auto first = less.operations.begin() + std::ptrdiff_t(begin);
      less.operations.erase(first, first + std::ptrdiff_t(count));
      if (run_program(less)) {
        program = std::move(less);
      } else {
        begin += part;
      }
    }
  }
  return program;
}

std::string show(const Program& program) {
  std::string text = fmt::format("model {}, budget {}, log {} of {}\n", program.model,
                                 program.options.budget_bytes, program.options.log_step,
                                 program.options.log_tokens_max);
  for (const Operation& operation : program.operations) {
    text += fmt::format("  {} {} {} {}\n", name(operation.action), operation.a, operation.b,
                        operation.c);
  }
  return text;
}

}  // namespace cairn::memory::toy

namespace cairn::memory::simulator_test {
namespace {

using toy::Program;
using toy::run_program;
using toy::show;

TEST(Simulator, AMillionOperationsKeepEverySequenceExact) {
  constexpr int32_t kOperationCount = 200;
  constexpr int32_t kProgramCount = test::kIsSanitized ? 1000 : 5000;
  for (uint32_t seed = 1; seed <= uint32_t(kProgramCount); ++seed) {
    const Program program = toy::random_program(seed, kOperationCount);
    const std::optional<std::string> failure = run_program(program);
    if (!failure) continue;
    const Program small = toy::shrunk(program);
    FAIL() << "seed " << seed << ": " << *failure << "\nshrunk to " << show(small) << "which says "
           << run_program(small).value();
  }
}

}  // namespace
}  // namespace cairn::memory::simulator_test
