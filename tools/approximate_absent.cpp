#include "engine/error.h"
#include "tools/approximate.h"

namespace gle::tools {

Neighbours approximately_nearest(const Embeddings& /*queries*/, const Embeddings& /*gallery*/, int64_t /*k*/,
                                 const ApproximateOptions& /*options*/) {
  fail(ErrorCode::usage, "--approximate: this build has no faiss; configure with -DGLE_FAISS=ON");
}

}  // namespace gle::tools
