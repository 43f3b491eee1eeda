// The checks are OpenSSL's; here they are switched on, and their failures put into words.
#include "tls/server_trust.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/printable.h"

namespace cairn::tls {

namespace {

constexpr size_t kFileBytesMax = size_t(8) << 20;

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

std::string date_of(const ASN1_TIME* time) {
  std::tm date = {};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "a time that is none";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday, date.tm_hour, date.tm_min);
}

std::string text_of(const X509_NAME* name) {
  BIO* const bytes = BIO_new(BIO_s_mem());
  CHECK(bytes != nullptr);
  X509_NAME_print_ex(bytes, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  const char* data = nullptr;
  const long size = BIO_get_mem_data(bytes, &data);
  std::string text = printable(std::string_view(data, size_t(std::max(size, 0L))));
  BIO_free(bytes);
  return text;
}

std::string text_of(const ASN1_STRING* text) {
  const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return printable(std::string_view(bytes, size_t(ASN1_STRING_length(text))));
}

std::string address_of(const ASN1_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  const bool is_one = family == AF_INET || ASN1_STRING_length(bytes) == 16;
  if (is_one) ::inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

// The names and addresses that a certificate is for.
std::string names_of(const X509* certificate) {
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string text;
  for (int index = 0; index < sk_GENERAL_NAME_num(names); ++index) {
    int kind = 0;
    const void* const value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), &kind);
    if (kind != GEN_DNS && kind != GEN_IPADD) continue;
    const auto* const bytes = static_cast<const ASN1_STRING*>(value);
    text += text.empty() ? "" : ", ";
    text += kind == GEN_DNS ? text_of(bytes) : address_of(bytes);
  }
  GENERAL_NAMES_free(names);
  return text.empty() ? "no name" : text;
}

// The first failure of a connection's check, as it is found: later the certificate is gone.
int refusal_slot() {
  static const int slot = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* kept, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(kept);
      });
  return slot;
}

std::string words_for(int code, X509* certificate) {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("expected a certificate that is valid, found one that has expired at {}",
                         date_of(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("expected a certificate that is valid, found one that will be from {} on",
                         date_of(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("expected a certificate for it, found one for {}", names_of(certificate));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return fmt::format("expected a certificate of a known authority, found one of \"{}\"",
                         text_of(X509_get_issuer_name(certificate)));
    default:
      return fmt::format("expected a certificate that can be believed, found: {}",
                         X509_verify_cert_error_string(code));
  }
}

// Changes nothing of what is decided.
int note_refusal(int is_believed, X509_STORE_CTX* check) {
  auto* const session =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (is_believed == 1 || SSL_get_ex_data(session, refusal_slot()) != nullptr) return is_believed;
  X509* const certificate = X509_STORE_CTX_get_current_cert(check);
  const int code = X509_STORE_CTX_get_error(check);
  auto* const words = new std::string(certificate == nullptr ? X509_verify_cert_error_string(code)
                                                             : words_for(code, certificate));
  if (SSL_set_ex_data(session, refusal_slot(), words) != 1) delete words;
  return is_believed;
}

// Adds the certificates of a file; how many.
Result<int> add_authorities(SSL_CTX* context, const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kFileBytesMax));
  BIO* const bytes = BIO_new_mem_buf(text.data(), int(text.size()));
  CHECK(bytes != nullptr);
  int count = 0;
  while (X509* const certificate = PEM_read_bio_X509(bytes, nullptr, nullptr, nullptr)) {
    const bool is_added = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1;
    X509_free(certificate);
    if (!is_added) break;
    ++count;
  }
  BIO_free(bytes);
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (is_end) return count;
  return fail(ErrorCode::invalid_data, "{}: certificate {} cannot be read", path, count + 1);
}

}  // namespace

Result<std::shared_ptr<const ServerTrust>> ServerTrust::read(const std::string& authority_path) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  CHECK(context != nullptr);
  const std::shared_ptr<const ServerTrust> trust(new ServerTrust(context, authority_path));
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, note_refusal);
  // Whom a file names is believed, an authority or a server.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  if (authority_path.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return trust;
  }
  CAIRN_TRY(const int count, add_authorities(context, authority_path));
  if (count > 0) return trust;
  return fail(ErrorCode::invalid_argument, "{}: expected a certificate in PEM, found none",
              authority_path);
}

ServerTrust::~ServerTrust() {
  SSL_CTX_free(context_);
}

// A name in the certificate's subject is no longer one of a server (RFC 9525).
ssl_st* ServerTrust::new_session(const std::string& host) const {
  SSL* const session = SSL_new(context_);
  if (session == nullptr) return nullptr;
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session);
  X509_VERIFY_PARAM_set_hostflags(
      wanted, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool is_set = is_address(host)
                          ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1
                          : X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0) == 1 &&
                                SSL_set_tlsext_host_name(session, host.c_str()) == 1;
  if (is_set) return session;
  SSL_free(session);
  return nullptr;
}

Status ServerTrust::refusal(ssl_st* session, const std::string& host) const {
  const auto* const words = static_cast<std::string*>(SSL_get_ex_data(session, refusal_slot()));
  if (words == nullptr) return Ok{};
  const long code = SSL_get_verify_result(session);
  const bool is_unknown = words->find("known authority") != std::string::npos;
  std::string_view hint;
  if (is_unknown && authority_path_.empty()) hint = "; --cacert FILE names one of your own";
  return fail(ErrorCode::invalid_data, "{}: {}{} ({})", host, *words, hint,
              X509_verify_cert_error_string(code));
}

}  // namespace cairn::tls
