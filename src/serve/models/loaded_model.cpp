// Digests, options, and the engine.
#include "serve/models/loaded_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/sha256.h"
#include "engine/pooling.h"

namespace cairn::serve {

namespace {

FileStamp stamp_of(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .bytes = uint64_t(found.st_size),
          .changed_ns = int64_t(found.st_ctim.tv_sec) * 1'000'000'000 + found.st_ctim.tv_nsec};
}

// `done`: bytes of the files before it.
Result<std::string> digest_of(const std::string& path, uint64_t done, uint64_t total,
                              const LoadProgress& progress,
                              const std::function<bool()>& is_given_up) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(ErrorCode::not_found, "{}: cannot be read", path);
  Sha256 digest;
  std::vector<std::byte> bytes(size_t(1) << 20);
  for (;;) {
    if (is_given_up && is_given_up()) {
      ::close(file);
      return fail(ErrorCode::cancelled, "{}: the loading was given up", path);
    }
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ::close(file);
      return fail(ErrorCode::io, "{}: cannot be read to its end", path);
    }
    if (count == 0) break;
    digest.add(std::span(bytes).first(size_t(count)));
    done += uint64_t(count);
    progress(LoadStage::checking, int(std::min(done, total) * 100 / std::max<uint64_t>(total, 1)));
  }
  ::close(file);
  return hex_of(digest.finish());
}

// What the model is for, and what it knows at most, is the file's to say.
Result<EngineOptions> options_for(const gguf::File& file, const LoadTerms& terms,
                                  const LoadProgress& progress) {
  EngineOptions options = terms.engine;
  if (!options.pooling) {
    CAIRN_TRY(options.pooling, pooling_of(file));
  }
  if (options.context_tokens > 0) {
    CAIRN_TRY(const gguf::Metadata meta, file.metadata());
    CAIRN_TRY(const int32_t known, meta.count("context_length"));
    options.context_tokens = std::min(options.context_tokens, known);
  }
  options.on_progress = [&progress](size_t done, size_t total) {
    progress(LoadStage::loading, int(done * 100 / std::max<size_t>(total, 1)));
  };
  return options;
}

}  // namespace

std::vector<FileStamp> stamps_of(const ModelSource& source) {
  std::vector<FileStamp> stamps;
  for (const std::string& path : source.parts) stamps.push_back(stamp_of(path));
  return stamps;
}

Status check_digests(const ModelSource& source, const LoadProgress& progress,
                     const std::function<bool()>& is_given_up) {
  const std::vector<FileStamp> stamps = stamps_of(source);
  uint64_t total = 0, done = 0;
  for (size_t part = 0; part < stamps.size(); ++part) {
    if (!source.digests[part].empty()) total += stamps[part].bytes;
  }
  for (size_t part = 0; part < stamps.size(); ++part) {
    const std::string& expected = source.digests[part];
    if (expected.empty()) continue;
    CAIRN_TRY(const std::string found,
              digest_of(source.parts[part], done, total, progress, is_given_up));
    done += stamps[part].bytes;
    if (found == expected) continue;
    return fail(ErrorCode::invalid_data, "{}: expected SHA-256 {}, found {}", source.parts[part],
                expected, found);
  }
  return Ok{};
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const ModelSource& source,
                                                       const LoadTerms& terms,
                                                       const LoadProgress& progress,
                                                       std::vector<FileStamp>& checked) {
  const std::vector<FileStamp> stamps = stamps_of(source);
  if (checked != stamps) CAIRN_TRY(check_digests(source, progress, terms.engine.is_given_up));
  CAIRN_TRY(gguf::File file, terms.open(source.path));
  CAIRN_TRY(const EngineOptions options, options_for(file, terms, progress));
  std::unique_ptr<LoadedModel> model(new LoadedModel());
  CAIRN_TRY(model->engine_, Engine::load(std::move(file), options));
  if (stamps_of(source) != stamps) {
    return fail(ErrorCode::io, "{}: was changed while it was loaded", source.path);
  }
  checked = stamps;
  CAIRN_TRY(sample::SamplingParams sampling,
            session::effective_sampling(model->engine_->file().fields(), source.path.empty(),
                                        terms.sampling));
  CAIRN_TRY(sample::check_logit_bias(sampling, model->engine_->size().vocabulary_count));
  CAIRN_TRY(model->service_, session::Service::start(model->engine_.get(), {}, terms.turns));
  model->served_ = {.service = model->service_.get(),
                    .name = source.name,
                    .created = source.modified,
                    .sampling = std::move(sampling),
                    .has_seed = terms.sampling.seed.has_value()};
  return model;
}

}  // namespace cairn::serve
