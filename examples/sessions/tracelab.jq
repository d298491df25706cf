# TraceLab's rounds as lines of our own: jq -cs -f tracelab.jq FILE. The longest tool of a round is what the next one
# waits for; the pauses of people are none of it.
group_by(.session_id)[] | sort_by(.round_index) | range(length) as $i | .[$i] as $r
| {session: $r.session_id, step: "\($i)", model: $r.model, prompt_tokens: $r.input_tokens_total,
   output_tokens: ([$r.output_tokens, 1] | max)}
  + if $i > 0 then .[$i - 1] as $before
      | {after: ["\($i - 1)"], wait: ([($before.tools // [])[].tool_wall_latency_ms // 0, 0] | max / 1000),
         keeps: ["\($i - 1)", ([$r.prefix_tokens, $before.input_tokens_total] | min)]}
    else {} end
