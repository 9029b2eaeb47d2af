#!/usr/bin/env bash
# Tests the tests: plants one bug after another in a copy of the tree, builds, and demands that the suite turns red.
# Run by hand; it takes some minutes.
#   tests/mutation.sh [name...]     default: all
#   tests/mutation.sh --patterns    only see that every bug finds its place, which takes a moment
# A pattern that no longer applies, a bug that does not compile and a bug that survives are all failures.
set -euo pipefail
cd "$(dirname "$0")/.."

patterns=
[ "$*" != --patterns ] || { patterns=yes; shift; }
tests=(kernels_test ops_test tape_test batch_norm_test conv2d_test dropout_test pool2d_test rows_test caching_allocator_test)
pattern="^($(IFS='|' && echo "${tests[*]}"))\$"

build() { ninja -C "$work/build" "${tests[@]}" >"$work/build.log" 2>&1; }
passes() {
  GTEST_FAIL_FAST=1 ctest --test-dir "$work/build" -L fast -R "$pattern" --stop-on-failure --timeout 1200 \
    >"$work/test.log" 2>&1
}

if [ -z "$patterns" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/original"
  git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$work/original"
  cp -r "$work/original" "$work/tree"
  echo "building the tree as it is"
  cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGLE_ONEDNN=OFF -DGLE_BENCH=OFF \
    -DGLE_TOOLS=OFF -DGLE_WERROR=OFF -DGLE_CUDA=OFF >/dev/null
  build || { tail -20 "$work/build.log"; exit 1; }
  passes || { echo "the suite is red without any bug"; tail -20 "$work/test.log"; exit 1; }
fi

wanted=("$@")
planted=0
failures=0
# bug NAME FILE SED-EXPRESSION
bug() {
  local name=$1 file=$2 expression=$3 verdict start=$SECONDS
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then
    return
  fi
  planted=$((planted + 1))
  if [ -n "$patterns" ]; then
    if sed "$expression" "$file" | cmp -s "$file" -; then
      failures=$((failures + 1))
      echo "$name: its pattern no longer applies to $file"
    fi
    return
  fi
  sed -i "$expression" "$work/tree/$file"
  if cmp -s "$work/original/$file" "$work/tree/$file"; then
    verdict="PATTERN NO LONGER APPLIES"
  elif ! build; then
    verdict="DOES NOT BUILD"
  elif passes; then
    verdict="SURVIVES"
  else
    verdict="red: $(grep -oE '[0-9]+ - [a-z0-9_]+_test' "$work/test.log" | head -1 | sed 's/.* - //')"
  fi
  [[ $verdict == red:* ]] || failures=$((failures + 1))
  printf '%-34s %-46s %s (%s s)\n' "$name" "$file" "$verdict" $((SECONDS - start))
  cp "$work/original/$file" "$work/tree/$file"
}

cpu=engine/cpu
bug sign_in_softmax_backward $cpu/softmax.cpp 's/(lanes.load(pdy + c) - dot)/(lanes.load(pdy + c) + dot)/'
bug conv_data_does_not_add $cpu/conv2d_kernels.cpp 's/\.add = mode == Accumulate::add}/.add = false}/'
bug conv_weights_do_not_add $cpu/conv2d_backward_weights_kernels.cpp 's/chunk > begin || (one_group && add)/chunk > begin/'
bug conv_paddings_mixed_up $cpu/conv2d_kernels.cpp 's/rows, -s\.pad_w, f\.columns}/rows, -s.pad_h, f.columns}/'
bug conv_weights_not_flipped $cpu/conv2d_kernels.cpp 's/for (int64_t i = rows - 1; i >= 0; --i)/for (int64_t i = 0; i < rows; ++i)/'
bug conv_without_bias $cpu/conv2d.cpp 's/weights, bias\.data(), f\.slope/weights, nullptr, f.slope/'
bug conv_groups_by_threads $cpu/conv2d_backward_weights_kernels.cpp 's/larger(1, smaller(kMostGroups, /larger(1, smaller(threads, /'
bug winograd_does_not_add $cpu/conv2d_winograd.cpp 's/result\.mode == Accumulate::add ? Put::add : Put::overwrite/Put::overwrite/'
bug winograd_point_is_another $cpu/winograd_transforms.h 's/out\[3\] = fma(aa, odd_a,/out[3] = fma(bb, odd_a,/'
bug winograd_edges_wrap $cpu/winograd_squares.h 's/ \&\& column >= 0 \&\& column < s\.w;/ \&\& column >= 0;/'
bug anchors_give_no_support $cpu/group_loss_refine.cpp 's/support\[i \* kPanel + column\] += l\.w\[i \* l\.ld + anchor\];/;/'
bug anchors_without_gradient $cpu/group_loss_refine.cpp 's/dw\[i \* t\.all + anchor\] += v\[/dw[i * t.all + anchor] += 0.0F * v[/'
bug similarity_of_last_tile_only $cpu/group_loss_refine.cpp 's/^    add = true;$//'
bug target_among_the_others $cpu/group_loss_refine.cpp 's/sum += select(eqi(lane_numbers() + static_cast<int32_t>(at), target), zero(), \(.*\));$/sum += \1;/'
bug row_sums_before_the_product $cpu/group_loss_refine.cpp 's/sum += lanes\.keep(da, zero());/sum += lanes.keep(lanes.load(x + place), zero());/'
bug unsupported_row_vanishes $cpu/group_loss_refine.cpp 's/if (sum < kNoMass) {/if (false) {/'
bug negatives_not_clamped $cpu/group_loss_similarity.cpp 's/max(zero(), lanes\.load(w + i))/lanes.load(w + i)/'
bug tail_one_short $cpu/tile_kernels.cpp 's/store_partial(y, \(.*\), tail);/store_partial(y, \1, tail - 1);/'
bug stale_workspace $cpu/column_reduce.h 's/ partial\[i\] = 0\.0F;/;/'
bug first_piece_again $cpu/column_reduce.h 's/(piece \* sums + s) \* channels/s * channels/'
bug last_among_equals $cpu/pool2d.cpp 's/either(gt(challenger, holder)/either(le(holder, challenger)/'
bug nan_loses $cpu/pool2d.cpp 's/either(gt(challenger, holder), is_nan(challenger))/gt(challenger, holder)/'
bug momentum_swapped $cpu/batch_norm.cpp 's/(1\.0 - share) \* \(static_cast<double>(\*running\[0\])\) + share \* mean/share * \1 + (1.0 - share) * mean/'
bug variance_biased $cpu/batch_norm.cpp 's/share \* variance \* unbiased/share * variance/'
bug frozen_as_of_batch $cpu/batch_norm.cpp 's/of_batch = statistics == Statistics::of_batch/of_batch = true/'
bug mean_not_subtracted $cpu/rows.cpp 's/lanes\.load(px + c) - mean, mode/lanes.load(px + c), mode/'
bug slice_written_densely $cpu/batch_norm.cpp 's/float\* py = y\.data() + row \* y\.pitch()/float* py = y.data() + row * channels/'
bug dropout_not_rescaled $cpu/elementwise.cpp 's|1\.0F / (1\.0F - probability)|1.0F|'
bug dropout_counts_the_pitch $cpu/elementwise.cpp 's/row \* x\.channels() + column/row * x.pitch() + column/'
bug smoothing_without_label $cpu/softmax.cpp 's|smoothing / static_cast<float>(channels);|smoothing / static_cast<float>(channels - 1);|'
bug divisor_beyond_padding engine/math/pool_window.h 's/start + axis\.kernel < axis\.size + axis\.pad ? /true ? /'
bug ceil_mode_size layers/pool2d.cpp 's/(result - 1) \* stride >= size + pad/(result - 1) * stride > size + pad/'
bug fold_is_stale layers/conv_batch_norm.cpp 's/folded_version_ != set\.version()/folded_version_ == 0/'
bug slot_freed_too_early engine/tape.cpp 's/created_at >= nodes_used_/created_at + 1 >= nodes_used_/'
bug gap_not_zeroed engine/tape.cpp 's/^  fill_gaps(slot, place\.begin, place\.end);$//'
bug gap_added_to engine/tape.cpp 's/^    fill_gaps(slot, place\.begin, place\.end);$//'
bug parameter_overwritten engine/tape.cpp 's/parameter\.has_gradient ? Accumulate::add : Accumulate::overwrite/Accumulate::overwrite/'
bug second_use_overwrites engine/tape.cpp 's/covered > 0 ? Accumulate::add : Accumulate::overwrite/Accumulate::overwrite/'
bug limit_not_kept engine/memory/caching_allocator.cpp 's/kPage), room);/kPage), SIZE_MAX);/'

if [ -n "$patterns" ]; then
  echo "$planted bugs, $((planted - failures)) find their place"
else
  echo "$planted bugs planted, $((planted - failures)) found"
fi
[ "$planted" -gt 0 ] && [ "$failures" -eq 0 ]
