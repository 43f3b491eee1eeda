// Numbers for sessions and snapshots, and the memory that logits come through.
#include "runtimes/worker/worker_runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/machine/descriptor.h"
#include "runtimes/worker/python_files.h"
#include "runtimes/worker/recorded_model.h"
#include "runtimes/worker/worker_link.h"

namespace cairn::runtimes {

std::string_view python_file(std::string_view name) {
  const auto files = python_files();
  const auto found = std::ranges::find(files, name, &PythonFile::name);
  CHECK(found != files.end());
  return found->bytes;
}

namespace {

constexpr size_t kLogitsOffset = 64;

std::string program_of(const WorkerType& type) {
  return fmt::format("{}{}{}", python_file("worker.py"), python_file("recorded.py"), type.python);
}

template <class Number>
std::span<const std::byte> bytes_of(const Number& number) {
  return std::as_bytes(std::span(&number, 1));
}

// The word that names the request to cancel, and the logits of the last one that was answered.
// Its size is sealed, so that no access of ours faults.
class SharedMemory {
 public:
  static Result<std::unique_ptr<SharedMemory>> make(size_t vocabulary_count) {
    auto made = std::unique_ptr<SharedMemory>(new SharedMemory);
    made->bytes_ = kLogitsOffset + vocabulary_count * sizeof(float);
    made->file_ = Descriptor(::memfd_create("cairn-logits", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (!made->file_ || ::ftruncate(made->file_.number(), off_t(made->bytes_)) != 0 ||
        ::fcntl(made->file_.number(), F_ADD_SEALS, seals) != 0) {
      return fail(ErrorCode::io, "cannot make shared memory: {}", std::strerror(errno));
    }
    void* const mapped =
        ::mmap(nullptr, made->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, made->file_.number(), 0);
    if (mapped == MAP_FAILED) {
      return fail(ErrorCode::io, "cannot map shared memory: {}", std::strerror(errno));
    }
    made->data_ = static_cast<std::byte*>(mapped);
    return made;
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  int file() const { return file_.number(); }
  void cancel(uint32_t sequence) {
    std::atomic_ref(*reinterpret_cast<uint32_t*>(data_)).store(sequence);
  }
  void copy_logits(std::span<float> row) const {
    std::memcpy(row.data(), data_ + kLogitsOffset, row.size_bytes());
  }

 private:
  SharedMemory() = default;

  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Snapshots that nobody has any more; the worker hears of them with the next request.
class Dropped {
 public:
  void add(uint64_t state) {
    const std::lock_guard lock(mutex_);
    states_.push_back(state);
  }
  std::vector<uint64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(states_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> states_;
};

class WorkerState final : public RuntimeState {
 public:
  WorkerState(uint64_t number, size_t length, size_t bytes, std::shared_ptr<Dropped> dropped)
      : number_(number), length_(length), bytes_(bytes), dropped_(std::move(dropped)) {}
  ~WorkerState() override { dropped_->add(number_); }
  size_t bytes() const override { return bytes_; }
  uint64_t number() const { return number_; }
  size_t length() const { return length_; }

 private:
  uint64_t number_;
  size_t length_;
  size_t bytes_;
  std::shared_ptr<Dropped> dropped_;
};

class WorkerModel final : public LoadedRuntime {
 public:
  explicit WorkerModel(const WorkerType& type) : type_(type) {}

  Status load(const ModelProbe& probe, const RuntimeOptions& options);
  const Claims& claims() const override { return type_.claims; }
  int32_t vocabulary_count() const override { return vocabulary_count_; }
  int32_t context_tokens() const override { return context_tokens_; }
  size_t weight_bytes() const override { return weights_bytes_; }
  Result<std::unique_ptr<RuntimeSession>> open_session() override;

  Result<std::string> call(Request request, uint64_t session,
                           std::span<const std::byte> payload = {}) {
    CAIRN_TRY(drop_states());
    return call_next(request, session, payload);
  }
  Status drop_states() {
    for (const uint64_t state : dropped_->take()) {
      CAIRN_TRY(link_->call(Request::drop, 0, bytes_of(state), type_.limit));
    }
    return Ok{};
  }
  // The request that next_sequence() has named.
  Result<std::string> call_next(Request request, uint64_t session,
                                std::span<const std::byte> payload) {
    return link_->call(request, session, payload, type_.limit);
  }
  uint32_t next_sequence() const { return uint32_t(link_->next_sequence()); }
  uint64_t new_number() { return ++last_number_; }
  SharedMemory& shared() { return *shared_; }
  const std::shared_ptr<Dropped>& dropped() const { return dropped_; }
  std::string_view name() const { return type_.name; }

 private:
  WorkerType type_;
  std::unique_ptr<SharedMemory> shared_;
  std::unique_ptr<WorkerLink> link_;
  std::shared_ptr<Dropped> dropped_ = std::make_shared<Dropped>();
  int32_t vocabulary_count_ = 0, context_tokens_ = 0;
  size_t weights_bytes_ = 0;
  uint64_t last_number_ = 0;
};

class WorkerSession final : public RuntimeSession {
 public:
  WorkerSession(WorkerModel* model, uint64_t number)
      : model_(model), number_(number), logits_(size_t(model->vocabulary_count())) {}
  ~WorkerSession() override { (void)model_->call(Request::close, number_); }

  Result<std::span<const float>> append(std::span<const Token> tokens) override {
    CAIRN_TRY(check(tokens));
    CAIRN_TRY(model_->drop_states());
    running_ = model_->next_sequence();
    Result<std::string> done = model_->call_next(Request::append, number_, std::as_bytes(tokens));
    running_ = 0;
    if (!done) return std::move(done).error();
    length_ += tokens.size();
    model_->shared().copy_logits(logits_);
    return std::span<const float>(logits_);
  }
  size_t length() const override { return length_; }
  Status rewind(size_t position) override {
    CHECK(position <= length_);
    const uint64_t to = position;
    CAIRN_TRY(model_->call(Request::rewind, number_, bytes_of(to)));
    length_ = position;
    return Ok{};
  }
  Result<std::shared_ptr<const RuntimeState>> snapshot() override {
    const uint64_t state = model_->new_number();
    CAIRN_TRY(const std::string answer, model_->call(Request::snapshot, number_, bytes_of(state)));
    uint64_t bytes = 0;
    if (answer.size() != sizeof bytes) {
      return fail(ErrorCode::io, "{}: snapshot: expected {} bytes, found {}", model_->name(),
                  sizeof bytes, answer.size());
    }
    std::memcpy(&bytes, answer.data(), sizeof bytes);
    return std::shared_ptr<const RuntimeState>(
        std::make_shared<WorkerState>(state, length_, size_t(bytes), model_->dropped()));
  }
  Status restore(const RuntimeState& state) override {
    const auto& ours = static_cast<const WorkerState&>(state);
    const uint64_t number = ours.number();
    CAIRN_TRY(model_->call(Request::restore, number_, bytes_of(number)));
    length_ = ours.length();
    return Ok{};
  }
  // Names the request that runs; without one, none.
  void cancel() override { model_->shared().cancel(running_); }

 private:
  Status check(std::span<const Token> tokens) const {
    CHECK(!tokens.empty());
    const size_t room = size_t(model_->context_tokens()) - length_;
    if (tokens.size() > room) {
      return fail(ErrorCode::context_full, "{}: expected at most {} tokens more, found {}",
                  model_->name(), room, tokens.size());
    }
    for (const Token token : tokens) {
      if (index_of(token) < 0 || index_of(token) >= model_->vocabulary_count()) {
        return fail(ErrorCode::invalid_argument, "{}: expected a token below {}, found {}",
                    model_->name(), model_->vocabulary_count(), index_of(token));
      }
    }
    return Ok{};
  }

  WorkerModel* model_;
  uint64_t number_;
  size_t length_ = 0;
  std::vector<float> logits_;
  std::atomic<uint32_t> running_ = 0;
};

// The worker's own limit is somewhat longer: it counts only where nobody listens any more.
Status WorkerModel::load(const ModelProbe& probe, const RuntimeOptions& options) {
  CAIRN_TRY(const RecordedModel recorded, record_model(*probe.file));
  vocabulary_count_ = recorded.vocabulary_count;
  weights_bytes_ = recorded.weights_bytes;
  context_tokens_ = recorded.context_tokens;
  if (options.context_tokens > 0) context_tokens_ = options.context_tokens;
  CAIRN_TRY(shared_, SharedMemory::make(size_t(vocabulary_count_)));
  CAIRN_TRY(link_, WorkerLink::start(type_.name, program_of(type_), shared_->file(),
                                     recorded.weights.number()));
  const std::string description =
      fmt::format(R"({{"vocabulary":{},"threads":{},"limit_seconds":{},{}}})", vocabulary_count_,
                  options.thread_count,
                  std::chrono::ceil<std::chrono::seconds>(type_.limit + type_.load_limit).count(),
                  recorded.json);
  CAIRN_TRY(link_->call(Request::load, 0, std::as_bytes(std::span(description)), type_.load_limit));
  return Ok{};
}

Result<std::unique_ptr<RuntimeSession>> WorkerModel::open_session() {
  const uint64_t number = new_number();
  CAIRN_TRY(call(Request::open, number));
  return std::unique_ptr<RuntimeSession>(std::make_unique<WorkerSession>(this, number));
}

}  // namespace

Status check_worker(const WorkerType& type) {
  CAIRN_TRY(const std::unique_ptr<WorkerLink> link,
            WorkerLink::start(type.name, program_of(type), -1, -1));
  CAIRN_TRY(link->call(Request::check, 0, {}, type.limit));
  return Ok{};
}

Status check_worker_model(const ModelProbe& probe) {
  const Status recordable = check_recordable(*probe.file);
  if (recordable) return Ok{};
  return fail(ErrorCode::unsupported, "{}", recordable.error().message);
}

Result<std::unique_ptr<LoadedRuntime>> load_worker(const WorkerType& type, const ModelProbe& probe,
                                                   const RuntimeOptions& options) {
  auto made = std::make_unique<WorkerModel>(type);
  CAIRN_TRY(made->load(probe, options));
  return std::unique_ptr<LoadedRuntime>(std::move(made));
}

}  // namespace cairn::runtimes
