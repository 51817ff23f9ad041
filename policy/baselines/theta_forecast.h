// The theta method (V. Assimakopoulos and K. Nikolopoulos, Int. J. of Forecasting 16, 2000, in the
// form of R. Hyndman and B. Billah, 19, 2003: exponential smoothing with half the drift) of a
// deseasonalised series, and the search for its period as Theta-Scan does it (IEEE CLOUD 2021,
// github.com/BSC-IBM/ThetaScan). Only + - * /: the same bits on every machine.
#pragma once

#include <span>
#include <vector>

namespace cgphase {

struct ThetaSettings {
  double smoothing = 0.2;  // alpha, in (0, 1]; Theta-Scan's
};

// How much each position of the period is above (or below) the moving average over one period, a
// ratio with mean 1 (classical multiplicative decomposition). {1} for a period below 2. The series
// has at least two periods.
std::vector<double> seasonal_ratios(std::span<const double> series, int period);

// The next `horizon` values, none below 0. The series is not empty, and `period` 1 (no season) or
// at most half of it.
std::vector<double> theta_forecast(std::span<const double> series, int period, int horizon,
                                   const ThetaSettings& settings);

// The period with which the first seven eighths foretell the last eighth best (symmetric mean
// absolute percentage error, the shortest of equals), up to a third of the series; 1 where the
// choice hardly matters (variance of the errors below 0.01: stationary) or the series is short.
int find_period(std::span<const double> series, const ThetaSettings& settings);

}  // namespace cgphase
