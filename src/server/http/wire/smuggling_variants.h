// Requests whose end two readers could see in different places, for tests of this server alone and
// behind proxies. Knows nothing of either.
#pragma once
#include <string>
#include <vector>

namespace gauntlet::server::inline http {

struct SmugglingVariant {
  const char* name;
  std::string request;
};

/// A request line and a host, then these fields, and a body. The path is one that reads its body.
inline std::string smuggled_post(const std::string& fields, const std::string& body = "0\r\n\r\n") {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}
/// By its length the body holds a request; by this coding the body ends before it.
inline std::string smuggled_in_length(const std::string& coding) {
  const std::string body = "0\r\n\r\nGET /inner HTTP/1.1\r\nHost: localhost\r\n\r\n";
  return smuggled_post("Content-Length: " + std::to_string(body.size()) + "\r\n" + coding, body);
}
/// By this coding the body holds a request; by its length the body ends before it.
inline std::string smuggled_in_chunk(const std::string& coding) {
  return smuggled_post(coding + "Content-Length: 4\r\n",
                       "28\r\nGET /inner HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n0\r\n\r\n");
}
inline std::string smuggled_chunks(const std::string& body) {
  return smuggled_post("Transfer-Encoding: chunked\r\n", body);
}

inline const std::vector<SmugglingVariant>& smuggling_variants() {
  const auto post = [](const std::string& fields) { return smuggled_post(fields); };
  const auto chunks = smuggled_chunks;
  static const std::vector<SmugglingVariant> kVariants = {
      {"length_and_chunks", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")},
      {"chunks_and_length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")},
      {"length_of_nothing_and_chunks", post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")},
      {"two_lengths_that_differ", post("Content-Length: 5\r\nContent-Length: 0\r\n")},
      {"two_lengths_alike", post("Content-Length: 5\r\nContent-Length: 5\r\n")},
      {"list_of_lengths", post("Content-Length: 5, 5\r\n")},
      {"list_of_lengths_that_differ", post("Content-Length: 0, 5\r\n")},
      {"negative_length", post("Content-Length: -5\r\n")},
      {"length_with_plus", post("Content-Length: +5\r\n")},
      {"length_in_hexadecimal", post("Content-Length: 0x5\r\n")},
      {"length_with_fraction", post("Content-Length: 5.0\r\n")},
      {"length_with_words", post("Content-Length: 5 bytes\r\n")},
      {"length_with_inner_space", post("Content-Length: 0 5\r\n")},
      {"length_of_no_digits", post("Content-Length: \r\n")},
      {"length_too_long_for_64_bits", post("Content-Length: 99999999999999999999\r\n")},
      {"length_that_wraps", post("Content-Length: 18446744073709551621\r\n")},
      {"length_before_a_spaced_colon", post("Content-Length : 5\r\n")},
      {"length_before_a_tabbed_colon", post("Content-Length\t: 5\r\n")},
      {"unknown_coding", post("Transfer-Encoding: xchunked\r\n")},
      {"unknown_coding_alone", post("Transfer-Encoding: gzip\r\n")},
      {"identity", post("Transfer-Encoding: identity\r\n")},
      {"no_coding", post("Transfer-Encoding: \r\n")},
      {"coding_after_chunked", post("Transfer-Encoding: chunked, identity\r\n")},
      {"coding_before_chunked", post("Transfer-Encoding: gzip, chunked\r\n")},
      {"chunked_twice_in_a_list", post("Transfer-Encoding: chunked, chunked\r\n")},
      {"chunked_twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
      {"chunked_and_another", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n")},
      {"chunked_with_parameter", post("Transfer-Encoding: chunked;a=b\r\n")},
      {"chunked_in_quotes", post("Transfer-Encoding: \"chunked\"\r\n")},
      {"chunked_after_vertical_tab", post("Transfer-Encoding: \vchunked\r\n")},
      {"chunked_before_a_spaced_colon", post("Transfer-Encoding : chunked\r\n")},
      {"chunked_folded", post("Transfer-Encoding:\r\n chunked\r\n")},
      {"folded_field", post("X: a\r\n b\r\nContent-Length: 5\r\n")},
      {"folded_with_tab", post("X: a\r\n\tTransfer-Encoding: chunked\r\n")},
      {"field_of_space", post(" Content-Length: 5\r\n")},
      {"bare_line_feed_in_head", post("X: a\nContent-Length: 5\r\n")},
      {"bare_return_in_head", post("X: a\rContent-Length: 5\r\n")},
      {"null_in_value", post(std::string("X: a\0b\r\n", 8))},
      {"null_in_name", post(std::string("X\0: a\r\n", 7))},
      {"field_without_colon", post("Content-Length 5\r\n")},
      {"field_without_name", post(": 5\r\n")},
      {"chunks_in_http_1_0",
       "POST /first HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"no_host", "GET /first HTTP/1.1\r\n\r\n"},
      {"two_hosts", "GET /first HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"},
      {"empty_host", "GET /first HTTP/1.1\r\nHost: \r\n\r\n"},
      {"list_of_hosts", "GET /first HTTP/1.1\r\nHost: localhost, evil\r\n\r\n"},
      {"host_with_user", "GET /first HTTP/1.1\r\nHost: a@localhost\r\n\r\n"},
      {"host_with_path", "GET /first HTTP/1.1\r\nHost: localhost/x\r\n\r\n"},
      {"two_keys", post("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")},
      {"bare_line_feeds", "GET /first HTTP/1.1\nHost: localhost\n\n"},
      {"space_before_method", " GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"two_spaces", "GET  /first HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"space_in_target", "GET /first HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"tabs", "GET\t/first\tHTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"no_version", "GET /first\r\nHost: localhost\r\n\r\n"},
      {"version_in_small_letters", "GET /first http/1.1\r\nHost: localhost\r\n\r\n"},
      {"version_with_space_after", "GET /first HTTP/1.1 \r\nHost: localhost\r\n\r\n"},
      {"version_of_many_digits", "GET /first HTTP/1.10\r\nHost: localhost\r\n\r\n"},
      {"authority_as_target", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"another_scheme", "GET ftp://localhost/first HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"folded_first_field", "GET /first HTTP/1.1\r\n Host: localhost\r\n\r\n"},
      {"chunk_size_with_plus", chunks("+1\r\na\r\n0\r\n\r\n")},
      {"chunk_size_with_minus", chunks("-1\r\na\r\n0\r\n\r\n")},
      {"chunk_size_with_prefix", chunks("0x1\r\na\r\n0\r\n\r\n")},
      {"chunk_size_with_space_before", chunks(" 1\r\na\r\n0\r\n\r\n")},
      {"chunk_size_with_space_after", chunks("1 \r\na\r\n0\r\n\r\n")},
      {"chunk_size_of_no_digits", chunks("\r\na\r\n0\r\n\r\n")},
      {"chunk_size_that_wraps", chunks("10000000000000001\r\na\r\n0\r\n\r\n")},
      {"chunk_size_ended_by_line_feed", chunks("1\na\r\n0\r\n\r\n")},
      {"chunk_size_ended_by_return", chunks("1\ra\r\n0\r\n\r\n")},
      {"line_feed_in_chunk_extension", chunks("1;a\nb\r\na\r\n0\r\n\r\n")},
      {"return_in_chunk_extension", chunks("1;a\rb\r\na\r\n0\r\n\r\n")},
      {"chunk_longer_than_said", chunks("1\r\nab\r\n0\r\n\r\n")},
      {"chunk_ended_by_line_feed", chunks("1\r\na\n0\r\n\r\n")},
      {"last_chunk_ended_by_line_feed", chunks("0\n\n")},
      {"trailer_ended_by_line_feed", chunks("0\r\nA: b\n\r\n")},
      {"trailer_without_colon", chunks("0\r\nGET /third HTTP/1.1\r\n\r\n")},
      {"length_over_request_and_chunked", smuggled_in_length("Transfer-Encoding: chunked\r\n")},
      {"length_over_request_and_large_letters",
       smuggled_in_length("Transfer-Encoding: CHUNKED\r\n")},
      {"length_over_request_and_unknown", smuggled_in_length("Transfer-Encoding: xchunked\r\n")},
      {"length_over_request_and_list",
       smuggled_in_length("Transfer-Encoding: chunked, identity\r\n")},
      {"length_over_request_and_spaced", smuggled_in_length("Transfer-Encoding : chunked\r\n")},
      {"length_over_request_and_folded", smuggled_in_length("Transfer-Encoding:\r\n chunked\r\n")},
      {"length_over_request_and_line_feed",
       smuggled_in_length("X: a\nTransfer-Encoding: chunked\r\n")},
      {"chunk_over_request_and_length", smuggled_in_chunk("Transfer-Encoding: chunked\r\n")},
      {"chunk_over_request_after_tab", smuggled_in_chunk("Transfer-Encoding:\tchunked\r\n")},
      {"chunk_over_request_twice",
       smuggled_in_chunk("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")},
      {"trailer_folded", chunks("0\r\nA: b\r\n c\r\n\r\n")},
  };
  return kVariants;
}

}  // namespace gauntlet::server::inline http
