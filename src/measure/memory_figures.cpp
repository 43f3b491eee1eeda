// One list of all that is measured.
#include "measure/memory_figures.h"

#include <utility>

#include "base/machine/machine_memory.h"

namespace cairn::measure {

namespace {

Status add(Result<std::vector<Figure>> more, std::vector<Figure>& figures) {
  if (!more) return std::move(more).error();
  for (Figure& figure : *more) figures.push_back(std::move(figure));
  return Ok{};
}

}  // namespace

Result<std::vector<Figure>> measure_memory(Engine& engine, const MemoryWork& work) {
  const double beside_weights =
      double(resident_bytes()) - double(work.resident_before) - double(work.weights_bytes);
  // States that are kept warm are resident and counted before anybody needs them.
  const double warm_bytes = double(engine.memory().usage().warm_bytes);
  std::vector<Figure> figures;
  figures.push_back({.what = "resident at the start beyond the weights, 32k context",
                     .measured = beside_weights / kMiB,
                     .unit = "MiB",
                     .bar = 64 + warm_bytes / kMiB});
  CAIRN_TRY(add(measure_costs(engine), figures));
  CAIRN_TRY(add(measure_conversations(engine, work.preset), figures));
  CAIRN_TRY(add(measure_paging(engine), figures));
  return figures;
}

}  // namespace cairn::measure
