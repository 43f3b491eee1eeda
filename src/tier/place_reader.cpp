// Manifests, what is there of them, and records on their way.
#include "tier/place_reader.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "memory/common_prefix.h"
#include "store/encoded_record.h"
#include "store/pieces.h"

namespace cairn::tier {

namespace {

// A server that takes no time for records is not waited for without end.
constexpr std::chrono::seconds kLongest(60);
// Another machine keeps connections that nobody uses for two minutes (tier/peers/peer_server.cpp).
constexpr std::chrono::seconds kUnused(60);
// A machine that could not be reached once is left alone at once: others have the same.
constexpr size_t kPeerFailures = 1;

// The reasons that a server did not answer have words of their own.
Outcome outcome_of_lost(const Reply& reply) {
  if (reply.text == kPausedReply) return Outcome::paused;
  return reply.text.ends_with("in time") ? Outcome::late : Outcome::unreachable;
}

bool is_damage(const Error& error) {
  return error.code == ErrorCode::invalid_data || error.code == ErrorCode::unsupported;
}

bool is_busy(const Reply& reply) {
  return reply.kind == Reply::Kind::error && reply.text.starts_with("BUSY");
}

}  // namespace

// Waited for when it is read: meanwhile others come.
class PlaceRecord : public store::OpenRecord {
 public:
  PlaceRecord(PlaceReader* place, const store::PieceRef& piece, std::shared_ptr<Servers> servers,
              PendingReply pending, Clock::time_point deadline)
      : place_(place),
        piece_(piece),
        servers_(std::move(servers)),
        pending_(std::move(pending)),
        deadline_(deadline) {}

  Status expect_bytes(uint64_t count) override {
    Status come = receive();
    if (!come) {
      place_->note_lost_data(come.error(), *servers_);
      return come;
    }
    const Reply& reply = pending_->expected->reply;
    if (reply.kind == Reply::Kind::lost) {
      place_->lose(outcome_of_lost(reply));
      return fail(ErrorCode::io, "{}", reply.text);
    }
    if (is_busy(reply)) {
      place_->lose(Outcome::busy);
      return refusal(reply);
    }
    if (reply.kind == Reply::Kind::nothing) {
      place_->lose(Outcome::incomplete);
      return fail(ErrorCode::not_found, "tier: a record has gone");
    }
    if (reply.kind != Reply::Kind::bytes || reply.bytes.size() != count + kSealBytes) {
      return fail(ErrorCode::invalid_data, "record: expected {} bytes and a seal, found {}", count,
                  reply.bytes.size());
    }
    return place_->check_seal(piece_.name, reply.bytes);
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
    CAIRN_TRY(const Reply* const reply, servers_->wait(pending_, deadline_));
    if (reply->kind != Reply::Kind::lost) place_->reads_->note_success();
    const Expected& come = *pending_->expected;
    const Clock::time_point from = std::max(come.sent_at, place_->data_came_at_);
    place_->used_at_ = Clock::now();
    if (come.came_at > from) {
      place_->costs_->note_fetched(come.reply.bytes.size(), come.came_at - from);
      place_->data_came_at_ = come.came_at;
    }
    return Ok{};
  }

  PlaceReader* place_;
  store::PieceRef piece_;
  std::shared_ptr<Servers> servers_;
  PendingReply pending_;
  Clock::time_point deadline_;
};

PlaceReader::PlaceReader(Tier* tier, const std::atomic<bool>* is_given_up)
    : tier_(tier),
      is_given_up_(is_given_up),
      address_(&tier->address()),
      reads_(&tier->reads()),
      cluster_(&tier->cluster()),
      costs_(&tier->costs()) {}

PlaceReader::PlaceReader(Tier* tier, TierAddress peer, const std::atomic<bool>* is_given_up)
    : tier_(tier),
      is_given_up_(is_given_up),
      own_address_(std::move(peer)),
      address_(&*own_address_),
      reads_(&own_reads_.emplace(tier->node(), kPeerFailures)),
      cluster_(nullptr),
      costs_(&tier->peer_costs()) {}

void PlaceReader::begin_search() {
  is_lost_ = false;
  lost_reply_.reset();
}

Status PlaceReader::connect(std::shared_ptr<Servers>& servers, Clock::time_point deadline) {
  const Clock::time_point now = Clock::now();
  if (own_address_ && now - used_at_ > kUnused) {
    questions_.reset();
    data_.reset();
  }
  used_at_ = now;
  if (servers == nullptr) {
    servers = std::make_shared<Servers>(address_, &tier_->options().times, cluster_,
                                        Servers::Use::reads, is_given_up_);
  }
  Status connected = servers->connect(deadline);
  if (connected || connected.error().code == ErrorCode::cancelled) return connected;
  return fail(ErrorCode::io, "{}", connected.error().message);
}

bool PlaceReader::is_lost(const Reply& reply) {
  if (reply.kind != Reply::Kind::lost) return false;
  lost_reply_ = outcome_of_lost(reply);
  return true;
}

Outcome PlaceReader::note_failure(const Error& error) {
  log::info("{}{}", own_address_ ? fmt::format("{}: ", own_address_->url.host) : "", error.message);
  questions_.reset();
  if (error.code != ErrorCode::cancelled) reads_->note_failure();
  if (is_damage(error)) return Outcome::damaged;
  return error.message.ends_with("in time") ? Outcome::late : Outcome::unreachable;
}

// Of several records that wait for one connection the first one notices.
void PlaceReader::note_lost_data(const Error& error, const Servers& servers) {
  if (data_.get() != &servers) return;
  lose(note_failure(error));
  data_.reset();
  is_lost_ = true;
}

Result<std::optional<store::Match>> PlaceReader::find(const Question& question,
                                                      const Sha256Digest& manifest, int32_t least,
                                                      Clock::time_point deadline, Outcome& why) {
  Result<std::optional<store::Match>> match = read_manifest(question, manifest, deadline, why);
  if (!match && is_damage(match.error()) && !questions_->is_broken()) {
    why = Outcome::damaged;
    note_bad(manifest, match.error().message);
    return std::optional<store::Match>();
  }
  if (!match || !*match) return match;
  CAIRN_TRY(check_presence(question, **match, least, deadline, why));
  if ((*match)->resume <= least) return std::optional<store::Match>();
  return match;
}

// None: it has gone, or nobody has the time.
Result<std::optional<store::Match>> PlaceReader::read_manifest(const Question& question,
                                                               const Sha256Digest& name,
                                                               Clock::time_point deadline,
                                                               Outcome& why) {
  const std::string key = tier_->key_of(kRecordKey, name), kept = tier_->kept_ms();
  const std::array<std::string_view, 4> words = {"GETEX", key, "PX", kept};
  CAIRN_TRY(const Reply reply, questions_->ask(words, kManifestRecordBytesMax, deadline));
  if (is_busy(reply)) {
    why = Outcome::busy;
    return std::optional<store::Match>();
  }
  if (reply.kind == Reply::Kind::error) return refusal(reply);
  if (is_lost(reply) || reply.kind != Reply::Kind::bytes) {
    why = Outcome::incomplete;
    return std::optional<store::Match>();
  }
  CAIRN_TRY(check_seal(name, reply.bytes));
  CAIRN_TRY(store::ManifestRecord record,
            store::decode_manifest_record(
                name, std::span(reply.bytes).first(reply.bytes.size() - kSealBytes)));
  count_read(reply.bytes.size());
  if (record.header.fingerprint != question.fingerprint) {
    return fail(ErrorCode::unsupported, "manifest: it is another model's");
  }
  CAIRN_TRY(store::check_manifest(record.manifest, record.header.layout, *question.layout));
  store::Match match{.place = nullptr, .name = name, .manifest = std::move(record.manifest)};
  match.position = memory::common_prefix(match.manifest.outline.tokens, question.prompt);
  match.wants_logits = question.wants_logits && size_t(match.position) == question.prompt.size();
  return std::optional(std::move(match));
}

// Which of the records that would be fetched are there, until all are; what is not is left out.
Status PlaceReader::check_presence(const Question& question, store::Match& match, int32_t least,
                                   Clock::time_point deadline, Outcome& why) {
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
    const Clock::time_point begin = Clock::now();
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
      why = Outcome::incomplete;
      (void)is_lost(*reply);
      drop(pieces[index], layout, held);
    }
    if (own_address_ && !replies.empty()) costs_->note_round_trip(Clock::now() - begin);
    if (!is_complete) continue;
    match.held = std::move(held);
    return Ok{};
  }
}

uint64_t PlaceReader::wanted_bytes(const Question& question, const store::Match& match) const {
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

FetchDecision PlaceReader::weigh(const Question& question, const store::Match& match) const {
  return decide_fetch(*costs_, {.bytes = wanted_bytes(question, match),
                                .begin = question.known,
                                .end = match.resume,
                                .always = tier_->options().fetching == Fetching::always,
                                .patience_unknown = tier_->options().times.first_fetch});
}

Status PlaceReader::check_seal(const Sha256Digest& name, std::span<const std::byte> value) const {
  if (value.size() <= kSealBytes) {
    return fail(ErrorCode::invalid_data, "record: expected a seal behind it, found {} bytes",
                value.size());
  }
  const std::span<const std::byte> record = value.first(value.size() - kSealBytes);
  const Sha256Digest seal = tier_->seal_of(name, std::span(&record, 1));
  if (std::ranges::equal(std::as_bytes(std::span(seal)), value.last(kSealBytes))) return Ok{};
  return fail(ErrorCode::invalid_data, "record: its seal is not that of this tier's key");
}

Result<std::unique_ptr<store::OpenRecord>> PlaceReader::open_record(
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
    lose(note_failure(pending.error()));
    data_.reset();
    is_lost_ = true;
  }
  if (!pending) return std::move(pending).error();
  return std::unique_ptr<store::OpenRecord>(
      std::make_unique<PlaceRecord>(this, piece, data_, std::move(pending).value(), until));
}

void PlaceReader::note_bad(const Sha256Digest& name, std::string_view reason) {
  if (!own_address_) return tier_->note_bad(name, reason);
  tier_->count(&TierStats::refused_records);
  log::error("{}: record {} was refused: {}", own_address_->url.host, hex_of(name).substr(0, 12),
             reason);
  if (reads_->note_refusal()) {
    log::error("{}: its records were refused; it is not read for {} minutes",
               own_address_->url.host, Breaker::kBlocked.count());
  }
}

void PlaceReader::refuse_record(const store::PieceRef& piece, const std::string& reason) {
  lose(Outcome::damaged);
  note_bad(piece.name, reason);
}

void PlaceReader::count_hit(const Sha256Digest&) {
  tier_->count(Outcome::fetched);
  if (own_address_) tier_->count_peer(Outcome::fetched);
}

void PlaceReader::count_miss() {
  tier_->count(lost_by_.load());
  if (own_address_) tier_->count_peer(lost_by_.load());
}

void PlaceReader::count_read(uint64_t bytes) {
  tier_->count(own_address_ ? &TierStats::peer_read_bytes : &TierStats::read_bytes, bytes);
}

}  // namespace cairn::tier
