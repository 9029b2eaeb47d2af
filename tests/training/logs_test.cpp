#include <cmath>
#include <cstring>

#include "models/files/crc32c.h"
#include "tests/training/small_run.h"

namespace gle::test {

namespace {

using data::test::TempFolder;

TEST(MetricsLog, DropsWhatWasWrittenBeyondAStep) {
  const TempFolder folder;
  const auto path = folder.path("metrics.jsonl");
  const auto log = [&](int64_t from, bool evaluated, int64_t to) {
    MetricsLog file(path, from, evaluated);
    for (int64_t step = from + 1; step <= to; ++step) {
      file.add(step, LogKind::training, {{"loss", 1.0 / static_cast<double>(step)}});
      if (step % 2 == 0) {
        file.add(step, LogKind::evaluation, {{"R@1", 0.5}});
      }
    }
    file.sync();
  };
  log(0, true, 6);
  const std::string whole = text_of(path);
  EXPECT_NE(whole.find("{\"step\":3,\"kind\":\"training\",\"loss\":0.3333333333333333}\n"), std::string::npos);
  std::ofstream(path, std::ios::app) << "{\"step\":6,\"kind\":\"tra";  // torn
  log(6, true, 6);
  EXPECT_EQ(text_of(path), whole);
  log(3, true, 6);
  EXPECT_EQ(text_of(path), whole);
  {
    MetricsLog file(path, 6, false);  // the evaluation at 6 is to be done again
    file.add(6, LogKind::evaluation, {{"R@1", 0.5}});
  }
  EXPECT_EQ(text_of(path), whole);
  EXPECT_EQ(logged_evaluations(path, "R@1"), (std::vector<LoggedValue>{{2, 0.5}, {4, 0.5}, {6, 0.5}}));
  std::ofstream(path, std::ios::app) << "{\"step\":8,\"kind\":\"evaluation\",\"train R@1\":0.75,\"R@1\":0.25}\n"
                                     << "{\"step\":9,\"kind\":\"evaluation\",\"R@1\":null}\n"
                                     << "{\"step\":9,\"kind\":\"evaluation\",\"R@1\":0.125";
  EXPECT_EQ(logged_evaluations(path, "R@1").back(), (LoggedValue{8, 0.25}));
  EXPECT_TRUE(logged_evaluations(folder.path("nosuch"), "R@1").empty());
  EXPECT_EQ(json_number(NAN), "null");
  EXPECT_EQ(json_text("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
}

TEST(EventFile, RecordsAreFramedAsTensorBoardWantsThem) {
  const TempFolder folder;
  {
    EventFile file(folder.path(), 5);
    file.add(7, {{"loss", 0.25}});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_TRUE(entry.path().filename().string().starts_with("events.out.tfevents."));
    bytes = text_of(entry.path());
  }
  const auto masked = [](std::string_view text) {
    const uint32_t crc = crc32c(std::as_bytes(std::span(text.data(), text.size())));
    return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
  };
  const auto number = [](std::string_view text) {
    uint32_t value = 0;
    std::memcpy(&value, text.data(), sizeof value);
    return value;
  };
  std::vector<std::string> events;
  std::string_view left = bytes;
  while (left.size() > 12) {
    const size_t length = number(left);
    ASSERT_LE(length + 16, left.size());
    EXPECT_EQ(number(left.substr(8)), masked(left.substr(0, 8)));
    events.emplace_back(left.substr(12, length));
    EXPECT_EQ(number(left.substr(12 + length)), masked(events.back()));
    left.remove_prefix(length + 16);
  }
  EXPECT_TRUE(left.empty());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_NE(events[0].find("brain.Event:2"), std::string::npos);
  // After the nine bytes of the time: step = 7, summary { value { tag "loss", simple_value 0.25 } }.
  const std::string summary("\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x80\x3e", 17);
  EXPECT_EQ(events[2].substr(9), summary);
}

}  // namespace

}  // namespace gle::test
