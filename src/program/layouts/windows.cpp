#include <algorithm>
#include <numeric>
#include <string>

#include "program/candidate.h"
#include "program/layouts/rows.h"

namespace tern {
namespace {

// The bounds with one symbol narrowed from above.
Bounds up_to(const Bounds& bounds, uint32_t symbol, int64_t least, int64_t most) {
  Bounds out = bounds;
  for (Bound& b : out) {
    if (b.symbol != symbol) continue;
    b.max = std::min(b.max, most);
    return out;
  }
  out.push_back({symbol, least, most});
  return out;
}

// "T <= 170" for each symbol that alone can bring the size below the limit; "" where none can.
std::string largest_that_fit(Dim bytes, int64_t limit, const Bounds& bounds, const DimTable& dims) {
  std::string text;
  for (const uint32_t symbol : dims.symbols_of(bytes)) {
    const Symbol& s = dims.symbols()[symbol];
    const auto fits = [&](int64_t most) {
      return dims.range(bytes, up_to(bounds, symbol, s.min, most)).second <= limit;
    };
    if (!fits(s.min)) continue;
    int64_t low = s.min, high = s.max;  // low fits, high does not
    while (low + 1 < high) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    text += (text.empty() ? "" : ", or ") + s.name + " <= " + std::to_string(low - low % s.multiple);
  }
  return text;
}

// Units of one window: as many as the limit takes, starting at offsets the device accepts.
struct Cut {
  int64_t units = 0, per_window = 0, unit_bytes = 0;
};

OrRefuse<Cut> cut(const Operand& operand, const Layout& layout, const Bounds& bounds, const Asked& asked) {
  TERN_ACCEPT(const Dim bytes, layout.def->bytes(asked.dims, operand.type, layout.tile));
  const auto limit = static_cast<int64_t>(std::min<uint64_t>(asked.caps.max_binding_bytes, INT64_MAX));
  const int64_t most = asked.dims.range(bytes, bounds).second;
  Cut c;
  if (most <= limit) return c;
  const std::string size =
      std::to_string(most) + " bytes exceed the device's binding limit of " + std::to_string(limit);
  if (!bytes.constant()) {
    const std::string fitting = largest_that_fit(bytes, limit, bounds, asked.dims);
    return refuse(size + "; a symbolic size is never cut into windows" +
                  (fitting.empty() ? "" : " (" + fitting + " would fit)"));
  }
  if (layout.def->window_axis < 0) return refuse(size + ", and this layout cannot be cut");
  TERN_ACCEPT(const Dim unit, layout.def->unit_bytes(asked.dims, operand.type, layout.tile));
  c.unit_bytes = unit.constant().value_or(0);
  if (c.unit_bytes <= 0 || c.unit_bytes > limit)
    return refuse("one window unit of " + std::to_string(c.unit_bytes) + " bytes exceeds the limit");
  c.units = 1 + (*bytes.constant() - 1) / c.unit_bytes;
  const int64_t step = asked.caps.offset_alignment / std::gcd<int64_t>(c.unit_bytes, asked.caps.offset_alignment);
  c.per_window = limit / c.unit_bytes / step * step;
  if (c.per_window == 0) return refuse("no window of whole units starts at an aligned offset");
  return c;
}

}  // namespace

OrRefuse<Unit> fits_binding(uint16_t index, const Operand& operand, const Layout& layout, const Bounds& bounds,
                            const Asked& asked) {
  TERN_ACCEPT(const Dim bytes, layout.def->bytes(asked.dims, operand.type, layout.tile));
  const auto limit = static_cast<int64_t>(std::min<uint64_t>(asked.caps.max_binding_bytes, INT64_MAX));
  const int64_t most = asked.dims.range(bytes, bounds).second;
  if (most <= limit) return Unit{};
  const std::string fitting = largest_that_fit(bytes, limit, bounds, asked.dims);
  return refuse("operand " + std::to_string(index) + " takes up to " + std::to_string(most) +
                " bytes, a binding holds " + std::to_string(limit) +
                (fitting.empty() ? "" : " (" + fitting + " would fit)"));
}

OrRefuse<int> window_count(const Operand& operand, const Layout& layout, const Bounds& bounds, const Asked& asked) {
  TERN_ACCEPT(const Cut c, cut(operand, layout, bounds, asked));
  return c.units == 0 ? 1 : static_cast<int>((c.units + c.per_window - 1) / c.per_window);
}

Status for_windows(const Problem& problem, uint16_t operand, const Layout& layout, BuildCtx& ctx,
                   const std::function<Status(int64_t first_unit, int64_t units, Use use)>& each) {
  const Operand& o = problem.operands[operand];
  const auto c = cut(o, layout, problem.bounds, ctx.asked);
  if (!c) return make_error(Code::limit, c.why());
  if (c->units == 0) {
    // All of it, whatever it is: symbolic rows (or rows of symbolic length) count by the largest number there can be.
    int64_t units = 1;
    if (layout.def->window_axis >= 0) {
      const int64_t rows = ctx.asked.dims.range(layouts::rows(ctx.asked.dims, o.type), problem.bounds).second;
      const int64_t unit = layout.def->window_unit(layout.tile);
      units = std::max<int64_t>(1, rows / unit + (rows % unit != 0));
    }
    return each(0, units, ctx.whole(operand));
  }
  const int64_t all = c->units * c->unit_bytes;
  for (int64_t first = 0; first < c->units; first += c->per_window) {
    const int64_t units = std::min(c->per_window, c->units - first);
    const int64_t offset = first * c->unit_bytes;
    TERN_OK(each(first, units, ctx.window(operand, offset, std::min(units * c->unit_bytes, all - offset))));
  }
  return ok();
}

}  // namespace tern
