/* A C program of somebody else: embeds pictures, and finds each among them again.
 *   embed MODEL INDEX PICTURE...      prints the bits of an embedding a line; INDEX: a folder that gle-embed made of
 *                                     these */
#include <gle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, gle_last_error());
  return 1;
}

int main(int argc, char** argv) {
  gle_model* model = NULL;
  gle_index* index = NULL;
  const int pictures = argc - 3;
  if (pictures < 1) {
    fprintf(stderr, "usage: embed MODEL INDEX PICTURE...\n");
    return 2;
  }

  /* Whatever goes wrong is a status and a text, never a crash. */
  if (gle_model_open("no such file", NULL, &model) != GLE_IO || model != NULL || gle_last_error()[0] == 0 ||
      gle_model_open(NULL, NULL, &model) != GLE_USAGE || gle_model_open(argv[1], NULL, NULL) != GLE_USAGE ||
      gle_embed_file(NULL, argv[3], NULL) != GLE_USAGE || gle_model_dimensions(NULL) != 0) {
    return fail("bad calls");
  }
  gle_model_close(NULL);

  if (gle_model_open(argv[1], NULL, &model) != GLE_OK) {
    return fail("open");
  }
  const int64_t dimensions = gle_model_dimensions(model);
  float* embeddings = malloc(sizeof(float) * (size_t)(dimensions * pictures));
  if (embeddings == NULL || gle_embed_file(model, "no such file", embeddings) != GLE_IO ||
      gle_embed_file(model, argv[1], embeddings) != GLE_DATA ||
      gle_embed_encoded(model, "GIF89a", 6, embeddings) != GLE_DATA ||
      gle_embed_pixels(model, (const uint8_t*)argv[1], 0, 5, 0, embeddings) != GLE_USAGE) {
    return fail("bad pictures");
  }
  for (int i = 0; i < pictures; ++i) {
    float* row = embeddings + dimensions * i;
    if (gle_embed_file(model, argv[3 + i], row) != GLE_OK) {
      return fail(argv[3 + i]);
    }
    for (int64_t d = 0; d < dimensions; ++d) {
      uint32_t bits = 0;
      memcpy(&bits, row + d, sizeof bits);
      printf("%08x%c", bits, d + 1 < dimensions ? ' ' : '\n');
    }
  }

  if (gle_index_create(embeddings, pictures, dimensions, (const char* const*)argv + 3, &index) != GLE_OK) {
    return fail("index");
  }
  for (int i = 0; i < pictures; ++i) {
    int64_t nearest = -1;
    float distance = -1;
    if (gle_index_search(index, embeddings + dimensions * i, 1, 1, &nearest, &distance) != GLE_OK) {
      return fail("search");
    }
    if (nearest != i || distance != 0.0F || gle_index_name(index, nearest) == NULL) {
      fprintf(stderr, "picture %d: nearest is %lld at %g\n", i, (long long)nearest, distance);
      return 1;
    }
  }
  if (gle_index_search(index, embeddings, 1, pictures + 1, NULL, NULL) != GLE_USAGE ||
      gle_index_name(index, pictures) != NULL) {
    return fail("bad searches");
  }
  gle_index_close(index);

  if (gle_index_open("no such folder", &index) == GLE_OK || index != NULL) {
    return fail("bad index");
  }
  if (gle_index_open(argv[2], &index) != GLE_OK || gle_index_size(index) != pictures ||
      gle_index_dimensions(index) != dimensions) {
    return fail("opened index");
  }
  for (int i = 0; i < pictures; ++i) {
    int64_t nearest = -1;
    float distance = -1;
    if (gle_index_search(index, embeddings + dimensions * i, 1, 1, &nearest, &distance) != GLE_OK || nearest != i ||
        distance != 0.0F) {
      fprintf(stderr, "picture %d: gle-embed has it as number %lld, %g away\n", i, (long long)nearest, distance);
      return 1;
    }
  }
  gle_index_close(index);
  gle_model_close(model);
  free(embeddings);
  return 0;
}
