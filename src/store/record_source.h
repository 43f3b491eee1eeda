// Where stored sequences lie, as those see it who look for them and load them: a source finds them,
// a place has their records. A folder is both (store/disk_store.h); what several machines share
// (tier/tier_source.h) has a place for itself and one for each machine that lends its records.
// Records are the same bytes everywhere. Whatever a place hands out is untrusted until
// store/loading.h has checked it; what is missing, slow or damaged is a miss.
// Thread rule: the source's own thread asks and opens; counting is thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "memory/layout.h"
#include "store/manifest.h"

namespace cairn::store {

using TimePoint = std::chrono::steady_clock::time_point;

// A record that is there, or on its way.
class OpenRecord {
 public:
  virtual ~OpenRecord() = default;

  // Errors: invalid_data: it has another length; io.
  virtual Status expect_bytes(uint64_t count) = 0;
  // All of `bytes`, from `offset` on. Errors: io, invalid_data (it ends before).
  virtual Status read(uint64_t offset, std::span<std::byte> bytes) = 0;
};

// Who has records, as answers say it.
enum class Origin : uint8_t {
  folder,
  tier,  // A store that other machines fill, too.
  peer,  // Another machine.
};

// Where the records of a sequence lie.
class RecordPlace {
 public:
  virtual ~RecordPlace() = default;

  virtual Origin origin() const = 0;
  // One of a match's records; the place begins to bring it. Errors: not_found, invalid_data, io.
  virtual Result<std::unique_ptr<OpenRecord>> open_record(const PieceRef& piece,
                                                          std::optional<TimePoint> deadline) = 0;
  // A record that was read and is wrong: nobody is to read it again.
  virtual void refuse_record(const PieceRef& piece, const std::string& reason) = 0;
  // Whether a sequence, one of whose records could not be had, is tried again with what is left.
  virtual bool tries_again() const = 0;
  // Of what machines share: why the last sequence that was lost was lost, in a word.
  virtual std::string_view why_lost() const { return {}; }
  virtual void count_hit(const Sha256Digest& name) = 0;
  virtual void count_miss() = 0;
  virtual void count_read(uint64_t bytes) = 0;
};

// A stored sequence that helps with a prompt.
struct Match {
  std::shared_ptr<RecordPlace> place;
  Sha256Digest name{};
  Manifest manifest;
  int32_t position = 0;  // Up to which tokens are common.
  int32_t resume = 0;    // Where it can be resumed, if all its records are good.
  bool wants_logits = false;
  // The outline without records that are known to be missing; none: all may be there.
  std::optional<memory::Outline> held = std::nullopt;
  // So long loading it may take, from its first record on; none: as long as it takes.
  std::optional<std::chrono::nanoseconds> patience = std::nullopt;
};

class RecordSource {
 public:
  // What is looked for: what helps with a prompt, if that can be resumed behind `known`.
  struct Question {
    Sha256Digest fingerprint{};
    const memory::Layout* layout = nullptr;
    std::span<const Token> prompt;
    bool wants_logits = false;
    int32_t known = 0;
    TimePoint first_asked{};  // When it was asked for the first time.
  };
  struct Answer {
    std::optional<Match> match;
    // Somebody computes it now: worth asking again so much later. Zero: no.
    std::chrono::milliseconds ask_again{0};
    std::string_view note = {};  // Of a tier: what became of it, in a word.
  };

  virtual ~RecordSource() = default;

  // The place of what is found is the source's, which outlives it.
  virtual Answer look_up(const Question& question) = 0;
};

// That a manifest is of this layout, and that a sequence could be so. Errors: unsupported,
// invalid_data.
Status check_manifest(const Manifest& manifest, uint32_t layout, const memory::Layout& wanted);

}  // namespace cairn::store
