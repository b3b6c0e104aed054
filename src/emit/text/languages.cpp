#include "emit/kernel_text.h"
#include "emit/text/writer.h"

namespace tern {

namespace {

#define TERN_DIALECT(name) &emit::name,
constexpr const emit::Dialect* kDialects[] = {
#include "emit/dialect_list.inc"
};
#undef TERN_DIALECT

}  // namespace

Result<KernelText> emit_text(const kir::Kernel& kernel, const Caps& caps) {
  std::string known;
  for (const emit::Dialect* dialect : kDialects) {
    if (dialect->name == caps.language) {
      const std::unique_ptr<emit::Writer> writer = dialect->writer(*dialect, kernel);
      TERN_TRY(std::string text, writer->write());
      return KernelText{std::move(text), writer->entry(), dialect->work_items(kernel)};
    }
    known += (known.empty() ? "" : ", ") + std::string(dialect->name);
  }
  return make_error(Code::unsupported, "kernels are not written in '" + caps.language + "'; there is: " + known);
}

std::span<const std::string_view> text_languages() {
  static const auto names = [] {
    std::array<std::string_view, std::size(kDialects)> out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = kDialects[i]->name;
    return out;
  }();
  return names;
}

}  // namespace tern
