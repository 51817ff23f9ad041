// Progress of the training, reported after each epoch.
#pragma once

namespace cgphase {

struct EpochReport {
  int epoch = 0;
  double error = 0, held_out_error = 0;  // mean over windows of ||v - v1||
};

}  // namespace cgphase
