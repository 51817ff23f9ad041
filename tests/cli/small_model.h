// A model whose phases a test can predict.
#pragma once

#include "model/feature_schema.h"
#include "model/model.h"

namespace cgphase::test {

// Made by hand: one hidden unit rises with CPU, the other with memory. A is low in both, B is high
// in CPU, C is high in memory. Values between them are beyond the novelty bound of all.
inline Model small_model() {
  Model model;
  model.schema.entries = {{Feature::cpu_usage_ratio, "cpu_usage_ratio"},
                          {Feature::memory_need_ratio, "memory_need_ratio"}};
  model.step_seconds = 1;
  model.scaler = {{0.5, 0.5}, {0.25, 0.25}};
  model.crbm = {.n_vis = 2, .n_hid = 2, .n_his = 1, .w = {2, 0, 0, 2}, .a = {0, 0, 0, 0},
                .b = {0, 0, 0, 0}, .visible_bias = {0, 0}, .hidden_bias = {0, 0}};
  model.centroids = {3, 2, {0, 0, 1, 0, 0, 1}};
  model.phases = {{100, 0.05, 1, 0.1, 1, 0.05},
                  {80, 0.9, 1, 0.2, 1, 0.05},
                  {60, 0.2, 1, 0.9, 1, 0.05}};
  return model;
}

}  // namespace cgphase::test
