#include "verify/verify.h"

#include <algorithm>
#include <cmath>

#include "ops/reference.h"

namespace tern {
namespace {

// Everything the reference is asked for by name: parameters from the source, states as zeros.
class Leaves {
 public:
  Leaves(const Graph& graph, const WeightSource& weights, std::span<const int64_t> symbols,
         const VerifyOptions& options)
      : graph_(graph), weights_(weights), symbols_(symbols), options_(options) {
    for (const Port& port : graph.ports()) all_ += port.kind == PortKind::param;
  }

  Result<RefLeaf> get(const Port& port) {
    const TensorType& type = graph_.type(port.value);
    std::vector<int64_t> shape;
    for (const Dim d : type.shape) {
      TERN_TRY(const int64_t n, graph_.dims->eval(d, symbols_));
      shape.push_back(n);
    }
    if (port.kind == PortKind::state) return RefLeaf(ref_zeros(type.dtype, shape));
    const WeightInfo* info = weights_.find(port.name);
    if (info == nullptr) return make_error(Code::not_found, "the model has no tensor '" + port.name + "'", port.name);
    TERN_TRY(const Planes planes, weights_.planes(*info));
    return RefLeaf(TensorView{type.dtype, shape, planes.p[0], type.format});
  }
  void done(const Port& port) {
    if (port.kind != PortKind::param) return;
    if (const WeightInfo* info = weights_.find(port.name)) weights_.drop(*info, 0, info->bytes);
    if (options_.progress) options_.progress(++seen_, all_);
  }

 private:
  const Graph& graph_;
  const WeightSource& weights_;
  std::span<const int64_t> symbols_;
  const VerifyOptions& options_;
  size_t seen_ = 0, all_ = 0;
};

Result<RefResults> run_reference(const Graph& graph, const WeightSource& weights,
                                 const std::map<std::string, TensorView>& inputs, const VerifyOptions& options) {
  std::map<std::string, RefLeaf> leaves;
  for (const auto& [name, view] : inputs) leaves.emplace(name, view);
  TERN_TRY(const std::vector<int64_t> symbols, bind_symbols(graph, leaves));
  Leaves source(graph, weights, symbols, options);
  RefOptions ref;
  ref.leaf = [&](const Port& port) { return source.get(port); };
  ref.done = [&](const Port& port) { source.done(port); };
  return evaluate(graph, leaves, symbols, ref);
}

// One output of the device, in the reference's shape.
struct Fetched {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> floats;
  std::vector<int32_t> integers;
};

Result<std::vector<Fetched>> run_device(Graph graph, const WeightSource& weights, const Device& device,
                                        const std::map<std::string, TensorView>& inputs, const RefResults& reference,
                                        const VerifyOptions& options) {
  TERN_TRY(const Executable exe, compile(std::move(graph), device, options.compile));
  if (options.compiled) options.compiled(exe);
  Params params = exe.params();
  TERN_OK(params.load(weights));
  TERN_TRY(Session session, exe.open(params));
  std::vector<Fetched> out;
  for (const auto& [name, tensor] : reference.outputs) {
    Fetched f{name, tensor.shape, {}, {}};
    if (tensor.dtype == DType::f32)
      f.floats.resize(static_cast<size_t>(tensor.size()));
    else if (tensor.dtype == DType::i32)
      f.integers.resize(static_cast<size_t>(tensor.size()));
    else
      return make_error(Code::unsupported, "verify compares f32 and i32 outputs; '" + name + "' is " +
                                               std::string(dtype_name(tensor.dtype)));
    out.push_back(std::move(f));
  }
  std::vector<IoBinding> io;
  for (const auto& [name, view] : inputs) {
    TERN_TRY(const IoId id, exe.io(name));
    io.push_back({id, view});
  }
  for (Fetched& f : out) {
    TERN_TRY(const IoId id, exe.io(f.name));
    if (f.integers.empty())
      io.push_back({id, mutable_view(std::span<float>(f.floats), f.shape)});
    else
      io.push_back({id, mutable_view(std::span<int32_t>(f.integers), f.shape)});
  }
  TERN_OK(session.run(io));
  return out;
}

}  // namespace

double Deviation::relative() const {
  if (rms == 0) return 0;
  return reference_rms > 0 ? rms / reference_rms : std::numeric_limits<double>::infinity();
}

Deviation deviation(std::string name, std::span<const double> reference, std::span<const float> device) {
  Deviation d;
  d.name = std::move(name);
  d.elements = reference.size();
  double squares = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    norm += reference[i] * reference[i];
    if (!std::isfinite(device[i])) {
      d.not_finite += std::isfinite(reference[i]);
      continue;
    }
    const double difference = std::fabs(static_cast<double>(device[i]) - reference[i]);
    d.max_abs = std::max(d.max_abs, difference);
    squares += difference * difference;
  }
  if (d.elements > 0) {
    d.rms = std::sqrt(squares / static_cast<double>(d.elements));
    d.reference_rms = std::sqrt(norm / static_cast<double>(d.elements));
  }
  return d;
}

Result<VerifyReport> verify(const Graph& reference, Graph device_graph, const WeightSource& weights,
                            const Device& device, const std::map<std::string, TensorView>& inputs,
                            const VerifyOptions& options) {
  TERN_TRY(const RefResults want, run_reference(reference, weights, inputs, options));
  TERN_TRY(const std::vector<Fetched> got, run_device(std::move(device_graph), weights, device, inputs, want, options));
  VerifyReport report;
  for (const OutputPort& port : reference.outputs()) {
    const RefTensor& exact = want.outputs.at(port.name);
    const auto f = std::find_if(got.begin(), got.end(), [&](const Fetched& x) { return x.name == port.name; });
    if (exact.dtype == DType::f32) {
      report.outputs.push_back(deviation(port.name, exact.f, f->floats));
      continue;
    }
    report.integers += exact.i.size();
    for (size_t i = 0; i < exact.i.size(); ++i) report.integers_differ += exact.i[i] != f->integers[i];
  }
  return report;
}

}  // namespace tern
