#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/report/chart.h"
#include "tools/report/sections.h"

namespace gle::report {

namespace {

// The middle is left out: many names begin alike.
std::string shortened(const std::string& label) {
  constexpr size_t kMost = 22;
  constexpr size_t kEnd = 12;
  const auto is_inside = [&](size_t at) {
    return at < label.size() && (static_cast<uint8_t>(label[at]) & 0xC0U) == 0x80;
  };
  if (label.size() <= kMost) {
    return label;
  }
  size_t head = kMost - kEnd - 1;
  size_t tail = label.size() - kEnd;
  for (; head > 0 && is_inside(head); --head) {
  }
  for (; is_inside(tail); ++tail) {
  }
  return label.substr(0, head) + "\u2026" + label.substr(tail);
}

void picture(Markup& html, const Shown& shown, const std::string& frame) {
  html << "<figure class=\"" << frame << "\"><img alt=\"" << shown.name << "\" title=\"" << shown.name
       << "\" width=" << shown.picture.width << " height=" << shown.picture.height << " src=\""
       << data_address(shown.picture) << "\"><figcaption title=\"" << shown.label << "\"><bdi>"
       << shortened(shown.label) << "</bdi></figcaption></figure>";
}

void rows(Markup& html, const std::vector<Retrieval::Row>& list) {
  for (const Retrieval::Row& row : list) {
    html << "<div class=row>";
    picture(html, row.query, "query");
    for (const Shown& shown : row.nearest) {
      picture(html, shown, shown.match ? "match" : "other");
    }
    html << "</div>";
  }
}

void sheet(Markup& html, const std::string& id, const Sheet& of) {
  html << "<img hidden id=\"" << id << "\" data-side=" << of.side << " data-columns=" << of.columns
       << " alt=\"\" src=\"" << data_address(of.picture) << "\">";
}

// {"key": [..], ...}
class Lists {
 public:
  template <class Values, class Text>
  void add(const char* key, const Values& values, const Text& text_of) {
    json_.append(json_.size() == 1 ? "\"" : ",\"").append(key).append("\":[");
    bool first = true;
    for (const auto& value : values) {
      json_.append(first ? "" : ",").append(text_of(value));
      first = false;
    }
    json_ += "]";
  }
  void add_texts(const char* key, const std::vector<std::string>& values) {
    add(key, values, [](const std::string& text) { return json_text(text); });
  }
  template <class Integers>
  void add_integers(const char* key, const Integers& values) {
    add(key, values, [](auto value) { return std::to_string(value); });
  }
  std::string done() const { return json_ + "}"; }

 private:
  std::string json_ = "{";
};

// Whole thousandths: all that a shade on a screen can show.
std::vector<int> thousandths(const std::vector<float>& shares) {
  std::vector<int> result;
  for (const float share : shares) {
    result.push_back(std::isfinite(share) ? static_cast<int>(std::lround(std::clamp(share, 0.0F, 1.0F) * 1000)) : 0);
  }
  return result;
}

// The columns' ranges brought to [0, 9999] with one scale for both.
std::vector<int> screen_positions(const std::vector<float>& positions) {
  float low[2] = {INFINITY, INFINITY};
  float high[2] = {-INFINITY, -INFINITY};
  for (size_t i = 0; i < positions.size(); ++i) {
    low[i % 2] = std::min(low[i % 2], positions[i]);
    high[i % 2] = std::max(high[i % 2], positions[i]);
  }
  const float span = std::max({high[0] - low[0], high[1] - low[1], 1e-20F});
  std::vector<int> result;
  for (size_t i = 0; i < positions.size(); ++i) {
    const float middle = (low[i % 2] + high[i % 2]) / 2;
    result.push_back(static_cast<int>(std::lround(((positions[i] - middle) / span + 0.5F) * 9999)));
  }
  return result;
}

}  // namespace

std::string data_address(const Picture& picture) { return "data:image/jpeg;base64," + base64(picture.jpeg); }

Markup retrieval_section(const Report& report) {
  Markup html;
  html << "<section id=retrieval><h2>Retrieval</h2>";
  if (!report.retrieval) {
    html << "<p class=absent>No pictures: " << report.why_no_pictures << "</p></section>";
    return html;
  }
  const Retrieval& found = *report.retrieval;
  html << "<p>Of <b><bdi>" << report.runs.front().name << "</bdi></b>: each row is a query, framed in grey, and its "
       << "nearest images; <b class=match>green</b> is of the same class, <b class=other>red</b> is not. Recall@1 "
       << percent_text(found.recall) << "% of " << found.queries << " queries among " << found.gallery << " images";
  if (found.queries < found.all_queries) {
    html << ", a part of the " << found.all_queries << " (--map N takes more)";
  }
  html << ".</p>";
  if (!found.failures.empty()) {
    html << "<h3>Failures</h3><div class=grid>";
    rows(html, found.failures);
    html << "</div>";
  }
  if (!found.hits.empty()) {
    html << "<h3>Hits</h3><div class=grid>";
    rows(html, found.hits);
    html << "</div>";
  }
  html << "</section>";
  return html;
}

Markup map_section(const Report& report) {
  Markup html;
  html << "<section id=map><h2>Map of the embeddings</h2>";
  if (!report.map) {
    html << "<p class=absent>No map: " << report.why_no_pictures << "</p></section>";
    return html;
  }
  const EmbeddingMap& map = *report.map;
  html
      << "<p>t-SNE of " << map.names.size() << " test images of " << map.class_names.size()
      << " classes. Point at one to see it and its class; turn the wheel to come closer, drag "
      << "to move.</p><div class=map><canvas id=map-canvas width=960 height=720></canvas><div id=map-card "
         "hidden><canvas "
      << "width=" << map.sheet.side << " height=" << map.sheet.side
      << "></canvas><b></b><span></span></div></div><p class=tools><button id=map-reset type=button>whole map</button> "
      << "<label><input id=map-pictures type=checkbox> pictures instead of dots</label></p><noscript><p "
         "class=absent>The "
      << "map is drawn by a script.</p></noscript>";
  sheet(html, "map-sheet", map.sheet);
  Lists lists;
  lists.add_integers("positions", screen_positions(map.positions));
  lists.add_integers("classes", map.classes);
  lists.add_texts("classNames", map.class_names);
  lists.add_texts("names", map.names);
  html.data("map-data", lists.done());
  html << "<p class=note>KL divergence " << number_text(map.divergence) << ".</p></section>";
  return html;
}

Markup refinement_section(const Report& report) {
  Markup html;
  html << "<section id=refinement><h2>The refinement at work</h2>";
  if (!report.refinement) {
    html << "<p class=absent>No refinement: " << report.why_no_refinement << "</p></section>";
    return html;
  }
  const Refinement& refinement = *report.refinement;
  const auto last = refinement.iterates.size() - 1;
  html
      << "<p>A batch of " << refinement.samples << " training images of " << refinement.classes
      << " classes, some of which the classifier confuses. Similar images (W) lend each other their labels (X) at "
         "every step: X "
      << "becomes X * (W X), rows brought to sum 1; anchors keep their label. The run used T = " << refinement.steps
      << ".</p><p class=tools><label>step <input id=refine-step type=range min=0 max=" << last << " value=0></label> "
      << "<output id=refine-output></output> <button id=refine-play type=button>play</button></p><div class=beside>"
      << "<figure><figcaption>X: what each image is taken for</figcaption><div class=scroll><canvas "
         "id=refine-x></canvas></div></figure>"
      << "<figure><figcaption>W: how similar they are</figcaption><div class=scroll><canvas id=refine-w></canvas></div>"
      << "<p class=note id=refine-pair>Point at a square to see its two images.</p></figure></div><noscript><p "
      << "class=absent>The matrices are drawn by a script.</p></noscript>";
  sheet(html, "refine-sheet", refinement.sheet);
  Lists lists;
  lists.add_texts("classNames", refinement.class_names);
  lists.add_texts("labelNames", refinement.label_names);
  lists.add_integers("truth", refinement.truth);
  lists.add_integers("anchors", refinement.anchors);
  lists.add_integers("w", thousandths(refinement.similarities));
  lists.add("x", refinement.iterates, [](const std::vector<float>& x) {
    Lists one;
    one.add_integers("rows", thousandths(x));
    return one.done();
  });
  lists.add("labels", refinement.labels, [](const std::vector<int32_t>& labels) {
    Lists one;
    one.add_integers("rows", labels);
    return one.done();
  });
  lists.add("functional", refinement.functional, [](double value) { return number_text(value); });
  html.data("refine-data", lists.done());
  Curve right;
  Curve functional;
  for (size_t t = 0; t < refinement.iterates.size(); ++t) {
    const auto at = static_cast<double>(t);
    int64_t count = 0;
    for (size_t i = 0; i < refinement.truth.size(); ++i) {
      count += refinement.labels[t][i] == refinement.truth[i] ? 1 : 0;
    }
    right.push_back({at, static_cast<double>(count) / static_cast<double>(refinement.samples)});
    functional.push_back({at, refinement.functional[t]});
  }
  html << "<div class=charts>"
       << line_chart({.title = "Right labels, %", .x_label = "step of the refinement", .percent = true},
                     {{.name = "right", .points = right, .marks = true}})
       << line_chart({.title = "F(X), which never falls", .x_label = "step of the refinement"},
                     {{.name = "F", .points = functional, .colour = 1, .marks = true}})
       << "</div></section>";
  return html;
}

}  // namespace gle::report
