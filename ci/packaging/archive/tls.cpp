// libllmbench.a: asks for OpenSSL. Linkers take this object where they are told to (`llmbench flags --tls`);
// by the weak names of the implementation alone they would leave a library out.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

extern "C" {
using any_function = void (*)();
extern const any_function llmbench_takes_tls[];
#define FUNCTION(name) reinterpret_cast<any_function>(&name),
const any_function llmbench_takes_tls[] = {
#include "openssl.inc"
};
}
