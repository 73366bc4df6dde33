-- A window's row is written at every admission: room on its page keeps the new version beside the old one.
ALTER TABLE rate_windows SET (fillfactor = 50);
--> statement-breakpoint
-- Settles and admits what the requests of a node ask of the rate windows, in one transaction.
--
-- Organizations come sorted by id, each once. Settlements and requests name theirs by its place (from 1); requests are
-- sorted by it, then by arrival. A request without tokens only asks where its organization stands.
--
-- Of each request the result has: what became of it (0 admitted, 1 lacks requests, 2 lacks tokens, 3 only asked), the
-- sums of both windows after it, microseconds until the oldest entry of the requests leaves and, where tokens lack,
-- until the oldest entry with tokens does (0 where there is none), and the time of its own entry. They are float8
-- because clients read int8 as text; whole numbers up to 2^53 are exact.
CREATE FUNCTION admit_requests(
  organizations text[],
  settled_organizations int[],
  settled_at_us bigint[],
  settled_tokens bigint[],
  request_organizations int[],
  request_limits bigint[],
  token_limits bigint[],
  request_tokens bigint[],
  -- Only tests give the time.
  time_us bigint DEFAULT NULL,
  OUT outcomes int[],
  OUT used_requests float8[],
  OUT used_tokens float8[],
  OUT requests_leave_us float8[],
  OUT tokens_leave_us float8[],
  OUT admitted_at_us float8[]
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  span_us CONSTANT bigint := 60000000;
  clock_us bigint;
  now_us bigint;
  cutoff_us bigint;
  place int := 0;
  settlement int := 1;
  request int := 1;
  settlement_count CONSTANT int := cardinality(settled_organizations);
  request_count CONSTANT int := cardinality(request_organizations);
  organization text;
  windows rate_windows;
  left_requests bigint;
  left_tokens bigint;
  new_requests bigint;
  new_tokens bigint;
  asked_tokens bigint;
  outcome int;
  leave_us bigint;
  is_changed boolean;
BEGIN
  outcomes := '{}'; used_requests := '{}'; used_tokens := '{}';
  requests_leave_us := '{}'; tokens_leave_us := '{}'; admitted_at_us := '{}';

  -- A crash of the server loses the last entries at most (well under a second of them), and never a part of one
  -- transaction: sums and entries stay equal. No money depends on them, so nobody waits for the disk or a standby.
  -- Plans are kept, also those that were made while the tables were so small that an index seemed useless.
  -- Nobody waits for a lock any more whose caller has given up.
  PERFORM set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true),
    set_config('lock_timeout', '3s', true);

  -- Makes or locks all rows, in the order of their ids, so that nodes never wait for each other in a circle. The
  -- update never happens, but its lock is taken.
  INSERT INTO rate_windows (organization_id) SELECT unnest(organizations)
    ON CONFLICT (organization_id) DO UPDATE SET requests = excluded.requests WHERE false;

  -- Read under the locks: nobody else's later entry can have an earlier time.
  clock_us := coalesce(time_us, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);

  FOREACH organization IN ARRAY organizations LOOP
    place := place + 1;
    SELECT * INTO windows FROM rate_windows WHERE organization_id = organization;
    is_changed := false;

    -- The windows' time never goes back. Where the clock did, it goes on from where it was.
    now_us := clock_us + windows.ahead_us;
    IF now_us < windows.latest_us THEN
      windows.ahead_us := windows.latest_us - clock_us;
      now_us := windows.latest_us;
      is_changed := true;
    END IF;
    cutoff_us := now_us - span_us;

    -- The index is entered at the oldest entry: it never leads over entries that were deleted before.
    IF windows.requests > 0 AND windows.oldest_us <= cutoff_us THEN
      WITH expired AS (
        DELETE FROM rate_window_entries
          WHERE organization_id = organization AND at_us >= windows.oldest_us AND at_us <= cutoff_us
          RETURNING rate_window_entries.requests, rate_window_entries.tokens
      )
      SELECT sum(expired.requests), sum(expired.tokens) INTO left_requests, left_tokens FROM expired;
      windows.requests := windows.requests - left_requests;
      windows.tokens := windows.tokens - left_tokens;
      is_changed := true;
      IF windows.requests > 0 THEN
        SELECT at_us INTO windows.oldest_us FROM rate_window_entries
          WHERE organization_id = organization AND at_us > cutoff_us ORDER BY at_us LIMIT 1;
      END IF;
    END IF;

    WHILE settlement <= settlement_count AND settled_organizations[settlement] = place LOOP
      UPDATE rate_window_entries SET tokens = tokens + settled_tokens[settlement]
        WHERE organization_id = organization AND at_us = settled_at_us[settlement];
      IF FOUND THEN
        windows.tokens := windows.tokens + settled_tokens[settlement];
        windows.oldest_tokens_us := least(windows.oldest_tokens_us, settled_at_us[settlement]);
        is_changed := true;
      END IF;
      settlement := settlement + 1;
    END LOOP;

    new_requests := 0;
    new_tokens := 0;
    WHILE request <= request_count AND request_organizations[request] = place LOOP
      asked_tokens := request_tokens[request];
      leave_us := 0;
      IF asked_tokens IS NULL THEN
        outcome := 3;
      ELSIF windows.requests >= request_limits[request] THEN
        outcome := 1;
      ELSE
        IF windows.requests = 0 THEN windows.oldest_us := now_us; END IF;
        windows.requests := windows.requests + 1;
        new_requests := new_requests + 1;
        IF windows.tokens = 0 OR windows.tokens + asked_tokens <= token_limits[request] THEN
          outcome := 0;
          windows.tokens := windows.tokens + asked_tokens;
          new_tokens := new_tokens + asked_tokens;
        ELSE
          outcome := 2;
          -- What was admitted just now is not stored yet; it is the oldest with tokens where the search finds none.
          IF windows.oldest_tokens_us < now_us THEN
            SELECT at_us INTO windows.oldest_tokens_us FROM rate_window_entries
              WHERE organization_id = organization AND at_us >= greatest(windows.oldest_tokens_us, cutoff_us + 1)
                AND tokens > 0
              ORDER BY at_us LIMIT 1;
            windows.oldest_tokens_us := coalesce(windows.oldest_tokens_us, now_us);
          END IF;
          leave_us := windows.oldest_tokens_us + span_us - now_us;
        END IF;
      END IF;
      outcomes[request] := outcome;
      used_requests[request] := windows.requests;
      used_tokens[request] := windows.tokens;
      requests_leave_us[request] :=
        CASE WHEN windows.requests = 0 THEN 0 ELSE windows.oldest_us + span_us - now_us END;
      tokens_leave_us[request] := leave_us;
      admitted_at_us[request] := now_us;
      request := request + 1;
    END LOOP;

    IF new_requests > 0 THEN
      INSERT INTO rate_window_entries AS entry (organization_id, at_us, requests, tokens)
        VALUES (organization, now_us, new_requests, new_tokens)
        ON CONFLICT (organization_id, at_us) DO UPDATE
          SET requests = entry.requests + excluded.requests, tokens = entry.tokens + excluded.tokens;
      windows.latest_us := now_us;
      is_changed := true;
    END IF;
    IF is_changed THEN
      UPDATE rate_windows SET requests = windows.requests, tokens = windows.tokens, oldest_us = windows.oldest_us,
          oldest_tokens_us = windows.oldest_tokens_us, latest_us = windows.latest_us, ahead_us = windows.ahead_us
        WHERE organization_id = organization;
    END IF;
  END LOOP;
END
$$;
