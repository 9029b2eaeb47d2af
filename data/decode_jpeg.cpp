// JPEG by libjpeg-turbo's libjpeg interface, which tells its warnings apart: those that mean made-up pixels are errors.
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>

// jpeglib.h needs size_t and FILE, jerror.h needs jpeglib.h.
#include <jpeglib.h>

#include <jerror.h>

#include "data/codecs.h"

namespace gle::data {

namespace {

// Everything that must survive the longjmp of libjpeg's error exit; nothing in it has a destructor.
struct Job {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  jmp_buf escape;
  char problem[JMSG_LENGTH_MAX];
};

Job& job_of(j_common_ptr jpeg) { return *static_cast<Job*>(jpeg->client_data); }

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Job& job = job_of(jpeg);
  job.errors.format_message(jpeg, job.problem);
  std::longjmp(job.escape, 1);
}

// Warnings after which every pixel is still as the file says. All others stand in for lost data.
bool harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_PROGRESSION ||
         code == JWRN_JFIF_MAJOR || code == JWRN_NOT_SEQUENTIAL || code == JWRN_TOO_MUCH_DATA;
}

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && !harmless(job_of(jpeg).errors.msg_code)) {
    on_error(jpeg);
  }
}

void on_output(j_common_ptr) {}

// A progressive file can ask for the whole picture to be refined over and over.
void on_progress(j_common_ptr jpeg) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMostScans) {
    Job& job = job_of(jpeg);
    std::snprintf(job.problem, sizeof job.problem, "more than %d scans", kMostScans);
    std::longjmp(job.escape, 1);
  }
}

void on_begin(j_decompress_ptr) {}

boolean on_end_of_data(j_decompress_ptr jpeg) {
  Job& job = job_of(reinterpret_cast<j_common_ptr>(jpeg));
  std::snprintf(job.problem, sizeof job.problem, "truncated: the data ends before the picture does");
  std::longjmp(job.escape, 1);
}

void on_skip(j_decompress_ptr jpeg, long bytes) {
  jpeg_source_mgr& source = *jpeg->src;
  if (bytes <= 0) {
    return;
  }
  if (static_cast<size_t>(bytes) > source.bytes_in_buffer) {
    on_end_of_data(jpeg);
  }
  source.next_input_byte += bytes;
  source.bytes_in_buffer -= static_cast<size_t>(bytes);
}

void connect(Job& job, std::span<const uint8_t> file) {
  job.jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = on_error;
  job.errors.emit_message = on_message;
  job.errors.output_message = on_output;
  jpeg_create_decompress(&job.jpeg);
  job.jpeg.client_data = &job;
  job.progress.progress_monitor = on_progress;
  job.jpeg.progress = &job.progress;
  job.source = {.next_input_byte = file.data(),
                .bytes_in_buffer = file.size(),
                .init_source = on_begin,
                .fill_input_buffer = on_end_of_data,
                .skip_input_data = on_skip,
                .resync_to_restart = jpeg_resync_to_restart,
                .term_source = on_begin};
  job.jpeg.src = &job.source;
}

bool read_header(Job& job) {
  if (setjmp(job.escape)) {
    return false;
  }
  jpeg_read_header(&job.jpeg, TRUE);
  const int components = job.jpeg.num_components;
  if (components != 1 && components != 3 && components != 4) {
    std::snprintf(job.problem, sizeof job.problem, "%d colour components; 1, 3 and 4 are read", components);
    return false;
  }
  job.jpeg.out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
  return true;
}

// Starts decoding and narrows it to the columns around `wanted`; they become part.x and part.width. The columns next
// to a cut are upsampled without their neighbour, so the cut lies outside of what is wanted.
bool start(Job& job, const Region& wanted, Region& part) {
  if (setjmp(job.escape)) {
    return false;
  }
  jpeg_start_decompress(&job.jpeg);
  constexpr int kMargin = 16;
  const int width = static_cast<int>(job.jpeg.output_width);
  const int begin = std::max(0, wanted.x - kMargin);
  const int end = std::min(width, wanted.x + wanted.width + kMargin);
  part = {0, wanted.y, width, wanted.height};
  if (begin > 0 || end < width) {
    auto x = static_cast<JDIMENSION>(begin);
    auto columns = static_cast<JDIMENSION>(end - begin);
    jpeg_crop_scanline(&job.jpeg, &x, &columns);
    part.x = static_cast<int>(x);
    part.width = static_cast<int>(columns);
  }
  return true;
}

// Rows [part.y, part.y + part.height) into `rows`; CMYK goes through `line`.
bool read_rows(Job& job, const Region& part, uint8_t* rows, uint8_t* line) {
  if (setjmp(job.escape)) {
    return false;
  }
  if (part.y > 0) {
    jpeg_skip_scanlines(&job.jpeg, static_cast<JDIMENSION>(part.y));
  }
  for (int y = 0; y < part.height; ++y) {
    uint8_t* out = rows + static_cast<size_t>(y) * static_cast<size_t>(part.width) * 3;
    JSAMPROW target = line ? line : out;
    jpeg_read_scanlines(&job.jpeg, &target, 1);
    if (line) {
      rgb_of_cmyk(line, part.width, out);
    }
  }
  return true;
}

}  // namespace

std::string decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, const Region& wanted,
                        const DecodeOptions&, Image& image) {
  Job job{};
  connect(job, file);
  struct Owner {
    jpeg_decompress_struct* jpeg;
    ~Owner() { jpeg_destroy_decompress(jpeg); }
  } owner{&job.jpeg};
  if (!read_header(job)) {
    return job.problem;
  }
  if (static_cast<int>(job.jpeg.image_width) != info.width || static_cast<int>(job.jpeg.image_height) != info.height) {
    return "two frame headers of different sizes";
  }
  Region part;
  if (!start(job, wanted, part)) {
    return job.problem;
  }
  image.reshape(info.width, info.height, part);
  PixelBuffer line;
  uint8_t* cmyk = job.jpeg.out_color_space == JCS_CMYK ? line.resize(static_cast<size_t>(info.width) * 4) : nullptr;
  return read_rows(job, part, image.pixels.data(), cmyk) ? "" : job.problem;
}

std::string jpeg_version() {
  constexpr int kNumber = LIBJPEG_TURBO_VERSION_NUMBER;
  return "libjpeg-turbo " + std::to_string(kNumber / 1000000) + "." + std::to_string(kNumber / 1000 % 1000) + "." +
         std::to_string(kNumber % 1000);
}

bool has_jpeg() { return true; }

}  // namespace gle::data
