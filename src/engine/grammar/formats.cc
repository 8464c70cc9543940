#include "engine/grammar/formats.h"

#include <array>
#include <utility>

namespace gauntlet::engine::grammar {
namespace {

// Dates are those of the calendar, leap years included; there is no 61st second.
#define GAUNTLET_DATE                                                                         \
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]" \
  "[0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:"   \
  "[02468][048]|[13579][26])00)-02-29)"
#define GAUNTLET_TIME                                                                          \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):" \
  "[0-5][0-9])"
#define GAUNTLET_OCTET "(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
#define GAUNTLET_IPV4 GAUNTLET_OCTET "(?:\\." GAUNTLET_OCTET "){3}"
// No two dashes in a row: what begins with "xn--" would have to be punycode.
#define GAUNTLET_LABEL "[A-Za-z0-9]{1,24}(?:-[A-Za-z0-9]{1,24})?"
// The last label begins with a letter, so that nobody takes the name for an address.
#define GAUNTLET_HOST \
  "(?:" GAUNTLET_LABEL "\\.){0,4}[A-Za-z][A-Za-z0-9]{0,24}(?:-[A-Za-z0-9]{1,24})?"
#define GAUNTLET_PATH "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define GAUNTLET_HEX4 "[0-9a-fA-F]{1,4}"
#define GAUNTLET_AFTER "(?::" GAUNTLET_HEX4 ")"
#define GAUNTLET_NUMBER "[0-9]{1,9}"
#define GAUNTLET_CLOCK                                                                          \
  "T(?:" GAUNTLET_NUMBER "H(?:" GAUNTLET_NUMBER "M(?:" GAUNTLET_NUMBER "S)?)?|" GAUNTLET_NUMBER \
  "M(?:" GAUNTLET_NUMBER "S)?|" GAUNTLET_NUMBER "S)"

constexpr std::array kFormats = std::to_array<std::pair<std::string_view, const char*>>({
    {"date", "^" GAUNTLET_DATE "$"},
    {"time", "^" GAUNTLET_TIME "$"},
    {"date-time", "^" GAUNTLET_DATE "T" GAUNTLET_TIME "$"},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
    {"email",
     "^[A-Za-z0-9!#$%&'*+/=?\\^_`\\{|\\}~-]{1,32}(?:\\.[A-Za-z0-9!#$%&'*+/=?\\^_`\\{|\\}~-]{1,31})?"
     "@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?\\.){1,3}[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}"
     "[A-Za-z0-9])?$"},
    {"hostname", "^" GAUNTLET_HOST "$"},
    {"ipv4", "^" GAUNTLET_IPV4 "$"},
    {"ipv6",
     "^(?:(?:" GAUNTLET_HEX4 ":){7}" GAUNTLET_HEX4 "|" GAUNTLET_HEX4 "(?:(?::" GAUNTLET_HEX4
     "){0,5}::|" GAUNTLET_AFTER "{0,4}:" GAUNTLET_AFTER "|" GAUNTLET_AFTER "{0,3}:" GAUNTLET_AFTER
     "{2}|" GAUNTLET_AFTER "{0,2}:" GAUNTLET_AFTER "{3}|" GAUNTLET_AFTER "{0,1}:" GAUNTLET_AFTER
     "{4}|:" GAUNTLET_AFTER "{5})|:" GAUNTLET_AFTER "{1,7}|::|::ffff:" GAUNTLET_IPV4 ")$"},
    {"uri", "^(?:https?|ftp|wss?)://" GAUNTLET_HOST "(?::[1-9][0-9]{0,3})?(?:/" GAUNTLET_PATH
            "*)*(?:\\?(?:" GAUNTLET_PATH "|[/?])*)?(?:#(?:" GAUNTLET_PATH "|[/?])*)?$"},
    {"duration", "^P(?:" GAUNTLET_NUMBER "W|(?:" GAUNTLET_NUMBER "Y(?:" GAUNTLET_NUMBER
                 "M(?:" GAUNTLET_NUMBER "D)?)?|" GAUNTLET_NUMBER "M(?:" GAUNTLET_NUMBER
                 "D)?|" GAUNTLET_NUMBER "D)(?:" GAUNTLET_CLOCK ")?|" GAUNTLET_CLOCK ")$"},
});

}  // namespace

const char* pattern_of_format(std::string_view format) {
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return pattern;
  return nullptr;
}

bool is_number_storage(std::string_view format) {
  return format == "int32" || format == "int64" || format == "float" || format == "double";
}

}  // namespace gauntlet::engine::grammar
