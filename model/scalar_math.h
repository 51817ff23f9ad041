// exp, log, log1p and the logistic function from basic IEEE 754 operations only. The versions in
// libm differ in the last bit between processors; training and replay must not. Errors against the
// true value are below 2 units in the last place (log1p: 4), tested against libm.
#pragma once

namespace cgphase {

// e^x. Overflow gives +inf, underflow 0, nan stays nan.
double portable_exp(double x);

// Natural logarithm. 0 gives -inf, a negative argument gives nan.
double portable_log(double x);

// log(1 + x), accurate near zero. x <= -1 as in portable_log.
double portable_log1p(double x);

// 1 / (1 + e^-x), in (0, 1) and monotone; stable for any finite x.
double portable_sigmoid(double x);
// The same bits for `count` values in place, several at a time.
void portable_sigmoids(double* values, int count);

}  // namespace cgphase
