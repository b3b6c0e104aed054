// verify: a graph's outputs on a device beside the f64 reference evaluation of the same model.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/reference.h"
#include "tern/compile.h"
#include "tern/session.h"
#include "tern/weights.h"

namespace tern {

// One float output: how far the device is from the reference.
struct Deviation {
  std::string name;
  double max_abs = 0;        // largest |device - reference|
  double rms = 0;            // root mean square of the differences
  double reference_rms = 0;  // of the reference's values
  uint64_t elements = 0;
  uint64_t not_finite = 0;  // values of the device that are NaN or inf where the reference's are not
  // rms of the differences, relative to that of the reference; 0 where both are 0.
  double relative() const;
};

struct VerifyReport {
  std::vector<Deviation> outputs;              // floats, in the graph's order
  uint64_t integers = 0, integers_differ = 0;  // elements of integer outputs
};

struct VerifyOptions {
  Options compile;
  // Told each parameter that the reference is done with: (done, all).
  std::function<void(size_t, size_t)> progress;
  // Told of the executable before it runs.
  std::function<void(const Executable&)> compiled;
};

// Runs both from states of zero. `reference` and `device_graph` have the same inputs, parameters and outputs; they may
// differ in the types of their states (the reference keeps exact ones). Parameters stream: the reference holds decoded
// rows of one at a time, the device its packed form.
Result<VerifyReport> verify(const Graph& reference, Graph device_graph, const WeightSource& weights,
                            const Device& device, const std::map<std::string, TensorView>& inputs,
                            const VerifyOptions& options = {});

// How two equally shaped float values differ. Thread-safe.
Deviation deviation(std::string name, std::span<const double> reference, std::span<const float> device);

}  // namespace tern
