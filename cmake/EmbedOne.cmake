# Script half of Embed.cmake: writes one file as a byte array.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <string_view>
namespace gauntlet::embedded {
static const unsigned char bytes[] = {${bytes}0};
std::string_view ${SYMBOL}() {
  return {reinterpret_cast<const char*>(bytes), sizeof(bytes) - 1};
}
}
")
