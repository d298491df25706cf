# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# Dynamo, whose mocker schedules as TensorRT-LLM does.
# shellcheck source=tests/reality/servers/dynamo.sh
source "$reality/servers/dynamo.sh"
title="NVIDIA Dynamo: front end and scheduler (as of TensorRT-LLM) real, engine stubbed by its mocker"
engine=trtllm
context=''        # its mocker takes one for vLLM's scheduler alone
