// The main function of every test runner; --help lists doctest's options.
#define DOCTEST_CONFIG_IMPLEMENT  // the other name alone has no effect after a precompiled header
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
