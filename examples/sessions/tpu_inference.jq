# tpu-inference's trajectories as lines of our own: jq -cs -f tpu_inference.jq FILE. What the streams of a group share is
# not kept: our own lines share nothing between sessions.
.[] as $t | $t | range(.out_lens | length) as $i
| def length_of($n): $t.prompt_len + ([$t.out_lens[:$n][], $t.obs_lens[:$n][]] | add // 0);
  {session: "\(.group)-\(.stream)", step: "\($i)", prompt_tokens: length_of($i), output_tokens: .out_lens[$i]}
  + if $i > 0 then {after: ["\($i - 1)"], keeps: ["\($i - 1)", length_of($i - 1)], wait: (.tool_times[$i - 1] // 0)}
    else {} end
