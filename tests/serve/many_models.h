// For tests: a folder with models, and a server of those, whose loads a test can hold up.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/models/model_registry.h"
#include "tests/scratch_folder.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve {

// A door that files of models go through: loads wait where it is shut.
class Door {
 public:
  void shut() {
    const std::lock_guard lock(mutex_);
    is_shut_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_shut_ = false;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++count_;
    changed_.wait(lock, [this] { return !is_shut_; });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shut_ = false;
  int count_ = 0;
};

// Copies of the built-in model, by these names.
class ModelFolder {
 public:
  explicit ModelFolder(const std::vector<std::string>& names) {
    for (const std::string& name : names) add(name);
  }
  void add(const std::string& name) const {
    const std::string path = folder_.file(name + ".gguf");
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::filesystem::copy_file(CAIRN_SOURCE "/assets/nano.gguf", path,
                               std::filesystem::copy_options::overwrite_existing);
  }
  std::string path() const { return folder_.path().string(); }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  test::ScratchFolder folder_;
};

inline LoadTerms small_terms(Door* door = nullptr) {
  LoadTerms terms;
  terms.engine.memory_budget = size_t(64) << 20;
  terms.engine.thread_count = 1;
  // Answers end when a test ends them, and not with the context.
  terms.engine.context_policy = ContextPolicy::shift;
  terms.open = [door](const std::string& path) {
    if (door != nullptr) door->pass();
    return gguf::File::open(path);
  };
  return terms;
}

inline std::unique_ptr<ModelRegistry> models_of(const std::string& folder,
                                                const RegistryOptions& options = {},
                                                LoadTerms terms = small_terms()) {
  return ModelRegistry::start(models_in(folder).value(), std::move(terms), options).value();
}

inline nlohmann::json greedy(const std::string& model, const std::string& text = kFrance) {
  nlohmann::json body = question(text);
  body["model"] = model;
  body["temperature"] = 0;
  return body;
}

// Waits for what another thread does, for at most half a minute.
inline bool becomes_true(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < end) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return is_true();
}

}  // namespace cairn::serve
