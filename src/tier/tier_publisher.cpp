// The queue, what of it is sent, and sending.
#include "tier/tier_publisher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "base/text/byte_text.h"
#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"
#include "base/trace/moving_average.h"
#include "store/pieces.h"
#include "tier/lease.h"

namespace cairn::tier {
namespace {

// What was used once is sent while sending takes less than this part of the time.
constexpr double kBusyPart = 0.25;
constexpr double kBusyWeight = 0.2;
// Commands that are on their way at once: their replies are short.
constexpr size_t kAtOnce = 256;
// Records that were sent and are looked for, for each sequence that comes.
constexpr int kLookedFor = 4;
// Digests that are remembered: of 128 GiB of records.
constexpr size_t kDigestsMax = 65536;

uint64_t bytes_of(const std::unique_ptr<store::Snapshot>& snapshot) {
  return snapshot->payload_bytes();
}

}  // namespace

TierPublisher::TierPublisher(Tier* tier, Shelf* shelf)
    : tier_(tier), shelf_(shelf), room_(tier->options().times.kept, tier->node()) {
  if (shelf != nullptr) registrar_.emplace(tier);
}

Result<std::unique_ptr<TierPublisher>> TierPublisher::start(Tier* tier, Shelf* shelf) {
  std::unique_ptr<TierPublisher> made(new TierPublisher(tier, shelf));
  CAIRN_TRY(made->thread_, start_thread("the thread that writes to the tier",
                                        [publisher = made.get()] { publisher->run(); }));
  return made;
}

TierPublisher::~TierPublisher() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    gives_up_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TierPublisher::offer(std::unique_ptr<store::Snapshot> snapshot, Offer offer,
                          uint64_t waiting_bytes_max) {
  std::deque<Item> passed_over;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(snapshot), offer, waiting_bytes_max});
    uint64_t bytes = 0;
    for (const Item& item : waiting_) bytes += bytes_of(item.snapshot);
    while (!waiting_.empty() && bytes > waiting_bytes_max) {
      bytes -= bytes_of(waiting_.front().snapshot);
      passed_over.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  changed_.notify_all();
}

void TierPublisher::collect() {
  std::vector<Item> done;
  const std::lock_guard lock(mutex_);
  done.swap(done_);
}

bool TierPublisher::holds_memory() const {
  const std::lock_guard lock(mutex_);
  return is_working_ || !waiting_.empty();
}

bool TierPublisher::drain() {
  std::deque<Item> passed_over;
  std::vector<Item> done;
  std::unique_lock lock(mutex_);
  const bool had_any = is_working_ || !waiting_.empty() || !done_.empty();
  passed_over.swap(waiting_);
  gives_up_ = true;
  changed_.wait(lock, [this] { return !is_working_; });
  gives_up_ = is_closing_;
  done.swap(done_);
  return had_any;
}

bool TierPublisher::flush(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return !is_working_ && waiting_.empty(); });
}

void TierPublisher::run() {
  run_anywhere();
  give_way();
  idle_since_ = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_called = [this] { return is_closing_ || !waiting_.empty(); };
    if (!registrar_) {
      changed_.wait(lock, is_called);
    } else if (!changed_.wait_until(lock, next_beat_, is_called)) {
      lock.unlock();
      beat();
      lock.lock();
      continue;
    }
    if (is_closing_) return;
    Item item = std::move(waiting_.front());
    waiting_.pop_front();
    is_working_ = true;
    lock.unlock();
    work(item);
    lock.lock();
    done_.push_back(std::move(item));
    is_working_ = false;
    changed_.notify_all();
  }
}

// Counting goes on while the tier is down, and what is lent is lent to those who know of it.
void TierPublisher::work(Item& item) {
  busy_since_ = Clock::now();
  is_admitted_.reset();
  const Status sent = send(item);
  if (!sent) {
    note_failure(sent.error(), "sent");
    is_admitted_.reset();
  } else if (is_admitted_.value_or(false)) {
    tier_->writes().note_success();
  }
  if (shelf_ != nullptr && item.offer != Offer::evicted && !gives_up_) {
    const Status lent = lend(item);
    if (!lent) note_failure(lent.error(), "lent");
  }
  const auto now = Clock::now();
  const auto busy = now - busy_since_, idle = busy_since_ - idle_since_;
  busy_part_ += kBusyWeight *
                (std::chrono::duration<double>(busy) / std::chrono::duration<double>(busy + idle) -
                 busy_part_);
  idle_since_ = now;
}

void TierPublisher::note_failure(const Error& error, std::string_view what) {
  servers_.reset();
  if (error.code == ErrorCode::cancelled) return;
  tier_->writes().note_failure();
  tier_->count(&TierStats::publish_failures);
  log::info("tier: a sequence was not {}: {}", what, error.message);
}

Status TierPublisher::send(Item& item) {
  const store::Chain chain(item.snapshot->fingerprint(), item.snapshot->outline().tokens);
  CAIRN_TRY(const int32_t length, choose_length(item, chain));
  if (length == 0) tier_->count(&TierStats::not_published);
  if (length == 0 || !admits()) return Ok{};
  return publish(*item.snapshot, length);
}

// First it can be had, then others are told.
Status TierPublisher::lend(Item& item) {
  item.snapshot->restore();
  if (digests_.size() >= kDigestsMax) digests_.clear();
  CAIRN_TRY(std::shared_ptr<LentSequence> sequence,
            LentSequence::prepare(item.snapshot, digests_, gives_up_));
  const Registrar::Entry entry = Registrar::entry_of(
      *sequence->chain, sequence->snapshot->outline().length(), sequence->manifest.ref.name);
  shelf_->add(std::move(sequence), item.lent_bytes_max);
  if (!admits()) return Ok{};
  CAIRN_TRY(connect());
  CAIRN_TRY(registrar_->add(*servers_, entry, gives_up_));
  tier_->writes().note_success();
  return Ok{};
}

// What cannot be said now is said soon again.
void TierPublisher::beat() {
  next_beat_ = Clock::now() + kNodeBeat;
  if (!tier_->writes().admits()) return;
  const auto say = [&]() -> Status {
    CAIRN_TRY(connect());
    CAIRN_TRY(registrar_->beat(*servers_));
    return Ok{};
  };
  const Status said = say();
  if (said) {
    next_beat_ = registrar_->next_beat();
    tier_->writes().note_success();
    return;
  }
  servers_.reset();
  if (said.error().code == ErrorCode::cancelled) return;
  tier_->writes().note_failure();
  log::info("tier: this machine could not say that it lives: {}", said.error().message);
}

// Asked once for all that becomes of a sequence: where it is a trial, all of it is that one.
bool TierPublisher::admits() {
  if (!is_admitted_) is_admitted_ = tier_->writes().admits();
  return *is_admitted_;
}

// Zero: nothing of it.
Result<int32_t> TierPublisher::choose_length(const Item& item, const store::Chain& chain) {
  const int32_t whole = item.snapshot->outline().length();
  int32_t used = 0;
  if (item.offer == Offer::prompt) {
    used = counts_.add_prompt(chain, whole);
  } else {
    counts_.add_answer(chain, whole);
  }
  const Publishing publishing = tier_->options().publishing;
  if (item.offer == Offer::kept && publishing != Publishing::nothing) return whole;
  if (publishing == Publishing::second_use) CAIRN_TRY(look_for_sent());
  const bool has_place = busy_part_ < kBusyPart && room_.has_place();
  const int32_t length = admitted_length(publishing, used, whole, has_place);
  const bool may_be_wanted = publishing == Publishing::second_use && item.offer == Offer::prompt;
  if (!may_be_wanted || length == whole || !tier_->options().uses_leases) return length;
  if (!admits()) return length;
  return wanted_length(chain, length, whole);
}

// Whether what was sent is there still tells whether there is room for more.
Status TierPublisher::look_for_sent() {
  for (int count = 0; count < kLookedFor; ++count) {
    const std::optional<Sha256Digest> name = room_.next(Clock::now());
    if (!name || !admits()) return Ok{};
    CAIRN_TRY(connect());
    const std::string key = tier_->key_of(kRecordKey, *name);
    const std::array<std::string_view, 2> words = {"EXISTS", key};
    CAIRN_TRY(const Reply reply,
              servers_->ask(words, 0, Clock::now() + tier_->options().times.write));
    if (reply.kind == Reply::Kind::lost) continue;
    if (reply.kind != Reply::Kind::number) return refusal(reply);
    room_.note_found(reply.number == 1);
  }
  return Ok{};
}

// Up to where another machine waits for it, if that is more than was used before.
Result<int32_t> TierPublisher::wanted_length(const store::Chain& chain, int32_t used,
                                             int32_t whole) {
  CAIRN_TRY(connect());
  const auto deadline = Clock::now() + tier_->options().times.write;
  std::vector<int32_t> positions;
  constexpr int32_t kStep = store::kChainTokens * kLeaseLinks;
  for (int32_t end = (used / kStep + 1) * kStep; end < whole; end += kStep)
    positions.push_back(end);
  positions.push_back(whole);
  std::vector<std::pair<int32_t, PendingReply>> replies;
  for (const int32_t position : positions) {
    const std::string key = tier_->key_of(kWantedKey, chain.key_at(position));
    const std::array<std::string_view, 2> words = {"EXISTS", key};
    CAIRN_TRY(PendingReply reply, servers_->send(words, 0, deadline));
    replies.emplace_back(position, std::move(reply));
  }
  int32_t wanted = used;
  for (const auto& [position, expected] : replies) {
    CAIRN_TRY(const Reply* const reply, servers_->wait(expected, deadline));
    if (reply->number == 1) wanted = position;
  }
  return wanted;
}

Status TierPublisher::connect() {
  if (servers_ == nullptr) {
    servers_ = std::make_unique<Servers>(&tier_->address(), &tier_->options().times,
                                         &tier_->cluster(), Servers::Use::writes, &gives_up_);
  }
  return servers_->connect(Clock::now() + tier_->options().times.connect);
}

// A server of a cluster that is down has its keys alone: the others have theirs.
bool TierPublisher::is_lost(const Reply& reply) {
  if (reply.kind != Reply::Kind::lost) return false;
  has_lost_ = true;
  return true;
}

Status TierPublisher::publish(store::Snapshot& snapshot, int32_t length) {
  if (!snapshot.cut(length)) return Ok{};
  CAIRN_TRY(connect());
  has_lost_ = false;
  const store::Chain chain(snapshot.fingerprint(), snapshot.outline().tokens);
  store::Manifest manifest = snapshot.manifest();
  CAIRN_TRY(send_records(snapshot, chain, manifest));
  CAIRN_TRY(const store::EncodedRecord record,
            store::encode_manifest(manifest, chain, store::layout_id(snapshot.layout())));
  if (record.ref.file_bytes + kSealBytes > kManifestRecordBytesMax) {
    return fail(ErrorCode::no_room, "tier: expected a manifest of at most {} bytes, found {}",
                kManifestRecordBytesMax, record.ref.file_bytes);
  }
  CAIRN_TRY(const std::vector<bool> is_there, ask_presence({record.ref.name}));
  const bool is_bad = tier_->take_bad(record.ref.name);
  bool is_kept = is_there.front() && !is_bad;
  if (!is_kept) {
    CAIRN_TRY(is_kept, send_record(record));
  }
  // Pointers to nothing would take the place of those to something.
  if (is_kept) CAIRN_TRY(send_pointers(chain, snapshot.outline().length(), record.ref.name));
  tier_->count(has_lost_ ? &TierStats::publish_failures : &TierStats::published);
  return Ok{};
}

// What is there stays for another while; its digest is that which it would be sent with, but for
// rows that nobody wants.
Status TierPublisher::send_records(const store::Snapshot& snapshot, const store::Chain& chain,
                                   store::Manifest& manifest) {
  std::vector<Sha256Digest> names;
  for (const store::Piece& piece : snapshot.pieces()) {
    names.push_back(name_of(header_of(piece, chain, snapshot.layout())));
  }
  CAIRN_TRY(const std::vector<bool> is_there, ask_presence(names));
  for (size_t index = 0; index < names.size(); ++index) {
    if (gives_up_) return fail(ErrorCode::cancelled, "tier: the memory is needed");
    if (registrar_) CAIRN_TRY(registrar_->beat(*servers_));
    const store::Piece& piece = snapshot.pieces()[index];
    const bool is_bad = tier_->take_bad(names[index]);
    const auto known = digests_.find(names[index]);
    if (is_there[index] && !is_bad && known != digests_.end()) {
      const store::RecordHeader header = header_of(piece, chain, snapshot.layout());
      manifest.pieces.push_back(
          {.name = names[index], .digest = known->second, .file_bytes = header.file_bytes()});
      continue;
    }
    const store::EncodedRecord record = encode_piece(snapshot, piece, chain);
    if (record.ref.file_bytes > kRecordBytesMax) {
      return fail(ErrorCode::no_room, "tier: expected records of at most {} bytes, found {}",
                  kRecordBytesMax, record.ref.file_bytes);
    }
    if (!is_there[index] || is_bad) CAIRN_TRY(send_record(record));
    if (digests_.size() >= kDigestsMax) digests_.clear();
    digests_[names[index]] = record.ref.digest;
    manifest.pieces.push_back(record.ref);
  }
  return Ok{};
}

// All that are there are kept for another while.
Result<std::vector<bool>> TierPublisher::ask_presence(const std::vector<Sha256Digest>& names) {
  std::vector<bool> is_there(names.size());
  for (size_t first = 0; first < names.size(); first += kAtOnce) {
    const size_t end = std::min(first + kAtOnce, names.size());
    const auto deadline = Clock::now() + tier_->options().times.write;
    std::vector<PendingReply> replies;
    for (size_t index = first; index < end; ++index) {
      const std::string key = tier_->key_of(kRecordKey, names[index]), kept = tier_->kept_ms();
      const std::array<std::string_view, 3> words = {"PEXPIRE", key, kept};
      CAIRN_TRY(PendingReply reply, servers_->send(words, 0, deadline));
      replies.push_back(std::move(reply));
    }
    for (size_t index = first; index < end; ++index) {
      CAIRN_TRY(const Reply* const reply, servers_->wait(replies[index - first], deadline));
      if (!is_lost(*reply) && reply->kind != Reply::Kind::number) return refusal(*reply);
      is_there[index] = reply->number == 1;
    }
  }
  return is_there;
}

// False: it is lost.
Result<bool> TierPublisher::send_record(const store::EncodedRecord& record) {
  std::vector<std::span<const std::byte>> parts = record.parts();
  const Sha256Digest seal = tier_->seal_of(record.ref.name, parts);
  parts.push_back(std::as_bytes(std::span(seal)));
  // What is there under this name has the same bytes, unless it is wrong.
  const std::string key = tier_->key_of(kRecordKey, record.ref.name), kept = tier_->kept_ms();
  const std::array<std::string_view, 3> words = {"PSETEX", key, kept};
  const auto deadline = Clock::now() + tier_->options().times.write;
  CAIRN_TRY(const Reply reply, servers_->ask(words, 0, deadline, parts));
  if (is_lost(reply)) return false;
  if (reply.kind != Reply::Kind::text) return refusal(reply);
  tier_->count(&TierStats::written_bytes, record.ref.file_bytes + kSealBytes);
  room_.note_sent(record.ref.name, Clock::now());
  return true;
}

// One for each link: whoever has a prompt finds the longest beginning by a few of them. And one for
// the end, which longer ones that come later do not take over.
Status TierPublisher::send_pointers(const store::Chain& chain, int32_t length,
                                    const Sha256Digest& name) {
  const int32_t link_count = length / store::kChainTokens;
  const std::string_view value = as_text(std::as_bytes(std::span(name)));
  {
    const std::string key = tier_->key_of(kEndKey, chain.key_at(length));
    const std::string kept = tier_->kept_ms();
    const std::array<std::string_view, 4> words = {"PSETEX", key, kept, value};
    CAIRN_TRY(const Reply reply,
              servers_->ask(words, 0, Clock::now() + tier_->options().times.write));
    if (!is_lost(reply) && reply.kind != Reply::Kind::text) return refusal(reply);
  }
  for (int32_t first = 1; first <= link_count; first += int32_t(kAtOnce)) {
    const int32_t end = std::min(first + int32_t(kAtOnce), link_count + 1);
    const auto deadline = Clock::now() + tier_->options().times.write;
    std::vector<PendingReply> replies;
    for (int32_t link = first; link < end; ++link) {
      const std::string key = tier_->key_of(kPointerKey, chain.link(link)), kept = tier_->kept_ms();
      const std::array<std::string_view, 4> words = {"PSETEX", key, kept, value};
      CAIRN_TRY(PendingReply reply, servers_->send(words, 0, deadline));
      replies.push_back(std::move(reply));
    }
    for (const PendingReply& expected : replies) {
      CAIRN_TRY(const Reply* const reply, servers_->wait(expected, deadline));
      if (!is_lost(*reply) && reply->kind != Reply::Kind::text) return refusal(*reply);
    }
  }
  return Ok{};
}

}  // namespace cairn::tier
