// Certificates for tests, made on the spot, and a client that speaks TLS over a bare socket.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tests/serve/bare_client.h"

namespace cairn::serve {

struct Pair {
  std::string certificate, key;  // Paths.
};

struct CertificateTerms {
  int begin_days = -1, end_days = 1;  // From now on.
  int serial = 1;
  bool is_rsa = false;
  const char* password = nullptr;
  std::string names = {};           // "DNS:localhost,IP:127.0.0.1"; empty: none but the subject's.
  const Pair* authority = nullptr;  // Who signs it; null: itself.
  bool is_authority = false;
};

inline void add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  ASSERT_NE(made, nullptr) << value;
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

// With the authority's name and key.
inline void sign_by(const Pair& authority, X509* certificate) {
  FILE* file = std::fopen(authority.certificate.c_str(), "r");
  ASSERT_NE(file, nullptr);
  X509* const other = PEM_read_X509(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(authority.key.c_str(), "r");
  ASSERT_NE(file, nullptr);
  EVP_PKEY* const key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  X509_set_issuer_name(certificate, X509_get_subject_name(other));
  EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  EVP_PKEY_free(key);
  X509_free(other);
}

inline void write_private(const std::string& path, EVP_PKEY* key, const char* password) {
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(PEM_write_PrivateKey(file, key, password ? EVP_aes_128_cbc() : nullptr, nullptr, 0,
                                 nullptr, const_cast<char*>(password)),
            1);
  std::fclose(file);
  ::chmod(path.c_str(), 0600);
}

// For localhost by its subject. REQUIRES: `folder` is there.
inline Pair make_pair_in(const std::filesystem::path& folder, const std::string& name,
                         const CertificateTerms& terms = {}) {
  const Pair pair{(folder / (name + ".crt")).string(), (folder / (name + ".key")).string()};
  EVP_PKEY* const key = terms.is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), terms.serial);
  constexpr long kDay = 24 * 3600;
  X509_gmtime_adj(X509_getm_notBefore(certificate), terms.begin_days * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), terms.end_days * kDay);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const std::string common_name =
      terms.is_authority ? "authority " + std::to_string(terms.serial) : "localhost";
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate, subject);
  X509_set_pubkey(certificate, key);
  if (terms.is_authority) add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  if (!terms.names.empty()) add_extension(certificate, NID_subject_alt_name, terms.names);
  if (terms.authority != nullptr) {
    sign_by(*terms.authority, certificate);
  } else {
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
  }
  if (FILE* const file = std::fopen(pair.certificate.c_str(), "w")) {
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    std::fclose(file);
  }
  write_private(pair.key, key, terms.password);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

// Trusts whatever it is shown; says what that was.
class TlsClient final : public BareClient {
 public:
  explicit TlsClient(uint16_t port, int version_max = 0) : BareClient(port) {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL.
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_max_proto_version(context_, version_max);
    session_ = SSL_new(context_);
    SSL_set_fd(session_, socket());
    is_secure_ = SSL_connect(session_) == 1;
  }
  ~TlsClient() override {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }

  bool is_secure() const { return is_secure_; }
  std::string version() const { return SSL_get_version(session_); }
  long serial() const {
    X509* const shown = SSL_get0_peer_certificate(session_);
    return shown == nullptr ? -1 : ASN1_INTEGER_get(X509_get0_serialNumber(shown));
  }
  // Whether the server begins anew with keys.
  bool renegotiates() {
    return SSL_renegotiate(session_) == 1 && SSL_do_handshake(session_) == 1 &&
           SSL_renegotiate_pending(session_) == 0;
  }
  // The end that the server told: nothing was cut off.
  bool was_told_the_end() const {
    return (SSL_get_shutdown(session_) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 private:
  ssize_t send_some(std::string_view bytes) override {
    return SSL_write(session_, bytes.data(), int(bytes.size()));
  }
  ssize_t receive_some(char* place, size_t size) override {
    return SSL_read(session_, place, int(size));
  }

  SSL_CTX* context_ = nullptr;
  SSL* session_ = nullptr;
  bool is_secure_ = false;
};

}  // namespace cairn::serve
