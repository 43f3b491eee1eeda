// cairn.h: language models in GGUF files, inside other programs. C11 and C++20; docs/c.md is the
// introduction.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Rules for all functions.
//
// Handles (cairn_model, cairn_engine, …) are numbers in the form of pointers: never look behind
// one. A handle that is NULL, closed, of another kind or from before fork() is CAIRN_E_INVALID,
// NULL or nothing, as the function has it, and never harms. Closing NULL does nothing. A model may
// be closed before its engines, and an engine before its conversations: it goes when the last of
// them does.
//
// Structs are given by pointer. Their first member is their size, as your compiler has it; the
// library reads and writes that many bytes at most, and later versions only add members at the end.
//
// What you give is copied before the function returns. `T** out` is yours to close; it is NULL
// after an error. What a `const T*` leads to belongs to the handle, for as long as the function
// says. Texts are UTF-8; those without a length end in a zero byte. Counts of tokens are at most
// INT32_MAX. `e` says what went wrong: set its struct_size, or give NULL.
//
// Every function may be called on any thread. A conversation takes one call at a time, and answers
// CAIRN_E_BUSY to a second one; cancel, wait_fd and close are allowed meanwhile. The library
// computes on threads of its own, which opening an engine starts and its end ends, and other
// backends also on the thread that calls; yours keep their CPUs, signals, locale and floating-point
// state.
//
// The library prints nothing and sets no signal handler. A model's file must stay as it is while a
// model or an engine of it is open: reading one that is cut short ends the process with SIGBUS.

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define CAIRN_API __attribute__((visibility("default")))
#else
#define CAIRN_API
#endif

#define CAIRN_HEADER_VERSION 0x000100u  // 0.1.0, as 0xMMmmpp.

typedef struct cairn_model cairn_model;                // A file with its vocabulary; constant.
typedef struct cairn_engine cairn_engine;              // Weights, threads, a memory budget.
typedef struct cairn_conversation cairn_conversation;  // One sequence of tokens, which changes.
typedef struct cairn_snapshot cairn_snapshot;          // A conversation as it was; constant.
typedef struct cairn_logits cairn_logits;              // One row of logits; constant.

typedef int32_t cairn_token;
typedef int32_t cairn_status;
enum {
  CAIRN_OK = 0,
  CAIRN_DONE = 1,            // The answer has ended.
  CAIRN_AGAIN = 2,           // Nothing has come yet.
  CAIRN_CANCELLED = 3,       // By cairn_cancel(): all is as it was before the call.
  CAIRN_E_INVALID = -1,      // What was given makes no sense.
  CAIRN_E_BUSY = -2,         // Another call uses the conversation, or an answer is being made.
  CAIRN_E_NO_ROOM = -3,      // Of memory, of the context, or of the buffer that was given.
  CAIRN_E_IO = -4,           // The operating system said no.
  CAIRN_E_FORMAT = -5,       // A file or a text breaks its format.
  CAIRN_E_UNSUPPORTED = -6,  // Well-formed, but this library, model or engine cannot do it.
  CAIRN_E_MISMATCH = -7,     // Of another engine or another model.
  CAIRN_E_INTERNAL = -8      // A defect of the library.
};

typedef struct cairn_error {
  uint32_t struct_size;
  cairn_status code;
  char message[504];  // A sentence that ends in a zero byte; empty after a success.
} cairn_error;

// --- The library -------------------------------------------------------------------------------

// CAIRN_HEADER_VERSION of the library that is loaded, which may be another one than the header's.
CAIRN_API uint32_t cairn_version(void);
// {"cairn_plan": {"size": 48, "target": 8, …}, …}: sizes of all structs here and offsets of their
// members in bytes, for bindings to compare with their own. Stays for ever.
CAIRN_API const char* cairn_layout_json(void);
// Hands the library's messages to `fn`, without which they are dropped; NULL: dropped again.
// Levels: 0 debug, 1 info, 2 warning, 3 error. `fn` is called on any thread, by one at a time; what
// it calls of this library is refused. Once this has returned, the function before is not called
// any more.
typedef void (*cairn_log_fn)(void* user, int32_t level, const char* text, size_t bytes);
CAIRN_API void cairn_set_log(cairn_log_fn fn, void* user, int32_t min_level);

// What can compute models, the best first: [{"name", "available", "rank", "capabilities":
// ["rewind", "snapshot"], "exactness": "none", "replay" or "bitwise", "numerics", "why_not"}].
// "cairn" is the library's own engine; of others "capabilities" is what they can do themselves, at
// most, and "why_not" says why one is not available. docs/backends.md has more. Stays for ever.
CAIRN_API const char* cairn_backends_json(void);

// --- Models ------------------------------------------------------------------------------------

// Opens a GGUF file and reads its vocabulary and chat template; weights are read by engines.
// Errors: CAIRN_E_INVALID: the path is no regular file's; CAIRN_E_IO, CAIRN_E_FORMAT,
// CAIRN_E_UNSUPPORTED, with what was expected and found.
CAIRN_API cairn_status cairn_model_open(const char* path, cairn_model** out, cairn_error* e);
CAIRN_API void cairn_model_close(cairn_model* m);
// {"architecture", "name", "file_bytes", "vocabulary_count", "has_chat_template", "bos", "eos",
// "identity"}; until the model is closed. Copies of a file have one identity. NULL: no such model.
CAIRN_API const char* cairn_model_info_json(const cairn_model* m);

enum {
  CAIRN_TEXT_BOS = 1,     // The tokens that the model wants around a whole text.
  CAIRN_TEXT_SPECIAL = 2  // Special tokens are read, and written, by their names.
};
// Tokens of a text: writes up to `capacity`, and their number to *count. Where the capacity is
// less, nothing is written: CAIRN_E_NO_ROOM. `out` may be NULL where the capacity is 0.
CAIRN_API cairn_status cairn_tokenize(const cairn_model* m, const char* text, size_t bytes,
                                      uint32_t flags, cairn_token* out, size_t capacity,
                                      size_t* count, cairn_error* e);
// The reverse, with the same rules; no zero byte is added. With CAIRN_TEXT_BOS the tokens are a
// whole text, else the rest of one: some models put a space before a whole text.
CAIRN_API cairn_status cairn_detokenize(const cairn_model* m, const cairn_token* tokens,
                                        size_t token_count, uint32_t flags, char* out,
                                        size_t capacity, size_t* bytes, cairn_error* e);
// Tokens of a conversation in the form that the model was trained on. `request_json`: a list of
// messages ([{"role": "user", "content": "Hello"}]), or an object with `messages` and, as they are
// wanted, `tools`, `documents`, `add_generation_prompt` and variables of the template. Special
// tokens come from the template alone, never from what messages say. Output as cairn_tokenize().
// Errors: CAIRN_E_UNSUPPORTED: the model has no chat template; CAIRN_E_FORMAT.
CAIRN_API cairn_status cairn_chat_render(const cairn_model* m, const char* request_json,
                                         size_t bytes, cairn_token* out, size_t capacity,
                                         size_t* count, cairn_error* e);

// --- Engines -----------------------------------------------------------------------------------

enum {
  CAIRN_KV_DEFAULT = 0,  // f16
  CAIRN_KV_F32 = 1,
  CAIRN_KV_F16 = 2,
  CAIRN_KV_BF16 = 3,
  CAIRN_KV_Q8_0 = 4,
  CAIRN_KV_Q4_0 = 5
};
typedef struct cairn_engine_params {
  uint32_t struct_size;
  uint32_t thread_count;    // 0: one for each physical core.
  uint32_t parallel;        // Conversations that compute at a time; 0: 64. Others wait.
  uint32_t context_tokens;  // 0: the model's, at most 131,072.
  // Of all conversations; 0: half of what the weights leave. Other backends than "cairn" keep none.
  uint64_t memory_budget_bytes;
  int32_t type_k, type_v;  // CAIRN_KV_…
  const char* store_path;  // A folder for cairn_save(), made where it is missing; NULL: none.
  // {"pooling": "none", "mean", "cls", "last" or "rank": the engine makes vectors instead of text
  // (docs/embeddings.md); "adapters": ["file.gguf", {"path": "file.gguf", "scale": 0.5}]: LoRA
  // adapters of all that is computed; "numerics": "exact-1" or "fast-1"; "isa": an instruction set
  // by name; "pack_cache": a folder that keeps packed weights; "unpacked": true: for models that
  // are larger than memory; "exit_layer": 16, "skip_layers": "4-7,12" or "tuned", "experts": 4:
  // less of the model, or more experts (docs/programs.md); "draft": "auto", "off" or kinds,
  // "draft_max": 64, "draft_model": "small.gguf": who drafts tokens of answers in the background,
  // and how many at most at a time (docs/speculation.md); "backend": which of cairn_backends_json()
  // computes}, or NULL. Without "backend" the environment variable CAIRN_BACKEND names it, and
  // without that it is the best that is available and can compute the model as these parameters
  // have it. One that is named is never replaced.
  const char* options_json;
  // Called while weights are prepared, on a thread of the library, with 0 to 1; false gives up.
  // What it calls of this library is refused. NULL: nobody is told.
  bool (*progress)(void* user, float done);
  void* user;
} cairn_engine_params;
// Sets the size, and everything else to 0 and NULL. Nothing is written where the size is too small.
CAIRN_API void cairn_engine_params_init(cairn_engine_params* p, uint32_t struct_size);
// Loads the weights. `p` may be NULL. Errors: CAIRN_E_IO, CAIRN_E_FORMAT and CAIRN_E_UNSUPPORTED
// for the file and for a backend that is not available or cannot do what is asked for;
// CAIRN_E_MISMATCH: the file has changed since the model was opened; CAIRN_E_NO_ROOM;
// CAIRN_CANCELLED by `progress`.
CAIRN_API cairn_status cairn_engine_open(cairn_model* m, const cairn_engine_params* p,
                                         cairn_engine** out, cairn_error* e);
CAIRN_API void cairn_engine_close(cairn_engine* g);

enum {
  CAIRN_CAP_TEXT = 1,  // Conversations.
  CAIRN_CAP_LOGITS = 2,
  CAIRN_CAP_REWIND = 4,    // To any position.
  CAIRN_CAP_SAVE = 8,      // There is a store.
  CAIRN_CAP_EMBED = 16,    // Vectors, instead of all others.
  CAIRN_CAP_SNAPSHOT = 32  // Snapshots and forks.
};
enum { CAIRN_EXACT_NONE = 0, CAIRN_EXACT_REPLAY = 1, CAIRN_EXACT_BITWISE = 2 };
typedef struct cairn_engine_facts {
  uint32_t struct_size;
  uint32_t capabilities;  // CAIRN_CAP_…
  // BITWISE: what memory reuses, however it was cut and rewound, has the bits of a fresh run.
  // REPLAY: of one that reads the same tokens by the same calls. NONE: may have others.
  int32_t exactness;
  uint32_t context_tokens;
  uint32_t vocabulary_count;  // Floats of a row of logits.
  uint32_t vector_floats;     // Of cairn_embed(); 0: none.
  const char* backend;        // Both for as long as the library is loaded.
  const char* numerics;
  uint32_t native_capabilities;  // What the backend does itself; the rest is read again for it.
  uint32_t reserved;
} cairn_engine_facts;
CAIRN_API cairn_status cairn_engine_get_facts(const cairn_engine* g, cairn_engine_facts* out,
                                              cairn_error* e);
typedef struct cairn_memory {
  uint32_t struct_size;
  uint32_t snapshots;  // Open handles.
  // Bytes, here and below: of pages, states, hidden rows, logs and warm blocks. Other backends than
  // "cairn" tell their weights alone.
  uint64_t budget;
  uint64_t pages;    // Keys and values.
  uint64_t states;   // Of recurrent layers.
  uint64_t hidden;   // Rows from which logits are made again.
  uint64_t logs;     // From which states are made again.
  uint64_t warm;     // Free, and kept ready.
  uint64_t weights;  // Beside the budget, as the next one: packed, beside those of the file.
  uint64_t scratch;  // What steps need.
} cairn_memory;
CAIRN_API cairn_status cairn_engine_get_memory(const cairn_engine* g, cairn_memory* out,
                                               cairn_error* e);

// Why not all of what memory holds can be gone on from.
enum {
  CAIRN_LIMIT_NONE = 0,
  CAIRN_LIMIT_WINDOW = 1,     // Of sliding windows only the newest positions are kept.
  CAIRN_LIMIT_CHUNKED = 2,    // Of chunked attention likewise.
  CAIRN_LIMIT_RECURRENT = 3,  // States cannot be taken back.
  CAIRN_LIMIT_HIDDEN = 4,     // The last token is read again for its logits.
  CAIRN_LIMIT_OTHER = 5
};
// What it costs to stand at a position.
typedef struct cairn_plan {
  uint32_t struct_size;
  int32_t limited_by;        // CAIRN_LIMIT_…
  uint32_t target;           // The position, in tokens from the beginning.
  uint32_t resume;           // Up to here memory has it.
  uint32_t forward_tokens;   // target - resume: tokens that go through the model.
  uint32_t recurrent_steps;  // Replayed before these; they read no weights.
  uint64_t copy_bytes;       // At most.
  uint64_t new_bytes;        // At most, with the copies.
  uint8_t logits_ready;      // 1: nothing has to be computed.
  // 1: the backend cannot go back, so that tokens that it had are read again.
  uint8_t replayed_by_cairn;
  uint8_t reserved[6];
} cairn_plan;
// What reading these tokens in a new conversation would cost now. Computes nothing.
CAIRN_API cairn_status cairn_plan_prompt(cairn_engine* g, const cairn_token* tokens, size_t count,
                                         cairn_plan* out, cairn_error* e);

// How likely a text is, token by token: writes the natural logarithm of the probability of each
// token but the first, by those before it, and the token that was likeliest there (`likeliest` may
// be NULL): count - 1 of each. The whole text is read, and nothing of it kept. Errors:
// CAIRN_E_NO_ROOM, of the buffers, the context or memory; CAIRN_E_UNSUPPORTED: the engine makes
// vectors.
CAIRN_API cairn_status cairn_score(cairn_engine* g, const cairn_token* tokens, size_t count,
                                   float* logprobs, cairn_token* likeliest, size_t capacity,
                                   cairn_error* e);

// The vector of a text, by an engine with "pooling": writes its floats, and their number to
// *floats. With "mean", "cls" and "last" it has length 1; with "none" there is one vector for each
// token, as the model has it, behind the one before; with "rank" the score of a question and a
// text. Where the capacity is less, nothing is written: CAIRN_E_NO_ROOM.
// Errors: CAIRN_E_UNSUPPORTED: the engine makes text.
CAIRN_API cairn_status cairn_embed(cairn_engine* g, const cairn_token* tokens, size_t count,
                                   float* out, size_t capacity, size_t* floats, cairn_error* e);

// --- Conversations -----------------------------------------------------------------------------

// A new one is empty, and samples as the model's file suggests. What a conversation holds of memory
// stays until it is closed, reset or rewound.
CAIRN_API cairn_status cairn_conversation_open(cairn_engine* g, cairn_conversation** out,
                                               cairn_error* e);
// Cancels what is computed for it.
CAIRN_API void cairn_conversation_close(cairn_conversation* c);
// The tokens that it has by now, and their number; until the next call on it. NULL: there are none,
// or another call uses it.
CAIRN_API const cairn_token* cairn_tokens(const cairn_conversation* c, size_t* count);

// Reading. After these the logits of the next token are there. They return when all is computed,
// and `done` (or NULL) says what it cost. Where one fails or is cancelled, the conversation is as
// it was before; so that it can be, what it held stays in memory meanwhile. Errors:
// CAIRN_E_NO_ROOM, of the context or of memory; CAIRN_E_INVALID: ids outside the vocabulary.
//
// Adds tokens.
CAIRN_API cairn_status cairn_prefill(cairn_conversation* c, const cairn_token* tokens, size_t count,
                                     cairn_plan* done, cairn_error* e);
// Makes these the conversation's tokens: what it, or anything in the engine's memory, has of them
// from their beginning on is not computed again.
CAIRN_API cairn_status cairn_sync(cairn_conversation* c, const cairn_token* tokens, size_t count,
                                  cairn_plan* done, cairn_error* e);
// Goes back to the first `position` tokens.
CAIRN_API cairn_status cairn_rewind(cairn_conversation* c, uint32_t position, cairn_plan* done,
                                    cairn_error* e);
// What that would cost. Computes nothing.
CAIRN_API cairn_status cairn_plan_rewind(cairn_conversation* c, uint32_t position, cairn_plan* out,
                                         cairn_error* e);
// Forgets all tokens. What was computed stays in the engine's memory while there is room.
CAIRN_API cairn_status cairn_reset(cairn_conversation* c, cairn_error* e);

// Sampling.
enum {
  CAIRN_SAMPLING_SEED = 1,        // `seed` is set; else every cairn_set_sampling() takes a new one.
  CAIRN_SAMPLING_IGNORE_END = 2,  // Tokens that end an answer are not chosen.
  CAIRN_SAMPLING_LOGPROBS = 4,    // Events have logarithms of probabilities.
  // What tokens are chosen from is digested for cairn_receipt(). The backend "cairn" alone.
  CAIRN_SAMPLING_RECEIPT = 8
};
typedef struct cairn_sampling {
  uint32_t struct_size;
  uint32_t flags;     // CAIRN_SAMPLING_…
  uint64_t seed;      // Equal seeds choose equal tokens at equal positions of equal texts.
  float temperature;  // 0: always the likeliest token. docs/sampling.md has all of these.
  float top_p, min_p, typical_p, top_n_sigma;
  float xtc_probability, xtc_threshold;
  float repeat_penalty, presence_penalty, frequency_penalty;
  float dry_multiplier, dry_base;
  float dynatemp_range, dynatemp_exponent;
  float mirostat_tau, mirostat_eta;
  int32_t top_k, repeat_last_count, dry_allowed_length, dry_last_count, mirostat;
  int32_t max_tokens;           // Of an answer; -1: as many as the model likes.
  const char* grammar;          // GBNF that answers fit; NULL: any. One of these two at most.
  const char* json_schema;      // The same, as a JSON schema.
  const char* stop_json;        // ["text", …]: texts that end an answer; NULL: none.
  const char* logit_bias_json;  // [[15043, -2.5], ["text", 1], [2, false]]: false bans; NULL: none.
  const char* samplers;         // "top_k;temperature": the chain; NULL: the usual one.
  // Who drafts tokens of answers in the background: "auto", "off", or kinds with commas between
  // them (docs/speculation.md), which changes none of them; NULL: as the engine was opened with.
  // The backend "cairn" alone.
  const char* draft;
} cairn_sampling;
// Sets what the model's file suggests, over what is usual. Nothing is written where the model is
// none, the size too small, or what the file suggests out of range.
CAIRN_API void cairn_sampling_init(const cairn_model* m, cairn_sampling* p, uint32_t struct_size);
// For all answers that begin from now on; one that is being made ends where it stands.
// Errors: CAIRN_E_INVALID and CAIRN_E_FORMAT, with the name of what is wrong; CAIRN_E_UNSUPPORTED,
// as for the keyword "if" of a schema; CAIRN_E_NO_ROOM: a grammar or schema is too large, as one
// with more than 10,000 repetitions.
CAIRN_API cairn_status cairn_set_sampling(cairn_conversation* c, const cairn_sampling* p,
                                          cairn_error* e);
// Chooses the next token without adding it: by the conversation's own logits, or by `count` others,
// one for each token of the vocabulary. Grammar and stop texts have no part in it.
// Errors: CAIRN_E_INVALID: nothing was read yet; the count is another; all logits are -infinity or
// no numbers.
CAIRN_API cairn_status cairn_sample(cairn_conversation* c, const float* logits, size_t count,
                                    cairn_token* out, cairn_error* e);
// Has the next token chosen from these logits, one for each token of the vocabulary, in place of
// the conversation's own: by the next cairn_next() or cairn_start(), with grammar and all. Until
// then, or until the tokens change. Errors: CAIRN_E_INVALID: nothing was read yet; the count is
// another; a call was cancelled when the next token was chosen already, which cairn_next() gives.
CAIRN_API cairn_status cairn_set_logits(cairn_conversation* c, const float* logits, size_t count,
                                        cairn_error* e);

// Answers. The first cairn_next() or cairn_start() behind a prompt begins one, which goes on from
// call to call until it ends; every call that reads, rewinds or sets ends it where it stands.
enum { CAIRN_EVENT_TOKENS = 1, CAIRN_EVENT_END = 2 };
enum {
  CAIRN_FINISH_NONE = 0,
  CAIRN_FINISH_STOP = 1,     // The model ended its answer, or a stop text or the grammar did.
  CAIRN_FINISH_LENGTH = 2,   // max_tokens
  CAIRN_FINISH_CONTEXT = 3,  // The context is full.
  CAIRN_FINISH_MEMORY = 4    // The memory budget is full.
};
typedef struct cairn_event {
  uint32_t struct_size;
  int32_t kind;          // CAIRN_EVENT_…
  int32_t finish;        // CAIRN_FINISH_…
  uint32_t position;     // Of the conversation, behind these tokens.
  uint32_t token_count;  // Of the token that ends an answer there is none.
  uint32_t reserved;
  const cairn_token* tokens;  // These pointers: until the next call on the conversation.
  const float* logprobs;      // One for each token, where they are asked for; else NULL.
  const char* text;           // Whole characters: what a token leaves unfinished comes later.
  size_t text_bytes;
  // Of a whole answer, at its end: tokens that were drafted and checked, and those of them that
  // were right.
  uint32_t drafted, accepted;
} cairn_event;
// The next token. CAIRN_OK: an event with a token, or with several where an answer in the
// background had drafts; CAIRN_DONE: the answer's end, with the last of
// its text; CAIRN_CANCELLED: going on is possible, and chooses the same tokens. While an answer is
// made in the background: waits for its next event.
// Errors: CAIRN_E_INVALID: nothing was read yet; CAIRN_E_NO_ROOM; CAIRN_E_FORMAT: the logits of all
// tokens that may come are -infinity or no numbers, also where cairn_set_logits() gave them.
CAIRN_API cairn_status cairn_next(cairn_conversation* c, cairn_event* out, cairn_error* e);
// Has the answer made in the background, and returns at once. Until cairn_poll() or cairn_next()
// has returned its end, CAIRN_CANCELLED or an error, most other calls are CAIRN_E_BUSY.
// Conversations whose answers are made at the same time share the reading of the weights.
CAIRN_API cairn_status cairn_start(cairn_conversation* c, cairn_error* e);
// As cairn_next(), but CAIRN_AGAIN instead of waiting. The answer waits where some hundred events
// are not taken. Errors: CAIRN_E_INVALID: no answer is being made in the background.
CAIRN_API cairn_status cairn_poll(cairn_conversation* c, cairn_event* out, cairn_error* e);
// A descriptor that poll(), epoll or an event loop finds readable while cairn_poll() has an event.
// Do not read or close it. It is the conversation's; -1: no such conversation.
CAIRN_API int cairn_wait_fd(const cairn_conversation* c);
// The call that computes for the conversation at the moment, or its answer in the background, soon
// ends with CAIRN_CANCELLED; if there is none, the next one that computes does. On any thread, and
// in signal handlers too.
CAIRN_API void cairn_cancel(cairn_conversation* c);

// The receipt of the last answer that has ended, as JSON (docs/receipts.md): what the answer was
// asked with, its tokens, and a digest of the logits that they were chosen from. `cairn replay`
// computes it again, on any machine, and says whether the bits are the same. Kept until the next
// answer begins or the conversation is reset. Output as cairn_detokenize(). Errors:
// CAIRN_E_INVALID: no answer has ended that was begun with CAIRN_SAMPLING_RECEIPT.
CAIRN_API cairn_status cairn_receipt(cairn_conversation* c, char* out, size_t capacity,
                                     size_t* bytes, cairn_error* e);

// The logits behind the last token; computed now where that was not done yet.
// Errors: those of cairn_next().
CAIRN_API cairn_status cairn_logits_acquire(cairn_conversation* c, cairn_logits** out,
                                            cairn_error* e);
// The row, and its number of floats; until it is released. NULL: no such row.
CAIRN_API const float* cairn_logits_data(const cairn_logits* l, size_t* count);
CAIRN_API void cairn_logits_release(cairn_logits* l);

// --- Snapshots and forks -----------------------------------------------------------------------

// The conversation as it stands: references to memory, no copy, which stay until it is released. An
// answer that is being made is not part of it: it begins anew behind these tokens. Other backends
// than "cairn" copy a state, or have none, and read the tokens again.
CAIRN_API cairn_status cairn_snapshot_take(cairn_conversation* c, cairn_snapshot** out,
                                           cairn_error* e);
// Its number of tokens; 0: no such snapshot.
CAIRN_API uint32_t cairn_snapshot_position(const cairn_snapshot* s);
CAIRN_API void cairn_snapshot_release(cairn_snapshot* s);
// Goes to where the snapshot was taken, of this conversation or another one of the engine. As
// reading above. Errors: CAIRN_E_MISMATCH: of another engine.
CAIRN_API cairn_status cairn_rewind_to(cairn_conversation* c, const cairn_snapshot* s,
                                       cairn_plan* done, cairn_error* e);
// A new conversation with the same tokens, memory and sampling; `s` NULL: as `c` stands, else with
// the tokens of the snapshot. Computes nothing.
CAIRN_API cairn_status cairn_fork(cairn_conversation* c, const cairn_snapshot* s,
                                  cairn_conversation** out, cairn_error* e);

// Keeps the conversation in the engine's store under a name (letters, digits, ".", "_", "-"), in
// place of what had it: it is on the disk when this returns. Errors: CAIRN_E_UNSUPPORTED: the
// engine has no store; CAIRN_E_INVALID: the conversation is empty, or the name none; CAIRN_E_IO.
CAIRN_API cairn_status cairn_save(cairn_conversation* c, const char* name, cairn_error* e);
// Becomes what was saved, by this engine or an earlier one on the same model. As reading above.
// Errors: CAIRN_E_IO: nothing of that name; CAIRN_E_FORMAT: it is damaged; CAIRN_E_MISMATCH: of
// another model.
CAIRN_API cairn_status cairn_restore(cairn_conversation* c, const char* name, cairn_plan* done,
                                     cairn_error* e);

#ifdef __cplusplus
}
#endif
