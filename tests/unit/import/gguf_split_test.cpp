// Split models: all parts of one, and every way in which they may not belong together.
#include <gtest/gtest.h>
#include <unistd.h>

#include "gguf_builder.h"
#include "tern/import/model_file.h"

namespace tern {
namespace {

bool mentions(const Error& error, std::string_view text) { return error.message().find(text) != std::string::npos; }

GgufBuilder part(uint16_t no, uint16_t count, int32_t tensors) {
  GgufBuilder b;
  if (no == 0) b.text("general.name", "whole");
  b.scalar(std::string("split.no"), 2, no).scalar("split.count", 2, count).scalar("split.tensors.count", 5, tensors);
  return b;
}
std::string name(int i, int count) {
  return "m-0000" + std::to_string(i) + "-of-0000" + std::to_string(count) + ".gguf";
}

struct Three {
  TempFolder folder;
  std::string paths[3];
  explicit Three(const std::string& last_tensor = "c", int32_t tensors = 3, uint16_t last_no = 2,
                 uint16_t last_count = 3) {
    paths[0] = folder.write(name(1, 3), part(0, 3, tensors).tensor("a", {2}, 0, "aaaaaaaa").build());
    paths[1] = folder.write(name(2, 3), part(1, 3, tensors).tensor("b", {2}, 0, "bbbbbbbb").build());
    paths[2] =
        folder.write(name(3, 3), part(last_no, last_count, tensors).tensor(last_tensor, {2}, 0, "cccccccc").build());
  }
};

TEST(GgufSplit, OpensByAnyPart) {
  Three three;
  for (const std::string& path : three.paths) {
    auto file = open_model_file(path);
    ASSERT_TRUE(file.ok()) << file.error().message();
    const ModelFile& m = **file;
    EXPECT_EQ(*m.metadata().string("general.name"), "whole");
    ASSERT_EQ(m.weights().size(), 3u);
    for (const char* n : {"a", "b", "c"}) EXPECT_EQ((*m.planes(*m.find(n))).p[0][7], std::byte(n[0]));
    EXPECT_NE(m.find("c")->where.find(name(3, 3)), std::string::npos);
    EXPECT_EQ(m.list_tensors()[1].file, three.paths[1]);
  }
}

TEST(GgufSplit, AMissingPartIsNamed) {
  Three three;
  ::unlink(three.paths[1].c_str());
  auto file = open_model_file(three.paths[0]);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, Code::not_found);
  EXPECT_TRUE(mentions(file.error(), "part 2")) << file.error().message();
  EXPECT_TRUE(mentions(file.error(), name(2, 3)));
}

TEST(GgufSplit, PartsMustBelongTogether) {
  const auto refused = [](Three three, std::string_view text) {
    auto file = open_model_file(three.paths[0]);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::malformed);
    EXPECT_TRUE(mentions(file.error(), text)) << file.error().message();
  };
  refused(Three("a"), "tensor a is a duplicate");
  refused(Three("c", 4), "split.tensors.count is 4");
  refused(Three("c", 3, 1), "split.no is 1");
  refused(Three("c", 3, 2, 4), "split.count is 4");
}

TEST(GgufSplit, LimitsAndNames) {
  Three three;
  auto limited = open_model_file(three.paths[0], {.parts = 2});
  ASSERT_FALSE(limited.ok());
  EXPECT_EQ(limited.error().code, Code::limit);
  auto renamed = open_model_file(three.folder.write("renamed.gguf", part(0, 3, 3).build()));
  ASSERT_FALSE(renamed.ok());
  EXPECT_TRUE(mentions(renamed.error(), "-00001-of-00003.gguf")) << renamed.error().message();
  auto past = open_model_file(three.folder.write("past.gguf", part(3, 3, 3).build()));
  EXPECT_TRUE(mentions(past.error(), "split.no is 3 of 3"));
  EXPECT_TRUE(open_model_file(three.folder.write("one.gguf", part(0, 1, 0).build())).ok());
}

}  // namespace
}  // namespace tern
