// Tables of results that no job gives yet: what a new job gets without a line of its own.
#include "app/table.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace rowmill {
namespace {

RunReport report_of(std::int64_t columns) {
  RunReport report;
  report.input.columns = columns;
  return report;
}

TEST(Table, OfAResultThatNamesNoDataSets_ShowsThemAll) {
  RunReport report = report_of(2);
  report.source.column_names = {"height", "weight"};
  report.result.add("coef", {2}, {0.5, -1});
  report.result.add("error", {2}, {0.125, 2});
  report.result.add("intercept", {1}, {3});
  report.result.add("centers", {3, 2}, {1, 2, 3, 4, 5, 6});
  report.result.add("loss", {3}, {9, 8, 7});
  EXPECT_EQ(result_tables(report, {}, {}),
            "column  coef  error\n"
            "height   0.5  0.125\n"
            "weight    -1      2\n"
            "\n"
            "intercept\n"
            "           3\n"
            "\n"
            "centers  height  weight\n"
            "0             1       2\n"
            "1             3       4\n"
            "2             5       6\n"
            "\n"
            "loss\n"
            "0     9\n"
            "1     8\n"
            "2     7\n");
}

TEST(Table, OfAJobsChoice_KeepsItsOrderAndWholeNumbers) {
  RunReport report = report_of(2);
  report.result.add("mean", {2}, {1, 2});
  report.result.add("count", {2}, {12345678901, 1});
  report.chosen_columns = {7, 3};
  const Planted planted{{1.5, 2.5}, {}};
  EXPECT_EQ(result_tables(report, planted, {{"count", true}, {"mean"}, {"nosuch"}}),
            "column        count  mean  (planted)\n"
            "7       12345678901     1        1.5\n"
            "3                 1     2        2.5\n");
}

TEST(Table, OfManyColumns_SaysHowManyAreLeftOut) {
  RunReport report = report_of(13);
  report.result.add("mean", {13}, std::vector<double>(13, 1));
  report.result.add("product", {13, 13}, std::vector<double>(169, 1));
  const std::string text = result_tables(report, {}, {});
  EXPECT_NE(text.find("… and 1 more column\n"), std::string::npos) << text;
  EXPECT_NE(text.find("… and 5 more columns\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("more row"), std::string::npos) << text;
}

TEST(Table, OfLongNamesAndOfOnesThatSteerTerminals_StaysInShape) {
  const std::string text = format_table({{"α", "1"}, {std::string(60000, 'n'), "2"}, {"a\x1b[2J\nb", "3"}});
  EXPECT_EQ(text, "α" + std::string(79, ' ') + "  1\n" + std::string(79, 'n') + "…  2\n" + "a\\x1b[2J\\nb" +
                      std::string(69, ' ') + "  3\n");
}

TEST(Table, Numbers_HaveSevenDigitsAndOneNan) {
  EXPECT_EQ(format_number(1234567.89), "1234568");
  EXPECT_EQ(format_number(-std::nan("")), "nan");
  EXPECT_EQ(format_number(0.1), "0.1");
}

}  // namespace
}  // namespace rowmill
