#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace gle::report {

// HTML under way. Literals of the program go in as they are; every other text is escaped, so that no name of a file or
// a class can become part of the markup, in text or in an attribute with quotes around it.
class Markup {
 public:
  template <size_t N>
  Markup& operator<<(const char (&literal)[N]) {
    html_.append(literal, N - 1);
    return *this;
  }
  template <size_t N>
  Markup& operator<<(char (&buffer)[N]) = delete;

  Markup& operator<<(const std::string& text);
  Markup& operator<<(std::string_view text) { return *this << std::string(text); }
  Markup& operator<<(const Markup& other) {
    html_ += other.html_;
    return *this;
  }
  template <std::integral Integer>
  Markup& operator<<(Integer value) {
    html_ += std::to_string(value);
    return *this;
  }
  Markup& operator<<(char) = delete;
  Markup& operator<<(bool) = delete;
  // With at most two digits behind the point: coordinates.
  Markup& operator<<(double value);

  // Data for the page's script. The numbers are ours and the texts went through json_text(): no < can end the element.
  Markup& data(std::string_view id, const std::string& json);

  const std::string& html() const { return html_; }
  bool empty() const { return html_.empty(); }

 private:
  std::string html_;
};

// For the text of a page: & < > " ' as entities, and what is no UTF-8, or steers terminals and the direction of
// writing, as U+FFFD.
std::string escaped(std::string_view text);
// The same text as a JSON string for a <script> of data: < > & and all beyond ASCII as \u escapes.
std::string json_text(std::string_view text);

// Of bytes as they are, for data: addresses and content security policies.
std::string base64(std::string_view bytes);

// As people read it: four significant digits, no exponent within reason.
std::string number_text(double value);
// 0.6591 -> "65.9"
std::string percent_text(double share);
// 83.5 -> "1 min 24 s"
std::string duration_text(double seconds);

}  // namespace gle::report
