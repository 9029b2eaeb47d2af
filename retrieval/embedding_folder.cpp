#include "retrieval/embedding_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/csv.h"
#include "data/files.h"
#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "models/files/crc32c.h"
#include "models/files/file.h"

namespace gle {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kEmbeddings = "embeddings.npy";
constexpr const char* kPartial = "embeddings.npy.partial";
constexpr const char* kProgress = "progress.json";
constexpr const char* kLabels = "labels.npy";
constexpr const char* kIds = "ids.csv";
constexpr const char* kMeta = "meta.json";

[[noreturn]] void fail_io(const fs::path& path, const char* doing) {
  fail(ErrorCode::io, path.string(), ": ", doing, " failed: ", std::strerror(errno));
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Not an error: it is not what we write.
std::optional<Json> json_of(Bytes bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  Json json = Json::parse(text, text + bytes.size(), nullptr, false);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

// Nor that there is none.
std::optional<Json> read_json(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? json_of(read_file(path.string())) : std::nullopt;
}

// "flip (false there, true here)", and so on for whatever is not as in the job that was noted. Whole numbers are
// checksums, whose values would say nothing.
std::string differences(const Json& noted, const std::string& job, const std::string& ids) {
  const auto flat = [](const Json& json) {
    return json.is_object() && !json.empty() ? json.flatten() : Json::object();
  };
  const Json there = flat(noted.value("job", Json()));
  const Json here = flat(Json::parse(job));
  Json all = there;
  all.update(here);
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  const auto value = [](const Json& of, const std::string& key) { return of.contains(key) ? of[key].dump() : "none"; };
  for (auto item = all.begin(); item != all.end(); ++item) {
    const std::string& key = item.key();
    if (there.value(key, Json()) != here.value(key, Json())) {
      add(key.substr(1) +
          (item->is_number_integer() ? "" : " (" + value(there, key) + " there, " + value(here, key) + " here)"));
    }
  }
  if (noted.value("ids", Json()) != crc32c(bytes_of(ids))) {
    add("the list of pictures");
  }
  return text;
}

bool is_of(const Json& noted, const std::string& job, const std::string& ids) {
  return noted.value("job", Json()) == Json::parse(job) && noted.value("ids", Json()) == crc32c(bytes_of(ids));
}

std::string ids_of(const std::vector<EmbeddedItem>& items) {
  std::string text = "row,path,label,class,camera,query,gallery\n";
  for (size_t i = 0; i < items.size(); ++i) {
    const EmbeddedItem& item = items[i];
    text += std::to_string(i) + "," + data::csv_field(item.path) + "," + std::to_string(item.label) + "," +
            data::csv_field(item.class_name) + "," + std::to_string(item.camera) + (item.query ? ",1" : ",0") +
            (item.gallery ? ",1\n" : ",0\n");
  }
  return text;
}

std::vector<EmbeddedItem> items_of(std::span<const std::byte> bytes, const std::string& name) {
  const std::span text(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const data::CsvTable table = data::read_csv(text, name);
  const auto column = [&](const char* title) {
    const std::optional<size_t> found = table.column(title);
    if (!found) {
      fail(ErrorCode::data, name, ": has no column '", title, "'");
    }
    return *found;
  };
  const size_t path = column("path"), label = column("label"), class_name = column("class");
  const size_t camera = column("camera"), query = column("query"), gallery = column("gallery");
  std::vector<EmbeddedItem> items;
  for (const data::CsvTable::Row& row : table.rows) {
    const auto number = [&](size_t at) {
      const int64_t value = data::whole_number(row.fields[at], name, row.line);
      if (value < INT32_MIN || value > INT32_MAX) {
        fail(ErrorCode::data, name, ":", row.line, ": ", value, " is too large");
      }
      return static_cast<int32_t>(value);
    };
    items.push_back({row.fields[path], row.fields[class_name], number(label), number(camera), number(query) != 0,
                     number(gallery) != 0});
  }
  return items;
}

}  // namespace

std::vector<uint32_t> items_of_split(const data::Dataset& data, const std::string& split) {
  std::vector<uint32_t> items;
  for (uint32_t i = 0; i < data.items.size(); ++i) {
    const data::Item& item = data.items[i];
    if (split == "all" || (split == "train" && item.train) || (split == "query" && item.query) ||
        (split == "gallery" && item.gallery) || (split == "test" && (item.query || item.gallery))) {
      items.push_back(i);
    }
  }
  return items;
}

EmbeddingWriter::EmbeddingWriter(fs::path folder, std::string job, std::vector<EmbeddedItem> items, int64_t dimensions,
                                 bool replace)
    : folder_(std::move(folder)),
      lock_(folder_, "the folder"),
      job_(std::move(job)),
      items_(std::move(items)),
      dimensions_(dimensions),
      ids_(ids_of(items_)) {
  if (items_.empty()) {
    fail(ErrorCode::data, "there is no image to embed");
  }
  NpyArray empty;
  empty.shape = {static_cast<int64_t>(items_.size()), dimensions_};
  header_ = format_npy(empty);
  std::error_code problem;
  if (!replace) {
    const std::optional<Json> meta = read_json(file(kMeta));
    const std::optional<Json> found = meta ? meta : read_json(file(kProgress));
    if (!found && fs::exists(file(kEmbeddings), problem)) {
      fail(ErrorCode::usage, folder_.string(), ": holds an embeddings.npy of another job; choose another folder or ",
           "--overwrite");
    }
    if (found && !is_of(*found, job_, ids_)) {
      fail(ErrorCode::usage, folder_.string(), ": holds embeddings of another job: it differs in ",
           differences(*found, job_, ids_), "; choose another folder or --overwrite");
    }
    if (meta) {
      rows_ = static_cast<int64_t>(items_.size());
      complete_ = true;
      return;
    }
  }
  fs::remove(file(kMeta), problem);
  if (!continued()) {
    begin();
  }
}

EmbeddingWriter::~EmbeddingWriter() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void EmbeddingWriter::begin() {
  fd_ = ::open(file(kPartial).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    fail_io(file(kPartial), "creating");
  }
  write(header_.data(), header_.size(), 0);
  checksum_ = crc32c(header_);
  save();
}

bool EmbeddingWriter::continued() {
  const std::optional<Json> progress = read_json(file(kProgress));
  if (!progress || !is_of(*progress, job_, ids_)) {
    return false;
  }
  fd_ = ::open(file(kPartial).c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) {
    return false;
  }
  const Json rows = progress->value("rows", Json());
  rows_ = rows.is_number_integer() ? rows.get<int64_t>() : -1;
  const bool fits = rows_ >= 0 && rows_ <= static_cast<int64_t>(items_.size());
  if (!fits || progress->value("crc32c", Json()) != checksum_of_rows(rows_)) {
    ::close(fd_);
    fd_ = -1;
    rows_ = 0;
    return false;
  }
  cut_to(rows_);
  return true;
}

// With the header; 0 rows short of those asked for give another number than any that was noted.
uint32_t EmbeddingWriter::checksum_of_rows(int64_t rows) const {
  std::vector<std::byte> piece(size_t{1} << 20);
  const auto total = static_cast<int64_t>(header_.size()) + rows * dimensions_ * int64_t{sizeof(float)};
  uint32_t sum = 0;
  for (int64_t at = 0; at < total;) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(total - at, static_cast<int64_t>(piece.size())));
    const ssize_t found = ::pread(fd_, piece.data(), wanted, at);
    if (found <= 0) {
      return ~sum;
    }
    sum = crc32c({piece.data(), static_cast<size_t>(found)}, sum);
    at += found;
  }
  return sum;
}

void EmbeddingWriter::cut_to(int64_t rows) {
  rows_ = std::min(rows_, rows);
  const auto bytes = static_cast<off_t>(header_.size()) + rows_ * dimensions_ * off_t{sizeof(float)};
  if (::ftruncate(fd_, bytes) != 0) {
    fail_io(file(kPartial), "cutting");
  }
  checksum_ = checksum_of_rows(rows_);
}

void EmbeddingWriter::write(const void* bytes, size_t count, int64_t at) {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::pwrite(fd_, from, count, at);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      fail_io(file(kPartial), "writing");
    }
    from += written;
    at += written;
    count -= static_cast<size_t>(written);
  }
}

void EmbeddingWriter::append(const Embeddings& rows) {
  invariant(rows.dimensions == dimensions_ && rows_ + rows.rows <= static_cast<int64_t>(items_.size()),
            "rows that the file has no place for");
  const std::span values(rows.values, static_cast<size_t>(rows.rows * dimensions_));
  write(values.data(), values.size_bytes(),
        static_cast<int64_t>(header_.size()) + rows_ * dimensions_ * int64_t{sizeof(float)});
  checksum_ = crc32c(std::as_bytes(values), checksum_);
  rows_ += rows.rows;
}

void EmbeddingWriter::save() {
  if (::fdatasync(fd_) != 0) {
    fail_io(file(kPartial), "syncing");
  }
  const Json progress = {
      {"job", Json::parse(job_)}, {"ids", crc32c(bytes_of(ids_))}, {"rows", rows_}, {"crc32c", checksum_}};
  write_atomically(file(kProgress), {bytes_of(progress.dump(2) + "\n")});
}

void EmbeddingWriter::finish() {
  invariant(rows_ == static_cast<int64_t>(items_.size()), "embeddings are missing");
  if (complete_) {
    return;
  }
  std::vector<int32_t> labels;
  for (const EmbeddedItem& item : items_) {
    labels.push_back(item.label);
  }
  const std::vector<std::byte> label_file = format_npy(npy_of(labels, {std::ssize(labels)}));
  save();
  write_atomically(file(kLabels), {label_file});
  write_atomically(file(kIds), {bytes_of(ids_)});
  if (::rename(file(kPartial).c_str(), file(kEmbeddings).c_str()) != 0) {
    fail_io(file(kEmbeddings), "renaming");
  }
  const Json meta = {{"gle", 1},
                     {"rows", rows_},
                     {"dimensions", dimensions_},
                     {"embeddings", checksum_},
                     {"labels", crc32c(label_file)},
                     {"ids", crc32c(bytes_of(ids_))},
                     {"job", Json::parse(job_)}};
  write_atomically(file(kMeta), {bytes_of(meta.dump(2) + "\n")});
  std::error_code ignored;
  fs::remove(file(kProgress), ignored);
  complete_ = true;
}

bool is_embedding_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kMeta, ignored) && fs::is_regular_file(folder / kEmbeddings, ignored);
}

Embeddings EmbeddingFolder::view() const {
  return {reinterpret_cast<const float*>(array.data.data()), array.shape[0], array.shape[1]};
}

EmbeddingFolder EmbeddingFolder::read(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / kMeta, ignored)) {
    fail(ErrorCode::data, folder.string(), ": has no meta.json",
         fs::exists(folder / kProgress, ignored) ? "; gle-embed has not finished, start it again to continue"
                                                 : ": is it a folder of gle-embed's?");
  }
  const auto content = [&](const char* name) {
    if (!fs::is_regular_file(folder / name, ignored)) {
      fail(ErrorCode::data, folder.string(), ": ", name, " is missing: run gle-embed again");
    }
    return read_file((folder / name).string());
  };
  return parse({content(kMeta), content(kEmbeddings), content(kIds)}, folder);
}

EmbeddingFolder EmbeddingFolder::parse(const EmbeddingFiles& files, const fs::path& folder) {
  const std::optional<Json> meta = json_of(files.meta);
  if (!meta) {
    fail(ErrorCode::data, (folder / kMeta).string(), ": is not a JSON object: is it gle-embed's?");
  }
  const auto require_sum = [&](const char* name, const char* key, Bytes bytes) {
    if (const Json expected = meta->value(key, Json()); expected != crc32c(bytes)) {
      fail(ErrorCode::data, (folder / name).string(), ": is not what meta.json says: its CRC-32C is ", crc32c(bytes),
           ", not ", expected.dump());
    }
  };
  require_sum(kEmbeddings, "embeddings", files.embeddings);
  require_sum(kIds, "ids", files.ids);
  EmbeddingFolder result;
  try {
    result.array = parse_npy(files.embeddings, (folder / kEmbeddings).string());
  } catch (const Error& error) {
    fail(ErrorCode::data, error.what());
  }
  result.items = items_of(files.ids, (folder / kIds).string());
  result.job = meta->value("job", Json::object()).dump();
  if (result.array.kind != 'f' || result.array.item_bytes != sizeof(float) || result.array.shape.size() != 2 ||
      result.array.shape[0] != std::ssize(result.items) || result.array.data.empty()) {
    fail(ErrorCode::data, folder.string(), ": embeddings.npy and ids.csv do not fit together");
  }
  return result;
}

}  // namespace gle
