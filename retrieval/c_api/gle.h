/* GLE for other programs: open a trained network, embed pictures, find their nearest neighbours.
 *
 * Every function that can fail returns a status, and gle_last_error() then has the reason. Nothing here throws, prints,
 * exits, or writes a file. A handle may be used from several threads; calls on the same one wait for each other. */
#ifndef GLE_H
#define GLE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GLE_API __attribute__((visibility("default")))
#else
#define GLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gle_status {
  GLE_OK = 0,
  GLE_RUNTIME = 1,
  GLE_USAGE = 2,   /* an argument is wrong */
  GLE_DATA = 3,    /* a picture cannot be read, an index is damaged */
  GLE_WEIGHTS = 4, /* a model file is damaged, or of another kind */
  GLE_MEMORY = 5,
  GLE_IO = 6,
  GLE_NOT_FINITE = 7
} gle_status;

/* "0.1.0" */
GLE_API const char* gle_version(void);
/* Why the last call on this thread failed; "" if it did not. Lasts until the next call on this thread. */
GLE_API const char* gle_last_error(void);

/* -- models ------------------------------------------------------------------------------------------------------ */

typedef struct gle_model gle_model;

/* Fill in with gle_model_defaults(), then change what you like. */
typedef struct gle_model_options {
  const char* device;    /* "cpu", "cuda", "cuda:1" or "auto" */
  int threads;           /* 0: as many as the machine has cores */
  uint64_t memory_limit; /* bytes of tensors; 0: no limit */
  float last_slope;      /* GL++: of the last activation below zero; 0: ReLU */
  float max_share;       /* GL++: of the maximum in the global pooling; negative: as trained */
  float beta;            /* GL++: embeddings f / |f| + beta f; negative: f as it is */
  int flip;              /* GL++: mean of the embeddings of the picture and of its mirror image */
} gle_model_options;

GLE_API void gle_model_defaults(gle_model_options* options);

/* Opens a .safetensors or .gle file that GLE wrote. options may be null. */
GLE_API gle_status gle_model_open(const char* path, const gle_model_options* options, gle_model** model);
/* Null is fine. */
GLE_API void gle_model_close(gle_model* model);

/* How many numbers an embedding has; 0 for a bad handle. */
GLE_API int64_t gle_model_dimensions(const gle_model* model);
/* The size of the pictures that the network sees. */
GLE_API gle_status gle_model_input(const gle_model* model, int* height, int* width);

/* Each writes gle_model_dimensions() floats a picture. */
GLE_API gle_status gle_embed_file(gle_model* model, const char* path, float* embedding);
/* The bytes of a JPEG, PNG or BMP file. */
GLE_API gle_status gle_embed_encoded(gle_model* model, const void* bytes, size_t size, float* embedding);
/* Rows from the top, three bytes (red, green, blue) a pixel; row_bytes from one row to the next. */
GLE_API gle_status gle_embed_pixels(gle_model* model, const uint8_t* rgb, int width, int height, size_t row_bytes,
                                    float* embedding);
/* Pictures that are made ready already: [count, height, width, 3], scaled and in the order of colours that the network
 * wants. */
GLE_API gle_status gle_embed_tensor(gle_model* model, const float* images, int64_t count, int height, int width,
                                    float* embeddings);

/* -- indexes ----------------------------------------------------------------------------------------------------- */

typedef struct gle_index gle_index;

/* A folder that gle-embed wrote. Its names are the paths of the pictures. */
GLE_API gle_status gle_index_open(const char* path, gle_index** index);
/* An index of `count` embeddings, which are copied. names may be null. */
GLE_API gle_status gle_index_create(const float* embeddings, int64_t count, int64_t dimensions,
                                    const char* const* names, gle_index** index);
GLE_API void gle_index_close(gle_index* index);

GLE_API int64_t gle_index_size(const gle_index* index);
GLE_API int64_t gle_index_dimensions(const gle_index* index);
/* Null for a bad handle or number. Lasts as long as the index. */
GLE_API const char* gle_index_name(const gle_index* index, int64_t number);

/* The k nearest of every row of queries[count, gle_index_dimensions()] by Euclidean distance, nearest first, of two
 * equally near the one with the lower number: numbers[count, k], and distances[count, k] unless that is null. k is at
 * most gle_index_size(). */
GLE_API gle_status gle_index_search(gle_index* index, const float* queries, int64_t count, int64_t k, int64_t* numbers,
                                    float* distances);

#ifdef __cplusplus
}
#endif

#endif
