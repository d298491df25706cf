// What must not be repeated: secrets whole, quoted, in parts, and cut off at the end of a message.
#include "core/base/secrets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

using llmbench::detail::base64;
using namespace llmbench::detail;

namespace {
vector<std::string> secrets_of(const std::string& s) {
    vector<std::string> secrets;
    add_secret(secrets, s);
    return secrets;
}
bool is_secret(const std::string& s, const vector<std::string>& secrets) {
    return std::find(secrets.begin(), secrets.end(), s) != secrets.end();
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
    CHECK(is_secret("abcd", secrets_of("abcd")));
    CHECK(secrets_of("abcd").size() == 2);  // and in base64
}

TEST_CASE("each word behind a space is a secret by itself") {
    CHECK(is_secret("token-5", secrets_of("Bearer token-5")));
    for (const char* s : {"one two three", "two three", "three"})
        CHECK(is_secret(s, secrets_of("one two three")));
    CHECK_FALSE(is_secret("Bearer", secrets_of("Bearer token-5")));
    CHECK(without_secrets("is it long-word\n    two?", secrets_of("long-word two")) ==
          "is it ***\n    two?");
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
         {secret,
          R"(a/b+\"c\\d<e>&f'g )" "\xC3\xA9=h",                    // JSON
          R"(a/b+\"c\\d<e>&f'g \u00e9=h)",                        // of Python
          R"(a\/b+\"c\\d<e>&f'g \u00e9=h)",                       // of PHP
          R"(a/b+\"c\\d\u003ce\u003e\u0026f'g )" "\xC3\xA9=h",    // of Go
          R"(a/b+\\\"c\\\\d<e>&f'g \\u00e9=h)",                   // JSON in JSON
          R"(a\\/b+\\\"c\\\\d<e>&f'g )" "\xC3\xA9=h",               // of picojson, in ours
          R"(a\/b+\&quot;c\\d&lt;e&gt;&amp;f&#39;g )" "\xC3\xA9=h",  // on a page
          R"(a%2Fb%2B%22c%5Cd%3Ce%3E%26f%27g%20%C3%A9%3Dh)",       // URL
          R"(a%2fb%2b%22c%5cd%3ce%3e%26f%27g+%c3%a9%3dh)",         // form
          R"(YS9iKyJjXGQ8ZT4mZidnIMOpPWg)",                        // base64
          R"(a/b+&quot;c\d&lt;e&gt;&amp;f&#39;g )" "\xC3\xA9=h",  // HTML
          R"(a/b+\&quot;c\\d&lt;e&gt;&amp;f&#39;g )" "\xC3\xA9=h",  // JSON in HTML
          R"(a/b+"c\\d\<e\>&amp;f'g )" "\xC3\xA9=h"}) {           // Markdown
        CAPTURE(form);
        CHECK(without_secrets("it is " + form + ".", secrets) == "it is ***.");
        for (std::size_t n = 1; n < form.size(); ++n) {
            CAPTURE(n);
            CHECK(begun_secret("x" + form.substr(0, n), secrets) >= n);
            if (n < shortest_secret) continue;
            CHECK(without_secrets("it is " + form.substr(0, n) + "...", secrets) == "it is ***...");
            CHECK(without_secrets("..." + form.substr(form.size() - n) + " it was", secrets) ==
                  "...*** it was");
        }
    }
    CHECK(without_secrets("a/b+\"c\\d<e>&f", secrets) == "a/b+\"c\\d<e>&f");
    CHECK(begun_secret("nothing of it", secrets) == 0);
    // Encoders that spare letters and digits alone: .NET's JSON, and some for HTML.
    const auto key = secrets_of("sk+abc/def==1234");
    for (const char* form : {"sk\\u002Babc/def==1234", "sk\\u002Babc\\u002Fdef\\u003D\\u003D1234",
                             "sk&#43;abc&#47;def&#61;&#61;1234"}) {
        CAPTURE(form);
        CHECK(without_secrets("it is " + std::string(form) + ".", key) == "it is ***.");
    }
    // A password in a URL, with a part of it encoded, stands so in reports.
    vector<std::string> of_url;
    add_secrets_named_in(of_url, "http://us:my!pass%2Aword9@127.0.0.1:9501");
    CHECK(without_secrets("call http://us:my!pass%2Aword9@h", of_url).find("word9") == std::string::npos);
    CHECK(without_secrets("it was my!pass*word9", of_url).find("word9") == std::string::npos);
    // A URL has it encoded, and its server quotes it decoded.
    CHECK(without_secrets("no k/ey 12", secrets_of("k%2Fey+12")) == "no k/ey 12");
    CHECK(without_secrets("no k/ey 12", secrets_of("k%2Fey%2012")) == "no ***");
    // Authorization: Basic, decoded.
    const auto basic = secrets_of("Basic " + base64("anna:pass-word"));
    CHECK(without_secrets("anna:pass-word is no user", basic) == "*** is no user");
    CHECK(without_secrets("pass-word is wrong", basic) == "*** is wrong");
    CHECK(without_secrets("of abcdefgh", {"abcdefgh", "abcd"}) == "of ***");
    CHECK(without_secrets("of abcdefgh!", {"cdefgh", "abcde"}) == "of ***!");  // one over the other
    CHECK(secrets_of("100%z-of-it").size() < 20);  // nothing is encoded in it
}

TEST_CASE("what looks like an escape and is none harms nobody") {
    const auto secrets = secrets_of("sk-12345");
    for (const std::string end : {"\\", "\\u", "\\u7", "\\u73", "\\u007", "\\x", "\\x7", "%", "%7", "&", "&#",
                                  "&#x", "&amp", "\\\\u73", "s", "sk-1", ".", ".."})
        for (const std::string from : {"", "wrong key: ", "..."}) {
            CAPTURE(from + end);
            CHECK(without_secrets(from + end, secrets) == from + end);
            CHECK(excerpt_without_secrets(from + end, secrets) == printable(from + end));
        }
    CHECK(without_secrets("", {"", "a"}) == "");
    CHECK(begun_secret("abc", {"", "a"}) == 0);
}

TEST_CASE("a long text costs no more than its length, and an excerpt no more than its own") {
    const auto secrets = secrets_of("\\\\-of-bars sk-12345");
    const std::string bars(std::size_t{1} << 20, '\\');
    CHECK(without_secrets(bars, secrets).size() == bars.size());
    CHECK(without_secrets(bars + "sk-12345", secrets) == bars + "***");
    CHECK(excerpt_without_secrets(bars, secrets_of("sk-12345"), 10) == bars.substr(0, 10) + "...");
    std::string many;
    for (int i = 0; i < 25000; ++i) many += "sk-12345 ";
    CHECK(without_secrets(many, secrets).size() == 100000);
}

TEST_CASE("an excerpt shows no half of a secret where it is cut, and whole characters") {
    const auto secrets = secrets_of("sk-123456789");
    const std::string text = "the key is sk-123456789 and no other";
    for (std::size_t n = 0; n <= text.size(); ++n) {
        CAPTURE(n);
        CHECK(excerpt_without_secrets(text, secrets, n).find("sk-1") == std::string::npos);
    }
    CHECK(excerpt_without_secrets(text, secrets, 20) == "the key is ***...");
    CHECK(excerpt_without_secrets("\xC3\xA9\xC3\xA9", secrets, 3) == "\xC3\xA9...");
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
    const auto words = [](const std::initializer_list<const char*>& all) {
        vector<std::string> secrets;
        for (const char* s : all) add_secret(secrets, s);
        return secrets;
    };
    CHECK(named("vllm serve m --api-key sk-12345 --port {port}") == words({"sk-12345"}));
    CHECK(named("serve --api-key=sk-12345;x") == words({"sk-12345"}));
    CHECK(named("HF_TOKEN=hf_12345 serve --max-tokens 40960000 --tokenizer abcdefgh") ==
          words({"hf_12345"}));
    CHECK(named("HF_TOKEN=\"$HF_TOKEN_OF_ALL\" serve").empty());
    CHECK(named(R"({"apiKey": "sk-12345", "lora": {"access_token":"to\"ken-1"}})") ==
          words({"sk-12345", "to\"ken-1"}));
    CHECK(named(R"({"password":"two words", "max_tokens": 123456789})") ==
          words({"two words", "words"}));
    CHECK(named("curl -H 'Authorization: Bearer abc-12345' h") == words({"abc-12345"}));
    CHECK(named("curl -H 'X-Api-Key: abc-12345' h") == words({"abc-12345"}));
    CHECK(named("/load?api_key=abc-12345&lora=some-lora") == words({"abc-12345"}));
    for (const std::string& s : {std::string("anna:pw-1"), base64("anna:pw-1"), std::string("pw-1")})
        CHECK(is_secret(s, named("curl http://anna:pw-1@h/x")));
    CHECK(named("--enable-auth true --auth off --key x").empty());
    CHECK(named("").empty());
    CHECK(named("token").empty());
    CHECK(named("token=").empty());
    CHECK(named("token=\"12345678") == words({"12345678"}));
    CHECK(named("token=1234567\\") == words({"1234567\\"}));
}
