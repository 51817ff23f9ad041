// quick_model FROM TO: writes the model of FROM with steps of a quarter of a second and without
// novelty bounds. So every container has a known phase within seconds, and its limits may be
// lowered.
#include <cstdio>

#include "model/model.h"

namespace {

constexpr double kStepSeconds = 0.25;

int failed(const cgphase::Error& error) {
  std::fprintf(stderr, "quick_model: %s\n", error.text.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: quick_model FROM TO\n", stderr);
    return 2;
  }
  auto model = cgphase::load_model(arguments[1]);
  if (!model) return failed(model.error());
  model->step_seconds = kStepSeconds;
  for (cgphase::PhaseSummary& phase : model->phases) phase.novelty_distance = 0;
  const cgphase::Status saved = cgphase::save_model(*model, arguments[2]);
  return saved ? 0 : failed(saved.error());
}
