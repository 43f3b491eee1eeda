// Searching, weighing, and records on their way.
#include "tier/tier_source.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/log.h"
#include "memory/common_prefix.h"
#include "store/encoded_record.h"
#include "store/pieces.h"
#include "tier/lease.h"

namespace cairn::tier {

namespace {

using std::chrono::milliseconds;

// Links that are asked for at once: two rounds for 4,096 of them.
constexpr int32_t kProbes = 64;
// Manifests that are looked at: those of the longest common beginnings.
constexpr size_t kManifestsMax = 4;
// Who waits for another machine asks so often whether it is done.
constexpr milliseconds kAskAgain(25);
// Of a lease: twice what computing takes, in these bounds.
constexpr milliseconds kLeaseMin(200), kLeaseUnknown(2000), kLeaseMax(60000);
// A server that takes no time for records is not waited for without end.
constexpr std::chrono::seconds kLongest(60);

Clock::time_point soon(const Tier& tier) {
  return Clock::now() + tier.options().times.look_up;
}

// The reasons that a server did not answer have words of their own.
Outcome outcome_of_lost(const Reply& reply) {
  if (reply.text == kPausedReply) return Outcome::paused;
  return reply.text.ends_with("in time") ? Outcome::late : Outcome::unreachable;
}

bool is_damage(const Error& error) {
  return error.code == ErrorCode::invalid_data || error.code == ErrorCode::unsupported;
}

}  // namespace

// Waited for when it is read: meanwhile others come.
class TierRecord : public store::OpenRecord {
 public:
  TierRecord(TierSource* source, const store::PieceRef& piece, std::shared_ptr<Servers> servers,
             PendingReply pending, Clock::time_point deadline)
      : source_(source),
        piece_(piece),
        servers_(std::move(servers)),
        pending_(std::move(pending)),
        deadline_(deadline) {}

  Status expect_bytes(uint64_t count) override {
    Status come = receive();
    if (!come) {
      source_->note_lost_data(come.error(), *servers_);
      return come;
    }
    const Reply& reply = pending_->expected->reply;
    if (reply.kind == Reply::Kind::lost) {
      source_->lose(outcome_of_lost(reply));
      return fail(ErrorCode::io, "{}", reply.text);
    }
    if (reply.kind == Reply::Kind::nothing) {
      source_->lose(Outcome::incomplete);
      return fail(ErrorCode::not_found, "tier: a record has gone");
    }
    if (reply.kind != Reply::Kind::bytes || reply.bytes.size() != count + kSealBytes) {
      return fail(ErrorCode::invalid_data, "record: expected {} bytes and a seal, found {}", count,
                  reply.bytes.size());
    }
    return source_->check_seal(piece_.name, reply.bytes);
  }

  Status read(uint64_t offset, std::span<std::byte> bytes) override {
    const std::span<const std::byte> all = pending_->expected->reply.bytes;
    if (offset > all.size() || bytes.size() > all.size() - offset) {
      return fail(ErrorCode::invalid_data, "record: it ends too early");
    }
    std::ranges::copy(all.subspan(size_t(offset), bytes.size()), bytes.begin());
    return Ok{};
  }

 private:
  Status receive() {
    CAIRN_TRY(servers_->wait(pending_, deadline_));
    const Expected& come = *pending_->expected;
    const Clock::time_point from = std::max(come.sent_at, source_->data_came_at_);
    if (come.came_at > from) {
      source_->tier_->costs().note_fetched(come.reply.bytes.size(), come.came_at - from);
      source_->data_came_at_ = come.came_at;
    }
    return Ok{};
  }

  TierSource* source_;
  store::PieceRef piece_;
  std::shared_ptr<Servers> servers_;
  PendingReply pending_;
  Clock::time_point deadline_;
};

store::RecordSource::Answer TierSource::look_up(const Question& question) {
  outcome_ = Outcome::absent;
  if (!tier_->reads().admits()) {
    tier_->count(Outcome::paused);
    return {.match = {}, .note = name_of(Outcome::paused)};
  }
  is_lost_ = false;
  lost_reply_.reset();
  Result<Answer> answer = search(question);
  if (!answer) {
    outcome_ = outcome_of_failure(answer.error());
    questions_.reset();
    tier_->count(outcome_);
    return {.match = {}, .note = name_of(outcome_)};
  }
  tier_->reads().note_success();
  if (answer->match || answer->ask_again.count() > 0) return std::move(answer).value();
  const bool is_known = outcome_ == Outcome::damaged || outcome_ == Outcome::slower;
  if (lost_reply_ && !is_known) outcome_ = *lost_reply_;
  tier_->count(outcome_);
  return {.match = {}, .note = name_of(outcome_)};
}

Result<store::RecordSource::Answer> TierSource::search(const Question& question) {
  const store::Chain chain(question.fingerprint, question.prompt);
  CAIRN_TRY(connect(questions_, Clock::now() + tier_->options().times.connect));
  CAIRN_TRY(const std::vector<Pointer> pointers, find_pointers(chain, question, soon(*tier_)));
  CAIRN_TRY(std::optional<store::Match> match, find(question, chain, pointers));
  if (match) {
    const FetchDecision decision =
        decide_fetch(tier_->costs(), {.bytes = wanted_bytes(question, *match),
                                      .begin = question.known,
                                      .end = match->resume,
                                      .always = tier_->options().fetching == Fetching::always,
                                      .patience_unknown = tier_->options().times.first_fetch});
    if (!decision.is_worth_it) {
      outcome_ = Outcome::slower;
      return Answer{};
    }
    match->patience = decision.patience;
    return Answer{.match = std::move(match), .note = name_of(Outcome::fetched)};
  }
  const int32_t held_links = pointers.empty() ? 0 : pointers.front().links;
  CAIRN_TRY(const milliseconds ask_again,
            wait_for_lease(question, chain, held_links, soon(*tier_)));
  return Answer{.match = {}, .ask_again = ask_again, .note = name_of(outcome_)};
}

Status TierSource::connect(std::shared_ptr<Servers>& servers, Clock::time_point deadline) {
  if (servers == nullptr) {
    servers = std::make_shared<Servers>(&tier_->address(), &tier_->options().times,
                                        &tier_->cluster(), Servers::Use::reads, is_given_up_);
  }
  Status connected = servers->connect(deadline);
  if (connected || connected.error().code == ErrorCode::cancelled) return connected;
  return fail(ErrorCode::io, "{}", connected.error().message);
}

// Of a cluster: for one key, and the others go on.
bool TierSource::is_lost(const Reply& reply) {
  if (reply.kind != Reply::Kind::lost) return false;
  lost_reply_ = outcome_of_lost(reply);
  return true;
}

Outcome TierSource::outcome_of_failure(const Error& error) {
  log::info("tier: {}", error.message);
  if (error.code != ErrorCode::cancelled) tier_->reads().note_failure();
  if (is_damage(error)) return Outcome::damaged;
  return error.message.ends_with("in time") ? Outcome::late : Outcome::unreachable;
}

// Of several records that wait for one connection the first one notices.
void TierSource::note_lost_data(const Error& error, const Servers& servers) {
  if (data_.get() != &servers) return;
  lose(outcome_of_failure(error));
  data_.reset();
  is_lost_ = true;
}

// A sequence that ends where the prompt does comes first. Where the tier has nothing of a link it
// has nothing of those behind, but for what has expired: narrower and narrower around the last one.
Result<std::vector<TierSource::Pointer>> TierSource::find_pointers(const store::Chain& chain,
                                                                   const Question& question,
                                                                   Clock::time_point deadline) {
  const int32_t length = int32_t(question.prompt.size());
  std::vector<AskedPointer> asked = {
      {chain.link_count(), tier_->key_of(kEndKey, chain.key_at(length))}};
  std::vector<Pointer> found;
  int32_t low = question.known / store::kChainTokens, high = chain.link_count();
  while (low < high || !asked.empty()) {
    std::vector<int32_t> links;
    const int32_t step = (high - low + kProbes - 1) / kProbes;
    for (int32_t link = low + step; link < high; link += step) links.push_back(link);
    if (low < high) links.push_back(high);
    for (const int32_t link : links) {
      asked.push_back({link, tier_->key_of(kPointerKey, chain.link(link))});
    }
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(const std::vector<Pointer> there, ask_pointers(asked, deadline));
    if (!lost_reply_) tier_->costs().note_round_trip(Clock::now() - begin);
    const bool has_end = asked.size() > links.size() && !there.empty() && there.front().is_end;
    asked.clear();
    found.insert(found.end(), there.begin(), there.end());
    const int32_t last = there.size() > size_t(has_end) ? there.back().links : low;
    const auto next = std::ranges::upper_bound(links, last);
    high = next == links.end() ? last : *next - 1;
    low = last;
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Pointer::links);
  std::set<Sha256Digest> seen;
  std::erase_if(found, [&](const Pointer& one) { return !seen.insert(one.name).second; });
  return found;
}

// Those that are there, in their order.
Result<std::vector<TierSource::Pointer>> TierSource::ask_pointers(
    std::span<const AskedPointer> asked, Clock::time_point deadline) {
  std::vector<PendingReply> replies;
  for (const AskedPointer& one : asked) {
    const std::array<std::string_view, 2> words = {"GET", one.key};
    CAIRN_TRY(PendingReply reply, questions_->send(words, sizeof(Sha256Digest), deadline));
    replies.push_back(std::move(reply));
  }
  std::vector<Pointer> found;
  for (size_t index = 0; index < asked.size(); ++index) {
    CAIRN_TRY(const Reply* const reply, questions_->wait(replies[index], deadline));
    if (reply->kind == Reply::Kind::error) {
      return fail(ErrorCode::io, "tier: {}", reply->text.substr(0, 100));
    }
    if (is_lost(*reply) || reply->bytes.size() != sizeof(Sha256Digest)) continue;
    Pointer pointer{.links = asked[index].links,
                    .is_end = asked[index].key.find(kEndKey) != std::string::npos,
                    .name = {}};
    std::ranges::transform(reply->bytes, pointer.name.begin(),
                           [](std::byte byte) { return uint8_t(byte); });
    found.push_back(pointer);
  }
  return found;
}

// Of several that from which the fewest tokens have to be computed. A damaged one is passed over.
Result<std::optional<store::Match>> TierSource::find(const Question& question,
                                                     const store::Chain& chain,
                                                     std::span<const Pointer> pointers) {
  std::optional<store::Match> best;
  int32_t least = question.known;
  const Clock::time_point deadline = soon(*tier_);
  for (const Pointer& pointer : pointers.first(std::min(pointers.size(), kManifestsMax))) {
    const int32_t links = std::min(pointer.links + 1, chain.link_count() + 1);
    if (links * int64_t(store::kChainTokens) <= least) break;
    Result<std::optional<store::Match>> match = read_manifest(question, pointer.name, deadline);
    if (!match && is_damage(match.error()) && !questions_->is_broken()) {
      outcome_ = Outcome::damaged;
      tier_->note_bad(pointer.name, match.error().message);
      continue;
    }
    if (!match) return std::move(match).error();
    if (!*match) {
      outcome_ = Outcome::incomplete;
      continue;
    }
    CAIRN_TRY(check_presence(question, **match, least, deadline));
    if ((*match)->resume <= least) continue;
    least = (*match)->resume;
    best = std::move(*match);
  }
  return best;
}

// None: it has gone.
Result<std::optional<store::Match>> TierSource::read_manifest(const Question& question,
                                                              const Sha256Digest& name,
                                                              Clock::time_point deadline) {
  const std::string key = tier_->key_of(kRecordKey, name), kept = tier_->kept_ms();
  const std::array<std::string_view, 4> words = {"GETEX", key, "PX", kept};
  CAIRN_TRY(const Reply reply, questions_->ask(words, kManifestRecordBytesMax, deadline));
  if (reply.kind == Reply::Kind::error) {
    return fail(ErrorCode::io, "tier: {}", reply.text.substr(0, 100));
  }
  if (is_lost(reply) || reply.kind != Reply::Kind::bytes) return std::optional<store::Match>();
  CAIRN_TRY(check_seal(name, reply.bytes));
  CAIRN_TRY(store::ManifestRecord record,
            store::decode_manifest_record(
                name, std::span(reply.bytes).first(reply.bytes.size() - kSealBytes)));
  tier_->count(&TierStats::read_bytes, reply.bytes.size());
  if (record.header.fingerprint != question.fingerprint) {
    return fail(ErrorCode::unsupported, "manifest: it is another model's");
  }
  CAIRN_TRY(store::check_manifest(record.manifest, record.header.layout, *question.layout));
  store::Match match{.name = name, .manifest = std::move(record.manifest)};
  match.position = memory::common_prefix(match.manifest.outline.tokens, question.prompt);
  match.wants_logits = question.wants_logits && size_t(match.position) == question.prompt.size();
  return std::optional(std::move(match));
}

// Which of the records that would be fetched are there, until all are; what is not is left out.
Status TierSource::check_presence(const Question& question, store::Match& match, int32_t least,
                                  Clock::time_point deadline) {
  const memory::Layout& layout = *question.layout;
  memory::Outline held = match.manifest.outline;
  const std::vector<store::Piece> pieces = store::pieces_of(held, layout);
  std::set<size_t> asked;
  for (;;) {
    match.resume = resume_position(held, layout, match.position, match.wants_logits);
    if (match.resume <= least) return Ok{};
    memory::Outline wanted = held;
    wanted.cut(layout, match.resume);
    std::vector<std::pair<size_t, PendingReply>> replies;
    for (size_t index = 0; index < pieces.size(); ++index) {
      if (!has_part_in(pieces[index], wanted) || !asked.insert(index).second) continue;
      const std::string key = tier_->key_of(kRecordKey, match.manifest.pieces[index].name);
      const std::array<std::string_view, 2> words = {"EXISTS", key};
      CAIRN_TRY(PendingReply reply, questions_->send(words, 0, deadline));
      replies.emplace_back(index, std::move(reply));
    }
    bool is_complete = true;
    for (const auto& [index, expected] : replies) {
      CAIRN_TRY(const Reply* const reply, questions_->wait(expected, deadline));
      if (reply->kind == Reply::Kind::number && reply->number == 1) continue;
      is_complete = false;
      outcome_ = Outcome::incomplete;
      (void)is_lost(*reply);
      drop(pieces[index], layout, held);
    }
    if (!is_complete) continue;
    match.held = std::move(held);
    return Ok{};
  }
}

uint64_t TierSource::wanted_bytes(const Question& question, const store::Match& match) const {
  const std::vector<store::Piece> pieces =
      store::pieces_of(match.manifest.outline, *question.layout);
  memory::Outline wanted = *match.held;
  wanted.cut(*question.layout, match.resume);
  uint64_t bytes = 0;
  for (size_t index = 0; index < pieces.size(); ++index) {
    if (has_part_in(pieces[index], wanted)) bytes += match.manifest.pieces[index].file_bytes;
  }
  return bytes;
}

// Zero: compute. Who takes the lease computes; who finds it taken may wait.
Result<milliseconds> TierSource::wait_for_lease(const Question& question, const store::Chain& chain,
                                                int32_t held_links, Clock::time_point deadline) {
  const std::optional<int32_t> link = lease_link(held_links, chain);
  const bool is_told = tier_->options().publishing != Publishing::nothing;
  if (!tier_->options().uses_leases || !is_told || !link) return milliseconds(0);
  const std::string key = tier_->key_of(kLeaseKey, chain.link(*link));
  const auto computing = tier_->costs().computing(question.known, int64_t(question.prompt.size()));
  milliseconds length = kLeaseUnknown;
  if (computing) length = std::chrono::ceil<milliseconds>(2 * *computing);
  const std::string kept = fmt::format("{}", std::clamp(length, kLeaseMin, kLeaseMax).count());
  const std::vector<std::byte> lease =
      encode(lease_of(tier_->node(), chain, int32_t(question.prompt.size())));
  const std::string_view value(reinterpret_cast<const char*>(lease.data()), lease.size());
  const std::array<std::string_view, 6> words = {"SET", key, value, "NX", "PX", kept};
  CAIRN_TRY(const Reply reply, questions_->ask(words, 0, deadline));
  if (reply.kind != Reply::Kind::nothing) return milliseconds(0);  // Ours, or nobody can tell.
  return weigh_lease(question, chain, key, deadline);
}

// It pays to wait while what is left of the lease, fetching and computing the rest take less than
// computing all of it. Whoever computes is told that somebody waits.
Result<milliseconds> TierSource::weigh_lease(const Question& question, const store::Chain& chain,
                                             const std::string& key, Clock::time_point deadline) {
  const std::array<std::string_view, 2> get = {"GET", key}, left_of = {"PTTL", key};
  CAIRN_TRY(const Reply value, questions_->ask(get, kLeaseBytesMax, deadline));
  CAIRN_TRY(const Reply left, questions_->ask(left_of, 0, deadline));
  Result<Lease> lease = decode_lease(value.bytes);
  if (!lease || left.kind != Reply::Kind::number || left.number <= 0) return milliseconds(0);
  const int32_t common = common_tokens(*lease, chain, int32_t(question.prompt.size()));
  const int32_t saved = common - question.known;
  if (lease->node == tier_->node() || saved <= 0) return milliseconds(0);
  const auto waited = Clock::now() - question.first_asked;
  const auto own = tier_->costs().computing(question.known, common);
  const Costs::Seconds longest = own ? *own : Costs::Seconds(kLeaseUnknown);
  const bool is_worth_it = milliseconds(left.number) < longest && waited < longest;
  if (!is_worth_it && tier_->options().fetching != Fetching::always) {
    outcome_ = Outcome::computed;
    return milliseconds(0);
  }
  if (waited > kLeaseMax) return milliseconds(0);
  const std::string wanted = tier_->key_of(kWantedKey, chain.key_at(common)),
                    kept = tier_->kept_ms();
  const std::array<std::string_view, 5> set = {"SET", wanted, "1", "PX", kept};
  CAIRN_TRY(questions_->ask(set, 0, deadline));
  if (waits_since_ != question.first_asked) tier_->count(&TierStats::lease_waits);
  waits_since_ = question.first_asked;
  return kAskAgain;
}

Status TierSource::check_seal(const Sha256Digest& name, std::span<const std::byte> value) const {
  if (value.size() <= kSealBytes) {
    return fail(ErrorCode::invalid_data, "record: expected a seal behind it, found {} bytes",
                value.size());
  }
  const std::span<const std::byte> record = value.first(value.size() - kSealBytes);
  const Sha256Digest seal = tier_->seal_of(name, std::span(&record, 1));
  if (std::ranges::equal(std::as_bytes(std::span(seal)), value.last(kSealBytes))) return Ok{};
  return fail(ErrorCode::invalid_data, "record: its seal is not that of this tier's key");
}

Result<std::unique_ptr<store::OpenRecord>> TierSource::open_record(
    const store::PieceRef& piece, std::optional<store::TimePoint> deadline) {
  const Clock::time_point until = deadline.value_or(Clock::now() + kLongest);
  const auto open = [&]() -> Result<PendingReply> {
    if (piece.file_bytes > kRecordBytesMax) {
      return fail(ErrorCode::not_found, "tier: a record of {} bytes is never there",
                  piece.file_bytes);
    }
    if (is_lost_) return fail(ErrorCode::io, "tier: the connection is broken");
    CAIRN_TRY(connect(data_, std::min(until, Clock::now() + tier_->options().times.connect)));
    const std::string key = tier_->key_of(kRecordKey, piece.name), kept = tier_->kept_ms();
    const std::array<std::string_view, 4> words = {"GETEX", key, "PX", kept};
    return data_->send(words, size_t(piece.file_bytes) + kSealBytes, until);
  };
  Result<PendingReply> pending = open();
  if (!pending && pending.error().code != ErrorCode::not_found && !is_lost_) {
    lose(outcome_of_failure(pending.error()));
    data_.reset();
    is_lost_ = true;
  }
  if (!pending) return std::move(pending).error();
  return std::unique_ptr<store::OpenRecord>(
      std::make_unique<TierRecord>(this, piece, data_, std::move(pending).value(), until));
}

void TierSource::refuse_record(const store::PieceRef& piece, const std::string& reason) {
  lose(Outcome::damaged);
  tier_->note_bad(piece.name, reason);
}

void TierSource::count_hit(const Sha256Digest&) {
  tier_->count(Outcome::fetched);
}

void TierSource::count_miss() {
  tier_->count(lost_by_.load());
}

void TierSource::count_read(uint64_t bytes) {
  tier_->count(&TierStats::read_bytes, bytes);
}

}  // namespace cairn::tier
