"""Each field of a scenario has its option of `llmbench run`, which is also a key of a file of gates, or a reason
why it has none. A field that is new, a row without its field and an option that is not there are told.
    options.py [TOP]          TOP: the top of the repository
"""
import re
import sys
from pathlib import Path

KEY = "a key of a file of gates: "
C = "C++ alone: "

# What each field is in the program: its options, or a key of a file of gates, or why it has none.
FIELDS = {
    "scenario": {
        "name": "--name", "target": "--url --command", "baseline": "--baseline-url --baseline-file --baseline-history",
        "pairs": "--at-once", "workload": "--prompt-tokens --dataset --questions --sessions --prompt --turns",
        "arrivals": "--users --rate --arrivals --think --ramp --max-in-flight --speed --time-unit --hold --release",
        "warmup": "--warmup", "requests": "--requests", "duration": "--duration", "repeats": "--repeats",
        "stop": "--stop", "slos": "--slo", "seed": "--seed", "limits": "--timeout", "options": "--max-tokens",
        "client": "--client-threads", "judging": "--false-pass", "on_fail": "--profile",
        "beside": KEY + "task", "prepare": KEY + "prepare", "cost": "--cost"},
    "limits": {
        "connect": "--connect-timeout", "first_event": "--first-event-timeout", "between_events": "--event-timeout",
        "total": "--timeout", "drain": "--drain"},
    "judging_options": {"false_pass": "--false-pass", "false_fail": "--false-fail", "holm": "--holm"},
    "client_options": {"threads": "--client-threads", "spin": "--spin", "from": "--from"},
    "endpoint": {
        "url": "--url", "model": "--model --baseline-model", "api": "--api", "path": "--path",
        "api_key_env": "--key-variable", "headers": "--header", "metrics_url": "--metrics-url",
        "tls": "--insecure --ca-file --cert --key", "telemetry": "--telemetry-url", "cold": "--cold",
        "ready_within": "--ready-within", "transport": "--websocket"},
    "tls_options": {"verify": "--insecure", "ca_file": "--ca-file", "cert_file": "--cert", "key_file": "--key"},
    "process": {
        "command": "--command", "ready": "--ready", "env": "--env", "working_directory": "--directory",
        "restart_between_repeats": "--restart", "ready_within": "--ready-within", "api": "--api", "path": "--path",
        "model": "--model", "metrics_url": "--metrics-url", "telemetry": "--telemetry-url",
        "transport": "--websocket"},
    "stored_result": {"file": "--baseline-file", "day_to_day": "--day-to-day"},
    "otherwise": dict.fromkeys(
        ("options", "model", "workload", "alone", "same"),
        C + "two loads of one server, of which a file of gates would have to state each key twice"),
    "synthetic": {
        "prompt_tokens": "--prompt-tokens", "output_tokens": "--output-tokens", "shared_prefix": "--prefix-tokens",
        "prefix_groups": "--prefix-groups", "prefix_fraction": "--prefix-share", "force_output": "--own-length"},
    "conversations": {
        "turns": "--turns", "user_tokens": "--prompt-tokens", "output_tokens": "--output-tokens",
        "think": "--turn-pause", "system_tokens": "--prefix-tokens", "shared_system_prompt": "--own-prefix",
        "force_output": "--own-length", "subagents": "--subagents", "helpers": "--helpers",
        "helper_turns": "--helper-turns"},
    "dataset": {
        "path": "--dataset", "format": "--format", "max_items": "--max-items",
        "min_prompt_tokens": "--min-prompt-tokens", "max_prompt_tokens": "--max-prompt-tokens",
        "min_output_tokens": "--min-output-tokens", "max_output_tokens": "--max-output-tokens",
        "max_turns": "--turns", "think": "--turn-pause", "force_output": "--own-length", "salted": "--unsalted",
        "images": "--images"},
    "prompt_list": {"items": "--prompt"},
    "generated_prompts": dict.fromkeys(("of", "force_output", "salted"), C + "a function of yours"),
    "questions": {
        "path": "--questions", "format": "--format", "grade": "--grade", "before": "--before", "after": "--after",
        "max_items": "--max-items"},
    "sessions": {
        "path": "--sessions", "max_items": "--max-items", "max_wait": "--max-wait", "max_context": "--max-context", "models": "--session-model",
        "force_output": "--own-length"},
    "request_options": {
        "max_tokens": "--max-tokens", "temperature": "--temperature", "system_prompt": "--system-prompt",
        "ignore_eos": "--ignore-eos", "stream": "--no-stream", "events_are_tokens": "--events-are-tokens",
        "include_usage": "--no-usage", "continuous_usage": "--continuous-usage", "server_history": "--server-history",
        "max_tokens_field": "--max-tokens-field", "documents": "--documents", "extra_body": "--extra-body",
        "cancel_after": "--cancel-after"},
    "part": {name: KEY + "part" for name in ("name", "weight", "workload", "model", "options")},
    "side_task": {name: KEY + "task" for name in ("name", "every", "steps", "first", "may_fail", "excuses")},
    "task_step": {name: KEY + "steps" for name in ("path", "body", "line", "by")},
    "profile": dict.fromkeys(("start", "stop", "duration"), C + "--profile asks the server in its usual way"),
}


def fields_of(text, name):
    """The names of a struct's data members."""
    body = re.search(r"\bstruct (?:\w+::)?" + name + r" \{\n(.*?)\n\s*\};", text, re.DOTALL)
    if not body:
        return None
    plain = re.sub(r"//[^\n]*", "", body[1])
    found = []
    for statement in plain.split(";"):
        first = re.search(r"\(\*(\w+)\)\(", statement)
        if not first and "(" in re.sub(r"=.*|\{.*", "", statement, flags=re.DOTALL):
            continue  # a function
        names = [first[1]] if first else re.findall(
            r"(?:^|[\s,])(\w+)\s*(?=$|[{=,])", re.sub(r"=.*?(?=,\s*\w+\s*=|$)|\{[^{}]*\}|<[^<>]*>", "",
                                                      statement.strip(), flags=re.DOTALL))
        found += [n for n in names if n]
    return found


def problems(top):
    text = "\n".join(p.read_text() for part in ("src/api", "src/extensions/answers", "src/extensions/sessions")
                     for p in sorted((top / part).rglob("*.hpp")))
    rows = set(re.findall(r'\{"(--[a-z-]+)"', (top / "src/program/run_rows.hpp").read_text()))
    rows |= {"--inconclusive"}
    used = set()
    for struct, wanted in FIELDS.items():
        found = fields_of(text, struct)
        if found is None:
            yield f"there is no struct {struct}"
            continue
        for name in found:
            if name not in wanted:
                yield f"{struct}.{name} has no option of llmbench run, and no reason why not"
        for name, how in wanted.items():
            if name not in found:
                yield f"{struct} has no field {name}"
            if how.startswith("--"):
                used |= set(how.split())
                for option in how.split():
                    if option not in rows:
                        yield f"{struct}.{name}: llmbench run has no option {option}"
    # Of the program, and not of a scenario.
    of_the_program = {"--time-budget", "--inconclusive", "--report"}
    for option in sorted(rows - used - of_the_program):
        yield f"{option} of llmbench run belongs to no field of a scenario"


if __name__ == "__main__":
    wrong = list(problems(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
