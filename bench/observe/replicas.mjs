/** Texts as 100 replicas of vLLM would serve them: 2,000 series each, a fifth of them of metrics nobody maps. */
const TTFT = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const ITL = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

const HISTOGRAMS = {
  'vllm:time_to_first_token_seconds': TTFT,
  'vllm:inter_token_latency_seconds': ITL,
  'vllm:request_time_per_output_token_seconds': ITL,
  'vllm:e2e_request_latency_seconds': REQUEST,
  'vllm:request_queue_time_seconds': REQUEST,
  'vllm:request_inference_time_seconds': REQUEST,
  'vllm:request_prefill_time_seconds': REQUEST,
  'vllm:request_decode_time_seconds': REQUEST,
  'vllm:request_prompt_tokens': TOKENS,
  'vllm:request_generation_tokens': TOKENS,
};

/** @param pod a label of every series that no other replica has, or none. */
export function replicaText(replica, { series = 2000, pod } = {}) {
  const lines = [];
  let count = 0;
  const write = (line) => {
    lines.push(line);
    count++;
  };
  const own = pod === undefined ? '' : `,pod="${pod}"`;
  for (let engine = 0; count < series * 0.8; engine++) {
    const labels = `engine="${engine}",model_name="meta-llama/Llama-3.1-8B-Instruct"${own}`;
    for (const [name, bounds] of Object.entries(HISTOGRAMS)) {
      if (engine === 0) lines.push(`# HELP ${name} Histogram.`, `# TYPE ${name} histogram`);
      let below = 0;
      let sum = 0;
      bounds.forEach((bound, i) => {
        const n = 10 + ((replica * 7 + engine * 3 + i * 5) % 13);
        below += n;
        sum += n * bound;
        write(`${name}_bucket{${labels},le="${Number.isInteger(bound) ? `${bound}.0` : bound}"} ${below}.0`);
      });
      write(`${name}_bucket{${labels},le="+Inf"} ${below}.0`);
      write(`${name}_count{${labels}} ${below}.0`);
      write(`${name}_sum{${labels}} ${sum}`);
    }
    for (const [name, value] of [
      ['vllm:num_requests_running', 8],
      ['vllm:num_requests_waiting', 2],
      ['vllm:kv_cache_usage_perc', 0.5],
      ['vllm:generation_tokens_total', 100_000],
    ]) {
      write(`${name}{${labels}} ${value}`);
    }
  }
  for (let i = 0; count < series; i++)
    write(`http_requests_total{handler="/v1/${i}",method="POST",status="2xx"${own}} ${i}`);
  return `${lines.join('\n')}\n`;
}
