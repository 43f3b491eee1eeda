// Reading certificates and keys, with errors that name the file.
#include "tls/server_identity.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"

namespace cairn::tls {

namespace {

constexpr size_t kFileBytesMax = 1 << 20;

template <auto free>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bytes = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;

Bytes bytes_of(std::string_view text) {
  Bytes bytes(BIO_new_mem_buf(text.data(), int(text.size())));
  CHECK(bytes != nullptr);
  return bytes;
}

// Nobody is asked at a terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

// What went wrong last, in OpenSSL's words.
std::string_view reason() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  return text == nullptr ? "no reason" : text;
}

std::string date_of(const ASN1_TIME* time) {
  std::tm date = {};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "a time that is none";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday, date.tm_hour, date.tm_min);
}

// X509_cmp_current_time() is -1 or 1, and 0 where the time cannot be read.
Status check_dates(const std::string& path, const X509* certificate) {
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(end) <= 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a certificate that is valid, found one that has expired at {}", path,
                date_of(end));
  }
  if (X509_cmp_current_time(begin) >= 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a certificate that is valid, found one that will be from {} on", path,
                date_of(begin));
  }
  return Ok{};
}

Error refused(const std::string& path) {
  return fail(ErrorCode::invalid_argument, "{}: cannot be used: {}", path, reason());
}

// The chain goes into `context`; its first one is returned.
Result<Certificate> use_chain(SSL_CTX* context, const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kFileBytesMax));
  const Bytes bytes = bytes_of(text);
  Certificate first(PEM_read_bio_X509(bytes.get(), nullptr, no_password, nullptr));
  if (first == nullptr) {
    return fail(ErrorCode::invalid_argument, "{}: expected a certificate in PEM, found none", path);
  }
  CAIRN_TRY(check_dates(path, first.get()));
  if (SSL_CTX_use_certificate(context, first.get()) != 1) return refused(path);
  for (;;) {
    Certificate next(PEM_read_bio_X509(bytes.get(), nullptr, no_password, nullptr));
    if (next == nullptr) break;
    CAIRN_TRY(check_dates(path, next.get()));
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return refused(path);
  }
  // The end of the file is told as an error too.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return refused(path);
  return first;
}

Status use_key(SSL_CTX* context, const std::string& path, const X509* certificate,
               const std::string& certificate_path) {
  CAIRN_TRY(const std::string text, read_file(path, kFileBytesMax));
  struct stat found = {};
  if (::stat(path.c_str(), &found) == 0 && (found.st_mode & 07) != 0) {
    log::warning("{}: others may read this key (chmod 600)", path);
  }
  const Bytes bytes = bytes_of(text);
  const Key key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, no_password, nullptr));
  if (key == nullptr) {
    const bool has_password = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_BAD_PASSWORD_READ ||
                              text.find("ENCRYPTED") != std::string::npos;
    return fail(ErrorCode::invalid_argument, "{}: expected a private key in PEM, found {}", path,
                has_password ? "one with a password" : "none");
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected the key of the certificate in {}, found another one's", path,
                certificate_path);
  }
  return SSL_CTX_use_PrivateKey(context, key.get()) == 1 ? Status(Ok{}) : refused(path);
}

}  // namespace

Result<std::shared_ptr<const ServerIdentity>> ServerIdentity::read(
    const std::string& certificate_path, const std::string& key_path) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  CHECK(context != nullptr);
  const std::shared_ptr<const ServerIdentity> identity(new ServerIdentity(context));
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
  // Of TLS 1.2; those of 1.3 are all like this.
  CHECK(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  CAIRN_TRY(const Certificate certificate, use_chain(context, certificate_path));
  CAIRN_TRY(use_key(context, key_path, certificate.get(), certificate_path));
  ERR_clear_error();
  return identity;
}

ServerIdentity::~ServerIdentity() {
  SSL_CTX_free(context_);
}

ssl_st* ServerIdentity::new_session() const {
  return SSL_new(context_);
}

}  // namespace cairn::tls
