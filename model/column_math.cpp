#include "model/column_math.h"

#include <cstddef>
#include <cstring>

// Every function that a copy for wide vectors calls must be inlined into it.
#define CGPHASE_INLINE [[gnu::always_inline]] inline

namespace cgphase {
namespace {

// Several rows of a column, as vectors of the compiler, which compute each element alone.
using Doubles4 [[gnu::vector_size(32)]] = double;
using Doubles2 [[gnu::vector_size(16)]] = double;

template <class Doubles>
struct Block {
  CGPHASE_INLINE static Doubles load(const double* from) {
    Doubles block;
    std::memcpy(&block, from, sizeof block);
    return block;
  }
  CGPHASE_INLINE static void store(Doubles block, double* to) {
    std::memcpy(to, &block, sizeof block);
  }
};

// Calls work(first row, Block) for all rows: first as many as fit Wide at a time, then the rest.
template <class Wide, class Work>
CGPHASE_INLINE void for_blocks(int rows, int columns, Work work) {
  if (columns == 0) return;  // the pointer may be null
  constexpr int kWide = sizeof(Wide) / sizeof(double);
  int row = 0;
  for (; row + kWide <= rows; row += kWide) work(row, Block<Wide>());
  if (kWide > 2 && row + 2 <= rows) work(row, Block<Doubles2>()), row += 2;
  if (row < rows) work(row, Block<double>());
}

template <class Wide>
CGPHASE_INLINE void add_columns_by(const double* matrix, int rows, int columns,
                                   const double* factors, double* sum) {
  for_blocks<Wide>(rows, columns, [&](int row, auto block) __attribute__((always_inline)) {
    auto total = block.load(sum + row);
    const double* column = matrix + row;
    for (int i = 0; i < columns; ++i, column += rows) total += block.load(column) * factors[i];
    block.store(total, sum + row);
  });
}

template <class Wide>
CGPHASE_INLINE void add_outer_by(double* matrix, int rows, int columns, const double* left,
                                 const double* right) {
  for_blocks<Wide>(rows, columns, [&](int row, auto block) __attribute__((always_inline)) {
    const auto l = block.load(left + row);
    double* column = matrix + row;
    for (int i = 0; i < columns; ++i, column += rows)
      block.store(block.load(column) + l * right[i], column);
  });
}

template <class Wide>
CGPHASE_INLINE void add_outer_difference_by(double* matrix, int rows, int columns,
                                            const double* left0, const double* right0,
                                            const double* left1, const double* right1) {
  for_blocks<Wide>(rows, columns, [&](int row, auto block) __attribute__((always_inline)) {
    const auto l0 = block.load(left0 + row), l1 = block.load(left1 + row);
    double* column = matrix + row;
    for (int i = 0; i < columns; ++i, column += rows)
      block.store(block.load(column) + (l0 * right0[i] - l1 * right1[i]), column);
  });
}

// Processes four doubles at a time if the processor has such vectors, which is checked once; else
// two. (A target_clones copy for two would get vectors of four and keep them in memory.)
#if defined(__x86_64__) && !defined(CGPHASE_SANITIZED)
const bool kFourAtATime = __builtin_cpu_supports("x86-64-v3") != 0;
#define CGPHASE_BY_WIDTH(name, parameters, arguments)                       \
  [[gnu::target("arch=x86-64-v3")]] static void name##_by_four parameters { \
    name##_by<Doubles4> arguments;                                          \
  }                                                                         \
  void name parameters {                                                    \
    if (kFourAtATime) return name##_by_four arguments;                      \
    name##_by<Doubles2> arguments;                                          \
  }
#else
#define CGPHASE_BY_WIDTH(name, parameters, arguments) \
  void name parameters { name##_by<Doubles2> arguments; }
#endif

}  // namespace

CGPHASE_BY_WIDTH(add_columns,
                 (const double* matrix, int rows, int columns, const double* factors, double* sum),
                 (matrix, rows, columns, factors, sum))

CGPHASE_BY_WIDTH(add_outer,
                 (double* matrix, int rows, int columns, const double* left, const double* right),
                 (matrix, rows, columns, left, right))

CGPHASE_BY_WIDTH(add_outer_difference,
                 (double* matrix, int rows, int columns, const double* left0,
                  const double* right0, const double* left1, const double* right1),
                 (matrix, rows, columns, left0, right0, left1, right1))

void add_rows(const double* matrix, int rows, int columns, const double* factors, double* sum) {
  for (int i = 0; i < columns; ++i) {
    const double* column = matrix + std::ptrdiff_t{i} * rows;
    double total = sum[i];
    for (int r = 0; r < rows; ++r) total += column[r] * factors[r];
    sum[i] = total;
  }
}

}  // namespace cgphase
