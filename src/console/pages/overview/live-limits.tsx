import { api, call } from '../client.ts';
import { Meter } from '../components/meter.tsx';
import { LoadedView } from '../components/states.tsx';
import { formatNumber } from '../format.ts';
import { usePolled } from '../use-polled.ts';

const POLL_MS = 3_000;

/** The requests and tokens of the last minute beside their limits, asked for again every few seconds. */
export function LiveLimits({ organization_id }: { readonly organization_id: string }) {
  const used = usePolled(
    () => call(api.organizations({ organization_id }).usage.limits.get()),
    [organization_id],
    POLL_MS,
  );
  return (
    <section class="panel padded stack" aria-labelledby="limits-title">
      <h2 id="limits-title">Rate limits</h2>
      <LoadedView loaded={used} lines={2}>
        {({ limits }) =>
          limits === null ? (
            <p class="muted">Tier 0 answers no requests. Add credit to begin with Tier 1.</p>
          ) : (
            <>
              <Meter
                label="Requests a minute"
                format={formatNumber}
                value={limits.requests.used}
                limit={limits.requests.limit}
              />
              <Meter
                label="Tokens a minute"
                format={formatNumber}
                value={limits.tokens.used}
                limit={limits.tokens.limit}
              />
              <p class="muted">The last 60 seconds, updated every 3 seconds.</p>
            </>
          )
        }
      </LoadedView>
    </section>
  );
}
