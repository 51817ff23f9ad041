// The loops of the CRBM in double precision, over column-major matrices. Each element is computed
// alone and in the written order. So a result does not depend on the vector width of the processor:
// it is bit-identical everywhere.
#pragma once

namespace cgphase {

// sum[r] += matrix(r, i) * factors[i], one column i after the other.
// matrix [rows * columns], factors [columns], sum [rows].
void add_columns(const double* matrix, int rows, int columns, const double* factors, double* sum);

// sum[i] += matrix(r, i) * factors[r], one row r after the other.
// matrix [rows * columns], factors [rows], sum [columns].
void add_rows(const double* matrix, int rows, int columns, const double* factors, double* sum);

// matrix(r, i) += left[r] * right[i].
void add_outer(double* matrix, int rows, int columns, const double* left, const double* right);

// matrix(r, i) += left0[r] * right0[i] - left1[r] * right1[i].
void add_outer_difference(double* matrix, int rows, int columns, const double* left0,
                          const double* right0, const double* left1, const double* right1);

}  // namespace cgphase
