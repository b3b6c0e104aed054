// Who touched which word: the race detector's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tern::kir {

// One access: a lane of a group between two barriers. Epochs are numbered over the whole run.
struct Toucher {
  uint32_t group, lane, epoch;
};

class Shadow {
 public:
  explicit Shadow(uint64_t units) : pages_((units + kPage - 1) / kPage) {}

  // Empty, or what is wrong.
  std::string read(uint64_t unit, const Toucher& by) {
    Cell& c = cell(unit);
    if (c.write.lane != kNobody) {
      if (c.write.group != by.group)
        return "group " + std::to_string(by.group) + " reads what group " + std::to_string(c.write.group) + " wrote";
      if (c.write.epoch == by.epoch && c.write.lane != by.lane) return clash("reads what", by, "wrote", c.write.lane);
    }
    if (c.read.lane != kNobody && c.read.group != by.group)
      c.read.group = kMany;
    else
      c.read.group = by.group;
    c.read.lane = c.read.epoch == by.epoch && c.read.lane != kNobody && c.read.lane != by.lane ? kMany : by.lane;
    c.read.epoch = by.epoch;
    return {};
  }

  std::string write(uint64_t unit, const Toucher& by) {
    Cell& c = cell(unit);
    if (c.write.lane != kNobody) {
      if (c.write.group != by.group)
        return "groups " + std::to_string(c.write.group) + " and " + std::to_string(by.group) + " both write";
      if (c.write.epoch == by.epoch && c.write.lane != by.lane) return clash("writes what", by, "wrote", c.write.lane);
    }
    if (c.read.lane != kNobody) {
      if (c.read.group != by.group) return "group " + std::to_string(by.group) + " writes what another group read";
      if (c.read.epoch == by.epoch && c.read.lane != by.lane) return clash("writes what", by, "read", c.read.lane);
    }
    c.write = by;
    return {};
  }

  // Whether this group wrote the unit before.
  bool written(uint64_t unit, uint32_t group) {
    const Cell& c = cell(unit);
    return c.write.lane != kNobody && c.write.group == group;
  }
  void clear() {
    for (auto& page : pages_) page.reset();
  }

 private:
  static constexpr uint32_t kNobody = 0xffffffffu, kMany = 0xfffffffeu;
  static constexpr uint64_t kPage = 1024;
  struct Cell {
    Toucher write{0, kNobody, 0}, read{0, kNobody, 0};
  };

  Cell& cell(uint64_t unit) {
    auto& page = pages_[unit / kPage];
    if (!page) page = std::make_unique<Cell[]>(kPage);
    return page[unit % kPage];
  }
  static std::string clash(const char* does, const Toucher& by, const char* did, uint32_t other) {
    return "lane " + std::to_string(by.lane) + " " + does + " " +
           (other == kMany ? "other lanes" : "lane " + std::to_string(other)) + " " + did + " with no barrier between";
  }

  std::vector<std::unique_ptr<Cell[]>> pages_;
};

}  // namespace tern::kir
