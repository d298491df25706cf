// The load of a row for k6: its own HTTP client, which hands over an answer when all of it is there.
import http from 'k6/http';

const number = (name) => Number(__ENV[name]);
const load = number('RATE') > 0
  ? { executor: 'constant-arrival-rate', rate: number('RATE'), timeUnit: '1s',
      duration: `${Math.round(number('REQUESTS') / number('RATE'))}s`, preAllocatedVUs: 200 }
  : { executor: 'shared-iterations', vus: number('STREAMS'), iterations: number('REQUESTS'),
      maxDuration: '170s' };

export const options = {
  scenarios: { load },
  summaryTrendStats: ['avg', 'p(50)', 'p(99)', 'max'],
};

const body = JSON.stringify({
  model: 'tiny', messages: [{ role: 'user', content: 'walk along the river' }], stream: true,
  stream_options: { include_usage: true }, max_tokens: number('TOKENS'),
});
const params = { headers: { 'Content-Type': 'application/json' }, timeout: '120s' };

export default function () {
  http.post(`${__ENV.URL}/v1/chat/completions`, body, params);
}
export function handleSummary(data) {
  return { [__ENV.OUT]: JSON.stringify(data) };
}
