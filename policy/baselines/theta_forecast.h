// Forecasts a deseasonalised series with the theta method (V. Assimakopoulos and K. Nikolopoulos,
// Int. J. of Forecasting 16, 2000), in the form of R. Hyndman and B. Billah (19, 2003): exponential
// smoothing with half the drift. The period is searched as in Theta-Scan (IEEE CLOUD 2021,
// github.com/BSC-IBM/ThetaScan). Only + - * / are used, so results are bit-identical on all
// machines.
#pragma once

#include <span>
#include <vector>

namespace cgphase {

struct ThetaSettings {
  double smoothing = 0.2;  // alpha, in (0, 1]; the default is Theta-Scan's
};

// For each position of the period, the ratio to the moving average over one period. The mean of the
// ratios is 1 (classical multiplicative decomposition). Returns {1} for a period below 2. The
// series must have at least two periods.
std::vector<double> seasonal_ratios(std::span<const double> series, int period);

// The next `horizon` values, none below 0. The series must not be empty. `period` is 1 (no season)
// or at most half of its length.
std::vector<double> theta_forecast(std::span<const double> series, int period, int horizon,
                                   const ThetaSettings& settings);

// The period with which the first seven eighths best predict the last eighth, up to a third of the
// series. The measure is the symmetric mean absolute percentage error; of equal ones the shortest
// wins. Returns 1 for a short series, and for a stationary one (variance of the errors below 0.01).
int find_period(std::span<const double> series, const ThetaSettings& settings);

}  // namespace cgphase
