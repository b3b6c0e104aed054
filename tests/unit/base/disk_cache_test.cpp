#include "base/cache/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "unit/temp_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  fs::path entry() const { return folder_ / key_.hex(); }

  const TempFolder own_;
  const fs::path folder_ = own_.file("");
  const DiskCache cache_{folder_.string()};
  const Hash key_{1, 2};
  const std::vector<std::byte> data_ = std::vector<std::byte>(1000, std::byte{7});
};

TEST_F(DiskCacheTest, gives_back_what_was_stored) {
  EXPECT_FALSE(cache_.find(key_));
  cache_.store(key_, data_);
  EXPECT_EQ(cache_.find(key_), data_);
  cache_.store(key_, {});
  EXPECT_EQ(cache_.find(key_), std::vector<std::byte>());
  EXPECT_FALSE(DiskCache("").find(key_));
}

TEST_F(DiskCacheTest, removes_damage) {
  cache_.store(key_, data_);
  fs::copy_file(entry(), folder_ / Hash{3, 4}.hex());
  EXPECT_FALSE(cache_.find({3, 4}));  // another's
  for (const size_t size : {size_t{0}, size_t{5}, size_t{40}, size_t{1000}}) {
    cache_.store(key_, data_);
    fs::resize_file(entry(), size);
    EXPECT_FALSE(cache_.find(key_)) << size;
    EXPECT_FALSE(fs::exists(entry())) << size;
  }
  // A header that asks for more than there is memory, over a file with a hole of that size.
  cache_.store(key_, data_);
  fs::resize_file(entry(), uint64_t{64} << 30);
  EXPECT_FALSE(cache_.find(key_));
}

TEST_F(DiskCacheTest, waits_for_nobody) {
  ASSERT_EQ(mkfifo(entry().c_str(), 0600), 0);
  EXPECT_FALSE(cache_.find(key_));
  cache_.store(key_, data_);
  EXPECT_EQ(cache_.find(key_), data_);
}

}  // namespace
}  // namespace tern
