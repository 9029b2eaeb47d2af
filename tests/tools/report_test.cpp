#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <set>

#include "engine/error.h"
#include "engine/math/philox.h"
#include "models/files/sha256.h"
#include "tests/expect_error.h"
#include "tests/training/small_run.h"
#include "tools/report/assets.h"
#include "tools/report/chart.h"
#include "tools/report/look.h"
#include "tools/report/report.h"
#include "tools/report/thumbnails.h"
#include "training/event_file.h"

namespace gle::report::test {
namespace {

using data::test::TempFolder;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<uint8_t>(byte) >> 4U];
    text += kDigits[static_cast<uint8_t>(byte) & 15U];
  }
  return text;
}

TEST(Sha256, KnowsTheStandardsExamples) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Base64, KnowsTheStandardsExamples) {
  const std::array<const char*, 7> plain = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
  const std::array<const char*, 7> coded = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(base64(plain[i]), coded[i]);
  }
}

TEST(Markup, EscapesEveryTextThatIsNoLiteral) {
  Markup html;
  html << "<b title=\"" << std::string("\"><script>alert('&')</script>") << "\">" << 3 << " " << 2.50 << "</b>";
  EXPECT_EQ(html.html(), "<b title=\"&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;\">3 2.5</b>");
  EXPECT_EQ(escaped("\xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80"), "\xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80");
  const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
  EXPECT_EQ(escaped(std::string("a\0b\x1B", 4)), "a" + bad + "b" + bad);
  EXPECT_EQ(escaped("\xC0\xBCscript"), bad + bad + "script");  // an overlong <
  EXPECT_EQ(escaped("\xE2\x80\xAE"), bad);                     // right to left from here on
  EXPECT_EQ(escaped("\xED\xA0\x80x\xF0\x9F"), bad + bad + bad + "x" + bad + bad);
}

TEST(Markup, DataForTheScriptCannotEndItsElement) {
  EXPECT_EQ(json_text("</script>\"\\\n"), "\"\\u003c/script\\u003e\\u0022\\u005c\\u000a\"");
  EXPECT_EQ(json_text("\xF0\x9F\x98\x80\xE2\x80\xA8"), "\"\\ud83d\\ude00\\u2028\"");
}

TEST(Markup, NumbersAreReadable) {
  EXPECT_EQ(number_text(20000), "20000");
  EXPECT_EQ(number_text(0.0005), "0.0005");
  EXPECT_EQ(number_text(1e-6), "1e-06");
  EXPECT_EQ(number_text(0.123456), "0.1235");
  EXPECT_EQ(percent_text(0.6591), "65.9");
  EXPECT_EQ(duration_text(83.6), "1 min 24 s");
  EXPECT_EQ(duration_text(7260), "2 h 1 min");
}

// Every tag of a page with its attributes; what is between tags, and inside of <style> and <script>, is passed over.
struct Tag {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
};

std::vector<Tag> tags_of(const std::string& html) {
  std::vector<Tag> tags;
  size_t at = 0;
  while ((at = html.find('<', at)) != html.npos) {
    Tag tag;
    ++at;
    while (at < html.size() && !std::isspace(html[at]) && html[at] != '>') {
      tag.name += html[at++];
    }
    while (html[at] != '>') {
      while (std::isspace(html[at]) || (html[at] == '/' && html[at + 1] == '>')) {
        ++at;
      }
      if (html[at] == '>') {
        break;
      }
      std::string name;
      std::string value;
      while (!std::isspace(html[at]) && html[at] != '=' && html[at] != '>') {
        name += html[at++];
      }
      if (html[at] == '=') {
        const bool quoted = html[++at] == '"';
        at += quoted ? 1 : 0;
        while (quoted ? html[at] != '"' : !std::isspace(html[at]) && html[at] != '>') {
          value += html[at++];
        }
        at += quoted ? 1 : 0;
      }
      tag.attributes.emplace_back(name, value);
    }
    const std::string name = tag.name;
    tags.push_back(std::move(tag));
    if (name == "script" || name == "style") {
      at = html.find("</" + name, at);
    }
  }
  return tags;
}

// Whatever the names were: known elements, known attributes, nothing that runs or fetches.
void expect_harmless(const std::string& html) {
  static const std::set<std::string> kElements = {
      "!DOCTYPE",   "a",      "b",       "bdi",   "body",  "button",  "canvas",   "circle", "details", "div",
      "figcaption", "figure", "h1",      "h2",    "h3",    "head",    "header",   "html",   "img",     "input",
      "label",      "li",     "line",    "main",  "meta",  "nav",     "noscript", "output", "p",       "polyline",
      "rect",       "script", "section", "span",  "style", "summary", "svg",      "table",  "tbody",   "td",
      "text",       "th",     "thead",   "title", "tr",    "ul"};
  static const std::set<std::string> kAttributes = {
      "alt",          "aria-hidden", "aria-label", "charset",      "class",
      "content",      "cx",          "cy",         "data-columns", "data-name",
      "data-percent", "data-plot",   "data-range", "data-side",    "height",
      "hidden",       "href",        "html",       "http-equiv",   "id",
      "lang",         "loading",     "max",        "min",          "name",
      "points",       "r",           "role",       "rx",           "src",
      "text-anchor",  "title",       "type",       "value",        "viewBox",
      "width",        "x",           "x1",         "x2",           "y",
      "y1",           "y2"};
  int scripts = 0;
  for (const Tag& tag : tags_of(html)) {
    const std::string element = tag.name.starts_with('/') ? tag.name.substr(1) : tag.name;
    EXPECT_TRUE(kElements.contains(element)) << "<" << element << ">";
    std::string type;
    for (const auto& [name, value] : tag.attributes) {
      EXPECT_TRUE(kAttributes.contains(name)) << element << " " << name;
      if (name == "src") {
        EXPECT_TRUE(value.starts_with("data:image/jpeg;base64,")) << value.substr(0, 80);
      } else if (name == "href") {
        EXPECT_TRUE(value.starts_with('#')) << value;
      } else if (name == "type") {
        type = value;
      }
    }
    scripts += tag.name == "script" && type != "application/json" ? 1 : 0;
  }
  EXPECT_EQ(scripts, 1);
}

// A hundred names that a page without care would run or be broken by.
std::vector<std::string> hostile_names() {
  const std::array<std::string, 20> cores = {"<script>hacked()</script>",
                                             "<img src=x onerror=hacked()>",
                                             "\"><svg onload=hacked()>",
                                             "' onmouseover='hacked()",
                                             "\" autofocus onfocus=\"hacked()",
                                             "</style><script>hacked()</script>",
                                             "</script><script>hacked()</script>",
                                             "</title><script>hacked()</script>",
                                             "javascript:hacked()",
                                             "<a href=javascript:hacked()>x</a>",
                                             "<!-- <script>",
                                             "-->",
                                             "]]>",
                                             "<iframe srcdoc='<script>hacked()</script>'>",
                                             "&lt;script&gt;hacked()&lt;/script&gt;",
                                             "\\u003cscript\\u003ehacked()",
                                             "${hacked()}`",
                                             "<base href=//evil.example>",
                                             "<meta http-equiv=refresh content=0>",
                                             "\xE2\x80\xA8\xE2\x80\xAE<b>\xE6\xBC\xA2\xE5\xAD\x97</b>"};
  const std::array<std::string, 5> ends = {"", "\n", "\xFF\xFE", " = 1; //", "\xF0\x9F\x98\x80"};
  std::vector<std::string> names;
  for (const std::string& core : cores) {
    for (const std::string& end : ends) {
      names.push_back(core + end);
    }
  }
  return names;
}

Picture dot() { return {jpeg_of({200, 10, 10}, 1, 1, 80), 1, 1}; }

// A report in which every text is one of the hostile names.
Report hostile_report() {
  const std::vector<std::string> names = hostile_names();
  size_t next = 0;
  const auto name = [&] { return names[next++ % names.size()]; };
  Report report;
  for (int i = 0; i < 3; ++i) {
    Run run{.name = name(), .path = name(), .has_config = true};
    run.command = name();
    run.config.data.path = name();
    run.config.group_loss.steps = i + 1;
    run.config.group_loss.anchors = i + 1;
    run.config.phase2.samples = 3 + i;
    run.environment = {{name(), name()}};
    run.training["loss"] = {{1, 2.0}, {2, 1.0 + i}};
    run.evaluation["R@1"] = {{1, 0.25}, {2, 0.5 + 0.1 * i}};
    run.evaluation[name()] = {{1, 0.5}};
    run.epochs = {{1, 0}, {2, 1}};
    run.strategies = {{name(), {{name(), 0.5}, {"R@1", 0.25}}}};
    run.remarks = {name()};
    report.runs.push_back(run);
  }
  const auto shown = [&](bool match) { return Shown{name(), name(), dot(), 0.5, match}; };
  report.retrieval.emplace();
  report.map.emplace();
  for (size_t i = 0; i < names.size(); ++i) {
    report.retrieval->hits.push_back({shown(true), {shown(true), shown(false)}});
    report.map->names.push_back(names[i]);
    report.map->class_names.push_back(names[i]);
    report.map->classes.push_back(static_cast<int32_t>(i));
    report.map->positions.insert(report.map->positions.end(), {static_cast<float>(i), 1.0F});
  }
  report.map->sheet = {dot(), 1, 1};
  report.refinement = Refinement{.samples = 2,
                                 .classes = 2,
                                 .class_names = {name(), name()},
                                 .truth = {0, 1},
                                 .anchors = {1, 0},
                                 .similarities = {0, 1, 1, 0},
                                 .iterates = {{1, 0, 0, 0.25F, 0.5F, 0.25F}, {1, 0, 0, 1, 0, 0}},
                                 .functional = {0.25, 1},
                                 .labels = {{0, 1}, {0, 0}},
                                 .label_names = {name(), name()},
                                 .steps = 1,
                                 .sheet = {dot(), 1, 1}};
  return report;
}

TEST(Report, TermsOfTheLossAreDrawnAfterItCrossEntropyLast) {
  Report report;
  report.runs.resize(2);
  for (const char* key : {"loss", "triplet_hard", "cross_entropy", "gradient_norm"}) {
    report.runs[0].training[key] = {{1, 2}, {2, 1}};
  }
  report.runs[1].training = {{"loss", {{1, 2}, {2, 1}}}, {"a_loss_of_tomorrow", {{1, 2}, {2, 1}}}};
  const std::string html = html_of(report);
  size_t at = 0;
  for (const char* title :
       {"Loss", "Term: a_loss_of_tomorrow", "Term: triplet_hard", "Term: cross_entropy", "Gradient norm"}) {
    at = html.find(std::string("<figcaption>") + title + "</figcaption>", at);
    ASSERT_NE(at, html.npos) << title;
  }
  EXPECT_EQ(html.find("Learning rate"), html.npos);
  EXPECT_EQ(html.find("Term: loss"), html.npos);
}

TEST(Report, HostileNamesStayText) {
  const Report report = hostile_report();
  const std::string html = html_of(report);
  for (const std::string& name : hostile_names()) {
    if (name.find_first_of("<>\"'") != name.npos) {
      EXPECT_EQ(html.find(name), html.npos) << name;
    }
  }
  EXPECT_NE(html.find("&amp;lt;script&amp;gt;hacked()"), html.npos);
  EXPECT_EQ(html.find("<script>hacked"), html.npos);
  EXPECT_EQ(html.find('\0'), html.npos);
  expect_harmless(html);
  EXPECT_EQ(html, html_of(report));
  if (const char* folder = std::getenv("GLE_REPORT_OUT")) {
    std::ofstream(std::string(folder) + "/hostile.html") << html;
  }
}

TEST(Report, AllowsItsOwnStyleAndScriptAndNothingElse) {
  Report report;
  report.runs.push_back({.name = "a", .path = "a"});
  const std::string html = html_of(report);
  const auto between = [&](const std::string& begin, const std::string& end) {
    const size_t from = html.find(begin) + begin.size();
    return html.substr(from, html.find(end, from) - from);
  };
  const std::string policy = between("Content-Security-Policy content=\"", "\"");
  const auto allows = [&](const std::string& text) { return policy.find(text) != policy.npos; };
  EXPECT_TRUE(allows("default-src &#39;none&#39;"));
  EXPECT_TRUE(allows("style-src &#39;sha256-" + base64(sha256(between("<style>", "</style>"))) + "&#39;;"));
  EXPECT_TRUE(allows("script-src &#39;sha256-" + base64(sha256(between("<script>", "</script>"))) + "&#39;;"));
  EXPECT_FALSE(allows("unsafe"));
  EXPECT_EQ(html.find(" style="), html.npos);
  EXPECT_EQ(html.find("http://"), html.find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(html.find("https://"), html.npos);
  expect_harmless(html);
}

TEST(Report, DrawsRecallOfTrainingImagesDashed) {
  Report report;
  report.runs.push_back({.name = "a", .path = "a"});
  report.runs[0].evaluation["R@1"] = {{1, 0.2}, {2, 0.5}};
  EXPECT_EQ(html_of(report).find("dashed\" data-name"), std::string::npos);
  report.runs[0].evaluation["train R@1"] = {{1, 0.4}, {2, 0.9}};
  EXPECT_NE(html_of(report).find("dashed\" data-name=\"a, training images\""), std::string::npos);
}

TEST(Report, SaysWhatWouldMakeAMissingPartAppear) {
  Report report;
  report.runs.push_back({.name = "a", .path = "a"});
  report.why_no_pictures = report.why_no_refinement = "the run has no checkpoint.";
  const std::string html = html_of(report);
  for (const char* text : {"No metrics: they appear when", "No curves: they are drawn from metrics.jsonl",
                           "No ablation: it is drawn from eval.json", "No pictures: the run has no checkpoint.",
                           "No map: the run has no checkpoint.", "No refinement: the run has no checkpoint.",
                           "No sweep: it appears when several runs", "No configuration", "No timing"}) {
    EXPECT_NE(html.find(text), html.npos) << text;
  }
}

TEST(Chart, LeavesOutWhatIsNotFiniteAndThinsWhatIsLong) {
  EXPECT_TRUE(line_chart({.title = "t", .x_label = "x"}, {{.name = "n", .points = {{1, NAN}, {INFINITY, 2}}}}).empty());
  Curve curve;
  for (int i = 0; i < 100'000; ++i) {
    curve.push_back({static_cast<double>(i), i == 7 ? NAN : 1.0});
  }
  const std::string html = line_chart({.title = "t", .x_label = "x"}, {{.name = "n", .points = curve}}).html();
  EXPECT_LT(html.size(), 10'000U);
  EXPECT_EQ(html.find("nan"), html.npos);
  EXPECT_EQ(html.find("inf"), html.npos);
}

TEST(Chart, DrawsByPowersOfTen) {
  const std::string html = line_chart({.title = "t", .x_label = "x", .log_x = true},
                                      {{.name = "n", .points = {{1e-4, 1}, {1e-2, 2}, {1, 3}}, .marks = true}})
                               .html();
  EXPECT_NE(html.find(" data-log"), html.npos) << html;
  EXPECT_NE(html.find("data-range=\"-4 0 "), html.npos) << html;
  EXPECT_NE(html.find(">1e-03</text>"), html.npos) << html;
}

TEST(Sweep, TheTrialsOfASearchStandInstead) {
  Report report;
  report.runs.push_back({.name = "run", .path = ""});
  report.sweep = Sweep{.metric = "mAP", .rows = {{"none", {}, 0.25}}};
  for (int i = 0; i < 3; ++i) {
    report.sweep->rows.push_back({"trial " + std::to_string(i),
                                  {{"slope", ConfigValue(0.25 * i)}, {"flip", ConfigValue(i == 1)}},
                                  0.5 + 0.125 * i});
  }
  const std::string html = html_of(report);
  EXPECT_NE(html.find("mAP against slope, %"), html.npos);
  EXPECT_EQ(html.find("against flip"), html.npos);
  EXPECT_LT(html.find("<bdi>trial 2</bdi>"), html.find("<bdi>trial 0</bdi>"));
  EXPECT_NE(html.find("<bdi>none</bdi></th><td></td><td></td><td class=number>25"), html.npos);
}

TEST(Run, ReadsWhatMakesSenseAndSaysWhatDoesNot) {
  report::Run run;
  read_metrics(
      run,
      "{\"step\":1,\"kind\":\"training\",\"phase\":1,\"epoch\":0,\"loss\":2.5,\"text\":\"x\",\"nothing\":null}\n"
      "{\"step\":2,\"kind\":\"evaluation\",\"epoch\":1,\"R@1\":0.5}\n"
      "no json\n[1]\n{\"step\":\"2\"}\n"
      "{\"step\":3,\"kind\":\"training\",\"phase\":2,\"epoch\":1,\"loss\":1.5}\n"
      "{\"step\":4,\"kind\":\"evaluation\",\"R@1\":0.25}\n{\"step\":5,\"kin");
  ASSERT_EQ(run.training.at("loss").size(), 2U);
  EXPECT_EQ(run.training.at("loss")[1].x, 3);
  EXPECT_EQ(run.training.at("loss")[1].y, 1.5);
  EXPECT_EQ(run.training.size(), 1U);
  EXPECT_EQ(run.best("R@1")->y, 0.5);
  EXPECT_EQ(run.best("R@1")->x, 2);
  EXPECT_FALSE(run.best("mAP"));
  EXPECT_EQ(run.phase_starts, std::vector<double>{3});
  ASSERT_EQ(run.remarks.size(), 1U);
  EXPECT_NE(run.remarks[0].find("4 lines"), std::string::npos);

  read_strategies(run, "{\"rows\":[{\"strategies\":\"L\",\"R@1\":0.6,\"intervals\":{}},7,{\"R@1\":1}]}");
  ASSERT_EQ(run.strategies.size(), 1U);
  EXPECT_EQ(run.strategies[0].name, "L");
  EXPECT_EQ(*run.strategies[0].find("R@1"), 0.6);
  EXPECT_EQ(run.strategies[0].find("mAP"), nullptr);
  for (const char* text : {"", "[", "7", "{\"rows\":{}}", "{\"rows\":[[]]}"}) {
    read_strategies(run, text);
    EXPECT_EQ(run.strategies.size(), 1U) << text;
  }
  read_environment(run, "{\"cpu\":\"x\",\"seed\":3}");
  EXPECT_EQ(run.environment[1].second, "3");
  read_environment(run, "nothing");
  EXPECT_EQ(run.environment.size(), 2U);
}

TEST(Run, TakesTheTimeFromEventFilesEvenIfTorn) {
  const TempFolder folder;
  {
    EventFile events(folder.path(), 0);
    events.add(300, {{"loss", 1.0}});
  }
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    bytes = gle::test::text_of(entry.path());
  }
  report::Run run;
  add_timing(run, bytes);
  ASSERT_TRUE(run.timing);
  EXPECT_EQ(run.timing->steps, 300);
  EXPECT_GT(run.timing->seconds, 0);
  for (size_t length = 0; length < bytes.size(); ++length) {
    report::Run torn;
    add_timing(torn, std::string_view(bytes).substr(0, length));
    EXPECT_TRUE(!torn.timing || torn.timing->steps < 300);
  }
  report::Run nonsense;
  add_timing(nonsense, std::string(1000, '\xFF'));
  EXPECT_FALSE(nonsense.timing);
}

TEST(Run, SurvivesWhateverTheFilesHold) {
  const std::array<std::string, 4> good = {
      "{\"step\":1,\"kind\":\"training\",\"phase\":2,\"epoch\":0,\"loss\":2.5}\n{\"step\":2,\"kind\":\"evaluation\"}\n",
      "{\"rows\":[{\"strategies\":\"L\",\"R@1\":0.6},{\"strategies\":[1,{}]}]}", "{\"a\":{\"b\":[1,2]},\"c\":null}",
      std::string("\x12\0\0\0\0\0\0\0crc_\x09\1\2\3\4\5\6\7\x40\x10\xAC\x02......crc_", 34)};
  for (uint64_t round = 0; round < 4000; ++round) {
    std::string text = good[round % good.size()];
    for (uint64_t change = 0; change <= round % 3; ++change) {
      const PhiloxBlock random = random_words({.seed = round, .stream = 1}, change);
      text[random.word[0] % text.size()] = static_cast<char>(random.word[1]);
      text.resize(random.word[2] % 4 == 0 ? 1 + random.word[3] % text.size() : text.size());
    }
    report::Run run{.name = "r", .path = "r"};
    read_metrics(run, text);
    read_strategies(run, text);
    read_environment(run, text);
    add_timing(run, text);
    Report report;
    report.runs.push_back(run);
    EXPECT_FALSE(html_of(report).empty());
  }
  report::Run deep{.name = "r", .path = "r"};
  const std::string nested(1'000'000, '[');
  read_environment(deep, "{\"a\":" + nested);
  read_environment(deep, "{\"a\":" + nested + std::string(nested.size(), ']') + "}");
  read_strategies(deep, "{\"rows\":[{\"strategies\":" + nested + std::string(nested.size(), ']') + "}]}");
  EXPECT_LE(deep.environment.size(), 1U);
}

TEST(Run, IsAFolderOfARun) {
  const TempFolder folder;
  EXPECT_ERROR(read_run(folder.path("nosuch")), ErrorCode::usage, {"nosuch", "no such folder"});
  EXPECT_ERROR(read_run(folder.path()), ErrorCode::usage, {"no metrics.jsonl"});
  folder.write("r/config.toml", "[data]\nnosuchkey = 1\n");
  const report::Run run = read_run(folder.path("r"));
  EXPECT_FALSE(run.has_config);
  EXPECT_EQ(run.remarks.size(), 1U);
}

// From training to the page, with classes and files of hostile names.
TEST(Report, OfATrainedRunHasEveryPart) {
  const TempFolder folder;
  const std::array<std::string, 3> names = {"<script>hacked()<", "\" onload='hacked()' \"", "&lt;b\xE6\xBC\xA2"};
  for (int c = 0; c < 12; ++c) {
    for (int i = 0; i < 4; ++i) {
      const std::string label = names[static_cast<size_t>(c) % names.size()] + std::to_string(c);
      folder.write("data/" + std::string(c < 8 ? "train/" : "test/") + label + "/" +
                       names[static_cast<size_t>(i) % names.size()] + std::to_string(i) + ".bmp",
                   data::test::bmp_picture(40, 36, static_cast<uint32_t>(c * 1000 + i)));
    }
  }
  TrainingConfig config = gle::test::small_config(folder);
  config.phase1.steps = 3;
  config.phase2.steps = 3;
  config.phase2.decay = "constant";
  config.phase2.drops = {};
  config.phase2.reload_best_at_drop = false;
  gle::test::run_small(config, folder.path("<run>"));
  folder.write("<run>/config.toml", toml_of(config, Comments::none));
  folder.write("<run>/eval.json",
               "{\"rows\":[{\"strategies\":\"none\",\"R@1\":0.5},{\"strategies\":\"L\",\"R@1\":0.6}]}");

  Report report;
  report.runs.push_back(read_run(folder.path("<run>")));
  EXPECT_TRUE(report.runs[0].remarks.empty());
  const auto backend = make_cpu_backend({.threads = 1});
  ThreadPool pool(1);
  const LookOptions options{.queries = 4, .neighbours = 3};
  look_at_run(*backend, pool, report.runs[0], "", options, report);
  EXPECT_EQ(report.why_no_pictures + report.why_no_refinement, "");
  ASSERT_TRUE(report.retrieval && report.map && report.refinement);
  EXPECT_EQ(report.retrieval->queries, 16);
  EXPECT_EQ(report.retrieval->hits.size() + report.retrieval->failures.size(), 4U);
  for (const Retrieval::Row& row : report.retrieval->hits) {
    EXPECT_EQ(row.nearest.size(), 3U);
    EXPECT_TRUE(row.nearest.front().match);
  }
  for (const Retrieval::Row& row : report.retrieval->failures) {
    EXPECT_FALSE(row.nearest.front().match);
  }
  EXPECT_NEAR(report.retrieval->recall, report.runs[0].best("R@1")->y, 1e-9);
  EXPECT_EQ(report.map->names.size(), 16U);
  EXPECT_EQ(report.map->class_names.size(), 4U);
  const Refinement& refinement = *report.refinement;
  EXPECT_EQ(refinement.steps, 1);
  ASSERT_EQ(refinement.iterates.size(), 6U);
  for (size_t t = 0; t < refinement.iterates.size(); ++t) {
    for (int64_t i = 0; i < refinement.samples; ++i) {
      double sum = 0;
      for (int64_t c = 0; c <= refinement.classes; ++c) {
        sum += refinement.iterates[t][static_cast<size_t>(i * (refinement.classes + 1) + c)];
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
    EXPECT_TRUE(t == 0 || refinement.functional[t] >= refinement.functional[t - 1] * (1 - 1e-6));
  }
  const std::string html = html_of(report);
  expect_harmless(html);
  for (const char* id :
       {"id=\"map-data\"", "id=\"refine-data\"", "class=\"match\"", "Recall@1, %", "Term: group_loss"}) {
    EXPECT_NE(html.find(id), html.npos) << id;
  }
  EXPECT_EQ(html.find("No pictures"), html.npos);

  Report again;
  again.runs = report.runs;
  look_at_run(*backend, pool, again.runs[0], "", options, again);
  EXPECT_EQ(html_of(again), html);

  Report elsewhere;
  EXPECT_ERROR(look_at_run(*backend, pool, report.runs[0], folder.path("nosuch").string(), options, elsewhere),
               ErrorCode::data, {"nosuch"});
  report::Run moved = report.runs[0];
  moved.config.data.path = folder.path("gone").string();
  look_at_run(*backend, pool, moved, "", options, elsewhere);
  EXPECT_NE(elsewhere.why_no_pictures.find("--data PATH"), std::string::npos);
}

}  // namespace
}  // namespace gle::report::test
