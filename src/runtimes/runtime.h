// Other programs' engines behind cairn's interface: what one of them must be able to do, which is
// little: it takes tokens and gives logits. Vocabulary, chat template, sampling and history stay
// with cairn (runtimes/timeline.h). Found by name in a table that the build makes from the files of
// this folder. Thread rule: a loaded runtime and its sessions are used by one thread at a time, any
// thread, but for cancel(). Signal handlers may run on a thread that calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "gguf/gguf.h"

namespace cairn::runtimes {

// What a session can do beside append().
enum Capability : uint32_t {
  kRewinds = 1,    // rewind() to any position, not to 0 alone.
  kSnapshots = 2,  // snapshot() and restore().
};

// How far logits of a timeline that was rewound, restored or forked are those of a fresh one. Each
// promises what those before it do.
enum class Exactness : uint8_t {
  none,
  replay,   // The same bits, where both read the same tokens in the same chunks.
  bitwise,  // The same bits, whatever the chunks.
};

// A claim is checked by the contract that every runtime is tested with.
struct Claims {
  uint32_t capabilities = 0;  // Of Capability.
  Exactness exactness = Exactness::none;
  std::string_view numerics;  // A literal: what computes, and how.
};

// What a session was; constant, and independent of the session.
class RuntimeState {
 public:
  virtual ~RuntimeState() = default;
  virtual size_t bytes() const = 0;
};

// One sequence of tokens.
class RuntimeSession {
 public:
  virtual ~RuntimeSession() = default;
  // Appends a chunk, and gives the logits behind its last token, one for each token of the
  // vocabulary; valid until the next call. After an error the length is as it was, or the session
  // is at position 0. REQUIRES: tokens; ids of the vocabulary; room in the context.
  // Errors: cancelled; whatever the runtime says.
  virtual Result<std::span<const float>> append(std::span<const Token> tokens) = 0;
  virtual size_t length() const = 0;
  // REQUIRES: 0, or kRewinds and at most length().
  virtual Status rewind(size_t position) = 0;
  // REQUIRES: kSnapshots.
  virtual Result<std::shared_ptr<const RuntimeState>> snapshot() = 0;
  // Becomes what the state's session was. REQUIRES: kSnapshots; a state of the same loaded runtime.
  virtual Status restore(const RuntimeState& state) = 0;
  // Has an append() that runs at the moment end soon with the error cancelled. Without one it does
  // nothing that lasts, or makes the next one end so. Any thread.
  virtual void cancel() = 0;
};

// A model that is ready.
class LoadedRuntime {
 public:
  virtual ~LoadedRuntime() = default;
  virtual const Claims& claims() const = 0;
  virtual int32_t vocabulary_count() const = 0;
  virtual int32_t context_tokens() const = 0;
  virtual size_t weight_bytes() const = 0;
  // It must not outlive this.
  virtual Result<std::unique_ptr<RuntimeSession>> open_session() = 0;
};

// A model's file, which is read already.
struct ModelProbe {
  std::string path;
  const gguf::File* file = nullptr;  // Never null.
};

struct RuntimeOptions {
  int32_t thread_count = 0;    // 0: the runtime chooses.
  int32_t context_tokens = 0;  // 0: the model's.
};

struct RuntimeType {
  std::string_view name;  // A literal.
  int32_t rank = 0;       // The built-in engine has 0; more only where it is measured to be faster.
  // Cheap; loads no model. Errors: unsupported: why it cannot be used on this machine.
  Status (*available)();
  // Errors: unsupported: why it cannot compute this model.
  Status (*can_serve)(const ModelProbe& probe);
  Result<std::unique_ptr<LoadedRuntime>> (*load)(const ModelProbe& probe,
                                                 const RuntimeOptions& options);
  Claims claims = {};  // Of those that it loads, at most.
};

std::span<const RuntimeType* const> runtime_types();

}  // namespace cairn::runtimes
