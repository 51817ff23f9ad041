#include "model/phase_tracker.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/phase_path.h"
#include "model/scaler.h"

namespace cgphase {
namespace {

constexpr double kUnit = 0x1p-30;  // unit of the engine's distances
static_assert(kActivationShift == 15);

}  // namespace

class PhaseEngine::Impl {
 public:
  explicit Impl(Model the_model)
      : model(std::move(the_model)), fixed(model.crbm, model.centroids) {}

  bool novel(int phase, double distance) const {
    const double bound = model.phases[static_cast<std::size_t>(phase)].novelty_distance;
    if (bound <= 0) return false;
    return distance > std::max(kNoveltyFactor * bound, kNoveltyFloorPerUnit * model.crbm.n_hid);
  }

  Model model;
  CrbmFixed fixed;
};

PhaseEngine::PhaseEngine() = default;
PhaseEngine::~PhaseEngine() = default;

const Model& PhaseEngine::model() const { return impl_->model; }

Result<std::shared_ptr<const PhaseEngine>> PhaseEngine::create(Model model) {
  if (Status status = check_model(model, "model"); !status) return std::unexpected(status.error());
  std::shared_ptr<PhaseEngine> engine(new PhaseEngine);
  engine->impl_ = std::make_unique<Impl>(std::move(model));
  return engine;
}

class PhaseTracker::Impl {
 public:
  explicit Impl(std::shared_ptr<const PhaseEngine> the_engine)
      : engine(std::move(the_engine)),
        standardised(static_cast<std::size_t>(engine->model().crbm.n_vis)),
        window(static_cast<std::size_t>(engine->impl_->fixed.window_size())),
        path(engine->model().centroids, engine->model().switch_cost) {}

  // Moves the window forward by one step.
  void push() {
    const auto n_vis = static_cast<std::ptrdiff_t>(standardised.size());
    std::shift_left(window.begin(), window.end(), n_vis);
    std::transform(standardised.begin(), standardised.end(), window.end() - n_vis, quantize_input);
    ++steps;
  }

  PhasePath::Step nearest() const {
    const PhaseEngine::Impl& shared = *engine->impl_;
    const CrbmFixed::Nearest found = shared.fixed.nearest(window);
    const double margin = static_cast<double>(found.margin) * kUnit;
    // With one centroid there is no other one to confuse it with.
    const bool certain =
        shared.model.centroids.count == 1 || margin > shared.fixed.error_bound(window);
    return {found.index, found.distance, found.margin, certain};
  }

  PhasePath::Step follow() {
    const CrbmFixed& fixed = engine->impl_->fixed;
    std::int64_t distances[kMaxPhases];
    fixed.distances(window, distances);
    const auto count = static_cast<std::size_t>(engine->model().centroids.count);
    return path.step({distances, count}, fixed.error_bound(window));
  }

  Phase classify() {
    const PhasePath::Step found = path.sticky() ? follow() : nearest();
    Phase phase;
    phase.index = found.index;
    phase.distance = static_cast<double>(found.distance) * kUnit;
    phase.margin = static_cast<double>(found.margin) * kUnit;
    const bool novel = engine->impl_->novel(phase.index, phase.distance);
    phase.state = found.certain && !novel ? PhaseState::known : PhaseState::unknown;
    return phase;
  }

  std::shared_ptr<const PhaseEngine> engine;
  std::vector<double> standardised;
  std::vector<std::int16_t> window;
  PhasePath path;
  int steps = 0;  // steps in the window since the last reset
  std::uint64_t imputed = 0;
};

PhaseTracker::PhaseTracker(std::shared_ptr<const PhaseEngine> engine)
    : impl_(std::make_unique<Impl>(std::move(engine))) {}
PhaseTracker::PhaseTracker(PhaseTracker&&) noexcept = default;
PhaseTracker& PhaseTracker::operator=(PhaseTracker&&) noexcept = default;
PhaseTracker::~PhaseTracker() = default;

Phase PhaseTracker::step(const FeatureVector& vector) {
  const Model& model = impl_->engine->model();
  const int imputed = standardise(model.scaler, vector, impl_->standardised);
  impl_->imputed += static_cast<std::uint64_t>(imputed);
  if (imputed > 0 && lacks_input(model.schema, vector)) {
    reset();
    return {};
  }
  impl_->push();
  impl_->steps = std::min(impl_->steps, model.crbm.n_his + 1);
  if (impl_->steps <= model.crbm.n_his) return {};
  return impl_->classify();
}

void PhaseTracker::reset() {
  impl_->steps = 0;
  impl_->path.reset();
}

std::uint64_t PhaseTracker::imputed_count() const { return impl_->imputed; }

}  // namespace cgphase
