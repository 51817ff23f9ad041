#include "tests/model/example_models.h"

#include <algorithm>

#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/scaler.h"

namespace cgphase {
namespace {

std::vector<double> normals(Random& random, int count, double deviation) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = deviation * random.normal();
  return values;
}

FeatureSchema example_schema(int features) {
  FeatureSchema schema = plain_schema();
  while (static_cast<int>(schema.entries.size()) < features)
    schema.entries.push_back({Feature::column, "extra" + std::to_string(schema.entries.size())});
  schema.entries.resize(static_cast<std::size_t>(features));
  return schema;
}

}  // namespace

Model random_model(std::uint64_t seed, const ExampleSize& size, double weight_scale) {
  Random random(seed);
  Model model;
  model.schema = example_schema(size.features);
  model.step_seconds = 2;
  model.scaler.mean = normals(random, size.features, 1);
  model.scaler.scale.assign(static_cast<std::size_t>(size.features), 0.75);
  const int past = size.features * size.history;
  model.crbm = {size.features,
                size.hidden,
                size.history,
                normals(random, size.hidden * size.features, weight_scale),
                normals(random, size.features * past, weight_scale),
                normals(random, size.hidden * past, weight_scale),
                normals(random, size.features, weight_scale),
                normals(random, size.hidden, weight_scale)};
  model.centroids.count = size.phases;
  model.centroids.dimension = size.hidden;
  for (int i = 0; i < size.phases * size.hidden; ++i)
    model.centroids.values.push_back(random.uniform());
  model.phases.assign(static_cast<std::size_t>(size.phases), {10, 0.5, 0.1, 0.25, 0.2, 0.3});
  model.provenance = {{"program", "test"}, {"seed", std::to_string(seed)}};
  return model;
}

std::vector<double> random_window(Random& random, const CrbmParameters& crbm, double deviation) {
  std::vector<double> window = normals(random, crbm.n_vis * (crbm.n_his + 1), deviation);
  for (double& value : window) value = std::clamp(value, -kStandardisedBound, kStandardisedBound);
  return window;
}

std::vector<std::int16_t> quantized(const std::vector<double>& window) {
  std::vector<std::int16_t> values;
  for (const double value : window) values.push_back(quantize_input(value));
  return values;
}

}  // namespace cgphase
