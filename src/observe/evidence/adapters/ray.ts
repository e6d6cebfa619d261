import { type Adapter, prefixed } from '../adapter.ts';

const FINISH = 'when the request finishes';

/** Ray Serve's proxy and replicas, in milliseconds. The engines it runs tell their own metrics behind `ray_`. */
export const RAY_SERVE: Adapter = {
  engine: 'Ray Serve',
  role: 'router',
  local: prefixed('serve_'),
  metrics: [
    {
      concept: 'e2e',
      names: ['http_request_latency_ms'],
      scale: 1e-3,
      clock: "received by Serve's proxy",
      observation: 'an HTTP request at the proxy, whatever its route and status',
      recorded: FINISH,
      unit: 'seconds',
    },
    {
      concept: 'finishes',
      names: ['num_http_requests'],
      by: 'status_code',
      observation: 'an HTTP request at the proxy, whatever its status',
      recorded: FINISH,
      unit: 'requests',
    },
    {
      concept: 'failures',
      names: ['num_http_error_requests'],
      by: 'error_code',
      observation: 'an HTTP request that failed',
      recorded: FINISH,
      unit: 'requests',
    },
    {
      concept: 'running',
      names: ['replica_processing_queries', 'num_ongoing_requests'],
      observation: 'requests at the replicas',
      unit: 'requests',
    },
    {
      concept: 'waiting',
      names: ['deployment_queued_queries'],
      observation: 'requests that no replica has taken yet',
      unit: 'requests',
    },
  ],
};
