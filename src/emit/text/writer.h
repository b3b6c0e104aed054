// The base of all languages: walks a kernel, names its values, writes statements and operators.
#pragma once

#include <optional>
#include <string>

#include "emit/text/dialect.h"
#include "kir/uniformity.h"

namespace tern::emit {

class Writer {
 public:
  Writer(const Dialect& dialect, const kir::Kernel& kernel);
  virtual ~Writer() = default;
  Result<std::string> write();

  const kir::Kernel& kernel() const { return k_; }
  const std::string& entry() const { return entry_; }
  // The type in which a binding is declared: that of its views where they agree, else words.
  kir::View storage(uint32_t binding) const;
  std::string type(kir::Type t) const;
  // A pointer into a binding: to `type`, a word of the language.
  std::string pointer_to(uint32_t binding, std::string_view type) const;
  std::string number(kir::Type type, uint64_t bits) const { return d_.number(type, bits); }
  bool uses(kir::Op op) const;
  bool uses(kir::Type type) const;
  bool uses_subgroups() const;  // reductions over them, or what a lane knows about its own

 protected:
  using Op = kir::Op;
  using Node = kir::Node;
  using Ref = kir::Ref;
  using Type = kir::Type;

  virtual void statement(Ref r);
  void block(uint32_t index);
  void line(const std::string& text);
  void open(const std::string& text);
  void close();
  void refuse(Ref r, std::string_view why);
  std::string name(Ref r) const { return "v" + std::to_string(r); }
  const Node& at(Ref r) const { return k_.nodes[r]; }
  // A node as an operand: its name, a leaf's word or a constant.
  std::string value(Ref r) const;
  void declare(Ref r, const std::string& text);
  const OpRow* row(Op op, Type of) const;

  // The expression of a pure op over operands that are written already.
  std::string pure(Ref r, const std::string& a, const std::string& b, const std::string& c);
  // What differs where operands are vectors.
  virtual std::string typed(Type t) const { return type(t); }
  virtual std::string constant(Type t, uint64_t bits) const { return number(t, bits); }
  virtual std::string cast(Type to, Type from, const std::string& a) const;
  virtual std::string select(Type t, const std::string& a, const std::string& b, const std::string& c) const;
  virtual std::string reinterpret(Type to, Type from, const std::string& a) const;
  virtual std::string compare(std::string_view op, Type of, const std::string& a, const std::string& b) const;
  virtual std::string logic(Op op, const std::string& a, const std::string& b) const;

  // An element of a view at an index, and what stores into it; the pointer is moved by what is equal in all lanes.
  std::string loaded(const Node& n) const;
  std::string stored(const Node& n) const;

  const Dialect& d_;
  const kir::Kernel& k_;
  const kir::Uniformity uniform_;  // of addresses: what a load at one address gives is one value
  std::string entry_, text_;
  int depth_ = 1;

 private:
  struct Place {
    std::string pointer, index;
  };
  Place place(const Node& n, std::string_view type) const;
  std::string parts(const kir::View& view, const Place& at) const;
  void split(Ref index, std::string& same, std::string& own) const;
  std::string integer(Ref r, const std::string& a, const std::string& b);
  void memory(Ref r);
  void variable(Ref r);
  std::optional<Error> error_;
};

kir::Type unsigned_twin(kir::Type t);
// The C family's numbers: 9 or 17 digits, infinities and NaN from their bits.
std::string c_number(kir::Type type, uint64_t bits);

}  // namespace tern::emit
