#include "base/platform/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "unit/temp_folder.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public testing::Test {
 protected:
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  const TempFolder own_;
  const fs::path folder_ = own_.file("");
};

TEST_F(ReplaceFile, writes_all_parts_and_takes_the_place_of_what_was_there) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(replace_file(path.string(), "old and longer than what follows"));
  const std::string first = "one ", second, third = "three";
  std::vector<std::span<const std::byte>> parts;
  for (const std::string* s : {&first, &second, &third}) parts.push_back(std::as_bytes(std::span(*s)));
  ASSERT_TRUE(replace_file(path.string(), parts));
  EXPECT_EQ(text_of(path), "one three");
  ASSERT_TRUE(replace_file(path.string(), ""));
  EXPECT_EQ(text_of(path), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFile, names_the_file_and_leaves_nothing_where_it_cannot_write) {
  const std::string nowhere = (folder_ / "no" / "such" / "a").string();
  const Status missing = replace_file(nowhere, "text");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::io);
  EXPECT_NE(missing.error().text.find(nowhere), std::string::npos) << missing.error().text;

  const fs::path taken = folder_ / "taken";  // a folder that is not empty cannot be replaced
  fs::create_directories(taken / "inside");
  EXPECT_FALSE(replace_file(taken.string(), "text"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ReplaceFile, keeps_links_and_permissions) {
  const fs::path path = folder_ / "a", link = folder_ / "link", dangling = folder_ / "dangling";
  ASSERT_TRUE(replace_file(path.string(), "old"));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a", link);
  ASSERT_TRUE(replace_file(link.string(), "new"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("made", dangling);
  ASSERT_TRUE(replace_file(dangling.string(), "through"));
  EXPECT_TRUE(fs::is_symlink(dangling));
  EXPECT_EQ(text_of(folder_ / "made"), "through");
  EXPECT_EQ(files(), 4u);
}

TEST_F(ReplaceFile, takes_names_of_any_legal_length) {
  const fs::path path = folder_ / std::string(255, 'n');
  ASSERT_TRUE(replace_file(path.string(), "text"));
  EXPECT_EQ(text_of(path), "text");
}

TEST_F(ReplaceFile, writes_to_what_is_no_file) {
  EXPECT_TRUE(replace_file("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(replace_file("/dev/full", std::string(100'000, 'x')));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(replace_file(pipe.string(), "text"));  // nobody reads
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(replace_file(pipe.string(), "text"));
  char buffer[16] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 4);
  ::close(reader);
  EXPECT_STREQ(buffer, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(ReplaceFile, readers_and_rivals_see_whole_files) {
  const fs::path path = folder_ / "a";
  const auto writer = [&](char c) {
    const std::string text(100'000, c);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(replace_file(path.string(), text));
  };
  ASSERT_TRUE(replace_file(path.string(), std::string(100'000, 'x')));
  std::thread a(writer, 'a'), b(writer, 'b');
  for (int i = 0; i < 40; ++i) {
    const std::string text = text_of(path);
    ASSERT_EQ(text.size(), 100'000u);
    EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  }
  a.join(), b.join();
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace tern
