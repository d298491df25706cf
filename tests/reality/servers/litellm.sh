# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# A proxy: it answers with what the server behind it says. Its /v1/messages translates.
title="LiteLLM's proxy, in front of llama-server"
version=1.106.2
size="580 MB, and llama-server"
behind=llama-server
apis="openai_chat openai_completions anthropic"
model=tiny
ready=/health/liveliness
lengths=forced
context=2048
key=yes
key_refused=400   # it looks for other keys in a database, and says that it has none
cache=slots

install() { venv_with "litellm[proxy]==$version"; }

start() {
    # Without the last one it does not start with no key, or a short one.
    export LITELLM_LOG=ERROR LITELLM_LOCAL_MODEL_COST_MAP=True \
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true
    if [[ ${API_KEY:-} ]]; then export LITELLM_MASTER_KEY=$API_KEY; fi
    cat > "$home/config-$1.yaml" <<- YAML
		model_list:
		  - model_name: $model
		    litellm_params:
		      model: openai/$model
		      api_base: $UPSTREAM/v1
		      api_key: none
		litellm_settings:
		  telemetry: false
		# One refusal of ours else has it refuse everything for some seconds.
		router_settings:
		  disable_cooldowns: true
		YAML
    exec "$home/venv/bin/litellm" --config "$home/config-$1.yaml" --host 127.0.0.1 --port "$1"
}
