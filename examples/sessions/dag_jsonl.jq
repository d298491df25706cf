# AIPerf's dag_jsonl as lines of our own: jq -cs -f dag_jsonl.jq FILE. A token is taken as four characters, and an
# answer has max_tokens, else 128. A prompt has all turns before it and their answers; with the context_mode
# message_array_with_responses it has its own messages alone. A fork goes on from its turn, a spawn begins anew; the
# turn of its join_at, or else the next one, waits for a spawn to end. An orchestrator is a session without a request of
# its own, whose rounds wait for each other. Delays and think times are the recorded ones, in ms, without their sigma.
INDEX(.session_id) as $by
| def text_size: if type == "string" then length elif . == null then 0 else tojson | length end;
  def tokens_of: ([.[] | (.content | text_size) + (.tool_calls | text_size)] | add // 0) / 4 | ceil;
  def answer: .max_tokens // 128;
  def forked: (.forks // [])[] | if type == "object" then .child else . end;
  def spawned: (.spawns // [])[] | if type == "object" then .children[] as $c | [$c, .join_at] else [., null] end;
  def rounds:
    .spawns as $all | .think_time_ms as $think
    | if (.rounds | type) == "array" then .rounds[] | {spawns, think: (.think_time_ms // $think // 0)}
      elif .rounds then range(.rounds) | {spawns: $all, think: ($think // 0)}
      else {spawns: $all, think: 0} end;
  def last_of($path; $id): "\($path)\($id)/\(($by[$id].turns | length) - 1)";
  def in_common($a; $b): (first(range($a | length) as $i | select($a[$i] != $b[$i]) | $i) // ($a | length)) as $n
    | $a[:$n] | tokens_of;
  # $at: after which steps, and how late; $from: the step that it continues, its prompt, and that with the answer
  def steps($root; $path; $id; $at; $from):
    $by[$id] as $of | $of.turns as $t | ($of.context_mode == "message_array_with_responses") as $whole
    | (($of.pre_session_spawns // [])[] as $c | steps($root; "\($path)\($id)<"; $c; $at; null)),
      (range($t | length) as $i | $t[$i] as $turn | "\($path)\($id)/\($i)" as $name
       | (if $i > 0 then "\($path)\($id)/\($i - 1)" else null end) as $before
       | def prompt($k): if $whole then $t[$k].messages | tokens_of
           else ($from.all // 0) + ([$t[:$k + 1][].messages | tokens_of] | add) + ([$t[:$k][] | answer] | add // 0) end;
         prompt($i) as $tokens
       | (if $before and $whole then [$before, in_common($t[$i - 1].messages; $turn.messages)]
          elif $before then [$before, prompt($i - 1)]
          elif $from and ($whole | not) then [$from.step, $from.prompt] else null end) as $keeps
       | {session: $root, step: $name, wait: ((($turn.delay // 0) + (if $before then 0 else $at.wait // 0 end)) / 1000),
          prompt_tokens: $tokens, output_tokens: ($turn | answer), model: ($turn.model // ""),
          after: (if $before then
              [$before, (range($i) as $k | $t[$k] | spawned | select((.[1] // $k + 1) == $i)
                         | last_of("\($path)\($id)/\($k)>"; .[0]))]
            else $at.after // [] end)}
         + (if $before or ($at.at // 0) == 0 then {} else {at: ($at.at / 1000)} end)
         + (if $keeps and $keeps[1] > 0 then {$keeps} else {} end),
         ($turn | forked as $c | steps($root; "\($name)+"; $c; {after: [$name]};
                                       {step: $name, prompt: $tokens, all: ($tokens + ($turn | answer))})),
         ($turn | spawned[0] as $c | steps($root; "\($name)>"; $c; {after: [$name]}; null)));
  def orchestrated($id): [$by[$id] | rounds] as $rounds
    | range($rounds | length) as $k | $rounds[$k].spawns[] as $c
    | steps($id; "\($k)/"; $c;
            (if $k == 0 then {at: $rounds[0].think}
             else {wait: $rounds[$k].think, after: [$rounds[$k - 1].spawns[] | last_of("\($k - 1)/"; .)]} end); null);
  ([.[] | (.turns // [])[] | forked, spawned[0]] + [.[] | (.pre_session_spawns // [])[]]
   + [.[] | select(.orchestrator) | rounds.spawns[]] | INDEX(.)) as $children
| .[] | .session_id as $id | select($children[$id] | not)
| if .orchestrator then orchestrated($id) else steps($id; ""; $id; {}; null) end
