// Normalisations of rows. Floats; f16 and narrower are computed in f32. The result has x's type.
#pragma once

#include "tern/graph.h"

namespace tern {

// exp(x - m) / sum(exp(x - m)) along the axis, m its maximum. A row of nothing but -inf gives NaN.
Value softmax(Builder& b, Value x, int axis = -1);
// x - m - log(sum(exp(x - m))).
Value log_softmax(Builder& b, Value x, int axis = -1);
// x / sqrt(mean(x^2) + eps) * w over the last axis (Zhang and Sennrich 2019); w [N] or none.
Value rms_norm(Builder& b, Value x, Value w, double eps);
// (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + bias over the last axis (Ba et al. 2016); w [N] or none, bias [N]
// only with w. The variance is taken around the mean, so rows far from zero keep their digits.
Value layer_norm(Builder& b, Value x, Value w, Value bias, double eps);

}  // namespace tern
