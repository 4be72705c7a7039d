#include "core/base/help_text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(HelpText, GathersGroupsAndBreaksLinesAtEightyColumns) {
  const std::string text =
      help_text("program [OPTIONS]", "Does it.",
                {{"First", "--short INT [1]", "Help"},
                 {"Second", "--an-option-of-twenty-six",
                  "Text of more than fifty columns, which goes on in a second line"},
                 {"First", "--an-option-that-fills-its-column", "Below"}},
                "A footer whose words take more than eighty columns in all, so that it is broken.\n"
                "column   two");
  EXPECT_EQ(text,
            "Usage: program [OPTIONS]\n"
            "\n"
            "Does it.\n"
            "\n"
            "First:\n"
            "  --short INT [1]             Help\n"
            "  --an-option-that-fills-its-column\n"
            "                              Below\n"
            "\n"
            "Second:\n"
            "  --an-option-of-twenty-six   Text of more than fifty columns, which goes on in\n"
            "                              a second line\n"
            "\n"
            "A footer whose words take more than eighty columns in all, so that it is broken.\n"
            "column   two\n");
}

}  // namespace
}  // namespace lockstep
