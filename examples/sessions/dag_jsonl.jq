# AIPerf's dag_jsonl as lines of our own: jq -cs -f dag_jsonl.jq FILE. A token is taken as four characters, and
# answers without max_tokens as 128 tokens. A fork goes on from its turn, a spawn begins anew; the turn of its
# join_at, or else the next one, waits for a spawn to end. Delays are the recorded ones, in ms.
INDEX(.session_id) as $by
| def size: [.messages[].content | if type == "string" then length else tojson | length end] | add / 4 | ceil;
  def spawned: (.spawns // [])[] | if type == "object" then .children[] as $c | [$c, .join_at] else [., null] end;
  def last_of($id): "\($id)/\(($by[$id].turns | length) - 1)";
  def steps($root; $id; $parent; $had):
    $by[$id].turns as $t | range($t | length) as $i | $t[$i] as $turn
    | ($had + ([$t[:$i + 1][] | size] | add)) as $tokens | "\($id)/\($i)" as $name
    | (if $i > 0 then "\($id)/\($i - 1)" else $parent end) as $before
    | {session: $root, step: $name, wait: (($turn.delay // 0) / 1000), prompt_tokens: $tokens,
       output_tokens: ($turn.max_tokens // 128), model: ($turn.model // ""),
       after: [$before // empty, (range($i) as $k | $t[$k] | spawned | select((.[1] // $k + 1) == $i) | last_of(.[0]))]}
      + (if $before and $tokens > ($turn | size) then {keeps: [$before, $tokens - ($turn | size)]} else {} end),
      ($turn | (.forks // [])[] as $c | steps($root; $c; $name; $tokens)),
      ($turn | spawned[0] as $c | steps($root; $c; $name; 0));
  ([.[].turns[] | (.forks // [])[], spawned[0]] | INDEX(.)) as $children
| .[].session_id | select($children[.] | not) | steps(.; .; null; 0)
