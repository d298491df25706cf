// What must not be repeated: secrets whole, quoted, in parts, and cut off at the end of a message.
#include "core/base/secrets.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace llmbench::detail;

namespace {
vector<std::string> secrets_of(const std::string& s) {
    vector<std::string> secrets;
    add_secret(secrets, s);
    return secrets;
}
}  // namespace

TEST_CASE("a secret is taken out wherever it stands, however often") {
    const auto secrets = secrets_of("sk-1234");
    CHECK(without_secrets("", secrets) == "");
    CHECK(without_secrets("nothing of it", secrets) == "nothing of it");
    CHECK(without_secrets("sk-1234", secrets) == "***");
    CHECK(without_secrets("no sk-1234, not sk-1234sk-1234", secrets) == "no ***, not ******");
}

TEST_CASE("a word of fewer than four characters is no secret") {
    CHECK(secrets_of("").empty());
    CHECK(secrets_of("abc").empty());
    CHECK(secrets_of("abcd") == vector<std::string>{"abcd"});
}

TEST_CASE("each word behind a space is a secret by itself") {
    CHECK(secrets_of("Bearer token-5") == vector<std::string>{"Bearer token-5", "token-5"});
    CHECK(secrets_of("one two three") ==
          vector<std::string>{"one two three", "two three", "three"});
    CHECK(without_secrets("the token-5 is wrong", secrets_of("Bearer token-5")) ==
          "the *** is wrong");
}

TEST_CASE("a secret is known as JSON and as printed, too") {
    const auto secrets = secrets_of("a\"quoted\x01one");
    CHECK(without_secrets(R"(it is a\"quoted\u0001one)", secrets) == "it is ***");
    CHECK(without_secrets(R"(it is a"quoted\x01one)", secrets) == "it is ***");
}

TEST_CASE("what is cut off behind the first four characters of a secret or more loses them") {
    const auto secrets = secrets_of("sk-123456");
    CHECK(without_secrets("the key sk-12345...", secrets) == "the key ***...");
    CHECK(without_secrets("the key sk-1...", secrets) == "the key ***...");
    CHECK(without_secrets("the key sk-...", secrets) == "the key sk-...");
    CHECK(without_secrets("the key sk-1", secrets) == "the key sk-1");
    CHECK(without_secrets("...", secrets) == "...");
}

TEST_CASE("a variable's name may say that its value is for nobody else") {
    for (const char* name : {"HF_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "apikey", "X_AUTH_HEADER",
                             "AWS_SECRET_ACCESS_KEY", "ACTIONS_ID_TOKEN_REQUEST_URL", "PGPASSWD"})
        CHECK(names_secret(name));
    for (const char* name : {"TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEYBOARD", "AUTHOR", "PATH", ""})
        CHECK_FALSE(names_secret(name));
}
