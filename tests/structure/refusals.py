"""ci/assemble.py on small trees of parts: what it refuses and in which words, and what it makes of a
tree that is sound."""
import subprocess
import sys
import tempfile
from pathlib import Path

ASSEMBLE = Path(__file__).resolve().parents[2] / "ci" / "assemble.py"
SOUND = {
    "llmbench.hpp": """\
// A header of few words.
// Part one: declarations
// Part two: the core
// Part three: effects
#include "api/units.hpp"
#include "core/wire/url.hpp"
#include "effects/net/sockets.hpp"
""",
    "api/units.hpp": "// units\n#pragma once\n\nstruct unit {};\n",
    "core/base/text.hpp": "// text\n#pragma once\n\n#include <string>  // names\n\nint text();\n",
    "core/wire/url.hpp": """\
// URLs
#pragma once

#include "core/base/text.hpp"

#include <string>  // hosts

inline const char* scheme =
#include "core/wire/scheme.js.inc"
    ;
""",
    "core/wire/scheme.js": "http\n",
    "effects/net/sockets.hpp": "// sockets\n#pragma once\n\n#include <poll.h>\n\nint socket();\n",
    "README.md": "no part of the header\n",
    "extensions/tail.hpp": """\
// llmbench_tail.hpp: what few need.
#include "extensions/tail/api.hpp"
#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS)
#include "extensions/tail/tail.hpp"
#endif
""",
    "extensions/tail/api.hpp": """\
// the tail's declarations
#pragma once

#include "api/units.hpp"

int tail();
""",
    "extensions/tail/tail.hpp": """\
// the tail
#pragma once

#include "core/base/text.hpp"
#include "extensions/tail/api.hpp"

#include <poll.h>

inline int wag() { return text(); }
""",
    "program/main.cpp": "no part of the header\n",
}


def part(*lines, title="a part"):
    return "\n".join([f"// {title}", "#pragma once", "", *lines, ""])


# What is laid over the sound tree, None takes a file away, and the sentence that follows.
REFUSED = [
    ({"core/wire/url.hpp": part('#include "effects/net/sockets.hpp"')},
     "core/wire/url.hpp includes effects/net/sockets.hpp, whose floor comes after its own"),
    ({"core/base/text.hpp": part('#include "core/base/json.hpp"'),
      "core/base/json.hpp": part('#include "core/base/text.hpp"')},
     "the includes run in a circle: core/base/text.hpp, which includes core/base/json.hpp, "
     "which includes core/base/text.hpp"),
    ({"core/base/json.hpp": part("int json();")},
     "core/base/json.hpp is reached by nothing: no part includes it, nor does llmbench.hpp"),
    ({"core/base/text.hpp": None},
     "core/wire/url.hpp includes core/base/text.hpp, which is not in src/"),
    ({"core/base/text.hpp": part("#include <thread>")},
     "core/base/text.hpp includes <thread>: the core does no I/O, knows no clock and has no "
     "threads"),
    ({"core/base/text.hpp": part("int text();", "#ifdef __linux__", "#include <sys/stat.h>",
                                 "#endif")},
     "core/base/text.hpp includes <sys/stat.h>: the core does no I/O, knows no clock and has no "
     "threads"),
    ({"api/units.hpp": part("#include <string>")},
     "api/units.hpp includes <string>, which every file with gates would pay for"),
    ({"api/units.hpp": "struct unit {};\n"},
     "api/units.hpp does not begin with a comment on what it is and #pragma once"),
    ({"attic/old.hpp": part("int old();"), "api/units.hpp": part('#include "attic/old.hpp"')},
     "attic/old.hpp is on no floor: attic is not among those of ci/assemble.py"),
    ({"core/judging/rule.hpp": part("int rule();"),
      "effects/net/sockets.hpp": part('#include "core/judging/rule.hpp"')},
     "effects/net/sockets.hpp includes core/judging/rule.hpp: effects/net does not see core/judging"),
    ({"core/files/traces.hpp": part("int trace();"),
      "effects/system/console.hpp": part('#include "core/files/traces.hpp"'),
      "effects/net/sockets.hpp": part('#include "effects/system/console.hpp"')},
     "effects/net/sockets.hpp includes core/files/traces.hpp by way of effects/system/console.hpp: "
     "effects/net does not see core/files"),
    ({"core/traffic/plan.hpp": part("int plan();"),
      "core/judging/rule.hpp": part('#include "core/traffic/plan.hpp"'),
      "core/wire/url.hpp": None, "llmbench.hpp": SOUND["llmbench.hpp"].replace("core/wire/url.hpp", "core/judging/rule.hpp")},
     "core/judging/rule.hpp includes core/traffic/plan.hpp: core/judging does not see core/traffic"),
    ({"core/wire/url.hpp": part("int url();", '#include "core/base/text.hpp"')},
     "core/wire/url.hpp includes core/base/text.hpp in its middle: the includes of a part stand at "
     "its top"),
    ({"core/wire/scheme.js": 'a = ")js";\n'},
     'core/wire/scheme.js holds )js", which ends the literal that it becomes'),
    ({"effects/net/sockets.hpp": part('#include "extensions/tail/api.hpp"')},
     "effects/net/sockets.hpp includes extensions/tail/api.hpp: only extensions/tail.hpp may"),
    ({"extensions/tail/tail.hpp": part('#include "core/base/json.hpp"')},
     "extensions/tail/tail.hpp includes core/base/json.hpp, which llmbench.hpp does not have: what an "
     "extension alone needs is below src/extensions/tail/"),
    ({"extensions/tail/api.hpp": part('#include "core/base/text.hpp"')},
     "extensions/tail/api.hpp includes core/base/text.hpp, which every file with gates would pay for"),
    ({"extensions/tail/more.hpp": part("int more();")},
     "extensions/tail/more.hpp is reached by nothing: no part includes it, nor does "
     "extensions/tail.hpp"),
    ({"extensions/head.hpp": "// head\n#include \"extensions/tail/api.hpp\"\n"},
     "extensions/head.hpp includes extensions/tail/api.hpp: only extensions/tail.hpp may"),
    ({"extensions/tail.hpp": '// tail\n#include "extensions/tail/core/pure.hpp"\n',
      "extensions/tail/core/pure.hpp": part("int pure();", "#if 1", "#include <chrono>", "#endif"),
      "extensions/tail/api.hpp": None, "extensions/tail/tail.hpp": None},
     "extensions/tail/core/pure.hpp includes <chrono>, which every file with gates would pay for"),
    ({"core/base/text.hpp": part("int text();", title="more words than a line " * 4)},
     "core/base/text.hpp says too much in its first line for a banner"),
    ({"core/base/text.hpp": part("int text();  // " + "x" * 90)},
     "core/base/text.hpp:4 has 106 columns: 100 are allowed"),
]


def assembled(changes, *options):
    """The exit code, what was said, and what was made."""
    with tempfile.TemporaryDirectory() as work:
        src, header = Path(work) / "src", Path(work) / "llmbench.hpp"
        for name, text in {**SOUND, **changes}.items():
            if text is not None:
                (src / name).parent.mkdir(parents=True, exist_ok=True)
                (src / name).write_text(text)

        def run(*more):
            return subprocess.run([sys.executable, ASSEMBLE, "--src", src, "--header", header,
                                   *more], capture_output=True, text=True)
        done = run()
        made = header.read_text() if header.is_file() else ""
        tail = Path(work) / "extensions" / "llmbench_tail.hpp"
        made += tail.read_text() if tail.is_file() else ""
        if options:
            header.write_text(header.read_text().replace("int socket();", "int socket(int);"))
            done = run(*options)
        return done.returncode, done.stderr, made


def main():
    wrong = []

    def expect(what, is_so):
        if not is_so:
            wrong.append(what)
    for changes, sentence in REFUSED:
        code, said, made = assembled(changes)
        expect(f"wanted: {sentence}\n   got: {said}",
               code == 1 and said == f"ci/assemble.py: {sentence}\n" and not made)
    code, said, made = assembled({})
    expect(f"a sound tree is refused: {said}", code == 0)
    expect(f"each system include stands once, with all its reasons:\n{made}",
           made.count("#include <string>  // names, hosts\n") == 1)
    expect(f"a part stands below what it uses:\n{made}",
           0 < made.find("[C] text ===") < made.find("[C] URLs ==="))
    expect(f"files are embedded:\n{made}", 'scheme = R"js(\nhttp\n)js";\n' in made)
    expect(f"an extension is made of its own parts alone:\n{made}",
           made.count("inline int wag()") == made.count("int tail();") == 1
           and 0 < made.find("int tail();") < made.find("#if defined(LLMBENCH_IMPLEMENT_EXTENSIONS)")
           < made.find("inline int wag()") and made.count("int text();") == 1)
    inside = ["namespace a {", "inline namespace b {", "", "int one();", "",
              "}  // inline namespace b", "}  // namespace a"]
    code, said, made = assembled({"core/base/text.hpp": part(*inside),
                                  "core/wire/url.hpp": part('#include "core/base/text.hpp"', "",
                                                            *inside),
                                  "core/wire/scheme.js": None})
    expect(f"parts of the same namespaces share them:\n{said}{made}",
           made.count("namespace a {\n") == 1 and made.count("}  // namespace a\n") == 1)
    code, said, made = assembled({}, "--check")
    expect(f"a header that was edited is not refused where it was: {said}",
           code == 1 and "is not what src/effects/net/sockets.hpp gives" in said)
    print("\n".join(wrong), end="")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
