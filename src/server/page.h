// The web page at / and what it loads: files of web/, put into the binary.
#pragma once
#include <memory>
#include <string_view>

#include "server/http/http.h"

namespace gauntlet::server {

struct PageFile {
  std::string_view path;
  const char* content_type;
  std::string_view (*content)();
};

/// Null where the page has no such file.
const PageFile* find_page_file(std::string_view path);
std::shared_ptr<Reply> make_reply(const PageFile& file);

}  // namespace gauntlet::server
