#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "models/files/folder_lock.h"
#include "models/files/npy.h"
#include "retrieval/embeddings.h"

namespace gle {

// Embeddings on the disk, and whose they are:
//   embeddings.npy   [rows, dimensions], float32
//   labels.npy       [rows], int32; -1: none
//   ids.csv          row,path,label,class,camera,query,gallery
//   meta.json        rows, dimensions, the CRC-32C of the three, and `job`: what the embeddings were made from
// While they are being made: embeddings.npy.partial and progress.json.
struct EmbeddedItem {
  std::string path;
  std::string class_name;
  int32_t label = -1;
  int32_t camera = -1;
  bool query = true;
  bool gallery = true;
};

// Indices of the items to embed: those of the split test (queries and gallery), query, gallery or train, or all.
std::vector<uint32_t> items_of_split(const data::Dataset& data, const std::string& split);

// Writes such a folder row by row, so that memory does not grow with them. One that was begun with the same job and the
// same items is continued: rows() tells where.
class EmbeddingWriter {
 public:
  // `job` is a JSON text. Throws ErrorCode::usage if the folder holds embeddings of another job, whether it ended or
  // was only begun, unless `replace`; ErrorCode::io if another process has a writer of it.
  EmbeddingWriter(std::filesystem::path folder, std::string job, std::vector<EmbeddedItem> items, int64_t dimensions,
                  bool replace);
  ~EmbeddingWriter();
  EmbeddingWriter(const EmbeddingWriter&) = delete;
  EmbeddingWriter& operator=(const EmbeddingWriter&) = delete;

  // Rows that are there already.
  int64_t rows() const { return rows_; }
  // Nothing is left to do.
  bool complete() const { return complete_; }
  // Drops rows from the end, so that work can go on at a batch's beginning.
  void cut_to(int64_t rows);
  void append(const Embeddings& rows);
  // Everything appended is on the disk and will be continued from.
  void save();
  // After the last row: the folder as above.
  void finish();

 private:
  std::filesystem::path file(const char* name) const { return folder_ / name; }
  bool continued();
  void begin();
  uint32_t checksum_of_rows(int64_t rows) const;
  void write(const void* bytes, size_t count, int64_t at);

  std::filesystem::path folder_;
  FolderLock lock_;
  std::string job_;
  std::vector<EmbeddedItem> items_;
  int64_t dimensions_;
  std::string ids_;
  std::vector<std::byte> header_;
  int64_t rows_ = 0;
  uint32_t checksum_ = 0;  // of the rows
  bool complete_ = false;
  int fd_ = -1;
};

// What its files hold.
struct EmbeddingFiles {
  Bytes meta, embeddings, ids;
};

// Such a folder in memory, its checksums verified.
struct EmbeddingFolder {
  NpyArray array;
  std::vector<EmbeddedItem> items;
  std::string job;

  Embeddings view() const;

  // Throws ErrorCode::data if anything is missing, malformed, or not what its checksum says; ErrorCode::io if a file
  // cannot be read.
  static EmbeddingFolder read(const std::filesystem::path& folder);
  // The same from the files' contents; `folder` is for messages.
  static EmbeddingFolder parse(const EmbeddingFiles& files, const std::filesystem::path& folder);
};

bool is_embedding_folder(const std::filesystem::path& folder);

}  // namespace gle
