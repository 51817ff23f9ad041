#include "model/column_math.h"

#include <doctest/doctest.h>

#include <vector>

#include "model/train/random.h"

using namespace cgphase;

namespace {

std::vector<double> normals(Random& random, int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = random.normal();
  return values;
}

// Makes numbers of each kind and calls work(...) for all small numbers of rows and columns. They
// leave different remainders beside the blocks that are computed together.
struct Numbers {
  int rows, columns;
  std::vector<double> matrix, row0, row1, column0, column1;
  double& at(std::vector<double>& values, int row, int column) const {
    return values[static_cast<std::size_t>(column * rows + row)];
  }
};
template <class Work>
void for_sizes(Work work) {
  Random random(1);
  for (int rows = 1; rows <= 21; ++rows)
    for (int columns = 0; columns <= 5; ++columns) {
      CAPTURE(rows);
      CAPTURE(columns);
      work(Numbers{rows, columns, normals(random, rows * columns), normals(random, columns),
                   normals(random, columns), normals(random, rows), normals(random, rows)});
    }
}

// Applies update(element, row, column) to each element of `matrix`.
template <class Update>
std::vector<double> updated(const Numbers& n, Update update) {
  std::vector<double> matrix = n.matrix;
  for (int i = 0; i < n.columns; ++i)
    for (int r = 0; r < n.rows; ++r)
      n.at(matrix, r, i) = update(n.at(matrix, r, i), static_cast<std::size_t>(r),
                                  static_cast<std::size_t>(i));
  return matrix;
}

}  // namespace

TEST_CASE("columns are added one after the other, to the last bit") {
  for_sizes([](Numbers n) {
    std::vector<double> sum = n.column0, expected = n.column0;
    add_columns(n.matrix.data(), n.rows, n.columns, n.row0.data(), sum.data());
    for (int i = 0; i < n.columns; ++i)
      for (int r = 0; r < n.rows; ++r)
        expected[static_cast<std::size_t>(r)] +=
            n.at(n.matrix, r, i) * n.row0[static_cast<std::size_t>(i)];
    CHECK(sum == expected);
  });
}

TEST_CASE("rows are added one after the other, to the last bit") {
  for_sizes([](Numbers n) {
    std::vector<double> sum = n.row0, expected = n.row0;
    add_rows(n.matrix.data(), n.rows, n.columns, n.column0.data(), sum.data());
    for (int r = 0; r < n.rows; ++r)
      for (int i = 0; i < n.columns; ++i)
        expected[static_cast<std::size_t>(i)] +=
            n.at(n.matrix, r, i) * n.column0[static_cast<std::size_t>(r)];
    CHECK(sum == expected);
  });
}

TEST_CASE("outer products are added to each element separately") {
  for_sizes([](Numbers n) {
    const auto expected = updated(
        n, [&](double old, auto r, auto i) { return old + n.column0[r] * n.row0[i]; });
    const auto apart = updated(n, [&](double old, auto r, auto i) {
      return old + (n.column0[r] * n.row0[i] - n.column1[r] * n.row1[i]);
    });
    std::vector<double> matrix = n.matrix;
    add_outer(matrix.data(), n.rows, n.columns, n.column0.data(), n.row0.data());
    CHECK(matrix == expected);
    matrix = n.matrix;
    add_outer_difference(matrix.data(), n.rows, n.columns, n.column0.data(), n.row0.data(),
                         n.column1.data(), n.row1.data());
    CHECK(matrix == apart);
  });
}
