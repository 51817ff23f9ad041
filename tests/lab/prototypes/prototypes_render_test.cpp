#include "lab/prototypes/prototypes_render.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace cgphase;
using nlohmann::json;

namespace {

PrototypesReport report_of(const std::vector<PhaseSequence>& sequences, const LengthBins& bins,
                           double min_share) {
  PrototypesReport report;
  report.bins = bins;
  report.cover = 0.6;
  report.min_share = min_share;
  report.prototypes = find_prototypes(sequences, bins, report.cover);
  report.tree = phase_tree(sequences, bins, min_share);
  report.chain = phase_chain(sequences);
  return report;
}

// The five executions of tests/lab/prototypes/prototypes_test.cpp, which explains the numbers.
PrototypesReport five() {
  const std::vector<PhaseSequence> sequences = {{"a", {{0, 2}, {1, 5}}},
                                                {"b", {{0, 4}, {1, 9}}},
                                                {"c", {{0, 3}, {1, 6}, {0, 1}}},
                                                {"d", {{1, 1}}},
                                                {"e\x1b", {{0, 1}}}};
  PrototypesReport report = report_of(sequences, *LengthBins::create({1, 5}), 0.25);
  report.step_seconds = 2.5;
  report.without_phase_count = 1;
  return report;
}

// Every possible phase, each followed by every other.
PrototypesReport crowded() {
  std::vector<PhaseSequence> sequences;
  for (int from = 0; from <= kUnknownPhase; ++from)
    for (int to = 0; to <= kUnknownPhase; ++to) {
      PhaseSequence sequence;
      sequence.add({from, 7});
      sequence.add({to, 5'000'000'000});
      sequences.push_back(sequence);
    }
  return report_of(sequences, LengthBins{}, kMinTreeShare);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

// Elements are nested and closed, and attributes are quoted.
void check_xml(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    REQUIRE(end != std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    CHECK(tag.find('<') == std::string::npos);
    CHECK(count(tag, "\"") == 2 * count(tag, "="));
    if (tag.front() == '/') {
      REQUIRE(!open.empty());
      CHECK(open.back() == tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  CHECK(open.empty());
  CHECK(text.find('&') == std::string::npos);
}

}  // namespace

TEST_CASE("a label names the phase and the lengths of its bin") {
  const LengthBins bins = *LengthBins::create({1, 2, 10});
  CHECK(label_text({3, 0}, bins) == "D(1)");
  CHECK(label_text({3, 1}, bins) == "D(2-9)");
  CHECK(label_text({kUnknownPhase, 2}, bins) == "?(10+)");
  CHECK(label_text({3, 0}, *LengthBins::create({1})) == "D");
}

TEST_CASE("a long prototype is shortened in text only") {
  PhaseSequence sequence{"long", {}};
  for (int i = 0; i < 20; ++i) sequence.add({i, 1});
  const PrototypesReport report = report_of({sequence}, *LengthBins::create({1}), 1);
  CHECK(prototypes_text(report).find("O P and 4 more") != std::string::npos);
  CHECK(json::parse(prototypes_json(report))["prototypes"][0]["sequence"].size() == 20);
}

TEST_CASE("JSON has all findings, with null for an open bin and an unknown phase") {
  const json found = json::parse(prototypes_json(five()));
  CHECK(found["schema"] == 1);
  CHECK(found["executions"] == 5);
  CHECK(found["executions_without_phase"] == 1);
  CHECK(found["step_seconds"] == 2.5);
  CHECK(found["bins"] == json({1, 5}));
  CHECK(found["covered"] == 3);
  CHECK(found["distinct"] == 4);
  CHECK(found["prototypes"][0] ==
        json::parse(R"({"count": 2, "share": 0.4, "cumulative_share": 0.4, "example": "a",
                        "sequence": [{"phase": 0, "from": 1, "to": 4},
                                     {"phase": 1, "from": 5, "to": null}]})"));
  CHECK(found["prototypes"][1]["example"] == "e\\x1b");
  CHECK(found["tree"]["rest"] == 1);
  const json& branch = found["tree"]["children"][0];
  CHECK(branch["probability"] == 0.8);
  CHECK(branch["mean_length"] == 2.5);
  CHECK(branch["ends"] == 1);
  CHECK(branch["children"][0]["probability"] == 0.75);
  CHECK(branch["children"][0]["share"] == 0.6);
  CHECK(found["chain"][0]["state"] == "start");
  CHECK(found["chain"][0]["dwell"].is_null());
  CHECK(found["chain"][1]["state"] == "0");
  CHECK(found["chain"][1]["stay_probability"] == 6.0 / 11);
  CHECK(found["chain"][1]["transitions"][0] ==
        json::parse(R"({"to": "1", "count": 3, "jump_probability": 0.6,
                        "step_probability": 0.2727272727272727,
                        "dwell": {"mean": 3, "min": 2, "p10": 2, "p50": 3, "p90": 4, "max": 4}})"));
  PrototypesReport unknown =
      report_of({PhaseSequence{"", {{kUnknownPhase, 1}}}}, *LengthBins::create({1}), 1);
  const json other = json::parse(prototypes_json(unknown));
  CHECK(other["step_seconds"].is_null());
  CHECK(other["prototypes"][0]["sequence"][0]["phase"].is_null());
  CHECK(other["chain"][1]["state"] == "unknown");
}

TEST_CASE("the text has the prototypes, the tree and the chain") {
  CHECK(prototypes_text(five()) ==
        "5 executions, lengths in steps of 2.5 s; 1 without any phase\n"
        "\n"
        "prototypes: 2 of 4 sequences cover 3 executions (60.0 %)\n"
        "executions   share  together  sequence      example\n"
        "         2  40.0 %    40.0 %  A(1-4) B(5+)  a\n"
        "         1  20.0 %    60.0 %  A(1-4)        e\\x1b\n"
        "\n"
        "tree: branches with at least 25.0 % of the executions\n"
        "phase      executions  given path  of all  mean length  end here  rarer\n"
        "start               5                                                 1\n"
        "  A(1-4)            4      80.0 %  80.0 %          2.5         1\n"
        "    B(5+)           3      75.0 %  60.0 %          6.7         2      1\n"
        "\n"
        "chain: how often and how long each phase was\n"
        "phase  runs   stays  mean  min  p10  p50  p90  max\n"
        "A         5  54.5 %   2.2    1    1    2    4    4\n"
        "B         4  81.0 %   5.2    1    1    5    9    9\n"
        "\n"
        "to which phase each is left, and after how long\n"
        "from   to   count    jump  per step  mean  min  p10  p50  p90  max\n"
        "start  A        4  80.0 %    80.0 %\n"
        "start  B        1  20.0 %    20.0 %\n"
        "A      B        3  60.0 %    27.3 %   3.0    2    2    3    4    4\n"
        "A      end      2  40.0 %    18.2 %   1.0    1    1    1    1    1\n"
        "B      end      3  75.0 %    14.3 %   5.0    1    1    5    9    9\n"
        "B      A        1  25.0 %     4.8 %   6.0    6    6    6    6    6\n");
}

TEST_CASE("dot draws the tree, or the chain without its rare jumps") {
  const std::string style =
      "  rankdir=LR;\n"
      "  node [shape=box, style=rounded, fontname=\"sans-serif\", penwidth=2];\n"
      "  edge [fontname=\"sans-serif\", color=\"#777777\"];\n";
  CHECK(prototypes_dot(five(), Drawing::tree) ==
        "digraph tree {\n" + style +
            "  n0 [label=\"executions\\n5, 1 rarer\"];\n"
            "  n1 [label=\"A(1-4)\\n4, 1 end\", color=\"#0072b2\"];\n"
            "  n0 -> n1 [label=\"80.0 %\", penwidth=6.60];\n"
            "  n2 [label=\"B(5+)\\n3, 2 end, 1 rarer\", color=\"#e69f00\"];\n"
            "  n1 -> n2 [label=\"75.0 %\", penwidth=5.20];\n"
            "}\n");
  CHECK(prototypes_dot(five(), Drawing::chain) ==
        "digraph chain {\n" + style +
            "  \"start\" [shape=circle];\n"
            "  \"end\" [shape=doublecircle];\n"
            "  \"start\" -> \"A\" [label=\"80.0 %\", penwidth=6.60];\n"
            "  \"A\" [label=\"A\\nmean 2.2, median 2\", color=\"#0072b2\"];\n"
            "  \"A\" -> \"B\" [label=\"60.0 %\", penwidth=5.20];\n"
            "  \"A\" -> \"end\" [label=\"40.0 %\", penwidth=3.80];\n"
            "  \"B\" [label=\"B\\nmean 5.2, median 5\", color=\"#e69f00\"];\n"
            "  \"B\" -> \"end\" [label=\"75.0 %\", penwidth=6.25];\n"
            "  \"B\" -> \"A\" [label=\"25.0 %\", penwidth=2.75];\n"
            "}\n");
}

TEST_CASE("svg has a box per branch and an edge to each") {
  const std::string tree = prototypes_svg(five(), Drawing::tree);
  check_xml(tree);
  CHECK(count(tree, "<path ") == 2);
  CHECK(count(tree, "fill=\"#f6f6f6\"") == 3);
  CHECK(count(tree, ">B(5+)</text>") == 1);
  CHECK(count(tree, ">3, 2 end, 1 rarer</text>") == 1);
  CHECK(count(tree, ">75.0 %</text>") == 1);
}

TEST_CASE("svg has a cell per jump and a row of dwell times per phase") {
  const std::string chain = prototypes_svg(five(), Drawing::chain);
  check_xml(chain);
  CHECK(count(chain, "fill-opacity=") == 6);
  CHECK(count(chain, "fill-opacity=\"0.600\"") == 1);
  CHECK(count(chain, ">60.0 %</text>") == 1);
  CHECK(count(chain, ">5.2</text>") == 1);
  CHECK(count(chain, ">end</text>") == 1);
}

TEST_CASE("pictures of the maximum of phases are well-formed, self-contained and reproducible") {
  const PrototypesReport report = crowded();
  for (const Drawing drawing : {Drawing::tree, Drawing::chain}) {
    const std::string picture = prototypes_svg(report, drawing);
    check_xml(picture);
    CHECK(count(picture, "href") == 0);
    CHECK(count(picture, "url(") == 0);
    CHECK(count(picture, "http") == 1);  // the XML namespace
    CHECK(picture == prototypes_svg(crowded(), drawing));
    CHECK(prototypes_dot(report, drawing) == prototypes_dot(crowded(), drawing));
  }
}
