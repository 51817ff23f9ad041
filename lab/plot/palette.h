// One colour and one letter per phase. The colours are distinct for people with the common kinds of
// colour blindness; the letter serves everybody else.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "lab/plot/svg.h"

namespace cgphase {

struct PhaseColor {
  std::string_view fill;
  std::string_view ink;  // colour of a letter on it; contrast at least 4.5 to 1
};

// Okabe and Ito, "Color Universal Design" (2008), without black and yellow, which are used for text
// and paper.
inline constexpr std::array<PhaseColor, 6> kOkabeIto = {{{"#0072b2", kPaper},
                                                         {"#e69f00", kInk},
                                                         {"#009e73", kInk},
                                                         {"#cc79a7", kInk},
                                                         {"#56b4e9", kInk},
                                                         {"#d55e00", "#000000"}}};

// Tol, "Colour Schemes" (SRON/EPS/TN/09-002, issue 3.2, 2021), the qualitative scheme "muted".
inline constexpr std::array<PhaseColor, 9> kTolMuted = {{{"#332288", kPaper},
                                                         {"#ddcc77", kInk},
                                                         {"#117733", kPaper},
                                                         {"#cc6677", "#000000"},
                                                         {"#88ccee", kInk},
                                                         {"#882255", kPaper},
                                                         {"#44aa99", kInk},
                                                         {"#999933", kInk},
                                                         {"#aa4499", kPaper}}};

// Returns the colour of phase `index` of `count`: Okabe-Ito for up to six phases, Tol for more,
// repeated after nine. An index has the same colour in all plots of one model.
constexpr const PhaseColor& phase_color(std::size_t index, std::size_t count) {
  return count <= kOkabeIto.size() ? kOkabeIto[index] : kTolMuted[index % kTolMuted.size()];
}

// Returns how often the colours were repeated before `index`. Such phases are striped, each time in
// another direction.
constexpr std::size_t phase_round(std::size_t index) { return index / kTolMuted.size(); }

}  // namespace cgphase
