// What must not be repeated: secrets whole, quoted, in parts, and cut off at the end of a message.
#include "core/base/secrets.hpp"

#include <doctest/doctest.h>

#include <string>

using llmbench::detail::base64;
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

TEST_CASE("each line of a secret of several lines is one by itself, whole words of a log aside") {
    const auto secrets = secrets_of("-----BEGIN KEY-----\nMIIEpAIBAAKC\nshort\r\n-----END KEY-----\n");
    CHECK(without_secrets("12:00 MIIEpAIBAAKC\n12:01 short", secrets) == "12:00 ***\n12:01 short");
    CHECK(without_secrets("x -----END KEY----- y", secrets) == "x *** y");
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
                             "AWS_SECRET_ACCESS_KEY", "ACTIONS_ID_TOKEN_REQUEST_URL", "PGPASSWD", "Authorization", "Set_Cookie"})
        CHECK(names_secret(name));
    for (const char* name : {"TOKENIZERS_PARALLELISM", "MAX_TOKENS", "KEYBOARD", "AUTHOR", "PATH", "COOKIES", ""})
        CHECK_FALSE(names_secret(name));
}

TEST_CASE("a secret is known in every form in which somebody may repeat it") {
    const std::string secret = "a/b+\"c\\d<e>&f'g \xC3\xA9=h";
    const auto secrets = secrets_of(secret);
    for (const std::string& form : vector<std::string>
         {R"(a/b+"c\d<e>&f'g )" "\xC3\xA9=h",                   // JSON, one escape of two
          R"(a\/b+\"c\\d<e>&f'g \u00e9=h)",                      // JSON of Python
          R"(a/b+\\\"c\\\\d\u003ce\u003e\u0026f'g \u00e9=h)",    // JSON in JSON, of Go
          R"(a%2Fb%2B%22c%5Cd%3Ce%3E%26f%27g%20%C3%A9%3Dh)",       // URL
          R"(a%2fb%2b%22c%5cd%3ce%3e%26f%27g+%c3%a9%3dh)",         // form
          R"(a/b+&quot;c\d&lt;e&gt;&amp;f&#39;g )" "\xC3\xA9=h",  // HTML
          R"(a/b+&#34;c\d&#x3C;e&#x3e;&amp;f&apos;g )" "\xC3\xA9=h",
          R"(a\/b+\&quot;c\\d&lt;e&gt;&amp;f&#39;g )" "\xC3\xA9=h",  // JSON in HTML
          R"(a/b\+\"c\\d\<e\>\&f'g )" "\xC3\xA9=h",              // Markdown
          "a/b+\"c\\d<e>&f'g\n      \xC3\xA9=h"}) {  // a broken line
        CAPTURE(form);
        CHECK(without_secrets("it is " + form + ".", secrets) == "it is ***.");
        for (std::size_t n = 1; n < form.size(); ++n) {
            CAPTURE(n);
            CHECK(begun_secret("x" + form.substr(0, n), secrets) >= n);
        }
    }
    CHECK(without_secrets(R"(it is a\/b\u002b...)", secrets) == "it is ***...");
    CHECK(without_secrets("a/b+\"c\\d<e>&f'g", secrets) == "a/b+\"c\\d<e>&f'g");
    CHECK(begun_secret("nothing of it", secrets) == 0);
    // A URL has it encoded, and its server quotes it decoded.
    CHECK(without_secrets("no k/ey 12", secrets_of("k%2Fey+12")) == "no k/ey 12");
    CHECK(without_secrets("no k/ey 12", secrets_of("k%2Fey%2012")) == "no ***");
    // Authorization: Basic, decoded.
    const auto basic = secrets_of("Basic " + base64("anna:pass-word"));
    CHECK(without_secrets("anna:pass-word is no user", basic) == "*** is no user");
    CHECK(without_secrets("pass-word is wrong", basic) == "*** is wrong");
    CHECK(without_secrets("of abcdefgh", {"abcdefgh", "abcd"}) == "of ***");
}

TEST_CASE("the longer secret goes first, so that nothing of it is left") {
    vector<std::string> secrets;
    for (const char* s : {"abcd", "abcd-efgh", "abcd-efgh-ijkl"}) add_secret(secrets, s);
    CHECK(without_secrets("abcd-efgh-ijkl abcd-efgh abcd", secrets) == "*** *** ***");
}

TEST_CASE("what a line calls a secret itself is one") {
    const auto named = [](const char* text) {
        vector<std::string> secrets;
        add_secrets_named_in(secrets, text);
        return secrets;
    };
    using words = vector<std::string>;
    CHECK(named("vllm serve m --api-key sk-12345 --port {port}") == words{"sk-12345"});
    CHECK(named("serve --api-key=sk-12345;x") == words{"sk-12345"});
    CHECK(named("HF_TOKEN=hf_12345 serve --max-tokens 40960000 --tokenizer abcdefgh") ==
          words{"hf_12345"});
    CHECK(named("HF_TOKEN=\"$HF_TOKEN_OF_ALL\" serve").empty());
    CHECK(named(R"({"apiKey": "sk-12345", "lora": {"access_token":"to\"ken-1"}})") ==
          words{"sk-12345", "to\"ken-1"});
    CHECK(named(R"({"password":"two words", "max_tokens": 123456789})") ==
          words{"two words", "words"});
    CHECK(named("curl -H 'Authorization: Bearer abc-12345' h") == words{"abc-12345"});
    CHECK(named("curl -H 'X-Api-Key: abc-12345' h") == words{"abc-12345"});
    CHECK(named("/load?api_key=abc-12345&lora=some-lora") == words{"abc-12345"});
    CHECK(named("curl http://anna:pw-1@h/x").front() == base64("anna:pw-1"));
    CHECK(named("curl http://anna:pw-1@h/x").back() == "pw-1");
    CHECK(named("--enable-auth true --auth off --key x").empty());
    CHECK(named("").empty());
    CHECK(named("token").empty());
    CHECK(named("token=").empty());
    CHECK(named("token=\"12345678").size() == 1);
    CHECK(named("token=1234567\\").size() == 1);
}
