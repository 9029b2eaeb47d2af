#include "tools/report/markup.h"

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "engine/error.h"

namespace gle::report {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// The next character of UTF-8, shortest forms alone; U+FFFD and one byte for anything else.
char32_t next_character(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : (first & 0xF0U) == 0xE0 ? 3 : 4;
  char32_t character = length == 1 ? first : first & (0xFFU >> (length + 1));
  bool good = first < 0x80 || (first >= 0xC2 && first < 0xF5 && text.size() >= length);
  for (size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xC0U) == 0x80;
    character = character << 6U | (byte(i) & 0x3FU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  good = good && character >= kLeast[length] && character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF);
  text.remove_prefix(good ? length : 1);
  return good ? character : kReplacement;
}

bool is_unwelcome(char32_t c) {
  const bool control = (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0);
  const bool direction = (c >= 0x200E && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  const bool noncharacter = (c & 0xFFFEU) == 0xFFFE || (c >= 0xFDD0 && c <= 0xFDEF);
  return control || direction || noncharacter;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<uint8_t>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | c >> 6U);
    put(0x80U | (c & 0x3FU));
  } else if (c < 0x10000) {
    put(0xE0U | c >> 12U);
    put(0x80U | (c >> 6U & 0x3FU));
    put(0x80U | (c & 0x3FU));
  } else {
    put(0xF0U | c >> 18U);
    put(0x80U | (c >> 12U & 0x3FU));
    put(0x80U | (c >> 6U & 0x3FU));
    put(0x80U | (c & 0x3FU));
  }
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t c = next_character(text);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        append_utf8(out, is_unwelcome(c) ? kReplacement : c);
    }
  }
  return out;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    char32_t c = next_character(text);
    c = is_unwelcome(c) ? kReplacement : c;
    const bool plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && c != '\'';
    if (plain) {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      out += formatted("\\u%04x", static_cast<unsigned>(c));
    } else {
      out += formatted("\\u%04x\\u%04x", static_cast<unsigned>(0xD800 + ((c - 0x10000) >> 10U)),
                       static_cast<unsigned>(0xDC00 + ((c - 0x10000) & 0x3FFU)));
    }
  }
  return out + '"';
}

Markup& Markup::operator<<(const std::string& text) {
  html_ += escaped(text);
  return *this;
}

Markup& Markup::operator<<(double value) {
  std::string text = formatted("%.2f", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  html_ += text == "-0" ? "0" : text;
  return *this;
}

Markup& Markup::data(std::string_view id, const std::string& json) {
  invariant(json.find('<') == json.npos, "a < in data for the page");
  *this << "<script type=\"application/json\" id=\"" << id << "\">";
  html_ += json;
  return *this << "</script>";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t b = 0; b < 3; ++b) {
      word = word << 8U | (i + b < bytes.size() ? static_cast<uint8_t>(bytes[i + b]) : 0U);
    }
    for (size_t digit = 0; digit < 4; ++digit) {
      out += i + digit <= bytes.size() ? kDigits[word >> (18 - 6 * digit) & 63U] : '=';
    }
  }
  return out;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) {
    return "not finite";
  }
  const double size = std::abs(value);
  if (size >= 1e7 || (size != 0 && size < 1e-4)) {
    return formatted("%.3g", value);
  }
  return formatted(size >= 1000 ? "%.0f" : "%.4g", value);
}

std::string percent_text(double share) { return formatted("%.1f", share * 100); }

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) {
    return formatted(seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  }
  return whole < 3600 ? formatted("%ld min %ld s", whole / 60, whole % 60)
                      : formatted("%ld h %ld min", whole / 3600, whole % 3600 / 60);
}

}  // namespace gle::report
