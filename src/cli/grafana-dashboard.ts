import { chart, dashboardOf, type Query, type Row, stat } from './grafana-format.ts';

/** The legend of an upstream's line. */
const UPSTREAM = '{{model}} {{upstream}}';
/** Stats, of which two have the place of one chart. */
const NARROW = { width: 4 };

/** The page: what is asked of Prometheus, and how it is shown. */
const ROWS: readonly Row[] = [
  {
    title: 'Requests',
    panels: [
      chart('Requests a second by code', 'reqps', [[sum(rate('tds_requests_total'), 'code'), '{{code}}']], {
        stacked: true,
      }),
      chart(
        'Requests a second by endpoint, model and mode',
        'reqps',
        [
          [sum(rate('tds_requests_total'), 'endpoint, model, mode'), '{{endpoint}} {{model}} {{mode}}'],
          [sum(rate('tds_replayed_requests_total')), 'replayed'],
        ],
        { stacked: true },
      ),
      chart(
        'Share of requests that got 5xx',
        'percentunit',
        [[`${answered('5..')} / ${answered('2..|5..')}`, 'failed']],
        { description: 'Of those to the API and to /mcp, refusals aside.' },
      ),
      chart('Questions a second', 'ops', [
        [sum(rate('tds_questions_total'), 'model, mode'), '{{model}} {{mode}}'],
      ]),
      chart(
        'Problems a minute by step',
        'short',
        [[`60 * ${sum(rate('tds_problems_total'), 'step')}`, '{{step}}']],
        { stacked: true, description: 'Failures that were our own fault; the log has each cause.' },
      ),
      stat('Audit: violations', 'short', [[max(newestAudit()), 'violations']], {
        ...NARROW,
        description: 'Anything but 0: run "tds audit".',
      }),
      stat(
        'Audit: age',
        's',
        [[`time() - ${max(`${series('tds_audit_timestamp_seconds')} > 0`)}`, 'age']],
        NARROW,
      ),
      stat('Payment events that wait', 'short', [[max(series('tds_payment_events_unresolved')), 'events']], {
        ...NARROW,
        description: 'Anything but 0: run "tds credit events".',
      }),
    ],
  },
  {
    title: 'Time',
    panels: [
      quantiles('Whole time by mode', 'tds_request_seconds', { by: 'mode' }),
      quantiles('Platform time', 'tds_platform_seconds', {
        description:
          'Without the wait for the model and the model. Lines of batches, which wait on purpose, are in no time.',
      }),
      quantiles('Wait for the model', 'tds_queue_seconds'),
      quantiles('Model time by mode', 'tds_model_seconds', { by: 'mode' }),
      quantiles('Commit time', 'tds_commit_seconds'),
      chart('Writes a commit', 'short', [
        [`${sum(rate('tds_commit_writes_total'))} / ${sum(rate('tds_commit_seconds_count'))}`, 'writes'],
      ]),
    ],
  },
  {
    title: 'Model',
    panels: [
      chart('Tokens a second', 'short', [
        [sum(rate('tds_input_tokens_total')), 'charged'],
        [sum(rate('tds_read_tokens_total')), 'read'],
        [sum(rate('tds_reused_tokens_total')), 'saved by reuse of prefixes'],
      ]),
      chart('Share of tokens saved by reuse of prefixes', 'percentunit', [
        [
          `${sum(rate('tds_reused_tokens_total'))} / (${sum(rate('tds_reused_tokens_total'))} + ${sum(rate('tds_read_tokens_total'))})`,
          'saved',
        ],
      ]),
      chart('Tokens a batch', 'short', [
        [
          `${sum(rate('tds_read_tokens_total'), 'model')} / ${sum(rate('tds_decodes_total'), 'model')}`,
          '{{model}}',
        ],
        [quantile(0.5, 'tds_batch_tokens'), 'tokens of a batch (median)'],
      ]),
      chart('At the model', 'short', [
        [sum(series('tds_model_requests')), 'requests'],
        [sum(series('tds_queue_plans')), 'plans that wait'],
      ]),
      chart('Tokens that run', 'short', [[sum(series('tds_model_running_tokens')), 'tokens']]),
      chart('Models that are loaded', 'short', [
        [min(series('tds_model_ready'), 'model, mode'), '{{model}} {{mode}}'],
      ]),
    ],
  },
  {
    title: 'Upstreams',
    width: 6,
    panels: [
      chart(
        'Outstanding tokens',
        'short',
        [[sum(series('tds_upstream_outstanding_tokens'), 'model, upstream'), UPSTREAM]],
        { description: 'Tokens of calls that the upstream has not answered.' },
      ),
      chart('Calls a second', 'short', [
        [sum(rate('tds_upstream_requests_total'), 'model, upstream'), UPSTREAM],
      ]),
      chart(
        'Failures a minute',
        'short',
        [[`60 * ${sum(rate('tds_upstream_failures_total'), 'model, upstream')}`, UPSTREAM]],
        { description: 'Calls, checks and trials that failed through the fault of the upstream.' },
      ),
      chart(
        'Upstreams that failed',
        'short',
        [[max(series('tds_upstream_breaker', 'state=~"open|half_open"'), 'model, upstream'), UPSTREAM]],
        {
          description:
            '1 where the breaker is open or half open: it failed, and waits for a trial or is on one.',
        },
      ),
    ],
  },
  {
    title: 'Books',
    panels: [
      chart('Holds', 'short', [
        [sum(series('tds_holds_open')), 'open'],
        [sum(series('tds_holds_unwritten')), 'release not written yet'],
      ]),
      chart('Age of the oldest hold', 's', [[max(series('tds_hold_oldest_seconds')), 'oldest']]),
      chart('Charged, dollars an hour', 'currencyUSD', [
        [`3600 * ${sum(rate('tds_charged_micros_total'), 'model')} / 1e6`, '{{model}}'],
      ]),
    ],
  },
  {
    title: 'Process',
    panels: [
      chart('Memory', 'bytes', [
        [series('process_resident_memory_bytes'), '{{instance}} resident'],
        [series('tds_heap_bytes'), '{{instance}} objects'],
      ]),
      chart('Processors', 'short', [[rate('process_cpu_seconds_total'), '{{instance}}']]),
      quantiles('Event loop lag', 'tds_event_loop_lag_seconds'),
      stat('Uptime', 's', [[`time() - ${series('process_start_time_seconds')}`, '{{instance}}']]),
      stat(
        'Version',
        'short',
        [[series('tds_build_info'), '{{instance}} {{version}} {{commit}} {{runtime}}']],
        { text: 'name' },
      ),
      chart('Connections and files', 'short', [
        [series('tds_connections'), 'connections {{instance}}'],
        [series('tds_connections_max'), 'at most {{instance}}'],
        [series('process_open_fds'), 'files {{instance}}'],
        [series('process_max_fds'), 'at most {{instance}}'],
      ]),
    ],
  },
  {
    title: 'Operation',
    panels: [
      chart('Checks of readiness', 'short', [
        [min(series('tds_ready'), 'instance, check'), '{{instance}} {{check}}'],
      ]),
      chart('Database and free disk', 'bytes', [
        [series('tds_database_bytes'), 'database {{instance}}'],
        [series('tds_disk_free_bytes'), 'free {{instance}}'],
      ]),
      chart('Pool of connections to PostgreSQL', 'short', [
        [series('tds_database_pool_under_way'), 'under way {{instance}}'],
        [series('tds_database_pool_connections_max'), 'at most {{instance}}'],
      ]),
      stat(
        'Backup: age',
        's',
        [
          [`time() - ${max(`${series('tds_backup_timestamp_seconds')} > 0`, 'instance')}`, '{{instance}}'],
          [series('tds_backup_interval_seconds'), 'interval {{instance}}'],
        ],
        NARROW,
      ),
      stat('Backup: failed', 'short', [[max(series('tds_backup_failed')), '']], NARROW),
      stat(
        'TLS certificate: expires in',
        's',
        [[`${series('tds_certificate_expires_timestamp_seconds')} - time()`, '{{instance}}']],
        NARROW,
      ),
      chart('Size of the newest backup', 'bytes', [[series('tds_backup_bytes'), '{{instance}}']]),
      chart('Memory of kept prefixes', 'bytes', [
        [sum(series('tds_prefix_cache_bytes'), 'instance, model'), '{{instance}} {{model}}'],
        [sum(series('tds_kv_cache_bytes'), 'instance, model'), 'keys and values {{instance}} {{model}}'],
      ]),
      chart(
        'Answers of tuned models: stability index',
        'short',
        [[max(series('tds_answer_drift_index'), 'model'), '{{model}}']],
        {
          description:
            'The answers of the last seven days beside those at tuning, less chance. Above 0.2 they differ.',
        },
      ),
    ],
  },
];

/** Returns the dashboard of `tds install --grafana`, which shows every metric of the service. */
export function grafanaDashboard() {
  return dashboardOf(
    {
      title: 'Typed Decision Service',
      uid: 'tds-overview',
      description: 'Metrics of tds serve --metrics-port.',
    },
    ROWS,
  );
}

/** Returns a chart of the usual quantiles of a histogram of seconds. */
function quantiles(
  title: string,
  histogram: string,
  { by, ...options }: { readonly by?: string; readonly description?: string } = {},
) {
  const prefix = by === undefined ? '' : `{{${by}}} `;
  const queries = (
    [
      [0.5, 'median'],
      [0.95, '95 %'],
      [0.99, '99 %'],
    ] as const
  ).map(([rank, name]): Query => [quantile(rank, histogram, by), `${prefix}${name}`]);
  return chart(title, 's', queries, options);
}

function quantile(rank: number, histogram: string, by?: string): string {
  const buckets = sum(rate(`${histogram}_bucket`), by === undefined ? 'le' : `le, ${by}`);
  return `histogram_quantile(${rank}, ${buckets})`;
}

/** Returns the series of a metric on the chosen instances, of which other labels can choose some. */
function series(metric: string, labels?: string): string {
  return `${metric}{${['instance=~"$instance"', labels].filter(Boolean).join(', ')}}`;
}

/** Returns the requests a second with such a status that are neither for the console nor without a route. */
function answered(status: string): string {
  return sum(rate('tds_requests_total', `endpoint=~"/v1/.*|/mcp", status=~"${status}"`));
}

/** Returns the violations on the node whose audit is the newest: nodes of a database take turns. */
function newestAudit(): string {
  const time = series('tds_audit_timestamp_seconds');
  return `${series('tds_audit_violations')} and ${time} == on (job) group_left () ${max(time, 'job')}`;
}

/** Returns what a counter counts a second. */
function rate(counter: string, labels?: string): string {
  return `rate(${series(counter, labels)}[$__rate_interval])`;
}

function sum(expression: string, by?: string): string {
  return aggregated('sum', expression, by);
}

function max(expression: string, by?: string): string {
  return aggregated('max', expression, by);
}

function min(expression: string, by?: string): string {
  return aggregated('min', expression, by);
}

function aggregated(operator: string, expression: string, by?: string): string {
  return by === undefined ? `${operator}(${expression})` : `${operator} by (${by}) (${expression})`;
}
