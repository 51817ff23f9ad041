// list_containers CGROUP_ROOT [GLOB...]: prints the containers that the daemon would find below
// CGROUP_ROOT. One JSON object per line with sorted keys: the container's names, its cgroup and the
// limits read there.
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "collectors/node_sampler.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

nlohmann::json line(const ContainerInfo& container, const Sample& sample) {
  nlohmann::json object = {{"engine", to_string(container.engine)},
                           {"engine_id", escape_name(container.engine_id)},
                           {"name", escape_name(container.name)},
                           {"image", escape_name(container.image)},
                           {"path", escape_name(container.path)},
                           {"cpu_cores", nullptr},
                           {"memory_max_bytes", nullptr}};
  if (const auto cores = sample.limits.cpu_cores()) object["cpu_cores"] = cores->value;
  if (const auto bytes = sample.limits.memory_bytes()) object["memory_max_bytes"] = bytes->value;
  return object;
}

int list(const NodeSampler::Options& options) {
  Result<NodeSampler> sampler = NodeSampler::open(options);
  if (!sampler) {
    std::fprintf(stderr, "list_containers: %s\n", sampler.error().text.c_str());
    return 1;
  }
  NodeSample tick;
  sampler->sample(SystemClock(), tick);
  for (const ContainerInfo& container : tick.appeared) {
    for (const Sample& sample : tick.containers) {
      if (sample.id == container.id) std::puts(line(container, sample).dump().c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace cgphase

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs("usage: list_containers CGROUP_ROOT [GLOB...]\n", stderr);
    return 2;
  }
  cgphase::NodeSampler::Options options;
  options.cgroup_root = arguments[1];
  options.include.assign(arguments + 2, arguments + count);
  return cgphase::list(options);
}
