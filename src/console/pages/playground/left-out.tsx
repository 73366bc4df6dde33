import { Notice } from '../components/notice.tsx';
import { formatCount, formatNumber } from '../format.ts';
import type { RequestPrice } from './use-token-count.ts';

/** So many characters are shown beside the gap. */
const SHOWN_LENGTH = 120;

/**
 * Says that the middle of a record would not be read, and about where the gap is. The planner keeps as many tokens of
 * the beginning as of the end. Their places in the text are not told, so that these are estimates.
 */
export function LeftOutNotice({
  text,
  price,
}: {
  readonly text: string;
  readonly price: RequestPrice | undefined;
}) {
  const { input_tokens = 0, record_tokens_left_out } = price?.least_read ?? {};
  if (record_tokens_left_out == null || record_tokens_left_out === 0) return null;
  const read_share = input_tokens / (input_tokens + record_tokens_left_out);
  const kept_length = Math.floor((text.length * read_share) / 2);
  return (
    <Notice
      tone="warning"
      title={`The record is too long: ${formatCount(record_tokens_left_out, 'token')} of its middle will not be read.`}
    >
      <p>
        About the first and the last {formatNumber(kept_length)} of its {formatNumber(text.length)} characters
        are read.
      </p>
      <p class="left-out">
        <span>…{text.slice(Math.max(0, kept_length - SHOWN_LENGTH), kept_length)}</span>
        <strong> [left out] </strong>
        <span>{text.slice(text.length - kept_length, text.length - kept_length + SHOWN_LENGTH)}…</span>
      </p>
    </Notice>
  );
}
